"""Which variable a name means, and where variables lie.

Names live in blocks, inner ones hide outer ones. Statics lie one after the other in a block of their own, aligned as C
aligns them; locals only have to be small enough together. A `const` whose value is known at compile time is no
variable at all: its name stands for the number.
"""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from echoic.ecode.syntax.nearest import did_you_mean
from echoic.ecode.syntax.text import cascade, mistake, quoted
from echoic.ecode.typed import Constant, Variable

if TYPE_CHECKING:
    from echoic.ecode.numbers import Number
    from echoic.ecode.typed import Position

__all__ = ["LOCAL_BYTES_MAX", "RECORDS", "STATIC_BYTES_MAX", "Scopes"]

LOCAL_BYTES_MAX: Final = 65536
STATIC_BYTES_MAX: Final = 65536
NAME_CHARACTERS_MAX: Final = 100
RECORDS: Final = ("input", "output", "param", "context")
ADVICE: Final = {
    "true": ": E-Code writes 1",
    "false": ": E-Code writes 0",
    "NULL": ": there are no pointers in E-Code",
    "event": ": the event is called `input`",
    "params": " (did you mean `param`?)",
}

Meaning: TypeAlias = Variable | Constant | None
"""What a name stands for; None if its declaration had a mistake."""


@dataclass(slots=True)
class Scopes:
    """The names that can be used at one point of the program, and all variables up to there."""

    locals: list[Variable] = field(default_factory=list)
    statics: list[Variable] = field(default_factory=list)
    _blocks: list[dict[str, tuple[Meaning, "Position"]]] = field(default_factory=lambda: [{}])
    _local_bytes: int = 0
    _static_end: int = 0

    @property
    def static_bytes(self) -> int:
        """The size of the block of statics, a multiple of 8."""
        return _aligned(self._static_end, 8)

    def enter(self) -> None:
        """Begin a block."""
        self._blocks.append({})

    def leave(self) -> None:
        """End a block: its names are forgotten."""
        self._blocks.pop()

    def check_name(self, name: str, at: "Position") -> None:
        """Refuse a name that a variable cannot have here.

        Raises:
            ECodeError: It is taken in the same block, the name of a record, or cannot be one of a field.
        """
        if name in RECORDS:
            raise mistake(at, f"`{name}` is the name of a record, a variable needs another one")
        # A block of statics can be saved and shown as a record, whose fields have these names.
        if len(name) > NAME_CHARACTERS_MAX:
            raise mistake(at, f"{quoted(name)} has {len(name)} characters, limit is {NAME_CHARACTERS_MAX}")
        if name.startswith("__"):
            raise mistake(at, f"`{name}` begins with `__`, which no name of a variable may")
        taken = self._blocks[-1].get(name)
        if taken is not None:
            raise mistake(at, f"`{name}` is declared twice in this block, first on line {taken[1][0]}")

    def define(self, name: str, meaning: Meaning, at: "Position") -> None:
        """Let a name stand for something until the block ends."""
        self._blocks[-1].setdefault(name, (meaning, at))

    def variable(
        self, name: str, number: "Number", dimensions: tuple[int, ...], at: "Position", *, constant: bool
    ) -> Variable:
        """Return another local variable.

        Raises:
            ECodeError: All locals together would be too large.
        """
        serial = len(self.locals) + len(self.statics)
        size = _aligned(number.size * math.prod(dimensions), 8)
        if self._local_bytes + size > LOCAL_BYTES_MAX:
            total = self._local_bytes + size
            raise mistake(at, f"with `{name}` the local variables take {total} bytes, limit is {LOCAL_BYTES_MAX}")
        variable = Variable(name, number, dimensions, static=False, constant=constant, serial=serial)
        self._local_bytes += size
        self.locals.append(variable)
        return variable

    def static(
        self,
        name: str,
        number: "Number",
        dimensions: tuple[int, ...],
        initial: tuple[int | float, ...],
        at: "Position",
        *,
        constant: bool,
    ) -> Variable:
        """Return another static variable with its place and its first values.

        Raises:
            ECodeError: All statics together would be too large.
        """
        offset = _aligned(self._static_end, number.size)
        end = offset + number.size * math.prod(dimensions)
        if _aligned(end, 8) > STATIC_BYTES_MAX:
            raise mistake(at, f"with `{name}` the static variables take {end} bytes, limit is {STATIC_BYTES_MAX}")
        serial = len(self.locals) + len(self.statics)
        variable = Variable(
            name,
            number,
            dimensions,
            static=True,
            constant=constant,
            serial=serial,
            offset=offset,
            initial=initial,
        )
        self._static_end = end
        self.statics.append(variable)
        return variable

    def meaning(self, name: str, at: "Position") -> Variable | Constant:
        """Return what a name stands for.

        Raises:
            ECodeError: Nothing; or only a mistake that was reported before is to blame.
        """
        for block in reversed(self._blocks):
            if name in block:
                found = block[name][0]
                if found is None:
                    raise cascade()
                return found
        known = (other for block in reversed(self._blocks) for other in block)
        advice = ADVICE.get(name) or did_you_mean(name, (*known, *RECORDS))
        raise mistake(at, f"there is no variable {quoted(name)}{advice}")


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment
