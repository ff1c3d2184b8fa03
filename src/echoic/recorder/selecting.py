"""What a reader wants of recorded events: an E-Code filter, and which type they are to have.

*Filter.* The same code that a sink would derive a channel with, `input.price < 75` or a body in braces, compiled for
the type that the reader expects and run over each batch as it lies in the file. Events of the same type from another
kind of machine get a kernel for their own layout. Events of another type, from before or after a change, are converted
first, only the fields that the code names, and only for the code to look at: what passes is the batch as recorded.
Each source has its own static variables, as it has in a derived channel.

A derivation leaves out an event at which the code faults, and tells of it. Nobody may be told here, and a filter that
leaves out what it cannot judge is not to be trusted with a journal, so reading ends with an error that names the event.

*Type.* A journal holds what was sent, so a batch may have any type that ever was. `declared` gives all of them one,
`columns` only some of its fields, by the rules of type extension.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec
import numpy

from echoic.ecode import (
    FUEL,
    FaultKind,
    Kernel,
    Signature,
    Spelling,
    analyse,
    check,
    compile_kernel,
    parameter_format,
    source_of,
)
from echoic.errors import EchoicError, IncompatibleTypesError, JournalError, LocalError
from echoic.formats import NATIVE, Field, Format, Slots
from echoic.wire import Batch

if TYPE_CHECKING:
    from echoic.recorder.reader import Numbers, Recorded

__all__ = ["Filter", "free_lengths", "project", "retype"]

LAYOUTS_MAX: Final = 64
SOURCES_MAX: Final = 16_384  # whose static variables are kept; the longest known is forgotten first


def project(format: Format, columns: Sequence[str]) -> Format:
    """Return a type with only some of another's fields, in the order given, as this machine lays it out.

    Raises:
        LocalError: No columns are named, or the type has no such field.
    """
    if isinstance(columns, str) or not columns:
        raise LocalError(f"expected the names of columns, got {columns!r} - at `{format.name}`")
    return Format.place(format.name, free_lengths([format.member(name) for name in columns]), NATIVE)


def free_lengths(fields: Sequence[Field]) -> list[Field]:
    """Return fields among which arrays tell their lengths themselves where the field that would is not there."""
    names = {field.name for field in fields}
    return [
        replace(field, dimensions=("", *field.dimensions[1:])) if field.sizing and field.sizing not in names else field
        for field in fields
    ]


def retype(recorded: "Recorded", declared: object) -> "Recorded":
    """Return recorded events as another type has them.

    Raises:
        IncompatibleTypesError: They have no value for one of its fields, or one that does not fit.
        JournalError: A record contradicts its type.
    """
    try:
        batch = recorded.batch.to(declared)
    except IncompatibleTypesError as error:
        raise IncompatibleTypesError(f"{error} - at {recorded.place}") from error
    except EchoicError as error:
        raise JournalError(f"{error} - at {recorded.place}") from error
    return msgspec.structs.replace(recorded, batch=batch)


class Filter:
    """E-Code that decides which recorded events are wanted."""

    def __init__(self, where: str | Callable[..., object], params: object, format: Format) -> None:
        """Compile it.

        Args:
            where: An expression, a body in braces, or a Python function in E-Code's subset.
            params: What the code knows as `param`, None for nothing.
            format: The type that the code is written for.

        Raises:
            ECodeError: The code is wrong.
            FormatError: The parameters have no type.
            EncodeError: They do not fit it.
        """
        self._code, self._spelling = _spelled(where)
        block = parameter_format(params) if params is not None else None
        self._params = bytes(Batch.of([params], block).records) if block is not None else b""
        self._signature = Signature(format.on(NATIVE), params=block)
        self._program = check(self._code, self._signature, file="<where>", spelling=self._spelling)
        self._kernels: dict[int, tuple[Kernel, Format | None]] = {}
        self._statics: dict[int, bytearray] = {}
        self._initial: Final = bytes(self._program.initial_statics())

    def apply(self, recorded: "Recorded") -> "Recorded | None":
        """Return the events that pass, None if none does.

        Raises:
            IncompatibleTypesError: The code names a field that these events do not have.
            LocalError: The code faults.
            JournalError: A record contradicts its type.
        """
        kernel, target = self._kernel_for(recorded)
        looked_at = recorded if target is None else retype(recorded, target)
        selected = self._run(kernel, looked_at)
        return recorded.select(selected) if len(selected) else None

    def _run(self, kernel: Kernel, recorded: "Recorded") -> "Numbers":
        batch = recorded.batch
        bounds = numpy.asarray(batch.known_offsets, "=u4").tobytes() if batch.format.variable else None
        statics = self._statics_of(recorded.source)
        outcome = kernel.run(batch.records, bounds, batch.count, self._params, statics, FUEL, 1, release=True)
        if outcome.faults:
            fault = outcome.faults[0]
            number = int(recorded.sequences[fault.event])
            if fault.kind is FaultKind.RECORD:
                raise JournalError(f"event {number} contradicts its type - at {recorded.place}")
            raise LocalError(
                f"`where` faults at event {number}, line {fault.line}, column {fault.column}: {fault.kind.text} "
                f"- at {recorded.place}"
            )
        return outcome.selected

    def _statics_of(self, source: int) -> bytearray:
        if not self._initial:
            return bytearray()
        known = self._statics.get(source)
        if known is None:
            if len(self._statics) >= SOURCES_MAX:
                del self._statics[next(iter(self._statics))]
            known = self._statics[source] = bytearray(self._initial)
        return known

    def _kernel_for(self, recorded: "Recorded") -> tuple[Kernel, Format | None]:
        """Return a kernel, and the type to which events must be converted for it, if they must."""
        format = recorded.batch.format
        found = self._kernels.get(format.token)
        if found is None:
            if len(self._kernels) >= LAYOUTS_MAX:
                del self._kernels[next(iter(self._kernels))]
            found = self._kernels[format.token] = self._compiled_for(format)
        return found

    def _compiled_for(self, format: Format) -> tuple[Kernel, Format | None]:
        expected = self._signature.input
        if format.slots is Slots.SPAN and format.on(NATIVE).layout == expected.layout:
            return self._compiled(format), None
        named = self._named()
        return self._compiled(named), named

    def _compiled(self, format: Format) -> Kernel:
        program = check(self._code, replace(self._signature, input=format), file="<where>", spelling=self._spelling)
        return compile_kernel(program, analyse(program))

    def _named(self) -> Format:
        """Return the expected type with only the fields that the code names."""
        expected = self._signature.input
        names = {path[0] for root, path in self._program.used if root == "input" and path}
        names |= {expected.by_name[name].sizing for name in names}
        fields = [field for field in expected.fields if field.name in names]
        return Format.place(expected.name, fields, NATIVE) if fields else expected


def _spelled(where: str | Callable[..., object]) -> tuple[str, Spelling]:
    """Return code as the compiler takes it, and how it is spelled."""
    if not isinstance(where, str):
        return source_of(where), "python"
    text = where.strip()
    if text.startswith(("def ", "@")):
        return where, "python"
    return (where if text.startswith("{") else f"{{ return {where}; }}"), "ecode"
