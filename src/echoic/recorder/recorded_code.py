"""E-Code that looks at recorded events, compiled for every layout in which they lie in a journal.

The code is checked against the type that a reader expects and run over each batch as it lies in the file. Events of the
same type from another kind of machine get a kernel for their own layout. Events of another type, from before or after a
change, are converted first, only the fields that the code names, and only for the code to look at. Each source has its
own static variables, as it has in a derived channel.

A kernel takes some milliseconds to compile and has no state, so a process keeps some of them: whoever reads a journal
in many small steps, as Spark does, compiles once.

A derivation leaves out an event at which the code faults, and tells of it. Here nobody may be told, and code that
leaves out what it cannot judge is not to be trusted with a journal, so reading ends with an error that names the event,
unless somebody wants to be told of each.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec
import numpy

from echoic.ecode import (
    FUEL,
    Fault,
    FaultKind,
    Kernel,
    Outcome,
    Program,
    Signature,
    Spelling,
    analyse,
    check,
    compile_kernel,
    parameter_format,
    spelled,
)
from echoic.errors import EchoicError, IncompatibleTypesError, JournalError, LocalError
from echoic.formats import NATIVE, Format, Slots
from echoic.wire import Batch

if TYPE_CHECKING:
    from echoic.recorder.reader import Recorded

__all__ = ["Code", "RecordedCode", "retype"]

Code = str | Callable[..., object]
"""An expression, a body in braces, or Python in E-Code's subset, as text or as a function."""

LAYOUTS_MAX: Final = 64
KERNELS_MAX: Final = 64
SOURCES_MAX: Final = 16_384  # whose static variables are kept; the longest known is forgotten first


class RecordedCode:
    """Code over recorded events of whatever layout."""

    def __init__(
        self,
        code: Code,
        params: object,
        format: Format,
        *,
        output: Format | None = None,
        name: str = "where",
        on_fault: Callable[[int, str], None] | None = None,
    ) -> None:
        """Check it.

        Args:
            code: What to run.
            params: What the code knows as `param`, None for nothing.
            format: The type that the code is written for.
            output: The type that it makes, None if it only decides which events pass.
            name: What the code is called in messages.
            on_fault: Is told the sequence number of an event at which the code faults, and why; without it that is an
                error.

        Raises:
            ECodeError: The code is wrong.
            FormatError: The parameters have no type.
            EncodeError: They do not fit it.
        """
        self._code, self._spelling = spelled(code)
        self._name, self._on_fault = name, on_fault
        block = parameter_format(params) if params is not None else None
        self._params = bytes(Batch.of([params], block).records) if block is not None else b""
        self._signature = Signature(format.on(NATIVE), output.on(NATIVE) if output is not None else None, block)
        self._program = _checked(self._code, self._spelling, self._signature, name)
        self._kernels: dict[int, tuple[Kernel, Format | None]] = {}
        self._statics: dict[int, bytearray] = {}
        self._initial: Final = bytes(self._program.initial_statics())

    @property
    def stateful(self) -> bool:
        """Whether what becomes of an event depends on those before it."""
        return bool(self._initial)

    def run(self, recorded: "Recorded") -> Outcome:
        """Return what becomes of events; those at which the code faults do not pass.

        Raises:
            IncompatibleTypesError: The code names a field that these events do not have.
            LocalError: The code faults, and nobody wants to be told.
            JournalError: A record contradicts its type.
        """
        kernel, target = self._kernel_for(recorded)
        looked_at = recorded if target is None else retype(recorded, target)
        batch, statics = looked_at.batch, self._statics_of(recorded.source)
        bounds = numpy.asarray(batch.known_offsets, "=u4").tobytes() if batch.format.variable else None
        faults_max = 1 if self._on_fault is None else batch.count + 1
        outcome = kernel.run(batch.records, bounds, batch.count, self._params, statics, FUEL, faults_max, release=True)
        for fault in outcome.faults:
            self._tell(fault, recorded)
        return outcome

    def _tell(self, fault: Fault, recorded: "Recorded") -> None:
        number = int(recorded.sequences[fault.event])
        if fault.kind is FaultKind.RECORD:
            raise JournalError(f"event {number} contradicts its type - at {recorded.place}")
        where = f"line {fault.line}, column {fault.column}: {fault.kind.text} - at {recorded.place}"
        if self._on_fault is None:
            raise LocalError(f"`{self._name}` faults at event {number}, {where}")
        self._on_fault(number, where)

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
        return _kernel_of(self._code, self._spelling, replace(self._signature, input=format), self._name)

    def _named(self) -> Format:
        """Return the expected type with only the fields that the code names."""
        expected = self._signature.input
        names = {path[0] for root, path in self._program.used if root == "input" and path}
        names |= {expected.by_name[name].sizing for name in names}
        fields = [field for field in expected.fields if field.name in names]
        return Format.place(expected.name, fields, NATIVE) if fields else expected


@lru_cache(maxsize=KERNELS_MAX)
def _checked(code: str, spelling: Spelling, signature: Signature, name: str) -> Program:
    return check(code, signature, file=f"<{name}>", spelling=spelling)


@lru_cache(maxsize=KERNELS_MAX)
def _kernel_of(code: str, spelling: Spelling, signature: Signature, name: str) -> Kernel:
    program = _checked(code, spelling, signature, name)
    return compile_kernel(program, analyse(program))


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
