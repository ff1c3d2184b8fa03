"""The confined process, seen from inside: what runs there before and around the code that nobody trusts.

It is started by `cell` through `boot`, inside the namespaces that bubblewrap has made: no network, no other processes,
and of all files only Python, its packages and echoic, to be read. It imports all it needs, says hello, and waits for a
modulator; it may wait long, as the spare one. Then, in this order and before a line of the parcel is looked at,

    limits       memory and addresses, open files, processes, the size of files, core dumps, locked memory
    filter       the system calls that are left (`seccomp`)
    examination  whether a process can still be made or a file written; if so it says that and ends

and only then the text is loaded and asked to work. Nothing that happens here is believed by the hub: if the code takes
over this process it can send what it likes, within the limits of `pipe`, until the deadline of the call.

What a modulator prints goes nowhere. It has no standard streams and no environment, and the process ends without a
word to `atexit`.
"""

import os
import resource
import sys
from collections.abc import Callable
from typing import Final, NoReturn

import msgspec

from echoic.channels import SharedView
from echoic.eager import seccomp
from echoic.eager.copies import FOREIGN_ERRORS, Copies, told
from echoic.eager.dialogue import (
    Answer,
    Begin,
    Begun,
    Call,
    Changed,
    Done,
    Failed,
    FromHub,
    Get,
    Hello,
    Pull,
    ToHub,
    Work,
    Write,
    decode_from_hub,
)
from echoic.eager.limits import FAULT_CHARACTERS_MAX
from echoic.eager.loading import Loaded, load
from echoic.eager.modulator import Modulator
from echoic.eager.parcel import Parcel, SharedReference
from echoic.eager.pipe import Pipe
from echoic.eager.services import Services, plain
from echoic.eager.shared_object import SharedObject, copy_of, refresh
from echoic.errors import EchoicError, ModulatorError, RefusedError, UnreachableError
from echoic.formats import Format, Registry
from echoic.wire import Buffer, parse_batch

__all__ = ["Line", "Mirror", "main"]

OPEN_FILES_MAX: Final = 32


class Line:
    """The way to the hub: one question, one answer."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def send(self, message: ToHub, body: list[Buffer] | None = None) -> None:
        """Tell the hub something.

        Raises:
            ModulatorError: The hub is gone, or the message is too large.
        """
        self._pipe.send(message, body or [])

    def receive(self) -> tuple[FromHub, memoryview]:
        """Return what the hub says next.

        Raises:
            ModulatorError: The hub is gone.
        """
        head, body = self._pipe.receive()
        return decode_from_hub(head), body

    def ask(self, question: Get | Call | Pull | Write, body: list[Buffer] | None = None) -> tuple[Answer, memoryview]:
        """Return what the hub answers.

        Raises:
            RefusedError: It does not do what it was asked, or something went wrong there.
        """
        self.send(question, body)
        answer, values = self.receive()
        if not isinstance(answer, Answer):
            raise ModulatorError(f"expected an answer, got {type(answer).__name__}")
        if answer.error:
            raise RefusedError(answer.error)
        return answer, values


class Far:
    """The face of a service that is in the hub's process."""

    def __init__(self, line: Line, source: int, service: str) -> None:
        self._line = line
        self._source = source
        self._service = service
        self._methods: dict[str, Callable[..., object]] = {}

    def __getattr__(self, name: str) -> object:
        """Return a method or a plain value.

        Raises:
            RefusedError: There is no such thing, or it is not for others.
        """
        if name.startswith("__"):
            raise AttributeError(name)  # asked by Python itself
        known = self._methods.get(name)
        if known is not None:
            return known
        answer, _ = self._line.ask(Get(self._source, self._service, name))
        if not answer.method:
            return answer.value
        method = self._methods[name] = self._method(name)
        return method

    def _method(self, name: str) -> Callable[..., object]:
        place = f"`{self._service}.{name}`"

        def call(*arguments: object, **named: object) -> object:
            sent = [plain(each, place) for each in arguments]
            question = Call(self._source, self._service, name, sent, {key: plain(named[key], place) for key in named})
            return self._line.ask(question)[0].value

        return call


class Mirror:
    """What stands behind the copies of a shared object in here: the hub's copy, at the end of the pipe."""

    def __init__(self, reference: SharedReference, line: Line) -> None:
        self._line = line
        self._attribute = reference.attribute
        self.id: Final = reference.id
        self.format: Final = Format.from_descriptor(reference.format)
        self.view: SharedView = SharedView(reference.values, reference.version)

    def write(self, fields: tuple[str, ...], values: bytes) -> None:
        """Send fields to the hub, and from there to the master.

        Raises:
            UnreachableError: The hub cannot do that.
        """
        self._update(Write(self._attribute, fields), [values])

    def pull(self) -> None:
        """Fetch the newest values from the hub, which fetches them from the master.

        Raises:
            UnreachableError: The hub cannot do that.
        """
        self._update(Pull(self._attribute), [])

    def release(self, copy: SharedObject) -> None:
        """Do nothing: the hub knows one copy, and when it ends."""

    def _update(self, question: Pull | Write, body: list[Buffer]) -> None:
        try:
            answer, values = self._line.ask(question, body)
        except RefusedError as error:
            raise UnreachableError(str(error)) from error
        self.view = SharedView(bytes(values), answer.version, answer.stale)


