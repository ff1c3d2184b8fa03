"""The same suite for each kind of database: what is delivered is in the table once, in order, and comes back."""

import threading
import time
from pathlib import Path

import numpy
import pytest

import echoic
from echoic.errors import ClosedError, IncompatibleTypesError, JournalError, LocalError
from echoic.replicas import LogOptions, ReplicatedLog
from echoic.wire import Batch
from tests.replicas.conftest import FindUrl
from tests.replicas.ticks import Stamped, Tick, deliver, query, sender_of, tick, wrong_rows


def test_what_is_delivered_comes_back_and_anybody_can_read_it(url: str, name: str) -> None:
    with ReplicatedLog(name, Tick, url) as log:
        assert log.applied() == 0
        deliver(log, 1, 400)
        log.flush()
        assert log.applied() == 400
        assert wrong_rows(log, 400) == ""
    rows = query(url, f"SELECT sequence, sender, number, symbol, note FROM {name} WHERE sequence < 4 ORDER BY sequence")
    assert rows == [(each, sender_of(each), each, f"symbol {each}", tick(each).note) for each in (1, 2, 3)]
    assert query(url, f"SELECT sequence FROM echoic_applied WHERE log = '{name}'") == [(400,)]
    odd = query(url, f"SELECT sequence FROM {name} WHERE exact IS NOT NULL ORDER BY sequence")
    assert odd
    assert len(odd) < 20


def test_a_log_that_is_opened_again_goes_on_and_drops_what_it_has(url: str, name: str) -> None:
    with ReplicatedLog(name, Tick, url) as log:
        deliver(log, 1, 57)
    with ReplicatedLog(name, Tick, url) as log:
        assert log.applied() == 57
        deliver(log, 30, 55)
        deliver(log, 50, 99, batch=7)
        log.flush()
        assert log.statistics().dropped == 26 + 8
        assert wrong_rows(log, 99) == ""
    assert query(url, f"SELECT count(*), min(sequence), max(sequence) FROM {name}") == [(99, 1, 99)]


def test_a_gap_is_refused_and_changes_nothing(url: str, name: str) -> None:
    with ReplicatedLog(name, Tick, url) as log:
        deliver(log, 1, 5)
        with pytest.raises(JournalError, match=f"`{name}` ends at 5, the next events begin at 8: 2 are missing"):
            deliver(log, 8, 9)
        deliver(log, 6, 9)
        log.flush()
        assert wrong_rows(log, 9) == ""


def test_many_batches_share_a_transaction(url: str, name: str) -> None:
    with ReplicatedLog(name, Tick, url, LogOptions(gather_seconds=20.0, transaction_rows_max=200)) as log:
        deliver(log, 1, 399)
        log.flush()
        found = log.statistics()
    assert (found.rows, found.transactions, found.rows_per_transaction) == (399, 2, 199.5)
    assert found.database_seconds > 0
    assert (found.trouble, found.ended, found.pending, found.retries) == ("", False, 0, 0)


def test_part_of_a_log_is_read(url: str, name: str) -> None:
    with ReplicatedLog(name, Tick, url) as log:
        deliver(log, 1, 100)
        log.flush()
        assert [found.sequence for found in log.read(90)] == list(range(91, 101))
        assert [found.sequence for found in log.read(after=10, limit=25)] == list(range(11, 36))
        assert list(log.read(100)) == []


def test_a_closed_log_has_committed_what_was_delivered(url: str, name: str) -> None:
    log = ReplicatedLog(name, Tick, url)
    deliver(log, 1, 30)
    log.close()
    log.close()
    with pytest.raises(ClosedError):
        deliver(log, 31, 31)
    with pytest.raises(ClosedError):
        list(log.read())
    with ReplicatedLog(name, Tick, url) as log:
        assert log.applied() == 30


@pytest.mark.parametrize(
    ("giving", "taking"),
    [("sqlite", "postgresql"), ("postgresql", "mariadb"), ("mariadb", "sqlite"), ("sqlite", "sqlite")],
)
def test_a_member_that_was_away_gets_what_it_missed(find_url: FindUrl, name: str, giving: str, taking: str) -> None:
    with (
        ReplicatedLog(f"{name}_a", Tick, find_url(giving)) as giver,
        ReplicatedLog(f"{name}_b", Tick, find_url(taking)) as taker,
    ):
        deliver(giver, 1, 1500)
        deliver(taker, 1, 123)
        taker.flush()
        chunks = giver.save(taker.applied())
        deliver(giver, 1501, 1600)  # while the state is still to be read
        given = list(chunks)
        assert all(0 < len(chunk) <= 1 << 20 for chunk in given)
        taker.load(given, 1500)
        assert taker.applied() == 1500
        assert wrong_rows(taker, 1500) == ""
        deliver(taker, 1495, 1600)
        taker.flush()
        assert wrong_rows(taker, 1600) == ""


