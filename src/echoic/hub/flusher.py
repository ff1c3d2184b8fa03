"""The thread that looks after what does not leave by itself.

While events gather anywhere it takes the runs of all sources every half millisecond and writes each link once. With
thousands of busy sources a round takes longer than that; it then rests six times as long as it has worked, while
events come, so that the threads that submit are not held up and batches grow. What 256 sources have gathered leaves
before the next ones are looked at, and whoever receives it works meanwhile. It goes on with links that took no more,
and ten times a second it lets the concentrator know that time passes.
"""

import logging
import select
import socket
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from echoic.channels import BATCH_BYTES_MAX
from echoic.errors import EchoicError
from echoic.formats import Format
from echoic.hub.errands import Errands
from echoic.hub.gathering import batch_of_records

if TYPE_CHECKING:
    from collections.abc import Iterable

    from echoic.channels import SourceRun
    from echoic.hub.link import Link
    from echoic.hub.outbound import Source
    from echoic.hub.switchboard import Switchboard

__all__ = ["Flusher", "send_held"]

TICK_SECONDS: Final = 0.0005
TICK_SECONDS_MAX: Final = 0.1
TICK_SECONDS_PER_SOURCE: Final = 0.000025
NAP_SECONDS: Final = 0.004
REST_PER_WORK: Final = 6
IDLE_TICKS: Final = 8
CROWD_SOURCES_MAX: Final = 256
ASKED_SOURCES_MAX: Final = 64
HOUSEKEEPING_SECONDS: Final = 0.1
SURVIVED: Final = Exception  # whatever it is, without this thread nothing would leave the hub any more
log: Final = logging.getLogger("echoic.hub")


