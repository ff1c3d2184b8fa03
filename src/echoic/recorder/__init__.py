"""Edge: touches files. Keeps what flows: journals of channels, to be read, replayed and exported."""

from echoic.recorder.disk import Disk
from echoic.recorder.exporting import Exported, FileKind, Selection, export
from echoic.recorder.importing import Contents, Imported, import_file
from echoic.recorder.journal import Journal, JournalSummary
from echoic.recorder.reader import Hole, Missing, PartitionReader, Recorded, fill_hole
from echoic.recorder.scanning import Flaw
from echoic.recorder.shelf import Chunk, LocalShelf, Shelf
from echoic.recorder.storage import File, Lock, Storage
from echoic.recorder.verifying import RecoveryReport, recover, verify
from echoic.recorder.writer import (
    SEGMENT_BYTES_MAX,
    Committed,
    JournalOptions,
    JournalWriter,
    Retention,
    WriterStatistics,
)

__all__ = [
    "SEGMENT_BYTES_MAX",
    "Chunk",
    "Committed",
    "Contents",
    "Disk",
    "Exported",
    "File",
    "FileKind",
    "Flaw",
    "Hole",
    "Imported",
    "Journal",
    "JournalOptions",
    "JournalSummary",
    "JournalWriter",
    "LocalShelf",
    "Lock",
    "Missing",
    "PartitionReader",
    "Recorded",
    "RecoveryReport",
    "Retention",
    "Selection",
    "Shelf",
    "Storage",
    "WriterStatistics",
    "export",
    "fill_hole",
    "import_file",
    "recover",
    "verify",
]
