"""Trial 14: a real file system without room; and a disk that swallows what it has no room for, which is found out."""

import errno
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import pytest

from echoic.errors import EchoicError
from echoic.recorder.disk import DiskFile
from echoic.testing.charter import Charter
from echoic.testing.trials import commit_name
from echoic.wire import Buffer
from tests.reliability.full_disks import GRANTS, ROUNDS, fill_under_intake, fill_under_journal
from tests.reliability.small_disk import SmallDisk, small_disk
from tests.reliability.trying import sized

pytestmark = [pytest.mark.system, pytest.mark.slow]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk") as disk:
        yield disk


def test_the_producer_is_told_nothing_is_lost_and_it_goes_on_when_there_is_room(
    request: pytest.FixtureRequest, disk: SmallDisk, tmp_path: Path
) -> None:
    given = request.config.getoption("--seed")
    seed = time.time_ns() % 2**32 if given is None else given
    charter = Charter.draw_up(tmp_path / "charter", GRANTS)
    for number in range(sized(request, "disk_full")):
        fill = ROUNDS[number % len(ROUNDS)]
        secured = number // len(ROUNDS) % 2 == 1
        try:
            fill(disk, Random(seed + number), charter if secured else None)
        except (AssertionError, EchoicError) as problem:
            again = f"to see it again: --seed {seed}, round {number}, at commit {commit_name()}"
            kind = "secured" if secured else "plain"
            raise AssertionError(f"{fill.__name__}, {kind}: {problem}\n{again}") from problem


@pytest.mark.parametrize("fill", ROUNDS, ids=lambda fill: fill.__name__)
def test_a_disk_that_swallows_what_it_has_no_room_for_is_found(
    fill: Callable[[SmallDisk, Random, Charter | None], None], disk: SmallDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = DiskFile.append

    def swallow(self: DiskFile, pieces: Sequence[Buffer]) -> None:
        try:
            append(self, pieces)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise

    monkeypatch.setattr(DiskFile, "append", swallow)
    with pytest.raises((AssertionError, EchoicError)):
        fill(disk, Random(3), None)


@pytest.mark.parametrize(("fill", "role"), [(fill_under_journal, "recorder"), (fill_under_intake, "query")])
def test_a_right_that_is_missing_is_found(
    fill: Callable[[SmallDisk, Random, Charter | None], None], role: str, disk: SmallDisk, tmp_path: Path
) -> None:
    charter = Charter.draw_up(tmp_path / "charter", {**GRANTS, role: ()})
    with pytest.raises((AssertionError, EchoicError), match="none that you have a right to"):
        fill(disk, Random(3), charter)


def test_a_small_disk_has_just_the_room_that_was_left(disk: SmallDisk) -> None:
    disk.fill(room=0)
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        (disk.root / "more").write_bytes(bytes(1))
    disk.empty()
    (disk.root / "more").write_bytes(bytes(1_000_000))
