"""Corosync's closed process groups, from Python: the library `libcpg.so.4` of the daemon, called by ctypes.

    program   cpg_model_initialize ---- local socket and shared memory ---- corosync daemon ---- other daemons
              cpg_join(group)
              cpg_mcast_joined(pieces)      a message, to every process of the group, this one too
              cpg_dispatch                  calls back: a message, processes came or went, nodes came or went

The order is *agreed*: every process of a ring sees the same messages and changes in the same order. `CPG_TYPE_SAFE` is
in the header, but was never written; that is why `groups.agreement` is above this.

A callback cannot raise through C, so the callbacks only note what happened. The memory of a message belongs to the
library and is gone when the callback returns: it is copied once, here.
"""

import ctypes
import os
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from echoic.errors import ClosedError, LocalError, UnreachableError
from echoic.wire import Buffer

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MESSAGE_BYTES_MAX", "ClosedGroup", "Happening", "Message", "NodesChanged", "ProcessesChanged"]

MESSAGE_BYTES_MAX: Final = 1_000_000
"""Just below what the daemon takes as one message (its limit is 1 MiB with its own headers)."""
GROUP_BYTES_MAX: Final = 127

_OK: Final = 1
_TRY_AGAIN: Final = 6
_DISPATCH_ONE_NONBLOCKING: Final = 4
_TYPE_AGREED: Final = 2
_MODEL_1: Final = 1
_DELIVER_INITIAL_TOTEM_CONF: Final = 1

_ERRORS: Final = {
    2: "the library's connection to the daemon is broken",
    3: "the versions of library and daemon differ",
    4: "the library could not be initialised",
    5: "timeout",
    6: "try again",
    7: "invalid parameter",
    8: "out of memory",
    9: "bad handle: the daemon has closed the connection",
    10: "busy",
    11: "access denied",
    12: "does not exist",
    13: "name too long",
    14: "exists already",
    15: "no space",
    16: "interrupted",
    18: "no resources",
    19: "not supported",
    21: "the operation failed",
    22: "the message is in error",
    23: "the queue is full",
    25: "bad flags",
    26: "too big: more than one message may have",
    30: "too many groups",
    100: "security error: is the program's user allowed in the `uidgid` configuration of corosync?",
}


class Message(msgspec.Struct, frozen=True, gc=False):
    """A message of a process."""

    place: tuple[int, int]
    data: bytes


class ProcessesChanged(msgspec.Struct, frozen=True):
    """Which processes are in the group, from here on."""

    places: tuple[tuple[int, int], ...]


class NodesChanged(msgspec.Struct, frozen=True):
    """The daemons have formed another ring. The processes may be the same, but not all need to have got the same."""

    ring: tuple[int, int]
    nodes: tuple[int, ...]


Happening: TypeAlias = Message | ProcessesChanged | NodesChanged


class _Name(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint32), ("value", ctypes.c_char * 128))


class _Address(ctypes.Structure):
    _fields_ = (("node", ctypes.c_uint32), ("process", ctypes.c_uint32), ("reason", ctypes.c_uint32))


class _RingId(ctypes.Structure):
    _fields_ = (("node", ctypes.c_uint32), ("sequence", ctypes.c_uint64))


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


_Deliver = ctypes.CFUNCTYPE(
    None,
    ctypes.c_uint64,
    ctypes.POINTER(_Name),
    ctypes.c_uint32,
    ctypes.c_uint32,
    ctypes.c_void_p,
    ctypes.c_size_t,
)
_Change = ctypes.CFUNCTYPE(
    None,
    ctypes.c_uint64,
    ctypes.POINTER(_Name),
    ctypes.POINTER(_Address),
    ctypes.c_size_t,
    ctypes.POINTER(_Address),
    ctypes.c_size_t,
    ctypes.POINTER(_Address),
    ctypes.c_size_t,
)
_TotemChange = ctypes.CFUNCTYPE(None, ctypes.c_uint64, _RingId, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint32))


class _Model(ctypes.Structure):
    _fields_ = (
        ("model", ctypes.c_int),
        ("deliver", _Deliver),
        ("change", _Change),
        ("totem_change", _TotemChange),
        ("flags", ctypes.c_uint),
    )


def _load() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL("libcpg.so.4")
    except OSError as problem:
        raise UnreachableError(
            f"libcpg.so.4 cannot be loaded ({problem}): install the Debian packages `libcpg4` and `corosync`"
        ) from problem
    handle = ctypes.c_uint64
    library.cpg_model_initialize.argtypes = [
        ctypes.POINTER(handle),
        ctypes.c_int,
        ctypes.POINTER(_Model),
        ctypes.c_void_p,
    ]
    library.cpg_join.argtypes = library.cpg_leave.argtypes = [handle, ctypes.POINTER(_Name)]
    library.cpg_mcast_joined.argtypes = [handle, ctypes.c_int, ctypes.POINTER(_Vector), ctypes.c_uint]
    library.cpg_fd_get.argtypes = [handle, ctypes.POINTER(ctypes.c_int)]
    library.cpg_local_get.argtypes = [handle, ctypes.POINTER(ctypes.c_uint)]
    library.cpg_dispatch.argtypes = [handle, ctypes.c_int]
    library.cpg_finalize.argtypes = [handle]
    return library


