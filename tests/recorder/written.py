"""What tests of the writer share: events that can be recognized, and what is in the files, read block by block."""

from random import Random

import numpy

from echoic.formats import Registry
from echoic.recorder import JournalOptions, JournalWriter, Storage
from echoic.recorder.blocks import BlockKind, parse_segment_header
from echoic.recorder.catalog import Catalog
from echoic.recorder.mending import load_segment
from echoic.recorder.scanning import payload_of, scan
from echoic.testing.simulated_disk import SimulatedDisk
from echoic.wire import Batch, parse_batch

CHANNEL = "trades"
EVENT = numpy.dtype([("source", "<u8"), ("number", "<u8")])
OTHER = numpy.dtype([("source", "<u8"), ("number", "<u8"), ("more", "<f8")])


def disk(seed: int = 0, **options: int) -> SimulatedDisk:
    return SimulatedDisk(Random(seed), **options)


def batch(source: int, first: int, count: int, dtype: "numpy.dtype[numpy.void]" = EVENT) -> Batch:
    array = numpy.zeros(count, dtype)
    array["source"], array["number"] = source, numpy.arange(first, first + count)
    return Batch.of(array)


def opened(storage: Storage, now_ns: int = 0, **options: object) -> JournalWriter:
    return JournalWriter.open(storage, CHANNEL, JournalOptions(**options), id=bytes(range(16)), now_ns=now_ns)


def events(storage: Storage, partition: int = 0) -> list[tuple[int, int, int]]:
    """Return (sequence, source, number) of every event in sound blocks; gaps have sequence -1 and their last number."""
    found = []
    catalog = Catalog(storage, CHANNEL)
    segments = catalog.segments(partition)
    for first in segments:
        data = load_segment(catalog, partition, first)
        scanned = scan(data, parse_segment_header(data, ""), "", last=first == segments[-1])
        registry = Registry()
        for offset, head in scanned.heads(data):
            payload = payload_of(data, offset, head)
            if head.kind is BlockKind.FORMAT:
                registry.add_descriptor(bytes(payload))
            if head.kind is BlockKind.GAP:
                found.append((-1, head.source, head.first + int.from_bytes(payload[:8], "little") - 1))
            if head.kind is BlockKind.BATCH:
                rows = parse_batch(payload, registry).array
                places = range(head.sequence, head.sequence + head.count)
                found += zip(places, rows["source"].tolist(), rows["number"].tolist(), strict=True)
    return found


def overwrite(storage: Storage, path: str, data: bytes) -> None:
    file = storage.open(path, write=True)
    file.truncate(0)
    file.append([data])
    file.sync()
    file.close()


def content(storage: Storage, path: str) -> bytes:
    file = storage.open(path)
    try:
        return bytes(file.view())
    finally:
        file.close()
