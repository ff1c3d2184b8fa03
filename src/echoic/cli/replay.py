"""`echoic replay`: a recording flows through a channel once more, at any pace, driven by keys."""

import math
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from echoic.channels import ChannelId
from echoic.cli.journals import channel_of, channels_in, is_journal
from echoic.cli.keyboard import keyboard
from echoic.cli.meeting import attend
from echoic.cli.progress import clear_line, say_above, show_line
from echoic.cli.screen import json_text, say
from echoic.cli.where import NOWHERE, AsJson, Flag, Text, Where
from echoic.errors import DeliveryError, LocalError
from echoic.hub import Hub, Replay, ReplayStatistics
from echoic.recorder import Hole

__all__ = ["replay"]

LOOK_SECONDS: Final = 0.1
ARRIVAL_SECONDS: Final = 1.0
DRAIN_SECONDS: Final = 30.0
RATE_MIN: Final = 2.0**-10
RATE_MAX: Final = 2.0**20
KEYS: Final = "space pauses, n steps, + and - change the rate, 1 as recorded, 0 full speed, q quits"


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Pace:
    """When events are submitted."""

    rate: Annotated[
        float, Parameter(name=["--rate", "-r"], help="How many times as fast as recorded; 0 for as fast as possible.")
    ] = 1.0
    loop: Annotated[int, Parameter(help="Replay so many times; 0 for ever.")] = 1
    paused: Annotated[bool, Parameter(help="Begin paused; needs a terminal.", negative=())] = False
    step: Annotated[int, Parameter(help="How many events go at a press of n; 0 for a batch.")] = 0
    gap: Annotated[
        float, Parameter(help="Wait for at most so many recorded seconds between two batches; inf for any.")
    ] = 60.0
    wait: Annotated[int, Parameter(name=["--wait", "-w"], help="Wait for so many subscribers first.")] = 0


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Part:
    """Which events are replayed."""

    start: Annotated[int | None, Parameter(help="The sequence number of the first.")] = None
    end: Annotated[int | None, Parameter(help="The sequence number behind the last.")] = None
    since: Annotated[str | None, Parameter(help="When the first was recorded, as 2026-11-16T13:00:00.")] = None
    until: Annotated[str | None, Parameter(help="The time behind the last.")] = None
    partition: Annotated[int | None, Parameter(help="The only partition; all if nothing is said.")] = None


PACE: Final = Pace()
ALL: Final = Part()


def replay(  # noqa: PLR0913 - every one has a default, and is named by the caller
    path: Path,
    /,
    *,
    channel: Annotated[Text, Parameter(name=["--channel", "-c"])] = "",
    recorded: Text = "",
    pace: Pace = PACE,
    part: Part = ALL,
    stamp: Text = "",
    skip_holes: Flag = False,
    as_json: AsJson = False,
    where: Where = NOWHERE,
) -> None:
    """Replay a recording into a channel, which is created if there is none.

    Sources stay apart and events in order, and those of different types keep theirs. On a terminal, space pauses, n
    steps, + and - change the rate, 1 is as recorded, 0 full speed, q quits.

    Try:
        echoic replay journals
        echoic replay journals --rate 10 --since 2026-11-16T13:00 --until 2026-11-16T13:05
        echoic replay journals --channel rehearsal --paused --step 1
        echoic replay journals --rate 0 --loop 3 -w 1 --json

    Args:
        path: The folder of the journal.
        channel: The name or id of the channel to replay into; that of the recorded one if nothing is said.
        recorded: Which of the recorded channels, if there are several.
        pace: When to submit.
        part: What to replay.
        stamp: A field of 64 bits into which the recorded time is written.
        skip_holes: Go on behind events that cannot be read.
        as_json: Print a summary as JSON.
        where: Where to look for the channel.
    """
    _check(pace)
    place, name = _recording(path, recorded, channel)
    with (
        attend(where, "replay") as hub,
        hub.replay(
            place,
            channel,
            pace.rate,
            recorded=name,
            start=part.start,
            end=part.end,
            since=part.since,
            until=part.until,
            partition=part.partition,
            loop=pace.loop,
            paused=True,
            gap_seconds_max=pace.gap,
            stamp=stamp,
            on_hole=_tell_hole if skip_holes else None,
        ) as running,
    ):
        _await(hub, running, pace.wait)
        begun = time.monotonic()
        try:
            _drive(running, pace)
        finally:
            _summarise(running, time.monotonic() - begun, as_json=as_json)


