"""What an intake decides: by example, and against a model that forgets nothing."""

import hypothesis.strategies as some
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from echoic.hub.intake_book import Attempt, Begun, Book, Known, Lost, Part, Refused, Repeated, Taken, UnderWay

EARLY, LATE = 10, 10_000


def attempt(epoch: int = 0, partition: int = 0, number: int = 1, query: str = "q") -> Attempt:
    return Attempt(query, epoch, partition, number)


def test_an_epoch_is_staged_committed_and_known_from_then_on() -> None:
    book = Book()
    assert book.stage(attempt(7), 0, 100, EARLY) == Taken()
    assert book.stage(attempt(7), 1, 50, EARLY) == Taken()
    assert book.stage(attempt(7), 0, 100, EARLY) == Repeated()
    assert book.staged_bytes == 150
    assert book.commit("q", 7, [Part(0, 1, 2)]) == Begun((attempt(7),))
    assert book.settle("q", 7) == (attempt(7),)
    assert book.staged_bytes == 0
    assert book.commit("q", 7, [Part(0, 1, 2)]) == UnderWay()
    book.publish("q", 7)
    assert book.commit("q", 7, [Part(0, 1, 2)]) == Known()
    assert book.stage(attempt(7), 0, 100, EARLY) == Known()


def test_an_epoch_before_the_last_one_is_refused_for_its_query_has_lost_its_checkpoint() -> None:
    book = Book()
    book.settle("q", 7, published=True)
    for decided in (book.commit("q", 6, []), book.stage(attempt(6), 0, 100, EARLY)):
        assert isinstance(decided, Refused)
        assert "query `q` has committed epoch 7 and comes with epoch 6: its checkpoint was removed" in decided.reason


def test_attempts_that_a_commit_does_not_name_are_dropped_with_it() -> None:
    book = Book()
    for number in (1, 2):
        for epoch in (3, 4):
            book.stage(attempt(epoch, number=number), 0, 10, EARLY)
    book.stage(attempt(3, query="other"), 0, 10, EARLY)
    assert book.commit("q", 3, [Part(0, 2, 1)]) == Begun((attempt(3, number=2),))
    assert set(book.settle("q", 3)) == {attempt(3), attempt(3, number=2)}
    assert book.staged_bytes == 30


def test_parts_are_published_in_the_order_of_their_partitions() -> None:
    book = Book()
    for partition in (2, 0, 1):
        book.stage(attempt(partition=partition), 0, 1, EARLY)
    begun = book.commit("q", 0, [Part(partition, 1, 1) for partition in (1, 2, 0)])
    assert isinstance(begun, Begun)
    assert [each.partition for each in begun.attempts] == [0, 1, 2]


def test_what_is_not_there_is_lost_and_not_left_out() -> None:
    book = Book()
    assert isinstance(book.stage(attempt(), 1, 1, EARLY), Lost)
    book.stage(attempt(), 0, 1, EARLY)
    for part in (Part(0, 1, 2), Part(0, 2, 1), Part(1, 1, 1)):
        assert isinstance(book.commit("q", 0, [part]), Lost)
    assert isinstance(book.commit("q", 0, [Part(0, 1, 1), Part(0, 2, 0)]), Refused)


def test_staged_rows_are_bounded_in_bytes_in_number_and_in_age() -> None:
    book = Book(bytes_max=100, attempts_max=2, age_ns_max=1000)
    assert book.stage(attempt(0), 0, 60, EARLY) == Taken()
    refused = book.stage(attempt(0), 1, 60, EARLY)
    assert isinstance(refused, Refused)
    assert "60 bytes of uncommitted epochs are staged and 60 more are too many, the limit is 100" in refused.reason
    assert book.stage(attempt(1), 0, 1, LATE) == Taken()
    assert isinstance(book.stage(attempt(2), 0, 1, LATE), Refused)
    assert book.expire(LATE) == (attempt(0),)
    assert book.stage(attempt(2), 0, 60, LATE) == Taken()


