"""`echoic record`: keep the events of channels in a journal, for as long as it runs.

An event counts as handled when it is on the disk. Whoever presses Ctrl-C has what arrived written first; the sources
are then told that nobody records any more, or, with `--hold`, keep their events until the recorder comes back.
"""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from cyclopts import Parameter

from echoic.cli.meeting import attend
from echoic.cli.progress import clear_line, say_above, show_line
from echoic.cli.quantities import bytes_of, nanoseconds_of
from echoic.cli.screen import json_text, printable, say
from echoic.cli.where import NOWHERE, AsJson, Flag, Where
from echoic.errors import ChannelNotFoundError, LocalError
from echoic.hub import Channel, Hub, Recording
from echoic.monitor import Following, bytes_text
from echoic.recorder import SEGMENT_BYTES_MAX, Retention

__all__ = ["Recorded", "record"]

WAKE_SECONDS: Final = 0.1
SHOW_SECONDS: Final = 0.5


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Keeping:
    """How events are kept."""

    partitions: Annotated[
        int, Parameter(help="Into how many files at a time the sources are spread; only for a journal not there yet.")
    ] = 1
    retain_bytes: Annotated[
        str,
        Parameter(
            help="Remove the oldest segments beyond so much, of each partition: 500MB, 10GB. [default: all stay]",
            show_default=False,
        ),
    ] = ""
    retain_age: Annotated[
        str, Parameter(help="Remove segments older than this: 36h, 7d. [default: all stay]", show_default=False)
    ] = ""
    segment_bytes: Annotated[
        str, Parameter(help="When a further segment is begun: 64MB. [default: 256MiB]", show_default=False)
    ] = ""
    durability: Annotated[
        Literal["disk", "os"],
        Parameter(help="When an event is safe: on the disk, or in the care of the operating system, which is faster."),
    ] = "disk"

    def begin(self, hub: Hub, channel: Channel, path: Path) -> Recording:
        """Begin to record a channel.

        Raises:
            LocalError: An amount is none.
            EchoicError: The journal cannot be written, or the channel cannot be heard.
        """
        return hub.record(
            channel,
            path,
            partitions=self.partitions,
            retention=self.retention(),
            segment_bytes_max=bytes_of(self.segment_bytes) or SEGMENT_BYTES_MAX,
            durability=self.durability,
        )

    def retention(self) -> Retention:
        """Return when the oldest segments are removed.

        Raises:
            LocalError: An amount is none.
        """
        return Retention(bytes_of(self.retain_bytes), nanoseconds_of(self.retain_age))


class Recorded(msgspec.Struct, frozen=True):
    """What was kept of one channel."""

    channel: str
    journal: str = ""
    events: int = 0
    bytes: int = 0
    commits: int = 0
    duplicates: int = 0
    heads: tuple[int, ...] = ()
    waiting_bytes: int = 0
    trouble: str = ""


KEEPING: Final = Keeping()


def record(
    *channels: str,
    to: Path,
    seconds: Annotated[float | None, Parameter(name="--for")] = None,
    hold: Flag = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative=(), show_default=False)] = False,
    as_json: AsJson = False,
    keeping: Keeping = KEEPING,
    where: Where = NOWHERE,
) -> None:
    """Record channels in a journal, until Ctrl-C.

    The journal is a folder, which may hold several channels; one that is there already goes on. If a channel does not
    exist, wait for it. Sources keep what is not on the disk yet, and send it again to a recorder that was killed and
    started anew: nothing is lost or doubled. `echoic journal` looks at what was recorded, `echoic replay` plays it.

    Try:
        echoic record trades --to journals
        echoic record trades quotes --to journals --retain-bytes 10GB --retain-age 7d
        echoic record trades --to journals --for 60 --json
        echoic record trades --to journals --hold

    Args:
        channels: Their names, or their ids echoic://HOST:PORT/NAME.
        to: The folder of the journal.
        seconds: End after so many seconds; the exit code is 3 if a channel was not found in that time.
        hold: At the end, have the sources keep their events until the same journal is recorded again; they wait when
            these are too many.
        quiet: Say nothing but what went wrong.
        as_json: Print what was kept as a line of JSON at the end.
        keeping: How events are kept.
        where: Where to look for the channels.
    """
    _check(channels, seconds, keeping)
    with attend(where, "record") as hub:
        recorders = [Recorder(hub, name, to, keeping, quiet=quiet) for name in channels]
        missing: list[str] = []
        try:
            _watch(recorders, seconds, quiet=quiet)
            missing = [each.recorded().channel for each in recorders if not each.recorded().journal]
        except KeyboardInterrupt:
            pass  # it ends as it would by itself; who has waited enough does not complain that nobody came
        finally:
            for each in recorders:
                each.stop(hold=hold)
        told = [each.recorded() for each in recorders]
    if as_json:
        print(json_text(msgspec.to_builtins(told)), flush=True)
    if not quiet:
        say("\n".join(map(_summary, told)))
    if missing:
        raise ChannelNotFoundError(f"channel '{missing[0]}' was not found in {seconds:g} s (echoic ls)")


