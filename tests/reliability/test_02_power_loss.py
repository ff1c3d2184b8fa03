"""Trial 2: losses of power on a simulated disk; and mistakes in what is durable, each of which is found."""

from collections.abc import Callable

import pytest

from echoic.engines.embedded.log_segment import SegmentFile
from echoic.hub import intake_log
from echoic.hub.intake_spool import Spool
from echoic.recorder import Storage, index, mending
from echoic.recorder.catalog import Catalog
from echoic.recorder.segment import SegmentWriter
from echoic.testing import SimulatedDisk
from echoic.testing.group_log_campaign import run_log_lives
from echoic.testing.journal_campaign import run_lives, run_losses
from echoic.testing.simulated_disk import SimulatedFile
from echoic.testing.trials.power_loss import run
from tests.reliability.trying import try_out

pytestmark = pytest.mark.slow

LOSSES = 1000


def test_every_acknowledged_event_is_there_after_losses_of_power(request: pytest.FixtureRequest) -> None:
    figures = try_out(request, "power_loss").figures
    assert all(count for name, count in figures.items() if name.startswith("acknowledged_by_"))


def test_faults_of_every_kind_happen_in_the_lives_of_journals() -> None:
    report = run_losses(10_000, 300)
    assert report.kills > 50
    assert min(report.undone, report.put_aside, report.recoveries_interrupted, report.full, report.failed_syncs) > 0


def test_an_index_that_was_never_synced_misleads_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "STRETCH_BYTES", 300)
    assert run_losses(70_000, 150).losses >= 150


@pytest.mark.parametrize("live", [run_lives, run_log_lives], ids=["journal", "group log"])
def test_a_seed_gives_the_same_lives_again(live: Callable[[int], object]) -> None:
    assert [live(seed) for seed in range(3)] == [live(seed) for seed in range(3)]


def without_sync(former: Callable[..., object]) -> Callable[..., object]:
    return lambda *arguments, sync=True: former(*arguments, sync=False)


def keep_no_tail(catalog: Catalog, mended: mending.Mended, tail: bytes) -> None:
    mended.file.truncate(mended.known)
    mended.file.append([tail])
    mended.file.sync()


def believe_the_cache(catalog: Catalog, mended: mending.Mended, tail: bytes) -> None:
    mended.file.truncate(mended.size)
    mended.file.sync()


def rename_alone(storage: Storage, directory: str) -> None:
    storage.rename(f"{directory}/{intake_log.PREPARED}", f"{directory}/{intake_log.NAME}")


MISTAKES: dict[str, tuple[object, str, Callable[..., object]]] = {
    "the disk says that it has synced and has not": (SimulatedFile, "sync", lambda self: None),
    "segments are not synced": (SegmentWriter, "_sync", lambda self: None),
    "directories are not synced": (SimulatedDisk, "sync_directory", lambda self, path: None),
    "the end is written again without being kept meanwhile": (mending, "_write_again", keep_no_tail),
    "the end is taken for synced because a sync succeeds": (mending, "_write_again", believe_the_cache),
    "half a write is not cut off": (SegmentWriter, "_cut_back", lambda self: None),
    "files are renamed before they are synced": (Catalog, "begin", without_sync(Catalog.begin)),
    "the log of a group is not synced": (SegmentFile, "sync", lambda self: None),
    "rows of an intake in files are not synced": (Spool, "_sync", lambda self, kept: None),
    "the name of an intake's log is not synced": (intake_log, "_put_in_place", rename_alone),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, attribute, wrong = MISTAKES[name]
    monkeypatch.setattr(place, attribute, wrong)
    problems = run(LOSSES, 0, lambda done: None).problems
    assert problems
    assert all("seed " in problem for problem in problems)
