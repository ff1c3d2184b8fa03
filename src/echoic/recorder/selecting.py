"""What a reader wants of recorded events: an E-Code filter, and which type they are to have.

*Filter.* The same code that a sink would derive a channel with, `input.price < 75` or a body in braces, run over each
batch as it lies in the file (`recorded_code`). What passes is the batch as recorded.

*Type.* A journal holds what was sent, so a batch may have any type that ever was. `declared` gives all of them one,
`columns` only some of its fields, by the rules of type extension.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from echoic.errors import LocalError
from echoic.formats import NATIVE, Field, Format
from echoic.recorder.recorded_code import Code, RecordedCode, retype

if TYPE_CHECKING:
    from echoic.recorder.reader import Recorded

__all__ = ["Filter", "free_lengths", "project", "retype"]


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


class Filter:
    """E-Code that decides which recorded events are wanted."""

    def __init__(
        self, where: Code, params: object, format: Format, on_fault: Callable[[int, str], None] | None = None
    ) -> None:
        """Compile it.

        Args:
            where: An expression, a body in braces, or a Python function in E-Code's subset.
            params: What the code knows as `param`, None for nothing.
            format: The type that the code is written for.
            on_fault: Is told of events at which the code faults, which are left out; without it that is an error.

        Raises:
            ECodeError: The code is wrong.
            FormatError: The parameters have no type.
            EncodeError: They do not fit it.
        """
        self._code = RecordedCode(where, params, format, on_fault=on_fault)

    @property
    def stateful(self) -> bool:
        """Whether what becomes of an event depends on those before it."""
        return self._code.stateful

    def apply(self, recorded: "Recorded") -> "Recorded | None":
        """Return the events that pass, None if none does.

        Raises:
            IncompatibleTypesError: The code names a field that these events do not have.
            LocalError: The code faults, and nobody wants to be told.
            JournalError: A record contradicts its type.
        """
        selected = self._code.run(recorded).selected
        return recorded.select(selected) if len(selected) else None
