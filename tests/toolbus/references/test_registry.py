"""The counts against an oracle that traces, and what strangers and threads can do to them."""

import gc
import threading
from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from echoic.errors import LimitExceededError, MalformedFrameError
from echoic.terms import Annotated, Reference, ReferenceKind, Term, TermList, Value
from echoic.toolbus.references.registry import BUS, Entry, Registry, RegistryStatistics, Released
from echoic.toolbus.references.words import Put

Key = tuple[int, int]

OWNERS = (BUS, 1, 2, 3)
TOOLS = (1, 2, 3)
SLOTS = 6

slots = st.integers(0, SLOTS - 1)
tools = st.sampled_from(TOOLS)


def put_of(owner: int, variable: int, *path: int, size: int = 1000) -> Put:
    return Put(1, variable, owner, (f"tcp://h:{owner}",), path, ReferenceKind.BLOB, "", 0, size, epoch=9)


def live(registry: Registry) -> set[Key]:
    """Return which variables of which owners are referred to."""
    return {(entry.owner, entry.variable) for entry in registry.entries()}


class Counting(RuleBasedStateMachine):
    """A bus that binds, forgets, sends and loses at random.

    The oracle knows for each slot and delivery which variables are in it, as plain numbers, and traces from there.
    """

    def __init__(self) -> None:
        super().__init__()
        self.registry = Registry()
        self.slots: list[Value] = [0] * SLOTS
        self.slot_keys: list[frozenset[Key]] = [frozenset()] * SLOTS
        self.flights: dict[tuple[int, int], frozenset[Key]] = {}
        self.known: set[Key] = set()  # have arrived, and are neither finished nor lost
        self.gone: set[int] = set()
        self.finished: set[Key] = set()
        self.variables = self.transactions = 0

    @property
    def reachable(self) -> frozenset[Key]:
        return frozenset().union(*self.slot_keys, *self.flights.values())

    @property
    def owed(self) -> set[Key]:
        return self.known - self.reachable

    @initialize()
    def begin(self) -> None:
        gc.collect()

    @rule(owner=st.sampled_from(OWNERS), slot=slots, parts=st.integers(1, 3))
    def a_value_arrives(self, owner: int, slot: int, parts: int) -> None:
        if owner in self.gone:
            return
        self.variables += 1
        puts = [put_of(owner, self.variables, 0, part) for part in range(parts)]
        self.slots[slot] = Term("f", *[self.registry.arrive(owner, put) for put in puts])
        self.slot_keys[slot] = frozenset({(owner, self.variables)})
        self.known.add((owner, self.variables))

    @rule(slot=slots, part=st.integers(0, 3), data=st.data())
    def a_part_arrives_of_what_is_not_finished(self, slot: int, part: int, data: st.DataObject) -> None:
        candidates = sorted(key for key in self.known if key[0] not in self.gone)
        if candidates:
            owner, variable = data.draw(st.sampled_from(candidates))
            self.slots[slot] = self.registry.arrive(owner, put_of(owner, variable, 0, part))
            self.slot_keys[slot] = frozenset({(owner, variable)})

    @rule(one=slots, other=slots, into=slots)
    def values_are_joined(self, one: int, other: int, into: int) -> None:
        joined = TermList(self.slots[one], Term("g", 1, self.slots[other]))
        self.slots[into] = Annotated(1, joined)
        self.slot_keys[into] = self.slot_keys[one] | self.slot_keys[other]

    @rule(one=slots, into=slots)
    def a_value_is_assigned(self, one: int, into: int) -> None:
        self.slots[into] = self.slots[one]
        self.slot_keys[into] = self.slot_keys[one]

    @rule(slot=slots)
    def a_value_is_overwritten(self, slot: int) -> None:
        self.slots[slot] = 0
        self.slot_keys[slot] = frozenset()

    @rule(slot=slots, part=st.integers(0, 2))
    def only_a_part_is_kept(self, slot: int, part: int) -> None:
        value = self.slots[slot]
        if isinstance(value, Term) and part < len(value.args):
            self.slots[slot] = value.args[part]

    @rule(slot=slots, tool=tools)
    def a_value_is_sent(self, slot: int, tool: int) -> None:
        if tool in self.gone:
            return
        self.transactions += 1
        refers = self.registry.sent(tool, self.transactions, (self.slots[slot], 1))
        assert refers is bool(self.slot_keys[slot])
        if refers:
            self.flights[tool, self.transactions] = self.slot_keys[slot]

    @precondition(lambda self: self.flights)
    @rule(data=st.data())
    def it_is_acknowledged(self, data: st.DataObject) -> None:
        tool, transaction = data.draw(st.sampled_from(sorted(self.flights)))
        assert self.registry.acked(tool, transaction)
        del self.flights[tool, transaction]

    @rule(tool=tools, transaction=st.integers(0, 50))
    def something_is_acknowledged_that_was_not_sent(self, tool: int, transaction: int) -> None:
        if (tool, transaction) not in self.flights:
            assert not self.registry.acked(tool, transaction)

    @rule(tool=tools)
    def a_tool_is_lost(self, tool: int) -> None:
        self.gone.add(tool)
        expected = tuple(transaction for number, transaction in self.flights if number == tool)
        assert self.registry.cancel(tool) == expected
        self.flights = {key: kept for key, kept in self.flights.items() if key[0] != tool}
        lost = {key for key in self.known if key[0] == tool}
        found = self.registry.lost(tool)
        assert {(reference.owner, reference.variable) for reference in found} == lost & self.reachable
        self.known -= lost
        assert all(self.registry.endpoints(*key) == () for key in lost)

    @rule()
    def owners_are_told(self) -> None:
        released = self.registry.finished()
        owed = self.owed
        told = [(each.owner, variable) for each in released for variable in each.variables]
        assert sorted(told) == sorted(owed)
        assert not owed & self.finished
        self.finished |= owed
        self.known -= owed
        assert self.registry.finished() == ()

    @invariant()
    def what_is_counted_is_what_can_be_reached(self) -> None:
        alive = self.reachable & self.known
        assert live(self.registry) == alive
        assert all(self.registry.endpoints(*key) == (f"tcp://h:{key[0]}",) for key in alive)
        statistics = self.registry.statistics()
        assert statistics.variables == len(alive)
        assert statistics.in_flight == len(self.flights)
        for owner in OWNERS:
            of = {(reference.owner, reference.variable) for reference in self.registry.of(owner)}
            assert of == {key for key in alive if key[0] == owner}
            flying = any(key[0] == owner for keys in self.flights.values() for key in keys)
            assert self.registry.in_flight_of(owner) is flying

    def teardown(self) -> None:
        self.slots = []
        self.slot_keys = []
        self.flights = {}
        for tool in TOOLS:
            self.registry.cancel(tool)
        self.owners_are_told()
        assert self.known == set()
        statistics = self.registry.statistics()
        assert (statistics.variables, statistics.references, statistics.in_flight) == (0, 0, 0)


