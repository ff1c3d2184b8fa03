"""The loop around a program: from buffers to a routine (see `routine` for its blocks).

The entry point has checked that the buffers are large enough (`demands_of` tells it what that means); what they hold is
not trusted. What the routine keeps between events lies in stack variables, which LLVM turns into registers, and goes to
the header of the work memory when it ends: at the last event, at a fault, or when the output is full. Its caller sees
to the latter two and calls it again for the rest.

An event that passes costs no branch: its number is written in any case, and counted if it passes.
"""

from typing import Final

from echoic.codegen import ROUTINE, Demands
from echoic.ecode.kernel import FaultKind
from echoic.ecode.native.columns import COLUMN_BYTES
from echoic.ecode.native.output import Output
from echoic.ecode.native.routine import NOWHERE, Routine
from echoic.ecode.native.statements import Statements

__all__ = ["write_routine"]

OUTPUT_STATE: Final = ("%end", "%needed", "%behind")
BOUND_BYTES: Final = 4


def write_routine(routine: Routine) -> tuple[str, Demands, tuple[tuple[str, ...], ...]]:
    """Return the module of a routine `run`, what it demands of its buffers, and the paths of its columns.

    Raises:
        CodegenError: The types are not ones that routines can be written for.
    """
    loop = _Loop(routine)
    loop.write()
    columns = () if loop.body.columns is None else tuple(loop.body.columns.paths)
    return routine.emit.module(f"define i64 @run({ROUTINE}) nounwind"), _demands_of(routine, len(columns)), columns


def _demands_of(routine: Routine, columns: int) -> Demands:
    signature, rows = routine.program.signature, routine.layout == "rows"
    return Demands(
        record_bytes=signature.input.size if rows and not signature.input.variable else 0,
        bound_bytes=BOUND_BYTES if rows and signature.input.variable else 0,
        records_bytes_min=columns * COLUMN_BYTES,
        params_bytes=signature.params.size if signature.params is not None else 0,
        statics_bytes=routine.program.block_bytes,
        scratch_bytes=routine.scratch_bytes,
        port_bytes=4 if signature.ports else 0,
        output_bound_bytes=BOUND_BYTES if signature.output is not None and signature.output.variable else 0,
    )


