"""Small worlds: the few values that stand for all values of a type.

    int                 0, 1                 given by `domain={"int": (0, 1, 2)}`, as for every type that has a name
    str                 "a", "b"
    bool                true, false
    list(int)           [], [0], [1]
    f(int)              f(0), f(1)
    [bool,str]          all pairs of them
    term                any                  a constant that nobody has written

What a tool may say is a pattern of its interface, `val(<int>)`; `Domain.of_pattern` returns all that it can stand for.
"""

from collections.abc import Iterator, Mapping
from itertools import islice, product
from typing import Final

from echoic.scripts.graph import Bind, Pattern, Slot, Slots, Template, read
from echoic.terms import Placeholder, Term, TermList, Value

__all__ = ["DEFAULT_DOMAIN", "Domain"]

DEFAULT_DOMAIN: Final[Mapping[str, tuple[Value, ...]]] = {
    "bool": (True, False),
    "int": (0, 1),
    "real": (0.0,),
    "str": ("a", "b"),
    "bstr": ("a",),
    "blob": (b"",),
    "list": (TermList(),),
    "term": (Term("any"),),
}


class Domain:
    """The values of types; of a pattern with more than `values_max` only so many are used, and `cut` is true then."""

    def __init__(self, given: Mapping[str, tuple[Value, ...]], values_max: int) -> None:
        self._given = {**DEFAULT_DOMAIN, **given}
        self._values_max = values_max
        self.cut = False

    def of_type(self, type_: Value) -> tuple[Value, ...]:
        """Return the values of a type."""
        match type_:
            case Placeholder():
                return self.of_type(type_.type)
            case Term(name="list", args=(element,)):
                return (TermList(), *map(TermList, self.of_type(element)))
            case Term(args=()):
                return self._given.get(type_.name, (type_,))
            case Term():
                return self._limited(Term(type_.name, *each) for each in product(*map(self.of_type, type_.args)))
            case TermList():
                return self._limited(TermList(*each) for each in product(*map(self.of_type, type_.elements)))
            case _:
                return (type_,)

    def of_pattern(self, pattern: Value) -> tuple[Value, ...]:
        """Return what a closed pattern can stand for, a value of its type in the place of each placeholder."""
        match pattern:
            case Placeholder():
                return self.of_type(pattern.type)
            case Term():
                return self._limited(Term(pattern.name, *each) for each in product(*map(self.of_pattern, pattern.args)))
            case TermList():
                return self._limited(TermList(*each) for each in product(*map(self.of_pattern, pattern.elements)))
            case _:
                return (pattern,)

    def of_template(self, template: Pattern, slots: Slots) -> tuple[Value, ...]:
        """Return what a pattern of a process can stand for; the values of its variables are not looked into."""
        match template:
            case Bind():
                return self.of_type(template.type)
            case Slot():
                return (read(template, slots),)
            case Template():
                parts = product(*(self.of_template(part, slots) for part in template.arguments))
                name = template.name
                return self._limited(TermList(*each) if name is None else Term(name, *each) for each in parts)
            case _:
                return self.of_pattern(template)

    def _limited(self, values: Iterator[Value]) -> tuple[Value, ...]:
        found = tuple(dict.fromkeys(islice(values, self._values_max + 1)))
        if len(found) > self._values_max:
            self.cut = True
        return found[: self._values_max]
