"""The source text that travels: a class, and what of the program it needs to be that class somewhere else.

A class is more than its lines. They name functions, constants and other classes of the program, modules, and things
from packages. `source_text` follows these names and returns one text that defines all of them, in an order in which it
can be run from top to bottom:

    from __future__ import annotations         annotations of functions are never looked at
    import math                                modules, as the program's file imports them
    from echoic import Modulator               names of echoic and of installed packages
    LIMIT = 40.0                               constants, by the value they have
    def distance(a, b): ...                    functions and classes of the program, from whichever of its files
    class Window(Modulator): ...               the class itself

Names are found in the text by Python's own symbol tables, which tell a global name from an attribute or a local
variable of the same name. What a name means is looked up in the statement that binds it, because a value does not say
where it came from: `pi` is a float, and `from math import pi` is better than its digits.

What cannot travel is refused here, with the name and what to do about it, and not on a machine far away: local
variables of a function around the class, open files, locks, arrays. The alternative, pickling code objects as
`cloudpickle` does, ships such things too, and everything they refer to; nobody can read what was sent, it works only
between equal versions of Python, and unpickling it runs it.

The same class gives the same text in every process, whatever the order of sets there: equal modulators are found
by comparing texts.
"""

import ast
import builtins
import importlib.util
import math
import symtable
import sys
from collections.abc import Iterable, Iterator
from types import FunctionType, ModuleType, NoneType
from typing import Final
from weakref import WeakKeyDictionary

from echoic.eager.origins import Definition, Home, bindings, definition_of, home_of, installed
from echoic.errors import LocalError

__all__ = ["TEXT_BYTES_MAX", "source_text"]

TEXT_BYTES_MAX: Final = 64 * 1024
NAMES_MAX: Final = 1024
NESTING_MAX: Final = 64
FUTURE: Final = "from __future__ import annotations\n"
OF_EVERY_MODULE: Final = frozenset({"__name__", "__doc__", "__class__", "__module__", "__qualname__"})
RUN_AT_ONCE: Final = frozenset({"listcomp", "setcomp", "dictcomp", "genexpr", "lambda"})
ADVICE: Final = "make it typed state of the modulator, or make it in `start`"

_texts: Final[WeakKeyDictionary[type, str]] = WeakKeyDictionary()


def source_text(cls: type) -> str:
    """Return the text that defines a class on another machine; it is made once, with the constants as they are then.

    Raises:
        LocalError: It names something that cannot travel; the message says what, where, and what to do.
    """
    known = _texts.get(cls)
    if known is None:
        known = _texts[cls] = _written(cls)
    return known


def _written(cls: type) -> str:
    if cls.__module__.partition(".")[0] == "echoic" and "<locals>" not in cls.__qualname__:
        return f"from {cls.__module__} import {cls.__name__}\n"
    gathering = Gathering(cls)
    text = gathering.text()
    size = len(text.encode())
    if size > TEXT_BYTES_MAX:
        raise LocalError(
            f"the text of `{cls.__name__}` and of what it names has {size} bytes, limit is {TEXT_BYTES_MAX}"
        )
    _check_defines(text, cls.__name__)
    return text


