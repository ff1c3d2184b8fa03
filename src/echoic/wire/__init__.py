"""Pure. The bytes of events: frames, hello, batches, records to objects and back, conversion, Arrow."""

from echoic.wire.announcement import decode_formats, encode_formats
from echoic.wire.batch import Batch, parse_batch
from echoic.wire.convert import Conversion, ConversionStatistics, conversion_of
from echoic.wire.decode import Decoder, decoder_of
from echoic.wire.encode import Encoder, encoder_of
from echoic.wire.frames import Buffer, Frame, FrameKind, FrameReader, FrameStatistics, encode_frame
from echoic.wire.hello import Hello, decode_hello, encode_hello

__all__ = [
    "Batch",
    "Buffer",
    "Conversion",
    "ConversionStatistics",
    "Decoder",
    "Encoder",
    "Frame",
    "FrameKind",
    "FrameReader",
    "FrameStatistics",
    "Hello",
    "conversion_of",
    "decode_formats",
    "decode_hello",
    "decoder_of",
    "encode_formats",
    "encode_frame",
    "encode_hello",
    "encoder_of",
    "parse_batch",
]
