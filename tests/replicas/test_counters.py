"""The state of the counter service, by itself: the same everywhere, whole after a transfer, within its limits."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import MalformedBatchError
from echoic.groups.engine import View
from echoic.hub.group_delivery import GroupStamp
from echoic.replicas.counters import CHUNK_ENTRIES, VALUE_MAX, Counters, Increment, Outcome
from echoic.wire import Batch

VIEW = View(1, ("n1", "n2"), True)
COUNTERS_MAX, KEYS_MAX = 4, 5

increments = st.lists(
    st.builds(
        Increment,
        counter=st.sampled_from("abcdef") | st.just("x" * 200),
        add=st.integers(-3, 3) | st.sampled_from([VALUE_MAX, -VALUE_MAX]),
        key=st.sampled_from(["", "", "k1", "k2", "k3", "k4", "k5", "k6", "k7"]),
        request=st.just(0),
    ),
    max_size=60,
)


@dataclass
class Model:
    """The same in the plainest words."""

    values: dict[str, int] = field(default_factory=dict)
    keys: list[tuple[str, str, int, int]] = field(default_factory=list)

    def apply(self, increment: Increment) -> tuple[str, int]:
        for key, counter, add, value in self.keys:
            if increment.key == key:
                return ("repeated", value) if (counter, add) == (increment.counter, increment.add) else ("key", 0)
        value = self.values.get(increment.counter, 0) + increment.add
        if len(increment.counter) > 128:
            return "name", 0
        if abs(value) > VALUE_MAX:
            return "range", 0
        if increment.counter not in self.values and len(self.values) == COUNTERS_MAX:
            return "full", 0
        if increment.counter in self.values or increment.add:
            self.values[increment.counter] = value
        if increment.key:
            self.keys = [*self.keys, (increment.key, increment.counter, increment.add, value)][-KEYS_MAX:]
        return "", value


def replica(name: str = "n1") -> Counters:
    return Counters(name, counters_max=COUNTERS_MAX, keys_max=KEYS_MAX)


def deliver(counters: Counters, events: Sequence[Increment], sender: str = "n1") -> None:
    if events:
        batch = Batch.of(list(events), Increment).to(Increment)
        counters.deliver(batch, GroupStamp(counters.applied() + 1, sender, VIEW))


def told(outcome: Outcome | None) -> tuple[str, int]:
    assert outcome is not None
    return ("repeated" if outcome.repeated else outcome.refusal), outcome.value


@given(increments)
def test_every_increment_has_the_outcome_that_follows_from_those_before_it(events: list[Increment]) -> None:
    counters, model = replica(), Model()
    for number, increment in enumerate(events, 1):
        counters.expect(number)
        deliver(counters, [Increment(increment.counter, increment.add, increment.key, number)])
        assert told(counters.take(number)) == model.apply(increment)
    assert {name: counters.value(name)[0] for name in model.values} == model.values
    assert counters.statistics().counters == len(model.values) <= COUNTERS_MAX
    assert counters.statistics().keys == len(model.keys) <= KEYS_MAX


@given(increments, st.integers(0, 60), st.lists(st.integers(1, 7), max_size=30))
def test_a_replica_that_takes_over_a_state_goes_on_as_if_it_had_been_there(
    events: list[Increment], away: int, sizes: list[int]
) -> None:
    always, later = replica("n1"), replica("n2")
    deliver(always, events[:away])
    later.load(always.save(0), always.applied())
    rest = events[away:]
    for size in [*sizes, len(rest)]:  # however the group has packed them
        deliver(always, rest[:size])
        deliver(later, rest[:size])
        rest = rest[size:]
    assert later.save(0) == always.save(0)
    assert later.applied() == always.applied() == len(events)


def test_a_state_travels_in_chunks_of_a_limited_size() -> None:
    counters = Counters(counters_max=10_000)
    name = "\N{GRINNING FACE}" * 120
    deliver(counters, [Increment(f"{name}{number:05}", 1, f"{number:0255}", 0) for number in range(2000)])
    chunks = counters.save(0)
    assert len(chunks) == -(-2000 // CHUNK_ENTRIES)
    assert max(map(len, chunks)) <= 1024 * 1024
    other = Counters()
    other.load(chunks, 2000)
    assert other.value(f"{name}01999") == (1, 2000)
    assert other.outcome(f"{1999:0255}") == Outcome(1, 2000, repeated=True)


def test_a_state_stays_as_it_was_saved_whatever_is_delivered_meanwhile() -> None:
    counters, other = replica(), replica()
    deliver(counters, [Increment("a", 1, "k", 0)])
    chunks = counters.save(0)
    deliver(counters, [Increment("a", 1, "", 0)] * 5)
    other.load(chunks, 1)
    assert other.value("a") == (1, 1)


@pytest.mark.parametrize("chunk", [b"", b"\xc1", b"\x91\x90", b'{"a": 1}', b"\x92\x91\x92\xa1a\xa1b\x90"])
def test_what_is_no_state_is_refused_and_nothing_is_taken_over(chunk: bytes) -> None:
    counters = replica()
    deliver(counters, [Increment("a", 1, "", 0)])
    with pytest.raises(MalformedBatchError, match="bytes are not of a state of counters"):
        counters.load([chunk], 9)
    assert counters.value("a") == (1, 1)


def test_outcomes_are_kept_for_those_who_expect_them_at_the_replica_that_multicast() -> None:
    counters = replica("n1")
    counters.expect(7)
    deliver(counters, [Increment("a", 1, "", 7)], sender="n2")  # another's number 7
    deliver(counters, [Increment("a", 1, "", 8)])
    assert counters.take(8) is None
    deliver(counters, [Increment("a", 1, "", 7)])
    assert counters.take(7) == Outcome(3, 3)
    assert counters.take(7) is None
