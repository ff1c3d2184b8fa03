"""The second spelling of E-Code: a Python function, limited to the same subset, sent as text.

    def average(input, output):
        total = 0.0
        for i in range(len(input.samples)):
            total += input.samples[i]
        output.mean = total / max(len(input.samples), 1)
        return True

The text is read by `ast.parse` and turned into the same tree that C's spelling gives (`tree`); everything after that,
the checks and both back ends, is the same. Nothing of it is ever executed as Python, and nothing around it is known:
what the function needs, it gets by `param`.

Python's meaning is kept as far as numbers of fixed width can. `/` keeps the fraction, `//` and `%` round down, `**` is
`pow`, comparisons can be chained, `floor` gives an integer, narrow integers and floats are computed with 64 bits. What
differs is this:

- results beyond 64 bits wrap, and a uint64 field is computed with as C does, modulo 2**64;
- a float divided by zero is infinite or NaN, an integer `//` or `%` by zero gives the event up;
- a float `//` is `floor(a / b)`, which can differ from Python's in the last place;
- `and`, `or`, `not` and comparisons are 1 or 0; indexes do not count from the end;
- a variable keeps the type of its first value.

    statements                      assignments, declarations, loops
    expressions                     operators and calls
    arithmetic                      what Python computes otherwise than C
    names                           which names have a value
    places                          lines and columns
    refusals                        everything else, with what to write instead
"""

import ast
import inspect
import re
import types
from collections.abc import Callable
from typing import Final

from echoic.ecode.python_spelling.names import RECORDS
from echoic.ecode.python_spelling.places import Places
from echoic.ecode.python_spelling.refusals import refusal
from echoic.ecode.python_spelling.statements import Statements
from echoic.ecode.syntax import tree
from echoic.ecode.syntax.lexer import check_size
from echoic.ecode.syntax.parser import NESTING_MAX
from echoic.ecode.syntax.text import Problems, SourceText, mistake, quoted
from echoic.errors import ECodeError

__all__ = ["parse_python", "source_of"]

EXPECTED: Final = "expected one function, such as `def f(input): ...`"
TOO_DEEP: Final = f"the code is nested deeper than {NESTING_MAX} levels"
CONTROL: Final = re.compile(r"\r(?!\n)|\0")


def parse_python(text: SourceText) -> tree.Block:
    """Return the tree of a program in Python's spelling.

    Raises:
        ECodeError: It is not one; with every problem that was found.
    """
    problems = Problems(text)
    check_size(problems)
    _check_characters(problems)
    places = Places(text)
    program = tree.Block((), (1, 1), (1, 1))
    try:
        function = _function(_parsed(text), places)
        records = _records(function, places)
        program = Statements(problems, places, records).function(function.body, places.start(function))
    except ECodeError as error:
        problems.keep(error)
    except RecursionError:
        problems.report((1, 1), TOO_DEEP)
    problems.conclude()
    return program


def source_of(function: Callable[..., object]) -> str:
    """Return the text of a function that was written with `def`, without its decorators.

    Raises:
        ECodeError: It is no such function, or its text is not there (as for one that was typed into an interpreter).
    """
    if not isinstance(inspect.unwrap(function), types.FunctionType):
        raise ECodeError(f"expected a function that was written with `def`, got {function!r}")
    name = getattr(function, "__name__", "?")
    if name == "<lambda>":
        raise ECodeError("the text of a `lambda` cannot be told from what surrounds it; write a `def`")
    try:
        lines = inspect.getsource(function).split("\n")
    except (OSError, TypeError, IndentationError) as error:
        raise ECodeError(
            f"the text of `{name}` cannot be found ({error}); write it into a file, or send the text itself"
        ) from error
    margin = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    source = "\n".join(line.removeprefix(margin) for line in lines).rstrip() + "\n"
    found = _first_function(source)
    if found is None:
        raise ECodeError(f"the text of `{name}` is not that of a function written with `def`")
    return "\n".join(source.split("\n")[found.lineno - 1 :])


def _first_function(source: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return body[0] if body and isinstance(body[0], ast.FunctionDef | ast.AsyncFunctionDef) else None


def _check_characters(problems: Problems) -> None:
    """Refuse what Python's parser does not take, or takes for the end of a line where nobody else does."""
    source = problems.text.source
    found = CONTROL.search(source)
    if found is not None:
        what = "a NUL" if found[0] == "\0" else "a carriage return without a line feed"
        problems.report(_position(source, found.start()), f"the code contains {what}")
    problems.conclude()


def _position(source: str, index: int) -> tuple[int, int]:
    return source.count("\n", 0, index) + 1, index - source.rfind("\n", 0, index)


def _parsed(text: SourceText) -> ast.Module:
    try:
        return ast.parse(text.source)
    except SyntaxError as error:
        line = min(max(error.lineno or 1, 1), len(text.lines))
        column = min(max(error.offset or 1, 1), len(text.lines[line - 1]) + 1)
        raise mistake((line, column), f"this is not Python: {error.msg}") from error
    except (RecursionError, MemoryError) as error:
        raise mistake((1, 1), TOO_DEEP) from error
    except ValueError as error:
        raise mistake((1, 1), f"this is not Python: {error}") from error


def _function(module: ast.Module, places: Places) -> ast.FunctionDef:
    """Return the only function of a text; imports before it are not looked at, as nothing is imported."""
    found: ast.FunctionDef | None = None
    for statement in module.body:
        match statement:
            case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant(value=str())):
                continue
            case ast.FunctionDef() if found is None:
                found = statement
            case ast.FunctionDef():
                raise mistake(places.start(statement), f"this is a second function; {EXPECTED}")
            case ast.AsyncFunctionDef():
                raise mistake(places.start(statement), refusal(statement))
            case _:
                raise mistake(places.start(statement), EXPECTED)
    if found is None:
        raise mistake((1, 1), f"there is no function; {EXPECTED}")
    return found


def _records(function: ast.FunctionDef, places: Places) -> tuple[str, ...]:
    """Return the names of the parameters, which must be those of the records."""
    if function.decorator_list:
        raise mistake(
            places.start(function.decorator_list[0]), "decorators are not part of the subset; leave them away"
        )
    given = function.args
    for node in (given.vararg, given.kwarg, *given.kwonlyargs, *given.posonlyargs, *given.defaults):
        if node is not None:
            raise mistake(
                places.start(node), "the parameters are `input`, `output`, `param` and `context`, without `*` or `=`"
            )
    names = tuple(argument.arg for argument in given.args)
    for argument in given.args:
        if argument.arg not in RECORDS:
            name = quoted(argument.arg)
            raise mistake(
                places.start(argument),
                f"the parameters are called `input`, `output`, `param` and `context`, not {name}",
            )
    if names != tuple(name for name in RECORDS if name in names) or "input" not in names:
        raise mistake(
            places.start(function), "the parameters are `input`, and then perhaps `output`, `param` and `context`"
        )
    return names
