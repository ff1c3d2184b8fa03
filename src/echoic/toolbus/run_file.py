"""Files of whole runs: what was heard and when, with the seed, so that a run can be repeated step for step.

    Bus.from_script("auction.tb", log="auction.tbrun").run()
    for effects in replay_run("auction.tbrun", "auction.tb"): ...

The first line of JSON has what the machine began with, each other line an input with the number of turns before it, or
only a time. Values are in SAF, in hexadecimal digits; a reference to a value that a tool has kept is written as its
placeholder, and the value where the machine has asked for it: a run is repeated without its tools, and needs no more.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final, TextIO, assert_never

import msgspec

from echoic.errors import EchoicError, JournalError
from echoic.scripts.graph import Program
from echoic.scripts.running import LogEntry, MachineLimits, RunLog, digest_of, replay
from echoic.scripts.running.messages import (
    Connected,
    Delivered,
    Effect,
    Fetched,
    FromTool,
    Input,
    LineRead,
    Lost,
    Note,
    Said,
)
from echoic.scripts.syntax.tree import Script
from echoic.terms import Reference, TermList, Value, spelled, unspelled
from echoic.terms.saf import decode_saf, encode_saf
from echoic.toolbus.options import BusOptions
from echoic.toolbus.script_source import NO_DEFINES, load_script
from echoic.trust import open_private

__all__ = ["RunFile", "begin_run", "read_run", "replay_run"]

KEPT: Final = 256


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The first line."""

    digest: str
    seed: int
    now_ns: int
    epoch_ns: int
    int32: bool
    limits: dict[str, int]


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that was heard; nothing but the time where `heard` is empty."""

    turns: int
    now_ns: int
    heard: str = ""
    tool: int = 0
    name: str = ""
    instance: int | None = None
    kind: str = ""
    text: str | None = None
    saf: str = ""


class RunFile(list[LogEntry]):
    """A log that a machine adds to, and that goes to a file: all but the last entry, which a machine may take back."""

    __slots__ = ("_encoder", "_file")

    def __init__(self, path: str | Path, log: RunLog) -> None:
        """Begin a file, in the place of one that is there.

        Raises:
            JournalError: It cannot be written.
        """
        super().__init__()
        self._encoder = msgspec.json.Encoder()
        try:
            self._file: TextIO | None = open(  # noqa: SIM115 - closed by `close`
                path, "w", encoding="utf-8", opener=open_private
            )
        except OSError as error:
            raise JournalError(f"{path} cannot be written: {error.strerror or error}") from error
        head = Head(
            digest=log.digest,
            seed=log.seed,
            now_ns=log.now_ns,
            epoch_ns=log.epoch_ns,
            int32=log.int32,
            limits=asdict(log.limits),
        )
        self._write(head)

    def append(self, entry: LogEntry) -> None:
        """Add an entry; one with values is written at once, since keeping it would keep what they refer to."""
        super().append(entry)
        if entry.heard is not None:
            self._flush(len(self))
        elif len(self) > KEPT:
            self._flush(len(self) - 1)

    def close(self) -> None:
        """Write what is left."""
        self._flush(len(self))
        if self._file is not None:
            self._file.close()
            self._file = None

    def _flush(self, count: int) -> None:
        for entry in self[:count]:
            self._write(_line_of(entry))
        del self[:count]

    def _write(self, line: Head | Line) -> None:
        if self._file is not None:
            self._file.write(self._encoder.encode(line).decode() + "\n")


def begin_run(options: BusOptions, script: Script, seed: int, now_ns: int, epoch_ns: int) -> RunFile | None:
    """Return the log of a run that begins, None where nobody wants one.

    Raises:
        JournalError: It cannot be written.
    """
    if options.log is None:
        return None
    return RunFile(options.log, RunLog(digest_of(script), seed, now_ns, epoch_ns, limits=options.machine_limits))


def read_run(path: str | Path) -> RunLog:
    """Return a run.

    Raises:
        JournalError: It is not there, or not a run.
    """
    try:
        with Path(path).open(encoding="utf-8") as lines:
            head = msgspec.json.decode(next(lines, ""), type=Head)
            entries = [_entry_of(msgspec.json.decode(line, type=Line)) for line in lines]
        limits = MachineLimits(**head.limits)
    except (OSError, UnicodeDecodeError) as error:
        raise JournalError(f"{path} cannot be read: {error}") from error
    except (msgspec.MsgspecError, EchoicError, ValueError, TypeError, RecursionError) as error:
        raise JournalError(f"{path} is not the log of a run: {error}") from error
    return RunLog(head.digest, head.seed, head.now_ns, head.epoch_ns, head.int32, limits, entries)


def replay_run(
    path: str | Path,
    source: str | Path,
    *,
    defines: Mapping[str, str] = NO_DEFINES,
    include: Sequence[str | Path] = (),
    traced: bool = True,
) -> Iterator[list[Effect]]:
    """Yield the effects of a run again; nothing is started, and nobody is told anything.

    Raises:
        JournalError: There is no such run.
        RefusedError: It is the run of another script.
        ScriptError: The script is not in order.
    """
    log = read_run(path)
    program = Program(load_script(source, defines=defines, include=include))
    yield from replay(log, program, random.Random(log.seed), traced=traced)  # noqa: S311 - the same again, no secret


def _line_of(entry: LogEntry) -> Line:
    turns, now_ns = entry.turns, entry.now_ns
    match entry.heard:
        case None:
            return Line(turns=turns, now_ns=now_ns)
        case Connected(name, instance):
            return Line(turns=turns, now_ns=now_ns, heard="connected", name=name, instance=instance)
        case Said(tool, kind, values):
            return Line(turns=turns, now_ns=now_ns, heard="said", tool=tool, kind=kind, saf=_encoded(values))
        case Lost(tool, reason):
            return Line(turns=turns, now_ns=now_ns, heard="lost", tool=tool, text=reason)
        case Note(value):
            return Line(turns=turns, now_ns=now_ns, heard="note", saf=_encoded((value,)))
        case LineRead(text):
            return Line(turns=turns, now_ns=now_ns, heard="line", text=text)
        case Fetched(reference, value):
            return Line(turns=turns, now_ns=now_ns, heard="fetched", saf=_encoded((reference, value)))
        case Delivered(hold):
            return Line(turns=turns, now_ns=now_ns, heard="delivered", tool=hold)
        case _:
            assert_never(entry.heard)


def _entry_of(line: Line) -> LogEntry:
    heard: Input | None
    match line.heard:
        case "":
            heard = None
        case "connected":
            heard = Connected(line.name, line.instance)
        case "said":
            heard = Said(line.tool, FromTool(line.kind), _decoded(line.saf))
        case "lost":
            heard = Lost(line.tool, line.text or "")
        case "note":
            (value,) = _decoded(line.saf)
            heard = Note(value)
        case "line":
            heard = LineRead(line.text)
        case "fetched":
            reference, value = _decoded(line.saf)
            if not isinstance(reference, Reference):
                raise JournalError("a value was fetched for what is no reference")
            heard = Fetched(reference, value)
        case "delivered":
            heard = Delivered(line.tool)
        case other:
            raise JournalError(f"a line has `{other}`, which is no input")
    return LogEntry(line.turns, line.now_ns, heard)


def _encoded(values: tuple[Value, ...]) -> str:
    return encode_saf(spelled(TermList(*values))).hex() if values else ""


def _decoded(text: str) -> tuple[Value, ...]:
    value = unspelled(decode_saf(bytes.fromhex(text))) if text else TermList()
    return value.elements if isinstance(value, TermList) else (value,)
