"""One replica of a group that is measured: a process of its own, which is told what to do.

    python -m echoic.testing.bench.groups.replica NAME CASE FOLDER         the case as JSON

    to it (stdin)                    from it (stdout), lines of JSON
                                     {"address": "127.0.0.1:40123"}
    {"n1": "127.0.0.1:40123", ..}    {"leader": "n1"}                      all are in the view
    send                             a result, when the source has sent and everything is back
    tell                             a result, of what was delivered here
    end of file                      the process ends

It submits one message after the other, as a program would, and takes delivered ones as batches. The time is written
into each message just before it is submitted; what is made of it waits until the run is over.
"""

import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec
import numpy
from numpy.typing import NDArray

import echoic
from echoic.errors import DeliveryError
from echoic.hub.group import Group
from echoic.hub.group_delivery import GroupStamp
from echoic.testing.bench.groups.cases import HEAD_BYTES, Case, Moment, Result, Source
from echoic.wire import Batch

if TYPE_CHECKING:
    from echoic.groups.policies import PackingChange

__all__ = ["Observer", "run", "run_source"]

Times = NDArray[numpy.float64]
GROUP: Final = "bench"
MOMENT_SECONDS: Final = 0.05
MOMENTS_MAX: Final = 20_000
LATENCIES_MAX: Final = 8_000_000
TURN: Final = 16
"""After how many messages a source that never rests looks at the clock."""
DRAIN_SECONDS: Final = 20.0
ENCODINGS: Final = 2000


def message_type(source: Source) -> type:
    """Return the type of the messages: of a fixed size if all are the same, which is read fastest."""
    if len(source.sizes) == 1:

        @echoic.event
        class Fixed:
            at: echoic.float64
            body: echoic.Array[echoic.char, source.sizes[0] - 8]

        return Fixed

    @echoic.event
    class Variable:
        at: echoic.float64
        body: bytes

    return Variable


def submitted_at(batch: Batch, *, fixed: bool) -> Times:
    """Return when the messages of a batch were submitted, a copy."""
    if fixed:
        times: Times = batch.array["at"]
        return times.copy()
    # Records begin with the time, at multiples of 8 bytes; to look at them as an array would copy every body.
    places = numpy.asarray(batch.bounds[:-1], dtype=numpy.int64) >> 3
    times = numpy.frombuffer(batch.records, numpy.float64)
    return numpy.take(times, places)


class Observer:
    """Takes what is delivered here."""

    def __init__(self, *, fixed: bool) -> None:
        self.messages = 0
        self.measuring = False
        self._fixed = fixed
        self._timing = False
        self._begin()

    def _begin(self) -> None:
        self.first = self.last = 0.0
        self.counted = self._first_count = 0
        self.gap = 0.0
        self._samples: list[tuple[float, Times]] = []
        self._kept = 0

    def begin(self, *, timing: bool = False) -> None:
        """Measure from here on, latencies as well if `timing`."""
        self._begin()
        self._timing = timing
        self.measuring = True

    def take(self, batch: Batch, stamp: GroupStamp) -> None:  # noqa: ARG002 - a handler of batches
        """Take a batch; the handler."""
        now, count = time.perf_counter(), len(batch)
        self.messages += count
        if not self.measuring:
            return
        if not self.counted:
            self.first, self._first_count = now, count
        else:
            self.gap = max(self.gap, now - self.last)
        self.last = now
        self.counted += count
        if self._timing and self._kept < LATENCIES_MAX:
            self._kept += count
            self._samples.append((now, submitted_at(batch, fixed=self._fixed)))

    def throughput(self) -> float:
        """Return messages a second between the first delivery and the last one; the first batch began the time."""
        elapsed = self.last - self.first
        return (self.counted - self._first_count) / elapsed if elapsed > 0 else 0.0

    def latencies(self) -> tuple[float, float, float]:
        """Return the mean, the median and the 99th of 100."""
        if not self._samples:
            return 0.0, 0.0, 0.0
        found = numpy.concatenate([at - submitted for at, submitted in self._samples])
        median, most = numpy.quantile(found, (0.5, 0.99))
        return float(found.mean()), float(median), float(most)


class Course:
    """Looks at the packing now and then, in a thread of its own."""

    def __init__(self, group: Group) -> None:
        self.moments: list[Moment] = []
        self.changes: list[PackingChange] = []
        self._packing = group.packing
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._before = (0, 0)
        self._begun = time.perf_counter()
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(MOMENT_SECONDS) and len(self.moments) < MOMENTS_MAX:
            self._look()

    def _look(self) -> None:
        told = self._packing.statistics()
        messages, packs = told.messages - self._before[0], told.packs - self._before[1]
        self._before = told.messages, told.packs
        degree = messages / packs if packs else 0.0
        self.moments.append(Moment(time.perf_counter() - self._begun, told.messages, degree, told.bytes_aim))
        self.changes += self._packing.changes()

    def end(self) -> None:
        """Look no more."""
        self._ended.set()
        self._thread.join()


