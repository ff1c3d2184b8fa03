"""What many sources have gathered leaves in few frames, in order, and an error with some is no matter of the others."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from echoic.channels import SourceRun
from echoic.errors import LocalError
from echoic.hub.flusher import CROWD_SOURCES_MAX
from echoic.hub.switchboard import Switchboard
from echoic.wire import Batch
from tests.hub.parties import Collector, Note, StartHub, Tick

if TYPE_CHECKING:
    from echoic import Source

ROUNDS_MAX = 100_000


def test_more_sources_than_fit_into_a_frame_keep_their_order(start_hub: StartHub) -> None:
    here, there, count = start_hub(), start_hub(), 2 * CROWD_SOURCES_MAX + 3
    channels = [here.create(f"ticks-{number}", Tick) for number in range(count)]
    seen = Collector()
    for channel in channels:
        there.open(channel.id, Tick).subscribe(seen)
    sources = [channel.source() for channel in channels]
    for number in range(5):
        for producer, source in enumerate(sources):
            source.submit(Tick(producer, number))
    seen.has(5 * count)
    assert all(seen.of(producer) == [0, 1, 2, 3, 4] for producer in range(count))


def test_an_error_with_sources_of_one_type_holds_up_nobody(
    start_hub: StartHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = start_hub(), start_hub()
    sources: list[Source] = []
    seen = Collector()
    for number in range(2):
        for name, declared in (("ticks", Tick), ("notes", Note)):
            channel = here.create(f"{name}-{number}", declared)
            there.open(channel.id, declared).subscribe(seen)
            sources.append(channel.source())
    submit_runs, failed = Switchboard.submit_runs, []

    def fail(self: Switchboard, runs: Sequence[SourceRun], batch: Batch) -> bool:
        if not failed and all(source.gathered for source in sources):  # those of the other type are held as well
            failed.append(batch.format.name)
            raise LocalError(f"no frame is made of {batch.format.name}")
        return submit_runs(self, runs, batch)

    monkeypatch.setattr(Switchboard, "submit_runs", fail)
    rounds = 0
    while not failed and rounds < ROUNDS_MAX:
        rounds += 1
        for source in sources:
            source.submit(Tick(0, rounds) if source.format.name == "Tick" else Note(rounds, "text"))
    assert failed
    for source in sources:
        source.flush()  # which waits for ever if somebody holds it
    seen.has(len(sources) * rounds)
