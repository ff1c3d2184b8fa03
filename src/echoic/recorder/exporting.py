"""From a journal into a file that other programs read.

    parquet, arrow, csv     columns of one type, that of the newest events, to which the others are converted
    mcap                    messages, each as it was recorded

A file is written beside its place under a name of its own, brought to the disk, and renamed when it is whole: whoever
finds a file under the asked name finds all of it, and a failed export leaves nothing behind. A file that is there
already is not replaced unless that was asked for.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from echoic.errors import JournalError, LocalError

if TYPE_CHECKING:
    from echoic.recorder.journal import Journal
    from echoic.recorder.reader import Hole

__all__ = ["ALL", "Exported", "FileKind", "Selection", "export", "kind_of_file"]

FileKind: TypeAlias = Literal["parquet", "arrow", "csv", "mcap"]
Moment: TypeAlias = int | str | datetime | None

SUFFIXES: Final[dict[str, FileKind]] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
    ".csv": "csv",
    ".mcap": "mcap",
}
ROWS: Final = {"parquet": 262_144, "arrow": 65_536, "csv": 65_536}


@dataclass(frozen=True, slots=True)
class Selection:
    """Which events of a journal are meant, as `Journal.read` takes it."""

    start: int | None = None
    end: int | None = None
    partition: int | None = None
    since: Moment = None
    until: Moment = None
    columns: Sequence[str] | None = None
    where: str = ""
    declared: object | None = None


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written."""

    file: str
    kind: FileKind
    events: int
    bytes: int


ALL: Final = Selection()


def kind_of_file(file: Path, kind: str = "") -> FileKind:
    """Return the format of a file: the one that is named, or what its suffix says.

    Raises:
        LocalError: Neither says one that is known.
    """
    suffixed = SUFFIXES.get(file.suffix.lower()) if not kind else None
    found = next((each for each in get_args(FileKind) if each == kind), suffixed)
    if found is None:
        told = f"'{kind}' is no format" if kind else f"the suffix of {file} says no format"
        raise LocalError(f"{told}; there are {', '.join(get_args(FileKind))}")
    return found


def export(
    journal: "Journal",
    file: Path | str,
    kind: str = "",
    *,
    selection: Selection = ALL,
    metadata: bool = False,
    force: bool = False,
    on_hole: Callable[["Hole"], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Exported:
    """Write events of a journal into a file, which is there when all of them are in it.

    Args:
        journal: Where they are.
        file: Where they go.
        kind: parquet, arrow, csv or mcap; by default what the suffix of the file says.
        selection: Which of them.
        metadata: Add columns with sequence, source, number, time and partition. MCAP files always have them.
        force: Replace a file that is there.
        on_hole: Is told of events that cannot be read; without it they are an error.
        progress: Is told how many events were written so far.

    Raises:
        ECodeError: `selection.where` is wrong.
        IncompatibleTypesError: Events cannot be converted to the newest type.
        JournalError: The journal cannot be read, or the file not be written.
        LocalError: The file is there already, or its format is not known.
    """
    path = Path(file)
    wanted = kind_of_file(path, kind)
    tell = progress if progress is not None else _tell_nobody
    with _target(path, force=force) as temporary:
        if wanted == "mcap":
            events = _messages(journal, temporary, selection, on_hole, tell)
        else:
            events = _columns(journal, temporary, wanted, selection, metadata, on_hole, tell)
        size = temporary.stat().st_size
    return Exported(str(path), wanted, events, size)


def _tell_nobody(events: int) -> None:
    """Let the count pass."""


def _columns(
    journal: "Journal",
    file: Path,
    kind: Literal["parquet", "arrow", "csv"],
    selection: Selection,
    metadata: bool,
    on_hole: Callable[["Hole"], None] | None,
    progress: Callable[[int], None],
) -> int:
    from echoic.recorder.columnar import write_columns

    reader = journal.arrow(
        selection.start,
        selection.end,
        partition=selection.partition,
        since=selection.since,
        until=selection.until,
        columns=selection.columns,
        where=selection.where,
        declared=selection.declared,
        on_hole=on_hole,
        metadata=metadata,
        rows=ROWS[kind],
    )
    return write_columns(reader, file, kind, journal.name, progress)


def _messages(
    journal: "Journal",
    file: Path,
    selection: Selection,
    on_hole: Callable[["Hole"], None] | None,
    progress: Callable[[int], None],
) -> int:
    from echoic.recorder.mcap_files import write_messages

    recorded = journal.read(
        selection.start,
        selection.end,
        partition=selection.partition,
        since=selection.since,
        until=selection.until,
        columns=selection.columns,
        where=selection.where,
        declared=selection.declared,
        on_hole=on_hole,
    )
    return write_messages(recorded, file, journal.name, progress)


@contextmanager
def _target(file: Path, *, force: bool) -> Iterator[Path]:
    """Give a name to write to; what is there at the end gets the name that was asked for.

    Raises:
        JournalError: It cannot be written.
        LocalError: There is a file already.
    """
    _refuse(file, force=force)
    temporary = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        temporary.unlink(missing_ok=True)
        try:
            temporary.touch(exist_ok=False)
            yield temporary
            _sync(temporary)
            _refuse(file, force=force)
            temporary.replace(file)
            _sync(file.parent)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise JournalError(f"cannot write {file}: {error.strerror or error}") from error


def _refuse(file: Path, *, force: bool) -> None:
    if file.is_dir():
        raise LocalError(f"{file} is a directory, expected the name of a file")
    if file.exists() and not force:
        raise LocalError(f"{file} is there already and would be lost; --force replaces it")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
