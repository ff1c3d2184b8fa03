"""Events that are too large for a frame: over every link, in order, to many, from a store that has a limit."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy
import pytest

import echoic
from echoic import Hub
from echoic.errors import DeliveryError, EncodeError, LimitExceededError, LocalError
from echoic.hub import hello
from echoic.hub.large_storage import LargeStorage, slices
from echoic.values import ValueStore
from tests.hub.eager_modulators import Every, MakeHub, listen
from tests.hub.parties import Collector, Note, StartHub, eventually

MEBIBYTE = 1024 * 1024
FRAME_BYTES = 16 * MEBIBYTE
LARGE = 20 * MEBIBYTE
SECONDS = 60


@echoic.event
class Blob:
    number: echoic.int64
    data: bytes


@echoic.event
class Length:
    number: echoic.int64


PICTURE = numpy.dtype([("number", "i8"), ("pixels", "u1", (FRAME_BYTES - 8,))])  # as large as a fixed type may be


def blob(number: int, size: int = LARGE) -> Blob:
    return Blob(number, bytes([number % 251]) * size)


def is_settled(*hubs: Hub) -> bool:
    """Whether no hub keeps anything of large events."""
    found = [hub.statistics().large for hub in hubs]
    return not any(one.values or one.heap_bytes or one.file_bytes for one in found)


@pytest.fixture
def elder(monkeypatch: pytest.MonkeyPatch, start_hub: StartHub) -> Hub:
    """A hub of the time when there were no large events: it does not name the feature."""
    with monkeypatch.context() as patched:
        patched.setattr(hello, "LARGE_FEATURE", "something else")
        return start_hub()


def test_large_events_and_small_ones_arrive_in_order(start_hub: StartHub, any_link: str) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("blobs", Blob)
    seen = Collector()
    there.open(created.id, Blob).subscribe(seen)
    source, events = created.source(), [blob(0, 10), blob(1), blob(2, 10), Blob(3, os.urandom(40 * MEBIBYTE)), blob(4)]
    for one in events:
        source.submit(one)
    source.submit_batch([blob(5, 10), blob(6), blob(7, 10)])
    source.submit_sync(blob(8), SECONDS)
    source.submit_sync(blob(9, 10), SECONDS)
    assert seen.numbers == list(range(10))
    assert seen.events[:5] == events
    assert seen.events[6] == blob(6)
    eventually(lambda: is_settled(here, there))


def test_a_synchronous_event_is_answered_when_every_handler_has_returned(start_hub: StartHub) -> None:
    here, hubs = start_hub(), [start_hub() for _ in range(3)]
    created = here.create("blobs", Blob)
    seen = [Collector() for _ in hubs]
    for hub, one in zip(hubs, seen, strict=True):
        hub.open(created.id, Blob).subscribe(one)
    created.subscribe(mine := Collector())
    created.source().submit_sync(blob(1), SECONDS)
    assert [one.events for one in (*seen, mine)] == [[blob(1)]] * 4

    def fail(_: Blob) -> None:
        raise ValueError("it is too large for me")

    hubs[0].open(created.id, Blob).subscribe(fail)
    with pytest.raises(DeliveryError, match="it is too large for me"):
        created.source().submit_sync(blob(2), SECONDS)
    eventually(lambda: is_settled(here, *hubs))


def test_one_copy_waits_for_all_who_are_slow_and_goes_with_the_last(start_hub: StartHub) -> None:
    here, hubs = start_hub(), [start_hub() for _ in range(3)]
    created = here.create("blobs", Blob)
    seen = [Collector() for _ in hubs]
    for hub, one in zip(hubs, seen, strict=True):
        one.gate.clear()
        hub.open(created.id, Blob).subscribe(one)
    source = created.source()
    source.submit(blob(0, 10))
    source.flush()
    source.submit(blob(1))
    store = here.statistics().large
    assert (store.values, store.heap_bytes // MEBIBYTE) == (1, LARGE // MEBIBYTE)
    for one in seen[:2]:
        one.gate.set()
        one.has(2)
    assert here.statistics().large.values == 1
    seen[2].gate.set()
    seen[2].has(2)
    eventually(lambda: is_settled(here, *hubs))


def test_small_events_of_another_channel_do_not_wait_for_a_large_one(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    large, small = here.create("large", Blob), here.create("small", Blob)
    seen, others = Collector(), Collector()
    there.open(large.id, Blob).subscribe(seen)
    there.open(small.id, Blob).subscribe(others)
    with large.source() as source, small.source() as other:
        source.submit(blob(0, 200 * MEBIBYTE))
        for number in range(20):
            other.submit_sync(blob(number, 100), SECONDS)
        assert others.numbers == list(range(20))
        source.drain(SECONDS)
    assert len(seen.events[0].data) == 200 * MEBIBYTE


def test_arrays_are_sent_as_they_were_when_they_were_submitted(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created, signals = here.create("pictures", PICTURE), here.create("signals", Blob)
    found: list[tuple[int, int]] = []
    holding = Collector()
    holding.gate.clear()
    there.open(signals.id, Blob).subscribe(holding)

    def look(batch: echoic.Batch) -> None:
        found.extend((int(one["number"]), int(one["pixels"].min())) for one in batch.array)

    there.open(created.id, PICTURE).subscribe(look, batch=True)
    signals.source().submit(blob(0, 10))
    eventually(lambda: holding.threads)
    source, pictures = created.source(), numpy.zeros(2, PICTURE)
    pictures["number"], pictures["pixels"] = [1, 2], 7
    source.submit_batch(pictures[:1])  # nobody can fetch it while the thread that reads is held
    pictures["pixels"] = 0
    holding.gate.set()
    source.drain(SECONDS)
    assert found == [(1, 7)]
    eventually(lambda: is_settled(here, there))


def test_an_event_above_the_limit_is_refused_by_the_hub_that_sends_it_and_by_none_other(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub(event_bytes_max=LARGE)
    created = here.create("blobs", Blob)
    seen = Collector()
    there.open(created.id, Blob).subscribe(seen)
    source = created.source()
    for submit in (source.submit, source.submit_sync, lambda one: source.submit_batch([one])):
        with pytest.raises(EncodeError, match=f"limit is {LARGE} for the hub at {there.address}"):
            submit(blob(1))
    source.submit_sync(blob(2, LARGE - 100), SECONDS)
    assert seen.numbers == [2]
    small = start_hub(event_bytes_max=FRAME_BYTES)
    theirs = small.open(created.id, Blob).source()
    with pytest.raises(EncodeError, match=f"limit is {FRAME_BYTES}"):
        theirs.submit(blob(3))
    theirs.submit_sync(blob(4, 10), SECONDS)
    assert seen.numbers == [2, 4]


@pytest.mark.parametrize("limit", [0, FRAME_BYTES - 1, 2**31 + 1])
def test_a_limit_that_cannot_be_kept_is_refused(limit: int) -> None:
    with pytest.raises(LocalError, match=f"event_bytes_max is {limit}, expected 16777216 to 2147483648"):
        Hub(event_bytes_max=limit)


def test_a_hub_that_does_not_know_of_large_events_gets_none_and_all_others(start_hub: StartHub, elder: Hub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("blobs", Blob)
    theirs, ours = Collector(), Collector()
    elder.open(created.id, Blob).subscribe(theirs)
    there.open(created.id, Blob).subscribe(ours)
    source = created.source()
    for submit in (source.submit, source.submit_sync, lambda one: source.submit_batch([one])):
        with pytest.raises(EncodeError, match=f"limit is {FRAME_BYTES} for the hub at {elder.address}"):
            submit(blob(1))
    source.submit_sync(blob(2, 15 * MEBIBYTE), SECONDS)
    assert theirs.numbers == ours.numbers == [2]
    assert elder.open(created.id, Blob).source().position == 0
    elder.open(created.id, Blob).source().submit_sync(blob(3, 15 * MEBIBYTE), SECONDS)
    assert ours.numbers == [2, 3]
    assert is_settled(here, there, elder)


def test_what_memory_has_no_room_for_is_sent_from_a_file_and_received_into_one(
    start_hub: StartHub, tmp_path: Path
) -> None:
    stores = [ValueStore[bytes](budget_bytes=MEBIBYTE, spill=tmp_path) for _ in range(2)]
    here, there = start_hub(store=stores[0]), start_hub(store=stores[1])
    created = here.create("blobs", Blob)
    seen = Collector()
    there.open(created.id, Blob).subscribe(seen)
    source, data = created.source(), os.urandom(LARGE)
    for number in range(3):
        source.submit(Blob(number, data))
    source.drain(SECONDS)
    assert seen.numbers == [0, 1, 2]
    assert all(one.data == data for one in seen.events)
    assert here.statistics().large.spilled == 3
    assert there.statistics().large.heap_bytes_peak <= MEBIBYTE
    eventually(lambda: is_settled(here, there))
    assert not list(tmp_path.iterdir())


def test_a_sender_without_room_is_told_and_goes_on(start_hub: StartHub, tmp_path: Path) -> None:
    store = ValueStore[bytes](budget_bytes=MEBIBYTE, spill=tmp_path, file_bytes_max=LARGE + MEBIBYTE)
    here, there = start_hub(store=store), start_hub()
    first, second = here.create("first", Blob), here.create("second", Blob)
    seen = Collector()
    seen.gate.clear()
    for created in (first, second):
        there.open(created.id, Blob).subscribe(seen)
    with first.source() as source, second.source() as other:
        source.submit(blob(0, 10))
        source.flush()
        source.submit(blob(1))
        with pytest.raises(LimitExceededError, match="spilled values would take"):
            other.submit(blob(2))
        other.submit(blob(3, 10))
        seen.gate.set()
        source.drain(SECONDS)
        other.submit_sync(blob(4), SECONDS)
    assert sorted(seen.numbers) == [0, 1, 3, 4]


def test_a_receiver_without_room_misses_the_event_and_says_so(start_hub: StartHub, tmp_path: Path) -> None:
    store = ValueStore[bytes](budget_bytes=MEBIBYTE, spill=tmp_path, file_bytes_max=MEBIBYTE)
    here, there = start_hub(), start_hub(store=store)
    created = here.create("blobs", Blob)
    seen = Collector()
    there.open(created.id, Blob).subscribe(seen, on_gap=seen.gaps.append)
    source = created.source()
    source.submit(blob(0))
    source.submit_sync(blob(1, 10), SECONDS)
    assert (seen.numbers, seen.missed) == ([1], {0})
    assert "there is no room for an event of" in seen.gaps[0].reason
    with pytest.raises(DeliveryError, match="there is no room for an event of"):
        source.submit_sync(blob(2), SECONDS)
    source.submit_sync(blob(3, 10), SECONDS)
    assert (seen.numbers, seen.missed) == ([1, 3], {0, 2})
    eventually(lambda: is_settled(here, there))


def test_code_at_the_source_sees_large_events_and_what_it_makes_of_them_is_small(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("blobs", Blob)
    opened = there.open(created.id, Blob)
    lengths = Collector()
    opened.derive("{ output.number = input.number * 10; return 1; }", Length).subscribe(lengths)
    source = created.source()
    source.submit(blob(1))
    source.submit_sync(blob(2), SECONDS)
    assert lengths.numbers == [10, 20]
    assert here.statistics().large.heap_bytes_peak == 0, "nothing large was sent"


@pytest.mark.parametrize("placement", ["source", "sink"])
def test_a_filter_passes_large_events(start_hub: StartHub, placement: str) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("blobs", Blob)
    seen = Collector()
    there.open(created.id, Blob).derive("input.number % 2 == 1", placement=placement).subscribe(seen)
    source = created.source()
    for number in range(4):
        source.submit(blob(number))
    source.submit_sync(blob(5), SECONDS)
    assert seen.events == [blob(1), blob(3), blob(5)]
    eventually(lambda: is_settled(here, there))


def test_who_cannot_get_what_a_filter_passes_is_told_and_the_source_goes_on(start_hub: StartHub, elder: Hub) -> None:
    here = start_hub()
    created = here.create("blobs", Blob)
    seen = Collector()
    filtered = elder.open(created.id, Blob).derive("input.number % 2 == 1")
    filtered.subscribe(seen, on_gap=seen.gaps.append)
    source = created.source()
    source.submit(blob(1))
    source.submit(blob(2))
    source.submit_sync(blob(3, 10), SECONDS)
    assert (seen.numbers, seen.missed) == ([3], {0})
    assert f"limit is {FRAME_BYTES} for the hub at {elder.address}" in seen.gaps[0].reason


def test_a_modulator_is_not_given_large_events_and_those_who_listen_are_told(
    running: MakeHub, viewing: MakeHub
) -> None:
    created = running().create("notes", Note)
    seen = listen(viewing().open(created.id, Note), Every(2))
    with created.source() as source:
        for number in range(4):
            source.submit(Note(number, "x" * (LARGE if number == 2 else 10)))
        source.submit_sync(Note(4, "the last"), SECONDS)
    assert seen.numbers == [0, 4]
    assert not seen.told(f"one has {LARGE + 24} bytes, limit is 16777152").suspended


@pytest.mark.parametrize("where", ["here", "there"])
def test_a_recorded_channel_has_no_large_events_and_its_journal_goes_on(
    start_hub: StartHub, tmp_path: Path, where: str
) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("blobs", Blob)
    recording = (here if where == "here" else there).record(created.id, tmp_path)
    seen, again = Collector(), Collector()
    there.open(created.id, Blob).subscribe(seen)
    with created.source() as source:
        source.submit(blob(0, 10))
        if where == "there":
            for submit in (source.submit, source.submit_sync, lambda one: source.submit_batch([one])):
                with pytest.raises(EncodeError, match=f"limit is {FRAME_BYTES} for what is recorded"):
                    submit(blob(1))
        else:
            with pytest.raises(DeliveryError, match=f"limit is {FRAME_BYTES}"):
                source.submit_sync(blob(1), SECONDS)
        source.submit_sync(blob(2, 10 * MEBIBYTE), SECONDS)
    assert recording.heads == (2,)
    assert not recording.trouble
    assert seen.numbers == ([0, 2] if where == "there" else [0, 1, 2])
    recording.close()
    other = here.create("again", Blob)
    there.open(other.id, Blob).subscribe(again)
    here.replay(tmp_path, "again", 0, recorded="blobs").wait(SECONDS)
    again.has(2)
    assert again.events == [blob(0, 10), blob(2, 10 * MEBIBYTE)]


def test_a_durable_sink_of_a_channel_with_large_events_gets_all_that_can_be_recorded(
    start_hub: StartHub, tmp_path: Path
) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("blobs", Blob)
    there.record(created.id, tmp_path)
    numbers: list[int] = []
    here.open(created.id, Blob).resume(lambda one, _: numbers.append(one.number), name="reader")
    with created.source() as source:
        source.submit_sync(blob(0, 15 * MEBIBYTE), SECONDS)
        with pytest.raises(EncodeError, match="for what is recorded"):
            source.submit(blob(1))
        source.submit_sync(blob(2, 10), SECONDS)
        eventually(lambda: numbers == [0, 2])


def test_a_hub_that_closes_sends_its_large_event_first(start_hub: StartHub) -> None:
    there = start_hub()
    seen = Collector()
    with Hub() as here:
        created = here.create("blobs", Blob)
        there.open(created.id, Blob).subscribe(seen)
        created.source().submit(blob(1))
    seen.has(1)
    assert seen.events == [blob(1)]


def test_hubs_that_end_leave_nothing_in_a_store_that_others_use(start_hub: StartHub, tmp_path: Path) -> None:
    store = ValueStore[bytes](budget_bytes=100 * MEBIBYTE, spill=tmp_path)
    with Hub() as manager:
        created = manager.create("blobs", Blob)
        seen = Collector()
        seen.gate.clear()
        there = start_hub()
        there.open(created.id, Blob).subscribe(seen, slow="latest")
        with Hub(store=store) as here:
            source = here.open(created.id, Blob).source()
            for number in range(4):
                source.submit(blob(number))
            eventually(lambda: store.statistics().values > 0)
        assert store.statistics().values == 0
        seen.gate.set()


def test_a_source_moves_behind_its_large_event(start_hub: StartHub) -> None:
    here, there, third = start_hub(), start_hub(), start_hub()
    created = here.create("blobs", Blob)
    seen = Collector()
    there.open(created.id, Blob).subscribe(seen, on_gap=seen.gaps.append)
    source = created.source()
    source.submit(blob(0))
    state = source.freeze(SECONDS)
    assert seen.numbers == [0]
    moved = third.open(created.id, Blob).source(resume=state)
    moved.submit_sync(blob(1), SECONDS)
    assert (seen.numbers, seen.gaps) == ([0, 1], [])


def test_a_sink_that_closes_in_the_middle_leaves_nothing_behind(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("blobs", Blob)
    for _ in range(5):
        sink = there.open(created.id, Blob).subscribe(Collector())
        with created.source() as source:
            source.submit(blob(1, 50 * MEBIBYTE))
            sink.close()
            eventually(lambda: is_settled(here, there))


KILLED = """
import sys
import echoic