def _check(channels: tuple[str, ...], seconds: float | None, keeping: Keeping) -> None:
    """Complain before anything is begun."""
    if not channels:
        raise LocalError("expected the name of a channel: echoic record CHANNEL... --to PATH")
    if len(set(channels)) != len(channels):
        raise LocalError("a channel is named twice")
    if seconds is not None and not 0 < seconds < float("inf"):
        raise LocalError(f"expected --for to be a number of seconds above 0, got {seconds}")
    if keeping.partitions < 1:
        raise LocalError(f"expected at least 1 partition, got {keeping.partitions}")
    keeping.retention()
    bytes_of(keeping.segment_bytes)


class Recorder:
    """Records a channel, wherever it is."""

    def __init__(self, hub: Hub, channel: str, path: Path, keeping: Keeping, *, quiet: bool) -> None:
        self._hub, self._path, self._keeping, self._quiet = hub, path, keeping, quiet
        self._name = channel
        self._recording: Recording | None = None
        self._before = Recorded(channel)
        self.following: Final = Following(hub, channel, self._begin, say)

    def recorded(self) -> Recorded:
        """Return what was kept, also of channels that had the same name."""
        recording, before = self._recording, self._before
        if recording is None:
            return before
        counts = recording.statistics()
        return Recorded(
            self._name,
            recording.journal,
            before.events + counts.events,
            before.bytes + counts.bytes_written,
            before.commits + counts.commits,
            before.duplicates + counts.duplicates,
            recording.heads,
            counts.waiting_bytes,
            counts.trouble,
        )

    def stop(self, *, hold: bool) -> None:
        """Write what has arrived, and record no more."""
        self.following.stop()
        if self._recording is not None:
            self._recording.close(release=not hold)

    def _begin(self, channel: Channel) -> Recording:
        if self._recording is not None:  # the channel of this name is another one: its journal goes on with that
            self._recording.close(release=False)
            self._before = self.recorded()
            self._recording = None
        recording = self._keeping.begin(self._hub, channel, self._path)
        self._recording = recording
        if not self._quiet:
            for text in recording.recovered:
                say_above(f"{self._name}: {text}")
            known = f", which has {sum(recording.heads)} events" if sum(recording.heads) else ""
            say_above(f"recording {channel.id} to {self._path}, journal {recording.journal[:8]}{known}; Ctrl-C ends")
        return recording


def _watch(recorders: list[Recorder], seconds: float | None, *, quiet: bool) -> None:
    """Wait for the end, and show how it goes meanwhile.

    Raises:
        EchoicError: A channel cannot be recorded.
    """
    begun = time.monotonic()
    live = Live([each.recorded() for each in recorders]) if sys.stderr.isatty() and not quiet else None
    try:
        while seconds is None or time.monotonic() < begun + seconds:
            left = WAKE_SECONDS if seconds is None else begun + seconds - time.monotonic()
            time.sleep(max(0.0, min(WAKE_SECONDS, left)))
            for each in recorders:
                if each.following.failure is not None:
                    raise each.following.failure
            if live is not None:
                live.show([each.recorded() for each in recorders])
    finally:
        if live is not None:
            clear_line()


class Live:
    """One line on a terminal that tells how it goes."""

    def __init__(self, told: list[Recorded]) -> None:
        self._shown = time.monotonic()
        self._events = sum(each.events for each in told)

    def show(self, told: list[Recorded]) -> None:
        """Draw the line anew, a few times a second."""
        now, events = time.monotonic(), sum(each.events for each in told)
        if now - self._shown < SHOW_SECONDS:
            return
        rate = (events - self._events) / (now - self._shown)
        self._shown, self._events = now, events
        show_line(live_line(told, rate))


def live_line(told: list[Recorded], rate: float) -> str:
    """Return in one line how it goes: what is on the disk, how fast that grows, and what has arrived but is not yet."""
    events, size = sum(each.events for each in told), sum(each.bytes for each in told)
    waiting = sum(each.waiting_bytes for each in told)
    trouble = next((each.trouble for each in told if each.trouble), "")
    line = f"{events:,} events  {bytes_text(size)}  {rate:,.0f} events/s  lag {bytes_text(waiting)}"
    return printable(f"{line}  TROUBLE: {trouble}" if trouble else line)


def _summary(told: Recorded) -> str:
    if not told.journal:
        return f"recorded nothing of '{told.channel}', which was not found"
    dropped = f", {told.duplicates:,} that came twice" if told.duplicates else ""
    events = f"{told.events:,} event{'s' * (told.events != 1)}"
    return f"recorded {events} of '{told.channel}', {bytes_text(told.bytes)} in {told.commits:,} commits{dropped}"
