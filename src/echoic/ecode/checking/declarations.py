"""Declarations of the syntax tree to variables.

A local becomes a `Declare`, a static a place in the block of statics and nothing that runs. A `const` whose value is
known needs neither. A declaration with a mistake still declares its name, so that each use is not a mistake too.

The name is known behind the declaration, not inside of it: C leaves the value of `int x = x;` undefined.
"""

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from echoic.ecode.checking.operations import convert
from echoic.ecode.checking.scopes import LOCAL_BYTES_MAX, STATIC_BYTES_MAX
from echoic.ecode.numbers import INT32, Number, usual
from echoic.ecode.syntax import tree
from echoic.ecode.syntax.text import counted, mistake
from echoic.ecode.typed import Constant, Declare, Value, Variable
from echoic.errors import ECodeError

if TYPE_CHECKING:
    from echoic.ecode.checking.expressions import Expressions
    from echoic.ecode.checking.scopes import Scopes

__all__ = ["Declarations"]

DIMENSIONS_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class Declarations:
    """Checks the declarations of one program."""

    expressions: "Expressions"
    scopes: "Scopes"

    def declare(self, node: tree.Declaration) -> Declare | None:
        """Add a variable to the innermost block, and return what has to run for it.

        Raises:
            ECodeError: The declaration is wrong.
        """
        self.scopes.check_name(node.name, node.at)
        try:
            return self._declared(node)
        except ECodeError:
            self._declare_anyway(node)
            raise

    def _declare_anyway(self, node: tree.Declaration) -> None:
        """Let the name of a wrong declaration be used: as what it was to be if that is known, else as anything."""
        meaning: Variable | None = None
        if node.number is not None and not node.dimensions and not node.constant:
            meaning = Variable(node.name, node.number, (), node.static, constant=False, serial=-1)
        self.scopes.define(node.name, meaning, node.at)

    def _declared(self, node: tree.Declaration) -> Declare | None:
        dimensions = self._dimensions(node)
        values = self._values(node, dimensions)
        number = node.number or _type_of(node, values)
        converted = tuple(convert(value, number) for value in values)
        if node.constant and not values:
            raise mistake(node.at, f"`{node.name}` is `const` and needs a value")
        if node.static:
            self._static(node, number, dimensions, converted)
            return None
        match converted:
            case (Constant() as constant,) if node.constant and not dimensions:
                self.scopes.define(node.name, constant, node.at)
                return None
            case _:
                pass
        variable = self.scopes.variable(node.name, number, dimensions, node.at, constant=node.constant)
        self.scopes.define(node.name, variable, node.at)
        return Declare(variable, converted, node.at)

    def _static(
        self, node: tree.Declaration, number: Number, dimensions: tuple[int, ...], values: tuple[Value, ...]
    ) -> None:
        constants = []
        for value in values:
            if not isinstance(value, Constant):
                raise mistake(value.at, f"`{node.name}` is static and must begin with a constant")
            constants.append(value.value)
        if node.constant and not dimensions:
            self.scopes.define(node.name, Constant(constants[0], number, node.at), node.at)
            return
        zero: int | float = 0.0 if number.floating else 0
        initial = (*constants, *[zero] * (math.prod(dimensions) - len(constants)))
        variable = self.scopes.static(node.name, number, dimensions, initial, node.at, constant=node.constant)
        self.scopes.define(node.name, variable, node.at)

    def _dimensions(self, node: tree.Declaration) -> tuple[int, ...]:
        if len(node.dimensions) > DIMENSIONS_MAX:
            raise mistake(node.at, f"`{node.name}` has {len(node.dimensions)} dimensions, limit is {DIMENSIONS_MAX}")
        inner = [self._dimension(node, dimension) for dimension in node.dimensions[1:]]
        if not node.dimensions:
            return ()
        if node.dimensions[0] is not None:
            lengths = (self._dimension(node, node.dimensions[0]), *inner)
        elif isinstance(node.initial, tree.Braces) and node.initial.items:
            items = node.initial.items
            nested = any(isinstance(item, tree.Braces) for item in items)
            lengths = (len(items) if nested else math.ceil(len(items) / math.prod(inner)), *inner)
        else:
            raise mistake(node.at, f"`{node.name}` needs a length or some values in braces")
        size = math.prod(lengths) * (node.number.size if node.number else 1)
        limit = STATIC_BYTES_MAX if node.static else LOCAL_BYTES_MAX
        if size > limit:
            kind = "static" if node.static else "local"
            raise mistake(node.at, f"`{node.name}` takes {size} bytes, limit for all {kind} variables is {limit}")
        return lengths

    def _dimension(self, node: tree.Declaration, length: tree.Expression | None) -> int:
        if length is None:
            raise mistake(node.at, f"only the first dimension of `{node.name}` can go without a length")
        found = self.expressions.value(length)
        if not isinstance(found, Constant) or found.number.floating:
            raise mistake(length.at, f"the length of `{node.name}` must be a constant integer")
        if found.value < 1:
            raise mistake(length.at, f"the length of `{node.name}` is {found.value}, expected 1 at least")
        return int(found.value)

    def _values(self, node: tree.Declaration, dimensions: tuple[int, ...]) -> list[Value]:
        """Return the first values of a variable, row major."""
        match node.initial:
            case None:
                return []
            case tree.Braces() as braces:
                if not dimensions:
                    raise mistake(braces.at, f"`{node.name}` is not an array, its value stands without braces")
                return self._elements(node, braces, dimensions)
            case tree.String(at=at):
                raise mistake(at, "a variable cannot hold a text")
            case value:
                if dimensions:
                    raise mistake(value.at, f"`{node.name}` is an array, its values stand in braces")
                return [self.expressions.value(value)]

    def _elements(self, node: tree.Declaration, braces: tree.Braces, dimensions: tuple[int, ...]) -> list[Value]:
        items = _row_major(braces, dimensions, node.name)
        while items and items[-1] is None:
            items.pop()
        if not node.static:
            self.expressions.count(items.count(None), braces.at)
        zero = Constant(0, INT32, braces.at)
        return [zero if item is None else self.expressions.value(item) for item in items]


def _type_of(node: tree.Declaration, values: list[Value]) -> Number:
    """Return the type of a variable that is declared by its value alone."""
    if not values:
        raise mistake(node.at, f"`{node.name}` needs a type or a value")
    return functools.reduce(usual, [value.number for value in values])


def _row_major(braces: tree.Braces, dimensions: tuple[int, ...], name: str) -> list[tree.Expression | None]:
    """Return the elements that braces give; None where nested braces leave one out."""
    count = math.prod(dimensions)
    nested = [item for item in braces.items if isinstance(item, tree.Braces)]
    plain = [item for item in braces.items if not isinstance(item, tree.Braces)]
    if nested and (plain or len(dimensions) == 1):
        raise mistake(nested[0].at, f"these braces do not fit the {counted(len(dimensions), 'dimension')} of `{name}`")
    limit = dimensions[0] if nested else count
    if len(braces.items) > limit:
        room = counted(limit, "row" if nested else "element")
        raise mistake(braces.at, f"`{name}` has {room} here, {len(braces.items)} are given")
    if not nested:
        return list(plain)
    elements: list[tree.Expression | None] = []
    for row in nested:
        inner = _row_major(row, dimensions[1:], name)
        elements += inner + [None] * (count // dimensions[0] - len(inner))
    return elements
