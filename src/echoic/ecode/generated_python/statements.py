"""Statements of E-Code as lines of Python.

A proved loop whose counter does nothing but count becomes a `for` over a range, which is several times faster than
counting. In any other loop `continue` must still run the step: the step then stands at the beginning of the turn, and
is left out in the first one.

    for (i = 0; i < n; i += 1) { if (a[i]) continue; ... }        t1 = True
                                                                  while True:
                                                                   if t1: t1 = False
                                                                   else: v1 = v1 + 1
                                                                   if not v1 < n: break
"""

from functools import partial
from typing import TYPE_CHECKING, Final

from echoic.ecode.analysis.traversal import walk
from echoic.ecode.context import CALLS_MAX
from echoic.ecode.generated_python.source import Expression, Source
from echoic.ecode.generated_python.values import Values
from echoic.ecode.kernel import FaultKind
from echoic.ecode.typed import (
    AssignText,
    Block,
    Break,
    Constant,
    ContextCall,
    Continue,
    Declare,
    Evaluate,
    If,
    Local,
    Loop,
    Resize,
    Return,
    Statement,
    Value,
    Variable,
)

if TYPE_CHECKING:
    from echoic.ecode.analysis import Analysis
    from echoic.ecode.analysis.loops import Counted
    from echoic.ecode.program import Program

__all__ = ["Statements"]

NOWHERE: Final = (0, 0)


