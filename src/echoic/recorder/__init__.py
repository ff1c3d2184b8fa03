"""Edge: touches files. Keeps what flows: journals of channels, to be read, replayed and exported."""

from echoic.recorder.arrow_stream import ArrowStream
from echoic.recorder.disk import Disk
from echoic.recorder.exporting import Exported, FileKind, Selection, export
from echoic.recorder.importing import Contents, Imported, import_file
from echoic.recorder.journal import Journal, JournalSummary
from echoic.recorder.reader import Hole, Missing, PartitionReader, Recorded, fill_hole
from echoic.recorder.scanning import Flaw
from echoic.recorder.selecting import Filter, project
from echoic.recorder.shelf import Chunk, LocalShelf, Shelf
from echoic.recorder.storage import File, Lock, Storage
from echoic.recorder.transforming import Transform
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
    "ArrowStream",
    "Chunk",
    "Committed",
    "Contents",
    "Disk",
    "Exported",
    "File",
    "FileKind",
    "Filter",
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
    "Transform",
    "WriterStatistics",
    "export",
    "fill_hole",
    "import_file",
    "project",
    "recover",
    "verify",
]