def _check(pace: Pace) -> None:
    """Complain before anything is begun."""
    if pace.paused and not sys.stdin.isatty():
        raise LocalError("--paused needs somebody to press a key, and stdin is not a terminal")
    for option, value in (("--step", pace.step), ("--gap", pace.gap), ("--wait", pace.wait)):
        if not value >= 0:  # also what is no number
            raise LocalError(f"expected {option} to be 0 or more, got {value}")


def _recording(path: Path, recorded: str, channel: str) -> tuple[Path, str]:
    """Return where the recording is and its name: the one named, or that of the channel, or the only one.

    Raises:
        ChannelNotFoundError: It is not there.
        LocalError: There are several, and none is named.
    """
    if not recorded and not is_journal(path) and channel in channels_in(path):
        return path, channel
    return channel_of(path, recorded, "--recorded")


def _await(hub: Hub, running: Replay, wanted: int) -> None:
    """Wait for those who shall not miss the first event."""
    id = running.channel.id
    mine = ChannelId.parse(id).address == hub.address
    deadline = math.inf if wanted else time.monotonic() + (ARRIVAL_SECONDS if mine else 0)
    if wanted:
        say(f"waiting for {wanted} subscriber{'s' * (wanted > 1)} of '{running.channel.name}'")
    while time.monotonic() < deadline and _subscribers(hub, id) < (wanted or 1):
        time.sleep(LOOK_SECONDS)


def _subscribers(hub: Hub, id: str) -> int:
    return sum(max(1, len(sink.sinks)) for sink in hub.describe(id).sinks)


def _drive(running: Replay, pace: Pace) -> None:
    """Let the replay run, and do as keys say, until its end.

    Raises:
        EchoicError: It failed.
    """
    with keyboard() as keys:
        if keys.present:
            say(KEYS)
        if not pace.paused:
            running.resume()
        try:
            while not running.wait(0.0 if keys.present else LOOK_SECONDS):
                show_line(_line(running.statistics()))
                key = keys.key(LOOK_SECONDS)
                if key == "q":
                    return
                _obey(running, key, pace.step)
        finally:
            clear_line()
    try:
        running.drain(DRAIN_SECONDS)
    except DeliveryError as error:  # which is theirs: they left, or are too slow
        say(f"some subscribers did not take all of it: {error}")


def _obey(running: Replay, key: str, step: int) -> None:
    """Do what a key stands for."""
    rate = running.rate
    match key:
        case " " if running.state == "paused":
            running.resume()
        case " ":
            running.pause()
        case "n":
            running.step(step)
        case "+" | "=":
            running.rate = rate if math.isinf(rate) else min(rate * 2, RATE_MAX)
        case "-":
            running.rate = 1.0 if math.isinf(rate) else max(rate / 2, RATE_MIN)
        case "1":
            running.rate = 1.0
        case "0":
            running.rate = math.inf
        case _:
            pass  # no key, or one that means nothing


def _line(told: ReplayStatistics) -> str:
    total = sum(end - first for first, end in told.bounds)
    done = sum(position - first for position, (first, _) in zip(told.positions, told.bounds, strict=True))
    parts = [
        f"{told.events} events",
        f"{100 * done // total if total else 100}%",
        _clock_text(told.time_ns),
        told.state if told.state == "paused" else _rate_text(told.pace.rate),
        f"lag {told.pace.lag_ns / 1e9:.1f} s" if told.pace.lag_ns > 100_000_000 else "",
        f"pass {told.passes + 1}" if told.passes else "",
    ]
    return "  ".join(part for part in parts if part)


def _clock_text(time_ns: int | None) -> str:
    """Return a recorded time, "" for one that no calendar has."""
    try:
        return "" if time_ns is None else f"{datetime.fromtimestamp(time_ns / 1e9, UTC):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        return ""


def _rate_text(rate: float) -> str:
    return "full speed" if math.isinf(rate) else f"{rate:g}x"


def _tell_hole(hole: Hole) -> None:
    say_above(f"events {hole.first} to {hole.last} of partition {hole.partition} cannot be read: {hole.reason}")


def _summarise(running: Replay, seconds: float, *, as_json: bool) -> None:
    told = running.statistics()
    summary = {
        "channel": running.channel.id,
        "state": told.state,
        "events": told.events,
        "batches": told.batches,
        "sources": told.sources,
        "passes": told.passes,
        "holes": told.holes,
        "positions": told.positions,
        "seconds": seconds,
        "lag_seconds_max": told.pace.lag_ns_max / 1e9,
    }
    if as_json:
        print(json_text(summary), flush=True)
    say(f"replayed {told.events} event{'s' * (told.events != 1)} to {running.channel.id} in {seconds:.1f} s")
