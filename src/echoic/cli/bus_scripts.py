"""Scripts as the verbs of `echoic bus` are given them: a file, macros, and folders for what it includes."""

import sys
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from echoic.cli.screen import printable, say
from echoic.errors import LocalError

if TYPE_CHECKING:
    from echoic.scripts.checking import Findings
    from echoic.scripts.syntax.tree import Script

__all__ = ["FAILED", "NOT_FOUND", "PLAIN", "Preparation", "find_file", "say_error", "say_findings"]

FAILED: Final = 1
NOT_FOUND: Final = 3
NEIGHBOURS_MAX: Final = 1000


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Preparation:
    """How the text of a script is read."""

    define: Annotated[
        list[str] | None,
        Parameter(
            name=["--define", "-D"],
            help="Define a macro, NAME or NAME=TEXT; repeat it for more.",
            negative=(),
            show_default=False,
        ),
    ] = None
    include: Annotated[
        list[Path] | None,
        Parameter(
            name=["--include", "-I"],
            help="A folder for included files, after the one of the script; repeat it for more.",
            negative=(),
            show_default=False,
        ),
    ] = None

    @property
    def defines(self) -> dict[str, str]:
        """The macros by name.

        Raises:
            LocalError: One has no name.
        """
        found: dict[str, str] = {}
        for word in self.define or ():
            name, _, text = word.partition("=")
            if not name.strip():
                raise LocalError(f"expected NAME=TEXT, got `{word}` - at -D")
            found[name.strip()] = text
        return found

    @property
    def folders(self) -> list[Path]:
        """Where included files are looked for."""
        return self.include or []

    def load(self, path: Path) -> "Script":
        """Return the tree of a script; the verb ends where there is none.

        Raises:
            ScriptError: It is not in order.
        """
        from echoic.toolbus.script_source import load_script

        return load_script(find_file(path, "script"), defines=self.defines, include=self.folders)


PLAIN: Final = Preparation()


def find_file(path: Path, what: str) -> Path:
    """Return the path of a file that is there; the verb ends with the exit code for `not found` otherwise."""
    if path.is_dir():
        say_error(f"{path} is a folder: name a {what} in it")
        sys.exit(NOT_FOUND)
    if not path.exists():
        from echoic.scripts.syntax.problems import did_you_mean

        say_error(f"there is no {what} {path}{did_you_mean(str(path), _neighbours(path))}")
        sys.exit(NOT_FOUND)
    return path


def _neighbours(path: Path) -> list[str]:
    """Return the files beside one that is not there."""
    try:
        return [str(path.parent / each.name) for each in islice(path.parent.iterdir(), NEIGHBOURS_MAX)]
    except OSError:
        return []


def say_error(text: str) -> None:
    """Say what went wrong, on stderr."""
    head = "\033[1;31merror:\033[0m" if sys.stderr.isatty() else "error:"
    print(head, printable(text, keep="\n\t"), file=sys.stderr, flush=True)


def say_findings(findings: "Findings") -> None:
    """Say what static checks warn of, with lines and carets, on stderr."""
    for warning in findings.warnings:
        say(findings.warning_text(warning))
