"""What the checks share: the script by name, and what they found."""

from typing import TYPE_CHECKING, Final

from echoic.scripts.syntax.problems import Problems
from echoic.scripts.syntax.tree import ProcessDefinition, Script, ToolDefinition

if TYPE_CHECKING:
    from echoic.scripts.syntax.tree import Span

__all__ = ["Context"]

PROBLEMS_MAX: Final = 1000


class Context:
    """One check of one script."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.processes: dict[str, ProcessDefinition] = {}
        self.tools: dict[str, ToolDefinition] = {}
        for process in script.processes:
            self.processes.setdefault(process.name, process)
        for tool in script.tools:
            self.tools.setdefault(tool.name, tool)
        self.errors = Problems(script.sources, PROBLEMS_MAX)
        self.warnings = Problems(script.sources, PROBLEMS_MAX)

    def error(self, span: "Span", message: str) -> None:
        """Keep an error."""
        self.errors.report_at(span, message)

    def warn(self, span: "Span", message: str) -> None:
        """Keep a warning."""
        self.warnings.report_at(span, message)
