"""Peers that mean harm, between real hubs: the source submits, its other sinks hear everything, nothing grows."""

import gc
import logging
import threading
import time

import numpy
import pytest

from echoic import Array, Policy, event, int64
from echoic.channels import ChannelId, Recipe, SinkHub, Step, Workshop
from echoic.channels.messages import Attach, Trouble
from echoic.errors import MalformedBatchError
from echoic.formats import Format
from echoic.hub.derived import _decoded
from echoic.hub.endpoints import TROUBLES_MAX
from tests.hub.parties import Collector, StartHub, Tick, eventually

BATCH = 2000


@event
class Torrent:
    """What a tick may become."""

    n: int64
    values: Array[int64, "n"]


AMPLIFIED = "{ output.n = 20000; output.values[19999] = input.number; return 1; }"


def ticks(count: int) -> "numpy.ndarray[tuple[int], numpy.dtype[numpy.void]]":
    made = numpy.zeros(count, Format.of(Tick).dtype)
    made["number"] = range(count)
    return made


@pytest.mark.parametrize("where", ["beside", "elsewhere"])
def test_code_that_makes_gigabytes_of_a_batch_is_suspended_and_the_source_goes_on(
    start_hub: StartHub, where: str
) -> None:
    here = start_hub(policy=Policy(load_max=60.0))  # on a busy machine it is not time that stops it
    created = here.create("ticks", Tick)
    source, good = created.source(), Collector()
    start_hub().open(created.id, Tick).subscribe(good)
    hostile = (here if where == "beside" else start_hub()).open(created.id, Tick)
    derived = hostile.derive(AMPLIFIED, output=Torrent, capacities={"values": 20_000})
    derived.subscribe(lambda _: None)
    for _ in range(3):
        source.submit_batch(ticks(BATCH))
    good.has(3 * BATCH)
    assert good.numbers == [*range(BATCH)] * 3
    [counts] = derived.derivation.counts().values()
    assert "becomes more than" in counts.suspended
    assert counts.bytes_out < 80_000_000


def workshops() -> int:
    """How many there are in this process, of other tests too; what nobody holds any more is collected before."""
    gc.collect()
    return sum(isinstance(one, Workshop) for one in gc.get_objects())


def test_however_many_ways_a_peer_derives_one_thread_compiles(start_hub: StartHub) -> None:
    before = workshops()
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    created.source()
    there.open(created.id, Tick)
    board = there._switchboard  # noqa: SLF001 - what no honest program sends
    answered, compiling = [], 0
    for number in range(200):
        statements = "".join(f"x = x * {number} + input.number; " for _ in range(100))
        recipe = Recipe("ticks", f"{{ long x = 1; {statements}return x; }}")
        step = Step("d", "d", recipe, input=Format.of(Tick).descriptor)
        attach = Attach(str(ChannelId(here.address, "d")), SinkHub(there.address, hub=board.core.id), (step,))
        board.do(lambda core, attach=attach: core.ask(here.address, attach, answered.append))
    while len(answered) < 200:
        compiling = max(compiling, sum(thread.name == "echoic-compile" for thread in threading.enumerate()))
        time.sleep(0.001)
    assert compiling <= 1
    eventually(lambda: all(thread.name != "echoic-compile" for thread in threading.enumerate()))
    assert workshops() - before < 10, "what was replaced is gone"


def test_a_peer_that_complains_without_end_fills_neither_log_nor_memory(
    start_hub: StartHub, caplog: pytest.LogCaptureFixture
) -> None:
    here, there = start_hub(), start_hub()
    derived = here.create("ticks", Tick).derive("1")
    heard: list[Trouble] = []
    derived.endpoints.listeners = (heard.append,)
    derived.subscribe(lambda _: None)
    there.open(derived.id)
    board, answered = there._switchboard, []  # noqa: SLF001 - what no honest program sends
    trouble = Trouble(derived.id, "here", "bad\nforged line \x1b[2J" + "x" * 100_000)
    with caplog.at_level(logging.WARNING, "echoic.hub"):
        for _ in range(500):
            board.do(lambda core: core.ask(here.address, trouble, answered.append))
        eventually(lambda: len(answered) == 500)
    assert len(heard) == TROUBLES_MAX
    assert all(len(one.text) <= 4000 for one in heard)
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == TROUBLES_MAX
    assert all("\x1b" not in message and "\nforged" not in message for message in messages)


def test_ports_come_and_go_while_a_source_submits(start_hub: StartHub) -> None:
    here = start_hub()
    created = here.create("ticks", Tick)
    source, stop, problems = created.source(), threading.Event(), list[BaseException]()
    ports = created.route("{ return (int) (input.number % 16); }", 16)
    kept = Collector()
    ports[3].subscribe(kept)

    def submit() -> None:
        try:
            while not stop.is_set():
                source.submit_batch(ticks(64))
        except BaseException as problem:
            problems.append(problem)
            raise

    threads = [threading.Thread(target=submit) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        for port in ports[4:]:
            port.subscribe(lambda _: None).close()
    stop.set()
    for thread in threads:
        thread.join()
    assert problems == []
    assert kept.numbers == [3, 19, 35, 51] * (len(kept.numbers) // 4)


def test_a_source_whose_events_fault_at_a_sink_does_not_end_what_others_send_there(start_hub: StartHub) -> None:
    created = start_hub().create("ticks", Tick)
    derived = start_hub().open(created.id, Tick).derive("{ return 10 / input.producer > 0; }", placement="sink")
    seen = Collector()
    derived.subscribe(seen)
    honest, hostile = (start_hub().open(created.id, Tick).source() for _ in range(2))
    for _ in range(5):
        hostile.submit_batch([Tick(0, number) for number in range(50)])
    hostile.drain()
    honest.submit_batch([Tick(5, number) for number in range(10)])
    honest.drain()
    assert seen.numbers == list(range(10))


def test_code_that_no_sink_can_run_is_compiled_once(start_hub: StartHub, caplog: pytest.LogCaptureFixture) -> None:
    created = start_hub().create("ticks", Tick)
    endless = "{ int i; int j; int k; long s = 0; " + "".join(
        f"for ({name} = 0; {name} < 1000; {name}++) " for name in "ijk"
    )
    derived = start_hub().open(created.id, Tick).derive(endless + "s += i; return s > 0; }", placement="sink")
    derived.subscribe(lambda _: None)
    source = created.source()
    for _ in range(5):
        source.submit_sync(Tick(1, 1))
    told = [record for record in caplog.records if "cannot be derived here" in record.getMessage()]
    assert len(told) == 1


@pytest.mark.parametrize("size", [0, 1, 15, 17, 64])
def test_static_variables_of_a_wrong_size_are_refused(size: int) -> None:
    with pytest.raises(MalformedBatchError, match=f"{size} bytes, expected 16"):
        _decoded(Format.of(Tick), bytes(size))
