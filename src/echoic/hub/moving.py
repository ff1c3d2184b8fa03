"""Moving a sink to another hub, without losing, repeating or reordering an event.

    there   successor = channel.subscribe(handler, paused=True)     gathers events, from `successor.state()` on
    here    state = sink.freeze(until=successor.state())            handles all before that, then stops
    there   successor.resume(state)                                 leaves out what was handled here, and goes on

Between the first and the last step both hubs are sent the events, so that none falls between them. The states are plain
values, for two processes to pass on as they like. (A source moves by `Source.freeze` and `Channel.source(resume=...)`.)
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from echoic.errors import DeliveryError

if TYPE_CHECKING:
    from echoic.hub.switchboard import Switchboard

__all__ = ["SinkState", "SourceState", "quiet", "wait_until"]

POLL_SECONDS: Final = 0.001


class SourceState(msgspec.Struct, frozen=True):
    """A source that was frozen, to go on in another hub. Plain values, so that any codec can carry it."""

    channel: str
    source: int
    position: int


class SinkState(msgspec.Struct, frozen=True):
    """How far a sink has come with each source: the number of the first event that it has not handled."""

    channel: str
    positions: dict[int, int]

    def lacks(self, positions: Mapping[int, int]) -> bool:
        """Whether some events before this state have not arrived where sources stand at `positions`."""
        return any(positions.get(source, 0) < position for source, position in self.positions.items())


def wait_until(
    switchboard: "Switchboard", state: SinkState, positions: Callable[[], Mapping[int, int]], deadline: float
) -> None:
    """Wait until all events before a state have arrived.

    Raises:
        DeliveryError: They have not in time.
    """
    while state.lacks(positions()):
        if time.monotonic() > deadline or switchboard.closed:
            raise DeliveryError({state.channel: "events that the successor will not get have not arrived here yet"})
        time.sleep(POLL_SECONDS)


@contextmanager
def quiet(switchboard: "Switchboard", deadline: float) -> Iterator[None]:
    """Let nothing arrive from other hubs, once every handler that is at work has returned.

    Raises:
        DeliveryError: One has not returned in time, or this is called by one.
    """
    with ExitStack() as held:
        for link in switchboard.links():
            if not link.hold(deadline - time.monotonic()):
                raise DeliveryError({link.neighbour.address: "a handler of its events has not returned"})
            held.callback(link.let_go)
        yield
