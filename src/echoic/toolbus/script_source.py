"""Scripts from files: reading them, and what they include."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from echoic.errors import ScriptError
from echoic.scripts.syntax import walk
from echoic.scripts.syntax.loading import load
from echoic.scripts.syntax.tree import Application, Atom, Script

__all__ = ["NO_DEFINES", "executed_tools", "load_script"]

NO_DEFINES: Final[Mapping[str, str]] = MappingProxyType({})
SCRIPT_BYTES_MAX: Final = 16 * 1024 * 1024


def load_script(source: str | Path, *, defines: Mapping[str, str], include: Sequence[str | Path]) -> Script:
    """Return the tree of a script.

    Args:
        source: The path of a file, or the script itself, which has several lines or a `toolbus(...)`.
        defines: Macros, by name.
        include: Folders in which included files are looked for, after that of the file that includes.

    Raises:
        ScriptError: It cannot be read, or is not in order.
    """
    folders = [Path(folder) for folder in include]
    if isinstance(source, str) and _is_text(source):
        return load(source, "<script>", include=_finder(folders), defines=defines)
    path = Path(source)
    try:
        text = _read(path)
    except (OSError, ValueError) as error:
        raise ScriptError(f"the script {path} cannot be read: {error}") from error
    return load(text, str(path), include=_finder(folders), defines=defines)


def executed_tools(script: Script) -> frozenset[str]:
    """Return the names of the tools that a script executes."""
    found: set[str] = set()
    for node in (node for process in script.processes for node in walk(process.body)):
        if isinstance(node, Atom) and node.name == "execute" and node.arguments:
            first = node.arguments[0]
            if isinstance(first, Application):
                found.add(first.name)
    return frozenset(found)


def _is_text(source: str) -> bool:
    """Whether a string is a script rather than the path of one."""
    return "\n" in source or "toolbus(" in source.replace(" ", "")


def _finder(folders: Sequence[Path]) -> Callable[[str, str], tuple[str, str]]:
    """Return what finds included files: beside the one that includes, else in the folders."""

    def find(wanted: str, from_file: str) -> tuple[str, str]:
        for folder in (Path(from_file).parent, *folders):
            path = folder / wanted
            if path.is_file():
                return str(path.resolve()), _read(path)
        raise FileNotFoundError(wanted)

    return find


def _read(path: Path) -> str:
    """Return the text of a file; bytes that are not UTF-8 are taken for Latin-1, in which old scripts were written."""
    if path.stat().st_size > SCRIPT_BYTES_MAX:
        raise ValueError(f"it is longer than {SCRIPT_BYTES_MAX} bytes")
    data = path.read_bytes()
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")
