"""Makes the last segment of a partition one that can be written: what a crash has left is put right.

Three things may be found behind the last mark of what was on the disk (`synced`):

    | ... sound, marked | sound, not marked | torn ...
                        ^ synced            ^ end

*Torn*: bytes of a write that did not finish. They are kept beside the segment as `.torn`, then cut off.

*Sound but not marked*: whole blocks. Some of them may have been acknowledged (the mark of the last commit is not synced
itself), so they must not be lost; and they may be in the cache of the operating system alone (after an fdatasync that
failed, Linux takes pages for written that are not, and the next fdatasync succeeds), so a sync does not make them
durable. They must be written anew. They are kept beside the segment as `.tail`, synced; then the segment is cut back to
`synced` and they are appended and synced; then `.tail` is removed. A crash anywhere in between is mended by the same
steps from the `.tail`. If there is nothing but a mark, which can be written again from nothing, no `.tail` is needed.

*Damage* before `synced` is not mended here: what was acknowledged is gone, somebody must know. It is refused and named,
and `recover` keeps the rest.
"""

import struct
from typing import Final

import msgspec

from echoic.errors import JournalError
from echoic.formats import Format
from echoic.recorder.blocks import SEGMENT_HEADER_BYTES, BlockKind, SegmentHeader, parse_segment_header
from echoic.recorder.catalog import Catalog, said
from echoic.recorder.index import IndexBuilder
from echoic.recorder.scanning import Scan, payload_of, scan
from echoic.recorder.standing import Standing
from echoic.recorder.storage import File
from echoic.wire.frames import checksum

__all__ = ["Mended", "free_name", "load_segment", "mend", "redo", "save_aside"]

TAIL: Final = struct.Struct("<8sQQ")
TAIL_MAGIC: Final = b"echoicT1"
CHECKSUM: Final = struct.Struct("<I")
ASIDE_MAX: Final = 10_000


class Mended(msgspec.Struct):
    """A segment that can be written, and everything its blocks say."""

    file: File
    header: SegmentHeader
    size: int
    known: int
    """Where that begins which no block says to be on the disk."""
    sequence: int
    sealed: bool
    marked: bool
    """Whether its blocks say that everything but marks is on the disk."""
    standing: Standing
    tokens: set[int]
    builder: IndexBuilder
    index: list[bytes]
    time_ns: int
    """When its last block was made."""
    notes: list[str]
    """What was put aside, for people."""


def mend(catalog: Catalog, partition: int, sequence: int, journal: bytes, *, durable: bool) -> Mended:
    """Open a segment to be written, without what is torn.

    Raises:
        JournalError: It is damaged, or cannot be read or written; nothing is lost then.
    """
    path = catalog.segment(partition, sequence)
    with said("open the segment", path):
        file = catalog.storage.open(path, write=True)
    try:
        with said("mend the segment", path):
            return _mend(catalog, partition, sequence, journal, file, durable=durable)
    except JournalError:
        file.close()
        raise


def _mend(catalog: Catalog, partition: int, sequence: int, journal: bytes, file: File, *, durable: bool) -> Mended:
    notes = redo(catalog, partition, sequence, file)
    path = catalog.segment(partition, sequence)
    data = file.view()
    header = parse_segment_header(data, path)
    if (header.journal, header.partition, header.sequence) != (journal, partition, sequence):
        raise JournalError(f"the segment belongs to another journal or place - at {path}")
    found = scan(data, header, path, last=True)
    damage = [flaw for flaw in found.flaws if flaw.kind == "damage"]
    if damage:
        told = f"the journal is damaged ({len(damage)} flaws), `echoic journal recover` keeps the rest"
        raise JournalError(f"{told}: {damage[0]}")
    mended = _read(found, data, file, notes)
    if found.end < len(data):
        aside = save_aside(catalog, f"{catalog.stem(partition, sequence)}.{found.end}", ".torn", data[found.end :])
        notes.append(f"{len(data) - found.end} bytes of an unfinished write were put aside as {aside}")
    if durable:
        _write_again(catalog, mended, bytes(data[mended.known : found.end]))
    elif found.end < len(data):
        file.truncate(found.end)
    return mended


