"""The actors of the threat model, each with what he may do, and how each right is put to the test.

    actor      what he is                                          may
    stranger   has a certificate of another authority              nothing, and is not let in
    sink       receives, and has code run at the source            subscribe, derive
    source     publishes                                           publish
    author     ships Python                                        subscribe, modulate
    manager    keeps the book of channels                          admin
    viewer     looks and steers                                    subscribe, steer
    job        reads one channel and writes another                subscribe, publish

Each tries everything. `attempt` does it for real, by the public interface and over TLS, and returns whether it worked.
"""

from collections.abc import Callable
from typing import Final

from echoic import Channel, Hub, Modulator
from echoic.errors import ChannelNotFoundError, DeniedError, RefusedError, UnreachableError
from echoic.rights import Right
from echoic.testing.samples import Trade

__all__ = ["ACTORS", "CHANNEL", "NAMES", "PASSING", "STRANGER", "attempt", "rules_text"]

CHANNEL: Final = "trades"
NAMES: Final = "lab/*"
"""The channels that an actor with `admin` may create."""
PASSING: Final = Trade("PASS", 1.0, 1)
STRANGER: Final = "stranger"
REFUSALS: Final = (ChannelNotFoundError, DeniedError, UnreachableError)

ACTORS: Final[dict[str, tuple[Right, ...]]] = {
    STRANGER: (),
    "sink": ("subscribe", "derive"),
    "source": ("publish",),
    "author": ("subscribe", "modulate"),
    "manager": ("admin",),
    "viewer": ("subscribe", "steer"),
    "job": ("subscribe", "publish"),
}


def rules_text() -> str:
    """Return the rules that give each actor just what he may do, and the exchange what it needs."""
    lines = ["allow exchange * *", "allow desk subscribe *", "allow auditor subscribe echoic/audit"]
    for name, rights in ACTORS.items():
        if rights:
            channels = NAMES if rights == ("admin",) else CHANNEL
            lines.append(f"allow {name} {','.join(rights)} {channels}")
    return "\n".join(lines)


class Pass(Modulator):
    """Lets every event pass."""

    def enqueue(self, event: object) -> None:
        """Let it pass."""
        super().enqueue(event)


def attempt(right: Right, hub: Hub, channel: str, provoke: Callable[[], None], arrived: Callable[[], bool]) -> bool:
    """Try to use a right; return whether that worked.

    Args:
        right: Which.
        hub: The hub of the actor.
        channel: The id of the channel.
        provoke: Has the exchange publish an event, and waits until it is handled.
        arrived: Tells whether an event has arrived at a sink that hears everybody, since it was asked last.
    """
    try:
        match right:
            case "publish":
                hub.open(channel, Trade).source().submit_sync(PASSING)
                return arrived()
            case "subscribe":
                return _heard(provoke, lambda into: hub.open(channel, Trade).subscribe(into.append))
            case "derive":
                return _heard(provoke, lambda into: _derived(hub.open(channel, Trade)).subscribe(into.append))
            case "modulate":
                opened = hub.open(channel, Trade)
                return _heard(provoke, lambda into: opened.subscribe(into.append, modulator=Pass()))
            case "steer":
                return bool(hub.open(channel, Trade).steer("start"))
            case "admin":
                hub.create(f"{NAMES.rstrip('*')}{hub.address.rpartition(':')[2]}", Trade)
                return True
    except REFUSALS:
        return False
    except RefusedError as error:  # a manager tells by it why a source did not do as asked
        if "may not" in str(error):
            return False
        raise


def _derived(channel: Channel) -> Channel:
    return channel.derive("{ return 1; }")


def _heard(provoke: Callable[[], None], listen: Callable[[list[Trade]], object]) -> bool:
    into: list[Trade] = []
    listen(into)
    provoke()
    return bool(into)
