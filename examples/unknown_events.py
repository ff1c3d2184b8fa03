"""Read a stream of frames without having declared anything: reflection, NumPy and Arrow."""

import numpy

import echoic
from echoic.wire import FrameKind, FrameReader, decode_formats, encode_formats, encode_frame, parse_batch


def somebody_sends() -> bytes:
    """Return the bytes of a simulation that writes its own NumPy records."""
    steps = numpy.zeros(3, [("step", "i8"), ("energy", "f8"), ("velocity", "f4", (2, 2))])
    steps["step"], steps["energy"] = [1, 2, 3], [0.5, 0.25, 0.125]
    batch = echoic.Batch.of(steps)
    frames = encode_frame(FrameKind.FORMATS, [encode_formats([batch.format])], checked=True)
    frames += encode_frame(FrameKind.EVENTS, batch.buffers(), channel=1, checked=True)
    return b"".join(frames)


registry = echoic.Registry()
for frame in FrameReader(checked=True).receive(somebody_sends()):
    if frame.kind is FrameKind.FORMATS:
        for format in decode_formats(frame.payload, registry):
            print(format.describe())
    elif frame.kind is FrameKind.EVENTS:
        batch = parse_batch(frame.payload, registry)
        for record in batch:
            print(record["step"], record.energy, list(record))
        print("mean energy", batch.array["energy"].mean())
        print(batch.arrow.schema.names)
