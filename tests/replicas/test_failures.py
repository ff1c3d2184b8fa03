"""Full disks, servers that die and come back or do not, strangers who write: nothing is lost, nothing is doubled."""

import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from echoic.errors import JournalError, UnreachableError
from echoic.formats import Format
from echoic.replicas import LogOptions, ReplicatedLog, database_of
from tests.replicas.servers import Server, ServerMissingError, mariadb_server, postgresql_server
from tests.replicas.ticks import Tick, deliver, query, ticks, wrong_rows

pytestmark = pytest.mark.system

MEGABYTE = 1024 * 1024
STARTING = {"postgresql": postgresql_server, "mariadb": mariadb_server}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MB on which little is left."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        (folder / "filler").write_bytes(bytes(3 * MEGABYTE))
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture(scope="module", params=list(STARTING))
def shared_mortal(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server that no other module has, since it is killed."""
    try:
        with STARTING[request.param]() as server:
            yield server
    except ServerMissingError as error:
        pytest.skip(str(error))


@pytest.fixture
def mortal(shared_mortal: Server) -> Server:
    shared_mortal.start()
    return shared_mortal


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_a_full_disk_ends_the_log_which_goes_on_when_there_is_room(small_disk: Path, durability: str) -> None:
    url = f"sqlite:{small_disk}/log.db?durability={durability}"
    with ReplicatedLog("ticks", Tick, url) as log:
        with pytest.raises(JournalError, match=r"`ticks` has ended at \d+: .*(disk is full|disk I/O error)"):
            deliver(log, 1, 100_000)
        told = log.statistics()
        assert told.ended
        assert "disk" in told.trouble
        assert 0 < log.applied() < 100_000
        with pytest.raises(JournalError, match="has ended"):
            log.flush()
        with pytest.raises(JournalError, match="has ended"):
            deliver(log, log.applied() + 1, log.applied() + 1)
        assert wrong_rows(log, log.applied()) == ""  # which can still be read
    (small_disk / "filler").unlink()
    with ReplicatedLog("ticks", Tick, url) as log:
        assert log.applied() == told.applied
        deliver(log, max(1, told.applied - 50), told.applied + 500)
        log.flush()
        assert wrong_rows(log, told.applied + 500) == ""


def test_a_server_that_is_killed_and_comes_back_loses_and_doubles_nothing(mortal: Server, name: str) -> None:
    with ReplicatedLog(name, Tick, mortal.url, LogOptions(transaction_rows_max=50)) as log:
        stop, numbers = threading.Event(), [0]

        def keep_delivering() -> None:
            while not stop.is_set() and numbers[0] < 20_000:
                deliver(log, numbers[0] + 1, numbers[0] + 40)
                numbers[0] += 40
                time.sleep(0.001)

        source = threading.Thread(target=keep_delivering)
        source.start()
        try:
            for _ in range(2):
                time.sleep(0.3)
                mortal.kill()
                time.sleep(0.2)
                mortal.start()
        finally:
            stop.set()
            source.join()
        log.flush()
        told = log.statistics()
        assert told.retries > 0
        assert (told.trouble, told.ended, told.applied) == ("", False, numbers[0])
        assert wrong_rows(log, numbers[0]) == ""  # through a connection that was broken too
    assert query(mortal.url, f"SELECT count(*), max(sequence) FROM {name}") == [(numbers[0], numbers[0])]


def test_a_server_that_does_not_come_back_ends_the_log_and_a_restart_goes_on(mortal: Server, name: str) -> None:
    log = ReplicatedLog(name, Tick, mortal.url, LogOptions(retry_seconds_max=0.5))
    deliver(log, 1, 100)
    log.flush()
    mortal.kill()
    begun = time.monotonic()
    deliver(log, 101, 120)
    with pytest.raises(JournalError, match=r"has ended at 100: the database did not come back within 0\.5 s: .+ - at"):
        log.flush()
    assert 0.5 <= time.monotonic() - begun < 10
    told = log.statistics()
    assert (told.applied, told.ended, told.pending) == (100, True, 20)
    log.close()
    mortal.start()
    with ReplicatedLog(name, Tick, mortal.url) as log:
        deliver(log, 81, 150)
        log.flush()
        assert wrong_rows(log, 150) == ""


def test_a_log_is_closed_at_once_although_the_server_is_gone(mortal: Server, name: str) -> None:
    log = ReplicatedLog(name, Tick, mortal.url, LogOptions(retry_seconds_max=60))
    deliver(log, 1, 10)
    log.flush()
    mortal.kill()
    deliver(log, 11, 20)
    time.sleep(0.2)
    assert log.statistics().trouble
    begun = time.monotonic()
    log.close()
    assert time.monotonic() - begun < 10
    assert log.applied() == 10


@pytest.mark.parametrize("shared_mortal", ["postgresql"], indirect=True)  # MariaDB has no setting of a session for it
def test_a_server_that_forgets_what_it_has_committed_ends_the_log_which_goes_on_from_there(
    mortal: Server, name: str
) -> None:
    with ReplicatedLog(name, Tick, f"{mortal.url}&durability=normal") as log:
        deliver(log, 1, 100)
        log.flush()
        time.sleep(1.5)  # three times what the server waits before it writes
        deliver(log, 101, 200)
        log.flush()
        mortal.kill()
        mortal.start()
        deliver(log, 201, 210)
        try:
            log.flush()
        except JournalError as error:
            assert "is back without what it had committed, 100 events of 200: open the log again" in str(error)  # noqa: PT017
            assert log.statistics().ended
    with ReplicatedLog(name, Tick, mortal.url) as log:
        assert log.applied() in (100, 210)
        deliver(log, 95, 250)
        log.flush()
        assert wrong_rows(log, 250) == ""


def test_a_commit_whose_answer_was_lost_is_not_done_twice(file_url: str) -> None:
    class Forgetful:
        """Commits, and then says that it is gone, as a server does that is killed before it answers."""

        def __init__(self) -> None:
            self.inner = database_of(file_url)
            self.lost = 0

        def __getattr__(self, called: str) -> object:
            return getattr(self.inner, called)

        def append(self, portions: list) -> None:
            self.inner.append(portions)
            self.lost += 1
            raise UnreachableError("the answer was lost")

    database = Forgetful()
    with ReplicatedLog("ticks", Tick, database, LogOptions(transaction_rows_max=20)) as log:
        deliver(log, 1, 100)
        log.flush()
        assert log.statistics().retries == database.lost > 1
        assert wrong_rows(log, 100) == ""


def test_a_program_that_reads_the_file_meanwhile_takes_nothing_away(tmp_path: Path) -> None:
    database = database_of(f"sqlite:{tmp_path}/log.db")
    database.prepare("ticks", Format.of(Tick))
    database.append([ticks(1, 5)])
    assert database.read(0, 5, 5) is not None  # by a connection of its own
    assert last_seen_elsewhere(tmp_path / "log.db") == 5
    database.append([ticks(6, 10)])
    assert last_seen_elsewhere(tmp_path / "log.db") == database.applied() == 10
    database.close()


def last_seen_elsewhere(file: Path) -> int:
    """Return the number of the last event that another process finds."""
    question = "SELECT max(sequence) FROM ticks"
    program = "import sqlite3, sys; print(*sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchone())"
    return int(subprocess.run([sys.executable, "-c", program, file, question], capture_output=True, check=True).stdout)


def test_a_file_that_somebody_has_locked_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("echoic.replicas.sqlite.LOCKED_SECONDS_MAX", 0.1)
    with ReplicatedLog("ticks", Tick, f"sqlite:{tmp_path}/log.db") as log:
        with closing(sqlite3.connect(tmp_path / "log.db", isolation_level=None)) as somebody:
            somebody.execute("BEGIN IMMEDIATE")
            deliver(log, 1, 20)
            time.sleep(0.4)
            assert "locked" in log.statistics().trouble
            somebody.execute("ROLLBACK")
        log.flush()
        assert log.statistics().trouble == ""
        assert wrong_rows(log, 20) == ""