class Flusher:
    """One per hub."""

    def __init__(self) -> None:
        self.left_ns = 0
        """When something last left at once."""
        self.errands: Final = Errands()
        self._idle: dict[Source, int] = {}
        self._clogged: dict[int, Link] = {}
        self._closed = False
        self._asleep = False
        self._wake_end: socket.socket
        self._wake_start: socket.socket

    def start(self, switchboard: "Switchboard") -> None:
        """Begin."""
        self._wake_end, self._wake_start = socket.socketpair()
        self._wake_end.setblocking(False)
        self._wake_start.setblocking(False)
        threading.Thread(target=self._run, args=(switchboard,), name="echoic-flusher", daemon=True).start()

    def arm(self, source: "Source") -> None:
        """Look after a source until nothing gathers there any more."""
        self._idle[source] = 0
        self._wake()

    def watch(self, link: "Link") -> None:
        """Go on with a link when it can be written again."""
        connection = link.connection
        if connection is not None and connection.fileno() >= 0:
            self._clogged[connection.fileno()] = link
            self._wake()

    def close(self) -> None:
        """End the thread, and that of the errands."""
        self._closed = True
        self.errands.close()
        self._wake(always=True)

    def _wake(self, *, always: bool = False) -> None:
        if self._asleep or always:
            self._asleep = False
            try:
                self._wake_start.send(b"w")
            except OSError:
                pass  # it is full of wakes already, or the thread has ended

    def _run(self, switchboard: "Switchboard") -> None:
        housekeeping, seconds = 0.0, TICK_SECONDS
        while not self._closed:
            self._rest(seconds)
            began = time.thread_time()
            try:
                if len(self._clogged) < switchboard.link_count or not self._clogged:
                    self._tick_all(switchboard)
                switchboard.pump_all()
                worked = time.thread_time() - began
                longest = min(TICK_SECONDS_PER_SOURCE * len(self._idle), TICK_SECONDS_MAX)
                seconds = max(TICK_SECONDS, min(REST_PER_WORK * worked, longest))
                now = time.monotonic()
                if now >= housekeeping:
                    housekeeping = now + HOUSEKEEPING_SECONDS
                    switchboard.tick()
            except SURVIVED:
                log.exception("the flusher goes on after an error")
        self._wake_end.close()
        self._wake_start.close()

    def _rest(self, seconds: float) -> None:
        """Wait for the next tick, or for a link that can be written again."""
        if self._idle and not self._clogged:
            self._nap(seconds)
            return
        poll = select.poll()
        poll.register(self._wake_end, select.POLLIN)
        self._asleep = True
        for descriptor in list(self._clogged):
            poll.register(descriptor, select.POLLOUT)
        seconds = seconds if self._idle else HOUSEKEEPING_SECONDS  # looked at after saying so: no wake is lost
        for descriptor, _ in poll.poll(max(1, seconds * 1000)):
            if descriptor == self._wake_end.fileno():
                self._wake_end.recv(4096)
            else:
                self._clogged.pop(descriptor).pump(unclog=True)
        self._asleep = False

    def _nap(self, seconds: float) -> None:
        """Sleep, but no longer than events come: whoever has submitted the last one should not wait.

        Some sources are asked for all: to ask each of thousands took as long as to send what they had.
        """
        while seconds > NAP_SECONDS:
            sources = list(self._idle)
            asked = sources[:: len(sources) // ASKED_SOURCES_MAX + 1]
            gathered = sum(source.gathered for source in asked)
            time.sleep(NAP_SECONDS)
            seconds -= NAP_SECONDS
            if gathered == sum(source.gathered for source in asked):
                return
        time.sleep(seconds)

    def _tick_all(self, switchboard: "Switchboard") -> None:
        """Let every source send what has gathered, many in one frame if they can."""
        idle, anything_clogged = self._idle, bool(self._clogged)
        crowds: dict[Format, Crowd] = {}
        crowd: Crowd | None = None
        try:
            for source, ticks in zip(list(idle), list(idle.values()), strict=False):  # more may have come in between
                if source.gathered:
                    if ticks:
                        idle[source] = 0
                    if crowd is None or crowd.format is not source.format:
                        crowd = crowds.setdefault(source.format, Crowd(switchboard, source.format))
                    run = source.seize(crowd.records, spare=anything_clogged)
                    if run is not None:
                        crowd.add(source, run)
                elif ticks < IDLE_TICKS:
                    idle[source] = ticks + 1
                else:
                    idle.pop(source, None)  # before it is disarmed: who submits from then on may arm it again
                    if not source.disarm():
                        idle[source] = 0
        finally:
            with ExitStack() as stack:  # all are released, whatever happens to one of them
                for crowd in crowds.values():
                    stack.callback(crowd.send)


class Crowd:
    """Sources of one type that are held, and what they have gathered, which leaves in one frame if that can be.

    It leaves as soon as there are enough of them: what was touched to take it is then still in the processor's caches,
    and whoever receives it works beside the sources that follow.
    """

    __slots__ = ("_runs", "_sources", "_switchboard", "format", "records")

    def __init__(self, switchboard: "Switchboard", format: Format) -> None:
        self.format: Final = format
        self.records: list[bytes] = []
        self._switchboard = switchboard
        self._sources: list[Source] = []
        self._runs: list[SourceRun] = []

    def add(self, source: "Source", run: "SourceRun") -> None:
        """Add a source that is held, and what it has gathered, which is among the records already."""
        self._sources.append(source)
        self._runs.append(run)
        if len(self._runs) >= CROWD_SOURCES_MAX:
            self.send()
            self._switchboard.pump_all()

    def send(self) -> None:
        """Send what was taken in one frame if that can be, else one by one, and release the sources."""
        sources, runs, records = self._sources, self._runs, self.records
        self._sources, self._runs, self.records = [], [], []
        sent = False
        try:
            if len(runs) > 1 and self._bytes_of(records) <= BATCH_BYTES_MAX:
                sent = self._switchboard.submit_runs(runs, batch_of_records(self.format, records))
        finally:
            if sent:
                for source, run in zip(sources, runs, strict=True):
                    source.release(run.count)
            else:
                send_held(sources)

    def _bytes_of(self, records: list[bytes]) -> int:
        return sum(map(len, records)) if self.format.variable else len(records) * self.format.size


def send_held(sources: "Iterable[Source]") -> None:
    """Let each of several sources send by itself what it has gathered; one that cannot is no matter of the others."""
    for source in sources:
        try:
            source.send_held()
        except EchoicError:
            log.exception("%r cannot send what has gathered", source)
