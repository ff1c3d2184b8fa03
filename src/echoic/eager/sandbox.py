"""A modulator in a confined process: for the code of those who are not trusted.

    this process                                           confined process
    work(source, batch) -> changed values, batch  ~ pipe ~>  enqueue, period, dequeue
    service.method(...) <- call                   <~ pipe ~
    Worked              <- faults, batch          <~ pipe ~

The code has no files, network, threads or processes (`bubblewrap`, `seccomp`, `inside`), and so much memory. What it
sends is what a stranger sends: parsed by the parsers of the network, against the output's type alone, and checked as a
whole before anybody sees it. The clock runs from the first byte of a call to the last byte of its answer, whatever the
process does in between, calls of services included. Whoever breaks a rule, or comes to a limit, is killed.

Nothing of what the code could do is left to the code's goodwill, so there is no other way to run it: where no process
can be confined, `Sandbox` refuses.

Calls of several threads take turns. A shared object has one copy in this process, of a class made of nothing but its
type, since the shipped text is not looked at here; what has changed in it goes ahead of the next batch.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Final, assert_never

import msgspec

from echoic.channels import Worked
from echoic.eager.dialogue import (
    Answer,
    Begin,
    Begun,
    Call,
    Done,
    Failed,
    Get,
    Hello,
    Pull,
    Work,
    Write,
)
from echoic.eager.keeper import keeper
from echoic.eager.limits import FAULT_CHARACTERS_MAX, SERVICE_CALLS_MAX, Limits
from echoic.eager.mirrored import Mirrored
from echoic.eager.parcel import Parcel
from echoic.eager.pipe import HEAD_BYTES_MAX, Deadline, encode
from echoic.eager.services import Services, plain
from echoic.eager.shared_object import SharedHost
from echoic.errors import EchoicError, ModulatorError, RefusedError
from echoic.formats import Format, Registry
from echoic.wire import Batch, Buffer, parse_batch

__all__ = ["Sandbox"]

FORGOTTEN_MAX: Final = 4096


class Sandbox:
    """A modulator that runs in a confined process; the core knows it as a `Runner`.

    Args:
        parcel: What came.
        key: Who signed it.
        events: The type of the events.
        services: Gives the services for a source.
        shared: Has the copies of shared objects.
        limits: How much it may use.

    Raises:
        RefusedError: No process can be confined here, or a shared object cannot be had.
        ModulatorError: It cannot be loaded.
    """

    def __init__(
        self,
        parcel: Parcel,
        *,
        key: str,
        events: Format,
        services: Callable[[int], Services],
        shared: SharedHost,
        limits: Limits,
    ) -> None:
        self._parcel = parcel
        self._seconds = limits.seconds
        self._give = services
        self._services: dict[int, Services] = {}
        self._input = events
        self.output: Final = Format.from_descriptor(parcel.output) if parcel.output else None
        self._outputs = Registry(formats_max=1)
        self._outputs.add(self.output or events)
        self._lock = threading.RLock()
        self._number = 0
        self._busy = False
        self._stopped = ""
        self._tidied = False
        self._forgotten: deque[int] = deque()  # Invariant: each had a copy, and is told once
        self.filtered = False
        """Whether system calls are filtered, which they are not on every architecture."""
        self._shared: dict[str, Mirrored] = {}
        self._cell = keeper.adopt(limits.start_seconds)
        try:
            self._shared.update({each.attribute: Mirrored(each, shared) for each in parcel.shared})
            self._begin(key, limits)
        except BaseException:
            self.close()
            raise

    @property
    def period_ns(self) -> int:
        """How often `period` wants to be called, 0 for never."""
        return self._parcel.period_ns

    @property
    def buffered(self) -> bool:
        """Whether it may hold events back."""
        return self._parcel.buffered

    @property
    def pid(self) -> int:
        """The number of the confined process."""
        return self._cell.pid

    def work(self, source: int, batch: Batch | None, *, period: bool = False, ready: bool = True) -> Worked:
        """Do what `Runner.work` says.

        Raises:
            RefusedError: A service that it requires is not granted for a source that has come later.
            ModulatorError: It was stopped, or cannot go on.
        """
        return self._do(source, batch, period=period, ready=ready, drain=False)

    def drain(self, source: int) -> Worked:
        """Dequeue everything that waits.

        Raises:
            ModulatorError: As for `work`.
        """
        return self._do(source, None, period=False, ready=True, drain=True)

    def forget(self, source: int) -> None:
        """End the copy of a source that has ended, with the next call; this does not wait."""
        if self._services.pop(source, None) is not None:
            self._forgotten.append(source)

    def close(self) -> None:
        """End the process. Whoever is at work with it is told, and this does not wait for that."""
        self._stopped = self._stopped or "it was closed"
        self._cell.strike(self._stopped)
        self._tidy()

    def _begin(self, key: str, limits: Limits) -> None:
        deadline = Deadline(limits.load_seconds, "loading")
        begin = Begin(key, self._input.descriptor, limits.memory_bytes, self._cell.used_bytes)
        try:
            self._cell.send(begin, [msgspec.msgpack.encode(self._parcel)], deadline)
            begun, _ = self._cell.receive(deadline)
        except ModulatorError as error:
            raise ModulatorError(f"`{self._parcel.class_name}` was stopped: {error}") from error
        match begun:
            case Begun():
                self.filtered = begun.filtered
                keeper.rest(self._cell)
            case Failed(reason, True):
                raise RefusedError(f"no process can be confined here: {reason}")
            case Failed(reason):
                raise ModulatorError(f"`{self._parcel.class_name}` cannot be loaded: {reason}")
            case _:
                raise ModulatorError(f"`{self._parcel.class_name}` was stopped: it answered out of turn")

    def _do(self, source: int, batch: Batch | None, *, period: bool, ready: bool, drain: bool) -> Worked:
        try:
            return self._locked(source, batch, period=period, ready=ready, drain=drain)
        finally:
            if self._stopped:
                self._tidy()

    def _locked(self, source: int, batch: Batch | None, *, period: bool, ready: bool, drain: bool) -> Worked:
        with self._lock:
            if self._stopped or self._busy:
                reason = self._stopped or "a service that it calls has called it"
                raise ModulatorError(f"`{self._parcel.class_name}` is not asked: {reason}")
            if source not in self._services and not drain:
                self._services[source] = self._give(source)
            self._busy = True
            try:
                return self._asked(source, batch, period=period, ready=ready, drain=drain)
            except BaseException as error:
                reason = self._stopped = self._cell.reason or str(error) or type(error).__name__
                self._cell.strike(reason)
                if not isinstance(error, EchoicError):
                    raise
                raise ModulatorError(f"`{self._parcel.class_name}` was stopped: {reason}") from error
            finally:
                self._busy = False

    def _asked(self, source: int, batch: Batch | None, *, period: bool, ready: bool, drain: bool) -> Worked:
        if batch is not None and batch.format.token != self._input.token:
            batch = batch.to(self._input)
        cell = self._cell
        keeper.rouse(cell)
        if not cell.silent:
            raise ModulatorError("it answered without being asked")
        deadline = Deadline(self._seconds, "one call")
        for mirrored in self._shared.values():
            mirrored.send_changes(cell, deadline)
        self._number += 1
        forgotten = tuple(self._forgotten.popleft() for _ in range(min(len(self._forgotten), FORGOTTEN_MAX)))
        work = Work(self._number, source, batch is not None, period, ready, drain, forgotten)
        cell.send(work, batch.buffers() if batch is not None else [], deadline)
        done, body = self._heard(source, deadline)
        keeper.rest(cell)
        if done.number != self._number:
            raise ModulatorError(f"it answered call {done.number}, it was asked {self._number}")
        return Worked(self._checked(body) if done.batch else None, done.faults, done.waiting)

    def _heard(self, source: int, deadline: Deadline) -> tuple[Done, memoryview]:
        """Return the answer to a call, doing meanwhile what the code asks for."""
        for _ in range(SERVICE_CALLS_MAX + 1):
            message, body = self._cell.receive(deadline)
            match message:
                case Done():
                    return message, body
                case Failed():
                    raise ModulatorError(message.reason)
                case Get() | Call():
                    self._answer(self._serve(message, source), [], deadline)
                case Pull() | Write():
                    self._update(message, body, deadline)
                case Hello() | Begun():
                    raise ModulatorError("it answered out of turn")
                case _:
                    assert_never(message)
        raise ModulatorError(f"it called services more than {SERVICE_CALLS_MAX} times in one call, which is the limit")

    def _serve(self, question: Get | Call, source: int) -> Answer:
        """Use a service on behalf of the code, and return what came of it."""
        if question.source != source:
            raise ModulatorError(f"it asked on behalf of source {question.source} while it worked for {source}")
        place = f"`{question.service}.{question.name}`"
        if question.service not in self._parcel.requires or question.name.startswith("_"):
            return Answer(error=f"{place} is not public, or was not granted")
        try:
            found = getattr(getattr(self._services[source], question.service), question.name)
            if isinstance(question, Get):
                return Answer(method=True) if callable(found) else Answer(found)
            if not callable(found):
                raise RefusedError(f"{place} is not a method")
            arguments = [plain(each, place) for each in question.arguments]
            named = {name: plain(each, place) for name, each in question.named.items()}
            return Answer(plain(found(*arguments, **named), f"the result of {place}"))
        except (AttributeError, EchoicError) as error:
            return Answer(error=str(error)[:FAULT_CHARACTERS_MAX])
        except Exception as error:  # noqa: BLE001 - a service may raise anything, which is told to who called it
            return Answer(error=f"{place} raised {type(error).__name__}: {error}"[:FAULT_CHARACTERS_MAX])

    def _update(self, question: Pull | Write, body: memoryview, deadline: Deadline) -> None:
        mirrored = self._shared.get(question.attribute)
        if mirrored is None:
            raise ModulatorError(f"it has no shared object `{question.attribute}`")
        try:
            if isinstance(question, Write):
                mirrored.write(question.fields, bytes(body))
            else:
                mirrored.copy.pull()
        except ModulatorError:
            raise
        except EchoicError as error:
            self._answer(Answer(error=str(error)[:FAULT_CHARACTERS_MAX]), [], deadline)
            return
        changed, values = mirrored.current()
        self._answer(Answer(version=changed.version, stale=changed.stale), [values], deadline)

    def _answer(self, answer: Answer, body: list[Buffer], deadline: Deadline) -> None:
        try:
            size = len(encode(answer))
        except UnicodeEncodeError:
            answer, size = Answer(error="the result has a text that is not Unicode"), 0
        if size > HEAD_BYTES_MAX:
            answer = Answer(error=f"the result has {size} bytes, limit is {HEAD_BYTES_MAX}")
        self._cell.send(answer, body, deadline)

    def _checked(self, body: memoryview) -> Batch:
        """Return a batch that is what it should be: a fixed record always is, a variable one is looked at."""
        batch = parse_batch(body, self._outputs)
        if batch.format.variable:
            batch.events()
        return batch

    def _tidy(self) -> None:
        """Give back what a process that was killed has held; whoever is at work with it does that when it is done."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            if self._busy or self._tidied:
                return
            self._tidied = True
            keeper.release(self._cell)
            for mirrored in self._shared.values():
                mirrored.copy.close()
        finally:
            self._lock.release()