def _describe(code: int) -> str:
    return f"{_ERRORS.get(code, 'unknown error')} (corosync error {code})"


class ClosedGroup:
    """A process's connection to its daemon, as a member of a process group.

    Raises:
        UnreachableError: The library is not installed, or no daemon answers.
        LocalError: The name of the group is too long.
    """

    def __init__(self, group: str) -> None:
        name = group.encode()
        if not 0 < len(name) <= GROUP_BYTES_MAX:
            raise LocalError(f"expected the name of a group with 1 to {GROUP_BYTES_MAX} bytes, got {len(name)}")
        self._happened: list[Happening] = []
        self._name = _Name(len(name), name)
        self._library = _load()
        self._handle = ctypes.c_uint64()
        self._open = self.joined = False
        # The library keeps pointers to these, so they must live as long as the connection.
        self._callbacks = (_Deliver(self._delivered), _Change(self._changed), _TotemChange(self._totem_changed))
        self._model = _Model(_MODEL_1, *self._callbacks, _DELIVER_INITIAL_TOTEM_CONF)
        code = self._library.cpg_model_initialize(ctypes.byref(self._handle), _MODEL_1, ctypes.byref(self._model), None)
        if code != _OK:
            raise UnreachableError(
                f"the corosync daemon of this machine does not answer: {_describe(code)}; "
                "install the Debian package `corosync`, start it, and see what `corosync-cfgtool -s` says"
            )
        self._open = True
        try:
            descriptor, node = ctypes.c_int(), ctypes.c_uint()
            self._check(self._library.cpg_fd_get(self._handle, ctypes.byref(descriptor)))
            self._check(self._library.cpg_local_get(self._handle, ctypes.byref(node)))
        except UnreachableError:
            self.close()
            raise
        self.descriptor: Final = descriptor.value
        self.place: Final = (node.value, os.getpid())

    def join(self) -> bool:
        """Join the group; return False if the daemon cannot do it right away, as while its ring is forming.

        Raises:
            UnreachableError: The daemon is gone.
            ClosedError: The connection was closed.
        """
        code = self._call(self._library.cpg_join, ctypes.byref(self._name))
        if code != _TRY_AGAIN:
            self._check(code)
            self.joined = True
        return self.joined

    def send(self, header: bytes, payload: Buffer = b"") -> bool:
        """Multicast a message of two pieces; return False if the daemon takes nothing at the moment.

        Raises:
            UnreachableError: The daemon is gone.
            ClosedError: The connection was closed.
        """
        pieces = (_Vector * 2)()
        payload = payload if isinstance(payload, bytes) else bytes(payload)
        for piece, data in zip(pieces, (header, payload), strict=True):
            piece.base = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p)
            piece.length = len(data)
        code = self._call(self._library.cpg_mcast_joined, _TYPE_AGREED, pieces, 2 if payload else 1)
        if code == _TRY_AGAIN:
            return False
        self._check(code)
        return True

    def dispatch(self, count_max: int) -> list[Happening]:
        """Return what has happened, at most so many things, without waiting.

        Raises:
            UnreachableError: The daemon is gone.
            ClosedError: The connection was closed.
        """
        happened = self._happened
        while len(happened) < count_max:
            before = len(happened)
            code = self._call(self._library.cpg_dispatch, _DISPATCH_ONE_NONBLOCKING)
            if code not in {_OK, _TRY_AGAIN}:
                self._check(code)
            if len(happened) == before:
                break
        self._happened = []
        return happened

    def close(self) -> None:
        """Leave the group and let go of the connection."""
        if self._open:
            self._open = False
            if self.joined:
                self._library.cpg_leave(self._handle, ctypes.byref(self._name))
            self._library.cpg_finalize(self._handle)

    def _call(self, function: "ctypes._NamedFuncPointer", *arguments: object) -> int:
        if not self._open:
            raise ClosedError("the connection to corosync was closed")
        return int(function(self._handle, *arguments))

    def _check(self, code: int) -> None:
        if code != _OK:
            raise UnreachableError(f"corosync: {_describe(code)}")

    def _delivered(self, _handle: int, _name: object, node: int, process: int, data: int, length: int) -> None:
        self._happened.append(Message((node, process), ctypes.string_at(data, length)))

    def _changed(
        self,
        _handle: int,
        _name: object,
        members: "Sequence[_Address]",
        count: int,
        _left: object,
        _left_count: int,
        _joined: object,
        _joined_count: int,
    ) -> None:
        places = tuple((members[i].node, members[i].process) for i in range(count))
        self._happened.append(ProcessesChanged(places))

    def _totem_changed(self, _handle: int, ring: _RingId, count: int, nodes: "Sequence[int]") -> None:
        self._happened.append(NodesChanged((ring.node, ring.sequence), tuple(nodes[i] for i in range(count))))
