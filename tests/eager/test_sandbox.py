"""Modulators at work, in this process and in a confined one: the two behave alike."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy
import pytest

from echoic import Array, event, float64, int32
from echoic.channels import Runner, SharedView
from echoic.eager import Limits, Modulator, SharedObject, SharedReference, seccomp
from echoic.eager.shared_object import attach, copy_of, refresh
from echoic.errors import ModulatorError, UnreachableError
from echoic.formats import Format
from echoic.wire import Batch
from tests.eager.installing import CONFINING, PLACES, Number, Point, numbers, run_confined, values

pytestmark = pytest.mark.skipif(not CONFINING, reason="needs bubblewrap, which `./run test` installs")

Run = Callable[..., Runner]


@pytest.fixture(params=PLACES)
def start(request: pytest.FixtureRequest) -> Iterator[Run]:
    """Run a modulator in one of the two places, and end it afterwards."""
    started: list[Runner] = []

    def start(modulator: Modulator, **options: Any) -> Runner:
        started.append(PLACES[request.param](modulator, **options))
        return started[-1]

    yield start
    for runner in started:
        runner.close()


class AtLeast(Modulator):
    least: int = 0

    def enqueue(self, event: Any) -> None:
        if event.value >= self.least:
            super().enqueue(event)


class Fails(Modulator):
    where: str

    def start(self) -> None:
        self.fail("start")

    def enqueue(self, event: Any) -> None:
        if event.value == 13:
            raise ValueError("thirteen")
        super().enqueue(event)

    def dequeue(self) -> Any:
        self.fail("dequeue")
        return super().dequeue()

    def period(self) -> None:
        self.fail("period")

    def fail(self, where: str) -> None:
        if where == self.where:
            raise LookupError(f"in {where}")


class Holds(Modulator):
    """Sends nothing but when a period is over, and then one."""

    period_ns = 1_000_000

    def start(self) -> None:
        self.allowed = 0

    def period(self) -> None:
        self.allowed += 1

    def dequeue(self) -> Any:
        if not self.allowed:
            return None
        self.allowed -= 1
        return super().dequeue()


class Places(Modulator):
    output = Point

    def enqueue(self, event: Any) -> None:
        super().enqueue({"x": event.value, "y": -event.value} if event.value % 2 else event)


class Counts(Modulator):
    """Numbers the events that this copy has seen."""

    def start(self) -> None:
        self.seen = 0

    def enqueue(self, event: Any) -> None:
        self.seen += 1
        event.value = self.seen
        super().enqueue(event)


@event
class Grid:
    n: int32
    cells: Array[float64, "n"]
    name: str = ""


class Doubles(Modulator):
    def enqueue(self, event: Any) -> None:
        event.cells = event.cells * 2
        super().enqueue(event)


def test_events_pass_in_their_order_and_those_it_drops_do_not(start: Run) -> None:
    runner = start(AtLeast(3))
    worked = runner.work(1, numbers(1, 5, 2, 3, 9))
    assert values(worked.batch) == [5, 3, 9]
    assert [event.text for event in worked.batch] == ["5", "3", "9"]
    assert (worked.faults, worked.waiting) == ((), False)
    assert (runner.output, runner.period_ns, runner.buffered) == (None, 0, False)


def test_no_events_and_none_that_pass_give_no_batch(start: Run) -> None:
    runner = start(AtLeast(3))
    assert runner.work(1, None).batch is None
    assert runner.work(1, numbers(1)).batch is None


def test_large_batches_and_arrays_pass(start: Run) -> None:
    runner = start(Doubles(), declared=Grid)
    grids = [Grid(5000, numpy.arange(5000.0) + number, "é" * number) for number in range(50)]
    got = list(runner.work(1, Batch.of(grids, Grid)).batch)
    assert [grid.name for grid in got] == [grid.name for grid in grids]
    assert all(numpy.array_equal(grid.cells, sent.cells * 2) for grid, sent in zip(got, grids, strict=True))


def test_each_source_has_a_copy_of_its_own(start: Run) -> None:
    runner = start(Counts())
    assert values(runner.work(1, numbers(0, 0)).batch) == [1, 2]
    assert values(runner.work(2, numbers(0)).batch) == [1]
    assert values(runner.work(1, numbers(0)).batch) == [3]
    runner.forget(1)
    assert values(runner.work(1, numbers(0)).batch) == [1]
    assert values(runner.work(2, numbers(0)).batch) == [2]


def test_an_error_in_one_event_is_told_and_the_others_go_on(start: Run) -> None:
    worked = start(Fails("")).work(1, numbers(1, 13, 2))
    assert values(worked.batch) == [1, 2]
    (fault,) = worked.faults
    assert fault.startswith("`Fails.enqueue` raised ValueError: thirteen - at line ")
    assert "`raise ValueError(" in fault


def test_very_many_faults_are_told_in_part(start: Run) -> None:
    worked = start(Fails("")).work(1, numbers(*[13] * 1000, 1))
    assert values(worked.batch) == [1]
    assert len(worked.faults) == 256
    assert worked.faults[-1] == "`Fails.enqueue` raised for 745 further events of 1001"


@pytest.mark.parametrize("where", ["start", "dequeue", "period"])
def test_an_error_anywhere_else_ends_it(start: Run, where: str) -> None:
    runner = start(Fails(where))
    with pytest.raises(ModulatorError, match=rf"`Fails\.{where}` raised LookupError: in {where} - at line"):
        runner.work(1, numbers(1), period=True)
    with pytest.raises(ModulatorError, match="is not asked"):
        runner.work(1, numbers(1))


def test_events_wait_while_the_transport_does(start: Run) -> None:
    runner = start(AtLeast(0))
    worked = runner.work(1, numbers(1, 2), ready=False)
    assert (worked.batch, worked.waiting) == (None, True)
    assert values(runner.work(1, numbers(3)).batch) == [1, 2, 3]


def test_events_that_are_held_back_are_drained(start: Run) -> None:
    runner = start(Holds())
    assert (runner.buffered, runner.period_ns) == (True, 1_000_000)
    worked = runner.work(1, numbers(1, 2, 3))
    assert (worked.batch, worked.waiting) == (None, True)
    assert values(runner.work(1, None, period=True).batch) == [1]
    worked = runner.drain(1)
    assert (values(worked.batch), worked.waiting) == ([2, 3], False)
    assert runner.drain(1).batch is None
    assert runner.drain(77).batch is None


def test_events_of_the_output_come_out_and_others_are_faults_naming_both_types(start: Run) -> None:
    runner = start(Places())
    worked = runner.work(1, numbers(1, 2, 3))
    assert runner.output == Format.of(Point)
    assert [(point.x, point.y) for point in worked.batch] == [(1.0, -1.0), (3.0, -3.0)]
    (fault,) = worked.faults
    assert "`Places.dequeue` gave a `Number`, expected a `Point`" in fault


def test_events_of_a_type_that_extends_the_input_are_taken(start: Run) -> None:
    runner = start(AtLeast(2))
    worked = runner.work(1, Batch.of([Longer(1, "a", 0.5), Longer(2, "b", 0.5)], Longer))
    assert [(event.value, event.text) for event in worked.batch] == [(2, "b")]


@event
class Longer:
    value: int
    text: str
    more: float


def test_threads_take_turns(start: Run) -> None:
    runner = start(Counts())
    seen: dict[int, list[int]] = {source: [] for source in range(4)}

    def work(source: int) -> None:
        for _ in range(50):
            seen[source] += values(runner.work(source, numbers(0)).batch)

    threads = [threading.Thread(target=work, args=(source,)) for source in seen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(each == list(range(1, 51)) for each in seen.values())


def test_a_closed_one_is_not_asked(start: Run) -> None:
    runner = start(AtLeast(0))
    runner.close()
    runner.close()
    with pytest.raises(ModulatorError, match="`AtLeast` is not asked"):
        runner.work(1, numbers(1))


class Box(SharedObject):
    least: int = 0
    name: str = ""


class Replica:
    """The only place where an object is, for tests: the master, without any hub."""

    def __init__(self, reference: SharedReference) -> None:
        self.id = reference.id
        self.format = Format.from_descriptor(reference.format)
        self.view = SharedView(reference.values, reference.version)
        self.copies: list[SharedObject] = []
        self.released = 0
        self.reachable = True

    def write(self, fields: tuple[str, ...], values: bytes) -> None:
        if not self.reachable:
            raise UnreachableError("the master is no more")
        self.view = SharedView(values, self.view.version + 1)
        for copy in self.copies:
            refresh(copy)

    def pull(self) -> None:
        if not self.reachable:
            raise UnreachableError("the master is no more")

    def release(self, copy: SharedObject) -> None:
        self.released += 1


class Host:
    """Where the copies of one object can be had."""

    def __init__(self, box: Box) -> None:
        self.box = box
        reference = SharedReference("box", "here/shared/1", "Box", Format.of(Box.__echoic_record__).descriptor, b"", 0)
        values = bytes(Batch.of([box.snapshot()], Box.__echoic_record__).records)
        self.replica = Replica(SharedReference("box", reference.id, "Box", reference.format, values, 0))
        attach(box, self.replica)
        self.replica.copies.append(box)

    def copy(self, reference: SharedReference, cls: type[SharedObject]) -> SharedObject:
        made = copy_of(cls, self.replica)
        self.replica.copies.append(made)
        return made


class Boxed(Modulator):
    box: Box

    def enqueue(self, event: Any) -> None:
        if event.value < 0:
            self.box.least, self.box.name = -event.value, "written inside"
            self.box.publish()
        elif event.value == 1000:
            self.box.pull()
        elif event.value >= self.box.least:
            event.text = f"{self.box.name} {self.box.version}"
            super().enqueue(event)


def test_a_shared_object_is_seen_and_written_inside(start: Run) -> None:
    box = Box(2, "first")
    host = Host(box)
    runner = start(Boxed(box), shared=host)
    assert [(event.value, event.text) for event in runner.work(1, numbers(1, 2)).batch] == [(2, "first 0")]
    box.least, box.name = 5, "second"
    box.publish()
    assert [(event.value, event.text) for event in runner.work(1, numbers(4, 5)).batch] == [(5, "second 1")]
    worked = runner.work(1, numbers(-8, 7, 8, 1000))
    assert [(event.value, event.text) for event in worked.batch] == [(8, "written inside 2")]
    assert (box.least, box.name, box.version) == (8, "written inside", 2)
    runner.close()
    assert host.replica.released == 1


def test_a_shared_object_whose_master_is_gone_makes_faults(start: Run) -> None:
    box = Box(2, "first")
    host = Host(box)
    runner = start(Boxed(box), shared=host)
    host.replica.reachable = False
    worked = runner.work(1, numbers(-8, 1000, 9))
    assert len(worked.faults) == 2
    assert all("UnreachableError: the master is no more" in fault for fault in worked.faults)


def test_the_filter_knows_its_architectures_and_no_other() -> None:
    for machine in seccomp.ARCHITECTURES:
        made = seccomp.program(machine)
        assert made is not None
        assert len(made) % 8 == 0
        assert made[-8:] == seccomp.instruction(0x06, 0, 0, seccomp.ALLOW)
    assert seccomp.program("pdp11") is None


def test_calls_of_the_filter_are_named_once() -> None:
    for column in (0, 1):
        numbers_ = [each[column] for each in seccomp.CALLS.values() if each[column] is not None]
        assert len(numbers_) == len(set(numbers_))


class Imports(Modulator):
    """Uses packages that it imports where it runs."""

    output: ClassVar[object] = Number

    def enqueue(self, event: Any) -> None:
        import decimal
        import json
        import zlib

        text = json.dumps({"value": str(decimal.Decimal(event.value))})
        event.text = zlib.decompress(zlib.compress(text.encode())).decode()
        event.value = int(numpy.linalg.norm([3.0, 4.0]))
        super().enqueue(event)


def test_a_modulator_imports_what_is_installed(start: Run) -> None:
    worked = start(Imports()).work(1, numbers(7))
    assert worked.faults == ()
    assert [(event.value, event.text) for event in worked.batch] == [(5, '{"value": "7"}')]


def test_system_calls_are_filtered_where_there_is_a_filter() -> None:
    runner = run_confined(AtLeast(0))
    assert runner.filtered
    runner.close()


def test_a_confined_process_ends_with_the_thread_of_nobody() -> None:
    """Linux ends a process with the thread that has started it, unless that one lives on."""
    made: list[Runner] = []
    thread = threading.Thread(target=lambda: made.append(run_confined(AtLeast(0))))
    thread.start()
    thread.join()
    time.sleep(0.1)
    assert values(made[0].work(1, numbers(1)).batch) == [1]
    made[0].close()
    assert not Path(f"/proc/{made[0].pid}").exists()


class Resubmits(Modulator):
    requires = ("channel",)

    def enqueue(self, event: Any) -> None:
        self.services.channel.submit()


def test_a_service_that_calls_the_modulator_that_calls_it_is_told_so() -> None:
    class Channel:
        def submit(self) -> None:
            runner.work(1, numbers(1))

    runner = run_confined(Resubmits(), grant=lambda service, source: Channel())
    (fault,) = runner.work(1, numbers(1)).faults
    assert "a service that it calls has called it" in fault
    runner.close()


class Sleeps(Modulator):
    def enqueue(self, event: Any) -> None:
        time.sleep(3600)


def test_closing_one_that_is_at_work_ends_the_call() -> None:
    runner = run_confined(Sleeps(), limits=Limits(seconds=60, load_seconds=20))
    told: list[str] = []

    def work() -> None:
        try:
            runner.work(1, numbers(1))
        except ModulatorError as error:
            told.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.1)
    runner.close()
    thread.join()
    assert told == ["`Sleeps` was stopped: it was closed"]
    assert not Path(f"/proc/{runner.pid}").exists()


class Closes(Modulator):
    requires = ("hub",)

    def enqueue(self, event: Any) -> None:
        self.services.hub.close()


def test_a_service_may_close_the_modulator_that_calls_it() -> None:
    class Hub:
        def close(self) -> None:
            runner.close()

    runner = run_confined(Closes(), grant=lambda service, source: Hub())
    with pytest.raises(ModulatorError, match="it was closed"):
        runner.work(1, numbers(1))
    assert not Path(f"/proc/{runner.pid}").exists()


class RaisesNonsense(Modulator):
    def enqueue(self, event: Any) -> None:
        raise ValueError("\ud800" * 1000)


def test_an_error_whose_text_is_not_unicode_is_told_as_far_as_it_can_be(start: Run) -> None:
    (fault,) = start(RaisesNonsense()).work(1, numbers(1)).faults
    assert fault.startswith("`RaisesNonsense.enqueue` raised ValueError: ???")
    assert len(fault) <= 400


class Grows(Modulator):
    def enqueue(self, event: Any) -> None:
        for _ in range(10_000):
            super().enqueue({"value": 1, "text": "x" * 2000})


def test_more_than_a_message_holds_is_not_taken() -> None:
    runner = run_confined(Grows())
    with pytest.raises(ModulatorError, match=r"a message has \d+ bytes of events, limit is 16777216"):
        runner.work(1, numbers(1))
    runner.close()


def test_a_process_that_is_not_confined_notices() -> None:
    program = "from echoic.eager import inside; inside.examine()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "RefusedError: it can start processes" in done.stderr
