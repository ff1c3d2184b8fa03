"""The channels of `echoic demo`: a name server, two processes that publish, a recorder, and a desk that listens.

    exchange   ── trades ──┬── recorder: journals/
    (process)              ├── odd_lots ─────┐
                           └── one_symbol    │   for who looks at it in the viewer
    atmosphere ── wind ────┬── recorder      ├── desk
    (process)              └── layer_means ──┘

Recorder and desk are hubs in the process of the demo, and two, because it is between hubs that events are sent: what a
derivation saves is what the desk's hub does not get.
"""

import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from echoic.cli.demo_events import LAYER_MEANS, LOT, ODD_LOTS, ONE_SYMBOL, LayerMeans, Tick, Trade, Wind
from echoic.cli.demo_plot import Saving
from echoic.cli.demo_results import Live
from echoic.cli.demo_stage import Actor, Report
from echoic.errors import ChannelNotFoundError, UnreachableError
from echoic.hub import Channel, Hub, Recording

__all__ = ["LiveChannels"]

OPEN_SECONDS_MAX: Final = 60.0
LOOK_SECONDS: Final = 0.02


class LiveChannels:
    """Everything that is live; leaving its `with` ends it."""

    def __init__(self, address: str, journals: Path | None) -> None:
        """Start all of it, and return when the channels are open; nothing is published yet.

        Args:
            address: Where names are served, if that is free; anywhere on this machine otherwise.
            journals: Where channels are recorded; without a place nothing is kept, and it can go on for ever.

        Raises:
            EchoicError: Something did not come up.
        """
        self.live: Final = Live([], [], [])
        with ExitStack() as stack:
            self.names: Final = stack.enter_context(_name_server(address)).address
            self._actors = [
                stack.enter_context(Actor(f"echoic.cli.demo_{module}", self.names, recorded=journals is not None))
                for module in ("exchange", "weather")
            ]
            self._desk = stack.enter_context(Hub(names=self.names, name="desk"))
            trades = self._opened("trades", Trade)
            wind = self._opened("wind", Wind)
            self._derived = (
                trades.derive(ODD_LOTS, params={"lot": LOT}, name="odd_lots"),
                wind.derive(LAYER_MEANS, LayerMeans, name="layer_means"),
            )
            trades.derive(ONE_SYMBOL, params={"symbol": "IBM", "volume": 1000}, name="one_symbol")  # for who looks
            self._derived[0].subscribe(self.live.odd_lots.append if journals else _pass_over)
            self._derived[1].subscribe(self.live.layer_means.append if journals else _pass_over)
            self._recordings: dict[str, Recording] = {}
            if journals:
                recorder = stack.enter_context(Hub(names=self.names, name="recorder"))
                self._recordings = {name: recorder.record(name, journals) for name in ("trades", "wind")}
            self._resources = stack.pop_all()

    @property
    def recorded(self) -> dict[str, int]:
        """How many events are in the journal of each channel."""
        return {name: sum(recording.heads) for name, recording in self._recordings.items()}

    def go(self) -> None:
        """Have the processes publish."""
        for actor in self._actors:
            actor.go()

    def end(self) -> list[Report]:
        """Have the processes end, and return what the exchange and the atmosphere have published, all of it recorded.

        Raises:
            UnreachableError: One of them does not say.
        """
        for actor in self._actors:
            actor.end()
        return [actor.report() for actor in self._actors]

    def listen(self, channel: str) -> None:
        """Listen to the results of the pipeline.

        Raises:
            EchoicError: The channel cannot be opened.
        """
        self._desk.open(channel).subscribe(self.live.ticks.append, Tick)

    def savings(self) -> list[Saving]:
        """Return what the derived channels have done inside the sources.

        Raises:
            EchoicError: A source does not answer.
        """
        return [_saving(channel) for channel in self._derived]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.close()

    def _opened(self, name: str, declared: type) -> Channel:
        """Open a channel as soon as its process has created it.

        Raises:
            UnreachableError: It has not in time.
        """
        deadline = time.monotonic() + OPEN_SECONDS_MAX
        while time.monotonic() < deadline and not any(actor.gone for actor in self._actors):
            try:
                return self._desk.open(name, declared)
            except ChannelNotFoundError:
                time.sleep(LOOK_SECONDS)
        raise UnreachableError(f"nobody has created channel `{name}` at {self.names}")


def _pass_over(_: object) -> None:
    """Listen, so that there is somebody to derive for."""


def _name_server(address: str) -> Hub:
    try:
        return Hub(address, name="names")
    except UnreachableError:  # somebody else serves names there, and may have channels of these names
        return Hub(name="names")


def _saving(channel: Channel) -> Saving:
    counts = channel.derivation.counts().values() if channel.derivation else ()
    return Saving(
        channel.name,
        sum(each.events_in for each in counts),
        sum(each.events_out for each in counts),
        sum(each.bytes_in for each in counts),
        sum(each.bytes_saved for each in counts),
    )
