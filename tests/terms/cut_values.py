"""Values with references in the places of some of their parts, and the parts."""

from collections.abc import Callable, Mapping

import hypothesis.strategies as st

from echoic.terms import (
    Annotated,
    Placeholder,
    Reference,
    ReferenceKind,
    Term,
    TermList,
    Value,
    from_placeholder,
    references_in,
    with_values,
)
from echoic.terms.term import utf_8_size
from tests.terms.values import values

KINDS = {str: ReferenceKind.STR, bytes: ReferenceKind.BLOB, TermList: ReferenceKind.LIST}


class Owner:
    """A tool that keeps values: by the number of the variable, so that references to them are not kept."""

    def __init__(self, number: int = 1) -> None:
        self.number = number
        self.kept: list[Value] = []

    def reference(self, value: Value) -> Reference:
        """Return a reference to a value that can have one."""
        self.kept.append(value)
        place = (self.number, len(self.kept) - 1, ())
        match value:
            case Term():
                kind = ReferenceKind.QUOTED if value.quoted else ReferenceKind.APPLICATION
                return Reference(*place, kind, 0, name=value.name, count=len(value.args))
            case TermList():
                return Reference(*place, ReferenceKind.LIST, 0, count=len(value))
            case str():
                return Reference(*place, ReferenceKind.STR, utf_8_size(value))
            case bytes():
                return Reference(*place, ReferenceKind.BLOB, len(value))
        raise AssertionError(value)

    def value(self, reference: Reference) -> Value:
        """Return what a reference stands for."""
        return self.kept[reference.variable]

    def cut(self, value: Value, wanted: Callable[[], bool]) -> Value:
        """Return a value in which parts that are `wanted`, each asked for, are references."""
        can = (
            isinstance(value, str | bytes)
            or (isinstance(value, Term) and bool(value.args))
            or (isinstance(value, TermList) and bool(value))
        )
        if can and wanted():
            return self.reference(value)
        match value:
            case Term(args=parts) if parts:
                return Term(value.name, *(self.cut(part, wanted) for part in parts), quoted=value.quoted)
            case TermList():
                return TermList(*(self.cut(part, wanted) for part in value))
            case Placeholder():
                return Placeholder(self.cut(value.type, wanted))
            case Annotated():
                return Annotated(*(self.cut(part, wanted) for part in (value.value, *value.annotations)))
            case _:
                return value

    def whole(self, value: Value) -> Value:
        """Return a value with all values in their places."""
        return with_values(value, {reference: self.value(reference) for reference in references_in(value)})

    def told(self, value: Value) -> Value:
        """Return a value with values in the places of placeholders that stand for references."""
        match value:
            case Placeholder(type=Term(name="reference")):
                return self.value(from_placeholder(value))
            case Term(args=parts) if parts:
                return Term(value.name, *map(self.told, parts), quoted=value.quoted)
            case TermList():
                return TermList(*map(self.told, value))
            case _:
                return value


@st.composite
def cuts(
    draw: st.DrawFn, of: st.SearchStrategy[Value] = values, owner: int = 1
) -> tuple[Value, Value, Mapping[Reference, Value]]:
    """Return a value, the same with references, and what they stand for."""
    value = draw(of)
    keeping = Owner(owner)
    choices = draw(st.randoms(use_true_random=False))
    skeleton = keeping.cut(value, lambda: choices.random() < 0.3)
    return value, skeleton, {reference: keeping.value(reference) for reference in references_in(skeleton)}
