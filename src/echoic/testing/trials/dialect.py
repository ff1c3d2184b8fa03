"""What hubs of other versions say, made of what hubs of this one say: a dialect changes frames on their way.

A hub of tomorrow says more than one of today understands: higher numbers, further features, further keys, frames of
further kinds. One of yesterday says less. Whatever is changed is left as a hub could have said it.
"""

import random
from typing import Final, TypeAlias

import msgspec

from echoic.wire import Buffer, Frame, FrameKind
from echoic.wire.frames import HEADER, PADDING, encode_frame
from echoic.wire.hello import MAGIC

__all__ = ["DIALECTS", "Dialect"]

Fields: TypeAlias = dict[str, object]

OPTIONAL: Final = frozenset(
    {"lineage", "heard", "derivations", "parent", "context", "instead", "handle", "successor", "turned", "turns"}
)
"""Keys of messages that hubs of the first days did not know, and that have defaults."""
STRANGE_KIND_MIN: Final = 100
STRANGE_BYTES_MAX: Final = 300


class Dialect:
    """How a hub of another version speaks; this one changes nothing."""

    def __init__(self, chance: random.Random) -> None:
        self.chance: Final = chance
        self.changed = 0
        """How many frames were changed, or put between others."""

    def say(self, frame: Frame) -> list[Buffer]:
        """Return what is said in place of a frame."""
        match frame.kind:
            case FrameKind.HELLO:
                fields = msgspec.msgpack.decode(frame.payload[len(MAGIC) :])
                payload = MAGIC + msgspec.msgpack.encode(self.hello(fields))
            case FrameKind.CONTROL:
                number, reply, fields = msgspec.msgpack.decode(frame.payload, strict=False)
                payload = msgspec.msgpack.encode([number, reply, self.message(fields)])
            case _:
                return [*self.between(), *encode_frame(frame.kind, [frame.payload], channel=frame.channel)]
        self.changed += payload != frame.payload
        return encode_frame(frame.kind, [payload], channel=frame.channel)

    def hello(self, fields: Fields) -> Fields:
        """Return what a hello says."""
        return fields

    def message(self, fields: Fields) -> Fields:
        """Return what a message says."""
        return fields

    def between(self) -> list[Buffer]:
        """Return what is said before a frame of events, acknowledgements or the like."""
        return []


class Minor(Dialect):
    """One with additions that are only told of."""

    def hello(self, fields: Fields) -> Fields:
        """Return what a hello says."""
        return {**fields, "minor": self.chance.randint(1, 1000)}


class Featureless(Dialect):
    """One that can do nothing but what all can: no large events."""

    def hello(self, fields: Fields) -> Fields:
        """Return what a hello says."""
        kept = {name: value for name, value in fields.items() if name != "event_bytes_max"}
        return {**kept, "features": []}


class Featured(Dialect):
    """One that can do what nobody here has heard of."""

    def hello(self, fields: Fields) -> Fields:
        """Return what a hello says."""
        known = fields["features"]
        strange = [f"tomorrow-{self.chance.randrange(1000)}" for _ in range(self.chance.randint(1, 100))]
        return {**fields, "features": [*(known if isinstance(known, list) else ()), *strange]}


class Talkative(Dialect):
    """One whose hello has further keys."""

    def hello(self, fields: Fields) -> Fields:
        """Return what a hello says."""
        return {**fields, "colour": "blue", "nested": {"a": [1, None, b"bytes"]}, "n": self.chance.getrandbits(63)}


class Verbose(Dialect):
    """One whose messages have further keys, and their parts too."""

    def message(self, fields: Fields) -> Fields:
        """Return what a message says."""
        told = {
            name: {**value, "later": 1} if isinstance(value, dict) and "address" in value else value
            for name, value in fields.items()
        }
        return {**told, "tomorrow": [1, {"two": 2.5}], "also": None}


class Terse(Dialect):
    """One of the first days, whose messages have fewer keys."""

    def message(self, fields: Fields) -> Fields:
        """Return what a message says."""
        return {name: value for name, value in fields.items() if name not in OPTIONAL}


class Strange(Dialect):
    """One that says frames of kinds that nobody here knows."""

    def between(self) -> list[Buffer]:
        """Return what is said before a frame."""
        payload = self.chance.randbytes(self.chance.randrange(STRANGE_BYTES_MAX))
        kind = self.chance.randint(STRANGE_KIND_MIN, 255)
        self.changed += 1
        return [
            HEADER.pack(len(payload), kind, 0, 0, self.chance.getrandbits(32), 0),
            payload,
            PADDING[len(payload) & 7],
        ]


class NextVersion(Dialect):
    """One of another version, with which nothing is shared."""

    def hello(self, fields: Fields) -> Fields:
        """Return what a hello says."""
        return {"version": 2, "who": {"hub": fields.get("hub")}}


DIALECTS: Final[tuple[type[Dialect], ...]] = (Minor, Featureless, Featured, Talkative, Verbose, Terse, Strange)
"""Those that hubs of this version understand."""
