"""Kernels of native code.

    kernel = compile_native(program, analyse(program))
    outcome = kernel.run(records, None, count, b"", statics)

A program becomes one routine: the loop over a batch with the program's code in its middle (`batch_loop`), written as
LLVM text and compiled in 2 to 4 ms. A CPython builtin leads to it (`codegen.batch_entry`); around that, `run` finds the
memory, enlarges the output when the routine stops for want of room, and makes an `Outcome` of what the routine wrote.

A hostile program or record can neither crash nor hang nor read outside of its record: indexes and slots are checked
where they are not proved, and every loop without a proved count burns fuel.

Large programs are compiled with less effort, so that the largest takes 25 ms. At -O2 it could take four seconds.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Final, Literal

import numpy

from echoic.codegen import (
    WORK_HEADER,
    Demands,
    NativeCode,
    Tier,
    batch_entry,
    compile_library,
    event_entry,
    work_bytes,
)
from echoic.ecode.analysis import Analysis
from echoic.ecode.kernel import FAULTS_MAX, FUEL, Buffer, Fault, Outcome
from echoic.ecode.native.batch_loop import write_routine
from echoic.ecode.native.columns import Column, packed_columns
from echoic.ecode.native.routine import Layout, Routine
from echoic.ecode.program import Program
from echoic.errors import CodegenError
from echoic.formats import Format

__all__ = ["Column", "NativeKernel", "compile_native"]

NODES_FULL_MAX: Final = 500
NODES_LIGHT_MAX: Final = 1000
BLOCKS_FULL_MAX: Final = 400  # a node may be many: two texts that are compared are thirty
BLOCKS_LIGHT_MAX: Final = 800
OUTPUT_BYTES_FIRST: Final = 1 << 16
TEXT_BYTES_LIKELY: Final = 64  # what the texts of one event are expected to take together
OUTPUT_BYTES_MAX: Final = 1 << 30  # of one run; bounds could tell four times as much
UINT32, INT32 = numpy.dtype(numpy.uint32), numpy.dtype(numpy.int32)


def compile_native(
    program: Program,
    analysis: Analysis,
    *,
    tier: Literal["light", "full"] = "light",
    layout: Layout = "rows",
) -> "NativeKernel":
    """Return a kernel of native code.

    Args:
        program: The checked program.
        analysis: What was found about it.
        tier: How much is optimised; `full` takes several times as long and is worth it for heavy loops.
        layout: Whether the input lies in records or in columns.

    Raises:
        CodegenError: The types are not ones that native code can be written for.
    """
    if struct.calcsize("P") != 8:
        raise CodegenError("native code needs a machine of 64 bits")
    routine = Routine(program, analysis, layout)
    text, demands, columns = write_routine(routine)
    effort = _effort(tier, program.nodes, blocks=text.count(":\n"))
    code = NativeCode.of(compile_library(text, ("run",), tier=effort), "run")
    return NativeKernel(program, code, demands, routine, columns)


class NativeKernel:
    """A program as native code (see `kernel.Kernel`). It may be used by several threads at once."""

    def __init__(
        self,
        program: Program,
        code: NativeCode,
        demands: Demands,
        routine: Routine,
        columns: tuple[tuple[str, ...], ...],
    ) -> None:
        self.program: Final = program
        self.faults: Final = tuple(routine.faults)
        """What can go wrong and where, by the number that a bound kernel raises."""
        self.columns: Final = columns
        """The paths of the columns that `run_columns` needs."""
        self._rows = routine.layout == "rows"
        self._code = code
        self._demands = demands
        self._entry = batch_entry(code, demands)
        self._output = program.signature.output
        self._room_bytes = routine.room_bytes
        self._output_bytes_each = _likely_bytes(program.signature.output)
        self._work_bytes = work_bytes(demands, 0)
        self._work_bytes_each = work_bytes(demands, 1) - self._work_bytes
        self._numbers_at = self._work_bytes - demands.output_bound_bytes

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
        release: bool = False,
    ) -> Outcome:
        """Run over `count` records, as `Kernel.run` says.

        Args:
            records: The records, one after the other, as in a batch.
            bounds: Where each begins and the last ends, for a variable type.
            count: How many there are.
            params: The parameter block.
            statics: The block of statics, which is changed and cannot be resized meanwhile.
            fuel: What loops without a proved count may burn for one event.
            faults_max: After how many faults to stop.
            release: Whether other threads of Python may run meanwhile; worth it for work of 100 us and more.

        Raises:
            CodegenError: The kernel is one for columns, or a buffer is too small for what is asked.
        """
        if not self._rows:
            raise CodegenError("this kernel was compiled for columns")
        return self._run(records, bounds, params, statics, count, fuel, faults_max, release)

    def run_columns(
        self,
        columns: Mapping[tuple[str, ...], Column],
        count: int,
        params: bytes,
        statics: bytearray,
        fuel: int = FUEL,
        faults_max: int = FAULTS_MAX,
        *,
        release: bool = False,
    ) -> Outcome:
        """Run over `count` events whose fields lie in columns, by the paths of the fields; see `run`.

        Raises:
            CodegenError: The kernel is one for records, a column is missing or shorter than `count`.
        """
        if self._rows:
            raise CodegenError("this kernel was compiled for records")
        missing = [".".join(path) for path in self.columns if path not in columns]
        if missing:
            raise CodegenError(f"the columns {', '.join(missing)} are missing")
        table, kept = packed_columns([columns[path] for path in self.columns])
        outcome = self._run(table, None, params, statics, count, fuel, faults_max, release)
        del kept  # until here the memory of the columns could not go away
        return outcome

    def bind(self, params: bytes, statics: bytearray, fuel: int = FUEL) -> Callable[[Buffer], int]:
        """Return a builtin that looks at one record and returns what the program does, in about 30 ns.

        Of several records of fixed size, one after the other, it returns 0 if the program rejects all of them.
        An event that faults raises ValueError with the number of the fault, of which `faults` tells kind and place.
        The block of statics cannot be resized while the builtin lives.

        Raises:
            CodegenError: The program writes output, or its input lies in columns.
        """
        if self._output is not None or not self._rows:
            raise CodegenError("only a program without output that works on records can be bound")
        try:
            return event_entry(self._code, self._demands, params, statics, fuel)
        except ValueError as error:
            raise CodegenError(f"parameters or statics are too small: {error}") from error

    def _run(
        self,
        records: Buffer,
        bounds: Buffer | None,
        params: bytes,
        statics: bytearray,
        count: int,
        fuel: int,
        faults_max: int,
        release: bool,
    ) -> Outcome:
        work = bytearray(self._work_bytes + self._work_bytes_each * count)
        output = None if self._output is None else bytearray(self._first_bytes(count))
        faults: list[Fault] = []
        handled = 0
        try:
            entry = self._entry
            while (
                selected := entry(records, bounds, params, statics, output, work, handled, count, fuel, release)
            ) < 0:
                handled = -1 - selected
                selected, fault, end, needed, _, _ = WORK_HEADER.unpack_from(work)
                if fault:
                    faults.append(Fault(handled, *self.faults[fault - 1]))
                    handled += 1
                    if len(faults) >= faults_max:
                        break
                elif output is not None:
                    output = _enlarged(output, end, needed)
            else:
                handled = count
        except ValueError as error:
            raise CodegenError(f"a buffer is too small for {count} events of this program") from error
        outcome = Outcome(handled, numpy.ndarray(selected, UINT32, work, self._numbers_at), faults)
        if output is not None or self._demands.port_bytes:
            self._complete(outcome, count, work, output)
        return outcome

    def _first_bytes(self, count: int) -> int:
        """Return how much room for output to begin with."""
        return self._room_bytes + min(count * self._output_bytes_each, OUTPUT_BYTES_FIRST)

    def _complete(self, outcome: Outcome, count: int, work: bytearray, output: bytearray | None) -> None:
        """Add ports and records to an outcome."""
        selected, ports_at = len(outcome.selected), self._numbers_at + 4 * count
        if self._demands.port_bytes:
            outcome.ports = numpy.ndarray(selected, INT32, work, ports_at)
        if output is not None:
            outcome.records = memoryview(output)[: WORK_HEADER.unpack_from(work)[2]]
        if self._demands.output_bound_bytes:
            bounds_at = ports_at + self._demands.port_bytes * count
            outcome.bounds = numpy.ndarray(selected + 1, UINT32, work, bounds_at)


def _effort(tier: Literal["light", "full"], nodes: int, blocks: int) -> Tier:
    """Return how much a program of this size may be optimised."""
    if nodes > NODES_LIGHT_MAX or blocks > BLOCKS_LIGHT_MAX:
        return "quick"
    return "light" if nodes > NODES_FULL_MAX or blocks > BLOCKS_FULL_MAX else tier


def _likely_bytes(output: Format | None) -> int:
    """Return how large an output record is expected to be."""
    if output is None:
        return 0
    return output.size + (TEXT_BYTES_LIKELY if output.variable else 0)


def _enlarged(output: bytearray, end: int, needed: int) -> bytearray:
    """Return a larger buffer with what was written so far."""
    if needed > OUTPUT_BYTES_MAX:
        raise CodegenError(f"the output of a batch needs {needed} bytes, limit is {OUTPUT_BYTES_MAX}")
    larger = bytearray(min(max(2 * len(output), needed), OUTPUT_BYTES_MAX))
    larger[:end] = memoryview(output)[:end]
    return larger
