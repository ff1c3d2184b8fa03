"""The part of the golden vectors that is about recorded channels: what recorders and the hubs of sources say.

The files of a journal have vectors of their own (`recorded.py`).
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from echoic.channels import Message, SinkHub, messages
from echoic.wire import FrameKind
from tests.golden import hubs

__all__ = ["malformed_messages", "recording_messages"]

JOURNAL: Final = "00112233445566778899aabbccddeeff"


def recording_messages() -> Iterator[tuple[int, bool, Message]]:
    """Yield the messages about recorded channels, with all fields set."""
    id = str(hubs.ID)
    recorder = SinkHub("127.0.0.1:7403", "block", ("recorder#00112233",), "c3c3c3c3c3c3c3c3", 1, {}, JOURNAL, True)
    yield 21, False, messages.Join("lab/ticks", "sink", recorder)
    yield 22, True, messages.Joined([recorder], journals={JOURNAL: True, "ff" * 16: False})
    yield 23, False, messages.Leave("lab/ticks", "sink", "127.0.0.1:7403", held=True)
    yield 24, False, messages.Detach(id, "127.0.0.1:7403", 0, JOURNAL)
    yield 0, False, messages.Kept(id, JOURNAL, {hubs.SOURCE: 2**40, hubs.OTHER_SOURCE: 0}, "no space left on device")
    yield 25, False, messages.Ask(id, hubs.SOURCE)
    yield 25, True, messages.Kept(id, JOURNAL, {hubs.SOURCE: 12})
    yield 26, False, messages.Fetch(id, 1, 0, 1_048_576, 2_000_000_000, (2**40, 7), types=True)
    yield (
        26,
        True,
        messages.Fetched(
            JOURNAL, (2**40, 9), (0, 3), 0x89ABCDEF, 7, 9, (b"\x94\x01",), bytes(56), 1, "1/0.segment", 64, "trimmed"
        ),
    )
    yield 27, False, messages.Mark(id, "billing", (2**40, 7))
    yield 27, True, messages.Marked((2**40, 7))


def malformed_messages() -> list[hubs.Vector]:
    """Say about recorded channels what none may say."""

    def said(why: str, kind: str, **fields: object) -> hubs.Vector:
        payload = msgspec.msgpack.encode([1, False, {"type": kind, **fields}])
        return {"why": why, "kind": int(FrameKind.CONTROL), "payload": payload.hex()}

    id = str(hubs.ID)
    return [
        said("a journal that is a number", "Kept", channel=id, journal=7, positions={}),
        said("a position that is a text", "Kept", channel=id, journal=JOURNAL, positions={7: "1"}),
        said("a question about no source", "Ask", channel=id),
        said("a question for bytes that are a text", "Fetch", channel=id, partition=0, sequence=0, bytes_max="all"),
        said("positions that are no array", "Mark", channel=id, sink="billing", positions=7),
    ]
