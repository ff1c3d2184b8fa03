"""Journals through losses of power, kills, full disks and failing syncs: many seeds, and proof that mistakes are found.

`python -m echoic.testing.journal_campaign --losses N --flips 0` is the campaign; `--seed N --losses 1` repeats a seed.
"""

from collections.abc import Callable

import pytest

from echoic.recorder import index, mending
from echoic.recorder.catalog import Catalog
from echoic.recorder.segment import SegmentWriter
from echoic.testing import SimulatedDisk
from echoic.testing.journal_campaign import run_lives, run_losses

LOSSES, PARTS = 1000, 5


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_acknowledged_is_lost_and_nothing_else_is_there_whatever_fails(part: int) -> None:
    report = run_losses(10_000 * part, LOSSES // PARTS)
    assert report.losses >= LOSSES // PARTS
    assert report.kills > 50
    assert report.acknowledged > 1000
    assert min(report.undone, report.put_aside, report.recoveries_interrupted, report.full, report.failed_syncs) > 0


def test_an_index_that_was_never_synced_misleads_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "STRETCH_BYTES", 300)
    assert run_losses(70_000, 150).losses >= 150


def test_a_seed_gives_the_same_lives_again() -> None:
    assert [run_lives(seed) for seed in range(3)] == [run_lives(seed) for seed in range(3)]


def without_sync(former: Callable[..., object]) -> Callable[..., object]:
    return lambda *arguments, sync=True: former(*arguments, sync=False)


def keep_no_tail(catalog: Catalog, mended: mending.Mended, tail: bytes) -> None:
    mended.file.truncate(mended.known)
    mended.file.append([tail])
    mended.file.sync()


def believe_the_cache(catalog: Catalog, mended: mending.Mended, tail: bytes) -> None:
    mended.file.truncate(mended.size)
    mended.file.sync()


MISTAKES: dict[str, tuple[object, str, Callable[..., object]]] = {
    "segments are not synced": (SegmentWriter, "_sync", lambda self: None),
    "directories are not synced": (SimulatedDisk, "sync_directory", lambda self, path: None),
    "the end is written again without being kept meanwhile": (mending, "_write_again", keep_no_tail),
    "the end is taken for synced because a sync succeeds": (mending, "_write_again", believe_the_cache),
    "half a write is not cut off": (SegmentWriter, "_cut_back", lambda self: None),
    "files are renamed before they are synced": (Catalog, "begin", without_sync(Catalog.begin)),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, attribute, wrong = MISTAKES[name]
    monkeypatch.setattr(place, attribute, wrong)
    with pytest.raises(AssertionError, match="seed "):
        run_losses(0, LOSSES)
