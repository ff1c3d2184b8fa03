"""Large events, many channels, and nothing that is left behind."""

import os
import threading
import time
from pathlib import Path

import numpy
import pytest

import echoic
from echoic import Hub
from echoic.errors import EncodeError
from tests.hub.parties import Collector, StartHub, Tick, eventually

CHANNELS = 4096
FRAME_BYTES = 16 * 1024 * 1024


@echoic.event
class Blob:
    number: echoic.int64
    data: bytes


@pytest.mark.parametrize("where", ["there", "both"])
def test_an_event_above_the_limit_is_refused_and_the_source_goes_on(
    start_hub: StartHub, any_link: str, where: str
) -> None:
    here, there = start_hub(event_bytes_max=FRAME_BYTES), start_hub()
    created = here.create("blobs", Blob)
    seen = Collector()
    there.open(created.id, Blob).subscribe(seen)
    if where == "both":
        created.subscribe(Collector())
    source = created.source()
    source.submit(Blob(0, b"before"))
    huge = Blob(1, bytes(17 * 1024 * 1024))
    for submit in (source.submit, source.submit_sync, lambda blob: source.submit_batch([blob])):
        with pytest.raises(EncodeError, match="limit is 16777216"):
            submit(huge)
    source.submit(Blob(2, b"after"))
    large = Blob(3, os.urandom(12 * 1024 * 1024))
    source.submit(large)
    source.submit_sync(Blob(4, b"done"), timeout=30)
    assert seen.numbers == [0, 2, 3, 4]
    assert seen.events[2] == large
    assert source.freeze(timeout=30).position == 4


def test_a_refused_event_takes_no_others_with_it(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub(event_bytes_max=FRAME_BYTES)
    created = here.create("blobs", Blob)
    seen = Collector()
    there.open(created.id, Blob).subscribe(seen)
    source = created.source()
    expected = []
    for number in range(200):
        if number % 20 == 19:
            with pytest.raises(EncodeError):
                source.submit(Blob(number, bytes(17 * 1024 * 1024)))
        else:
            source.submit(Blob(number, b"x"))
            expected.append(number)
    source.flush()
    seen.has(len(expected))
    assert seen.numbers == expected


def test_a_batch_of_40_megabytes_is_split(start_hub: StartHub, any_link: str) -> None:
    here, there = start_hub(), start_hub()
    dtype = numpy.dtype([("number", "i8"), ("payload", "i8", 127)])
    created, blobs = here.create("records", dtype), here.create("blobs", Blob)
    seen: list[numpy.ndarray] = []
    collected = Collector()
    there.open(created.id).subscribe(lambda batch: seen.append(batch.array["number"].copy()), batch=True)
    there.open(blobs.id, Blob).subscribe(collected)
    sent = numpy.zeros(40_000, dtype)
    sent["number"] = numpy.arange(40_000)
    created.source().submit_batch(sent)
    eventually(lambda: sum(map(len, seen)) == 40_000)
    assert (numpy.concatenate(seen) == sent["number"]).all()
    assert len(seen) > 2
    blobs.source().submit_batch([Blob(number, bytes(1_000_000)) for number in range(40)])
    collected.has(40)
    assert collected.numbers == list(range(40))
    assert all(len(blob.data) == 1_000_000 for blob in collected.events)


def test_4096_channels_share_one_link(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    seen = Collector()
    sources = []
    for number in range(CHANNELS):
        created = here.create(f"channel-{number}", Tick)
        there.open(created.id, Tick).subscribe(seen)
        sources.append(created.source())
    for turn in range(2):
        for number, source in enumerate(sources):
            source.submit(Tick(number, turn))
    seen.has(2 * CHANNELS)
    assert len(seen.events) == 2 * CHANNELS
    found: dict[int, list[int]] = {}
    for tick in seen.events:
        found.setdefault(tick.producer, []).append(tick.number)
    assert found == {number: [0, 1] for number in range(CHANNELS)}
    assert len(here.statistics().links) == len(there.statistics().links) == 1
    assert len(here.statistics().channels) == CHANNELS
    started = time.monotonic()
    there.close()
    here.close()
    assert time.monotonic() - started < 40


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def hub_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("echoic-")}


def test_a_closed_hub_leaves_no_thread_and_no_descriptor_behind(any_link: str) -> None:
    others, before = hub_threads(), descriptors()  # of tests that share this process and keep a hub for longer
    for _ in range(10):
        with Hub() as here, Hub() as there:
            created = here.create("ticks", Tick)
            there.open(created.id, Tick).subscribe(Collector())
            there.open(created.id, Tick).subscribe(Collector(), thread=True)
            events = there.open(created.id, Tick).events()
            created.source().submit(Tick(1, 1))
            next(events)
    eventually(lambda: hub_threads() <= others, f"threads end: {hub_threads() - others}")
    eventually(lambda: descriptors() <= before, f"descriptors return to {before}: {descriptors()}")
