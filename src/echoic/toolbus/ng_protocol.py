"""The words of the Java ToolBus (ToolBus-NG), for tools that were written for it. This module is pure.

    tool                                                   bus
      name(id)            id is -1 if it comes by itself   --->
                                                 <---  signature([..],[..],[..])
      1 (one byte)        or 0 to refuse, and hang up      --->
                                                 <---  name(number)
      then, both ways:    operation (one byte), a term

Terms are in SAF, in blocks of at most 32,768 bytes with their length before them, and strings are Latin-1.

    from a tool   CONNECT 1 name(number)   DISCONNECT 2   EVENT 3   VALUE 4   ACKDO 5 []   REQUEST 15
    from a bus    RESPONSE 6   ACKEVENT 11 [event with [] for each argument, data]   EVAL 12   DO 13   TERMINATE 14
    both          PERFORMANCESTATS 21 and 22   END 127 []

There are no numbers of transactions: an answer is for what was asked last.
"""

import enum
from typing import Final

from echoic.errors import MalformedTermError
from echoic.scripts.running.messages import FromTool, ToTool
from echoic.terms import Annotated, Term, TermList, Value
from echoic.terms.saf import BlockReader, encode_blocks

__all__ = ["NgOperation", "NgReader", "encode_ng_operation", "encode_ng_term", "ng_operation_of", "said_by_ng"]

BLOCK_BYTES: Final = 32_768
NOTHING: Final = TermList()


class NgOperation(enum.IntEnum):
    """What a frame is about."""

    CONNECT = 1
    DISCONNECT = 2
    EVENT = 3
    VALUE = 4
    ACKDO = 5
    RESPONSE = 6
    ACKEVENT = 11
    EVAL = 12
    DO = 13
    TERMINATE = 14
    REQUEST = 15
    PERFORMANCESTATS = 21
    DEBUGPERFORMANCESTATS = 22
    END = 127


OPERATIONS: Final = {int(operation): operation for operation in NgOperation}
SAID: Final = {
    NgOperation.DISCONNECT: FromTool.DISCONNECT,
    NgOperation.EVENT: FromTool.EVENT,
    NgOperation.VALUE: FromTool.VALUE,
    NgOperation.ACKDO: FromTool.VOID,
    NgOperation.REQUEST: FromTool.REQUEST,
    NgOperation.PERFORMANCESTATS: FromTool.STATISTICS,
    NgOperation.DEBUGPERFORMANCESTATS: FromTool.STATISTICS,
}
WITHOUT_VALUE: Final = frozenset({FromTool.VOID, FromTool.DISCONNECT})


def encode_ng_term(value: Value) -> bytes:
    """Return a term in blocks.

    Raises:
        EncodeError: A string has letters that Latin-1 has not.
    """
    return b"".join(encode_blocks(value, encoding="latin-1", block_bytes_max=BLOCK_BYTES))


def encode_ng_operation(operation: NgOperation, value: Value) -> bytes:
    """Return a frame.

    Raises:
        EncodeError: A string has letters that Latin-1 has not.
    """
    return bytes([operation]) + encode_ng_term(value)


def ng_operation_of(kind: ToTool, values: tuple[Value, ...]) -> tuple[NgOperation, Value] | None:
    """Return what a tool is told, None for what this protocol has no words for."""
    first = values[0] if values else NOTHING
    match kind:
        case ToTool.EVAL:
            return NgOperation.EVAL, first
        case ToTool.DO:
            return NgOperation.DO, first
        case ToTool.TERMINATE:
            return NgOperation.TERMINATE, first
        case ToTool.RESPONSE:
            return NgOperation.RESPONSE, first
        case ToTool.ACK_EVENT:
            return NgOperation.ACKEVENT, TermList(_emptied(first), values[1] if len(values) > 1 else NOTHING)
        case ToTool.STATISTICS:
            return NgOperation.PERFORMANCESTATS, NOTHING
        case _:
            return None


def said_by_ng(operation: NgOperation, value: Value) -> tuple[FromTool, tuple[Value, ...]] | None:
    """Return what a machine learns from a frame of a tool; None for CONNECT, END and what tools do not say."""
    kind = SAID.get(operation)
    if kind is None:
        return None
    return kind, () if kind in WITHOUT_VALUE else (value,)


def _emptied(event: Value) -> Value:
    """Return an event with `[]` for each of its arguments: the name is what a tool looks at."""
    if isinstance(event, Annotated):
        event = event.value
    return Term(event.name, *(NOTHING,) * event.arity) if isinstance(event, Term) else event


class NgReader:
    """Cuts received bytes into what a tool says: first a term, then a byte, then frames."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._held = bytearray()
        self._term: BlockReader | None = None

    def receive(self, data: bytes) -> None:
        """Take the next piece of the stream."""
        self._held += data

    def take_byte(self) -> int | None:
        """Return the next byte, None where there is none yet."""
        if not self._held:
            return None
        first = self._held[0]
        del self._held[0]
        return first

    def take_term(self) -> Value | None:
        """Return the next term, None where it is not whole yet.

        Raises:
            MalformedTermError: There is none.
            LimitExceededError: It is too large.
        """
        if not self._held:
            return None
        if self._term is None:
            self._term = BlockReader(encoding="latin-1", bytes_max=self.bytes_max)
        used = self._term.receive(bytes(self._held))
        del self._held[:used]
        if not self._term.complete:
            return None
        value, self._term = self._term.value, None
        return value

    def take_frames(self, pending: list[NgOperation]) -> list[tuple[NgOperation, Value]]:
        """Return the frames that are whole; `pending` has the operation whose term is not there, between calls.

        Raises:
            MalformedTermError: There is an operation that nobody knows, or no term.
            LimitExceededError: A term is too large.
        """
        frames: list[tuple[NgOperation, Value]] = []
        while True:
            if not pending:
                number = self.take_byte()
                if number is None:
                    return frames
                if number not in OPERATIONS:
                    raise MalformedTermError(f"operation {number} is none of ToolBus-NG")
                pending.append(OPERATIONS[number])
            value = self.take_term()
            if value is None:
                return frames
            frames.append((pending.pop(), value))
