"""What does it cost to keep the entries of an ordered group, against the least that an operating system can do for it?

    python benchmarks/group_log.py [--quick] [--rounds N] [--processes N] [--json] [--plot DIR]

An append is one entry of 1,000, 60,000 or 1,000,000 bytes, and a commit has one append or eight. The rival is a loop of
`os.writev` of the same payload with a head of 48 bytes, and one `os.fdatasync`, on a file beside: no checksum, no
marks, no segments. It is run with syncs (durability "disk") and without ("os"). A cell is the time of one commit.

The files are in the temporary directory: TMPDIR names another disk.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for those who run this file and not the module
from benchmarks.harness import Options, Report, Results, Spread, Table, Target, conduct, figure, label_ends
from echoic.engines.embedded.log_file import LogFile
from echoic.groups.writes import Append, Entry
from echoic.recorder import Disk

TITLE_DISK, TITLE_OS = "a commit on the disk", "a commit with the operating system"
PLAIN, OURS = "writev", "echoic, LogFile"
SIZES = (1_000, 60_000, 1_000_000)
ENTRIES = (1, 8)
HEAD = bytes(48)
JUDGED_BYTES = 60_000
RATIO_MAX = 1 / 0.8


@contextmanager
def plain_loop(folder: Path, payloads: list[bytes], *, synced: bool) -> Iterator[Callable[[], None]]:
    """Give the least that must be done for a commit."""
    descriptor = os.open(folder / "plain", os.O_RDWR | os.O_APPEND | os.O_CREAT)
    pieces = [piece for payload in payloads for piece in (HEAD, payload)]

    def commit() -> None:
        os.writev(descriptor, pieces)
        if synced:
            os.fdatasync(descriptor)

    try:
        yield commit
    finally:
        os.close(descriptor)


@contextmanager
def log_file(folder: Path, payloads: list[bytes], *, synced: bool) -> Iterator[Callable[[], None]]:
    """Give a commit of a log."""
    log = LogFile.open(Disk(folder / "log"), life=1, durable=synced)
    entries = tuple(Entry(1, 0, "source", 1, number, payload) for number, payload in enumerate(payloads))
    end = 0

    def commit() -> None:
        nonlocal end
        log.write([Append(end + 1 + place, (entry,)) for place, entry in enumerate(entries)])
        log.sync()
        end += len(entries)

    try:
        yield commit
    finally:
        log.close()


def run(options: Options) -> list[Table]:
    tables = []
    for title, synced in ((TITLE_DISK, True), (TITLE_OS, False)):
        table = Table(title, "us", PLAIN)
        for size in SIZES:
            for count in ENTRIES:
                table.add(column_of(size, count), measure(options, [os.urandom(size)] * count, synced=synced))
        tables.append(table)
    return tables


def measure(options: Options, payloads: list[bytes], *, synced: bool) -> Results:
    with (
        tempfile.TemporaryDirectory() as folder,
        plain_loop(Path(folder), payloads, synced=synced) as plain,
        log_file(Path(folder), payloads, synced=synced) as ours,
    ):
        return options.measure({PLAIN: plain, OURS: ours})


def column_of(size: int, count: int) -> str:
    return f"{count} x {size:,} B"


def judge(report: Report) -> None:
    for table in report.tables:
        for column, (results, _) in table.columns.items():
            seconds = results.cost(OURS)
            count, _, size = column.partition(" x ")
            total = int(count) * int(size.removesuffix(" B").replace(",", ""))
            rate = Spread(*(total / 1e6 / each for each in (seconds.median, seconds.high, seconds.low)))
            report.remarks.append(f"{table.title}, {column}: {rate} MB/s")
    disk = report.tables[0]
    for count in ENTRIES:
        column = column_of(JUDGED_BYTES, count)
        report.targets.append(Target(f"{disk.title}, {column}", disk.ratio(OURS, column), RATIO_MAX, "x writev"))


def plot(tables: list[Table], path: Path) -> None:
    with figure(path, panels=len(tables), title="Keeping the entries of a group: time of a commit") as panels:
        for axes, table in zip(panels, tables, strict=True):
            ends = []
            for case, colour in ((PLAIN, "#777777"), (OURS, "#c2410c")):
                costs = [table.cost(case, column_of(size, 1)).median for size in SIZES]
                axes.plot(SIZES, costs, marker="o", color=colour)
                ends.append((case, costs[-1], colour))
            axes.set_title(table.title, loc="left", fontsize=9)
            axes.set_xlabel("bytes of one entry")
            axes.margins(x=0.3)
            label_ends(axes, SIZES[-1], ends)


if __name__ == "__main__":
    conduct("group_log", "What it costs to keep the entries of an ordered group.", run, judge, plot)
