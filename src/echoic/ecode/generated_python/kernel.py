"""The second back end: a program as one Python function, generated as source.

It behaves as the native one does to the bit, wherever Python runs: it is what sources without a compiler use, and what
the native code is compared with. A simple filter takes well under a microsecond; loops over arrays are a hundred times
slower than native code.

    def make(params, statics, limit):             once for each run: statics are views, parameters are unpacked
     s1 = memoryview(statics)[0:4].cast("i")
     def event(data, at, end):                    once for each event: `at` is where its record begins
      i0, i8, = K1(data, at)
      if (i8 < (75.5)): return 1
      return 0
     return event

An event that faults raises `Stop` with the number of the fault.
"""

from collections.abc import Callable, Iterator
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

import numpy

from echoic.ecode.generated_python import arithmetic
from echoic.ecode.generated_python.arithmetic import MATHEMATICS
from echoic.ecode.generated_python.records import Ending, opening
from echoic.ecode.generated_python.slots import letter_of
from echoic.ecode.generated_python.source import Source, Stop
from echoic.ecode.generated_python.statements import Statements
from echoic.ecode.generated_python.texts import characters
from echoic.ecode.kernel import FAULTS_MAX, FUEL, Buffer, Fault, FaultKind, Outcome
from echoic.errors import CodegenError

if TYPE_CHECKING:
    from echoic.ecode.analysis import Analysis
    from echoic.ecode.program import Program

__all__ = ["PythonKernel", "compile_python"]

Event: TypeAlias = Callable[[Buffer, int, int], Any]
"""Handles the record between two places of a buffer: an int, or for transforms an int and a record."""
Maker: TypeAlias = Callable[[Buffer, bytearray, int], Event]

NOWHERE: Final = (0, 0)


def compile_python(program: "Program", analysis: "Analysis") -> "PythonKernel":
    """Compile a program to a Python function.

    Raises:
        CodegenError: Its loops or blocks are nested deeper than Python allows.
    """
    text, source = _write(program, analysis)
    try:
        exec(compile(text, "<generated program>", "exec"), source.namespace)  # noqa: S102 - our own text, see `source`
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise CodegenError(f"the program is too deeply nested for Python: {error}") from error
    return PythonKernel(program, source, text)


