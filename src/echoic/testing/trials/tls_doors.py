"""Doors: where a stranger may knock, and whoever of us may knock at a stranger's.

A door is opened with a good identity, and says at which address it is, what a peer would say first there, and which
words must never be heard by a stranger. A knock is the other direction: something of ours dials an address, where
somebody listens who must be refused, and tells it nothing.

Whoever adds a kind of connection to echoic adds a row to `DOORS`, and one to `KNOCKS` if it dials.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec

from echoic.engines.embedded import GROUP_FEATURE
from echoic.errors import EchoicError
from echoic.formats import event
from echoic.groups.messages import Introduction
from echoic.hub import Hub
from echoic.links import Identity
from echoic.wire import FrameKind, Hello, encode_frame, encode_hello

__all__ = ["DOORS", "KNOCKS", "SECRETS", "Door", "Knock", "Opened"]

HUB_NAME: Final = "hidden-hub"
CHANNEL: Final = "hidden-channel"
GROUP: Final = "hidden-group"
SECRETS: Final = (HUB_NAME, CHANNEL, GROUP, "hidden_field", "HiddenEvent")
LOOPBACK: Final = "127.0.0.1:0"
KNOCK_SECONDS: Final = 1.0


@event
class HiddenEvent:
    """What nobody must hear of."""

    hidden_field: float


@dataclass(frozen=True, slots=True)
class Opened:
    """A door that is open."""

    address: str
    piece: bytes
    """What a peer says first."""
    secrets: tuple[str, ...]
    """What must not be heard by whoever is refused."""
    welcome: bytes = b"\1"
    """How begins what somebody good is told."""


Door: TypeAlias = Callable[[Identity], AbstractContextManager[Opened]]
"""Opens a door with an identity."""
Knock: TypeAlias = Callable[[Identity, str], None]
"""Dials an address with an identity, and returns when it has been refused, or has given up."""


@contextlib.contextmanager
def hub_link(identity: Identity) -> Iterator[Opened]:
    """Give a hub with a channel, to which hubs connect."""
    with Hub(LOOPBACK, name=HUB_NAME, identity=identity) as hub:
        hub.create(CHANNEL, HiddenEvent)
        hello = Hello(name="knocks", hub="0" * 32, address="127.0.0.1:1")
        yield Opened(hub.address, _frames([encode_hello(hello)]), (*SECRETS, hub.address))


@contextlib.contextmanager
def group_member_link(identity: Identity) -> Iterator[Opened]:
    """Give a hub that is a member of a group, to which other members connect."""
    with Hub(LOOPBACK, name=HUB_NAME, identity=identity) as hub:
        peers = {"a": hub.address, "b": "127.0.0.1:1"}
        hub.join(GROUP, HiddenEvent, me="a", peers=peers)
        hello = Hello(features=(GROUP_FEATURE,), name="b")
        introduction = msgspec.msgpack.encode(Introduction(GROUP, "b", 1, "127.0.0.1:1"))
        yield Opened(hub.address, _frames([encode_hello(hello), introduction]), (*SECRETS, hub.address))


def hub_dials(identity: Identity, address: str) -> None:
    """Open a channel at an address."""
    with Hub(LOOPBACK, name=HUB_NAME, identity=identity) as hub, contextlib.suppress(EchoicError):
        hub.open(f"echoic://{address}/{CHANNEL}", HiddenEvent)


def group_member_dials(identity: Identity, address: str) -> None:
    """Look for the other member of a group at an address, for a while."""
    with Hub(LOOPBACK, name=HUB_NAME, identity=identity) as hub:
        hub.join(GROUP, HiddenEvent, me="a", peers={"a": hub.address, "b": address})
        threading.Event().wait(KNOCK_SECONDS)


DOORS: Final[dict[str, Door]] = {"hub link": hub_link, "group member link": group_member_link}
KNOCKS: Final[dict[str, Knock]] = {"hub link": hub_dials, "group member link": group_member_dials}


def _frames(payloads: Sequence[bytes]) -> bytes:
    kinds = (FrameKind.HELLO, FrameKind.GROUP)
    return b"".join(
        bytes(piece)
        for kind, payload in zip(kinds, payloads, strict=False)
        for piece in encode_frame(kind, [payload], checked=False)
    )
