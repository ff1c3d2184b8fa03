"""Programs: a script as it can be run or explored.

`compile` looks at nothing but the names; graphs are made when a process is first created and grow as its nodes are
reached. A program can serve any number of machines, one after the other or in turns, in one thread.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from echoic.errors import ScriptError
from echoic.scripts.graph.atoms import refused
from echoic.scripts.graph.compiler import Compiler
from echoic.scripts.graph.edges import Node
from echoic.scripts.graph.expressions import Options
from echoic.scripts.graph.scopes import Scope
from echoic.scripts.graph.templates import substitute
from echoic.scripts.syntax import walk
from echoic.scripts.syntax.tree import Formal, LeftBiased, RightBiased, Script, ToolDefinition
from echoic.terms import Value, accepts, plain

__all__ = ["Graph", "Program", "compile"]

DEFAULTS = Options()


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """What a process can do, shared by its instances, which begin at `start` with arguments as first slots."""

    name: str
    formals: tuple[Formal, ...]
    start: Node
    compiler: Compiler

    @property
    def slot_names(self) -> list[str]:
        """What the variables are called in what was reached of it."""
        return self.compiler.slot_names

    def takes(self, arguments: tuple[Value, ...]) -> bool:
        """Whether these arguments are as many as wanted, and of the right types."""
        return len(arguments) == len(self.formals) and all(
            accepts(formal.type, plain(argument)) for formal, argument in zip(self.formals, arguments, strict=True)
        )

    def starting(self, arguments: tuple[Value, ...]) -> tuple[str, tuple[Value, ...]]:
        """Return its name and the arguments it is started with.

        Raises:
            ScriptError: They are not of the types that are wanted.
        """
        if not self.takes(arguments):
            raise ScriptError(f"process `{self.name}` is started with arguments of other types than it wants")
        return self.name, arguments


class Program:
    """A script compiled; `initial` are the processes that are started, each with its arguments."""

    def __init__(self, script: Script, options: Options = DEFAULTS) -> None:
        self.script = script
        self.options = options
        self.tools: dict[str, ToolDefinition] = {tool.name: tool for tool in script.tools}
        self._definitions = {process.name: process for process in script.processes}
        self._graphs: dict[str, Graph] = {}
        self.biased: bool = any(isinstance(part, LeftBiased | RightBiased) for part in _parts(script))
        """Whether something is preferred somewhere: then it matters at once what everybody could do."""
        self.initial: tuple[tuple[str, tuple[Value, ...]], ...] = self._initial()

    def knows(self, name: str) -> bool:
        """Whether there is a process of this name."""
        return name in self._definitions

    def graph(self, name: str) -> Graph:
        """Return the graph of a process.

        Raises:
            ScriptError: There is no such process, or it is not in order.
        """
        found = self._graphs.get(name)
        if found is None:
            if name not in self._definitions:
                raise ScriptError(f"undeclared process `{name}`")
            compiler = Compiler(self._definitions, self.options)
            found = Graph(name, self._definitions[name].formals, compiler.begin(name), compiler)
            self._graphs[name] = found
        return found

    def _initial(self) -> tuple[tuple[str, tuple[Value, ...]], ...]:
        compiler = Compiler(self._definitions, self.options)
        nobody = Scope({}, ())
        found = []
        for configuration in self.script.configurations:
            for call in configuration.calls:
                definition = self._definitions.get(call.name)
                arguments = tuple(substitute(compiler.pattern(part, nobody), ()) for part in call.arguments)
                if definition is None or len(definition.formals) != len(arguments):
                    raise refused(call.span, f"there is no process `{call.name}` with {len(arguments)} parameter(s)")
                found.append((call.name, arguments))
        return tuple(found)


def _parts(script: Script) -> Iterator[object]:
    for process in script.processes:
        yield from walk(process.body)


def compile(script: Script, options: Options = DEFAULTS) -> Program:  # noqa: A001 - the word for it
    """Return a script as it can be run, which should have been checked.

    Raises:
        ScriptError: What is started is not there.
    """
    return Program(script, options)
