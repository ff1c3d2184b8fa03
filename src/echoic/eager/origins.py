"""Where the things of a program are written: the source file of a class, and what its module binds to a name.

A program is what would be missing on another machine: everything but the standard library, echoic, and the packages
that are installed. `text` ships the program's own source and leaves the rest to `import`.

Files are read through `linecache`, which also knows what was typed into a notebook.
"""

import ast
import importlib.util
import inspect
import linecache
import site
import sys
import sysconfig
from collections.abc import Iterator
from functools import lru_cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, FunctionType
from typing import Final, TypeAlias

from echoic.errors import LocalError

__all__ = ["Definition", "Home", "bindings", "definition_of", "home_of", "installed"]

Definition: TypeAlias = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
DEFINITIONS: Final = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Home:
    """The module that something is written in: its name, its source, its names."""

    def __init__(self, module: str, file: str) -> None:
        self.module: Final = module
        self.file: Final = file
        known = sys.modules.get(module)
        self.names: Final[dict[str, object]] = vars(known) if known is not None else {}
        self.package: Final = str(self.names.get("__package__") or "")
        linecache.checkcache(file)
        self.lines: Final = linecache.getlines(file, self.names)
        if not self.lines:
            raise LocalError(f"the source of module `{module}` cannot be read, expected it in {file}")
        self.tree: Final = ast.parse("".join(self.lines))

    def text_of(self, node: Definition) -> str:
        """Return the source of a definition, as it would stand at the left margin."""
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        lines = self.lines[first - 1 : node.end_lineno]
        if not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        if not node.col_offset:
            return "".join(lines)
        moved = "".join(line[node.col_offset :] if line[: node.col_offset].isspace() else line for line in lines)
        try:
            if ast.dump(ast.parse(moved).body[0]) == ast.dump(node):
                return moved
        except SyntaxError:  # a text of several lines that does not keep to the margin
            pass
        return "if True:  # keeps its margin\n" + "".join(lines)


def home_of(thing: type | FunctionType) -> Home:
    """Return where a class or function is written.

    Raises:
        LocalError: Its source cannot be read.
    """
    return Home(thing.__module__, _file_of(thing))


def definition_of(thing: type | FunctionType, home: Home) -> tuple[Definition, tuple[ast.AST, ...]]:
    """Return the definition of a class or function, and the definitions it stands in.

    Raises:
        LocalError: There is none, or two that cannot be told apart.
    """
    path = thing.__qualname__.replace(".<locals>", "").split(".")
    lines = {code.co_firstlineno for code in _codes(thing)}
    found = [(node, outer) for node, outer in _definitions(home.tree, path, ())]
    if len(found) > 1 and lines:
        found = [(node, outer) for node, outer in found if any(_spans(node, line) for line in lines)] or found
    if not found:
        raise LocalError(f"`{thing.__qualname__}` is not written in {home.file}; define it with `class` or `def` there")
    return found[-1]


def bindings(tree: ast.Module, name: str) -> list[ast.stmt]:
    """Return the statements at the level of a module that bind a name: definitions, imports and assignments."""
    return [statement for statement in _statements(tree.body) if name in _bound(statement)]


@lru_cache(maxsize=1024)
def installed(module: str) -> bool:
    """Tell whether a module is there on other machines too, as far as one can know: not a part of the program."""
    top = module.partition(".")[0]
    if top == "__main__":
        return False
    if top in sys.stdlib_module_names or top == "echoic":
        return True
    known = sys.modules.get(top)
    spec = known.__spec__ if known is not None else _found(top)
    if spec is None:
        return False
    places = [spec.origin, *(spec.submodule_search_locations or ())]
    return any(_is_inside(Path(place), folder) for place in places if place for folder in _package_folders())


def _found(top: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None


@lru_cache(maxsize=1)
def _package_folders() -> tuple[Path, ...]:
    names = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()}
    return tuple(Path(name).resolve() for name in sorted({*names, site.getusersitepackages()}))


def _is_inside(place: Path, folder: Path) -> bool:
    return place.resolve().is_relative_to(folder)


def _file_of(thing: type | FunctionType) -> str:
    for code in _codes(thing):
        return code.co_filename
    try:
        return inspect.getsourcefile(thing) or ""
    except (TypeError, OSError) as error:
        raise LocalError(f"the source of `{thing.__qualname__}` cannot be found: {error}") from error


def _codes(thing: type | FunctionType) -> Iterator[CodeType]:
    """Yield the code of a function, or of the functions that are written in a class."""
    members = vars(thing).values() if isinstance(thing, type) else [thing]
    for member in members:
        function = getattr(member, "fget", None) or getattr(member, "__func__", member)
        code = getattr(inspect.unwrap(function) if callable(function) else None, "__code__", None)
        if code is not None and code.co_qualname.startswith(f"{thing.__qualname__}"):
            yield code


def _definitions(
    tree: ast.AST, path: list[str], outer: tuple[ast.AST, ...]
) -> Iterator[tuple[Definition, tuple[ast.AST, ...]]]:
    """Yield the definitions of a dotted name."""
    for node in _inside(tree):
        if not isinstance(node, DEFINITIONS) or node.name != path[0]:
            continue
        if len(path) == 1:
            yield node, outer
        else:
            yield from _definitions(node, path[1:], (*outer, node))


def _inside(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield what stands in a block, also under `if` and `try`, but not in definitions."""
    for node in ast.iter_child_nodes(tree):
        yield node
        if not isinstance(node, DEFINITIONS):
            yield from _inside(node)


def _spans(node: Definition, line: int) -> bool:
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    return first <= line <= (node.end_lineno or first)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if not isinstance(statement, DEFINITIONS):
            for node in ast.iter_child_nodes(statement):
                inner = [node] if isinstance(node, ast.stmt) else getattr(node, "body", [])
                if isinstance(inner, list):
                    yield from _statements([each for each in inner if isinstance(each, ast.stmt)])


def _bound(statement: ast.stmt) -> set[str]:
    match statement:
        case ast.Import(names):
            return {alias.asname or alias.name.partition(".")[0] for alias in names}
        case ast.ImportFrom(_, names):
            return {alias.asname or alias.name for alias in names}
        case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            return {statement.name}
        case ast.Assign(targets):
            return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}
        case ast.AnnAssign(ast.Name(name)) | ast.AugAssign(ast.Name(name)):
            return {name}
        case _:
            return set()