def _read(found: Scan, data: memoryview, file: File, notes: list[str]) -> Mended:
    """Return what the blocks of a segment say."""
    builder = IndexBuilder(found.header.seed, found.header.sequence)
    standing, tokens = Standing(), set[int]()
    known, time_ns = found.end, found.header.time_ns
    claimed = reached = 0  # what the blocks that are kept say; a torn one may have said more, and is cut off
    for offset, head in found.heads(data):
        payload = payload_of(data, offset, head)
        standing.apply(head, payload)
        builder.add(head, head.block_bytes)
        if head.kind is BlockKind.FORMAT:
            tokens.add(Format.from_descriptor(bytes(payload)).token)
        if offset >= found.synced:
            known = min(known, offset)
        end = offset + head.block_bytes
        claimed = max(claimed, head.synced if offset > SEGMENT_HEADER_BYTES else end)
        reached = reached if head.kind is BlockKind.COMMIT else end
        time_ns = head.time_ns
    sizes = found.end, known, found.sequence, found.sealed, reached <= claimed
    return Mended(file, found.header, *sizes, standing, tokens, builder, builder.take(), time_ns, notes)


def _write_again(catalog: Catalog, mended: Mended, tail: bytes) -> None:
    """Put the end of a segment on the disk for certain; without events in it, it may as well be lost meanwhile."""
    place = mended.header.partition, mended.header.sequence
    worth = bool(tail) and not mended.marked
    if worth:
        catalog.put(catalog.tail(*place), _encode_tail(mended.known, tail))
    _rewrite(mended.file, mended.known, tail)
    if worth:
        _forget(catalog, *place)


def redo(catalog: Catalog, partition: int, sequence: int, file: File) -> list[str]:
    """Finish what a crash interrupted, if a `.tail` says so; return what was done.

    Raises:
        JournalError: The `.tail` does not fit.
        OSError: The storage cannot do it.
    """
    path = catalog.tail(partition, sequence)
    if not catalog.storage.exists(path):
        return []
    kept = catalog.storage.open(path)
    try:
        offset, tail = _decode_tail(bytes(kept.view()), path)
    finally:
        kept.close()
    if offset > file.size():
        raise JournalError(f"the segment has {file.size()} bytes, its tail begins at {offset} - at {path}")
    _rewrite(file, offset, tail)
    _forget(catalog, partition, sequence)
    return [f"{len(tail)} bytes at {offset} were written again from {path}"]


def _rewrite(file: File, offset: int, tail: bytes) -> None:
    file.truncate(offset)
    if tail:
        file.append([tail])
    file.sync()


def _forget(catalog: Catalog, partition: int, sequence: int) -> None:
    catalog.storage.remove(catalog.tail(partition, sequence))
    catalog.storage.sync_directory(catalog.partition(partition))


def _encode_tail(offset: int, tail: bytes) -> list[bytes]:
    head = TAIL.pack(TAIL_MAGIC, offset, len(tail))
    return [head, CHECKSUM.pack(checksum([head, tail])), tail]


def _decode_tail(data: bytes, path: str) -> tuple[int, bytes]:
    start = TAIL.size + CHECKSUM.size
    if len(data) < start:
        raise JournalError(f"the tail of a segment has {len(data)} bytes, its head needs {start} - at {path}")
    magic, offset, size = TAIL.unpack_from(data)
    (value,) = CHECKSUM.unpack_from(data, TAIL.size)
    tail = data[start:]
    if magic != TAIL_MAGIC or size != len(tail) or checksum([data[: TAIL.size], tail]) != value:
        raise JournalError(f"the tail of a segment, kept during a repair, is damaged - at {path}")
    return offset, tail


def save_aside(catalog: Catalog, stem: str, ending: str, data: memoryview) -> str:
    """Keep some bytes under a name that is free, durably, and return it.

    Raises:
        OSError: The storage cannot do it.
    """
    path = free_name(catalog, stem, ending)
    catalog.put(path, [data])
    return path


def free_name(catalog: Catalog, stem: str, ending: str) -> str:
    """Return a path that nothing has.

    Raises:
        JournalError: Too many are taken.
        OSError: The storage cannot tell.
    """
    for number in range(ASIDE_MAX):
        path = f"{stem}.{number}{ending}" if number else stem + ending
        if not catalog.storage.exists(path):
            return path
    raise JournalError(f"{ASIDE_MAX} files were put aside already - at {stem}{ending}")


def load_segment(catalog: Catalog, partition: int, sequence: int) -> memoryview:
    """Return the bytes of a segment.

    Raises:
        JournalError: It cannot be read.
    """
    path = catalog.segment(partition, sequence)
    with said("read the segment", path):
        file = catalog.storage.open(path)
        try:
            return file.view()
        finally:
            file.close()
