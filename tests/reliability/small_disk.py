"""A disk of a few megabytes that can be filled to the last byte, and emptied again."""

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["SmallDisk", "small_disk"]

DISK_BYTES = 4 * 1024 * 1024
PIECE_BYTES = 4096


class SmallDisk:
    """A file system of its own, in memory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._filler = root / "filler"

    def fresh(self, name: str) -> Path:
        """Return an empty folder; nothing else is on the disk."""
        for path in self.root.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        folder = self.root / name
        folder.mkdir()
        return folder

    def fill(self, room: int) -> None:
        """Leave so many bytes, and no more."""
        with self._filler.open("ab") as file:
            try:
                while True:
                    os.write(file.fileno(), bytes(PIECE_BYTES))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
            file.truncate(max(0, file.seek(0, os.SEEK_END) - room))

    def empty(self) -> None:
        """Let there be room again."""
        self._filler.unlink(missing_ok=True)


@contextmanager
def small_disk(folder: Path) -> Iterator[SmallDisk]:
    """Mount a small disk at a folder, and take it away whatever happens."""
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    mounted = subprocess.run(["mount", *options], capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
