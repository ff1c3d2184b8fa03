"""Stops code of this process that takes too long.

Python has one way to stop a thread that it did not prepare for: an exception that another thread asks for, which the
interpreter raises between two instructions. One thread looks every 10 ms at who is at work, and raises where the time
is over; while nobody is, it sleeps. So guarding a call costs 2 us and no system call, and code is stopped at most some
20 ms too late.

Raising is easy, *not raising any more* is not: the call may end in the moment in which the exception is asked for,
which would then strike whoever comes next. The order of steps rules that out:

    the call                                     the watchdog, holding the lock
    1  function()                                a  is the time over, and `done` still false?
    2  done = True                               b  ask for the exception
    3  wait for the lock, release it
    4  ask for one more, and catch it

Step 2 comes right behind the call, in the normal way and as the first step of an `except`, where the interpreter does
not look for exceptions. After step 2 the watchdog asks for none, except one that it is just about to; step 3 waits for
that. It may strike in step 3 or 4, which are therefore done once more if it does. There is no second one to come. A
thread has room for one request, so that of step 4 takes the place of one that has not struck yet. To take a request
back, which the interpreter offers too, leaves up to Python 3.12 every thread looking for it for good, and a program
with a profile function in an endless loop.

This stops honest mistakes: a loop without an end, a computation that is too long. It does not stop hostility. Code that
catches every exception is struck again every 10 ms, a hundred times, and then left alone; code that stays inside one
call of C (`sum(range(10**12))`) is not struck until it leaves it. Only the code of trusted keys runs in process;
everything else runs where the kernel can end it (`sandbox`).
"""

import ctypes
import os
import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

from echoic.errors import ModulatorError

__all__ = ["Watchdog", "watchdog"]

LOOK_SECONDS: Final = 0.01
IDLE_LOOKS: Final = 100  # after so many without anybody at work, it sleeps
STRIKES_MAX: Final = 100
CATCH_STEPS: Final = 10_000  # the first of them is enough

Result = TypeVar("Result")

set_exception: Final = ctypes.pythonapi.PyThreadState_SetAsyncExc
set_exception.argtypes = (ctypes.c_ulong, ctypes.py_object)


class _Overtime(KeyboardInterrupt):
    """Strikes code that takes too long: an interruption, which code that catches every Exception does not mean."""


class _Turn:
    """One call under guard."""

    __slots__ = ("deadline", "done", "strikes", "thread")

    def __init__(self, seconds: float) -> None:
        self.thread: Final = threading.get_ident()
        self.deadline = time.monotonic() + seconds
        self.done = False
        self.strikes = 0


class Watchdog:
    """Guards calls of any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns: dict[int, _Turn] = {}
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def awake(self) -> bool:
        """Whether it looks; it does not when nobody was at work for a second."""
        return self._wake.is_set()

    def guard(self, function: Callable[[], Result], seconds: float, what: str) -> Result:
        """Call a function that is stopped when it takes longer than `seconds`.

        Raises:
            ModulatorError: It took longer.
        """
        turn = _Turn(seconds)
        result: Result | None = None
        raised: BaseException | None = None
        try:
            self._begin(turn)
            result = function()
            turn.done = True
        except BaseException as error:  # noqa: BLE001 - raised again below
            turn.done = True
            raised = error
        try:
            self._end(turn)
        except _Overtime:
            self._end(turn)
        if turn.strikes:
            raise ModulatorError(f"{what} was stopped: it took longer than {seconds:g} s, the limit of one call")
        if raised is not None:
            raise raised
        return result  # type: ignore[return-value] # the function's own, None included

    def start_anew(self) -> None:
        """Forget the thread, which is not there in a process that was forked."""
        self._lock = threading.Lock()
        self._turns, self._wake, self._thread = {}, threading.Event(), None

    def _begin(self, turn: _Turn) -> None:
        self._turns[id(turn)] = turn
        if not self._wake.is_set():
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._watch, name="echoic watchdog", daemon=True)
                    self._thread.start()
            self._wake.set()

    def _end(self, turn: _Turn) -> None:
        if time.monotonic() >= turn.deadline:  # before that, nothing was asked for
            with self._lock:
                pass
            if turn.strikes:
                self._catch(turn.thread)
        self._turns.pop(id(turn), None)

    def _catch(self, thread: int) -> None:
        try:
            set_exception(thread, _Overtime)
            for _ in range(CATCH_STEPS):
                pass
        except _Overtime:
            return

    def _watch(self) -> None:
        idle = 0
        while True:
            if not self._turns:
                idle += 1
                if idle > IDLE_LOOKS:
                    self._sleep()
            else:
                idle = 0
                self._look(time.monotonic())
            time.sleep(LOOK_SECONDS)

    def _sleep(self) -> None:
        """Wait until somebody begins. A turn that begins while this clears the flag is seen by the second look."""
        self._wake.clear()
        if not self._turns:
            self._wake.wait()

    def _look(self, now: float) -> None:
        for turn in tuple(self._turns.values()):
            if turn.deadline <= now and turn.strikes < STRIKES_MAX:
                with self._lock:  # Invariant: between the look at `done` and the request, no other thread runs
                    if not turn.done:
                        set_exception(turn.thread, _Overtime)
                        turn.strikes += 1


watchdog: Final = Watchdog()
"""The one of this process."""

os.register_at_fork(after_in_child=watchdog.start_anew)
