"""The counter service: three replicas that count the same, whatever is killed, and what they say to bad requests."""

import json
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from echoic import Hub
from echoic.errors import InsecureError, LocalError, UnreachableError
from echoic.replicas.counters import KEY_CHARACTERS_MAX, NAME_CHARACTERS_MAX, VALUE_MAX, Increment
from echoic.replicas.http_server import Request
from echoic.replicas.service import CounterService
from echoic.testing.bench.groups.counter_load import Load, LoadResult, run_load
from tests.replicas.counter_replica import Cluster, ask, cluster

pytestmark = pytest.mark.system

CLIENTS = 12


@pytest.fixture(scope="module")
def services() -> Iterator[list[CounterService]]:
    """Give three replicas in this process."""
    hubs = [Hub() for _ in range(3)]
    peers = {f"n{number}": hub.address for number, hub in enumerate(hubs, 1)}
    made = [CounterService(hub, me=name, peers=peers) for hub, name in zip(hubs, peers, strict=True)]
    try:
        for service in made:
            service.group.wait_for(lambda view: len(view.members) == 3)
        yield made
    finally:
        for service in made:
            service.close()
        for hub in hubs:
            hub.close()


def test_an_increment_is_answered_with_its_value_and_its_place(services: list[CounterService]) -> None:
    before = services[0].counters.applied()
    assert ask(services[0].address, "POST", "/counters/first") == (
        200,
        {"counter": "first", "value": 1, "sequence": before + 1, "replica": "n1"},
    )
    status, answer = ask(services[1].address, "POST", "/counters/first", '{"add": 41}')
    assert (status, answer["value"], answer["replica"]) == (200, 42, "n2")
    services[1].group.drain()
    assert ask(services[1].address, "GET", "/counters/first")[1]["value"] == 42


def test_concurrent_clients_of_all_replicas_lose_and_double_nothing(services: list[CounterService]) -> None:
    addresses = [service.address for service in services]
    result = run_load(Load(addresses=addresses, clients=CLIENTS, seconds=1.0, name="many"))
    assert (result.wrong, result.unresolved, result.retries) == ([], [], 0)
    assert result.requests == sum(result.counted.values()) > CLIENTS
    for service in services:
        wait_for(service, services[0])
        assert {name: service.counters.value(name)[0] for name in result.counted} == result.counted
    assert sum(map(len, result.instants_ns.values())) == result.requests


def test_clients_of_one_counter_get_each_value_once(services: list[CounterService]) -> None:
    values: list[int] = []

    def count(service: CounterService) -> None:
        values.extend([ask(service.address, "POST", "/counters/shared")[1]["value"] for _ in range(20)])

    threads = [threading.Thread(target=count, args=(service,)) for service in services * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(values) == list(range(1, 121))


def test_a_request_that_is_repeated_with_its_key_counts_once_at_whichever_replica(
    services: list[CounterService],
) -> None:
    first = ask(services[0].address, "POST", "/counters/once", '{"add": 3}', Idempotency_Key="a b-1")
    ask(services[1].address, "POST", "/counters/once")
    again = ask(services[2].address, "POST", "/counters/once", '{"add": 3}', Idempotency_Key="a b-1")
    assert (again[0], again[1]["value"], again[1]["sequence"]) == (200, 3, first[1]["sequence"])
    assert ask(services[2].address, "POST", "/counters/once", '{"add": 0}')[1]["value"] == 4
    other = ask(services[2].address, "POST", "/counters/once", '{"add": 4}', Idempotency_Key="a b-1")
    assert other == (422, {"error": "the Idempotency-Key was used for another request"})


def test_a_counter_of_any_name_is_found_by_it_and_nothing_else_is(services: list[CounterService]) -> None:
    address = services[0].address
    assert ask(address, "POST", "/counters/%C3%A4%20%2F%3F")[1]["counter"] == "ä /?"
    assert ask(address, "GET", "/counters/%C3%A4%20%2F%3F")[1]["value"] == 1
    assert ask(address, "GET", "/counters/unknown") == (404, {"error": "there is no counter unknown"})
    assert ask(address, "POST", "/counters/unknown", '{"add": 0}')[1]["value"] == 0
    assert ask(address, "GET", "/counters/unknown")[0] == 404


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status", "told"),
    [
        ("POST", "/counters/", "", {}, 400, "expected a name of 1 to 128 printable characters, got 0"),
        ("POST", f"/counters/{'x' * (NAME_CHARACTERS_MAX + 1)}", "", {}, 400, "got 129"),
        ("POST", "/counters/%FF", "", {}, 400, "expected a name"),
        ("POST", "/counters/a%0Ab", "", {}, 400, "printable"),
        ("POST", "/counters/a/b", "", {}, 404, "expected / or /counters/NAME"),
        ("GET", "/nothing", "", {}, 404, "expected / or /counters/NAME"),
        ("POST", "/", "", {}, 405, "expected GET"),
        ("DELETE", "/counters/a", "", {}, 405, "expected GET or POST"),
        ("POST", "/counters/a", "nonsense", {}, 400, 'expected {"add": 1}'),
        ("POST", "/counters/a", '{"add": 1.5}', {}, 400, "Expected `int`, got `float`"),
        ("POST", "/counters/a", '{"plus": 1}', {}, 400, "unknown field `plus`"),
        ("POST", "/counters/a", f'{{"add": {VALUE_MAX + 1}}}', {}, 400, "<= 9223372036854775807"),
        ("POST", "/counters/a", "[1]", {}, 400, "Expected `object`"),
        ("POST", "/counters/a", "", {"Idempotency_Key": "k" * (KEY_CHARACTERS_MAX + 1)}, 400, "got 256"),
        ("GET", "/multicasts?after=-1", "", {}, 400, "expected nanoseconds"),
    ],
)
def test_a_bad_request_is_told_what_is_wrong_with_it(
    services: list[CounterService], method: str, path: str, body: str, headers: dict[str, str], status: int, told: str
) -> None:
    found, answer = ask(services[0].address, method, path, body, **headers)
    assert found == status
    assert told in answer["error"]


