"""The tree back to text, in one layout.

    process P(X : int, Y : str ?) is
      let
        Z : int
      in
        ( rec-msg(f(X, Z?)) . Z := add(Z, 1)
        + tau
        ) * delta
      endlet

Parentheses stand where the strengths of the operators ask for them, so that reading what was written gives the same
tree. A process that fits into a line stands in one.
"""

import math
from dataclasses import dataclass
from typing import Final

from echoic.errors import EncodeError
from echoic.scripts.syntax.tree import (
    Action,
    Application,
    Assign,
    Atom,
    Call,
    Choice,
    Conditional,
    Configuration,
    Constant,
    Create,
    Disrupt,
    Expression,
    Formal,
    Iteration,
    LeftBiased,
    Let,
    ListOf,
    Merge,
    PlaceholderOf,
    Process,
    ProcessDefinition,
    RightBiased,
    Script,
    Sequence,
    Timing,
    ToolDefinition,
    Variable,
)
from echoic.terms import UNDEFINED, Placeholder, Term, TermList, Value

__all__ = ["write_expression", "write_process", "write_script", "write_type"]

WIDTH: Final = 100
INDENT: Final = "  "
ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"})


@dataclass(frozen=True, slots=True)
class Operator:
    """How an operator is written: the sign, how tightly it binds, and which operand may be of the same operator."""

    sign: str
    strength: int
    left: bool = True


OPERATORS: Final[dict[type, Operator]] = {
    Merge: Operator("||", 1),
    RightBiased: Operator("+>", 2, left=False),
    LeftBiased: Operator("<+", 3),
    Choice: Operator("+", 4),
    Sequence: Operator(".", 5, left=False),
    Iteration: Operator("*", 6),
    Disrupt: Operator(">>", 7),
}


def write_script(script: Script) -> str:
    """Return the text of a script; includes, macros and comments are not in it.

    Raises:
        EncodeError: It has a value that no script can have: a blob, or a real that is not a number.
    """
    parts = [_tool(tool) for tool in script.tools]
    parts += [f"note channel {_string(note.channel)} as {write_type(note.pattern)}\n" for note in script.channel_notes]
    parts += [_definition(process) for process in script.processes]
    parts += [_configuration(configuration) for configuration in script.configurations]
    return "\n".join(parts)


def write_process(process: Process, indent: str = "") -> str:
    """Return the text of a process; its lines but the first are indented."""
    line = _in_line(process, 0)
    if len(line) + len(indent) <= WIDTH:
        return line
    return _over_lines(process, 0, indent)


def write_expression(expression: Expression) -> str:
    """Return the text of a term."""
    match expression:
        case Constant():
            return write_type(expression.value)
        case Variable():
            return f"{expression.name}{'?' * expression.result}"
        case Application() if not expression.arguments:
            return expression.name
        case Application():
            return f"{expression.name}({_terms(expression.arguments)})"
        case ListOf():
            return f"[{_terms(expression.elements)}]"
        case PlaceholderOf():
            return f"<{write_type(expression.type)}>"


def write_type(value: Value) -> str:
    """Return the text of a type or of a constant.

    Raises:
        EncodeError: No script can have it.
    """
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _real(value)
        case str():
            return _string(value)
        case Term() if value is UNDEFINED or not value.args:
            return value.name
        case Term():
            return f"{value.name}({', '.join(map(write_type, value.args))})"
        case TermList():
            return f"[{', '.join(map(write_type, value.elements))}]"
        case Placeholder():
            return f"<{write_type(value.type)}>"
        case _:
            raise EncodeError(f"`{type(value).__name__}` cannot be written in a T-script")


def _real(value: float) -> str:
    if math.isnan(value):
        raise EncodeError("a real that is not a number cannot be written in a T-script")
    if math.isinf(value):
        return "1e999" if value > 0 else "-1e999"  # read as the largest there is
    return repr(value)


def _string(text: str) -> str:
    return f'"{text.translate(ESCAPES)}"'


def _terms(terms: tuple[Expression, ...]) -> str:
    return ", ".join(map(write_expression, terms))


def _formals(formals: tuple[Formal, ...]) -> str:
    if not formals:
        return ""
    written = [f"{each.name} : {write_type(each.type)}{' ?' * each.result}" for each in formals]
    return f"({', '.join(written)})"


def _definition(process: ProcessDefinition) -> str:
    return f"process {process.name}{_formals(process.formals)} is\n{INDENT}{write_process(process.body, INDENT)}\n"


