"""From a channel to a picture: derive, subscribe, gather, and push at most `PUSHES_PER_SECOND` times a second.

    source: E-Code -> derived channel -> `_take`: gathers, bounded -> thread: packs -> push(content, buffers)

What is pushed is a small dict and binary buffers, which a widget sends as they are:

    chart    {"type": "points", "count": n}                times in seconds, float64[n]; Envelopes, n * (1 + 3 * fields)
                                                           numbers of 8 bytes: count as int64, then min, max, last
    field    {"type": "field", "rows", "columns", "low", "high", "top", "left", "height", "width"}      cells, float32
    events   {"type": "events", "head": [...], "rows": [[...], ...]}                                    nothing
    any      {"type": "status", "text": "..."}             about once a second: what was saved, what is wrong

Points that come together were made one after the other, and nobody has noted when: they are spread over the time since
those before them.

One thread does all that may wait for others, so that neither the notebook nor a link ever does: it subscribes when the
feed is to run, ends that when it is paused, changes `every`, and asks what the derivation has saved.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy

from echoic.channels import Trouble
from echoic.errors import ClosedError, EchoicError
from echoic.formats import shown
from echoic.hub import Channel, Sink
from echoic.monitor import bytes_text
from echoic.monitor.pacing import Pace
from echoic.notebook.views import View
from echoic.wire import Batch

__all__ = ["Feed", "Push"]

PUSHES_PER_SECOND: Final = 25
EVENTS_PER_SECOND: Final = 10
GATHERED_MAX: Final = 20_000  # points that wait for one push; a picture has no more columns anyway
EVENTS_SHOWN: Final = 12
CELL_CHARACTERS_MAX: Final = 60
STATUS_SECONDS: Final = 1.0
RETRY_SECONDS: Final = 1.0

Push: TypeAlias = Callable[[dict[str, object], list[bytes]], object]
Gathered: TypeAlias = tuple[float, Batch]


class Feed:
    """Lets pictures of a channel flow until it is closed."""

    def __init__(self, channel: Channel, view: View, points_per_second: float, push: Push) -> None:
        """Begin, at once unless it is paused meanwhile.

        Args:
            channel: Whose events.
            view: What of them.
            points_per_second: How many points a second a chart gets, at most; pictures and events come more rarely.
            push: Called with what is to be shown, by a thread of the feed.
        """
        most = {"chart": points_per_second, "field": PUSHES_PER_SECOND, "events": EVENTS_PER_SECOND}[view.kind]
        self.trouble = ""
        """What is wrong; "" if nothing is."""
        self.pushes = 0
        self.derived: Channel | None = None
        """The channel that is subscribed to, while it is."""
        self._channel = channel
        self._view = view
        self._push = push
        self._pace = Pace(min(points_per_second, most), time.monotonic_ns())
        self._gathered: deque[Gathered] = deque()
        self._points = 0
        self._start = self._before = time.monotonic()
        self._changed = threading.Condition()
        self._paused = self._closed = False
        self._sink: Sink | None = None
        self._thread = threading.Thread(target=self._run, name="echoic-live", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether events are subscribed to."""
        return self._sink is not None

    @property
    def paused(self) -> bool:
        """Whether nobody looks."""
        return self._paused

    @property
    def ended(self) -> bool:
        """Whether it was closed, or its hub was, and nothing is pushed any more."""
        return not self._thread.is_alive()

    @property
    def every(self) -> int:
        """How many events a point stands for."""
        return self._pace.every

    @property
    def waiting(self) -> int:
        """How many points wait for the next push."""
        return self._points

    def pause(self, paused: bool) -> None:
        """Let sources send nothing while nobody looks, or again."""
        with self._changed:
            self._paused = paused
            self._changed.notify_all()

    def close(self) -> None:
        """End it. Returns when nothing is pushed any more, unless `push` itself calls this."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        status_at = 0.0
        try:
            while self._wait():
                if self._sink is None or self._sink.closed:
                    self._subscribe()
                self._tune()
                self._tell_gathered()
                if time.monotonic() >= status_at:
                    self._tell({"type": "status", "text": self._status()}, [])
                    status_at = time.monotonic() + STATUS_SECONDS
        finally:
            self._unsubscribe()
        self._tell_gathered()
        if self.trouble:
            self._tell({"type": "status", "text": self.trouble}, [])

    def _wait(self) -> bool:
        """Wait until it is time for the next push, and as long as it is paused; tell whether to go on."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed, 1 / PUSHES_PER_SECOND)
            while self._paused and not self._closed:
                self._changed.release()
                try:
                    self._unsubscribe()
                finally:
                    self._changed.acquire()
                self._changed.wait_for(lambda: self._closed or not self._paused)
            return not self._closed

    def _subscribe(self) -> None:
        """Derive, and subscribe; if that fails, say why, and let it be tried again later."""
        reduction = self._view.reduction
        try:
            channel = self._channel
            if reduction is not None:
                channel = channel.derive(
                    reduction.code,
                    reduction.output,
                    params={**reduction.params, "every": self._pace.every},
                    capacities=reduction.capacities,
                    share=False,
                    on_trouble=self._troubled,
                )
            self._before = time.monotonic()
            self._pace.begin(self._pace.every, time.monotonic_ns())
            self._sink = channel.subscribe(self._take, batch=True, slow="drop_oldest")
            self.derived, self.trouble = channel, ""
        except ClosedError as error:  # the hub was closed, and nothing comes any more
            self.trouble, self._closed = str(error), True
        except EchoicError as error:
            self.trouble = str(error)
            with self._changed:
                self._changed.wait_for(lambda: self._closed, RETRY_SECONDS)

    def _unsubscribe(self) -> None:
        sink, self._sink, self.derived = self._sink, None, None
        if sink is not None:
            sink.close()

    def _troubled(self, trouble: Trouble) -> None:
        self.trouble = trouble.text

    def _take(self, batch: Batch) -> None:
        """Gather what has come; called by the sink's thread."""
        now = time.monotonic()
        with self._changed:
            self._pace.note(batch.count)
            self._gathered.append((now, batch))
            self._points += batch.count
            while self._points > GATHERED_MAX and len(self._gathered) > 1:
                self._points -= self._gathered.popleft()[1].count

    def _tune(self) -> None:
        """Let a point stand for as many events as the rate asks for."""
        with self._changed:
            every = self._pace.wanted(time.monotonic_ns())
        if every is None or self.derived is None or self._view.reduction is None:
            return
        try:
            self.derived.params.update(every=every)
        except EchoicError as error:
            self.trouble = str(error)
            return
        with self._changed:
            self._pace.begin(every, time.monotonic_ns())

    def _tell_gathered(self) -> None:
        with self._changed:
            gathered, self._points = list(self._gathered), 0
            self._gathered.clear()
        if not gathered:
            return
        match self._view.kind:
            case "chart":
                self._tell(*self._points_of(gathered))
            case "field":
                self._tell(*_field_of(gathered[-1][1]))
            case _:
                self._tell(_events_of([batch for _, batch in gathered]), [])

    def _tell(self, content: dict[str, object], buffers: list[bytes]) -> None:
        self.pushes += 1
        self._push(content, buffers)

    def _points_of(self, gathered: Sequence[Gathered]) -> tuple[dict[str, object], list[bytes]]:
        times: list[Any] = []
        for now, batch in gathered:
            steps = numpy.arange(1, batch.count + 1) / max(batch.count, 1)
            times.append(self._before - self._start + steps * (now - self._before))
            self._before = now
        envelopes = [numpy.ascontiguousarray(batch.array).view(numpy.uint8).tobytes() for _, batch in gathered]
        joined = numpy.concatenate(times).astype("<f8")
        return {"type": "points", "count": len(joined)}, [joined.tobytes(), b"".join(envelopes)]

    def _status(self) -> str:
        """Return a line about what goes on: what is wrong, or what was saved."""
        derived = self.derived
        if self.trouble or derived is None or derived.derivation is None:
            return self.trouble
        try:
            counts: Mapping[str, Any] = derived.derivation.counts()
        except EchoicError as error:
            return str(error)
        events = sum(each.events_in for each in counts.values())
        saved = sum(each.bytes_saved for each in counts.values())
        every = f", {self._pace.every:,} for each point" if self._pace.every > 1 else ""
        return f"{events:,} events{every}; {bytes_text(saved)} never left the source"


def _field_of(batch: Batch) -> tuple[dict[str, object], list[bytes]]:
    """Return the last window of a batch."""
    last: Any = batch.select(numpy.arange(batch.count - 1, batch.count)).events()[0]
    names = ("rows", "columns", "low", "high", "top", "left", "height", "width")
    content: dict[str, object] = {"type": "field", **{name: getattr(last, name) for name in names}}
    return content, [numpy.asarray(last.cells, "<f4").tobytes()]


def _events_of(batches: Sequence[Batch]) -> dict[str, object]:
    """Return the last events as texts, those that have the type of the very last."""
    last = batches[-1]
    taken: list[object] = []
    for batch in reversed(batches):
        if batch.format != last.format or len(taken) >= EVENTS_SHOWN:
            break
        first = max(batch.count - EVENTS_SHOWN + len(taken), 0)
        taken = [*batch.select(numpy.arange(first, batch.count)).events(), *taken]
    names = [field.name for field in last.format.fields]
    rows = [[shown(getattr(event, name))[:CELL_CHARACTERS_MAX] for name in names] for event in taken]
    return {"type": "events", "head": names, "rows": rows}
