"""The load of the counter service, and what its multicasts say about packing: figures 5 and 6."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic import Hub
from echoic.errors import AddressError, LocalError, UnreachableError
from echoic.replicas.http_server import Answer, HttpServer, Request
from echoic.replicas.service import CounterService
from echoic.testing.bench.groups.counter_load import Load, run_load
from echoic.testing.bench.groups.packing_curves import fill_seconds, interval_point, packing_curves

MILLISECOND = 1_000_000

gaps = st.lists(st.lists(st.integers(0, 20 * MILLISECOND), max_size=50), max_size=3)


def instants_of(gaps: list[int]) -> list[int]:
    return [sum(gaps[:place]) + 10**15 for place in range(1, len(gaps) + 1)]


@given(gaps, st.integers(1, 12))
def test_filling_a_pack_takes_from_its_first_message_to_its_last(gaps: list[list[int]], degree: int) -> None:
    taken = [
        each[place + degree - 1] - each[place]
        for each in map(instants_of, gaps)
        for place in range(0, len(each) - degree + 1, degree)
    ]
    found = fill_seconds([instants_of(each) for each in gaps], degree)
    assert found == (pytest.approx(sum(taken) / len(taken) / 1e9) if taken else None)


@given(gaps, st.integers(1, 40))
def test_intervals_follow_one_another_from_the_first_multicast_to_the_last(
    gaps: list[list[int]], milliseconds: int
) -> None:
    counts: list[int] = []
    for each in map(instants_of, gaps):
        met = Counter((at - each[0]) // (milliseconds * MILLISECOND) for at in each)
        counts += [met[place] for place in range(max(met) + 1)] if met else []
    point = interval_point([instants_of(each) for each in gaps], milliseconds / 1000)
    some = [count for count in counts if count]
    assert point.most == max(some, default=0)
    assert point.mean == pytest.approx(sum(some) / len(some) if some else 0)
    assert point.share == pytest.approx(len(some) / len(counts) if counts else 0)


def test_the_curves_of_a_regular_source_are_known() -> None:
    every_ten = [[place * 10 * MILLISECOND for place in range(100)]] * 3
    curves = packing_curves(every_ten, degrees=[1, 8, 101], intervals=[0.005, 0.07])
    assert [point.seconds for point in curves.fill] == [0.0, pytest.approx(0.07), None]
    five, seventy = curves.intervals
    assert (five.mean, five.most, five.share) == (1.0, 1, pytest.approx(100 / 199))
    assert (seventy.most, seventy.share) == (7, 1.0)
    assert seventy.mean == pytest.approx(100 / 15)


@pytest.mark.parametrize("degree", [0, -1])
def test_a_pack_without_messages_is_none(degree: int) -> None:
    with pytest.raises(LocalError, match="at least 1 message"):
        fill_seconds([[1, 2]], degree)


@pytest.mark.parametrize("interval", [0.0, -1.0, float("inf"), float("nan")])
def test_an_interval_is_a_time(interval: float) -> None:
    with pytest.raises(LocalError, match="a time above 0"):
        interval_point([[1, 2]], interval)


@contextmanager
def trio() -> Iterator[list[CounterService]]:
    hubs = [Hub() for _ in range(3)]
    peers = {f"n{number}": hub.address for number, hub in enumerate(hubs, 1)}
    services = [CounterService(hub, me=name, peers=peers) for hub, name in zip(hubs, peers, strict=True)]
    try:
        for service in services:
            service.group.wait_for(lambda view: len(view.members) == 3)
        yield services
    finally:
        for service in services:
            service.close()
        for hub in hubs:
            hub.close()


@pytest.mark.system
def test_clients_count_and_the_instants_of_all_multicasts_come_back() -> None:
    with trio() as services:
        load = Load(addresses=[service.address for service in services], clients=9, seconds=0.7, name="load")
        result = run_load(load)
    assert (result.wrong, result.unresolved, result.broken) == ([], [], 0)
    assert result.requests == sum(result.counted.values())
    assert sorted(result.counted) == [f"load-{number}" for number in range(9)]
    assert set(result.instants_ns) == {"n1", "n2", "n3"}
    assert sum(map(len, result.instants_ns.values())) == result.requests
    assert all(before <= after for each in result.instants_ns.values() for before, after in pairwise(each))
    assert 0 < result.latency_p50 <= result.latency_p90 <= result.latency_p99 <= result.latency_max
    assert result.throughput == pytest.approx(result.requests / result.seconds)
    curves = packing_curves(list(result.instants_ns.values()), [1, 2, 4], [0.01])
    assert curves.fill[1].seconds < curves.fill[2].seconds


@pytest.mark.system
def test_a_client_that_thinks_longer_than_the_load_lasts_asks_once_and_holds_up_nobody() -> None:
    with trio() as services:
        load = Load(addresses=[service.address for service in services], clients=9, seconds=0.7, pause=1e6)
        result = run_load(load)
    assert (result.wrong, result.unresolved, result.broken) == ([], [], 0)
    assert list(result.counted.values()) == [1] * 9


@pytest.mark.system
def test_a_service_that_counts_wrongly_is_found_out() -> None:
    def respond(request: Request) -> Answer:
        if request.method == "GET":
            return Answer(200, {"replica": "liar", "now_ns": 0, "instants_ns": []})
        return Answer(200, {"value": 7})

    server = HttpServer("127.0.0.1:0", respond)
    try:
        result = run_load(Load(addresses=[server.address], clients=1, seconds=0.1, name="x"))
    finally:
        server.close()
    assert result.wrong[0] == "x-0 is 7 after 1 increments"


@pytest.mark.system
def test_what_is_not_answered_is_told_as_unresolved() -> None:
    def respond(request: Request) -> Answer:
        if request.method == "GET":
            return Answer(200, {"replica": "busy", "now_ns": 0, "instants_ns": []})
        return Answer(503, {"error": "busy"})

    server = HttpServer("127.0.0.1:0", respond)
    try:
        result = run_load(Load(addresses=[server.address], clients=2, seconds=0.1, grace=0.3, name="x"))
    finally:
        server.close()
    assert (sorted(result.unresolved), result.requests, result.wrong) == (["x-0", "x-1"], 0, [])
    assert result.unavailable > 2


@pytest.mark.parametrize(
    ("load", "error"),
    [
        (Load(addresses=[]), LocalError),
        (Load(addresses=["nowhere"]), AddressError),
        (Load(addresses=["127.0.0.1:1"], clients=0), LocalError),
        (Load(addresses=["127.0.0.1:1"], seconds=0), LocalError),
        (Load(addresses=["127.0.0.1:1"]), UnreachableError),
    ],
)
def test_a_load_that_cannot_be_is_refused(load: Load, error: type[Exception]) -> None:
    with pytest.raises(error):
        run_load(load)
