"""One program through both back ends, and whether they differ.

Native code runs on records, bounds, parameters and statics that lie flush against guard pages (`guarded_memory`);
generated Python runs on plain bytes. Everything that a kernel gives or leaves behind must be the same after each of two
batches: which events passed and where to, the faults with their places, the bytes of the output and their bounds, the
bytes of the statics. What a transform made must also be a batch that `wire` takes. Programs without output are then
bound, and look at the same events one by one. Some programs are compiled with all of the optimiser, some also for input
that lies in columns.

NaN is the one value that has many spellings, and which of them an operation makes is the processor's business; so two
NaNs in the same place of a floating field are the same.
"""

import itertools
import math
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from echoic.ecode.analysis import Analysis, analyse
from echoic.ecode.compiling import check
from echoic.ecode.generated_python import PythonKernel, compile_python
from echoic.ecode.kernel import Kernel, Outcome
from echoic.ecode.native import Column, NativeKernel, compile_native
from echoic.ecode.program import Program
from echoic.errors import CodegenError, EchoicError, ECodeError, MalformedBatchError
from echoic.formats import Field, Format, Kind
from echoic.testing.ecode_fuzz_programs import Case
from echoic.testing.ecode_fuzz_types import Events
from echoic.testing.guarded_memory import GuardedMemory
from echoic.wire import Batch

if TYPE_CHECKING:
    import numpy

__all__ = ["Rig", "Tally", "Verdict"]

NAN: Final = {4: struct.pack("=f", math.nan), 8: struct.pack("=d", math.nan)}
COLUMNS_EVERY: Final = 3  # of those whose records can be looked at as columns, one of so many is
FULL_EVERY: Final = 7  # one program of so many is compiled with all of the optimiser
LETTERS: Final = {4: "f", 8: "d"}
ARGUMENT: Final = Field("argument", Kind.FLOAT, 8)


@dataclass(slots=True)
class Tally:
    """What happened in programs that ran."""

    programs: int = 0
    refused: int = 0
    events: int = 0
    passed: int = 0
    faults: dict[str, int] = field(default_factory=dict)

    def add(self, other: "Tally") -> None:
        """Count what another has counted."""
        self.programs += other.programs
        self.refused += other.refused
        self.events += other.events
        self.passed += other.passed
        for kind, count in other.faults.items():
            self.faults[kind] = self.faults.get(kind, 0) + count


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one program; `difference` is "" if the back ends agree, `refusal` if it compiled."""

    tally: Tally
    difference: str = ""
    refusal: str = ""


class Rig:
    """Runs programs through both back ends."""

    def __init__(self) -> None:
        self._records = GuardedMemory()
        self._bounds = GuardedMemory(1 << 16)
        self._params = GuardedMemory(1 << 16)
        self._statics = GuardedMemory(1 << 16)

    def judge(self, case: Case) -> Verdict:
        """Run one program and compare."""
        tally = Tally(1)
        try:
            program = check(case.source, case.signature)
        except ECodeError as error:
            tally.refused = 1
            return Verdict(tally, refusal=str(error))
        analysis = analyse(program)
        native = compile_native(program, analysis, tier="full" if case.seed % FULL_EVERY == 0 else "light")
        twin = compile_python(program, analysis)
        fast_statics, plain_statics = self._statics.place(_statics(program, case)), _statics(program, case)
        for number in range(len(case.batches)):
            fast = self._run_guarded(native, case, number, fast_statics)
            plain = _run_plainly(twin, case, number, plain_statics)
            difference = _difference(case, fast, plain)
            difference = difference or _statics_difference(program, fast_statics, plain_statics)
            if difference:
                return Verdict(tally, f"batch {number}: {difference}")
            if isinstance(plain, Outcome):
                _count(plain, tally)
        difference = self._bound_difference(native, twin, case) if case.signature.output is None else ""
        if not difference and case.seed % COLUMNS_EVERY == 0 and _can_be_columns(case):
            difference = self._columns_difference(program, analysis, twin, case)
        return Verdict(tally, difference)

    def _run_guarded(self, kernel: NativeKernel, case: Case, number: int, statics: memoryview) -> "Outcome | str":
        """Run native code; the first batch lies flush against what follows, the second against what is before."""
        events, at_start = case.batches[number], number % 2 == 1
        records = self._records.place(events.records, at_start=at_start)
        bounds = None if events.bounds is None else self._bounds.place(events.bounds, at_start=at_start)
        params = self._params.place(case.params[number])
        return _run(kernel, case, events.count, records, bounds, params, statics)

    def _columns_difference(self, program: Program, analysis: Analysis, twin: PythonKernel, case: Case) -> str:
        """Return in what a kernel differs that finds the fields of the first batch in columns: views of its records."""
        try:
            native = compile_native(program, analysis, layout="columns")
        except CodegenError:
            return ""  # not every type can lie in columns
        events, size = case.batches[0], case.signature.input.size
        records = self._records.place(events.records)
        columns = {path: Column(records[_offset(case.signature.input, path) :], size) for path in native.columns}
        statics = _statics(program, case)
        fast = native.run_columns(columns, events.count, case.params[0], statics, case.fuel, case.faults_max)
        plain_statics = _statics(program, case)
        plain = _run_plainly(twin, case, 0, plain_statics)
        difference = _difference(case, fast, plain) or _statics_difference(program, memoryview(statics), plain_statics)
        return f"in columns: {difference}" if difference else ""

    def _bound_difference(self, native: NativeKernel, twin: PythonKernel, case: Case) -> str:
        """Return in what bound kernels differ that look at the events of the first batch one by one."""
        program, events = native.program, case.batches[0]
        fast_statics, plain_statics = self._statics.place(_statics(program, case)), _statics(program, case)
        fast = _bound(native, case, fast_statics)
        plain = _bound(twin, case, plain_statics)
        if isinstance(fast, str) or isinstance(plain, str):
            return "" if fast == plain else f"native binds with {fast}, Python with {plain}"
        for number, record in enumerate(_records_of(events, case.signature.input.size)):
            left = _one(fast, native.faults, self._records.place(record))
            right = _one(plain, twin.faults, record)
            if left != right:
                return f"event {number} alone: native {left}, Python {right}"
        return _statics_difference(program, fast_statics, plain_statics)


def _statics(program: Program, case: Case) -> bytearray:
    """Return the block of statics before the first event, with the context's values if the code names it."""
    block = program.initial_statics()
    if program.context is not None:
        block[program.context.offset : program.context.offset + program.context.size] = case.context
    return block