def _tool(tool: ToolDefinition) -> str:
    features = "".join(f"{INDENT}{name} = {_string(text)}\n" for name, text in tool.features)
    body = f"{{\n{features}}}" if features else "{}"
    return f"tool {tool.name}{_formals(tool.formals)} is {body}\n"


def _configuration(configuration: Configuration) -> str:
    calls = [_action_or_call(call) for call in configuration.calls]
    line = f"toolbus({', '.join(calls)})\n"
    if len(line) <= WIDTH:
        return line
    listed = f",\n{INDENT}".join(calls)
    return f"toolbus(\n{INDENT}{listed}\n)\n"


def _action_or_call(node: Action | Call) -> str:
    if isinstance(node, Call):
        return f"{node.name}({_terms(node.arguments)})" if node.arguments else node.name
    return " ".join([_action(node), *map(_timing, node.timing)])


def _action(action: Action) -> str:
    match action:
        case Atom(("delta" | "tau") as name):
            return name
        case Atom(name, arguments):
            return f"{name}({_terms(arguments)})"
        case Assign(variable, expression):
            return f"{variable.name} := {write_expression(expression)}"
        case Create(call, result):
            return f"create({_action_or_call(call)}, {write_expression(result)})"


def _timing(timing: Timing) -> str:
    return f"{timing.kind}({_terms(timing.arguments)})"


def _operands(process: Process, operator: Operator) -> list[tuple[Process, int]]:
    """Return what an operator and its equals stand between, with the strength that each operand needs."""
    kind, strength = type(process), operator.strength
    found: list[tuple[Process, int]] = []
    while type(process) is kind:
        left, right = _sides(process)
        found.append((right, strength + 1) if operator.left else (left, strength + 1))
        process = left if operator.left else right
    found.append((process, strength + 1))
    return found[::-1] if operator.left else found


def _sides(process: Process) -> tuple[Process, Process]:
    match process:
        case Sequence(left, right) | Iteration(left, right) | Disrupt(left, right):
            return left, right
        case Choice(left, right) | RightBiased(left, right) | LeftBiased(left, right) | Merge(left, right):
            return left, right
        case _:
            raise AssertionError("only operators have sides")


def _in_line(process: Process, strength: int) -> str:
    """Return a process in one line, in parentheses if it binds less tightly than `strength`."""
    operator = OPERATORS.get(type(process))
    if operator is not None:
        text = f" {operator.sign} ".join(_in_line(*operand) for operand in _operands(process, operator))
        return f"({text})" if operator.strength < strength else text
    match process:
        case Conditional(test, then, otherwise):
            last = "" if otherwise is None else f" else {_in_line(otherwise, 0)}"
            return f"if {write_expression(test)} then {_in_line(then, 0)}{last} fi"
        case Let():
            return f"let {_declarations(process, ', ')} in {_in_line(process.body, 0)} endlet"
        case Atom() | Assign() | Create() | Call():
            return _action_or_call(process)
        case _:
            raise AssertionError("every other process is an operator")


def _over_lines(process: Process, strength: int, indent: str) -> str:
    """Return a process over several lines where it does not fit into one."""
    line = _in_line(process, strength)
    if len(line) + len(indent) <= WIDTH:
        return line
    operator = OPERATORS.get(type(process))
    if operator is not None:
        enclosed = operator.strength < strength
        (first, need), *others = _operands(process, operator)
        begins = indent if not enclosed and _is_bracketed(first, need) else indent + INDENT
        operands = [_over_lines(first, need, begins)]
        operands += [_over_lines(each, need, indent + INDENT) for each, need in others]
        text = f"\n{indent}{operator.sign} ".join(operands)
        return f"( {text}\n{indent})" if enclosed else text
    inner = indent + INDENT
    match process:
        case Conditional(test, then, otherwise):
            last = "" if otherwise is None else f"\n{indent}else\n{inner}{_over_lines(otherwise, 0, inner)}"
            body = f"\n{inner}{_over_lines(then, 0, inner)}{last}\n{indent}"
            return f"if {write_expression(test)} then{body}fi"
        case Let():
            declared = _declarations(process, f",\n{inner}")
            return f"let\n{inner}{declared}\n{indent}in\n{inner}{_over_lines(process.body, 0, inner)}\n{indent}endlet"
        case _:
            return line


def _is_bracketed(process: Process, strength: int) -> bool:
    """Whether a process ends with a bracket that stands under the one it begins with."""
    operator = OPERATORS.get(type(process))
    return isinstance(process, Let | Conditional) if operator is None else operator.strength < strength


def _declarations(let: Let, separator: str) -> str:
    return separator.join(f"{each.name} : {write_type(each.type)}" for each in let.declarations)
