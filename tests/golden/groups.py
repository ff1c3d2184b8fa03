"""The part of the golden vectors that is about groups: every message between members, an introduction, and packs."""

from typing import Final

import msgspec

from echoic.groups import messages
from echoic.groups.messages import Introduction, Message
from echoic.groups.roster import Roster, Seat, encode_roster
from echoic.groups.standing import DATA, ROSTER, VIEW
from echoic.groups.stream import encode_description, encode_pack
from echoic.groups.writes import Entry
from echoic.wire import Batch

__all__ = ["every_message", "group_vectors", "introduction", "malformed_messages", "pack_vectors"]

GROUP: Final = 0x1122334455667789
ROSTER_OF_TWO: Final = Roster((Seat("n1", 11, "127.0.0.1:7401", True), Seat("n2", 22, "127.0.0.1:7402", False)))
ENTRIES: Final = [
    Entry(1, VIEW, "", 0, 0, msgspec.msgpack.encode(("n1", "n2"))),
    Entry(1, DATA, "n1", 2**40, 3, b"a pack"),
    Entry(1, ROSTER, "", 0, 0, encode_roster(ROSTER_OF_TWO)),
]


def introduction() -> Introduction:
    return Introduction("ledger", "n1", 2**47 + 1, "127.0.0.1:7401")


def every_message() -> list[Message]:
    return [
        messages.PreVote(GROUP, 2, 17, 1),
        messages.PreVoted(2),
        messages.Vote(GROUP, 2, 17, 1),
        messages.Voted(2, True),
        messages.Append(GROUP, 2, 17, 1, ENTRIES, 16),
        messages.Append(GROUP, 2, 20, 2, [], 20),
        messages.Appended(2, True, 20, 0, 1000, False),
        messages.Appended(2, False, 12, 17, 0, True),
        messages.Forward(GROUP, 2**40, 4, [b"a pack", b""]),
        messages.Knock(0, "n2", 22, "127.0.0.1:7402", 0, ("n1", "n2", "n3")),
        messages.Turned("`n4` has no seat in this group; a member must admit it", False, 22, 2),
        messages.Install(GROUP, 2, 17, 1, 3, 0, b"body", b"summary", b"", False),
        messages.Install(GROUP, 2, 17, 1, 3, 1, b"", b"", b"chunk", True),
        messages.Resign(GROUP, 2),
        messages.Ask(GROUP, "n4", "127.0.0.1:7404", True),
        messages.Bye(GROUP),
    ]


def group_vectors() -> list[dict[str, object]]:
    return [
        {"type": type(message).__name__, "payload": messages.encode_message(message).hex()}
        for message in every_message()
    ]


def pack_vectors(batch: Batch) -> list[dict[str, object]]:
    bounds = batch.bounds
    records = [bytes(batch.records[bounds[at] : bounds[at + 1]]) for at in range(batch.count)]
    return [
        {"pack": "description", "payload": encode_description(batch.format).hex()},
        {"pack": "batch", "payload": encode_pack(batch.format, records).hex()},
    ]


def malformed_messages() -> list[dict[str, object]]:
    encode = msgspec.msgpack.encode
    return [
        {"why": "nothing", "payload": ""},
        {"why": "no array", "payload": encode({"tag": 1}).hex()},
        {"why": "an unknown number", "payload": encode([99, 1]).hex()},
        {"why": "too few values", "payload": encode([1, 1, 2]).hex()},
        {"why": "a text for a number", "payload": encode([3, 1, "two", 17, 1]).hex()},
        {"why": "an entry that is none", "payload": encode([5, 1, 2, 17, 1, [[1, 1]], 16]).hex()},
        {"why": "cut short", "payload": messages.encode_message(every_message()[4])[:-3].hex()},
    ]