def test_a_value_that_does_not_fit_is_refused_by_all_and_changes_nothing(services: list[CounterService]) -> None:
    address = services[0].address
    assert ask(address, "POST", "/counters/large", json.dumps({"add": VALUE_MAX}))[0] == 200
    assert ask(address, "POST", "/counters/large") == (409, {"error": f"the value would be beyond {VALUE_MAX}"})
    assert ask(address, "POST", "/counters/large", '{"add": -1}')[1]["value"] == VALUE_MAX - 1


def test_a_replica_tells_how_it_stands(services: list[CounterService]) -> None:
    ask(services[1].address, "POST", "/counters/standing")
    status, told = ask(services[1].address, "GET", "/")
    assert status == 200
    assert (told["replica"], told["members"], told["primary"]) == ("n2", ["n1", "n2", "n3"], True)
    assert told["leader"] in told["members"]
    assert (told["packing"], told["engine"]) == ("probe", "embedded")
    assert told["service"]["multicasts"] > 0
    assert told["service"]["counters"]["counters"] > 0


def test_a_service_that_cannot_be_is_refused() -> None:
    with Hub() as hub:
        peers = {"n1": hub.address}
        with pytest.raises(InsecureError, match="can be reached from other machines"):
            CounterService(hub, me="n1", peers=peers, listen="0.0.0.0:0")
        with pytest.raises(LocalError, match="expected a time above 0"):
            CounterService(hub, me="n1", peers=peers, timeout=0)
        with CounterService(hub, me="n1", peers=peers) as service:
            with pytest.raises(LocalError, match="member of group `counters` already"):
                CounterService(hub, me="n1", peers=peers)
            with pytest.raises(UnreachableError, match="cannot listen at"):
                CounterService(hub, me="n1", peers=peers, name="others", listen=service.address)
        with CounterService(hub, me="n1", peers=peers) as service:  # what was refused has left nothing behind
            service.group.wait_for(lambda view: view.primary)
            assert service.respond(Request("POST", "/counters/a", {}, {}, b"")).status == 200


@pytest.fixture(scope="module")
def system() -> Iterator[Cluster]:
    """Give three replicas in processes of their own."""
    with cluster(timeout=2.0) as made:
        yield made


def test_nothing_is_lost_or_doubled_while_followers_and_leaders_are_killed(system: Cluster) -> None:
    result = load_while(system, kill_some)
    print(result.requests, "requests,", result.retries, "retries")
    assert (result.wrong, result.unresolved) == ([], [])
    assert result.retries > 0
    system.await_members("n1", "n2", "n3")
    system.await_sequence("n1", "n2", "n3")
    for name in system.hubs:
        assert system.values(name, list(result.counted)) == result.counted, (name, system.standing(name))