class TestCounting(Counting.TestCase):  # type: ignore[misc] # hypothesis makes it
    """T8: after every step, what is counted as alive is what a tracing oracle reaches."""

    settings = settings(max_examples=20, stateful_step_count=40, deadline=None)


def test_t7_a_value_in_flight_is_not_finished_before_it_is_acknowledged() -> None:
    registry = Registry()
    assert registry.sent(2, 5, (registry.arrive(1, put_of(1, 17)),))
    assert registry.finished() == ()
    assert registry.acked(2, 5)
    assert registry.finished() == (Released(1, (17,)),)
    assert registry.finished() == ()
    assert not registry.acked(2, 5)


def test_t19_a_root_lives_until_its_last_part_dies() -> None:
    registry = Registry()
    parts = [registry.arrive(1, put_of(1, 17, 0, number)) for number in range(3)]
    while parts:
        assert registry.finished() == ()
        parts.pop()
    assert registry.finished() == (Released(1, (17,)),)


def test_t8_an_owner_is_told_in_the_turn_in_which_the_last_reference_goes() -> None:
    woken: list[int] = []
    registry = Registry(lambda: woken.append(1))
    held = Term("f", registry.arrive(1, put_of(1, 17)))
    assert woken == []
    del held
    assert woken == [1]
    assert registry.finished() == (Released(1, (17,)),)


def test_a_value_that_is_put_twice_is_counted_once() -> None:
    registry = Registry()
    one = registry.arrive(1, put_of(1, 17, 0))
    other = registry.arrive(1, put_of(1, 17, 0))
    assert one is other
    assert registry.statistics().references == 1
    del one
    assert live(registry) == {(1, 17)}
    del other
    assert registry.finished() == (Released(1, (17,)),)


def test_a_value_that_is_put_again_before_its_owner_was_told_lives_on() -> None:
    registry = Registry()
    registry.arrive(1, put_of(1, 17, 0))
    assert live(registry) == set()
    held = registry.arrive(1, put_of(1, 17, 1))
    assert registry.finished() == ()
    assert live(registry) == {(1, 17)}
    del held
    assert registry.finished() == (Released(1, (17,)),)


