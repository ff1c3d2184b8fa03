"""Rows that are staged, until their epoch is committed or dropped: in memory while they are few, else in files.

What is staged need not survive anything: nobody was told that it is safe. So memory is enough, and files are for what
is too much for it. Once a budget of all attempts together is spent, an attempt that gets more goes to a file of its
own, which is synced when the epoch is committed and is then simply named by the log: its bytes are not copied again.

After a sync that failed, the next one succeeds without the bytes that the first has lost. So rows whose file could not
be synced once are never taken for safe: they have to be staged again.
"""

import secrets
from typing import Final

import msgspec

from echoic.errors import JournalError
from echoic.hub.intake_book import Attempt
from echoic.recorder import Storage
from echoic.recorder.catalog import said

__all__ = ["MEMORY_BYTES_MAX", "Kept", "Spool"]

MEMORY_BYTES_MAX: Final = 32 * 1024 * 1024


class Kept(msgspec.Struct):
    """The portions of an attempt. `bodies` is empty if they are in a file, `spoiled` if a sync of that failed."""

    rows: int = 0
    sizes: list[int] = msgspec.field(default_factory=list)
    bodies: list[bytes] = msgspec.field(default_factory=list)
    file: str = ""
    spoiled: bool = False


class Spool:
    """Keeps what is staged."""

    def __init__(self, storage: Storage, directory: str, *, memory_bytes_max: int = MEMORY_BYTES_MAX) -> None:
        self._storage, self._directory = storage, directory
        self._memory_bytes_max = memory_bytes_max
        self._kept: dict[Attempt, Kept] = {}
        self.memory_bytes = 0
        """What is in memory."""

    def put(self, attempt: Attempt, body: bytes, rows: int) -> None:
        """Keep a portion behind the others of its attempt.

        Raises:
            JournalError: It is one too many for memory, and cannot be written; it is not kept.
        """
        kept = self._kept.setdefault(attempt, Kept())
        if not kept.file and self.memory_bytes + len(body) > self._memory_bytes_max:
            self._spill(kept)
        if kept.file:
            self._append(kept, [body])
        else:
            kept.bodies.append(body)
            self.memory_bytes += len(body)
        kept.sizes.append(len(body))
        kept.rows += rows

    def get(self, attempt: Attempt) -> Kept:
        """Return what is kept of an attempt."""
        return self._kept.get(attempt) or Kept()

    def sync(self, attempts: tuple[Attempt, ...]) -> None:
        """Return when the files of attempts are on the disk.

        Raises:
            JournalError: They cannot be synced, or could not be before.
        """
        filed = [kept for kept in map(self.get, attempts) if kept.file]
        if any(kept.spoiled for kept in filed):
            raise JournalError(f"staged rows may be lost: they could not be synced before - at {self._directory}")
        with said("sync staged rows", self._directory):
            try:
                for kept in filed:
                    self._sync(kept)
                if filed:
                    self._storage.sync_directory(self._directory)
            except OSError:
                for kept in filed:
                    kept.spoiled = True
                raise

    def _sync(self, kept: Kept) -> None:
        file = self._storage.open(f"{self._directory}/{kept.file}", write=True)
        try:
            file.sync()
        finally:
            file.close()

    def drop(self, attempt: Attempt, *, committed: bool = False) -> None:
        """Forget an attempt; its file is removed unless it was committed, for it is the log's then.

        Raises:
            JournalError: The file cannot be removed.
        """
        kept = self._kept.pop(attempt, None)
        if kept is None:
            return
        self.memory_bytes -= sum(map(len, kept.bodies))
        if kept.file and not committed:
            with said("remove staged rows", f"{self._directory}/{kept.file}"):
                self._storage.remove(f"{self._directory}/{kept.file}")

    def _spill(self, kept: Kept) -> None:
        """Move what is kept of an attempt into a file."""
        kept.file = f"{secrets.token_hex(8)}.part"
        try:
            with said("begin a file of staged rows", f"{self._directory}/{kept.file}"):
                self._storage.open(f"{self._directory}/{kept.file}", write=True, create=True).close()
            self._append(kept, kept.bodies)
        except JournalError:
            kept.file = ""
            raise
        self.memory_bytes -= sum(map(len, kept.bodies))
        kept.bodies = []

    def _append(self, kept: Kept, bodies: list[bytes]) -> None:
        """Write portions behind those that a file has; what is written of them in vain is taken back."""
        path = f"{self._directory}/{kept.file}"
        with said("keep staged rows", path):
            file = self._storage.open(path, write=True)
            try:
                size = file.size()
                try:
                    file.append(bodies)
                except OSError:
                    file.truncate(size)
                    raise
            finally:
                file.close()
