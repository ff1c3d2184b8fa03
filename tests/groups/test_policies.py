"""Packing policies: their texts, and each rule by itself."""

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import LocalError
from echoic.groups.policies import Nagle, Pack, Paper, Policy, Probe, Static, policy_of
from echoic.groups.policies.blocks import Block, Blocks
from echoic.groups.policies.search import Search
from echoic.groups.policies.window import PACKS_MIN, Window

MS = 1_000_000


def pack_of(size: int, left_ns: int, *, alone: bool = False, saturated: bool = True, messages: int = 1) -> Pack:
    return Pack(messages, size, left_ns, messages * left_ns, alone, saturated)


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("auto", Probe, "probe"),
        ("probe", Probe, "probe"),
        ("static:11", Static, "static:11"),
        ("nagle", Nagle, "nagle:65536"),
        ("nagle:1000", Nagle, "nagle:1000"),
        ("paper", Paper, "paper:ta=5,pack_max=128"),
        ("paper:ta=0.5,pack_max=64", Paper, "paper:ta=0.5,pack_max=64"),
        ("paper-simple:pack_max=7", Paper, "paper-simple:ta=5,pack_max=7"),
    ],
)
def test_a_text_names_a_policy_and_its_name_is_a_text_again(text: str, kind: type[Policy], name: str) -> None:
    policy = policy_of(text)
    assert type(policy) is kind
    assert policy.name == name
    assert policy_of(policy.name).name == name


def test_a_policy_stands_for_itself_and_the_hint_for_what_is_not_said() -> None:
    policy = Static(4)
    assert policy_of(policy) is policy
    assert policy_of("nagle", pack_bytes_hint=1234).name == "nagle:1234"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected auto, probe"),
        ("statik:3", "expected auto, probe"),
        ("static:", "expected auto, probe"),
        ("static", "expected how many messages make a pack"),
        ("static:0", "at least 1 message, got 0"),
        ("static:-3", "expected a whole number, got `-3`"),
        ("static:1.5", "expected a whole number"),
        ("static:" + "9" * 30, "expected a whole number"),
        ("nagle:0", "at least 1 byte"),
        ("auto:3", "takes no options, got `3`"),
        ("paper:ta=x", "expected seconds, got `x`"),
        ("paper:ta=nan", "0.001 to 3600 seconds, got nan"),
        ("paper:ta=0", "0.001 to 3600 seconds, got 0"),
        ("paper:pack_max=0", "got pack_max=0"),
        ("paper:speed=3", "expected ta=SECONDS and pack_max=N, got `speed=3`"),
    ],
)
def test_a_text_that_names_no_policy_is_refused_with_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(LocalError, match=message):
        policy_of(text)


@given(st.text(max_size=30))
def test_any_text_is_a_policy_or_a_local_error(text: str) -> None:
    try:
        name = policy_of(text).name
    except LocalError:
        return
    assert policy_of(name).name == name


def test_a_pack_is_no_larger_than_the_engine_takes_whatever_was_asked_for() -> None:
    policy = Nagle(1_000_000)
    policy.start(500, 0)
    assert (policy.bytes_max, policy.bytes_aim) == (500, 500)


def test_the_window_opens_with_the_first_round_trip_and_follows_the_goodput() -> None:
    window = Window(1 << 30)
    assert window.bytes_max == 0
    window.leave(pack_of(1000, 0, alone=True))
    window.come_back(pack_of(1000, 0, alone=True), 1000, MS)
    assert window.round_trip_ns == MS
    assert window.bytes_max == PACKS_MIN * 1000
    for turn in range(2, 200):
        window.come_back(pack_of(100_000, 0), 1000, turn * MS)
    assert window.bytes_max == pytest.approx(25 * 100_000, rel=0.05), "25 ms of 100 MB/s"


def test_the_window_does_not_grow_by_what_it_has_made_wait_itself() -> None:
    window = Window(1 << 30)
    window.come_back(pack_of(1000, 0, alone=True), 1000, MS)
    for turn in range(2, 20_000):
        window.come_back(pack_of(1000, (turn - 100) * MS), 1000, turn * MS)
    assert window.bytes_max <= 26 * 1000


def test_the_round_trip_is_measured_again_when_the_window_is_bound_by_packs_for_long() -> None:
    window = Window(1 << 30)
    window.come_back(pack_of(1000, 0, alone=True), 1000, MS)
    second = 1000 * MS
    for turn in range(1, 30):
        window.come_back(pack_of(1000, 0), 1000, turn * second)
        assert window.bytes_max > 0
    window.come_back(pack_of(1000, 0), 1000, 31 * second)
    assert window.bytes_max == 0, "lets what is under way come back"
    window.come_back(pack_of(1000, 32 * second, alone=True), 1000, 33 * second)
    assert window.bytes_max > 0


