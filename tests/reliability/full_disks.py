"""What is kept durably, on a disk that is full for a while: a journal, the log of a group's member, an intake.

Each round works on a disk of its own, which is filled at some moment. The producer must be told why it cannot go on,
what was acknowledged must be there meanwhile, and when there is room everything goes on and is there, once. With a
charter hubs have certificates, and just the rights that they need.
"""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

from echoic import Hub, Journal
from echoic.engines.embedded.log_file import LogFile
from echoic.errors import EchoicError
from echoic.groups.writes import Append, Entry
from echoic.hub import Source
from echoic.recorder import Disk, verify
from echoic.testing.charter import Charter, Grants, party_of
from echoic.testing.group_log_campaign import LogBook, LogState
from echoic.testing.kill_roles import Tick, ticks, wrong_ticks
from tests.hub.intake_parties import Writer, recorded
from tests.hub.parties import Tick as Row
from tests.hub.parties import eventually
from tests.reliability.small_disk import SmallDisk

__all__ = ["GRANTS", "ROUNDS", "fill_under_group_log", "fill_under_intake", "fill_under_journal"]

GRANTS: Final[Grants] = {
    "market": ["publish,admin ticks"],
    "recorder": ["subscribe ticks"],
    "intake": ["admin,subscribe ticks.intake"],
    "query": ["publish ticks.intake"],
}
TOLD: Final = "space"
EVENTS: Final = 30_000
ROWS: Final = 2000
ENTRY_BYTES: Final = 3000
STEPS_MAX: Final = 300
SHORT_SECONDS: Final = 2.0  # longer than an intake takes to say that it is busy, and why
LONG_SECONDS: Final = 60.0


def fill_under_journal(disk: SmallDisk, random: Random, charter: Charter | None = None) -> None:
    """Fill the disk of a recorder."""
    path = disk.fresh("journals")
    with Hub(**party_of(charter, "market")) as market, Hub(**party_of(charter, "recorder")) as keeper:
        channel = market.create("ticks", Tick)
        with keeper.record(channel.id, path, segment_bytes_max=random.choice((20_000, 200_000))) as recording:
            source = channel.source(name="feed")
            submit(source, random.randrange(1, EVENTS), random)
            source.drain(LONG_SECONDS)
            acknowledged = source.position
            disk.fill(room=random.randrange(50_000))
            submit(source, EVENTS, random)
            eventually(
                lambda: source.trouble or not problem_of(lambda: source.drain(0.1)), "the source is told anything"
            )
            assert TOLD in source.trouble, "all is acknowledged, though there is no room for it"
            assert TOLD in problem_of(lambda: source.drain(0.1)), "whoever waits is told why it takes so long"
            assert acknowledged <= events_in(path) < source.position
            disk.empty()
            source.drain(LONG_SECONDS)
            eventually(lambda: (source.trouble, recording.trouble) == ("", ""), "nobody is in trouble any more")
            assert events_in(path) == source.position
    assert verify(Disk(path), "ticks") == []


def submit(source: Source, count: int, random: Random) -> None:
    """Submit so many events more, in batches."""
    end = source.position + count
    while source.position < end:
        size = min(end - source.position, random.randrange(1, 3000))
        source.submit_batch(ticks(0, source.position, size))


def events_in(path: Path) -> int:
    """Return how many events a journal has; they are there once, in order, as they were submitted."""
    found = 0
    for one in Journal(path, "ticks").read():
        assert wrong_ticks(one.batch, found) == ""
        found += one.batch.count
    return found


def problem_of(act: Callable[[], None]) -> str:
    """Return what an action complains of, "" if it does not."""
    try:
        act()
    except EchoicError as error:
        return str(error)
    return ""


def fill_under_group_log(disk: SmallDisk, random: Random, _: Charter | None = None) -> None:
    """Fill the disk of a group's member, whose log ends with the reason and is opened again when there is room.

    It has to do with nobody else, so there is nobody to have a right.
    """
    path, book = disk.fresh("log"), LogBook()
    log = open_log(path, random)
    number, full_after = 0, random.randrange(100)
    problem = ""
    while not problem and number < STEPS_MAX:
        if number == full_after:
            disk.fill(room=random.randrange(50_000))
        number += 1
        payload = number.to_bytes(4, "little") + bytes(random.randrange(ENTRY_BYTES))
        write = Append(number, (Entry(1, 0, "member", 1, number, payload),))
        book.write(write)
        problem = problem_of(lambda write=write: keep(log, write))
        if not problem:
            book.sync()
    assert TOLD in problem, f"the member was told {problem!r} after {number} entries, the disk was full"
    assert problem_of(log.sync), "a log that has failed takes nothing more"
    problem_of(log.close)
    disk.empty()
    log = open_log(path, random)
    book.settle(LogState.of(log.image()))
    write = Append(book.state.end + 1, (Entry(1, 0, "member", 1, STEPS_MAX, b"goes on"),))
    keep(log, write)
    book.write(write)
    book.sync()
    log.close()
    again = open_log(path, random)
    book.settle(LogState.of(again.image()))
    again.close()


def open_log(path: Path, random: Random) -> LogFile:
    return LogFile.open(Disk(path), life=7, segment_bytes_max=100_000, draw=lambda: random.getrandbits(64))


def keep(log: LogFile, write: Append) -> None:
    log.write([write])
    log.sync()


def fill_under_intake(disk: SmallDisk, random: Random, charter: Charter | None = None) -> None:
    """Fill the disk of an intake, which refuses to commit or waits with the reason, and takes the same epoch later."""
    path = disk.fresh("journals")
    with Hub(**party_of(charter, "intake")) as keeper, Hub(**party_of(charter, "query")) as query:
        with keeper.intake("ticks", path, Row) as intake:
            writer = Writer(query, intake.channel.id, timeout=SHORT_SECONDS)
            epoch, full_after, problem = 0, random.randrange(4), ""
            while not problem and epoch < STEPS_MAX:
                if epoch == full_after:
                    disk.fill(room=random.randrange(100_000))
                problem = problem_of(lambda epoch=epoch: writer.write(epoch, rows_of(epoch)))
                epoch += not problem
            assert TOLD in problem, f"the writer was told {problem!r} at epoch {epoch}, the disk was full"
            acknowledged = [number for each in range(epoch) for number in rows_of(each)]
            assert recorded(path)[: len(acknowledged)] == acknowledged
            disk.empty()
            patient = Writer(query, intake.channel.id, timeout=LONG_SECONDS)
            for each in (epoch, epoch + 1):
                patient.write(each, rows_of(each))
            eventually(lambda: intake.trouble == "", "nobody is in trouble any more")
        assert recorded(path) == [number for each in range(epoch + 2) for number in rows_of(each)]
    assert verify(Disk(path), "ticks") == []


def rows_of(epoch: int) -> range:
    return range(epoch * ROWS, (epoch + 1) * ROWS)


ROUNDS: Final[tuple[Callable[[SmallDisk, Random, Charter | None], None], ...]] = (
    fill_under_journal,
    fill_under_group_log,
    fill_under_intake,
)
"""What is tried, in turns."""