def kill_some(system: Cluster) -> None:
    """Kill a follower, let it come back, and do the same with the leader."""
    leader = system.leader()
    follower = next(name for name in system.hubs if name != leader)
    time.sleep(0.5)
    system.kill(follower)
    time.sleep(0.3)
    system.start(follower)
    system.await_members(*system.hubs)
    leader = system.leader()
    system.kill(leader)
    time.sleep(1.0)
    system.start(leader)


def test_a_minority_answers_503_and_goes_on_when_it_is_one_no_more(system: Cluster) -> None:
    address = system.services["n1"]
    assert ask(address, "POST", "/counters/a")[0] == 200
    with system.stopped("n2", "n3"):
        until_unavailable(address)
        status, answer = ask(address, "GET", "/counters/a")
        assert status == 503
        assert answer["error"].startswith("replica n1 is not in the primary view")
        assert ask(address, "POST", "/counters/b") == (503, {"error": answer["error"], "counted": False})
    system.await_members(*system.hubs)
    assert ask(address, "POST", "/counters/a")[1]["value"] == 2
    assert ask(address, "POST", "/counters/b")[1]["value"] == 1


def test_a_replica_that_was_away_for_long_is_given_the_state() -> None:
    hubs = [Hub() for _ in range(3)]
    peers = {f"n{number}": hub.address for number, hub in enumerate(hubs, 1)}
    kept = 100_000
    services = [
        CounterService(hub, me=name, peers=peers, kept_bytes=kept) for hub, name in zip(hubs, peers, strict=True)
    ]
    services[0].group.wait_for(lambda view: len(view.members) == 3)
    services.pop().close()
    increments = [Increment(f"{number % 100}-{'x' * 100}", 1, f"key-{number}", 0) for number in range(30_000)]
    services[0].group.submit_batch(increments)
    services[0].group.drain(30)
    services.append(CounterService(hubs[2], me="n3", peers=peers, kept_bytes=kept))
    try:
        wait_for(services[2], services[0])
        assert services[2].counters.save(0) == services[0].counters.save(0)
        assert services[2].counters.statistics().counted < 30_000  # the others were not delivered one by one
        services[2].group.wait_for(lambda view: view.primary)
        answer = ask(services[2].address, "POST", f"/counters/7-{'x' * 100}", Idempotency_Key="key-29907")
        assert (answer[1]["value"], answer[1]["sequence"]) == (300, 29_908)
    finally:
        for service in services:
            service.close()
        for hub in hubs:
            hub.close()


def test_a_whole_service_that_is_killed_comes_back_from_its_disks(tmp_path_factory: pytest.TempPathFactory) -> None:
    hubs = [Hub() for _ in range(3)]
    folders = [tmp_path_factory.mktemp(f"n{number}") for number in (1, 2, 3)]
    addresses = [hub.address for hub in hubs]
    peers = {f"n{number}": address for number, address in enumerate(addresses, 1)}
    for turn in (1, 2, 3):
        services = [
            CounterService(hub, me=f"n{number}", peers=peers, path=folder)
            for number, (hub, folder) in enumerate(zip(hubs, folders, strict=True), 1)
        ]
        services[0].group.wait_for(lambda view: view.primary)
        answer = ask(services[0].address, "POST", "/counters/kept", Idempotency_Key=f"turn-{turn}")
        assert answer[1]["value"] == turn, answer
        repeated = ask(services[0].address, "POST", "/counters/kept", Idempotency_Key="turn-1")
        assert repeated[1]["value"] == 1
        for service in services:
            service.close()
        for hub in hubs:
            hub.close()
        hubs = [Hub(address) for address in addresses] if turn < 3 else []


def load_while(system: Cluster, act: Callable[[Cluster], None]) -> LoadResult:
    """Let clients count while something is done."""
    results: list[LoadResult] = []
    load = Load(addresses=list(system.services.values()), clients=CLIENTS, seconds=4.0, grace=30.0, name="kill")
    thread = threading.Thread(target=lambda: results.append(run_load(load)))
    thread.start()
    try:
        act(system)
    finally:
        thread.join()
    return results[0]


def until_unavailable(address: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        status, answer = ask(address, "POST", "/counters/late", Idempotency_Key=f"{time.monotonic_ns()}")
        if status == 503 and answer["counted"] is False:
            return
        assert time.monotonic() < deadline, (status, answer)
        assert answer.get("counted", True) in (None, True)


def wait_for(service: CounterService, other: CounterService) -> None:
    deadline = time.monotonic() + 60
    while service.counters.applied() < other.counters.applied():
        assert time.monotonic() < deadline
        time.sleep(0.01)
