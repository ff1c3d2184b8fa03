"""What does one transaction for each pack save, where a group's events go into a database?

python benchmarks/replicated_log.py [--quick] [--rounds N] [--json] [--plot DIR] [--only WORD]

Events of 1000 bytes are written into a table, 1, 8, 28, 64 or 256 in each transaction, which also has the number of the
last of them; a transaction is what a log does with a pack that it is handed. In the last row the log is handed packs of
28 as fast as it takes them, and decides itself how many share a transaction.

SQLite and PostgreSQL wait for the disk at each commit, or do not (`full`, `normal`); MariaDB does. Both servers are
real ones that are started for this, on Unix sockets of this machine. All cells take turns. The files are in the
temporary directory: TMPDIR names another disk. --only takes words of the names of databases.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for those who run this file and not the module
import echoic
from benchmarks.events import Choice, conduct
from benchmarks.rivals import Field
from echoic.formats import Format
from echoic.replicas import Portion, ReplicatedLog, database_of
from echoic.testing.bench import Claim, Contender, Effort, Report, Session, Setup, Table, Unit, interleave
from echoic.testing.bench.journal.keepers import sync_remark
from echoic.wire import Batch
from tests.replicas.servers import Server, ServerMissingError, mariadb_server, postgresql_server

NAME, TITLE = "replicated_log", "events of 1000 bytes in a table, by rows in a transaction"
FULL = "SQLite, full"
DEGREES = (1, 8, 28, 64, 256)
PACK = 28  # what the paper found best for small messages
AS_IT_COMES = f"as it comes, packs of {PACK}"
PAYLOAD_BYTES = 984  # the number and the place of the payload have 16
GAIN_MIN = 10.0
NAMES = count(1)
DRIVERS = Field({}, ("psycopg", "PyMySQL"), "")
COLOURS = ("#c2410c", "#d99a2b", "#1d4ed8", "#93c5fd", "#15803d")


@echoic.event
class Message:
    number: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Stamped:
    sequence: int
    sender: str


def case_of(rows: int) -> str:
    return f"{rows} row{'s' if rows > 1 else ''} a transaction"


def measure(effort: Effort, choice: Choice) -> Report:
    """Measure the databases that the command line asks for."""
    report = Report(NAME)
    report.remarks.append(sync_remark())
    with ExitStack() as stack:
        urls = databases(stack, report, choice)
        entries = {}
        for database, url in urls.items():
            for rows in DEGREES:
                entries[case_of(rows), database] = Contender(database, partial(appending, url, rows)), Setup("1000 B")
            entries[AS_IT_COMES, database] = (
                Contender(database, partial(delivering, database, url, report)),
                Setup("1000 B"),
            )
        samples = interleave(entries, effort)
    report.tables.append(Table(TITLE, Unit.THOUSANDS_PER_SECOND, case_of(1), samples))
    if FULL in urls:
        for rows in (PACK, DEGREES[-1]):
            gain = samples.rounds(lambda one, many: one / many, (case_of(1), FULL), (case_of(rows), FULL))
            report.claims.append(Claim(f"{FULL}, {case_of(rows)}", gain, GAIN_MIN, "x one row", at_least=True))
    return report


def databases(stack: ExitStack, report: Report, choice: Choice) -> dict[str, str]:
    """Start what is asked for, and return the URLs by the names of the columns."""
    starting: dict[str, Callable[[], AbstractContextManager[Server]]] = {
        "PostgreSQL": partial(postgresql_server, synced=True),
        "MariaDB": partial(mariadb_server, synced=True),
    }
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="echoic-bench-")))
    wanted = {FULL: f"sqlite:{folder}/full.db?durability=full", "SQLite, normal": f"sqlite:{folder}/normal.db"}
    for name, start in starting.items():
        if choice.only and not any(word in each for word in choice.only for each in (name, f"{name}, normal")):
            continue
        try:
            url = stack.enter_context(start()).url
        except ServerMissingError as error:
            report.remarks.append(f"not measured: {error}")
            continue
        if name == "PostgreSQL":
            wanted |= {"PostgreSQL, full": url, "PostgreSQL, normal": f"{url}&durability=normal"}
        else:
            wanted[name] = url
    return {name: url for name, url in wanted.items() if not choice.only or any(word in name for word in choice.only)}


@contextmanager
def appending(url: str, rows: int, _: Setup) -> Iterator[Session]:
    """Give the session that makes transactions of so many rows; the seconds are those of a row."""
    database = database_of(own_file(url))
    database.prepare(f"log_{next(NAMES)}", Format.of(Message))
    batch = messages(rows)
    sequence = 1

    def session(operations: int) -> float:
        nonlocal sequence
        begun = time.perf_counter()
        for _ in range(operations):
            database.append([Portion(sequence, (("source", rows),), batch)])
            sequence += rows
        return (time.perf_counter() - begun) / (operations * rows)

    try:
        yield session
    finally:
        database.close()


@contextmanager
def delivering(name: str, url: str, report: Report, _: Setup) -> Iterator[Session]:
    """Give the session that hands a log packs as fast as it takes them, and waits for the last."""
    with ReplicatedLog(f"log_{next(NAMES)}", Message, own_file(url)) as log:
        batch = messages(PACK)

        def session(operations: int) -> float:
            begun, sequence = time.perf_counter(), log.applied() + 1
            for number in range(operations):
                log.deliver(batch, Stamped(sequence + number * PACK, "source"))
            log.flush()
            return (time.perf_counter() - begun) / (operations * PACK)

        yield session
        told = log.statistics()
        report.remarks.append(f"{AS_IT_COMES}, {name}: {told.rows_per_transaction:.0f} rows a transaction")


def own_file(url: str) -> str:
    """Return the URL of a file that no other session has, since SQLite has one writer for each; servers have many."""
    return url.replace(".db", f"_{next(NAMES)}.db") if url.startswith("sqlite") else url


def messages(rows: int) -> Batch:
    return Batch.of([Message(number, bytes(range(256)) * 3 + bytes(PAYLOAD_BYTES - 768)) for number in range(rows)])


def plot(report: Report, path: Path) -> None:
    """Draw rates over rows in a transaction, one line for each database."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    (table,) = report.tables
    # The same numbers give the same file, so that a diff shows changes of the numbers only.
    settings = {"svg.hashsalt": "echoic", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    with matplotlib.rc_context(settings):
        shown, axes = pyplot.subplots(figsize=(7.2, 4.6))
        for name, colour in zip(table.columns, COLOURS, strict=False):
            spreads = [table.value(case_of(rows), name) for rows in DEGREES]
            axes.plot(DEGREES, [each.median for each in spreads], color=colour, marker=".", label=name)
            axes.fill_between(
                DEGREES, [each.low for each in spreads], [each.high for each in spreads], color=colour, alpha=0.12, lw=0
            )
        axes.set(xscale="log", yscale="log", xlabel="rows in a transaction", ylabel="thousand rows a second")
        axes.set_xticks(DEGREES, [str(rows) for rows in DEGREES])
        axes.minorticks_off()
        axes.set_title("What one transaction for each pack saves, events of 1000 bytes", loc="left", fontweight="bold")
        axes.grid(visible=True, color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.legend(frameon=False, fontsize=8)
        shown.tight_layout()
        path.parent.mkdir(parents=True, exist_ok=True)
        shown.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
        pyplot.close(shown)


if __name__ == "__main__":
    conduct("What one transaction for each pack saves.", measure, plot, DRIVERS)
