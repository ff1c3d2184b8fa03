import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from echoic.recorder import Disk


def test_pieces_are_written_one_behind_the_other(tmp_path: Path) -> None:
    file = Disk(tmp_path).open("a", create=True)
    file.append([b"one", bytearray(b"two"), memoryview(b"three")])
    file.append([])
    file.sync()
    assert bytes(file.view()) == b"onetwothree"
    assert file.size() == 11
    file.close()


def test_more_pieces_than_one_call_takes_are_written_whole(tmp_path: Path) -> None:
    file = Disk(tmp_path).open("a", create=True)
    pieces = [bytes([number % 251]) * (number % 7) for number in range(5000)]
    file.append(pieces)
    assert bytes(file.view()) == b"".join(pieces)
    file.close()


@pytest.mark.parametrize("mapped", [True, False])
def test_a_view_is_the_bytes_at_its_moment_and_outlives_the_file(tmp_path: Path, mapped: bool) -> None:
    disk = Disk(tmp_path, mapped=mapped)
    file = disk.open("a", create=True)
    assert bytes(file.view()) == b""
    file.append([b"before"])
    view = file.view()
    file.append([b"after"])
    file.close()
    disk.remove("a")
    assert bytes(view) == b"before"


def test_writing_goes_on_at_the_end_after_truncation(tmp_path: Path) -> None:
    file = Disk(tmp_path).open("a", create=True)
    file.append([b"abcdef"])
    file.truncate(3)
    file.append([b"x"])
    assert bytes(file.view()) == b"abcx"
    file.close()


def test_creating_what_is_there_and_opening_what_is_not_fail_as_the_system_says(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.open("a", create=True).close()
    with pytest.raises(FileExistsError):
        disk.open("a", create=True)
    with pytest.raises(FileNotFoundError):
        disk.open("b")
    with pytest.raises(FileNotFoundError):
        disk.names("nowhere")


def test_a_file_opened_to_be_read_cannot_be_written(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.open("a", create=True).close()
    file = disk.open("a")
    with pytest.raises(OSError, match="descriptor") as caught:
        file.append([b"x"])
    assert caught.value.errno == errno.EBADF
    file.close()
    file.close()


def test_directories_are_made_with_those_above_them_and_above_the_root(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "not" / "yet")
    disk.make_directory("a/b")
    disk.make_directory("a/b")
    disk.sync_directory("")
    disk.sync_directory("a")
    assert disk.names("") == ["a"]
    assert disk.names("a") == ["b"]
    assert disk.exists("a/b")


def test_a_rename_takes_the_place_of_what_is_there(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    for name in ("a", "b"):
        file = disk.open(name, create=True)
        file.append([name.encode()])
        file.close()
    disk.rename("a", "b")
    assert disk.names("") == ["b"]
    assert bytes(disk.open("b").view()) == b"a"


def test_only_one_holds_a_lock_until_it_lets_go(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    lock = disk.lock("lock")
    with pytest.raises(BlockingIOError):
        Disk(tmp_path).lock("lock")
    lock.release()
    lock.release()
    Disk(tmp_path).lock("lock").release()


@pytest.mark.system
def test_a_process_that_ends_lets_go_of_its_lock(tmp_path: Path) -> None:
    code = (
        "import os, sys; from echoic.recorder import Disk; "
        "lock = Disk(sys.argv[1]).lock('lock'); os.kill(os.getpid(), 9)"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=dict(os.environ), check=False)
    assert ended.returncode == -9
    Disk(tmp_path).lock("lock").release()