class Statements:
    """Writes the statements of one program."""

    def __init__(self, program: "Program", analysis: "Analysis", source: Source) -> None:
        self._signature = program.signature
        self._analysis = analysis
        self._context = program.context
        self._source = source
        self.values: Final = Values(program, analysis, source)

    def statement(self, statement: Statement) -> None:
        """Write a statement."""
        match statement:
            case Block(statements=statements):
                for inner in statements:
                    self.statement(inner)
            case Evaluate(value=value):
                self.values.effect(value)
            case Declare():
                self._declare(statement)
            case If():
                self._if(statement)
            case Loop():
                self._loop(statement)
            case Return(value=value):
                self._return(value)
            case AssignText():
                self.values.texts.assign(statement)
            case Resize(array=array):
                self.values.texts.resize(statement, self._signature.capacity(array.path))
            case ContextCall():
                self._context_call(statement)
            case Break() | Continue():
                self._source.line("break" if isinstance(statement, Break) else "continue")

    def _declare(self, declaration: Declare) -> None:
        variable = declaration.variable
        name, zero = f"v{variable.serial}", "0.0" if variable.number.floating else "0"
        if variable.dimensions:
            self._source.line(f"{name} = [{zero}] * {variable.count}")
            for place, value in enumerate(declaration.values):
                self._source.line(f"{name}[{place}] = {self.values.value(value).text}")
            return
        if not declaration.values or _mentions(declaration.values[0], variable):
            self._source.line(f"{name} = {zero}")
        if declaration.values:
            self._source.line(f"{name} = {self.values.value(declaration.values[0]).text}")

    def _context_call(self, call: ContextCall) -> None:
        context, source = self._context, self._source
        if context is None:
            raise TypeError("the program names no context")
        parts = [partial(self.values.value, argument) for argument in call.arguments]
        arguments = "".join(f", {part.text}" for part in source.together(*parts))
        made, log = source.temporary(), context.log_offset
        packer = source.packer(f"=Q{len(call.arguments)}d")
        arguments_first = source.settle(Expression(f"({arguments[2:]},)")).text if arguments else ""
        source.line(f"{made} = {source.unpacker('=Q')}(statics, {log})[0]")
        source.line(f"if {made} >= {CALLS_MAX}: raise Stop({source.fault(FaultKind.CALLS, call.at)})")
        given = f", *{arguments_first}" if arguments_first else ""
        source.line(f"{packer}(statics, {log + 8} + {made} * {context.entry_bytes}, {call.function}{given})")
        source.line(f"{source.packer('=Q')}(statics, {log}, {made} + 1)")

    def _body(self, statement: Statement | None) -> list[str]:
        """Return the lines of a statement one level deeper; at least one."""
        with self._source.aside() as lines:
            if statement is not None:
                self.statement(statement)
            if not lines:
                self._source.line("pass")
        return lines

    def _if(self, statement: If) -> None:
        word = "if"
        while True:
            test = self.values.condition(statement.test)
            self._source.line(f"{word} {test.text}:")
            self._source.lines.extend(self._body(statement.yes))
            following = statement.no
            if following is None:
                return
            if not isinstance(following, If) or not self._plain(following.test):
                break
            word, statement = "elif", following
        self._source.line("else:")
        self._source.lines.extend(self._body(following))

    def _plain(self, test: Value) -> bool:
        """Tell whether a test needs no lines of its own; those would stand between `if` and `elif`."""
        with self._source.aside() as lines:
            self.values.condition(test)
        return not lines

    def _loop(self, loop: Loop) -> None:
        counted = self._analysis.counted.get(loop)
        if counted is not None and counted.exact and counted.counter is not None and not counted.counter.static:
            self._range(loop, counted, counted.counter)
            return
        late = (loop.step is not None or not loop.test_first) and _continues(loop.body)
        lines = self._source.lines
        mark = len(lines)
        self._source.line("while True:")
        self._source.indent += 1
        if late:
            self._late_step(loop, mark)
        if loop.test_first:
            self._leave_unless(loop.test)
        self._burn(loop)
        self.statement(loop.body)
        if not late:
            if loop.step is not None:
                self.values.effect(loop.step)
            if not loop.test_first:
                self._leave_unless(loop.test)
        if len(lines) == mark + 1:
            self._source.line("pass")
        self._source.indent -= 1

    def _range(self, loop: Loop, counted: "Counted", counter: Variable) -> None:
        name, end = f"v{counter.serial}", counted.start + counted.turns * counted.step
        self._source.line(f"for {name} in range({counted.start}, {end}, {counted.step or 1}):")
        self._source.lines.extend(self._body(loop.body))
        self._source.line("else:")
        self._source.line(f" {name} = {end}")

    def _late_step(self, loop: Loop, mark: int) -> None:
        """Write what leads from one turn to the next at the beginning of the turn, but not for the first one."""
        first = self._source.temporary()
        self._source.lines.insert(mark, " " * (self._source.indent - 1) + f"{first} = True")
        self._source.line(f"if {first}:")
        self._source.line(f" {first} = False")
        self._source.line("else:")
        with self._source.aside() as lines:
            if loop.step is not None:
                self.values.effect(loop.step)
            if not loop.test_first:
                self._leave_unless(loop.test)
            self._source.line("pass")
        self._source.lines.extend(lines)

    def _leave_unless(self, test: Value | None) -> None:
        if test is None or (isinstance(test, Constant) and test.value):
            return
        self._source.line(f"if not {self.values.condition(test).text}: break")

    def _burn(self, loop: Loop) -> None:
        burned = self._analysis.burns.get(loop)
        if burned is None:
            return
        self._source.line(f"fuel -= {burned}")
        self._source.line(f"if fuel < 0: raise Stop({self._source.fault(FaultKind.FUEL, loop.at)})")

    def _return(self, value: Value) -> None:
        """Write the end of an event: an output record is made only if it will be sent."""
        result = self.values.value(value)
        ports, transforms = self._signature.ports, self._signature.output is not None
        if not ports and not transforms:
            self._source.line(f"return {result.text}")
            return
        result = self._source.settle(result)
        if not ports and isinstance(value, Constant) and value.value:
            self._source.line(f"return {result.text}, finish(OUTPUTS)")
            return
        if ports:
            port = self._source.fault(FaultKind.PORT, NOWHERE)
            self._source.line(f"if {result.text} >= {ports}: raise Stop({port})")
        if not transforms:
            self._source.line(f"return {result.text}")
            return
        self._source.line(f"if {result.text}{' < 0' if ports else ' == 0'}: return {result.text}, None")
        self._source.line(f"return {result.text}, finish(OUTPUTS)")


def _mentions(value: Value, variable: Variable) -> bool:
    """Tell whether a value reads a variable, as `int i = i + 1` does."""
    return any(isinstance(node, Local) and node.variable is variable for node in walk(value))


def _continues(body: Statement) -> bool:
    """Tell whether a loop with this body has a `continue` of its own."""
    match body:
        case Continue():
            return True
        case Block(statements=statements):
            return any(map(_continues, statements))
        case If(yes=yes, no=no):
            return _continues(yes) or (no is not None and _continues(no))
        case _:
            return False
