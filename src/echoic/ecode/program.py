"""A program and what it works on.

    filter      int f(input)              the event passes unless 0 is returned
    transform   int f(input, output)      the output is sent unless 0 is returned
    router      either, with ports        the output port is returned; a negative number discards the event

Any of them may read parameters, and the context of the source it runs in, and act on the latter (`context`).

`Signature` are the types around the code, `Program` the code when it was found right for them.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy

from echoic.ecode.context import ContextUse
from echoic.ecode.typed import Block, Root, Variable
from echoic.formats import NATIVE, Field, Format, Kind

if TYPE_CHECKING:
    from echoic.ecode.numbers import Number

__all__ = ["ARRAY_CAPACITY", "PORTS_MAX", "Program", "Signature", "Spelling"]

Spelling: TypeAlias = Literal["ecode", "python"]

ARRAY_CAPACITY: Final = 1024  # steps of a dynamic array in `output` for which no capacity is declared
PORTS_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class Signature:
    """The types that a program works on.

    `output`, `params` and `context` are laid out for this machine; `input` may be of any, as long as its slots are
    spans. `ports` is 0 unless the program is a router. `capacities` are the most steps that dynamic arrays of `output`
    may have, by their dotted paths.
    """

    input: Format
    output: Format | None = None
    params: Format | None = None
    ports: int = 0
    capacities: tuple[tuple[str, int], ...] = ()
    context: Format | None = None

    def root(self, name: Root) -> Format | None:
        """Return the type of a record by the name it has in the code."""
        return {"input": self.input, "output": self.output, "param": self.params, "context": self.context}[name]

    def capacity(self, path: tuple[str, ...]) -> int:
        """Return how many steps a dynamic array of `output` may have."""
        return dict(self.capacities).get(".".join(path), ARRAY_CAPACITY)


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Code that was checked against a signature."""

    source: str
    spelling: Spelling
    file: str
    signature: Signature
    body: Block
    locals: tuple[Variable, ...]
    statics: tuple[Variable, ...]
    static_bytes: int
    """The size of the block of statics; 0 without any."""
    used: frozenset[tuple[Root, tuple[str, ...]]]
    """The fields that occur, by root and path."""
    nodes: int = field(default=0)
    """How large the tree is."""
    context: ContextUse | None = None
    """What it does with the context; None if it does not name it."""

    @property
    def block_bytes(self) -> int:
        """The size of what a kernel may change: statics, and the context if the code names it."""
        return self.static_bytes if self.context is None else self.context.end

    def initial_statics(self) -> bytearray:
        """Return the block of statics as it is before the first event; a context in it is all zeros."""
        format = self.static_format()
        block = bytearray(self.block_bytes)
        if format is not None:
            record = numpy.ndarray((), format.dtype, block)
            for variable, laid in zip(self.statics, format.fields, strict=True):
                values = numpy.array(variable.initial, record.dtype[laid.name].base)
                record[laid.name] = values.reshape(variable.dimensions)
        return block

    def static_format(self) -> Format | None:
        """Return the block of statics as an event type, by which it can be saved and shown; None without any."""
        if not self.statics:
            return None
        names: set[str] = set()
        fields = []
        for variable in self.statics:
            name = variable.name
            while name in names:
                name = f"{name}_{variable.serial}"
            names.add(name)
            kind = _kind_of(variable.number)
            fields.append(Field(name, kind, variable.number.size, variable.offset, variable.dimensions))
        return Format("Statics", tuple(fields), byte_order=NATIVE.byte_order, alignment=8, size=self.static_bytes)


def _kind_of(number: "Number") -> Kind:
    if number.floating:
        return Kind.FLOAT
    return Kind.INT if number.signed else Kind.UINT
