"""Python programs for the tools of a script, to go on from: each has the methods that the script uses, typed, and runs.

    snd-eval(C, expr(E)) . rec-value(C, val(V?))        @eval_
                                                        def expr(self, e: str) -> Annotated[Term, "val(int)"]:
                                                            return Term("val", 0)

Arguments are called like the variables of the script. Which value belongs to which eval is not part of the language:
the `rec-value` atoms that follow it in the text of the same process, before the next eval, are taken to be meant.
"""

import keyword
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from echoic.scripts.checking.atoms import tool_of
from echoic.scripts.checking.context import Context
from echoic.scripts.checking.expressions import quiet_type
from echoic.scripts.checking.survey import Placed, survey
from echoic.scripts.syntax.tree import Application, Atom, Expression, Script, Variable
from echoic.terms import Placeholder, Term, TermList, Value, write_text

__all__ = ["skeleton_of"]

HINTS: Final = {"bool": "bool", "int": "int", "real": "float", "str": "str", "blob": "bytes", "bstr": "bytes"}
DEFAULTS: Final = {"bool": "False", "int": "0", "real": "0.0", "str": '""', "blob": 'b""', "bstr": 'b""'}
KINDS: Final = {"snd-eval": "eval_", "snd-do": "do", "rec-event": "event", "rec-request": "request"}
TAKEN: Final = frozenset(
    {
        *(
            "main",
            "on_terminate",
            "on_cancel",
            "find_handler",
            "interface",
            "event",
            "request",
            "disconnect",
            "connect",
        ),
        *("bind", "serve", "start", "wait", "close", "run", "number", "handlers", "tool_name"),
    }
)
"""What every tool has already."""
ANY: Final = Term("term")
TOOLBUS: Final = ("Term", "TermList", "Tool", "do", "eval_", "event", "request")


@dataclass(slots=True)
class Method:
    """Something a tool is told or says, in all the forms that the script has."""

    kind: str
    name: str
    forms: list[tuple[tuple[str, Value], ...]] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)

    @property
    def parameters(self) -> list[tuple[str, list[Value], bool]]:
        """Name, types and whether it may be left out, of each parameter."""
        longest = max(self.forms, key=len, default=())
        fewest = min(map(len, self.forms), default=0)
        found: list[tuple[str, list[Value], bool]] = []
        used: set[str] = {"self"}
        for at, (name, _) in enumerate(longest):
            types = list(dict.fromkeys(form[at][1] for form in self.forms if len(form) > at))
            while name in used:
                name += "_"
            used.add(name)
            found.append((name, types, at >= fewest))
        return found


def skeleton_of(script: Script, file: str, tools: Iterable[str]) -> str:
    """Return a program for tools of a script, which is in order."""
    bodies, names = [], list(tools)
    for tool in names:
        methods, remarks = _methods(script, tool)
        bodies.append("\n".join(_class_lines(tool, methods, remarks)))
    text = "\n\n\n".join(bodies)
    words = set(re.findall(r"\w+", text))
    lines = [f'"""Tools for {_remark(file)}, as it wants them: {", ".join(names)}. Made by `echoic bus tifs`."""', ""]
    if "Annotated" in words:
        lines += ["from typing import Annotated", ""]
    lines += [f"from echoic.toolbus import {', '.join(each for each in TOOLBUS if each in words | {'Tool'})}", "", ""]
    return "\n".join([*lines, text, "", "", 'if __name__ == "__main__":', *_start_lines(names)]) + "\n"


def _start_lines(names: list[str]) -> list[str]:
    """Return what the program does: the tool that it was started as."""
    if len(names) == 1:
        return [f"    {_class_name(names[0])}.run()"]
    table = ", ".join(f'"{name}": {_class_name(name)}' for name in names)
    return [
        "    import os",
        "",
        f'    {{{table}}}[os.environ["TB_TOOL_NAME"]].run()',
    ]


def _methods(script: Script, tool: str) -> tuple[list[Method], list[str]]:
    """Return what a script tells a tool and hears from it, and remarks on what no method can stand for."""
    context = Context(script)
    found: dict[tuple[str, str], Method] = {}
    remarks: list[str] = []
    asked: dict[int, list[Method]] = defaultdict(list)  # the evals before, by process
    answered: set[int] = set()  # processes whose last evals have a value
    for placed in survey(script):
        atom = placed.node
        if not isinstance(atom, Atom) or tool_of(atom, placed.scope, context) != tool:
            continue
        if atom.name == "rec-value":
            answered.add(id(placed.process))
            for method in asked[id(placed.process)]:
                _add(method.results, quiet_type(atom.arguments[1], placed.scope))
        elif atom.name in KINDS:
            said = atom.arguments[1]
            if not isinstance(said, Application):
                remarks.append(f"line {atom.span.line}: what `{atom.name}` has there is known only when it runs")
                continue
            method = found.setdefault((atom.name, said.name), Method(KINDS[atom.name], said.name))
            _add(method.forms, tuple(_parameters(said.arguments, placed)))
            if atom.name == "snd-eval":
                if id(placed.process) in answered:
                    asked[id(placed.process)].clear()
                    answered.discard(id(placed.process))
                asked[id(placed.process)].append(method)
    return list(found.values()), remarks


def _add(found: list[Value] | list[tuple[tuple[str, Value], ...]], each: object) -> None:
    if each not in found:
        found.append(each)  # type: ignore[arg-type]  # the caller has both of one kind


def _parameters(arguments: tuple[Expression, ...], placed: Placed) -> Iterator[tuple[str, Value]]:
    for at, argument in enumerate(arguments, 1):
        name = argument.name if isinstance(argument, Variable) else f"value{at}"
        yield _method_name(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()), quiet_type(argument, placed.scope)


def _class_lines(tool: str, methods: list[Method], remarks: list[str]) -> Iterator[str]:
    yield f'class {_class_name(tool)}(Tool, name="{tool}"):'
    yield f'    """The tool `{tool}`."""'
    for method in methods:
        yield ""
        yield from _method_lines(method)
    if any(method.kind in ("event", "request") for method in methods):
        yield ""
        yield "    def main(self) -> None:"
        yield '        """Do what the tool does by itself; here it may say what is declared above."""'
    for remark in remarks:
        yield f"    # {_remark(remark)}"


def _method_lines(method: Method) -> Iterator[str]:
    name = _method_name(method.name)
    words = ["self"]
    for parameter, types, optional in method.parameters:
        hint = " | ".join(dict.fromkeys(map(_hint, types)))
        words.append(f"{parameter}: {hint}{f' = {_default(types[0])}' if optional else ''}")
    given = " | ".join(dict.fromkeys(map(_hint, method.results))) or "object"
    named = method.kind in ("eval_", "do") and name.rstrip("_").replace("_", "-") != method.name
    yield f'    @{method.kind}("{method.name}")' if named else f"    @{method.kind}"
    yield f"    def {name}({', '.join(words)}) -> {given if method.kind == 'eval_' else 'None'}:"
    yield f'        """{_meaning(method)}"""'
    if method.kind == "eval_":
        yield f"        return {_default(method.results[0] if method.results else ANY)}"


def _meaning(method: Method) -> str:
    match method.kind:
        case "eval_":
            others = " or ".join(f"`{write_text(each)}`" for each in method.results)
            return _remark(f"Answer `{method.name}`{f' with {others}' if others else ''}.")
        case "do":
            return f"Do `{method.name}`."
        case "event":
            return f"Tell the script of `{method.name}`, which it acknowledges if it wants to."
        case _:
            return f"Ask the script `{method.name}`."


def _hint(type_: Value) -> str:
    """Return the hint for values of a type."""
    match type_:
        case Placeholder():
            return _hint(type_.type)
        case Term(name="list", args=(element,)):
            return f"list[{_hint(element)}]"
        case Term(name="list", args=()):
            return "list[object]"
        case Term(name="term", args=()):
            return "object"
        case Term(name=name, args=()) if name in HINTS:
            return HINTS[name]
        case Term():
            return f'Annotated[Term, "{_quoted(write_text(type_))}"]'
        case TermList() if len(type_):
            return f"tuple[{', '.join(map(_hint, type_))}]"
        case _:
            return "object"


def _default(type_: Value) -> str:
    """Return a value of a type, as Python."""
    match type_:
        case Placeholder():
            return _default(type_.type)
        case Term(name="list"):
            return "TermList()"
        case Term(name="term", args=()):
            return 'Term("todo")'
        case Term(name=name, args=()) if name in DEFAULTS:
            return DEFAULTS[name]
        case Term():
            return f"Term({', '.join([repr(type_.name).replace(chr(39), chr(34)), *map(_default, type_.args)])})"
        case TermList():
            return f"TermList({', '.join(map(_default, type_))})"
        case _:
            return repr(type_)


def _class_name(tool: str) -> str:
    return "".join(word.capitalize() for word in re.split(r"[-_]", tool) if word)


def _method_name(name: str) -> str:
    """Return a name as Python can have it; what is a word of Python or of every tool gets an underscore."""
    made = re.sub(r"\W", "_", name.replace("-", "_"))
    return f"{made}_" if keyword.iskeyword(made) or made in TAKEN else made


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _remark(text: str) -> str:
    """Return a text that can stand in a docstring or comment."""
    return text.replace("\\", "/").replace('"""', "'''").replace("\n", " ")
