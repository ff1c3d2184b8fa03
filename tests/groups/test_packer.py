"""The packing buffer: what leaves, when, and what is told of it."""

from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.errors import LocalError
from echoic.groups.packer import Packer
from echoic.groups.policies import policy_of

INTERVAL_NS = 1_000_000
PACK_BYTES_MAX = 400
WINDOW_BYTES_MAX = 3000
POLICIES = ["static:1", "static:3", "paper:ta=0.001,pack_max=9", "nagle:100", "nagle:100000", "probe"]


def packer_of(
    packing: str, interval_ns: int = INTERVAL_NS, pack_bytes_max: int = 1 << 20, window: int = 1 << 24
) -> Packer:
    return Packer(
        policy_of(packing),
        packing_interval_ns=interval_ns,
        pack_bytes_max=pack_bytes_max,
        window_bytes_max=window,
        now_ns=0,
    )


def records(first: int, count: int, size: int = 8) -> list[bytes]:
    return [number.to_bytes(4, "big") + bytes(size - 4) for number in range(first, first + count)]


def test_a_pack_leaves_when_the_degree_is_gathered_and_the_rest_waits() -> None:
    packer = packer_of("static:3")
    first, rest = records(0, 2), records(2, 2)
    packer.add(first, 10)
    assert packer.packs(10) == []
    packer.add(rest, 20)
    assert packer.packs(20) == [first + rest[:1]]
    assert (packer.waiting, packer.under_way, packer.waiting_bytes, packer.under_way_bytes) == (1, 1, 8, 24)


def test_what_has_waited_for_the_packing_interval_leaves_with_all_that_waits() -> None:
    packer = packer_of("static:10")
    packer.add(records(0, 1), 100)
    packer.add(records(1, 1), 900_000)
    assert packer.wake_ns() == 100 + INTERVAL_NS
    assert packer.packs(99 + INTERVAL_NS) == []
    assert packer.packs(100 + INTERVAL_NS) == [records(0, 2)]
    assert packer.wake_ns() is None


def test_without_room_nothing_is_due_and_nothing_leaves() -> None:
    packer = packer_of("static:1")
    packer.add(records(0, 3), 0)
    assert packer.packs(0) == [records(0, 1)], "one pack at a time until the round trip is known"
    assert packer.packs(10 * INTERVAL_NS) == []
    assert packer.wake_ns() is None, "a time in the past would make the loop spin"
    packer.delivered(11 * INTERVAL_NS)
    assert packer.packs(11 * INTERVAL_NS) == [records(1, 1), records(2, 1)]


def test_an_idle_group_sends_at_once_and_a_busy_one_collects() -> None:
    packer = packer_of("nagle:1000")
    packer.add(records(0, 1), 0)
    assert packer.packs(0) == [records(0, 1)]
    for number in range(1, 6):
        packer.add(records(number, 1), number)
        assert packer.packs(number) == []
    packer.delivered(10)
    assert packer.packs(10) == [records(1, 5)]


def test_a_pack_is_never_larger_than_the_engine_takes_but_has_one_message_at_least() -> None:
    packer = packer_of("static:100", pack_bytes_max=100)
    packer.add([*records(0, 3, 40), bytes(100), bytes(100)], 0)
    left = packer.packs(0)
    for turn in range(1, 10):
        packer.delivered(turn)
        left += packer.packs(turn * INTERVAL_NS)
    assert [len(pack) for pack in left] == [2, 1, 1, 1]