class Gathering:
    """The search for what a class needs: every name is followed once."""

    def __init__(self, cls: type) -> None:
        self._cls = cls
        self._own = cls.__module__.partition(".")[0]
        self._homes: dict[str, Home] = {}
        self._imports: set[str] = set()
        self._parts: list[str] = []
        self._meanings: dict[str, object] = {}

    def text(self) -> str:
        """Return the whole text.

        Raises:
            LocalError: As `source_text` does.
        """
        home = self._homes[self._cls.__module__] = home_of(self._cls)
        node, outer = definition_of(self._cls, home)
        self._claim(node.name, self._cls, home)
        self._define(node, home, _locals(outer))
        imports = "".join(f"{line}\n" for line in sorted(self._imports))
        return "\n\n".join([FUTURE + imports, *self._parts])

    def _define(self, node: Definition, home: Home, local: frozenset[str] = frozenset()) -> None:
        """Add a definition: first what it needs when it is run, then itself, then what it needs when it is called."""
        at_once, later = _names(node)
        for name in sorted((at_once | later) & local):
            raise LocalError(
                f"`{name}` is a local variable of the function around `{node.name}` and cannot travel; define it at "
                f"the level of the module, or {ADVICE}"
            )
        for name in sorted(at_once):
            self._follow(name, home, node.name)
        self._parts.append(home.text_of(node))
        for name in sorted(later - at_once):
            self._follow(name, home, node.name)

    def _follow(self, name: str, home: Home, user: str) -> None:
        """Add what a name of a module means."""
        if name in OF_EVERY_MODULE:
            return
        if name not in home.names:
            if not hasattr(builtins, name):
                raise LocalError(f"`{user}` names `{name}`, which is not defined in module `{home.module}`")
            return
        value = home.names[name]
        if not self._claim(name, value, home):
            return
        found = bindings(home.tree, name)
        imports = [each for each in found if isinstance(each, ast.Import | ast.ImportFrom)]
        definitions = [
            each for each in found if isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        if definitions and len(definitions) == len(found):
            self._define(_chosen(definitions, value), home)
        elif imports and len(imports) == len(found):
            if not sum(self._import(statement, name, home, user) for statement in imports):
                self._add_value(name, value, home, user)
        elif found and (imports or definitions):
            raise LocalError(
                f"`{name}` is bound in several ways in module `{home.module}`, expected one - used by `{user}`"
            )
        else:
            self._add_value(name, value, home, user)

    def _import(self, statement: ast.Import | ast.ImportFrom, name: str, home: Home, user: str) -> bool:
        """Add an import of the program, or what it imports if that is the program's own, and return whether that fits.

        Of several, as in `try` and `except ImportError`, only the one is added that gave the name its value.
        """
        value, found = home.names[name], False
        for alias in statement.names:
            if isinstance(statement, ast.Import):
                bound = alias.asname or alias.name.partition(".")[0]
                if bound == name and sys.modules.get(alias.name if alias.asname else bound) is value:
                    self._import_module(alias.name, alias.asname, user)
                    found = True
            elif (alias.asname or alias.name) == name:
                module = importlib.util.resolve_name("." * statement.level + (statement.module or ""), home.package)
                if getattr(sys.modules.get(module), alias.name, None) is value:
                    self._import_name(module, alias.name, name, user)
                    found = True
        return found

    def _import_module(self, module: str, alias: str | None, user: str) -> None:
        if self._of_the_program(module):
            raise LocalError(
                f"module `{module}` is a part of this program and not there on other machines; import what is needed "
                f"from it by name, `from {module} import ...` - used by `{user}`"
            )
        self._imports.add(f"import {module}" + (f" as {alias}" if alias else ""))

    def _import_name(self, module: str, name: str, alias: str, user: str) -> None:
        if not self._of_the_program(module):
            self._imports.add(f"from {module} import {name}" + (f" as {alias}" if alias != name else ""))
            return
        if isinstance(getattr(sys.modules.get(module), name, None), ModuleType):
            self._import_module(f"{module}.{name}", alias, user)
        home = self._home(module)
        if alias == name:
            del self._meanings[name]  # it is followed further, in the module where it is bound
        self._follow(name, home, user)
        if alias != name:
            self._parts.append(f"{alias} = {name}\n")

    def _add_value(self, name: str, value: object, home: Home, user: str) -> None:
        """Add what no definition or import of the module explains: a constant, or something of a notebook's cell."""
        if isinstance(value, ModuleType):
            self._import_module(value.__name__, name, user)
        elif not isinstance(value, type | FunctionType):
            literal = _literal(value, f"`{name}` of module `{home.module}`, used by `{user}`")
            self._parts.append(f"{name} = {literal}\n")
        elif self._of_the_program(value.__module__):
            written = home_of(value)
            node, outer = definition_of(value, written)
            self._define(node, written, _locals(outer))
            if node.name != name:
                self._parts.append(f"{name} = {node.name}\n")
        else:
            self._imports.add(f"from {value.__module__} import {value.__qualname__} as {name}")

    def _of_the_program(self, module: str) -> bool:
        """Tell whether a module must be shipped; for a modulator of an installed package, that whole package is."""
        top = module.partition(".")[0]
        return not installed(module) or (top == self._own and top != "echoic" and top not in sys.stdlib_module_names)

    def _home(self, module: str) -> Home:
        if module not in self._homes:
            self._homes[module] = Home(module, getattr(sys.modules.get(module), "__file__", None) or "")
        return self._homes[module]

    def _claim(self, name: str, value: object, home: Home) -> bool:
        """Note what a name of the text means; return whether it was free.

        Raises:
            LocalError: It means something else already.
        """
        if name not in self._meanings:
            self._meanings[name] = value
            if len(self._meanings) > NAMES_MAX:
                raise LocalError(f"`{self._cls.__name__}` needs more than {NAMES_MAX} names, limit is {NAMES_MAX}")
            return True
        if self._meanings[name] is value:
            return False
        raise LocalError(
            f"`{name}` of module `{home.module}` is another thing than the `{name}` that is in the text already, and a "
            f"modulator travels as one text; rename one of them"
        )


def _chosen(definitions: list[Definition], value: object) -> Definition:
    """Return the definition that a value comes from, of several under `if` or `try`."""
    line = getattr(getattr(value, "__code__", None), "co_firstlineno", 0)
    spanning = [each for each in definitions if each.lineno <= line <= (each.end_lineno or 0)]
    return (spanning or definitions)[-1]


def _locals(outer: Iterable[ast.AST]) -> frozenset[str]:
    """Return the local variables of the functions that a definition stands in."""
    found: set[str] = set()
    for node in outer:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            table = symtable.symtable(ast.unparse(node), "<function>", "exec")
            for child in table.get_children():
                if isinstance(child, symtable.Function) and child.get_name() == node.name:
                    found.update(child.get_locals())
    return frozenset(found)


def _names(node: Definition) -> tuple[set[str], set[str]]:
    """Return the global names that a definition needs when it is run, and those it needs when it is called."""
    annotations = [each.annotation for each in _class_annotations(node)]
    bare = _WithoutAnnotations().visit(ast.parse(ast.unparse(node)))
    at_once: set[str] = set()
    later: set[str] = set()
    _collect(symtable.symtable(ast.unparse(bare), "<text>", "exec"), at_once, later)
    for annotation in annotations:
        at_once |= _annotation_names(annotation)
    return at_once - {node.name}, later - {node.name}


def _collect(table: symtable.SymbolTable, at_once: set[str], later: set[str]) -> None:
    for symbol in table.get_symbols():
        if symbol.is_global() and symbol.is_referenced():
            at_once.add(symbol.get_name())
    for child in table.get_children():
        called = isinstance(child, symtable.Function) and child.get_name().strip("<>") not in RUN_AT_ONCE
        _collect(child, later if called else at_once, later)


def _class_annotations(node: ast.AST) -> Iterator[ast.AnnAssign]:
    """Yield the annotated attributes of a class and of classes inside it; those of functions mean nothing."""
    if isinstance(node, ast.ClassDef):
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign):
                yield statement
            yield from _class_annotations(statement)