def run_source(source: Source, declared: type, submit: Callable[[object], None], seconds: float) -> int:
    """Submit messages as a source does, for so many seconds; return how many."""
    clock = time.perf_counter
    extra = 8 if len(source.sizes) == 1 else HEAD_BYTES
    events = [declared(0.0, bytes(size - extra)) for size in source.sizes]
    number, end = 0, clock() + seconds
    while clock() < end:
        event = events[number // source.each % len(events)]
        for _ in range(source.burst or TURN):
            event.at = clock()
            submit(event)
        number += source.burst or TURN
        if source.burst:
            time.sleep(source.pause)
    return number


class Replica:
    """A member of the group, and what it does when it is told to."""

    def __init__(self, name: str, case: Case, folder: str) -> None:
        self.name, self.case = name, case
        self.declared = message_type(case.messages)
        self.observer = Observer(fixed=len(case.messages.sizes) == 1)
        self.hub = echoic.Hub()
        self._folder = folder

    def join(self, peers: dict[str, str]) -> str:
        """Join the group, wait for the others, and return who leads."""
        case = self.case
        self.group = self.hub.join(
            GROUP,
            self.declared,
            me=self.name,
            peers=peers,
            engine=case.engine,
            stability=case.stability,
            durability=case.durability,
            path=f"{self._folder}/{self.name}" if case.durability != "memory" else None,
            packing=case.packing,
            packing_interval=case.packing_interval,
            election_timeout=case.election_timeout,
        )
        self.group.subscribe(self.observer.take, batch=True)
        self.group.wait_for(lambda view: len(view.members) == len(peers), 30.0)
        return str(self.group.statistics().engine.get("leader") or min(peers))

    def send(self) -> Result:
        """Be the source, and return what came of it."""
        case, group, observer = self.case, self.group, self.observer
        encoding = self._time_encoding()
        course = Course(group)
        submitted = 0
        if case.warm_up:
            submitted = run_source(case.messages, self.declared, group.submit, case.warm_up)
        begun, cpu, thread = time.perf_counter(), time.process_time(), time.thread_time()
        observer.begin(timing=True)
        submitted += run_source(case.messages, self.declared, group.submit, case.seconds - case.warm_up)
        elapsed = time.perf_counter() - begun
        cpu, thread = time.process_time() - cpu, time.thread_time() - thread
        # What comes back behind the end would count for longer than it was sent for.
        observer.measuring = False
        course.end()
        try:
            group.drain(DRAIN_SECONDS)
        except DeliveryError:
            sys.stderr.write(f"{self.name}: not all that was sent is back after {DRAIN_SECONDS:g} s\n")
        return self._result(submitted, encoding, cpu / elapsed, thread / elapsed, course)

    def tell(self) -> Result:
        """Return what was delivered here."""
        observer = self.observer
        return Result(
            replica=self.name,
            messages=observer.messages,
            seconds=observer.last - observer.first,
            throughput=observer.throughput(),
            gap=observer.gap,
        )

    def _result(self, submitted: int, encoding: float, cpu: float, source_cpu: float, course: Course) -> Result:
        observer, packing = self.observer, self.group.packing.statistics()
        mean, median, most = observer.latencies()
        return Result(
            replica=self.name,
            messages=observer.counted,
            seconds=observer.last - observer.first,
            throughput=observer.throughput(),
            gap=observer.gap,
            cpu=cpu,
            latency=mean,
            latency_p50=median,
            latency_p99=most,
            degree=packing.messages / max(1, packing.packs),
            submitted=submitted,
            encoding=encoding,
            source_cpu=source_cpu,
            suspensions=packing.suspensions,
            course=course.moments,
            reasons=[change.reason for change in course.changes],
        )

    def _time_encoding(self) -> float:
        """Return how long it takes to encode a message, by doing what `submit` does and nothing else."""
        from echoic.formats import bind
        from echoic.wire import encoder_of

        source = self.case.messages
        encode = encoder_of(bind(self.declared).format).single(self.declared)
        event = self.declared(0.0, bytes(source.sizes[0] - HEAD_BYTES))
        begun = time.perf_counter()
        for _ in range(ENCODINGS):
            encode(event)
        return (time.perf_counter() - begun) / ENCODINGS

    def close(self) -> None:
        """Leave."""
        self.hub.close()


def run(name: str, text: str, folder: str) -> None:
    """Be a replica until nobody talks to it any more."""
    replica = Replica(name, msgspec.json.decode(text, type=Case), folder)
    _say({"address": replica.hub.address})
    for line in sys.stdin:
        match line.strip():
            case "send":
                _say(replica.send())
            case "tell":
                _say(replica.tell())
            case "measure":
                replica.observer.begin()
            case peers:
                _say({"leader": replica.join(msgspec.json.decode(peers, type=dict[str, str]))})
    replica.close()


def _say(what: object) -> None:
    sys.stdout.write(msgspec.json.encode(what).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    run(*sys.argv[1:])
