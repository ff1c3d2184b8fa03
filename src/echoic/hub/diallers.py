"""Diallers: a few threads that connect to other hubs, whoever and however many are wanted.

A hub that is gone is dialled again and again for a while, and thousands may be gone at once: a thread for each would
take what the machine has, just when it is needed. An address that waits already is not put there twice, and one that is
being dialled is dialled again when that has ended, as whoever hears how it went may want. Threads end when there is
nothing to dial.
"""

import logging
import threading
from collections.abc import Callable
from typing import Final

__all__ = ["Diallers"]

THREADS_MAX: Final = 64
IDLE_SECONDS: Final = 1.0
log: Final = logging.getLogger("echoic.hub")


class Diallers:
    """Dials addresses, one after the other and some at a time."""

    def __init__(self, dial: Callable[[str], None], threads_max: int = THREADS_MAX) -> None:
        """Begin without any thread; `dial` connects to an address and tells how that went, and never raises."""
        self._dial = dial
        self._threads_max = threads_max
        self._wanted: dict[str, None] = {}
        self._active: set[str] = set()
        self._again: set[str] = set()
        self._changed = threading.Condition()
        self._threads = self._idle = 0

    def add(self, address: str) -> None:
        """Have an address dialled, unless that is about to happen anyway."""
        with self._changed:
            if address in self._active:
                self._again.add(address)
                return
            if address in self._wanted:
                return
            self._wanted[address] = None
            if self._idle >= len(self._wanted) or self._threads >= self._threads_max:
                self._changed.notify()
                return
            self._threads += 1
        self._start()

    def _start(self) -> None:
        try:
            threading.Thread(target=self._run, name="echoic-dial", daemon=True).start()
        except RuntimeError as error:  # the system has no more threads, perhaps for a moment
            with self._changed:
                self._threads -= 1
                stranded = [] if self._threads else list(self._wanted)
                for address in stranded:
                    del self._wanted[address]
            log.warning("cannot start a thread to dial: %s", error)
            for address in stranded:
                self._dial(address)

    def _run(self) -> None:
        while (address := self._next()) is not None:
            try:
                self._dial(address)
            finally:
                with self._changed:
                    self._active.discard(address)
                    if address in self._again:
                        self._again.discard(address)
                        self._wanted[address] = None

    def _next(self) -> str | None:
        """Return the address that waits longest; None when this thread is not needed any more."""
        with self._changed:
            self._idle += 1
            self._changed.wait_for(lambda: self._wanted, IDLE_SECONDS)
            self._idle -= 1
            if not self._wanted:
                self._threads -= 1
                return None
            address = next(iter(self._wanted))
            del self._wanted[address]
            self._active.add(address)
            return address
