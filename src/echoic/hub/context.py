"""What a source lets others see of its program: named values, and functions to call (ECho, section 4).

    context = Context(Controls(temperature=20.0, step=0.1), writable=("step",), functions={"vent": vent})
    source = reactor.source(context=context)
    ...
    temperature += heat * context.step             the program reads what others may have changed meanwhile
    context.temperature = temperature              and tells what they may read

The values are one record in memory. Code of others, E-Code as well as modulators, works on a copy of it, and what it
has assigned is put back field by field, each at once: who reads a field sees it as it was or as it is. A field that the
program and the code of others both assign at the same time has the value of whoever was last.

A function runs in the thread that submits the event, inside `submit`, and must be short. What it submits is sent when
the event is done with (`hub.errands`). It must not take a lock that other threads hold while they submit to this
source. One that raises is logged here; others are told that it failed, but not how.
"""

import inspect
import logging
import struct
from collections.abc import Callable, Collection, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from echoic.ecode import Buffer, check_context, updated
from echoic.errors import FormatError, LocalError, RefusedError
from echoic.formats import NATIVE, Field, Format, Kind
from echoic.hub.errands import handling
from echoic.wire import Batch

__all__ = ["Context", "ContextCapability", "context_descriptor"]

log: Final = logging.getLogger("echoic.hub")
FAILED: Final = Exception  # of a program's own function: whatever it is, the event that led to it is not to blame
LETTERS: Final = {Kind.FLOAT: {4: "f", 8: "d"}, Kind.INT: dict(zip((1, 2, 4, 8), "bhiq", strict=True))}
ARGUMENTS_MANY: Final = 1 << 16


class Context:
    """The values and functions that a source offers. Each value is an attribute."""

    def __init__(
        self,
        values: object,
        *,
        writable: Collection[str] = (),
        functions: Mapping[str, Callable[..., object]] | None = None,
    ) -> None:
        """Offer values and functions.

        Args:
            values: An object of an event class: numbers, and fixed arrays and records of them.
            writable: The values that others may assign to; they may read all of them.
            functions: What others may call, with numbers; what is returned is not used.

        Raises:
            FormatError: The values cannot be a context, or a name is taken.
            LocalError: There is no value of a name in `writable`.
        """
        format = Format.of(type(values)).on(NATIVE)
        check_context(format)
        given = dict(functions or {})
        for name in (*format.by_name, *given):
            if hasattr(Context, name) or name in RESERVED or name.startswith("_"):
                raise FormatError(f"a context cannot have a value or function named `{name}`")
        for name in given:
            if name in format.by_name:
                raise FormatError(f"`{name}` is both a value and a function of the context")
        for name in writable:
            if name not in format.by_name:
                raise LocalError(f"there is no value `{name}` that could be writable, only {_names(format.by_name)}")
        keep = super().__setattr__
        keep("_format", format)
        keep("_writable", frozenset(writable))
        keep("_functions", MappingProxyType(given))
        keep("_counts", {name: _counts(function) for name, function in given.items()})
        keep("_block", bytearray(Batch.of([values], format).records))
        keep("_singles", {field.name: _single(field) for field in format.fields if _is_single(field)})

    _format: Format
    _writable: frozenset[str]
    _functions: Mapping[str, Callable[..., object]]
    _counts: dict[str, tuple[int, int]]
    _block: bytearray
    _singles: dict[str, struct.Struct]

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the type of the values says
        """Return a value as it is at this moment.

        Raises:
            AttributeError: There is no such value.
        """
        field = self._format.by_name.get(name) if not name.startswith("_") else None
        if field is None:
            raise AttributeError(f"the context has no value {name!r}")
        single = self._singles.get(name)
        if single is not None:
            return single.unpack_from(self._block, field.offset)[0]
        return getattr(self._record(), name)

    def __setattr__(self, name: str, value: object) -> None:
        """Assign a value, which the program itself may do with all of them.

        Raises:
            AttributeError: There is no such value.
            EncodeError: It does not fit its type.
        """
        field = self._format.by_name.get(name)
        if field is None:
            raise AttributeError(f"the context has no value {name!r}")
        if type(value) is float and name in self._singles and field.kind is Kind.FLOAT and field.size == 8:
            self._singles[name].pack_into(self._block, field.offset, value)
            return
        record = Batch.of([updated(self._record(), {name: value})], self._format).records
        self.write(field.offset, record[field.offset : field.offset + field.size * field.count])

    def __dir__(self) -> list[str]:
        return sorted((*super().__dir__(), *self._format.by_name))

    @property
    def format(self) -> Format:
        """The type of the values, as this machine lays it out."""
        return self._format

    @property
    def writable(self) -> frozenset[str]:
        """The values that others may assign to."""
        return self._writable

    @property
    def functions(self) -> Mapping[str, Callable[..., object]]:
        """What others may call."""
        return self._functions

    def refusal(self, function: str, arguments: int) -> str:
        """Return why a function cannot be called with so many arguments, "" if it can."""
        if function not in self._functions:
            return f"the source's context has no function `{function}`, only {_names(self._functions)}"
        fewest, most = self._counts[function]
        if fewest <= arguments <= most:
            return ""
        expected = f"at least {fewest}" if arguments < fewest else f"at most {most}"
        return f"`context.{function}` takes {expected} numbers, got {arguments}"

    def read(self) -> bytes:
        """Return all values, as one record."""
        return bytes(self._block)

    def write(self, offset: int, data: Buffer) -> None:
        """Replace some bytes of the record, all at once."""
        self._block[offset : offset + len(data)] = data

    def call(self, function: str, arguments: tuple[float, ...]) -> bool:
        """Call a function; tell whether it has done without raising."""
        try:
            self.invoke(function, *arguments)
        except FAILED:
            log.exception("the context's function %r has failed, called with %r", function, arguments)
            return False
        return True

    def invoke(self, function: str, *arguments: object) -> object:
        """Call a function, and return what it returns; what it submits waits until the event at hand is done with."""
        handling.depth += 1
        try:
            return self._functions[function](*arguments)
        finally:
            handling.depth -= 1

    def capability(self) -> "ContextCapability":
        """Return what modulators have as the service `context`."""
        return ContextCapability(self)

    def _record(self) -> object:
        return Batch.of_record(bytes(self._block), self._format).events()[0]

    def __repr__(self) -> str:
        return f"<Context {self._record()!r}>"