def _annotation_names(annotation: ast.expr) -> set[str]:
    """Return the names in an annotation; one in quotes is an annotation too, a part in quotes may be anything."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return set()
    return {each.id for each in ast.walk(annotation) if isinstance(each, ast.Name)}


class _WithoutAnnotations(ast.NodeTransformer):
    """Takes the meaning out of annotations, which are not looked at where the text runs."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)


def _literal(value: object, place: str, depth: int = 0) -> str:
    """Return Python for a plain value.

    Raises:
        LocalError: It is none.
    """
    if depth > NESTING_MAX:
        raise LocalError(f"{place} is nested more than {NESTING_MAX} deep, limit is {NESTING_MAX}")
    kind = type(value)
    if kind in (bool, int, str, bytes, complex, range, NoneType):
        return repr(value)
    if isinstance(value, float) and kind is float:
        return repr(value) if math.isfinite(value) else f'float("{value}")'
    if isinstance(value, dict) and kind is dict:
        parts = [[_literal(each, place, depth + 1) for each in item] for item in value.items()]
        return "{" + ", ".join(f"{key}: {each}" for key, each in parts) + "}"
    if not isinstance(value, list | tuple | set | frozenset) or kind not in (list, tuple, set, frozenset):
        raise LocalError(f"{place} is a {kind.__name__} and cannot travel in a text; {ADVICE}")
    parts_of = [_literal(each, place, depth + 1) for each in value]
    if isinstance(value, set | frozenset):
        return f"{kind.__name__}([{', '.join(sorted(parts_of))}])"
    if isinstance(value, tuple):
        return f"({', '.join(parts_of)}{',' * (len(parts_of) == 1)})"
    return f"[{', '.join(parts_of)}]"


def _check_defines(text: str, name: str) -> None:
    """Refuse a text that is no Python, or in which the class is not at the level of the module."""
    try:
        compile(text, "<text>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise LocalError(f"the text of `{name}` cannot be compiled: {error}") from error
    found = [each for each in ast.parse(text).body if isinstance(each, ast.ClassDef | ast.If)]
    inside = [inner for each in found for inner in (each.body if isinstance(each, ast.If) else [each])]
    if not any(isinstance(each, ast.ClassDef) and each.name == name for each in inside):
        raise LocalError(f"the text of `{name}` does not define it; is it called so in its own source?")
