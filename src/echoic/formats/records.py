"""Python objects for records: the base of event classes, and classes generated for types nobody declared here.

`Record` gives every event the same face for code that does not know its type (the papers' *reflection*): its
format, and access by attribute, by name in brackets, and as a mapping. The classes are msgspec Structs because
constructing one costs 50 ns where a dataclass costs 120 and a NumPy scalar, with the access to its fields, over 400.

A `Binding` says which class stands for which format; the decoder builds instances with it and nothing else, so
that plain dataclasses and foreign Structs are event types on equal terms with `@event` classes.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, TypeAlias

import msgspec
import numpy

from echoic.errors import FormatError
from echoic.formats.format import Format

__all__ = ["Binding", "Record", "binding_of_format"]

Maker: TypeAlias = Callable[..., object]


@dataclass(frozen=True, slots=True)
class Binding:
    """A format and the Python objects that stand for its records.

    `make` takes the field values in the order of the format. `members` has, for fields whose elements are records,
    their binding, and for enumerations a function from the integer to the member.
    """

    format: Format
    make: Maker
    members: Mapping[str, "Binding | Maker"]


class Record(msgspec.Struct, eq=False, gc=False):
    """Base of all event objects: attribute access of its own, and reflection for those who do not know the type."""

    __echoic_binding__: ClassVar[Binding]

    @property
    def format(self) -> Format:
        """The type of this record; `type(record).__echoic_binding__.format` when a field has this name.

        Raises:
            FormatError: The class extends an event class and was not decorated itself.
        """
        own: Binding | None = type(self).__dict__.get("__echoic_binding__")
        if own is None:
            raise FormatError(f"`{type(self).__name__}` extends an event class; decorate it with @echoic.event too")
        return own.format

    def keys(self) -> tuple[str, ...]:
        """Return the names of the fields."""
        return self.__struct_fields__

    def items(self) -> Iterator[tuple[str, object]]:
        """Yield names and values of the fields."""
        return ((name, getattr(self, name)) for name in self.__struct_fields__)

    def __getitem__(self, name: str) -> object:
        if name not in self.__struct_fields__:
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.__struct_fields__)

    def __len__(self) -> int:
        return len(self.__struct_fields__)

    def __contains__(self, name: object) -> bool:
        return name in self.__struct_fields__

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(_same(getattr(self, name), getattr(other, name)) for name in self.__struct_fields__)

    def __ne__(self, other: object) -> bool:  # msgspec's own would compare identity
        same = self.__eq__(other)
        return NotImplemented if same is NotImplemented else not same

    __hash__ = None  # type: ignore[assignment] # events are mutable and may hold arrays


def _same(left: object, right: object) -> bool:
    if isinstance(left, numpy.ndarray) or isinstance(right, numpy.ndarray):
        return bool(numpy.array_equal(_array(left), _array(right)))
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)


def _array(value: object) -> Any:  # noqa: ANN401 - NumPy takes anything here
    return numpy.asarray(value)


@lru_cache(maxsize=1024)
def binding_of_format(format: Format) -> Binding:
    """Return generated classes for a format that no class here declares."""
    members: dict[str, Binding | Maker] = {}
    for field in format.fields:
        if field.record is not None:
            members[field.name] = binding_of_format(field.record)
    fields: list[tuple[str, type]] = [(field.name, object) for field in format.fields]
    made = msgspec.defstruct(format.name, fields, bases=(Record,), gc=False, eq=False)
    binding = Binding(format, made, members)
    made.__echoic_binding__ = binding  # type: ignore[attr-defined] # declared by Record, unknown to defstruct's type
    return binding
