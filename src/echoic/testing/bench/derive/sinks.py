"""The processes that listen: each opens a channel, derives from it what it is told, and counts what arrives."""

from typing import TYPE_CHECKING, Final

from echoic.testing.bench.contest import Setup
from echoic.testing.bench.control import Argument, Control
from echoic.testing.bench.derive.figures import FIGURE_5, Atmosphere, Average, Trade

if TYPE_CHECKING:
    from collections.abc import Callable

    from echoic import Batch

__all__ = ["ARRAYS", "SETUP", "TRADES", "listen_to_arrays", "listen_to_trades"]

TRADES, ARRAYS = (f"{__name__}:{name}" for name in ("listen_to_trades", "listen_to_arrays"))
SETUP: Final = Setup("100 B")


def listen_to_trades(control: Control, setup: Setup, argument: Argument) -> None:  # noqa: ARG001 - for other peers
    """Count trades, all of them or those that `code` lets pass; this runs in the peer."""
    from echoic import Hub

    with Hub() as hub:
        channel = hub.open(str(argument["id"]), Trade)
        if argument["code"]:
            channel = channel.derive(str(argument["code"]))
        channel.subscribe(_counting(control), batch=True)
        control.ready()
        control.wait()


def listen_to_arrays(control: Control, setup: Setup, argument: Argument) -> None:  # noqa: ARG001 - for other peers
    """Count arrays, or their averages; this runs in the peer."""
    from echoic import Hub

    with Hub() as hub:
        channel = hub.open(str(argument["id"]), Atmosphere)
        if argument["averaged"]:
            channel = channel.derive(FIGURE_5.code, output=Average)
        channel.subscribe(_counting(control), batch=True)
        control.ready()
        control.wait()


def _counting(control: Control) -> "Callable[[Batch], None]":
    count = control.tally.events

    def handle(batch: "Batch") -> None:
        count(len(batch))

    return handle