class PythonKernel:
    """A program compiled to a Python function; see `kernel.Kernel`."""

    def __init__(self, program: "Program", source: Source, text: str) -> None:
        self.program: Final = program
        self.text: Final = text
        """The generated source, for curious people."""
        self._make: Maker = source.namespace["make"]  # type: ignore[assignment] # the text defines it so
        self.faults: Final = tuple(source.faults)
        """What can go wrong and where, by the number that a bound kernel raises."""
        self._slices = "data[" in text or "characters(data" in text

    def run(
        self,
        records: Buffer,
        bounds: Buffer | None,
        count: int,
        params: bytes,
        statics: bytearray,
        fuel: int = FUEL,
        faults_max: int = FAULTS_MAX,
        *,
        release: bool = False,  # noqa: ARG002 - this is Python, whose threads take turns anyway
    ) -> Outcome:
        """Run over `count` records; see `kernel.Kernel.run`.

        Raises:
            CodegenError: Parameters, statics or bounds are too small for the program's types.
        """
        event = self._event(params, statics, fuel)
        data = bytes(records) if self._slices else records
        faults: list[Fault] = []
        results: list[tuple[int, Any]] = []
        handled = count
        for index, (start, end) in enumerate(self._extents(memoryview(records).nbytes, bounds, count)):
            try:
                result = event(data, start, end) if start >= 0 else self._stopped()
            except Stop as stop:
                faults.append(Fault(index, *self.faults[stop.args[0]]))
                if len(faults) >= max(faults_max, 1):
                    handled = index + 1
                    break
                continue
            results.append((index, result))
        return self._outcome(handled, results, faults)

    def bind(self, params: bytes, statics: bytearray, fuel: int = FUEL) -> Callable[[Buffer], int]:
        """Return a function that looks at one record and returns what the program does.

        Of several records of fixed size, one after the other, it returns 0 if the program rejects all of them. An event
        that faults raises ValueError with the number of the fault, of which `faults` tells kind and place.

        Raises:
            CodegenError: The program writes output, or parameters or statics are too small for the program's types.
        """
        if self.program.signature.output is not None:
            raise CodegenError("only a program without output can be bound")
        event = self._event(params, statics, fuel)
        size, variable = self.program.signature.input.size, self.program.signature.input.variable
        slices = self._slices

        def handle(records: Buffer) -> int:
            end = len(records)
            data = bytes(records) if slices else records
            try:
                if end < size:
                    self._stopped()
                result = int(event(data, 0, end if variable else size))
                if end >= 2 * size and not variable:
                    following = range(size, end - size + 1, size)
                    return result or next((1 for at in following if event(data, at, at + size)), 0)
            except Stop as stop:
                raise ValueError(stop.args[0]) from None
            return result

        return handle

    def _event(self, params: bytes, statics: bytearray, fuel: int) -> Event:
        """Return the function for one event, once parameters and statics are known to be large enough."""
        signature = self.program.signature
        needed = signature.params.size if signature.params is not None else 0
        if len(params) < needed:
            raise CodegenError(f"the parameter block has {len(params)} bytes, expected at least {needed}")
        if len(statics) < self.program.block_bytes:
            raise CodegenError(f"the statics have {len(statics)} bytes, expected {self.program.block_bytes}")
        try:
            return self._make(params, statics, fuel)
        except Stop as stop:
            fault = stop.args[0]
            return lambda _data, _at, _end: self._stopped(fault)

    def _stopped(self, fault: int = 0) -> NoReturn:
        """Give an event up; fault 0 is that its record cannot be one."""
        raise Stop(fault)

    def _extents(self, size: int, bounds: Buffer | None, count: int) -> Iterator[tuple[int, int]]:
        """Return from where to where each record goes; less than 0 where there can be none."""
        format = self.program.signature.input
        if not format.variable:
            whole = min(count, size // format.size)
            starts = range(0, whole * format.size, format.size)
            ends = range(format.size, (whole + 1) * format.size, format.size)
            return chain(zip(starts, ends, strict=True), repeat((-1, -1), count - whole))
        if bounds is None or memoryview(bounds).nbytes < 4 * (count + 1):
            raise CodegenError(f"{count} records of a variable type need {count + 1} bounds")
        places = numpy.frombuffer(bounds, numpy.uint32, count + 1).astype(numpy.int64)
        begins, closes = places[:-1].copy(), places[1:]
        begins[(closes > size) | (closes - begins < format.size)] = -1
        return zip(begins.tolist(), closes.tolist(), strict=True)

    def _outcome(self, handled: int, results: list[tuple[int, Any]], faults: list[Fault]) -> Outcome:
        """Return what became of the events: their results and, for a transform, their records."""
        signature = self.program.signature
        records: list[Buffer] = []
        if signature.output is not None:
            passed = [(index, result) for index, (result, record) in results if record is not None]
            records = [record for _, (_, record) in results if record is not None]
        elif signature.ports:
            passed = [(index, result) for index, result in results if result >= 0]
        else:
            passed = [(index, result) for index, result in results if result]
        outcome = Outcome(handled, numpy.array([index for index, _ in passed], numpy.uint32), faults)
        if signature.ports:
            outcome.ports = numpy.array([port for _, port in passed], numpy.int32)
        if signature.output is not None:
            outcome.records = b"".join(records)
            if signature.output.variable:
                outcome.bounds = numpy.cumsum([0, *map(len, records)], dtype=numpy.uint32)
        return outcome


def _write(program: "Program", analysis: "Analysis") -> tuple[str, Source]:
    """Return the text of the functions `make` and `finish`, and what they refer to."""
    source = Source()
    source.fault(FaultKind.RECORD, NOWHERE)
    statements = Statements(program, analysis, source)
    source.indent = 2
    statements.statement(program.body)
    body, places, signature = source.lines, statements.values.places, program.signature
    beginning = opening(signature.input, places.input, source, record="input")
    finish: list[str] = []
    if signature.output is not None:
        ending = Ending(signature, signature.output, places, source)
        beginning += ending.beginning()
        finish = ending.finish()
        body = [line.replace("finish(OUTPUTS)", f"finish({ending.names})") for line in body]
    if not analysis.bounded:
        beginning.append("fuel = limit")
    if program.context is not None and program.context.functions:
        beginning.append(f"{source.packer('=Q')}(statics, {program.context.log_offset}, 0)")
    setting = [_static_view(program, serial) for serial in range(len(program.statics))]
    if signature.params is not None:
        setting += opening(signature.params, places.params, source, record="param")
    lines = [
        *finish,
        "def make(params, statics, limit):",
        *(f" {line}" for line in setting),
        " def event(data, at, end):",
        *(f"  {line}" for line in beginning),
        *body,
        " return event",
    ]
    source.namespace |= _library()
    return "\n".join(lines) + "\n", source


def _static_view(program: "Program", place: int) -> str:
    variable = program.statics[place]
    end = variable.offset + variable.count * variable.number.size
    letter = letter_of(variable.number, boolean=False)
    return f"s{variable.serial} = memoryview(statics)[{variable.offset}:{end}].cast('{letter}')"


def _stop(fault: int) -> int:
    raise Stop(fault)


def _library() -> dict[str, object]:
    """Return what every generated text may call. Nothing else is in reach of it, the builtins it needs apart."""
    allowed = {"bool": bool, "bytearray": bytearray, "bytes": bytes, "float": float, "len": len}
    allowed |= {"memoryview": memoryview, "range": range}
    known = {
        name: getattr(arithmetic, name)
        for name in ("divided", "nearest_single", "quotient", "remainder", "saturated", "single")
    }
    names = {"Stop": Stop, "stop": _stop, "characters": characters, "NUL": b"\0", "EMPTY": b"", "JOIN": b"".join}
    return {**MATHEMATICS, **known, **names, "__builtins__": allowed}
