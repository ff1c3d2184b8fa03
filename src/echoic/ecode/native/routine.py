"""What all parts of the native back end share while they write one routine.

The routine is one function: a loop over the events of a batch with the program's code in its middle.

    entering  what is done once
    next      is there another event?                              -> leave
    locate    where is its record?
    opened    what an event begins with: slots, output texts       (written when they are first used)
    body      the program, once the output is known to have room   -> leave
    decide    does the event pass?
    settled   on to the next one                                   -> leave, after a fault
    leave     what was found goes to the work memory

Names that every part may use: `%record` and `%size` are the record and its length, `%target` the output record,
`%scratch` the memory for output arrays, `%index` the number of the event. Fault number 0 is that of a malformed record.
"""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from echoic.codegen import Emitter, Lines
from echoic.ecode.analysis import Analysis
from echoic.ecode.context import ContextUse
from echoic.ecode.kernel import FaultKind
from echoic.ecode.program import Program
from echoic.ecode.typed import Position, Root
from echoic.errors import CodegenError
from echoic.formats import NATIVE, Format, Slots

__all__ = ["NOWHERE", "FaultPlace", "Layout", "Routine"]

Layout: TypeAlias = Literal["rows", "columns"]
FaultPlace: TypeAlias = tuple[FaultKind, int, int]

NOWHERE: Position = (0, 0)


@dataclass
class Routine:
    """One routine in the making."""

    program: Program
    analysis: Analysis
    layout: Layout
    emit: Emitter = field(default_factory=Emitter)
    faults: dict[FaultPlace, int] = field(default_factory=dict)
    """Every fault that can happen, by its number."""
    scratch_bytes: int = 0
    room_bytes: int = 0
    """How much an event can write to the output at most, its texts left out."""
    entering: Lines = field(default_factory=list)
    """What is done once, before the first event."""
    opening: Lines = field(default_factory=list)
    """What is done before the body, for each event."""
    settling: Lines = field(default_factory=list)
    """What is done after it, whatever became of the event."""

    def __post_init__(self) -> None:
        """Refuse slots that are pointers."""
        for root in ("input", "output", "param", "context"):
            format = self.program.signature.root(root)
            if format is not None and format.variable and format.slots is not Slots.SPAN:
                raise CodegenError(f"the slots of `{format.name}` are pointers, expected spans")

    @property
    def context(self) -> ContextUse:
        """What the program does with the context that it names."""
        if self.program.context is None:
            raise CodegenError("the program names no context")
        return self.program.context

    def fault(self, kind: FaultKind, at: Position) -> str:
        """Return the label of a fault."""
        return f"fault_{self.faults.setdefault((kind, *at), len(self.faults))}"

    def format(self, root: Root) -> Format:
        """Return the type of a record that the code has named."""
        format = self.program.signature.root(root)
        if format is None:
            raise CodegenError(f"the program has no `{root}`")
        return format

    def foreign(self, root: Root) -> bool:
        """Tell whether a record's numbers stand in the other byte order."""
        return self.layout == "rows" and self.format(root).byte_order != NATIVE.byte_order

    def reserve(self, size: int) -> int:
        """Return where so many bytes of scratch memory begin."""
        begin = self.scratch_bytes
        self.scratch_bytes += -(-size // 8) * 8
        return begin

    def swapped(self, kind: str, value: str) -> str:
        """Return an integer with its bytes in the other order."""
        return value if kind == "i8" else self.emit.call(kind, f"llvm.bswap.{kind}", [(kind, value)])
