"""Derived channels between processes: the code arrives, filters and is forgotten, whatever becomes of who sent it."""

from collections.abc import Iterator

import pytest

from tests.system.processes import Process, Start, processes, wait_until

pytestmark = pytest.mark.system

LINKS = [{}, {"listen": "127.0.0.2:0"}]  # Unix sockets; TCP, since only 127.0.0.1 has a Unix socket
LINK_NAMES = ["unix", "tcp"]
EVERY_HUNDREDTH = "input.number % 100 == 0"
HOSTILE = [
    "{ while (1) { } return 1; }",
    "{ long i; for (i = 0; i >= 0; i++) { } return 1; }",
    "{ int zero = 0; return 1 / zero; }",
    "{ int a[10]; return a[input.number]; }",
    "{ static long n; n++; while (n > 0) { n++; } return 1; }",
    "{ return strlen(input.payload) + input.payload[1000000 * (input.number + 1)]; }",
    "{ int i; int j; int s = 0; for (i = 0; i < 300; i++) for (j = 0; j < 300; j++) s += i * j; return s == 1; }",
    "{ static double block[1000]; block[input.number % 2000] = 1.0; return 1; }",
    "{ do { } while (input.producer != -1); return 1; }",
    "{ return 0 - 9223372036854775807 - 2 < 0 && 1 / (input.number - input.number); }",
]


@pytest.fixture
def start() -> Iterator[Start]:
    with processes() as start:
        yield start


def told_numbers(sink: Process, producer: int = 1) -> int:
    return sink.ask()["counted"].get(str(producer), 0)


def flows(sink: Process, more: int) -> None:
    goal = told_numbers(sink) + more
    wait_until(lambda: told_numbers(sink) >= goal, "events flow")


def derivation(source: Process) -> dict[str, object]:
    [found] = source.ask()["derivations"].values()
    return found


@pytest.mark.parametrize("options", LINKS, ids=LINK_NAMES)
def test_only_what_passes_reaches_the_other_process(start: Start, options: dict[str, str]) -> None:
    source = start("publish", channel="ticks", create=True, producer=1, **options)
    sinks = [
        start("watch", channel=source.started["id"], code=EVERY_HUNDREDTH, placement=placement, **options)
        for placement in ("source", "sink")
    ]
    for sink in sinks:
        flows(sink, 20)
    submitted = source.ask("halt")["submitted"]
    last = (submitted - 1) // 100 * 100
    for sink in sinks:
        wait_until(lambda sink=sink: sink.ask()["next"]["1"] == last + 1, f"event {last}")
        told = sink.ask()
        assert told["first"]["1"] % 100 == 0
        assert told["counted"]["1"] == (last - told["first"]["1"]) // 100 + 1
        assert (told["problems"], told["gaps"]) == ([], [])


@pytest.mark.parametrize("options", LINKS, ids=LINK_NAMES)
def test_a_sink_that_derives_is_killed(start: Start, options: dict[str, str]) -> None:
    source = start("publish", channel="ticks", create=True, producer=1, **options)
    id = source.started["id"]
    plain = start("watch", channel=id, **options)
    victim = start("watch", channel=id, code=EVERY_HUNDREDTH, **options)
    flows(plain, 1000)
    flows(victim, 10)
    assert derivation(source)["events"] > 0
    victim.kill()
    wait_until(lambda: stands_still(source, plain), "the derivation is idle")
    successor = start("watch", channel=id, code=EVERY_HUNDREDTH, **options)
    flows(successor, 10)
    told = successor.ask()
    assert told["problems"] == []
    submitted = source.ask("halt")["submitted"]
    wait_until(lambda: plain.ask()["next"]["1"] == submitted, "all events")
    told = plain.ask()
    assert (told["problems"], told["gaps"], len(told["spans"]["1"])) == ([], [], 1)


def stands_still(source: Process, plain: Process) -> bool:
    """Whether the derivation runs no more while events flow."""
    before = derivation(source)["events"]
    flows(plain, 1000)
    return derivation(source)["events"] == before


def test_a_source_with_ten_hostile_derivations_delivers_everything_to_its_other_sinks(start: Start) -> None:
    source = start("publish", channel="ticks", create=True, producer=1, pause=0.005)
    id = source.started["id"]
    plain, filtered = start("watch", channel=id), start("watch", channel=id, code=EVERY_HUNDREDTH)
    flows(plain, 100)
    nuisance = start("assail", channel=id, codes=HOSTILE)
    assert nuisance.started["refused"] <= 2, "most of them have to be endured"
    wait_until(lambda: endured(source) >= 5, "they are suspended")
    flows(plain, 2000)
    flows(filtered, 10)
    submitted = source.ask("halt")["submitted"]
    wait_until(lambda: plain.ask()["next"]["1"] == submitted, "all events")
    for sink in (plain, filtered):
        told = sink.ask()
        assert (told["problems"], told["gaps"]) == ([], [])
    told = plain.ask()
    assert told["first"]["1"] + told["counted"]["1"] == submitted


def endured(source: Process) -> int:
    return sum(bool(found["suspended"]) for found in source.ask()["derivations"].values())
