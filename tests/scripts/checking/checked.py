"""Scripts that are checked, and what is found."""

from echoic.scripts.checking import Findings, check
from echoic.scripts.syntax import load

TOOLS = 'tool calc is { command = "calc" }\ntool ui(X : str) is { command = "ui X" }\n'


def findings(text: str) -> Findings:
    """Return what the checks find in a whole script."""
    return check(load(text, "a.tb"))


def in_process(body: str, declared: str = "") -> Findings:
    """Return what the checks find in a process, which stands in line 3 of a script that is in order otherwise."""
    text = f"let {declared} in {body} endlet" if declared else body
    return findings(f"{TOOLS}process P is {text}\ntoolbus(P)")


def errors(found: Findings) -> list[str]:
    """Return errors as `line:column: message`."""
    return [f"{each.line}:{each.column}: {each.message}" for each in found.errors]


def warnings(found: Findings) -> list[str]:
    """Return warnings as `line:column: message`."""
    return [f"{each.line}:{each.column}: {each.message}" for each in found.warnings]
