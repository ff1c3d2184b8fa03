"""A snapshot on the disk: a file of its own, written once, whole or not there.

    header "echoicS1", with index and term | BODY | SUMMARY | CHUNK 0 | CHUNK 1 | ... | END, which says how many

The application's state may be hundreds of megabytes. Its chunks are written one by one, each with its checksum, and are
never put together. The file is written under a temporary name and synced, then it is renamed and the directory synced;
only then may a segment name it (`log_file`). So a file that a segment names is whole, and if it is not it is damage.
"""

from collections.abc import Sequence
from typing import Final

from echoic.engines.embedded.log_blocks import (
    BODY_BYTES_MAX,
    FILE_HEADER_BYTES,
    SNAPSHOT_MAGIC,
    Block,
    BlockKind,
    FileHeader,
    encode_block,
    encode_file_header,
    parse_block,
    parse_file_header,
)
from echoic.engines.embedded.log_contents import SnapshotReference
from echoic.engines.embedded.whole_file import whole_file
from echoic.errors import JournalError, LocalError
from echoic.groups.writes import Snapshot
from echoic.recorder import File, Storage

__all__ = ["check_snapshot", "read_snapshot", "snapshot_path", "write_snapshot"]

SUFFIX: Final = ".snapshot"
U64_MAX: Final = 2**64 - 1


def snapshot_path(number: int) -> str:
    """Return what a snapshot is called."""
    return f"{number:020}{SUFFIX}"


def check_snapshot(snapshot: Snapshot) -> None:
    """Do nothing if a snapshot can be written.

    Raises:
        LocalError: A part of it is too large, or its index or term is no number of 64 bits.
    """
    if not (0 <= snapshot.index <= U64_MAX and 0 <= snapshot.term <= U64_MAX):
        raise LocalError(f"a snapshot has index {snapshot.index} and term {snapshot.term}, expected 0 to {U64_MAX}")
    size = max(map(len, (snapshot.body, snapshot.summary, *snapshot.chunks)))
    if size > BODY_BYTES_MAX:
        raise LocalError(f"a chunk of a snapshot has {size} bytes, limit is {BODY_BYTES_MAX}")


def write_snapshot(storage: Storage, life: int, number: int, salt: int, snapshot: Snapshot) -> SnapshotReference:
    """Write a snapshot, durably, and return what a segment says of it.

    Raises:
        OSError: The storage cannot do it. What was written has no name that counts.
    """
    path = snapshot_path(number)
    header = FileHeader(life, number, salt, snapshot.index, snapshot.term)
    with whole_file(storage, path) as file:
        seed = _write(file, header, snapshot)
        file.sync()
    file.close()
    return SnapshotReference(number, seed, snapshot.index, snapshot.term)


def _write(file: File, header: FileHeader, snapshot: Snapshot) -> int:
    start, seed = encode_file_header(SNAPSHOT_MAGIC, header)
    file.append([start])
    offset = len(start)
    parts = [(BlockKind.BODY, 0, snapshot.body), (BlockKind.SUMMARY, 0, snapshot.summary)]
    parts += [(BlockKind.CHUNK, number, chunk) for number, chunk in enumerate(snapshot.chunks)]
    for kind, number, part in [*parts, (BlockKind.END, len(snapshot.chunks), b"")]:
        pieces, size = encode_block(kind, [part], seed=seed, offset=offset, first=number)
        file.append(pieces)
        offset += size
    return seed


def read_snapshot(storage: Storage, reference: SnapshotReference, life: int) -> Snapshot:
    """Return a snapshot that a segment names.

    Raises:
        JournalError: It is not there, or not as it was written.
        OSError: It cannot be read.
    """
    path = snapshot_path(reference.number)
    if not storage.exists(path):
        raise JournalError(f"the log needs a snapshot that is missing - at {path}")
    file = storage.open(path)
    try:
        data = file.view()
    finally:
        file.close()
    header, seed = parse_file_header(SNAPSHOT_MAGIC, data, path)
    said = SnapshotReference(header.number, seed, header.index, header.term)
    if said != reference or header.life != life:
        raise JournalError(f"the snapshot is {said} of life {header.life}, expected {reference} of {life} - at {path}")
    parts = _read_parts(data, seed, path)
    body, summary, *chunks = [bytes(block.body) for block in parts]
    return Snapshot(header.index, header.term, body, summary, tuple(chunks))


def _read_parts(data: memoryview, seed: int, path: str) -> Sequence[Block]:
    """Return body, summary and chunks, checked, where they lie."""
    parts: list[Block] = []
    offset = FILE_HEADER_BYTES
    while offset < len(data):
        block = parse_block(data, offset, seed)
        if block is None:
            raise JournalError(f"the snapshot is damaged - at {path}, {offset}")
        parts.append(block)
        offset = block.end
    kinds = [(block.kind, block.first) for block in parts]
    chunks = len(parts) - 3
    expected = [(BlockKind.BODY, 0), (BlockKind.SUMMARY, 0)]
    expected += [*((BlockKind.CHUNK, number) for number in range(chunks)), (BlockKind.END, chunks)]
    if kinds != expected or parts[-1].body:
        raise JournalError(f"the snapshot has {len(parts)} parts, which are not those of a whole one - at {path}")
    return parts[:-1]
