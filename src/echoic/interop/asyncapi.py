"""The channels of a hub, or of all that a name server knows, as an AsyncAPI 3.0 document.

    AsyncAPI      here
    server        a hub that manages channels; its protocol is `echoic`
    channel       a channel; the address is its name
    message       an event; the payload is its JSON Schema, as `echoic echo --json` prints it
    operation     `submit.NAME` (send) and `subscribe.NAME` (receive), as a program sees them that takes part

A derived channel is computed inside the sources of another, so nobody submits to it: it has one operation, and
`x-echoic-derivation` says of what it is derived and by which code. Types are described once, however many channels have
them; two that differ and have one name are told apart by their tokens.

AsyncAPI has JSON and YAML as its texts. JSON is YAML too, so this one is enough.

Names of channels come from other processes. They are letters, digits and `_-./` (`check_channel_name`), and any other
is left out here, so that nothing in a document can stand for more than itself.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from echoic.channels import ChannelId, check_channel_name
from echoic.errors import AddressError
from echoic.formats import Format
from echoic.interop.json_schema import event_schema

__all__ = ["CHANNELS_MAX", "DescribedChannel", "asyncapi_document"]

VERSION: Final = "3.0.0"
CHANNELS_MAX: Final = 10_000
PERSPECTIVE: Final = (
    "Operations are those of a program that takes part: it sends what it submits, and receives what it subscribes to. "
    "Between hubs events travel in binary form, as their sender has them in memory; payloads are described here as "
    "`echoic echo --json` prints them."
)


class DescribedChannel(msgspec.Struct, frozen=True):
    """What a document says of a channel."""

    id: str
    format: Format | None
    parent: str = ""
    """The name of the channel it is derived from, "" if it is not derived."""
    code: str = ""
    spelling: str = ""


def asyncapi_document(channels: Iterable[DescribedChannel], title: str, version: str = "1.0.0") -> dict[str, object]:
    """Return the document of some channels, made of dicts, lists, texts and numbers.

    Args:
        channels: At most `CHANNELS_MAX` of them are described.
        title: What the whole is called.
        version: That of the document, as its readers are to see it.
    """
    book = _Book()
    for channel in sorted(channels, key=lambda channel: channel.id)[:CHANNELS_MAX]:
        book.enter(channel)
    return {
        "asyncapi": VERSION,
        "info": {"title": title, "version": version, "description": PERSPECTIVE},
        "defaultContentType": "application/json",
        "servers": book.servers,
        "channels": book.channels,
        "operations": book.operations,
        "components": {"messages": book.messages, "schemas": book.schemas},
    }


class _Book:
    """A document that is being written."""

    def __init__(self) -> None:
        self.servers: dict[str, object] = {}
        self.channels: dict[str, object] = {}
        self.operations: dict[str, object] = {}
        self.messages: dict[str, object] = {}
        self.schemas: dict[str, object] = {}
        self._server_of: dict[str, str] = {}
        self._message_of: dict[int, str] = {}

    def enter(self, channel: DescribedChannel) -> None:
        """Describe a channel, unless its name or address cannot be one."""
        try:
            id = ChannelId.parse(channel.id)
            check_channel_name(id.name)
        except AddressError:
            return
        key = _free(id.name.replace("/", "."), self.channels)
        message = self._message(channel.format)
        self.channels[key] = {
            "address": id.name,
            "title": id.name,
            "servers": [_reference("servers", self._server(id.address))],
            "messages": {message: _reference("components/messages", message)},
            "x-echoic-id": channel.id,
            **_derivation(channel),
        }
        self._operate(key, message, derived=bool(channel.parent))

    def _operate(self, key: str, message: str, *, derived: bool) -> None:
        channel = _reference("channels", key)
        messages = [_reference(f"channels/{key}/messages", message)]
        if not derived:
            self.operations[f"submit.{key}"] = {"action": "send", "channel": channel, "messages": messages}
        self.operations[f"subscribe.{key}"] = {"action": "receive", "channel": channel, "messages": messages}

    def _server(self, address: str) -> str:
        if address not in self._server_of:
            name = self._server_of[address] = f"hub-{len(self._server_of) + 1}"
            self.servers[name] = {
                "host": address,
                "protocol": "echoic",
                "description": "A hub that manages channels.",
            }
        return self._server_of[address]

    def _message(self, format: Format | None) -> str:
        """Return the name of a type's message, which is entered when it is the first."""
        token = format.token if format is not None else 0
        if token not in self._message_of:
            wanted = format.name if format is not None else "untyped"
            name = wanted if wanted not in self.messages else f"{wanted}-{token:016x}"
            self._message_of[token] = name
            self.messages[name] = self._told(name, format)
        return self._message_of[token]

    def _told(self, name: str, format: Format | None) -> dict[str, object]:
        if format is None:
            return {"name": name, "summary": "Any event: its source says of which type it is."}
        self.schemas[name] = event_schema(format)
        payload = _reference("components/schemas", name)
        return {"name": format.name, "contentType": "application/json", "payload": payload}


def _derivation(channel: DescribedChannel) -> dict[str, object]:
    if not channel.parent:
        return {}
    derivation = {"parent": channel.parent, "spelling": channel.spelling, "code": channel.code}
    return {"x-echoic-derivation": derivation}


def _reference(place: str, key: str) -> dict[str, str]:
    return {"$ref": f"#/{place}/{key}"}


def _free(wanted: str, taken: dict[str, object]) -> str:
    """Return a key that nobody has: `a.b`, `a.b-2`, and so on."""
    key, number = wanted, 1
    while key in taken:
        number += 1
        key = f"{wanted}-{number}"
    return key