def _can_be_columns(case: Case) -> bool:
    """Tell whether the first batch can be looked at as columns: fixed records of this machine, all of them there."""
    given, events = case.signature.input, case.batches[0]
    whole = len(events.records) == events.count * given.size and len(case.params[0]) == _size(case.signature.params)
    return whole and not given.variable and given.byte_order == sys.byteorder


def _size(format: Format | None) -> int:
    return 0 if format is None else format.size


def _offset(format: Format, path: tuple[str, ...]) -> int:
    """Return where a field lies in the fixed part."""
    first = format.by_name[path[0]]
    return first.offset + (_offset(first.record, path[1:]) if first.record is not None and len(path) > 1 else 0)


def _run_plainly(kernel: Kernel, case: Case, number: int, statics: bytearray) -> "Outcome | str":
    events = case.batches[number]
    return _run(kernel, case, events.count, events.records, events.bounds, case.params[number], statics)


def _run(
    kernel: Kernel,
    case: Case,
    count: int,
    records: bytes | memoryview,
    bounds: bytes | memoryview | None,
    params: bytes | memoryview,
    statics: bytearray | memoryview,
) -> Outcome | str:
    """Return what a kernel gives, or the name of the error with which it refuses."""
    try:
        return kernel.run(records, bounds, count, params, statics, case.fuel, case.faults_max)  # type: ignore[arg-type] # any buffers
    except EchoicError as error:
        return type(error).__name__


def _bound(
    kernel: NativeKernel | PythonKernel, case: Case, statics: bytearray | memoryview
) -> Callable[[bytes | memoryview], int] | str:
    """Return a bound kernel, or the name of the error with which it refuses."""
    try:
        return kernel.bind(case.params[0], statics, case.fuel)  # type: ignore[arg-type] # any buffer
    except EchoicError as error:
        return type(error).__name__


def _one(
    function: Callable[[bytes | memoryview], int], faults: Sequence[tuple[object, ...]], record: bytes | memoryview
) -> object:
    """Return what a bound kernel returns for one record, or the fault it raises."""
    try:
        return function(record)
    except ValueError as error:
        return faults[error.args[0]]


