"""The types of terms, as Python says them.

Python                                   T-script
int  float  str  bool  bytes             int  real  str  bool  blob
list  list[int]  object                  list  list(int)  term
ts.tool("calc")                          calc
"bid(str,int)"                           bid(str,int)
Term, TermList, Placeholder              themselves
"""

import typing
from typing import Final, Protocol, TypeAlias, runtime_checkable

from echoic.errors import RemoteError
from echoic.scripts.python_spelling.places import refusal
from echoic.scripts.syntax.tree import Span
from echoic.terms import Placeholder, Term, TermList, Value, parse_text

__all__ = ["ANY", "Hint", "Named", "kind_of", "type_of"]

ANY: Final = Term("term")
BASE: Final[dict[object, Value]] = {
    bool: Term("bool"),
    int: Term("int"),
    float: Term("real"),
    str: Term("str"),
    bytes: Term("blob"),
    list: Term("list"),
    tuple: Term("list"),
    object: ANY,
    Term: ANY,
}
KINDS: Final = frozenset({"bool", "int", "real", "str", "list", "term"})


@runtime_checkable
class Named(Protocol):
    """What is a type under its own name: a tool."""

    @property
    def type(self) -> Term:
        """The type of its instances."""
        ...


Hint: TypeAlias = type | Named | Term | TermList | Placeholder | str
"""What a variable can be declared with."""


def type_of(hint: object, span: Span) -> Value:
    """Return the type that a hint stands for.

    Raises:
        ScriptError: It stands for none.
    """
    if isinstance(hint, type) and hint in BASE:
        return BASE[hint]
    if isinstance(hint, Term | TermList | Placeholder):
        return hint
    if isinstance(hint, Named):
        return hint.type
    if isinstance(hint, str):
        try:
            return parse_text(hint)
        except RemoteError as error:
            raise refusal(span, f"`{hint}` is not a type: {error}") from error
    if typing.get_origin(hint) is list:
        return Term("list", *(type_of(each, span) for each in typing.get_args(hint)))
    raise refusal(
        span, f"`{hint}` is not a type of terms: expected int, float, str, bool, list, object, a tool or a text"
    )


def kind_of(type_: Value) -> str:
    """Return what operators go by: `int real str bool list`, `term` where it is not known, else nothing."""
    if isinstance(type_, TermList):
        return "list"
    if isinstance(type_, Term) and type_.name in KINDS:
        return type_.name
    return ""