class ContextCapability:
    """A context as a modulator has it: attributes to read, `set` for those that are writable, functions to call."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def __getattr__(self, name: str) -> object:
        """Return a plain value, or a function.

        Raises:
            AttributeError: There is no such thing.
        """
        if name in self._context.functions:
            return partial(self._context.invoke, name)
        return _plain(getattr(self._context, name)) if name in self._context.format.by_name else _missing(name)

    def set(self, name: str, value: object) -> None:
        """Assign a value that is writable.

        Raises:
            RefusedError: It is not.
            EncodeError: It does not fit its type.
        """
        if name not in self._context.writable:
            raise RefusedError(f"`context.{name}` cannot be assigned to: the source does not list it as writable")
        setattr(self._context, name, value)


RESERVED: Final = frozenset({"set"})


def context_descriptor(declared: object | None) -> bytes:
    """Return the descriptor of the type of a context, b"" for none.

    Raises:
        FormatError: It cannot be one.
    """
    if declared is None:
        return b""
    format = Format.of(declared).on(NATIVE)
    check_context(format)
    return format.descriptor


def _missing(name: str) -> object:
    raise AttributeError(f"the context has no {name!r}")


def _plain(value: Any) -> object:  # noqa: ANN401 - of any type that a field may have
    """Return a value as one that can leave the process: arrays as lists, records as dictionaries."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return {field.name: _plain(getattr(value, field.name)) for field in Format.of(type(value)).fields}


def _names(names: Collection[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _is_single(field: Field) -> bool:
    return not field.dimensions and field.kind in (Kind.FLOAT, Kind.INT, Kind.UINT, Kind.BOOL)


def _single(field: Field) -> struct.Struct:
    if field.kind is Kind.BOOL:
        return struct.Struct("?")
    letter = LETTERS[Kind.INT if field.kind is Kind.UINT else field.kind][field.size]
    return struct.Struct("=" + (letter.upper() if field.kind is Kind.UINT else letter))


def _counts(function: Callable[..., object]) -> tuple[int, int]:
    """Return how many arguments a function takes at least and at most; any number if it does not say."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 0, ARGUMENTS_MANY
    single = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    fewest = sum(one.default is one.empty for one in single)
    many = any(one.kind is one.VAR_POSITIONAL for one in parameters)
    return fewest, ARGUMENTS_MANY if many else len(single)
