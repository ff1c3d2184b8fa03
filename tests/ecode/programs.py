"""Running E-Code programs in tests: source, types and events in, everything that came of it out.

    result = run("python", "input.price < 75.5", [Trade(price=70.0), Trade(price=80.0)])
    assert result.selected == [0]

`BACK_ENDS` are the names of the back ends; most tests are parametrised over them, and `run_everywhere` runs a program
through all of them and insists that they agree to the bit (any NaN is as good as any other).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from echoic.ecode.analysis import analyse
from echoic.ecode.compiling import check
from echoic.ecode.generated_python import compile_python
from echoic.ecode.kernel import FAULTS_MAX, FUEL, Buffer, Kernel, Outcome
from echoic.ecode.native import compile_native
from echoic.ecode.program import Program, Signature
from echoic.formats import NATIVE, Format
from echoic.wire import Batch

__all__ = [
    "BACK_ENDS",
    "Ran",
    "Statics",
    "assert_alike",
    "checked",
    "compiled",
    "evaluate",
    "exactly",
    "run",
    "run_batch",
    "run_everywhere",
    "run_records",
    "signature_of",
]

COMPILERS = {"python": compile_python, "native": compile_native}
BACK_ENDS = tuple(COMPILERS)


@dataclass
class Ran:
    """What became of a batch, in plain values."""

    outcome: Outcome
    selected: list[int]
    ports: list[int] | None
    faults: list[tuple[int, str, int, int]]
    """Event, name of the kind, line and column."""
    statics: dict[str, Any]
    events: list[Any]
    """The output records as objects; nothing for a filter."""

    @property
    def fault(self) -> tuple[int, str, int, int] | None:
        """The only fault."""
        assert len(self.faults) <= 1
        return self.faults[0] if self.faults else None


class Statics:
    """The block of statics of a program, to be carried from one batch to the next."""

    def __init__(self, program: Program) -> None:
        self.block = program.initial_statics()
        self._format = program.static_format()

    def values(self) -> dict[str, Any]:
        """Return the statics by name; arrays as nested lists."""
        if self._format is None:
            return {}
        record = numpy.ndarray((), self._format.dtype, self.block)
        return {name: record[name].tolist() for name in record.dtype.names or ()}


def signature_of(
    events: object,
    output: object = None,
    params: object = None,
    ports: int = 0,
    capacities: Mapping[str, int] | None = None,
) -> Signature:
    """Return the signature for events of a type, given as class or format."""
    return Signature(
        Format.of(events),
        None if output is None else Format.of(output).on(NATIVE),
        None if params is None else Format.of(params).on(NATIVE),
        ports,
        tuple((capacities or {}).items()),
    )


def checked(source: str, events: object, output: object = None, **options: Any) -> Program:
    """Return a checked program for events of a type; `options` are those of `signature_of`, and the spelling."""
    spelling = options.pop("spelling", "ecode")
    return check(source, signature_of(events, output, **options), spelling=spelling)


def compiled(back_end: str, program: Program) -> Kernel:
    """Return the kernel that a back end makes of a program."""
    return COMPILERS[back_end](program, analyse(program))


def run(back_end: str, source: str, events: Sequence[Any], output: object = None, **options: Any) -> Ran:
    """Run a program over events.

    Args:
        back_end: One of `BACK_ENDS`.
        source: The code.
        events: Objects of one event class, or what `Batch.of` takes.
        output: The output type, for a transform.
        options: `declared` (the input type), `params` (an object), `ports`, `capacities`, `spelling`, `fuel`,
            `faults_max`, `statics`.
    """
    batch = events if isinstance(events, Batch) else Batch.of(events, options.pop("declared", None))
    params = options.pop("params", None)
    kinds = {name: options.pop(name) for name in ("ports", "capacities", "spelling") if name in options}
    program = checked(source, batch.format, output, params=None if params is None else type(params), **kinds)
    return run_batch(compiled(back_end, program), batch, params, **options)


def run_batch(
    kernel: Kernel,
    batch: Batch,
    params: object = None,
    *,
    statics: Statics | None = None,
    fuel: int = FUEL,
    faults_max: int = FAULTS_MAX,
) -> Ran:
    """Run a kernel over a batch."""
    bounds = numpy.asarray(batch.bounds, numpy.uint32).tobytes() if batch.format.variable else None
    options = {"statics": statics, "fuel": fuel, "faults_max": faults_max}
    return run_records(kernel, batch.records, bounds, len(batch), params, **options)


def run_records(
    kernel: Kernel,
    records: Buffer,
    bounds: Buffer | None,
    count: int,
    params: object = None,
    *,
    statics: Statics | None = None,
    fuel: int = FUEL,
    faults_max: int = FAULTS_MAX,
) -> Ran:
    """Run a kernel over bytes, which may be wrong."""
    statics = statics or Statics(kernel.program)
    block = b"" if params is None else bytes(Batch.of([params]).records)
    outcome = kernel.run(records, bounds, count, block, statics.block, fuel, faults_max)
    return Ran(
        outcome,
        [int(index) for index in outcome.selected],
        None if outcome.ports is None else [int(port) for port in outcome.ports],
        [(fault.event, fault.kind.name, fault.line, fault.column) for fault in outcome.faults],
        statics.values(),
        _events(kernel.program.signature.output, outcome),
    )


def run_everywhere(source: str, events: Sequence[Any], output: object = None, **options: Any) -> Ran:
    """Run a program through every back end, check that all agree, and return what came of it."""
    results = [run(back_end, source, events, output, **dict(options)) for back_end in BACK_ENDS]
    for other in results[1:]:
        assert_alike(results[0], other, output)
    return results[0]


def assert_alike(one: Ran, other: Ran, output: object = None) -> None:
    """Check that two runs came to the same, to the bit."""
    assert one.outcome.handled == other.outcome.handled
    assert one.faults == other.faults
    assert one.selected == other.selected
    assert one.ports == other.ports
    assert repr(one.statics) == repr(other.statics)
    if output is not None:
        assert _bounds(one) == _bounds(other)
        if one.outcome.records != other.outcome.records:
            shown = repr(exactly(one.events))
            assert "nan" in shown  # only the bits of a NaN may differ
            assert shown == repr(exactly(other.events))


def exactly(value: Any) -> Any:
    """Return an event as plain values of which every digit is shown; NumPy rounds and shortens what it shows."""
    if isinstance(value, numpy.ndarray | list | tuple):
        return [exactly(item) for item in (value.tolist() if isinstance(value, numpy.ndarray) else value)]
    names = getattr(type(value), "__struct_fields__", None) or getattr(type(value), "__dataclass_fields__", None)
    return {name: exactly(getattr(value, name)) for name in names} if names else value


def evaluate(back_end: str, expression: str, result: str = "int32", **values: Any) -> int | float:
    """Return the value of an expression over fields of `input`, as NumPy's type `result`.

    The fields are given as NumPy scalars: `evaluate("native", "input.a + 1", a=int8(127))`.
    """
    dtype = numpy.dtype([(name, value.dtype) for name, value in values.items()] or [("unused", "i4")], align=True)
    record = numpy.array([tuple(values.values()) or (0,)], dtype)
    ran = run(back_end, f"output.value = {expression}; return 1;", record, numpy.dtype([("value", result)]))
    assert not ran.faults, ran.faults
    return ran.events[0].value


def _events(output: Format | None, outcome: Outcome) -> list[Any]:
    """Return the records of a transform as objects, read as those of any batch are."""
    if output is None:
        return []
    records = outcome.records if outcome.records is not None else b""
    return Batch(output, len(outcome.selected), [records], outcome.bounds).events()


def _bounds(ran: Ran) -> list[int] | None:
    return None if ran.outcome.bounds is None else ran.outcome.bounds.tolist()
