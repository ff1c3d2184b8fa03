"""The text of a generated Python function while it is written.

Expressions of E-Code become expressions of Python where they can. What Python can only say as a statement, such as an
assignment inside an expression, is written as lines before the line that uses it. C's order of evaluation, left to
right here, then needs care: what stands to the left of such a value must be evaluated before those lines. `together`
sees to that: when a part has written lines, the parts before it are put into names ahead of these lines.

    a[f] + (b = 2) * g        t1 = a[f]
                              v2 = 2
                              ... t1 + v2 * g

The text is made of our own words and of numbers. What comes from a program, such as its string literals, is reached by
names through the namespace.
"""

import contextlib
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from echoic.ecode.kernel import FaultKind

if TYPE_CHECKING:
    from echoic.ecode.typed import Position

__all__ = ["Expression", "Source", "Stop", "plain"]

Stop: Final = StopIteration
"""What generated code raises, with the number of the fault, when an event faults. It is no error, and never leaves this
back end; nothing that generated code calls raises it otherwise."""

DEPTH_MAX: Final = 40  # CPython refuses 200 parentheses in each other, and expressions that are much deeper


@dataclass(frozen=True, slots=True)
class Expression:
    """Text that can be evaluated, once, where it is put."""

    text: str
    depth: int = 0
    """How many parentheses stand in each other."""
    stable: bool = False
    """Whether it is the same and cannot fault whenever it is evaluated during the statement."""

    @property
    def simple(self) -> bool:
        """Whether the text is a name or a number, which may be repeated."""
        return self.text.isidentifier() or self.text.isdigit()


def plain(value: int | str) -> Expression:
    """Return an expression that may be put anywhere: an integer, or a name that is assigned once."""
    text = str(value)
    return Expression(f"({text})" if text.startswith("-") else text, stable=True)


class Source:
    """Lines, names and faults of one generated function."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.indent = 0
        self.namespace: dict[str, object] = {}
        self.faults: list[tuple[FaultKind, int, int]] = []
        self._temporaries = 0
        self._constants: dict[object, str] = {}

    def line(self, text: str) -> None:
        """Write a line at the current depth."""
        self.lines.append(" " * self.indent + text)

    def temporary(self) -> str:
        """Return a name that nothing else has."""
        self._temporaries += 1
        return f"t{self._temporaries}"

    def constant(self, key: object, value: object) -> str:
        """Return the name by which generated code reaches a value; equal keys share one."""
        if key not in self._constants:
            self._constants[key] = f"K{len(self._constants)}"
            self.namespace[self._constants[key]] = value
        return self._constants[key]

    def unpacker(self, letters: str) -> str:
        """Return the name of a function that reads numbers: `name(buffer, place)`."""
        return self.constant(("unpack", letters), struct.Struct(letters).unpack_from)

    def packer(self, letters: str) -> str:
        """Return the name of a function that writes numbers: `name(buffer, place, *values)`."""
        return self.constant(("pack", letters), struct.Struct(letters).pack_into)

    def fault(self, kind: FaultKind, at: "Position") -> int:
        """Return the number of a fault in the table."""
        entry = (kind, *at)
        if entry not in self.faults:
            self.faults.append(entry)
        return self.faults.index(entry)

    def stop(self, kind: FaultKind, at: "Position") -> None:
        """Write the line that gives the event up."""
        self.line(f"raise Stop({self.fault(kind, at)})")

    def settle(self, expression: Expression) -> Expression:
        """Return the same value by a name that does not change any more."""
        if expression.stable and expression.simple:
            return expression
        name = self.temporary()
        self.line(f"{name} = {expression.text}")
        return plain(name)

    def flattened(self, expression: Expression) -> Expression:
        """Return the same value in a text that is not too deep."""
        return self.settle(expression) if expression.depth > DEPTH_MAX else expression

    def together(self, *parts: Callable[[], Expression]) -> list[Expression]:
        """Return the expressions of parts that are evaluated one after the other."""
        done: list[Expression] = []
        for part in parts:
            mark, before = len(self.lines), self.lines
            expression = part()
            if len(before) != mark:
                later = before[mark:]
                del before[mark:]
                done = [earlier if earlier.stable else self.settle(earlier) for earlier in done]
                before.extend(later)
            done.append(expression)
        return done

    @contextlib.contextmanager
    def aside(self) -> Iterator[list[str]]:
        """Collect lines, one level deeper, instead of writing them."""
        outside, self.lines = self.lines, []
        self.indent += 1
        try:
            yield self.lines
        finally:
            self.lines = outside
            self.indent -= 1
