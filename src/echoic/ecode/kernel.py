"""What a compiled program is to its user: a function over batches of records.

Two back ends make kernels, `native` and `generated_python`. They behave alike to the bit: same events pass, same bytes
come out, same faults at the same places, same statics and fuel afterwards. Tests run every program through both.

An event that faults is not passed; the run goes on with the next one, and keeps what the event wrote to statics before.
"""

import enum
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import msgspec
import numpy

from echoic.ecode.context import CALLS_MAX
from echoic.ecode.program import Program

__all__ = ["FAULTS_MAX", "FUEL", "TEXT_BYTES_PER_UNIT", "Buffer", "Fault", "FaultKind", "Kernel", "Outcome"]

Buffer: TypeAlias = bytes | bytearray | memoryview

FUEL = 200_000  # what loops without a proved count, and long texts, may burn for one event
TEXT_BYTES_PER_UNIT = 256  # of a text field that is compared with another one or assigned to one; burnt each time
FAULTS_MAX = 16


class FaultKind(enum.IntEnum):
    """Why an event was given up."""

    INDEX = 1
    DIVISION = 2
    FUEL = 3
    RECORD = 4
    LENGTH = 5
    TEXT = 6
    PORT = 7
    CALLS = 8
    FUNCTION = 9

    @property
    def text(self) -> str:
        """What happened, in words."""
        return {
            FaultKind.INDEX: "an index is outside of its array",
            FaultKind.DIVISION: "an integer is divided by zero",
            FaultKind.FUEL: "a loop has used up the fuel of its event",
            FaultKind.RECORD: "the record contradicts its type",
            FaultKind.LENGTH: "an output array is longer than its capacity, or its length is negative",
            FaultKind.TEXT: "a text is longer than the char array it is assigned to",
            FaultKind.PORT: "there is no such output port",
            FaultKind.CALLS: f"more than {CALLS_MAX} functions of the context are called",
            FaultKind.FUNCTION: "a function of the source's context has failed",
        }[self]


class Fault(msgspec.Struct, frozen=True):
    """One event that was given up: which of the batch, why and where in the code (line and column, 0 if nowhere)."""

    event: int
    kind: FaultKind
    line: int
    column: int


class Outcome(msgspec.Struct):
    """What became of a batch.

    `handled` events were looked at, all of them unless there were too many faults. `selected` are the numbers (uint32)
    of those that passed, in order, and `ports` (int32) where each goes, for a router. A transform gives `records`, one
    for each selected event, laid out as records of a batch are, with their `bounds` (uint32, one more than records) if
    the output type is variable.
    """

    handled: int
    selected: numpy.ndarray[Any, numpy.dtype[numpy.uint32]]
    faults: list[Fault]
    ports: numpy.ndarray[Any, numpy.dtype[numpy.int32]] | None = None
    records: Buffer | None = None
    bounds: numpy.ndarray[Any, numpy.dtype[numpy.uint32]] | None = None


class Kernel(Protocol):
    """A compiled program. It has no state of its own: parameters and statics are given with each batch."""

    @property
    def program(self) -> Program:
        """What was compiled."""
        ...

    def run(
        self,
        records: Buffer,
        bounds: Buffer | None,
        count: int,
        params: bytes,
        statics: bytearray,
        fuel: int = FUEL,
        faults_max: int = FAULTS_MAX,
        *,
        release: bool = False,
    ) -> Outcome:
        """Run over `count` records.

        Args:
            records: The records, one after the other, as in a batch.
            bounds: Where each begins and the last ends, as uint32 of this machine, for a variable type; else None.
                Neither bounds nor records are trusted.
            count: How many there are.
            params: The parameter block, a whole record of the type of `params`; b"" if there is none.
            statics: The block of statics of this source, with its context if the code names that; it is changed.
            fuel: What loops without a proved count may burn for one event.
            faults_max: After how many faults to stop.
            release: Whether other threads of Python may run meanwhile, where that is possible.
        """
        ...

    def bind(self, params: bytes, statics: bytearray, fuel: int = FUEL) -> Callable[[Buffer], int]:
        """Return a function that looks at one record and returns what the code of a filter or router does.

        Of several records of fixed size, one after the other, it returns 0 if the code rejects all of them. An event
        that faults raises ValueError.
        """
        ...
