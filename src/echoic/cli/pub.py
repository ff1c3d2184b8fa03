"""`echoic pub`: events from the command line or from stdin into a channel."""

import itertools
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from cyclopts import Parameter

from echoic.cli.declaring import declared_type, is_declaration
from echoic.cli.meeting import attend, identity_named
from echoic.cli.publishing import Publisher
from echoic.cli.rendering import as_blocks
from echoic.cli.screen import json_text, say
from echoic.cli.where import NOWHERE, AsJson, Flag, Where, surroundings
from echoic.errors import EchoicError, EncodeError, LocalError
from echoic.formats import Format
from echoic.formats.text_values import fit_event, parse_json, parse_words
from echoic.wire import Batch

__all__ = ["pub"]

ARRIVAL_SECONDS: Final = 1.0
CONFIRM_SECONDS: Final = 5.0
FAILED: Final = 1


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Pace:
    """When events are published."""

    rate: Annotated[
        float | None, Parameter(name=["--rate", "-r"], help="Repeat, so many times a second. [default: 1 with --times]")
    ] = None
    times: Annotated[int | None, Parameter(name=["--times", "-t"], help="End after so many events.")] = None
    once: Annotated[
        bool, Parameter(name=["--once", "-1"], help="Publish one event, which is the default.", negative=())
    ] = False
    wait: Annotated[
        int, Parameter(name=["--wait", "-w"], help="Wait for so many subscribers first; 1 if no number is given.")
    ] = 0
    keep: Annotated[float, Parameter(help="Stay for so many seconds afterwards.")] = 0.0

    def limit(self, *, many: bool) -> int | None:
        """Return how many events to publish, None for all there are."""
        if self.once:
            return 1
        return self.times if self.times is not None or many or self.rate is not None else 1

    def beats(self, *, many: bool) -> Iterator[None]:
        """Yield when it is time for an event. An event that is late does not delay those after it.

        Raises:
            LocalError: The rate is not a rate.
        """
        rate = self.rate if self.rate is not None or many else 1.0
        if rate is not None and not 0 < rate < float("inf"):
            raise LocalError(f"expected a rate above 0, got {rate}")
        begun = time.monotonic()
        for number in itertools.count():
            if rate is not None:
                time.sleep(max(0.0, begun + number / rate - time.monotonic()))
            yield


PACE: Final = Pace()


def pub(
    channel: str,
    /,
    *words: str,
    pace: Pace = PACE,
    stdin: Flag = False,
    every: Annotated[int, Parameter(name=["--print", "-p"])] = 0,
    as_json: AsJson = False,
    where: Where = NOWHERE,
) -> None:
    """Publish events to a channel, and create it if there is none.

    The words are [TYPE] [VALUE]. TYPE is MODULE:CLASS or a declaration; it may be left out if the channel exists. VALUE
    is JSON, the same with fewer quotes, or field=value for each field.

    Try:
        echoic pub trades 'Trade{symbol: str, price: float}' symbol=IBM price=75.5
        echoic pub trades '{symbol: IBM, price: 75.5}' -r 10
        echoic pub trades symbol=IBM price=75.5 -w
        cat trades.jsonl | echoic pub trades mine:Trade --stdin

    Args:
        channel: Its name, or its id echoic://HOST:PORT/NAME.
        words: The type and the value.
        pace: When to publish.
        stdin: Publish each line of stdin, which is JSON.
        every: Print every so many-th event, 0 for none.
        as_json: Print a summary as JSON.
        where: Where to look for the channel.
    """
    declared = declared_type(words[0]) if words and is_declaration(words[0]) else None
    values = words if declared is None else words[1:]
    if stdin and values:
        raise EncodeError("a value is given, and --stdin as well")
    if declared is not None and not stdin:
        _repeated(values, Format.of(declared))  # complains before a channel is created
    with attend(where, "pub") as hub:
        publisher = Publisher(hub, channel, declared, identity_named(surroundings(where).identity))
        events = _lines(publisher.format) if stdin else _repeated(values, publisher.format)
        told = Count()
        try:
            _await(publisher, channel, pace)
            _publish(publisher, events, pace, many=stdin, every=every, told=told)
            time.sleep(pace.keep)
        finally:
            publisher.stop()
            left = publisher.unconfirmed(CONFIRM_SECONDS)
            _summarise(publisher, channel, told, as_json=as_json)
    if left:
        say(f"the recorder of '{channel}' has not confirmed {left} bytes of them: they may be lost")
    if publisher.trouble:
        say(f"some of them may have reached nobody: {publisher.trouble}")
    if left or publisher.trouble:
        sys.exit(FAILED)


@dataclass(slots=True)
class Count:
    """What was done."""

    events: int = 0


def _await(publisher: Publisher, channel: str, pace: Pace) -> None:
    """Wait for those who shall not miss the first event."""
    if pace.wait and publisher.subscribers() < pace.wait:
        say(f"waiting for {pace.wait} subscriber{'s' * (pace.wait > 1)} of '{channel}' (echoic echo {channel})")
        publisher.await_subscribers(pace.wait)
    elif publisher.created:
        publisher.await_subscribers(1, ARRIVAL_SECONDS)  # those who wait for the channel to appear


def _publish(
    publisher: Publisher, events: Iterator[object], pace: Pace, *, many: bool, every: int, told: Count
) -> None:
    render = as_blocks()
    beats, limit = pace.beats(many=many), pace.limit(many=many)
    while limit is None or told.events < limit:
        next(beats)
        event = next(events, None)
        if event is None:
            return
        publisher.submit(event)
        told.events += 1
        if every and told.events % every == 0:
            shown = Batch.of([event], publisher.format).events()[0]
            print(render(shown), end="", flush=True)


def _repeated(words: Sequence[str], format: Format) -> Iterator[object]:
    """Return the event that the words spell, again and again."""
    return itertools.repeat(_checked(parse_words(words), format))


def _lines(format: Format) -> Iterator[object]:
    """Yield an event for each line of stdin."""
    for number, line in enumerate(sys.stdin, 1):
        if not line.strip():
            continue
        try:
            yield _checked(parse_json(line), format)
        except EchoicError as error:
            raise EncodeError(f"{error} - in line {number} of stdin") from error


def _checked(value: object, format: Format) -> object:
    """Return an event that can be encoded, whether or not anybody is there to encode it for.

    Raises:
        EncodeError: It cannot be.
    """
    event = fit_event(value, format)
    Batch.of([event], format)
    return event


def _summarise(publisher: Publisher, channel: str, told: Count, *, as_json: bool) -> None:
    id, sent = publisher.channel.id, publisher.bytes_sent()
    if as_json:
        print(json_text({"channel": id, "events": told.events, "bytes": sent}), flush=True)
    say(f"published {told.events} event{'s' * (told.events != 1)} to {id}")
    if told.events and not sent:
        say(f"nobody is subscribed: -w waits for a subscriber, such as `echoic echo {channel}`")