def _records_of(events: Events, size: int) -> list[bytes]:
    """Return the records of events one by one, as far as their bounds make sense."""
    if events.bounds is None:
        return [events.records[at : at + size] for at in range(0, len(events.records), size)]
    bounds = struct.unpack(f"={len(events.bounds) // 4}I", events.bounds)
    return [events.records[start:end] for start, end in itertools.pairwise(bounds)]


def _count(outcome: Outcome, tally: Tally) -> None:
    tally.events += outcome.handled
    tally.passed += len(outcome.selected)
    for fault in outcome.faults:
        tally.faults[fault.kind.name] = tally.faults.get(fault.kind.name, 0) + 1


def _difference(case: Case, fast: Outcome | str, plain: Outcome | str) -> str:
    """Return in what two outcomes differ, "" if in nothing."""
    if isinstance(fast, str) or isinstance(plain, str):
        return "" if fast == plain else f"native gives {fast}, Python {plain}"
    pairs = (
        ("handled", fast.handled, plain.handled),
        ("faults", fast.faults, plain.faults),
        ("selected", fast.selected.tolist(), plain.selected.tolist()),
        ("ports", _listed(fast.ports), _listed(plain.ports)),
        ("bounds", _listed(fast.bounds), _listed(plain.bounds)),
    )
    for what, left, right in pairs:
        if left != right:
            return f"{what}: native {left}, Python {right}"
    output = case.signature.output
    if output is None:
        return "" if fast.records is plain.records is None else "a filter gives records"
    if fast.records is None or plain.records is None:
        return "a transform gives no records"
    bounds = _listed(fast.bounds) or list(range(0, len(fast.records) + 1, output.size))
    return _records_difference(output, bounds, fast, plain) or _malformed(output, len(fast.selected), fast)


def _records_difference(output: Format, bounds: list[int], fast: Outcome, plain: Outcome) -> str:
    left, right = bytearray(fast.records or b""), bytearray(plain.records or b"")
    if left == right:
        return ""
    if len(left) != len(right):
        return f"native gives {len(left)} bytes of records, Python {len(right)}"
    for records in (left, right):
        for start in bounds[:-1]:
            _forget_nans(output, records, start, start)
    if left == right:
        return ""
    first = next(place for place in range(len(left)) if left[place] != right[place])
    return f"byte {first} of the records: native {left.hex()}, Python {right.hex()}, bounds {bounds}"


def _statics_difference(program: Program, fast: memoryview, plain: bytearray) -> str:
    if fast == plain:
        return ""
    format, left, right = program.static_format(), bytearray(fast), bytearray(plain)
    if format is not None and len(left) == len(right):
        for block in (left, right):
            _forget_nans(format, block, 0, 0)
    context, values = program.context, program.signature.context
    if context is not None and values is not None:
        for block in (left, right):
            _forget_nans(values, block, context.offset, context.offset)
            for place in range(context.log_offset, context.end, 8):
                _forget_nan(ARGUMENT, block, 0, place)
    return "" if left == right else f"statics: native {left.hex()}, Python {right.hex()}"


def _forget_nans(format: Format, data: bytearray, record: int, start: int) -> None:
    """Give every NaN of a well-formed record the same bytes.

    Args:
        format: The type of what begins at `start`: the record or one that stands in it.
        data: The records.
        record: Where the record begins, from which slots count.
        start: Where the fields begin.
    """
    for one in format.fields:
        at, count = start + one.offset, one.count
        if one.dynamic:
            offset, length = struct.unpack_from("=II", data, at)
            at, count = record + offset, length * one.count
        for place in range(at, at + count * one.size, one.size):
            _forget_nan(one, data, record, place)


def _forget_nan(one: Field, data: bytearray, record: int, place: int) -> None:
    if one.record is not None:
        _forget_nans(one.record, data, record, place)
    elif one.kind is Kind.FLOAT and math.isnan(struct.unpack_from(LETTERS[one.size], data, place)[0]):
        data[place : place + one.size] = NAN[one.size]


def _malformed(output: Format, count: int, outcome: Outcome) -> str:
    """Return what is wrong with the records of an outcome, "" if nothing."""
    batch = Batch(output, count, [outcome.records or b""], outcome.bounds)
    try:
        batch.events()
    except MalformedBatchError as error:
        # A program may copy any bytes into a string.
        return "" if "UTF-8" in str(error) else f"the output is malformed: {error}"
    return ""


def _listed(numbers: "numpy.ndarray[tuple[int], numpy.dtype[numpy.generic]] | None") -> list[int]:
    return [] if numbers is None else numbers.tolist()