def test_names_and_numbers_of_strangers_are_checked() -> None:
    book = Book()
    for wrong in (attempt(query=""), attempt(query="x" * 201), attempt(query="a\nb"), attempt(-1), attempt(0, -1)):
        assert isinstance(book.stage(wrong, 0, 1, EARLY), Refused)
    assert isinstance(book.stage(attempt(), -1, 1, EARLY), Refused)
    assert isinstance(book.commit("", 0, []), Refused)
    assert isinstance(book.commit("q", -1, []), Refused)


def test_queries_that_have_not_committed_for_longest_are_forgotten() -> None:
    book = Book(queries_max=2)
    for query in ("a", "b", "a", "c"):
        book.settle(query, 5, published=True)
    assert book.committed == (("a", 5), ("c", 5))


def test_batch_writes_are_forgotten_before_a_stream_that_has_stood_still_for_long() -> None:
    book = Book(queries_max=3)
    book.settle("stream", 5, published=True)
    for number in range(100):
        book.settle(f"batch-{number}", 0, published=True)
    assert book.committed == (("stream", 5), ("batch-98", 0), ("batch-99", 0))


QUERIES, EPOCHS, PARTITIONS, NUMBERS = (
    some.sampled_from("pq"),
    some.integers(0, 4),
    some.integers(0, 1),
    some.integers(1, 2),
)


class Model(RuleBasedStateMachine):
    """Commits go through exactly when all that they name is there, and never twice."""

    def __init__(self) -> None:
        super().__init__()
        self.book = Book()
        self.staged: dict[Attempt, int] = {}
        self.last: dict[str, int] = {}
        self.under_way: set[tuple[str, int]] = set()

    @rule(query=QUERIES, epoch=EPOCHS, partition=PARTITIONS, number=NUMBERS, index=some.integers(0, 3))
    def stage(self, query: str, epoch: int, partition: int, number: int, index: int) -> None:
        key = Attempt(query, epoch, partition, number)
        there = self.staged.get(key, 0)
        decided = self.book.stage(key, index, 1, EARLY)
        if epoch < self.last.get(query, -1):
            assert isinstance(decided, Refused)
        elif epoch == self.last.get(query, -1):
            assert decided == Known()
        elif index == there:
            assert decided == Taken()
            self.staged[key] = there + 1
        else:
            assert isinstance(decided, Repeated if index < there else Lost)

    @rule(query=QUERIES, epoch=EPOCHS, named=some.dictionaries(PARTITIONS, some.tuples(NUMBERS, some.integers(1, 3))))
    def commit(self, query: str, epoch: int, named: dict[int, tuple[int, int]]) -> None:
        parts = [Part(partition, number, portions) for partition, (number, portions) in named.items()]
        decided = self.book.commit(query, epoch, parts)
        whole = all(self.staged.get(Attempt(query, epoch, p.partition, p.attempt)) == p.portions for p in parts)
        if (query, epoch) in self.under_way:
            assert decided == UnderWay()
        elif epoch < self.last.get(query, -1):
            assert isinstance(decided, Refused)
        elif epoch == self.last.get(query, -1):
            assert decided == Known()
        elif whole:
            assert isinstance(decided, Begun)
            assert len(decided.attempts) == len(parts)
            self.settle(query, epoch)
        else:
            assert isinstance(decided, Lost)

    def settle(self, query: str, epoch: int) -> None:
        dropped = self.book.settle(query, epoch)
        gone = {key for key in self.staged if key.query == query and key.epoch <= epoch}
        assert set(dropped) == gone
        for key in gone:
            del self.staged[key]
        self.last[query] = epoch
        self.under_way.add((query, epoch))

    @rule(query=QUERIES, epoch=EPOCHS)
    def publish(self, query: str, epoch: int) -> None:
        self.book.publish(query, epoch)
        self.under_way.discard((query, epoch))

    @rule(query=QUERIES, epoch=EPOCHS)
    def abort(self, query: str, epoch: int) -> None:
        gone = {key for key in self.staged if (key.query, key.epoch) == (query, epoch)}
        assert set(self.book.abort(query, epoch)) == gone
        for key in gone:
            del self.staged[key]

    @invariant()
    def counts_are_those_of_the_model(self) -> None:
        assert self.book.staged_bytes == sum(self.staged.values())
        assert dict(self.book.committed) == self.last
        assert self.book.under_way == len(self.under_way)


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
