"""Statements.

A block that has ended (by `return`, `break`, `continue`) is followed by a fresh one that nothing leads to; LLVM drops
it with whatever is written there.

A loop without a proved count burns fuel at the start of its body; an event that has none left is given up.
"""

from collections.abc import Callable
from typing import Any, Final

from echoic.ecode.context import CALLS_MAX
from echoic.ecode.kernel import FaultKind
from echoic.ecode.native.numbers import kind_of
from echoic.ecode.native.routine import Routine
from echoic.ecode.native.values import Values
from echoic.ecode.typed import (
    AssignText,
    Block,
    Break,
    ContextCall,
    Continue,
    Declare,
    Evaluate,
    If,
    Loop,
    Resize,
    Return,
    Statement,
)

__all__ = ["Statements"]


class Statements(Values):
    """Writes statements."""

    def __init__(self, routine: Routine) -> None:
        super().__init__(routine)
        self._loops: list[tuple[str, str]] = []
        """Where `continue` and `break` lead, for each loop around."""

    def statement(self, statement: Statement) -> None:
        """Write a statement."""
        WRITERS[type(statement)](self, statement)

    def _block(self, block: Block) -> None:
        for statement in block.statements:
            self.statement(statement)

    def _declare(self, statement: Declare) -> None:
        variable = statement.variable
        emit, kind, size = self.emit, kind_of(variable.number), variable.number.size
        pointer = self.variable(variable)
        if variable.dimensions:
            emit.clear(pointer, variable.count * size)
        else:
            emit.line(f"store {kind} zeroinitializer, ptr {pointer}")
        for position, value in enumerate(statement.values):
            emit.line(f"store {kind} {self.value(value)}, ptr {emit.at(pointer, position * size)}, align {size}")

    def _evaluate(self, statement: Evaluate) -> None:
        self.value(statement.value)

    def _resize(self, statement: Resize) -> None:
        emit, array = self.emit, self.output_array(statement.array)
        length = self.value(statement.length)
        fits = emit.value(f"icmp ule i64 {length}, {array.capacity}")
        emit.require(fits, self.routine.fault(FaultKind.LENGTH, statement.at))
        emit.line(f"store i64 {length}, ptr {array.length}")

    def open_log(self) -> None:
        """Empty the log of calls, where an event begins."""
        context = self.routine.program.context
        if context is not None and context.functions:
            self.emit.line(f"store i64 0, ptr {self.emit.at('%statics', context.log_offset)}, align 8")

    def _context_call(self, statement: ContextCall) -> None:
        emit, context = self.emit, self.routine.context
        arguments = [self.value(argument) for argument in statement.arguments]
        log = emit.at("%statics", context.log_offset)
        made = emit.value(f"load i64, ptr {log}, align 8")
        room = emit.value(f"icmp ult i64 {made}, {CALLS_MAX}")
        emit.require(room, self.routine.fault(FaultKind.CALLS, statement.at))
        entry = emit.at(emit.at(log, 8), emit.value(f"mul nuw nsw i64 {made}, {context.entry_bytes}"))
        emit.store("i64", str(statement.function), entry)
        for place, argument in enumerate(arguments):
            emit.store("double", argument, emit.at(entry, 8 * (1 + place)))
        emit.line(f"store i64 {emit.value(f'add nuw nsw i64 {made}, 1')}, ptr {log}, align 8")

    def _if(self, statement: If) -> None:
        emit = self.emit
        yes, no, done = (emit.new_label(word) for word in ("yes", "no", "done"))
        self.test(statement.test, yes, no if statement.no is not None else done)
        emit.block(yes)
        self.statement(statement.yes)
        if statement.no is not None:
            emit.jump(done)
            emit.block(no)
            self.statement(statement.no)
        emit.label(done)

    def _loop(self, loop: Loop) -> None:
        emit = self.emit
        test, body, step, done = (emit.new_label(word) for word in ("test", "body", "step", "done"))
        emit.jump(test if loop.test_first else body)
        emit.block(test)
        if loop.test is None:
            emit.jump(body)
        else:
            self.test(loop.test, body, done)
        emit.block(body)
        self._burn(loop)
        self._loops.append((step, done))
        self.statement(loop.body)
        self._loops.pop()
        emit.label(step)
        if loop.step is not None:
            self.value(loop.step)
        emit.jump(test)
        emit.block(done)

    def _burn(self, loop: Loop) -> None:
        burned = self.routine.analysis.burns.get(loop)
        if burned is None:
            return
        emit = self.emit
        left = emit.value(f"sub i64 {emit.value('load i64, ptr %remaining')}, {burned}")
        emit.line(f"store i64 {left}, ptr %remaining")
        emit.require(emit.value(f"icmp sge i64 {left}, 0"), self.routine.fault(FaultKind.FUEL, loop.at))

    def _return(self, statement: Return) -> None:
        self.emit.line(f"store i32 {self.value(statement.value)}, ptr %returned")
        self._leave("decide")

    def _break(self, _: Break) -> None:
        self._leave(self._loops[-1][1])

    def _continue(self, _: Continue) -> None:
        self._leave(self._loops[-1][0])

    def _leave(self, label: str) -> None:
        self.emit.jump(label)
        self.emit.block(self.emit.new_label("dead"))


WRITERS: Final[dict[type, Callable[[Statements, Any], None]]] = {
    AssignText: Statements.assign_text,
    Block: Statements._block,  # noqa: SLF001 - the table belongs to the class
    Break: Statements._break,  # noqa: SLF001
    ContextCall: Statements._context_call,  # noqa: SLF001
    Continue: Statements._continue,  # noqa: SLF001
    Declare: Statements._declare,  # noqa: SLF001
    Evaluate: Statements._evaluate,  # noqa: SLF001
    If: Statements._if,  # noqa: SLF001
    Loop: Statements._loop,  # noqa: SLF001
    Resize: Statements._resize,  # noqa: SLF001
    Return: Statements._return,  # noqa: SLF001
}
