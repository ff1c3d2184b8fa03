"""What is known while a process is put into the form of the tree: its variables, and whatever else it needs.

Variables that nobody declares by `let` belong to the whole process, which gets a `let` around its body for them. The
processes and tools that a process mentions become part of the script, so that nobody has to list them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from echoic.scripts.python_spelling.places import refusal
from echoic.scripts.syntax.tokens import NESTING_MAX

if TYPE_CHECKING:
    from echoic.scripts.python_spelling.behaviours import Behaviour
    from echoic.scripts.python_spelling.definitions import Definition
    from echoic.scripts.python_spelling.tools import ToolDeclaration
    from echoic.scripts.python_spelling.variables import Var
    from echoic.scripts.syntax.tree import Process, Span

__all__ = ["Builder", "Found"]


class Found:
    """The processes and tools of a script, by name, in the order in which they were met."""

    def __init__(self) -> None:
        self.processes: dict[str, Definition] = {}
        self.order: list[Definition] = []
        self.tools: dict[str, ToolDeclaration] = {}
        self.files: dict[str, None] = {}
        """Where all of it was written."""

    def use_process(self, definition: "Definition") -> None:
        """Make a process part of the script.

        Raises:
            ScriptError: Another one has its name.
        """
        known = self.processes.get(definition.name)
        if known is None:
            self.processes[definition.name] = definition
            self.order.append(definition)
        elif known is not definition:
            raise refusal(definition.span, f"two processes are called `{definition.name}`")

    def use_tool(self, tool: "ToolDeclaration") -> None:
        """Make a tool part of the script.

        Raises:
            ScriptError: Another one has its name.
        """
        if self.tools.setdefault(tool.name, tool) is not tool:
            raise refusal(tool.span, f"two tools are called `{tool.name}`")


class Builder:
    """Builds the body of one process."""

    def __init__(self, found: Found) -> None:
        self.found = found
        self.free: dict[str, Var[object]] = {}
        """The variables that nobody has declared, by name, in the order in which they were met."""
        self._scopes: list[dict[str, Var[object]]] = []
        self._depth = 0
        self._made = 0

    def process(self, behaviour: "Behaviour") -> "Process":
        """Return the tree of a behaviour.

        Raises:
            ScriptError: It is not in order, or nested too deeply.
        """
        self._depth += 1
        if self._depth > NESTING_MAX:
            raise refusal(behaviour.span, f"this is nested deeper than {NESTING_MAX}")
        self.found.files[behaviour.span.file] = None
        made = behaviour.build(self)
        self._depth -= 1
        return made

    @contextmanager
    def scope(self, variables: tuple["Var[object]", ...]) -> Iterator[None]:
        """Have variables be declared for what is built meanwhile."""
        self._scopes.append({each.name: each for each in variables})
        yield
        self._scopes.pop()

    def use_variable(self, variable: "Var[object]", span: "Span") -> None:
        """Learn that a variable is used.

        Raises:
            ScriptError: Another type was declared for its name.
        """
        for scope in reversed(self._scopes):
            if variable.name in scope:
                declared = scope[variable.name]
                break
        else:
            declared = self.free.setdefault(variable.name, variable)
        if declared.type is not variable.type:
            known, used = declared.type, variable.type
            raise refusal(span, f"variable `{variable.name}` is used as `{used!s}` here, but declared as `{known!s}`")
        if variable.tool is not None:
            self.found.use_tool(variable.tool)

    def fresh(self, stem: str) -> str:
        """Return a name that no other variable of the process has: those of authors do not begin with `_`."""
        self._made += 1
        return f"_{stem}_{self._made}"