def test_a_source_is_suspended_while_too_much_is_under_way_and_goes_on_when_a_quarter_is_free() -> None:
    packer = packer_of("nagle:100", window=1000)
    packer.add(records(0, 1), 0)
    packer.packs(0)
    packer.delivered(1000)
    before = packer.statistics()
    assert not before.full
    assert packer.room == before.window_bytes
    packer.add(records(1, before.window_bytes // 8 + 1), 2000)
    assert packer.full
    assert packer.room == 0
    under_way = len(packer.packs(2000))
    outstanding = []
    while packer.full:
        packer.delivered(3000)
        under_way -= 1
        outstanding.append(packer.under_way_bytes + packer.waiting_bytes)
        assert under_way >= 0
    assert outstanding[-1] <= 0.75 * packer.statistics().window_bytes
    assert packer.statistics().suspensions == 1


def test_a_pack_that_nobody_can_fill_leaves_though_the_interval_has_not_passed() -> None:
    packer = packer_of("static:1000", window=400)
    packer.add(records(0, 50), 0)
    assert packer.full
    assert packer.packs(0) == [records(0, 50)]


def test_latency_counts_the_time_in_the_buffer() -> None:
    packer = packer_of("static:2")
    packer.add(records(0, 1), 0)
    packer.add(records(1, 1), 600)
    packer.packs(700)
    packer.delivered(1000)
    told = packer.statistics()
    assert told.latency_ns == (1000 + 400) / 2
    assert (told.messages, told.packs, told.bytes, told.degree, told.policy) == (2, 1, 16, 2.0, "static:2")


def test_throughput_is_that_of_the_last_second_and_falls_to_nothing_when_nothing_comes() -> None:
    packer = packer_of("static:10")
    for turn in range(1, 30):
        packer.add(records(0, 10), turn * 100_000_000)
        packer.packs(turn * 100_000_000)
        packer.delivered(turn * 100_000_000 + 1)
    assert packer.statistics().throughput == pytest.approx(100, rel=0.02)
    packer.packs(5_000_000_000)
    packer.packs(7_000_000_000)
    assert packer.statistics().throughput == 0
    assert packer.statistics().degree == 10


def test_what_is_under_way_can_be_forgotten_and_may_come_back_all_the_same() -> None:
    packer = packer_of("static:1")
    packer.add(records(0, 2), 0)
    packer.packs(0)
    assert packer.forget(5) == 1
    assert (packer.under_way, packer.under_way_bytes, packer.waiting) == (0, 0, 1)
    packer.delivered(6)
    assert packer.packs(7) == [records(1, 1)]
    packer.delivered(8)
    packer.delivered(9)
    assert packer.under_way == 0


def test_changes_are_told_once_with_what_was_and_why() -> None:
    packer = packer_of("paper:ta=1")
    packer.add(records(0, 5), 0)
    for _ in range(5):
        packer.packs(10)
        packer.delivered(20)
    assert packer.wake_ns() == 2_000_000_000
    packer.packs(2_000_000_000)
    (change,) = packer.changes()
    assert (change.degree_before, change.degree, change.at_ns) == (1, 2, 2_000_000_000)
    assert "throughput rose" in change.reason
    assert packer.changes() == []
    assert (packer.statistics().changes, packer.statistics().reason) == (1, change.reason)


@pytest.mark.parametrize("limits", [{"interval_ns": 0}, {"pack_bytes_max": 0}, {"window": -1}])
def test_limits_of_nothing_are_refused(limits: dict[str, int]) -> None:
    with pytest.raises(LocalError, match="must be at least 1"):
        packer_of("static:1", **limits)


steps = st.lists(
    st.one_of(
        st.lists(st.integers(4, PACK_BYTES_MAX), max_size=40),
        st.just("deliver"),
        st.just("deliver all"),
        st.just("forget"),
        st.integers(0, 3 * INTERVAL_NS),
    ),
    max_size=60,
)


class Watched:
    """A packer, with what a group may rely on checked at every step."""

    def __init__(self, packing: str) -> None:
        self.packer = packer_of(packing, pack_bytes_max=PACK_BYTES_MAX, window=WINDOW_BYTES_MAX)
        self.now_ns = 0
        self.count = 0
        self.waiting: deque[tuple[bytes, int]] = deque()
        self.under_way: deque[int] = deque()

    def step(self, step: object) -> None:
        if isinstance(step, list):
            added = [(self.count + place).to_bytes(4, "big") + bytes(size - 4) for place, size in enumerate(step)]
            self.count += len(added)
            self.packer.add(added, self.now_ns)
            self.waiting.extend((record, self.now_ns) for record in added)
        elif isinstance(step, int):
            self.now_ns += step
        elif step == "forget":
            assert self.packer.forget(self.now_ns) == len(self.under_way)
            self.under_way.clear()
        else:
            for _ in range(len(self.under_way) if step == "deliver all" else 1):
                self.packer.delivered(self.now_ns)
                if self.under_way:
                    self.under_way.popleft()
        self.look()

    def look(self) -> None:
        for pack in self.packer.packs(self.now_ns):
            size = sum(map(len, pack))
            assert pack
            assert size <= PACK_BYTES_MAX
            assert [self.waiting.popleft()[0] for _ in pack] == pack, "in order, and each once"
            self.under_way.append(size)
            assert sum(self.under_way) - size < WINDOW_BYTES_MAX, "there was room when it left"
        packer, told = self.packer, self.packer.statistics()
        assert (told.waiting, told.under_way) == (len(self.waiting), len(self.under_way))
        assert told.waiting_bytes == sum(len(record) for record, _ in self.waiting)
        assert told.under_way_bytes == sum(self.under_way)
        assert told.window_bytes <= WINDOW_BYTES_MAX
        if self.waiting and not self.under_way:
            assert self.now_ns - self.waiting[0][1] < INTERVAL_NS, "nothing is under way, so there is room"
            assert not packer.full, "a suspended source has something to wait for"
        wake_ns = packer.wake_ns()
        assert wake_ns is None or wake_ns > self.now_ns, "the loop does not spin"
        if self.waiting and not self.under_way:
            assert wake_ns is not None
            assert wake_ns <= self.waiting[0][1] + INTERVAL_NS


@settings(deadline=None)
@given(st.sampled_from(POLICIES), steps)
def test_every_message_leaves_once_in_order_in_time_and_within_the_limits(packing: str, wanted: list[object]) -> None:
    watched = Watched(packing)
    for step in wanted:
        watched.step(step)
    for _ in range(2 * watched.count + 2):
        watched.step(INTERVAL_NS)
        watched.step("deliver all")
    assert not watched.waiting
    assert not watched.under_way
    assert not watched.packer.full
