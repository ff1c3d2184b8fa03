"""Recorded events that become others while they are read: the code of a derived channel, run over a journal.

    {                                                        events of type Mean, one for each wind field
        output.at = input.at;                                that the code does not reject
        output.mean = sum(input.wind) / 9361;
        return true;
    }

The kernel reads the records where they lie in the mapped file and writes records of its output type, one behind the
other, so nothing is decoded, and of a large event only the fields that the code names are looked at. What comes out is
recorded events like any others: with the sequence number, source and time of those they were made of.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from echoic.formats import NATIVE, Format
from echoic.recorder.recorded_code import Code, RecordedCode
from echoic.wire import Batch

if TYPE_CHECKING:
    from echoic.recorder.reader import Recorded

__all__ = ["Transform"]


class Transform:
    """E-Code that makes events of recorded ones."""

    def __init__(
        self,
        code: Code,
        params: object,
        format: Format,
        output: Format,
        on_fault: Callable[[int, str], None] | None = None,
    ) -> None:
        """Compile it.

        Args:
            code: A body in braces, or Python in E-Code's subset.
            params: What the code knows as `param`, None for nothing.
            format: The type that the code is written for.
            output: The type that it makes.
            on_fault: Is told of events at which the code faults, which are left out; without it that is an error.

        Raises:
            ECodeError: The code is wrong.
            FormatError: The parameters have no type.
            EncodeError: They do not fit it.
        """
        self.output: Final = output.on(NATIVE)
        self._code = RecordedCode(code, params, format, output=output, name="derive", on_fault=on_fault)

    @property
    def stateful(self) -> bool:
        """Whether what becomes of an event depends on those before it."""
        return self._code.stateful

    def apply(self, recorded: "Recorded") -> "Recorded | None":
        """Return what the code makes of events, None if it makes nothing.

        Raises:
            IncompatibleTypesError: The code names a field that these events do not have.
            LocalError: The code faults, and nobody wants to be told.
            JournalError: A record contradicts its type.
            CodegenError: It makes more of a batch than there may be.
        """
        outcome = self._code.run(recorded)
        count = len(outcome.selected)
        if not count or outcome.records is None:
            return None
        bounds = outcome.bounds.tolist() if outcome.bounds is not None else None
        batch = Batch(self.output, count, [outcome.records], bounds)
        if count == recorded.count:
            return msgspec.structs.replace(recorded, batch=batch)
        return msgspec.structs.replace(recorded, batch=batch, chosen=recorded.steps[outcome.selected])
