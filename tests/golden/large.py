"""The part of the golden vectors that is about events which are too large for a frame; hubs that name the feature."""

from echoic.channels.large import LARGE_HEAD
from echoic.channels.member import CALL_HEADER, EVENT_HEADER
from echoic.channels.transfers import HANDLE, PART
from echoic.wire import Frame, FrameKind, FrameReader, encode_frame
from tests.golden.hubs import SOURCE, Vector

__all__ = ["content_of", "frames", "malformed"]

SIZE, EVENT = 40_000_000, 2**40 + 7


def content_of(frame: Frame) -> Vector:
    """Return what a frame about a large event says."""
    payload = frame.payload
    match frame.kind:
        case FrameKind.LARGE:
            handle, size, kind, events = LARGE_HEAD.unpack_from(payload)
            head = payload[LARGE_HEAD.size :].hex()
            return {"handle": str(handle), "size": str(size), "kind": kind, "events": events, "head": head}
        case FrameKind.CHUNK:
            handle, offset = PART.unpack_from(payload)
            return {"handle": str(handle), "offset": str(offset), "bytes": payload[PART.size :].hex()}
        case FrameKind.MORE:
            handle, end = PART.unpack(payload)
            return {"handle": str(handle), "end": str(end)}
        case _:
            return {"handle": str(*HANDLE.unpack(payload))}


def frames() -> list[Vector]:
    """Return what is said of one event, and of another that is synchronous."""
    event = LARGE_HEAD.pack(EVENT, SIZE, FrameKind.EVENTS, 1) + EVENT_HEADER.pack(5, SOURCE)
    call = LARGE_HEAD.pack(EVENT + 1, SIZE, FrameKind.CALLS, 1) + CALL_HEADER.pack(6, SOURCE, 2**40)
    said = [
        ("a large event", FrameKind.LARGE, event, 1),
        ("a large event that wants an answer", FrameKind.LARGE, call, 1),
        ("more of it is asked for", FrameKind.MORE, PART.pack(EVENT, 2 * 1024 * 1024), 0),
        ("a part of it", FrameKind.CHUNK, PART.pack(EVENT, 256 * 1024) + b"a part of it", 0),
        ("it is not needed any more", FrameKind.RELEASE, HANDLE.pack(EVENT), 0),
    ]
    return [_vector(name, kind, payload, channel) for name, kind, payload, channel in said]


def _vector(name: str, kind: FrameKind, payload: bytes, channel: int) -> Vector:
    data = b"".join(encode_frame(kind, [payload], channel=channel))
    (frame,) = FrameReader().receive(data)
    return {"name": name, "kind": int(kind), "channel": channel, "bytes": data.hex(), "content": content_of(frame)}


def malformed() -> list[Vector]:
    """Say of large events what none may say."""

    def large(size: int, kind: FrameKind, events: int, head: int) -> bytes:
        return LARGE_HEAD.pack(1, size, kind, events) + bytes(head)

    found = [
        (FrameKind.LARGE, "it is announced by too little", bytes(23)),
        (FrameKind.LARGE, "it has no bytes", large(0, FrameKind.EVENTS, 1, 16)),
        (FrameKind.LARGE, "it has no events", large(2**25, FrameKind.EVENTS, 0, 16)),
        (FrameKind.LARGE, "it stands for a frame of runs", large(2**25, FrameKind.RUNS, 1, 16)),
        (FrameKind.LARGE, "the head of a call is cut", large(2**25, FrameKind.CALLS, 1, 16)),
        (FrameKind.LARGE, "there is more than a head", large(2**25, FrameKind.EVENTS, 1, 24)),
        (FrameKind.LARGE, "it is too large", large(2**40, FrameKind.EVENTS, 1, 16)),
        (FrameKind.CHUNK, "a part of an event that nobody asked for", PART.pack(1, 0) + bytes(8)),
        (FrameKind.CHUNK, "a part of no bytes", PART.pack(1, 0)),
        (FrameKind.MORE, "more of an event that there is not", PART.pack(1, 100)),
        (FrameKind.MORE, "it is cut where more is asked for", bytes(15)),
        (FrameKind.RELEASE, "an event that there is not is released", HANDLE.pack(1)),
        (FrameKind.RELEASE, "it is cut where an event is released", bytes(7)),
    ]
    return [{"why": why, "kind": int(kind), "payload": payload.hex()} for kind, why, payload in found]