def blocks_of(times: list[int], packs_each: int, size: int = 1000) -> list[Block]:
    """Return what is measured if packs leave every millisecond and come back at some times."""
    blocks, found, waiting = Blocks(0), [], []
    for number, at_ns in enumerate(times):
        pack = pack_of(size, number * MS, alone=number == 0)
        blocks.leave(pack, packs_each, 0)
        waiting.append((pack, at_ns))
    for pack, at_ns in waiting:
        found += blocks.come_back(pack, at_ns)
    return found


def test_a_block_is_measured_from_where_the_one_before_it_ended() -> None:
    found = blocks_of([(number + 1) * MS for number in range(40)], 10)
    assert [block.number for block in found] == [1, 2]
    assert [block.goodput for block in found] == pytest.approx([1000 / MS] * 2)


def test_what_a_token_brings_at_one_instant_has_come_evenly() -> None:
    # Seven packs come with every round of 7 ms, and blocks end somewhere in between.
    found = blocks_of([(number // 7 + 1) * 7 * MS for number in range(140)], 20)
    assert len(found) >= 3
    assert [block.goodput for block in found] == pytest.approx([1000 / MS] * len(found), rel=0.01)


def test_a_block_that_does_not_follow_another_one_is_not_measured() -> None:
    blocks, found = Blocks(0), []
    for number in range(60):
        if number % 10 == 9:
            blocks.skip()
        pack = pack_of(1000, number * MS, alone=number == 0)
        blocks.leave(pack, 8, 0)
        found += blocks.come_back(pack, number * MS + 1000)
    assert found == []


def climb(search: Search, goodput: object, noise: float = 0.0, rounds: int = 400, seed: int = 1) -> list[str]:
    """Let a search compare what it wants until it is settled."""
    random, told = Random(seed), []
    for turn in range(rounds):
        less, more = (goodput(cap) for cap in search.pair)  # type: ignore[operator]
        seen = [each * math.exp(random.gauss(0, noise)) for each in (less, more, more, less)]
        reason = search.compare(seen, turn * 300 * MS)
        if reason:
            told.append(reason)
        if search.settled:
            return told
    raise AssertionError(f"not settled after {rounds} rounds: {told}")


@given(st.floats(500, 500_000), st.floats(500, 500_000), st.floats(0, 2))
def test_a_search_ends_near_the_best_wherever_it_begins(best: float, begin: float, flat: float) -> None:
    """The cost of a byte is a/n + b + d n: b is what packing cannot change."""

    def goodput(cap: float) -> float:
        return 1 / (best / cap + flat + cap / best)

    search = Search(begin, 1 << 20)
    climb(search, goodput)
    assert goodput(search.aim) >= 0.96 * goodput(best)


@pytest.mark.parametrize("best", [1, 2, 3, 4])
@pytest.mark.parametrize("begin", [1, 2, 3, 4, 8, 30])
def test_with_few_messages_in_a_pack_the_search_ends_at_the_best_number(best: int, begin: int) -> None:
    size = 10_000

    def goodput(cap: float) -> float:
        count = max(1, cap // size)
        return 1 / (best / count + count / best)

    search = Search(begin * size, 1 << 20)
    search.size = size
    search.begin(begin * size)
    climb(search, goodput)
    assert search.aim // size == best


@pytest.mark.parametrize("seed", range(5))
def test_a_search_is_not_misled_by_noise(seed: int) -> None:
    search = Search(2000, 1 << 20)

    def goodput(cap: float) -> float:
        return 1 / (20_000 / cap + 0.5 + cap / 20_000)

    told = climb(search, goodput, 0.05, seed=seed)
    assert goodput(search.aim) >= 0.95 * goodput(20_000), f"seed {seed}: {told}"


def test_without_a_difference_a_search_stays_and_says_so() -> None:
    search = Search(20_000, 1 << 20)
    assert climb(search, lambda cap: 1.0) == ["no difference"]
    assert search.aim == 20_000


def test_at_low_load_the_probing_policy_tries_nothing() -> None:
    policy = Probe()
    policy.start(1 << 20, 0)
    aim = policy.bytes_max
    for turn in range(1000):
        pack = pack_of(1000, turn * MS, alone=True, saturated=False)
        assert policy.leave(pack) == ""
        assert policy.come_back(pack, turn * MS + 1000) == ""
        assert policy.bytes_max == aim


def test_the_probing_policy_never_wants_more_than_the_engine_takes() -> None:
    policy = Probe()
    policy.start(1000, 0)
    for turn in range(3000):
        assert policy.bytes_max <= 1000
        pack = pack_of(policy.bytes_max, turn * MS, alone=turn == 0)
        policy.leave(pack)
        policy.come_back(pack, turn * MS + MS // 2)
