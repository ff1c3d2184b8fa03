"""Journals on the command line: which one is meant, which of its events, and what cannot be read."""

import difflib
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Annotated, Final
from urllib.parse import unquote

from cyclopts import Parameter

from echoic.cli.screen import say
from echoic.errors import ChannelNotFoundError, JournalError, LocalError
from echoic.recorder import Hole, Journal, Selection

__all__ = ["EVERYTHING", "Events", "HoleTeller", "channel_of", "channels_in", "is_journal", "mode_of", "open_journal"]

INFO: Final = "journal.json"


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Events:
    """Which events."""

    start: Annotated[int | None, Parameter(help="From this sequence number on.")] = None
    end: Annotated[int | None, Parameter(help="Before this sequence number.")] = None
    since: Annotated[
        str, Parameter(help="Recorded at this time or later: 2026-11-16T13:25, or ns since 1970.", show_default=False)
    ] = ""
    until: Annotated[str, Parameter(help="Recorded before this time.", show_default=False)] = ""
    partition: Annotated[int | None, Parameter(help="Only this partition.")] = None
    columns: Annotated[str, Parameter(help="Only these fields, with commas: symbol,price", show_default=False)] = ""
    where: Annotated[
        str, Parameter(help="Only events for which this E-Code is true: 'input.price < 75'", show_default=False)
    ] = ""

    skip_holes: Annotated[
        bool,
        Parameter(help="Go on behind events that cannot be read, and tell of them.", negative=(), show_default=False),
    ] = False

    @property
    def selection(self) -> Selection:
        """What the options say."""
        return Selection(
            start=self.start,
            end=self.end,
            partition=self.partition,
            since=_moment(self.since),
            until=_moment(self.until),
            columns=[name.strip() for name in self.columns.split(",")] if self.columns else None,
            where=self.where,
        )


EVERYTHING: Final = Events()


def mode_of(path: Path) -> int:
    """Return what a path names, as `stat` does; 0 for nothing.

    Raises:
        JournalError: That may not be known.
    """
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except OSError as error:
        raise JournalError(f"cannot look at {path}: {error.strerror}") from error


def is_journal(path: Path) -> bool:
    """Return whether a path names the journal of one channel, not the directory around it.

    Raises:
        JournalError: That may not be known.
    """
    return S_ISREG(mode_of(path / INFO))


def channels_in(path: Path) -> list[str]:
    """Return the channels of which there are journals in a directory.

    Raises:
        ChannelNotFoundError: There is none.
        JournalError: The directory cannot be read.
    """
    mode = mode_of(path)
    found = Journal.channels(path) if S_ISDIR(mode) else []
    if not found:
        what = "there is no directory" if not mode else "there are no journals in"
        raise ChannelNotFoundError(f"{what} {path}{_hint(path)}")
    return found


def _hint(path: Path) -> str:
    """Return what may help: segments are the events themselves, all else can be made again."""
    lost = sorted(unquote(name) for name in {each.parts[-3] for each in path.glob("*/*/*.segment")})
    if not lost:
        return " (echoic record --help)"
    return f", but segments of '{lost[0]}' without {INFO} (echoic journal recover {path} --channel {lost[0]})"


def channel_of(path: Path, channel: str, option: str = "--channel") -> tuple[Path, str]:
    """Return the directory of journals and the one that is meant; the path may name the journal itself.

    Raises:
        ChannelNotFoundError: It is not there; the message has the nearest names.
        LocalError: There are several, and none is named.
    """
    place = path
    if not channel and is_journal(place):
        place, channel = place.absolute().parent, unquote(place.absolute().name)
    known = channels_in(place)
    if channel in known:
        return place, channel
    if channel:
        near = difflib.get_close_matches(channel, known, n=2, cutoff=0.7)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise ChannelNotFoundError(f"channel '{channel}' not found in {place}{hint} (echoic journal info {place})")
    if len(known) > 1:
        raise LocalError(f"there are {len(known)} channels in {place}, name one by {option}: {', '.join(known[:20])}")
    return place, known[0]


def open_journal(path: Path, channel: str) -> Journal:
    """Open the journal that is meant.

    Raises:
        ChannelNotFoundError: It is not there.
        JournalError: It cannot be read.
        LocalError: There are several, and none is named.
    """
    return Journal(*channel_of(path, channel))


class HoleTeller:
    """Tells of events that cannot be read, once for each stretch; ends the work unless they may be skipped."""

    def __init__(self, *, skip: bool) -> None:
        self.events = 0
        self._skip = skip

    def __call__(self, hole: Hole) -> None:
        """Tell of a hole.

        Raises:
            JournalError: Holes may not be skipped.
        """
        count = hole.last - hole.first + 1
        which = f"{hole.first} to {hole.last}" if count > 1 else f"number {hole.first}"
        told = f"{count} event{'s' * (count != 1)} of partition {hole.partition} cannot be read, {which}: {hole.reason}"
        if not self._skip:
            raise JournalError(f"{told}; --skip-holes goes on behind, `echoic journal verify` shows damage")
        self.events += count
        say(told)


def _moment(text: str) -> str | int | None:
    return int(text) if text.lstrip("-").isdecimal() else text or None
