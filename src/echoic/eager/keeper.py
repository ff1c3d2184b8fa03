"""Starts confined processes, keeps a spare one, and looks after those that should be at rest.

Linux ends a process that was started with `--die-with-parent` when the *thread* that has started it ends. So one
thread of this program starts them all and lives as long as the program does.

A start takes some 150 ms, most of it Python's imports, which are the same for every modulator. So while there is one
confined process in use, another one waits for the next modulator, with everything imported and nothing of anybody's
loaded. When the last one in use ends, the spare one does, too.

Between two calls a modulator has nothing to do. It has no threads, but its code can answer the hub by itself and then
go on, for ever if nobody calls again. So the processor time of resting processes is looked at four times a second, and
one that takes a tenth of a second is ended. A limit of the kernel's (RLIMIT_CPU) would count the honest work of a whole
life, which has no limit.
"""

import os
import threading
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Final

from echoic.eager import bubblewrap
from echoic.eager.cell import Cell
from echoic.eager.pipe import Deadline
from echoic.errors import RefusedError

__all__ = ["Keeper", "keeper"]

LOOK_SECONDS: Final = 0.25
RESTLESS_SECONDS: Final = 0.1


class Keeper:
    """All confined processes of this program."""

    def __init__(self) -> None:
        self.start_anew()

    def start_anew(self) -> None:
        """Forget everything, which is somebody else's in a process that was forked."""
        self._lock = threading.Lock()
        self._requests: SimpleQueue[Future[Cell]] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._resting: dict[Cell, float] = {}
        self._in_use: set[Cell] = set()
        self._spare: Future[Cell] | None = None

    def adopt(self, seconds: float) -> Cell:
        """Return a confined process that has started and nothing loaded.

        Raises:
            RefusedError: No process can be confined here.
        """
        bwrap = bubblewrap.find()
        with self._lock:
            spare, self._spare = self._spare, None
        cell = self._fit(spare, bwrap, seconds) if spare is not None else None
        if cell is None:
            cell = self._greeted(self._order(), seconds)
        with self._lock:
            self._in_use.add(cell)
            if self._spare is None:
                self._spare = self._order()
        return cell

    def release(self, cell: Cell) -> None:
        """End a process, and the spare one if this was the last in use."""
        cell.kill()
        spare = None
        with self._lock:
            self._resting.pop(cell, None)
            self._in_use.discard(cell)
            if not self._in_use:
                spare, self._spare = self._spare, None
        if spare is not None:
            spare.add_done_callback(_end)

    def rest(self, cell: Cell) -> None:
        """Note that a process has answered, and has nothing to do."""
        with self._lock:
            self._resting[cell] = cell.processor_seconds

    def rouse(self, cell: Cell) -> None:
        """Note that a process gets something to do."""
        with self._lock:
            self._resting.pop(cell, None)

    def _order(self) -> "Future[Cell]":
        """Have a process started by the thread that does that."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep, name="echoic keeper", daemon=True)
            self._thread.start()
        ordered: Future[Cell] = Future()
        self._requests.put(ordered)
        return ordered

    def _fit(self, spare: "Future[Cell]", bwrap: str, seconds: float) -> Cell | None:
        """Return the spare process, None if it has come to harm while it waited, or is not what it would be today."""
        try:
            cell = self._greeted(spare, seconds)
        except RefusedError:
            return None
        if cell.bwrap == bwrap:
            return cell
        cell.kill()
        return None

    def _greeted(self, ordered: "Future[Cell]", seconds: float) -> Cell:
        cell = ordered.result()
        try:
            cell.greet(Deadline(seconds, "a start"))
        except RefusedError:
            cell.kill()
            raise
        return cell

    def _keep(self) -> None:
        while True:
            try:
                ordered = self._requests.get(timeout=LOOK_SECONDS if self._in_use else None)
            except Empty:
                self._look()
                continue
            try:
                ordered.set_result(Cell())
            except RefusedError as error:
                ordered.set_exception(error)
            except Exception as error:  # noqa: BLE001 - whoever has ordered it is told, and this thread must go on
                refused = RefusedError(f"no process can be confined here: {error}")
                ordered.set_exception(refused)

    def _look(self) -> None:
        for cell in tuple(self._in_use):
            with self._lock:
                since = self._resting.get(cell)
                if since is not None and cell.processor_seconds - since > RESTLESS_SECONDS:
                    del self._resting[cell]
                    cell.strike("it went on after its answer")


def _end(spare: "Future[Cell]") -> None:
    if spare.exception() is None:
        spare.result().kill()


keeper: Final = Keeper()
"""The one of this process."""

os.register_at_fork(after_in_child=keeper.start_anew)
