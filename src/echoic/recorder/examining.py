"""One segment, looked at by somebody who expects anything: its name, its header, its blocks, its index.

A segment whose header is broken may have sound blocks, but their checksums continue from the header's. It is known
twice, as the checksum that stands in the header and as the one of the header's bytes, most of which are known
otherwise: the id of the journal, the partition, and the sequence from the name. Whichever of them fits the blocks is
taken, so that one flipped bit in a header costs nothing.
"""

import msgspec

from echoic.errors import JournalError
from echoic.formats import Format
from echoic.recorder.blocks import (
    CHECKSUM,
    SEGMENT,
    SEGMENT_HEADER_BYTES,
    BlockKind,
    SegmentHeader,
    encode_segment_header,
    parse_segment_header,
)
from echoic.recorder.catalog import Catalog
from echoic.recorder.index import ENTRY_BYTES, load_index
from echoic.recorder.mending import load_segment
from echoic.recorder.scanning import Flaw, Scan, payload_of, scan
from echoic.recorder.standing import Standing
from echoic.wire.frames import checksum

__all__ = ["Examined", "examine", "examine_index", "read_headers"]


class Examined(msgspec.Struct):
    """What is known of a segment. `scan` is None if not a single block of it can be read."""

    first: int
    path: str
    flaws: list[Flaw]
    scan: Scan | None = None
    bytes: int = 0
    unreadable: bool = False
    standing: Standing | None = None
    """Where the sources go on behind it."""
    time_ns: int = 0
    """When its last block was made."""

    @property
    def damaged(self) -> bool:
        """Whether anything is wrong but a torn end."""
        return any(flaw.kind == "damage" for flaw in self.flaws)


def examine(
    catalog: Catalog, partition: int, sequence: int, journal: bytes, *, last: bool, formats: dict[int, bytes]
) -> Examined:
    """Look at every byte of a segment.

    Args:
        catalog: The journal.
        partition: Which partition.
        sequence: Which segment, by its name.
        journal: The id of the journal.
        last: Whether it is the last of the partition.
        formats: The descriptors found in it are added to these.
    """
    found = Examined(sequence, catalog.segment(partition, sequence), [])
    try:
        data = load_segment(catalog, partition, sequence)
    except JournalError as error:
        found.unreadable = True
        found.bytes = _size(catalog, found.path)
        found.flaws.append(Flaw(found.path, 0, 0, str(error)))
        return found
    found.bytes = len(data)
    expected = SegmentHeader(journal, partition, sequence, 0)
    try:
        header = parse_segment_header(data, found.path)
    except JournalError as error:
        found.flaws.append(Flaw(found.path, 0, min(len(data), SEGMENT_HEADER_BYTES), str(error)))
        found.scan = _guess(data, expected, found.path, last=last)
    else:
        if (header.journal, header.partition, header.sequence) == (journal, partition, sequence):
            found.scan = scan(data, header, found.path, last=last)
        else:
            what = "the segment belongs to another journal or place"
            found.flaws.append(Flaw(found.path, 0, SEGMENT_HEADER_BYTES, what))
    if found.scan is not None:
        found.flaws += found.scan.flaws
        found.standing, found.time_ns = _read(found.scan, data, formats)
    return found


def _read(found: Scan, data: memoryview, formats: dict[int, bytes]) -> tuple[Standing, int]:
    """Return where the sources go on behind a segment and the time of its last block, and note its descriptors."""
    standing, time_ns = Standing(), found.header.time_ns
    for offset, head in found.heads(data):
        payload = payload_of(data, offset, head)
        standing.apply(head, payload)
        time_ns = head.time_ns
        if head.kind is BlockKind.FORMAT:
            format = Format.from_descriptor(bytes(payload))
            formats[format.token] = format.descriptor
    return standing, time_ns


def _guess(data: memoryview, expected: SegmentHeader, path: str, *, last: bool) -> Scan | None:
    """Return what can be read of a segment with a broken header, None if nothing can."""
    if len(data) <= SEGMENT_HEADER_BYTES:
        return None
    (stored,) = CHECKSUM.unpack_from(data, SEGMENT.size)
    time_ns = SEGMENT.unpack_from(data)[5]
    likely = msgspec.structs.replace(expected, time_ns=time_ns)
    for seed in (stored, encode_segment_header(likely)[1], checksum([data[: SEGMENT.size]])):
        found = scan(data, msgspec.structs.replace(likely, seed=seed), path, last=last)
        if any(True for _ in found.heads(data)):
            return found
    return None


def examine_index(catalog: Catalog, partition: int, found: Examined) -> Flaw | None:
    """Return what is wrong with the index of a segment; it is only a hint, and may be short or missing."""
    path = catalog.index(partition, found.first)
    if found.scan is None or not catalog.storage.exists(path):
        return None
    try:
        data = _content(catalog, path)
    except OSError as error:
        return Flaw(path, 0, 0, f"the index cannot be read: {error.strerror or error}", "hint")
    sound = ENTRY_BYTES * len(load_index(data, found.scan.header.seed, found.bytes))
    if sound == len(data):
        return None
    what = "the index is not sound from here on, and is not used; `recover` makes it again"
    return Flaw(path, sound, len(data), what, "hint")


def _content(catalog: Catalog, path: str) -> bytes:
    file = catalog.storage.open(path)
    try:
        return bytes(file.view())
    finally:
        file.close()


def _size(catalog: Catalog, path: str) -> int:
    """Return how many bytes a file has that cannot be read, 0 if that is not known either."""
    try:
        file = catalog.storage.open(path)
    except OSError:
        return 0
    try:
        return file.size()
    except OSError:
        return 0
    finally:
        file.close()


def read_headers(catalog: Catalog, partition: int) -> list[SegmentHeader]:
    """Return the headers of a partition's segments, as far as they are sound.

    Raises:
        JournalError: The partition cannot be listed.
    """
    headers = []
    for sequence in catalog.segments(partition):
        try:
            data = load_segment(catalog, partition, sequence)
            headers.append(parse_segment_header(data, ""))
        except JournalError:
            continue  # whoever examines it tells
    return headers