@echoic.event
class Blob:
    number: echoic.int64
    data: bytes

hub = echoic.Hub(name="victim")
hub.open(sys.argv[1], Blob).subscribe(lambda one: None)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("moment", ["before it asks", "in the middle"])
def test_a_peer_that_is_killed_leaves_the_store_empty(start_hub: StartHub, moment: str) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("blobs", Blob)
    seen = Collector()
    there.open(created.id, Blob).subscribe(seen)
    command = [sys.executable, "-c", KILLED, created.id]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline() == b"ready\n"
        if moment == "before it asks":
            victim.send_signal(signal.SIGSTOP)
        source, before = created.source(), sent_to_victim(here)
        source.submit(blob(1, 200 * MEBIBYTE))
        if moment == "in the middle":
            eventually(lambda: sent_to_victim(here) > before + 10)
        else:
            seen.has(1)
            assert here.statistics().large.values == 1, "for the one that has not asked"
        victim.kill()
    seen.has(1)
    eventually(lambda: is_settled(here, there))
    source.submit_sync(blob(2), SECONDS)
    assert seen.numbers == [1, 2]


def sent_to_victim(hub: Hub) -> int:
    """Return how many frames the hub to be killed was sent."""
    return next((link.session.sent for link in hub.statistics().links if link.name == "victim"), 0)


