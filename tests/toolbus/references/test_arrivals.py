"""Messages that wait for their values, and everything behind them."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future

import pytest

from echoic.errors import EchoicError, LimitExceededError, MalformedFrameError
from echoic.terms import Placeholder, ReferenceKind, Term, Value
from echoic.toolbus.protocol import REFERRING, Message, MessageKind
from echoic.toolbus.references.arrivals import Arrivals, Coming
from echoic.toolbus.references.exchange import Exchange
from echoic.toolbus.references.words import PUTS_MAX, Chunk, Put, encode_chunk, encode_put
from echoic.values import Variable
from tests.toolbus.references.post import Post, told

SECONDS = 60


class Desk:
    """A tool to which a bus says something, and whose values come when the test wants it."""

    def __init__(self) -> None:
        self.coming: dict[int, Coming] = {}
        self.heard: list[Message | str] = []
        self._changed = threading.Condition()
        self.arrivals = Arrivals(self._fetch, self.acknowledge, self.hear, "test-arrivals")

    def _fetch(self, put: Put) -> Coming:
        self.coming[put.variable] = Future()
        return self.coming[put.variable]

    def acknowledge(self, transaction: int) -> None:
        self.hear(f"ack {transaction}")

    def hear(self, message: Message | str) -> None:
        with self._changed:
            self.heard.append(message)
            self._changed.notify_all()

    def give(self, variable: int, value: Value) -> None:
        self.coming[variable].set_result(Variable(variable, value, 1))

    def after(self, count: int) -> list[Message | str]:
        """Return what was heard when there is so much."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.heard) >= count, SECONDS)
            return list(self.heard)


def put(variable: int, *, transaction: int = 5, size: int = 3, with_value: bool = False) -> Message:
    return encode_put(Put(transaction, variable, 1, (), (0,), ReferenceKind.STR, "", 0, size, with_value=with_value))


def referring(*places: int, kind: MessageKind = MessageKind.DO) -> Message:
    values = (Term("f", *(Placeholder(Term("reference", place)) for place in places)),)
    return Message(kind, 9, values, REFERRING)


def test_a_message_without_references_isheard_at_once() -> None:
    desk = Desk()
    desk.arrivals.take(Message(MessageKind.DO, 1, ("x",)))
    assert desk.heard == [Message(MessageKind.DO, 1, ("x",))]


def test_a_message_isheard_when_all_its_values_are_there_and_nothing_overtakes_it() -> None:
    desk = Desk()
    cancel, later = Message(MessageKind.CANCEL, 9), Message(MessageKind.EVAL, 10, ("y",))
    for message in (put(1), put(2), referring(1, 0, 1), cancel, later):
        desk.arrivals.take(message)
    desk.give(2, "two")
    assert desk.heard == []
    desk.give(1, "one")
    whole = Message(MessageKind.DO, 9, (Term("f", "two", "one", "two"),))
    assert desk.after(4) == ["ack 5", whole, cancel, later]


def test_a_message_whose_values_are_there_does_not_change_threads() -> None:
    desk = Desk()
    desk.arrivals.take(put(1))
    desk.give(1, "one")
    desk.arrivals.take(referring(0))
    assert desk.heard == ["ack 5", Message(MessageKind.DO, 9, (Term("f", "one"),))]


def test_values_of_several_messages_are_fetched_at_the_same_time() -> None:
    desk = Desk()
    for variable in range(10):
        desk.arrivals.take(put(variable, transaction=variable + 1))
        desk.arrivals.take(referring(0))
    for variable in reversed(range(10)):
        desk.give(variable, str(variable))
    heard = desk.after(20)
    assert heard[::2] == [f"ack {variable + 1}" for variable in range(10)]
    assert [each.values[0].args for each in heard[1::2]] == [(str(variable),) for variable in range(10)]


def test_the_end_comes_behind_all_that_was_said() -> None:
    desk = Desk()
    desk.arrivals.take(put(1))
    desk.arrivals.take(referring(0, kind=MessageKind.TERMINATE))
    ended = threading.Event()
    desk.arrivals.end(ended.set)
    assert not ended.is_set()
    desk.give(1, "one")
    assert ended.wait(SECONDS)
    assert len(desk.heard) == 2


def test_a_value_that_comes_with_its_put_is_not_fetched() -> None:
    desk = Desk()
    desk.arrivals.take(put(1, size=6, with_value=True))
    for body, last in ((b"h\xc3", False), (b"\xa4u", False), (b"se", True)):
        desk.arrivals.take(encode_chunk(Chunk(5, body, last)))
    desk.arrivals.take(referring(0))
    assert desk.heard[1] == Message(MessageKind.DO, 9, (Term("f", "häuse"),))
    assert desk.coming == {}


def test_content_that_is_not_what_was_said_is_lost_and_not_the_bus() -> None:
    desk = Desk()
    desk.arrivals.take(put(1, size=3, with_value=True))
    desk.arrivals.take(encode_chunk(Chunk(5, b"\xff\xff\xff", True)))
    desk.arrivals.take(referring(0))
    (lost,) = desk.heard[1].values[0].args
    assert lost.name == "lost-value"
    assert "UTF-8" in lost.args[0]


WRONG: Sequence[tuple[Callable[[], list[Message]], type[EchoicError]]] = [
    (lambda: [referring(0)], MalformedFrameError),
    (lambda: [put(1, with_value=True), referring(0)], MalformedFrameError),
    (lambda: [put(1, with_value=True), put(2, with_value=True)], MalformedFrameError),
    (lambda: [put(1, with_value=True), encode_chunk(Chunk(5, b"1234", False))], MalformedFrameError),
    (lambda: [put(1, with_value=True), encode_chunk(Chunk(5, b"12", True))], MalformedFrameError),
    (lambda: [put(1, with_value=True), encode_chunk(Chunk(6, b"123", True))], MalformedFrameError),
    (lambda: [put(1)] * (PUTS_MAX + 1), LimitExceededError),
]


@pytest.mark.parametrize(("said", "error"), WRONG)
def test_what_no_bus_says_is_refused(said: Callable[[], list[Message]], error: type[EchoicError]) -> None:
    desk = Desk()
    *before, wrong = said()
    for message in before:
        desk.arrivals.take(message)
    with pytest.raises(error):
        desk.arrivals.take(wrong)


@pytest.mark.parametrize("threshold", [0, 100_000, float("inf")])
def test_what_a_member_says_arrives_as_it_was_said(threshold: float) -> None:
    post = Post()
    owner, asker = post.join(1, Exchange(), threshold=threshold), post.join(2, Exchange())
    desk = Desk()
    arrivals = Arrivals(lambda put: asker.fetch_variable(told(put, 2)), desk.acknowledge, desk.hear, "test-arrivals")
    said = [
        Message(MessageKind.VALUE, 1, (Term("f", 1, "small", [1, 2]),)),
        Message(MessageKind.VALUE, 2, (Term("f", "large" * 20_000, [b"blob" * 50_000, 7], "large" * 20_000),)),
        Message(MessageKind.EVENT, 3, ("ä" * 100_000, Placeholder(Term("reference", 0)))),
    ]
    for message in said:
        for part in owner.outgoing(message):
            arrivals.take(part)
    ended = threading.Event()
    arrivals.end(ended.set)
    assert ended.wait(SECONDS)
    post.close()
    assert [each for each in desk.heard if isinstance(each, Message)] == said