def test_a_state_that_ends_too_early_is_refused_and_the_rest_can_come_later(file_url: str) -> None:
    with ReplicatedLog("a", Tick, file_url) as giver, ReplicatedLog("b", Tick, file_url) as taker:
        deliver(giver, 1, 300)
        with pytest.raises(JournalError, match="`b` has 0 events after a state of 300"):
            taker.load([], 300)
        cut = b"".join(giver.save(0))[:-100]
        with pytest.raises(echoic.errors.MalformedBatchError, match="ends in the middle"):
            taker.load([cut], 300)
        taker.flush()
        assert 0 < taker.applied() < 300
        with pytest.raises(JournalError, match="are missing"):
            taker.load(giver.save(taker.applied() + 1), 300)
        with pytest.raises(JournalError, match="a state of 200 events has one with the number"):
            taker.load(giver.save(taker.applied()), 200)
        taker.load(giver.save(taker.applied()), 300)
        assert wrong_rows(taker, 300) == ""
        taker.load(giver.save(300), 300)
        with pytest.raises(JournalError, match="`a` has 300 events, another member claims to have 301"):
            giver.save(301)


def test_large_events_travel_in_chunks_of_a_megabyte(file_url: str) -> None:
    @echoic.event
    class Large:
        data: bytes

    with ReplicatedLog("a", Large, file_url) as giver, ReplicatedLog("b", Large, file_url) as taker:
        for number in range(1, 6):
            giver.deliver(Batch.of([Large(bytes([number]) * 3_000_000)], Large), Stamped(number, "n"))
        chunks = list(giver.save(0))
        assert all(len(chunk) <= 1 << 20 for chunk in chunks)
        taker.load(chunks, 5)
        assert [found.event.data[0] for found in taker.read()] == [1, 2, 3, 4, 5]


def test_batches_of_an_older_or_another_type_are_converted_or_refused(url: str, name: str) -> None:
    @echoic.event
    class Older:
        at: numpy.int16

    @echoic.event
    class Newer:
        at: int
        venue: str = "here"

    @echoic.event
    class Other:
        at: str

    with ReplicatedLog(name, Newer, url) as log:
        log.deliver(Batch.of([Older(7)], Older), Stamped(1, "n"))
        with pytest.raises(IncompatibleTypesError):
            log.deliver(Batch.of([Other("7")], Other), Stamped(2, "n"))
        log.deliver(Batch.of([], Newer), Stamped(2, "n"))
        log.deliver(Batch.of([Newer(8, "there")], Newer), Stamped(2, "n"))
        log.flush()
        assert [found.event for found in log.read()] == [Newer(7, "here"), Newer(8, "there")]


def test_a_stranger_who_writes_the_same_log_ends_it(url: str, name: str) -> None:
    with ReplicatedLog(name, Tick, url) as log, ReplicatedLog(name, Tick, url) as stranger:
        deliver(stranger, 1, 30)
        stranger.flush()
        deliver(log, 1, 40)
        with pytest.raises(JournalError, match="does not end at 0: another writer has it"):
            log.flush()
        deliver(stranger, 31, 40)
        stranger.flush()
        assert wrong_rows(stranger, 40) == ""


def test_who_delivers_faster_than_the_database_writes_waits(tmp_path: Path, name: str) -> None:
    url = f"sqlite:{tmp_path}/logs.db"
    options = LogOptions(pending_rows_max=20, transaction_rows_max=10)
    with ReplicatedLog(name, Tick, url, options) as log:
        most = 0
        done = threading.Event()

        def watch() -> None:
            nonlocal most
            while not done.is_set():
                most = max(most, log.statistics().pending)
                time.sleep(0.0005)

        watcher = threading.Thread(target=watch)
        watcher.start()
        deliver(log, 1, 2000)
        done.set()
        watcher.join()
        log.flush()
        assert wrong_rows(log, 2000) == ""
    assert most <= 20 + 10 + 10  # pending, one batch more, and what is being written


def test_options_that_cannot_be_are_refused(file_url: str) -> None:
    with pytest.raises(LocalError, match="transaction_rows_max of a log is 0"):
        ReplicatedLog("a", Tick, file_url, LogOptions(transaction_rows_max=0))
    with pytest.raises(LocalError, match="retry_seconds_max of a log is -1"):
        ReplicatedLog("a", Tick, file_url, LogOptions(retry_seconds_max=-1))
