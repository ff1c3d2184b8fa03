"""Reads the files of a log, and tells what a crash has left from what is damaged.

Each segment begins with a STATE: the ballot, the last index of the log, which snapshot is in force. A snapshot always
begins a segment, so the last segment names the one that counts. Its index tells which segments are needed:

    segment   7            8            9             the last
    STATE     end 400      end 510      end 790, snapshot of 600
                           ^ the last whose end is not behind 600: all entries after the snapshot are from here on

Older ones are left over from a removal that a loss of power has undone, and are not read.

**Torn or damaged.** What is broken in a segment that is not the last was on the disk before the next one was begun, so
it is damage. In the last one, a broken block is *torn* if it is of a write that was never synced; nobody was told of
it, and it is cut off with everything behind it. But a bit that the disk has flipped in a block that was synced looks
the same, and to cut it off would be to forget what was promised: a vote, or an entry that a majority counts on. What
tells them apart is what stands behind: every block says how much was synced when it was made, and a MARK says nothing
else. If any head behind the broken place, sound by itself, says that the place was on the disk, it is damage, and
refused. One case remains: the process or the power ends before anything behind the last sync is on the disk, and in
addition a bit of just that sync flips. Then there is no sign of it, nor can there be in one file without a second sync
for each.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from echoic.engines.embedded.log_blocks import (
    FILE_HEADER_BYTES,
    SEGMENT_MAGIC,
    Block,
    BlockKind,
    FileHeader,
    find_claim,
    parse_block,
    parse_file_header,
)
from echoic.engines.embedded.log_contents import Previous, State, decode_ballot, decode_entries, decode_state
from echoic.engines.embedded.log_segment import SUFFIX, segment_path
from echoic.engines.embedded.snapshot_file import SUFFIX as SNAPSHOT_SUFFIX
from echoic.engines.embedded.snapshot_file import read_snapshot, snapshot_path
from echoic.engines.embedded.whole_file import TEMPORARY
from echoic.errors import JournalError
from echoic.groups.writes import Ballot, Entry, Image
from echoic.recorder import Storage

__all__ = ["FoundSegment", "Scan", "scan"]

NUMBER_DIGITS: Final = 20


class FoundSegment(msgspec.Struct, frozen=True):
    """A segment, read as far as its STATE."""

    path: str
    header: FileHeader
    seed: int
    state: State
    start: int
    """Where the blocks behind the STATE begin."""
    data: memoryview


class Scan(msgspec.Struct, frozen=True):
    """What the files of a log say."""

    image: Image
    segments: tuple[FoundSegment, ...]
    """Those that are needed, the last one last."""
    blocks: tuple[Block, ...]
    """Of the last segment: those that are sound, but its STATE and its marks."""
    leftovers: tuple[str, ...]
    """Files that are of no use."""
    torn_bytes: int
    """How many bytes of a write that did not finish stand at the end."""


def scan(storage: Storage) -> Scan | None:
    """Return what the files of a log say, None if there is no log.

    Raises:
        JournalError: They are damaged, or some are missing.
        OSError: They cannot be read.
    """
    names = storage.names("")
    numbers = _numbers(names, SUFFIX)
    if not numbers:
        if _numbers(names, SNAPSHOT_SUFFIX):
            raise JournalError("the log has a snapshot but no segment, its files are incomplete - at its directory")
        return None
    segments = _needed(storage, numbers)
    last = segments[-1]
    replay = Replay(segments[0].state)
    blocks: list[Block] = []
    for place, segment in enumerate(segments):
        if place:
            replay.go_on(segment, segments[place - 1])
        blocks = list(_blocks(segment, last=segment is last))
        for block in blocks:
            replay.apply(block, segment.path)
    replay.finish(last.path)
    end = blocks[-1].end if blocks else last.start
    reference = last.state.snapshot
    snapshot = read_snapshot(storage, reference, last.header.life) if reference is not None else None
    image = Image(last.header.life, replay.ballot, snapshot, tuple(replay.entries))
    kept = {segment.path for segment in segments} | {snapshot_path(reference.number) if reference else ""}
    leftovers = tuple(name for name in names if _is_ours(name) and name not in kept)
    unmarked = tuple(block for block in blocks if block.kind is not BlockKind.MARK)
    return Scan(image, tuple(segments), unmarked, leftovers, len(last.data) - end)


class Replay:
    """The log, as block after block makes it."""

    def __init__(self, state: State) -> None:
        self.ballot: Ballot = state.ballot
        self.entries: list[Entry] = []
        self._base = state.end
        self._floor = _floor(state)

    def go_on(self, segment: FoundSegment, before: FoundSegment) -> None:
        """Begin the next segment.

        Raises:
            JournalError: It is not the one that follows.
        """
        state = segment.state
        ending = Previous(len(before.data), before.seed)
        if state.previous != ending or segment.header.number != before.header.number + 1:
            told = f"the segment goes on from {state.previous}, but the one before it is {ending}"
            raise JournalError(f"the log is damaged: {told} - at {segment.path}")
        self._floor = _floor(state)
        if state.end == self._floor:
            self.entries, self._base = [], state.end
        elif self._floor > self._base:
            del self.entries[: self._floor - self._base]
            self._base = self._floor
        end = self._base + len(self.entries)
        if (state.end, state.ballot) != (end, self.ballot):
            told = f"its end is {end} with {self.ballot}, the next segment says {state.end} with {state.ballot}"
            raise JournalError(f"the log is damaged: {told} - at {segment.path}")

    def apply(self, block: Block, path: str) -> None:
        """Do what a block says.

        Raises:
            JournalError: It cannot be.
        """
        match block.kind:
            case BlockKind.BALLOT:
                self.ballot = decode_ballot(block, path)
            case BlockKind.APPEND:
                end = self._base + len(self.entries)
                if not self._floor < block.first <= end + 1:
                    told = f"entries begin at {block.first}, expected {self._floor + 1} to {end + 1}"
                    raise JournalError(f"the log is damaged: {told} - at {path}, {block.offset}")
                # Entries before the first that was read are in the snapshot that is in force, or are replaced here.
                self._base = min(self._base, block.first - 1)
                del self.entries[block.first - 1 - self._base :]
                self.entries += decode_entries(block, path)
            case BlockKind.MARK:
                pass
            case _:
                raise JournalError(
                    f"the log is damaged: a block {block.kind.name} is out of place - at {path}, {block.offset}"
                )

    def finish(self, path: str) -> None:
        """Do nothing if the entries begin right behind the snapshot.

        Raises:
            JournalError: They do not.
        """
        if self._base != self._floor:
            told = f"its entries begin behind {self._base}, its snapshot is of {self._floor}"
            raise JournalError(f"the log is damaged: {told} - at {path}")


def _blocks(segment: FoundSegment, *, last: bool) -> Iterator[Block]:
    """Yield the blocks behind the STATE, up to a torn end.

    Raises:
        JournalError: One is damaged.
    """
    offset, data = segment.start, segment.data
    while offset < len(data):
        block = parse_block(data, offset, segment.seed)
        if block is not None:
            yield block
            offset = block.end
            continue
        claim = find_claim(data, offset, segment.seed) if last else len(data)
        if claim is None:
            return
        known = f"the block at {claim} says" if last else "the segment after it says"
        raise JournalError(
            f"the log is damaged: there is no sound block, but {known} that it was on the disk - "
            f"at {segment.path}, {offset}"
        )


def _needed(storage: Storage, numbers: Sequence[int]) -> list[FoundSegment]:
    """Return the segments that the log is made of.

    Raises:
        JournalError: One is missing or damaged.
    """
    last = _find(storage, numbers[-1])
    floor = _floor(last.state)
    segments, present = [last], set(numbers)
    while segments[0].state.end > floor:
        number = segments[0].header.number - 1
        if number not in present:
            raise JournalError(f"the log needs a segment that is missing - at {segment_path(number)}")
        segments.insert(0, _find(storage, number))
        if segments[0].header.life != last.header.life:
            raise JournalError(
                f"the segment is of life {segments[0].header.life}, expected {last.header.life} - at {segments[0].path}"
            )
    return segments


def _find(storage: Storage, number: int) -> FoundSegment:
    path = segment_path(number)
    file = storage.open(path)
    try:
        data = file.view()
    finally:
        file.close()
    header, seed = parse_file_header(SEGMENT_MAGIC, data, path)
    if header.number != number:
        raise JournalError(f"the segment has number {header.number}, expected {number} - at {path}")
    block = parse_block(data, FILE_HEADER_BYTES, seed)
    # It was on the disk before the segment had its name, so it cannot be torn.
    if block is None or block.kind is not BlockKind.STATE:
        raise JournalError(f"the log is damaged: there is no sound STATE - at {path}, {FILE_HEADER_BYTES}")
    state = decode_state(block, path)
    if state.end < _floor(state):
        raise JournalError(f"the log ends at {state.end}, but its snapshot is of {_floor(state)} - at {path}")
    return FoundSegment(path, header, seed, state, block.end, data)


def _floor(state: State) -> int:
    """Return the index of the snapshot that is in force, 0 without one."""
    return state.snapshot.index if state.snapshot is not None else 0


def _numbers(names: Sequence[str], suffix: str) -> list[int]:
    return sorted(int(name.removesuffix(suffix)) for name in names if _is_named(name, suffix))


def _is_named(name: str, suffix: str) -> bool:
    stem = name.removesuffix(suffix)
    return name.endswith(suffix) and len(stem) == NUMBER_DIGITS and stem.isascii() and stem.isdecimal()


def _is_ours(name: str) -> bool:
    plain = name.removesuffix(TEMPORARY)
    return _is_named(plain, SUFFIX) or _is_named(plain, SNAPSHOT_SUFFIX)