def test_t24_values_of_an_owner_that_is_lost_are_told_and_forgotten() -> None:
    registry = Registry()
    held = [registry.arrive(1, put_of(1, number)) for number in (17, 18)]
    registry.arrive(1, put_of(1, 19))
    assert registry.lost(1) == tuple(held)
    assert registry.endpoints(1, 17) == ()
    held.clear()
    assert registry.finished() == ()
    assert registry.statistics() == RegistryStatistics(0, 0, 0, 3, 0, 3)


def test_where_the_owner_of_a_value_is_is_known_while_somebody_refers_to_it() -> None:
    registry = Registry()
    held = registry.arrive(1, put_of(1, 17))
    assert registry.endpoints(1, 17) == ("tcp://h:1",)
    del held
    registry.finished()
    assert registry.endpoints(1, 17) == ()


def test_people_can_see_who_has_what() -> None:
    registry = Registry()
    held = [registry.arrive(1, put_of(1, 17, number, size=10), 1_000) for number in range(2)]
    held.append(registry.arrive(BUS, put_of(BUS, 5, size=7), 2_000))
    registry.sent(2, 1, held)
    registry.sent(3, 1, held[:1])
    assert registry.entries(5_000) == (
        Entry(BUS, 5, "blob", 7, (2,), 3_000),
        Entry(1, 17, "blob, blob", 20, (2, 3), 4_000),
    )


def test_a_signature_is_shown_in_part_if_it_is_long() -> None:
    registry = Registry()
    puts = [Put(1, 17, 1, (), (number,), ReferenceKind.APPLICATION, "f" * 100, 2, 9) for number in range(4)]
    held = [registry.arrive(1, put) for put in puts]
    (entry,) = registry.entries()
    assert entry.signature == ", ".join(["f" * 80] * 3 + ["..."])
    assert entry.size == 9 * len(held)


def test_nobody_can_put_what_is_of_somebody_else() -> None:
    with pytest.raises(MalformedFrameError, match="tool 2 has put a value of tool 1"):
        Registry().arrive(2, put_of(1, 17))


def test_a_tool_can_have_so_many_references_and_no_more() -> None:
    registry = Registry(references_max=3)
    held = [registry.arrive(1, put_of(1, number)) for number in range(3)]
    with pytest.raises(LimitExceededError, match="3 references at the bus, limit is 3"):
        registry.arrive(1, put_of(1, 3))
    registry.arrive(2, put_of(2, 3))
    held.pop()
    held.append(registry.arrive(1, put_of(1, 4)))
    assert live(registry) == {(1, 0), (1, 1), (1, 4)}


def test_what_is_in_a_cycle_is_finished_when_the_cycle_is_collected() -> None:
    registry = Registry()
    cycle: list[object] = [registry.arrive(1, put_of(1, 17))]
    cycle.append(cycle)
    del cycle
    gc.collect()
    assert registry.finished() == (Released(1, (17,)),)


def test_references_may_be_dropped_in_any_thread_at_any_time() -> None:
    registry = Registry()
    given: list[list[Reference]] = [[] for _ in range(4)]
    done = threading.Event()

    def drop(held: list[Reference]) -> None:
        while held or not done.is_set():
            if held:
                held.pop()

    threads = [threading.Thread(target=drop, args=(held,)) for held in given]
    for thread in threads:
        thread.start()
    finished = 0
    for number in range(20_000):
        given[number % 4].append(registry.arrive(1, put_of(1, number)))
        if number % 50 == 0:
            finished += sum(len(each.variables) for each in registry.finished())
    done.set()
    for thread in threads:
        thread.join()
    for held in given:
        held.clear()
    finished += sum(len(each.variables) for each in registry.finished())
    assert finished == 20_000
    assert registry.statistics() == RegistryStatistics(0, 0, 0, 20_000, 20_000, 0)


def test_t6_a_hundred_thousand_values_come_and_go() -> None:
    registry = Registry()
    count = 100_000

    def arriving() -> Iterator[Reference]:
        for number in range(count):
            yield registry.arrive(1 + number % 10, put_of(1 + number % 10, number))

    held = list(arriving())
    for number in range(count):
        registry.sent(1, number, held[number : number + 1])
    assert len(live(registry)) == count
    held.clear()
    assert registry.finished() == ()
    for number in range(0, count, 2):
        registry.acked(1, number)
    assert sum(len(each.variables) for each in registry.finished()) == count // 2
    assert len(registry.cancel(1)) == count // 2
    assert sum(len(each.variables) for each in registry.finished()) == count // 2
    assert registry.finished() == ()
    statistics = registry.statistics()
    assert (statistics.variables, statistics.references, statistics.in_flight) == (0, 0, 0)
    assert statistics.finished == count
