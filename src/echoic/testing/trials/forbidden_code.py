"""What no source of echoic may have in it: ways by which bytes from elsewhere become objects or code.

Unpickling runs whatever the pickle names, and so do its relatives. A text that is executed is ours, made of words of
ours and of numbers, but in one place: `eager/loading.py`, which runs what a listed key has signed, or runs it confined.
The scan reads the syntax tree, so it finds what is there, however it is written, and nothing that is only mentioned.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["EXECUTING", "forbidden_in"]

MODULES: Final = frozenset({"cloudpickle", "dill", "jsonpickle", "marshal", "pickle", "shelve", "_pickle", "_marshal"})
EXECUTING: Final = {
    "eager/loading.py": "somebody else's, once its signer was found in the operator's list",
    "ecode/generated_python/kernel.py": "our own, made of a checked program",
    "testing/bench/derive/compilers.py": "our own, written beside it",
    "wire/decode.py": "our own, made of words of ours and of numbers",
    "wire/encode.py": "our own, made of words of ours and of numbers",
}
"""Who may run a text, by the path below the package, and whose text that is."""
LOADERS: Final = {"yaml": frozenset({"load", "load_all", "unsafe_load", "full_load", "unsafe_load_all"})}
IMPORTERS: Final = frozenset({"import_module", "__import__", "find_spec"})


def forbidden_in(package: Path) -> list[str]:
    """Return all that the sources below a folder must not have, a line for each."""
    found = []
    for path in sorted(package.rglob("*.py")):
        file = path.relative_to(package).as_posix()
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            found += [f"{file}:{line} {what}" for line, what in _faults_of(node, file)]
    return found


def _faults_of(node: ast.AST, file: str) -> Iterator[tuple[int, str]]:
    match node:
        case ast.Import(names):
            for alias in names:
                if alias.name.partition(".")[0] in MODULES:
                    yield node.lineno, f"imports {alias.name}"
        case ast.ImportFrom(module=str(module), names=names):
            wanted = {alias.name for alias in names}
            if module.partition(".")[0] in MODULES:
                yield node.lineno, f"imports {module}"
            if wanted & LOADERS.get(module, frozenset()):
                yield node.lineno, f"imports a loader of {module} that makes any object"
        case ast.Call(function, arguments, keywords):
            yield from ((node.lineno, what) for what in _wrong_calls(function, arguments, keywords, file))
        case _:
            pass


def _wrong_calls(
    function: ast.expr, arguments: list[ast.expr], keywords: list[ast.keyword], file: str
) -> Iterator[str]:
    name, owner = _named(function)
    if name == "eval" and owner in ("", "builtins"):
        yield "calls eval"
    if name == "exec" and owner in ("", "builtins") and file not in EXECUTING:
        yield "calls exec; only `eager/loading.py` runs the text of others"
    if name in LOADERS.get(owner, frozenset()):
        yield f"calls {owner}.{name}, which makes any object"
    if name in IMPORTERS and arguments:
        match arguments[0]:
            case ast.Constant(str(module)) if module.partition(".")[0] in MODULES:
                yield f"imports {module}"
    for keyword in keywords:
        match keyword:
            case ast.keyword("allow_pickle", ast.Constant(False)):
                pass
            case ast.keyword("allow_pickle", _):
                yield f"lets {owner}.{name} unpickle"
            case _:
                continue


def _named(function: ast.expr) -> tuple[str, str]:
    """Return the name of what is called, and of what it is taken from."""
    match function:
        case ast.Name(name):
            return name, ""
        case ast.Attribute(ast.Name(owner), name):
            return name, owner
        case ast.Attribute(_, name):
            return name, "..."
        case _:
            return "", ""