class _Loop:
    """Writes one routine."""

    def __init__(self, routine: Routine) -> None:
        self._routine = routine
        self._emit = routine.emit
        self._signature = routine.program.signature
        self.body = Statements(routine)
        self._output = Output(self.body) if self._signature.output is not None else None

    def write(self) -> None:
        """Write everything."""
        emit, routine = self._emit, self._routine
        self._write_entry()
        emit.block("next")
        emit.line("%index = load i64, ptr %event")
        emit.branch(emit.value("icmp slt i64 %index, %count"), "locate", "leave")
        emit.block("locate")
        self._write_location()
        if self._output is not None:
            emit.line(f"%target = getelementptr i8, ptr %output, i64 {emit.value('load i64, ptr %end')}")
        routine.opening = emit.mark()
        emit.label("opened")
        room = emit.mark()
        emit.label("body")
        if self._output is not None:
            self._output.write_opening()
        if not routine.analysis.bounded:
            emit.line("store i64 %fuel, ptr %remaining")
        self.body.open_log()
        self.body.open_slots()
        self.body.statement(routine.program.body)
        emit.label("decide")
        self._write_decision()
        if self._output is not None:
            with emit.inside(room):
                self._output.write_room()
            with emit.inside(routine.settling):
                self._output.write_settling()
        self._write_ends()

    def _write_entry(self) -> None:
        """Write what is done once."""
        emit = self._emit
        for variable in ("%event", "%selected", "%fault", "%remaining", *OUTPUT_STATE):
            emit.line(f"{variable} = alloca i64, align 8")
        emit.line("%returned = alloca i32, align 8")
        emit.line("store i32 0, ptr %returned")
        emit.line("store i64 %start, ptr %event")
        emit.line("store i64 0, ptr %fault")
        emit.line(f"store i64 {emit.load('i64', '%header')}, ptr %selected")
        if self._output is not None:
            emit.line(f"store i64 {emit.load('i64', emit.at('%header', 16))}, ptr %end")
            emit.line("store i64 0, ptr %needed")
        if self.body.columns is not None:
            emit.line("%last = sub i64 %count, 1")
            emit.line("%beyond = add i64 %count, 1")
            emit.branch(emit.value("icmp slt i64 %start, %count"), "entering", "leave")
            emit.block("entering")
        self._routine.entering = emit.mark()
        emit.jump("next")

    def _write_location(self) -> None:
        """Find the record of this event, if it is one."""
        emit, given = self._emit, self._signature.input
        fault = self._routine.fault(FaultKind.RECORD, NOWHERE)
        if self.body.columns is not None:
            return
        if not given.variable:
            begin = emit.value(f"mul nuw nsw i64 %index, {given.size}")
            emit.line(f"%record = getelementptr i8, ptr %records, i64 {begin}")
            emit.line(f"%size = add i64 {given.size}, 0")
            return
        place = emit.at("%bounds", emit.value(f"mul nuw nsw i64 %index, {BOUND_BYTES}"))
        begin, end = (
            emit.value(f"zext i32 {emit.load('i32', where)} to i64") for where in (place, emit.at(place, BOUND_BYTES))
        )
        emit.line(f"%size = sub nsw i64 {end}, {begin}")
        large = emit.value(f"icmp sge i64 %size, {given.size}")
        inside = emit.value(f"icmp ule i64 {end}, %records_bytes")
        emit.require(emit.value(f"and i1 {large}, {inside}"), fault)
        emit.line(f"%record = getelementptr i8, ptr %records, i64 {begin}")

    def _write_decision(self) -> None:
        """Decide by the returned value whether the event passes, and finish its output."""
        emit, ports = self._emit, self._signature.ports
        returned = emit.value("load i32, ptr %returned")
        if ports:
            emit.require(emit.value(f"icmp slt i32 {returned}, {ports}"), self._routine.fault(FaultKind.PORT, NOWHERE))
            passes = emit.value(f"icmp sge i32 {returned}, 0")
        else:
            passes = emit.value(f"icmp ne i32 {returned}, 0")
        if self._output is not None:
            emit.branch(passes, "finish", "settled")
            emit.block("finish")
            self._output.write_finish()
            passes = "true"
        selected = emit.value("load i64, ptr %selected")
        place = emit.value(f"mul nuw nsw i64 {selected}, 4")
        emit.store("i32", emit.value("trunc i64 %index to i32"), emit.at("%numbers", place))
        if ports:
            emit.store("i32", returned, emit.at("%ports", place))
        counted = emit.value(f"add i64 {selected}, {emit.value(f'zext i1 {passes} to i64')}")
        emit.line(f"store i64 {counted}, ptr %selected")
        emit.label("settled")
        self._routine.settling = emit.mark()
        emit.label("following")
        if self._output is not None:
            emit.require(emit.value(f"icmp eq i64 {emit.value('load i64, ptr %fault')}, 0"), "leave")
        emit.line(f"store i64 {emit.value('add nuw nsw i64 %index, 1')}, ptr %event")
        emit.jump("next")

    def _write_ends(self) -> None:
        """Write the blocks of faults, and how the routine ends."""
        emit = self._emit
        for number in self._routine.faults.values():
            emit.block(f"fault_{number}")
            emit.line(f"store i64 {number + 1}, ptr %fault")
            emit.jump("settled" if self._output is not None else "leave")
        emit.block("leave")
        state = (("%selected", 0), ("%fault", 8))
        for variable, place in state + ((("%end", 16), ("%needed", 24)) if self._output is not None else ()):
            emit.store("i64", emit.value(f"load i64, ptr {variable}"), emit.at("%header", place))
        last = emit.value(f"sext i32 {emit.value('load i32, ptr %returned')} to i64")
        emit.store("i64", last, emit.at("%header", 32))
        emit.line(f"ret i64 {emit.value('load i64, ptr %event')}")
        if self.body.columns is not None:
            emit.block("unusable")
            emit.line("ret i64 -1")