class Workplace:
    """One modulator, loaded, with all its copies."""

    def __init__(self, loaded: Loaded, events: Format, line: Line) -> None:
        self._loaded = loaded
        self._line = line
        self._mirrors = {each.attribute: Mirror(each, line) for each in loaded.parcel.shared}
        self._shared = {name: copy_of(loaded.shared_classes[name], mirror) for name, mirror in self._mirrors.items()}
        self._registry = Registry(formats_max=1)
        self._registry.add(events)
        name = loaded.parcel.class_name
        self._copies = Copies(name=name, make=self._make, events=events, output=loaded.output)

    def change(self, changed: Changed, values: memoryview) -> None:
        """Take over what a shared object has become."""
        self._mirrors[changed.attribute].view = SharedView(bytes(values), changed.version, changed.stale)
        refresh(self._shared[changed.attribute])

    def work(self, work: Work, body: memoryview) -> None:
        """Do one call and say what it brought.

        Raises:
            ModulatorError: It cannot go on.
        """
        for source in work.forgotten:
            self._copies.forget(source)
        if work.drain:
            outcome = self._copies.drain(work.source)
        else:
            batch = parse_batch(body, self._registry) if work.batch else None
            outcome = self._copies.work(work.source, batch, period=work.period, ready=work.ready)
        made = outcome.batch
        done = Done(work.number, made is not None, outcome.faults, outcome.waiting)
        self._line.send(done, made.buffers() if made is not None else [])

    def _make(self, source: int) -> Modulator:
        made = self._loaded.make(self._shared)
        made.services = Services({name: Far(self._line, source, name) for name in self._loaded.parcel.requires})
        return made


def main() -> NoReturn:
    """Serve the hub until it has had enough."""
    sys.stdin = sys.stdout = sys.stderr = sys.__stdin__ = sys.__stdout__ = sys.__stderr__ = None  # type: ignore[misc] # nobody reads them
    os.environ.clear()
    line = Line(Pipe(0, 1, alone=False))
    try:
        serve(line)
    except EchoicError as error:
        give_up(line, str(error))
    except BaseException as error:  # noqa: BLE001 - whatever foreign code has raised, this process ends
        reason = told("modulator", error)
        give_up(line, reason)
    os._exit(1)


def give_up(line: Line, reason: str) -> None:
    """Say why it cannot go on, if anybody still listens."""
    try:
        line.send(Failed(reason[: 2 * FAULT_CHARACTERS_MAX]))
    except FOREIGN_ERRORS:
        os._exit(2)


def serve(line: Line) -> NoReturn:
    """Load one modulator, and do its work.

    Raises:
        ModulatorError: It cannot go on, or the hub is gone.
    """
    line.send(Hello())
    begin, body = line.receive()
    if not isinstance(begin, Begin):
        raise ModulatorError(f"expected a modulator, got {type(begin).__name__}")
    parcel = msgspec.msgpack.decode(body, type=Parcel)
    events = Format.from_descriptor(begin.input)
    try:
        filtered = confine(begin)
    except RefusedError as error:
        line.send(Failed(str(error), unconfined=True))
        os._exit(3)
    workplace = Workplace(load(parcel, begin.key), events, line)
    line.send(Begun(filtered))
    while True:
        message, body = line.receive()
        match message:
            case Changed():
                workplace.change(message, body)
            case Work():
                workplace.work(message, body)
            case _:
                raise ModulatorError(f"expected work, got {type(message).__name__}")


def confine(begin: Begin) -> bool:
    """Give up, for ever, all that the code must not have; return whether system calls are filtered.

    Raises:
        RefusedError: Something can still be done that must not be.
    """
    addresses = begin.used_bytes + begin.memory_bytes
    for kind, limit in (
        (resource.RLIMIT_AS, addresses),
        (resource.RLIMIT_DATA, addresses),
        (resource.RLIMIT_NOFILE, OPEN_FILES_MAX),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        resource.setrlimit(kind, (limit, limit))
    filtered = seccomp.apply()
    examine()
    return filtered


def examine() -> None:
    """Try what must not be possible.

    Raises:
        RefusedError: It is.
    """
    try:
        if os.fork() == 0:
            os._exit(0)
    except OSError:
        pass
    else:
        raise RefusedError("it can start processes; neither a filter of system calls nor a limit holds here")
    try:
        os.close(os.open("/written", os.O_WRONLY | os.O_CREAT, 0o600))
    except OSError:
        return
    raise RefusedError("it can write files")
