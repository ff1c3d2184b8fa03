"""Hostile frames: what a stranger, a broken disk or a clever attacker might send.

A fuzzer that changes bytes of a finished frame tests little but the checksum. This one works *below* it: it changes
the payload (bits, bytes, lengths, splices of two payloads, truncation, boundary numbers where integers stand) and then
seals the frame again, so that every mutation reaches the parser it was made for. A smaller share is damaged after
sealing.

Whatever arrives is taken apart in every way the product has: descriptors, batches as objects (generated and walking),
as another type (NumPy and native), as Arrow. Two outcomes are right: an error from the declared tree, or objects, and
then the same objects from both decoders. Everything else is a finding, with the bytes that show it.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial
from random import Random
from typing import Final

import msgspec

from echoic.errors import EchoicError
from echoic.formats import ARCHITECTURES, Format, Registry
from echoic.testing.mutation import Mutator
from echoic.testing.samples import Everything, Mean, Station, Trade, WindField, sample_events
from echoic.wire import (
    Batch,
    Conversion,
    FrameKind,
    FrameReader,
    Hello,
    decode_formats,
    decode_hello,
    decoder_of,
    encode_formats,
    encode_frame,
    encode_hello,
    parse_batch,
)

__all__ = ["Finding", "FrameFuzzer", "FuzzReport", "Fuzzer"]

DAMAGE_AFTER_SEALING: Final = 0.1
ARROW_SHARE: Final = 0.05
FINDINGS_MAX: Final = 20


class Finding(msgspec.Struct, frozen=True):
    """Input that was neither decoded nor refused as declared."""

    number: int
    kind: str
    error: str
    data: bytes


class FuzzReport(msgspec.Struct, frozen=True):
    """What became of the frames."""

    frames: int
    accepted: int
    refused: dict[str, int]
    findings: list[Finding]


class Fuzzer(ABC):
    """Makes hostile frames, tries them, and keeps what was neither taken nor refused as declared."""

    def __init__(self) -> None:
        self._refused: Counter[str] = Counter()
        self._accepted = self._frames = 0
        self._findings: list[Finding] = []

    @abstractmethod
    def _next_frame(self) -> tuple[FrameKind, bytes]:
        """Return a frame, and what it was made from."""

    @abstractmethod
    def _take(self, data: bytes) -> None:
        """Do with a frame what the product does.

        Raises:
            EchoicError: It is refused; anything else is a finding.
        """

    def run(self, count: int) -> FuzzReport:
        """Try `count` frames more and return what became of all so far."""
        for _ in range(count):
            kind, data = self._next_frame()
            self._frames += 1
            try:
                self._take(data)
                self._accepted += 1
            except EchoicError as error:
                self._refused[type(error).__name__] += 1
            except Exception as error:  # noqa: BLE001 - what the fuzzer is looking for
                self._findings.append(Finding(self._frames, kind.name, repr(error), data))
                if len(self._findings) >= FINDINGS_MAX:
                    break
        return FuzzReport(self._frames, self._accepted, dict(self._refused), list(self._findings))


class FrameFuzzer(Fuzzer):
    """Mutates sample frames with a seeded generator and feeds them to every parser below the frame."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random
        self.registry = Registry()
        """The types of the samples."""
        self._samples = list(self._make_samples())
        self._mutator = Mutator(random, self.samples)
        self._conversions = _conversions()

    def _make_samples(self) -> Iterator[tuple[FrameKind, bytes]]:
        yield FrameKind.HELLO, encode_hello(Hello(features=("checksum", "batch"), name="sample"))
        for events in sample_events():
            batch = Batch.of(events)
            for name in ("x86_64", "sparc32", "i386", "packed"):
                here = batch.to(batch.format.on(ARCHITECTURES[name]))
                self.registry.add(here.format)
                yield FrameKind.EVENTS, b"".join(here.buffers())
                yield FrameKind.FORMATS, encode_formats([here.format])

    @property
    def samples(self) -> list[bytes]:
        """The payloads that are mutated."""
        return [payload for _, payload in self._samples]

    def _next_frame(self) -> tuple[FrameKind, bytes]:
        kind, sample = self._random.choice(self._samples)
        payload = bytearray(sample)
        self._mutator.damage_often(payload)
        channel = self._random.getrandbits(32)
        frame = bytearray(b"".join(encode_frame(kind, [payload], channel=channel, checked=True)))
        if self._random.random() < DAMAGE_AFTER_SEALING:
            self._mutator.damage(frame)
        return kind, bytes(frame)

    def _take(self, data: bytes) -> None:
        for frame in FrameReader(checked=True).receive(data):
            match frame.kind:
                case FrameKind.HELLO:
                    decode_hello(frame.payload)
                case FrameKind.FORMATS:
                    for format in decode_formats(frame.payload, Registry()):
                        format.describe()
                case FrameKind.EVENTS:
                    self.take_batch(parse_batch(frame.payload, self.registry))
                case _:
                    pass  # a flipped bit made it a kind without a parser

    def take_batch(self, batch: Batch) -> None:
        """Take a batch apart in every way.

        Raises:
            EchoicError: It is refused, by all alike.
        """
        conversions = self._conversions.get(batch.format.token, [])
        made = [_outcome(partial(_converted, batch, declared, way)) for declared, way in conversions]
        if len({repr(outcome) for outcome in made}) > 1:
            raise AssertionError(f"NumPy and native conversion differ for `{batch.format.name}`: {made}")
        decoder = decoder_of(batch.format)
        fast = _outcome(lambda: repr(batch.events()))
        careful = _outcome(lambda: repr(list(decoder.walk(batch.records, batch.bounds))))
        if fast != careful:
            raise AssertionError(f"the two decoders differ for `{batch.format.name}`: {fast} and {careful}")
        if self._random.random() < ARROW_SHARE:
            batch.arrow.validate(full=True)
        batch.events()  # refuses once more, so that the refusal is counted


@cache
def _conversions() -> dict[int, list[tuple[object, Conversion]]]:
    """Prepare, for each sample format, the way to its own class, by NumPy and by native code; once in a process."""
    found: dict[int, list[tuple[object, Conversion]]] = {}
    for declared in (Trade, Mean, Station, WindField, Everything):
        native = Format.of(declared)
        decoder_of(declared).compile()
        for name in ("sparc32", "i386", "packed"):
            source = native.on(ARCHITECTURES[name])
            compiled = Conversion(source, native)
            compiled.compile()
            found[source.token] = [(declared, Conversion(source, native)), (declared, compiled)]
    return found


def _converted(batch: Batch, declared: object, way: Conversion) -> str:
    records, bounds = way.convert(batch.records, batch.bounds, batch.count)
    return repr(Batch(Format.of(declared), batch.count, [records], bounds, decoder_of(declared)).events())


def _outcome(action: Callable[[], object]) -> object:
    """Return what an action gives, or the name of the declared error with which it refuses."""
    try:
        return action()
    except EchoicError as error:
        return type(error).__name__
