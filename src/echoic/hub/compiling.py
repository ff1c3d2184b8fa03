"""The one thread in which a hub compiles what is derived from its channels.

A peer can ask for as many derivations as it likes, and change its mind while they are compiled. So they wait for each
other, those that were removed meanwhile are passed over, and better code for what takes long (`Workshop.refine`) is
made when nobody waits. The thread ends when there was nothing to do for a while.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from echoic.channels import Derivation, Modulation, Workshop, build, compiled
from echoic.errors import EchoicError

if TYPE_CHECKING:
    from echoic.hub.switchboard import Switchboard

__all__ = ["Compiler"]

IDLE_SECONDS: Final = 0.5
log: Final = logging.getLogger("echoic.hub")


class Compiler:
    """Compiles derivations one after the other."""

    def __init__(self, switchboard: "Switchboard") -> None:
        self._switchboard = switchboard
        self._waiting: deque[Derivation] = deque()
        self._unrefined: list[Derivation] = []
        self._running = False
        self._lock = threading.Lock()
        self._asked = threading.Event()

    def add(self, derivation: Derivation) -> Callable[[], None] | None:
        """Have a derivation compiled; return what starts the thread, None if it runs already."""
        with self._lock:
            self._waiting.append(derivation)
            if self._running:
                self._asked.set()
                return None
            self._running = True
        return threading.Thread(target=self._run, name="echoic-compile", daemon=True).start

    def close(self) -> None:
        """Let the thread end: the hub was closed."""
        self._asked.set()

    def _run(self) -> None:
        try:
            while self._compile_next():
                pass
        except BaseException:
            self._running = False  # the next one that is asked for begins anew
            raise

    def _compile_next(self) -> bool:
        """Compile the code of one derivation, or make that of one better; tell whether there was any."""
        with self._lock:
            derivation = self._waiting.popleft() if self._waiting else None
            self._asked.clear()
        if derivation is None and self._unrefined:
            _refine(self._unrefined.pop())
            return True
        if derivation is None:
            return self._is_asked_again()
        built = self._switchboard.prepare(derivation) if isinstance(derivation, Modulation) else build(derivation)
        self._switchboard.do(lambda core: compiled(core, derivation, built))
        if isinstance(built, Workshop) and built.heavy:
            self._unrefined = [
                *(other for other in self._unrefined if other.outlets),
                derivation,
            ]  # without removed ones
        return True

    def _is_asked_again(self) -> bool:
        """Wait a while for further work; tell whether there is any."""
        if not self._switchboard.closed and self._asked.wait(IDLE_SECONDS):
            return True
        with self._lock:
            self._running = bool(self._waiting) and not self._switchboard.closed
            return self._running


def _refine(derivation: Derivation) -> None:
    """Make better code for what takes long; without it things go on as they are."""
    try:
        if derivation.workshop is not None and derivation.outlets:
            derivation.workshop.refine()
    except EchoicError as error:
        log.warning("%s runs with code that is not optimised: %s", derivation.step.name, error)