def test_events_of_many_threads_arrive_whole_and_in_order(start_hub: StartHub, any_link: str) -> None:
    here, there = start_hub(), start_hub()
    channels = [here.create(f"blobs-{number}", Blob) for number in range(3)]
    seen = [Collector() for _ in channels]
    for created, one in zip(channels, seen, strict=True):
        there.open(created.id, Blob).subscribe(one)

    def pour(number: int) -> None:
        with channels[number].source() as source:
            for count in range(12):
                source.submit(blob(count, (LARGE, 10, 1000, 5 * MEBIBYTE)[(count + number) % 4]))
            source.drain(SECONDS)

    threads = [threading.Thread(target=pour, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, one in enumerate(seen):
        sizes = [(LARGE, 10, 1000, 5 * MEBIBYTE)[(count + number) % 4] for count in range(12)]
        assert [(each.number, len(each.data)) for each in one.events] == list(enumerate(sizes))
        assert all(each.data == bytes([each.number]) * len(each.data) for each in one.events)
    eventually(lambda: is_settled(here, there))


def test_pieces_are_cut_out_of_pieces() -> None:
    pieces = [b"abc", memoryview(b"defg"), b"", b"h"]
    for start in range(9):
        for end in range(start, 9):
            assert b"".join(slices(pieces, start, end)) == b"abcdefgh"[start:end]


def test_what_is_dropped_is_given_back_with_the_next_that_is_put() -> None:
    storage = LargeStorage(ValueStore())
    handle = storage.put([b"x" * 1000])
    storage.drop(handle)
    storage.put([b"y" * 10])
    assert storage.statistics().heap_bytes == 10
