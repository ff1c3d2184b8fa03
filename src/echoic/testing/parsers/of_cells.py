"""The parser of what a confined process says to the hub: the pipe, the dialogue, and what the hub does on its behalf.

    | size u16 | what one read returns | size u16 | ...        the input: what arrives at a time

A hostile process decides when its bytes arrive as well as what they are, so both are in the input. Each piece is a
packet of a socket, which stands for the pipe; at the end of it is the hub's own `Sandbox`, which has just asked.
"""

import os
import socket
import struct
from collections.abc import Iterator, Sequence
from functools import cache
from random import Random
from typing import Final, TypeVar

from echoic.channels import SharedView
from echoic.eager.cell import Cell
from echoic.eager.dialogue import Call, Done, Failed, Get, Hello, Pull, ToHub, Write
from echoic.eager.mirrored import Mirrored
from echoic.eager.parcel import Parcel, SharedReference
from echoic.eager.pipe import HEADER, Deadline, Pipe, encode
from echoic.eager.sandbox import Sandbox
from echoic.eager.services import Face, Services
from echoic.eager.shared_object import SharedObject, copy_of
from echoic.formats import Format, Registry
from echoic.testing.parsers.parser import Target
from echoic.testing.parsers.repairs import AS_IT_IS, twist_msgpack
from echoic.testing.samples import Mean, Station, Trade
from echoic.wire import Batch, Buffer, encoder_of

__all__ = ["CELLS"]

SOURCE: Final = 1
PIECE: Final = struct.Struct("<H")
PIECES_MAX: Final = 32  # as many as a socket has room for
SECONDS: Final = 20.0

S = TypeVar("S", bound=SharedObject)


class Bench:
    """A service that gives back what it is given."""

    limit = 0.5

    def repeat(self, *arguments: object, **named: object) -> list[object]:
        """Return all arguments."""
        return [*arguments, named]


class Kept:
    """What stands behind a shared object: its values, and no other process."""

    def __init__(self, reference: SharedReference) -> None:
        self.id: Final = reference.id
        self.format: Final = Format.from_descriptor(reference.format)
        self.view = SharedView(reference.values, reference.version)

    def copy(self, _: SharedReference, cls: type[S]) -> S:
        """Return a copy of the object."""
        return copy_of(cls, self)

    def write(self, _: tuple[str, ...], values: bytes) -> None:
        """Take values."""
        self.view = SharedView(values, self.view.version + 1)

    def pull(self) -> None:
        """Do nothing: nobody else writes."""

    def release(self, copy: SharedObject) -> None:
        """Forget nothing: nothing is held."""


class Overheard(Cell):
    """The hub's end of the pipes to a process that has been started already."""

    def __init__(self, reading: int, writing: int) -> None:
        self._pipe = Pipe(reading, writing, alone=True)


class Asking(Sandbox):
    """A sandbox that has asked, and waits for the answer."""

    def __init__(self, cell: Cell) -> None:
        shared = _shared()
        self._parcel = Parcel("readings", "Halving", "", requires=("bench",), shared=(shared,))
        self._cell = cell
        self._services = {SOURCE: Services({"bench": Face("bench", Bench())})}
        self._outputs = Registry(formats_max=2)
        for cls in (Mean, Trade):  # of fixed and of variable size
            self._outputs.add(Format.of(cls))
        self._shared = {shared.attribute: Mirrored(shared, Kept(shared))}

    def hear(self) -> None:
        """Do what is asked for until there is an answer, and look at the events in it.

        Raises:
            EchoicError: There is none.
        """
        done, body = self._heard(SOURCE, Deadline(SECONDS, "a trial"))
        if done.batch:
            self._checked(body)


@cache
def _shared() -> SharedReference:
    record = encoder_of(Format.of(Station)).encode((_station("north"),))[0]
    return SharedReference("box", "h:1/shared/1", "Box", Format.of(Station).descriptor, b"".join(record), 0)


def _station(name: str) -> Station:
    return Station(name=name, latitude=1.5, longitude=-2.5)


@cache
def _nowhere(process: int) -> int:  # noqa: ARG001 - a fuzzer forks, and each process opens its own
    return os.open(os.devnull, os.O_WRONLY)


def _feed(data: bytes) -> None:
    hub, process = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with hub:
        hub.setblocking(False)
        with process:
            for piece in _pieces(data)[:PIECES_MAX]:
                process.send(piece)
        Asking(Overheard(hub.fileno(), _nowhere(os.getpid()))).hear()


def _pieces(data: bytes) -> list[bytes]:
    pieces, at = [], 0
    while len(data) - at > PIECE.size:
        (size,) = PIECE.unpack_from(data, at)
        at += PIECE.size
        if piece := data[at : at + size]:
            pieces.append(piece)
        at += size
    return pieces


def _joined(pieces: Sequence[bytes]) -> bytes:
    return b"".join(PIECE.pack(len(piece)) + piece for piece in pieces)


def _said(message: ToHub, *body: Buffer) -> bytes:
    head, rest = encode(message), b"".join(body)
    return HEADER.pack(len(head), len(rest)) + head + rest


def _seeds() -> Iterator[bytes]:
    trades = [Trade("IBM", 75.5, 100), Trade("HAL", 1.0, 2, note="x")]
    means = [Mean(at=1.0, average_velocity=2.0)]
    done = [_said(Done(1, batch=True, faults=(), waiting=False), *Batch.of(events).buffers()) for events in (means,)]
    done += [_said(Done(1, batch=True, faults=("odd",), waiting=True), *Batch.of(trades).buffers())]
    asked = [
        _said(Get(SOURCE, "bench", "limit")),
        _said(Get(SOURCE, "bench", "repeat")),
        _said(Call(SOURCE, "bench", "repeat", [1, 2.5, "x", b"y", None, [True]], {"named": {"a": 1}})),
        _said(Pull("box")),
        _said(Write("box", ("name", "latitude")), *encoder_of(Format.of(Station)).encode((_station("south"),))[0]),
    ]
    yield from (_joined([*asked[:count], answer]) for answer in done for count in (0, 2, 5))
    yield _joined([done[0][:5], done[0][5:20], done[0][20:]])
    yield _joined([_said(Failed("it gave up"))])
    yield _joined([_said(Hello())])


def _repair(data: bytes, draw: Random) -> bytes:
    """Return an input whose pieces are messages: each length is right, and a few values are others."""
    return _joined([piece if draw.random() < AS_IT_IS else _repaired(piece, draw) for piece in _pieces(data)])


def _repaired(piece: bytes, draw: Random) -> bytes:
    if len(piece) < HEADER.size:
        return piece
    head_bytes = HEADER.unpack_from(piece)[0]
    head, body = piece[HEADER.size : HEADER.size + head_bytes], piece[HEADER.size + head_bytes :]
    if draw.random() < 0.3:
        head = twist_msgpack(head, draw)
    return HEADER.pack(len(head), len(body)) + head + body


CELLS: Final = Target(_feed, _seeds, _repair)
