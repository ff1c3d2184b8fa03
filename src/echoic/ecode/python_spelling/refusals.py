"""What is not part of the Python subset, and what to write instead.

Every construct of Python that the spelling has no use for is refused by its own name, so that nobody has to guess which
part of a line is meant.
"""

import ast
from typing import Final

__all__ = ["refusal", "refused_call"]

LOOP: Final = "use a `for` loop"
REFUSALS: Final[dict[type[ast.AST], tuple[str, str]]] = {
    ast.AsyncFor: ("`async for`", "use a `for` loop"),
    ast.AsyncFunctionDef: ("`async def`", "write a plain `def`"),
    ast.AsyncWith: ("`async with`", "leave it away"),
    ast.Assert: ("`assert`", "use `if` and `return`"),
    ast.Await: ("`await`", "write a plain `def`"),
    ast.ClassDef: ("classes", "declare event types where the channel is opened"),
    ast.Delete: ("`del`", "leave it away; variables end with the event"),
    ast.Dict: ("dictionaries", "use fields and arrays"),
    ast.DictComp: ("dictionary comprehensions", LOOP),
    ast.FormattedValue: ("f-strings", "assign numbers to number fields"),
    ast.FunctionDef: ("functions inside the function", "write their code where it is needed"),
    ast.GeneratorExp: ("generator expressions", LOOP),
    ast.Global: ("`global`", "use `name: static[int64] = 0` for what is kept between events, `param` for what is set"),
    ast.Import: ("`import` inside the function", "mathematical functions are there without it"),
    ast.ImportFrom: ("`import` inside the function", "mathematical functions are there without it"),
    ast.JoinedStr: ("f-strings", "assign numbers to number fields"),
    ast.Lambda: ("`lambda`", "write its expression where it is needed"),
    ast.List: ("lists", "declare an array: `xs: Array[float64, 10]`"),
    ast.ListComp: ("list comprehensions", LOOP),
    ast.Match: ("`match`", "use `if` and `elif`"),
    ast.NamedExpr: ("`:=`", "assign on a line of its own"),
    ast.Nonlocal: ("`nonlocal`", "use `name: static[int64] = 0` for what is kept between events"),
    ast.Raise: ("`raise`", "use `return 0` to discard the event"),
    ast.Set: ("sets", "compare with `==` and `or`"),
    ast.SetComp: ("set comprehensions", LOOP),
    ast.Slice: ("slices", "use a `for` loop over the indexes"),
    ast.Starred: ("`*`", "name each value"),
    ast.Try: ("`try`", "test with `if` before"),
    ast.TryStar: ("`try`", "test with `if` before"),
    ast.Tuple: ("tuples", "assign one value at a time"),
    ast.With: ("`with`", "leave it away"),
    ast.Yield: ("`yield`", "use `return`"),
    ast.YieldFrom: ("`yield from`", "use `return`"),
    ast.MatMult: ("`@`", LOOP),
    ast.In: ("`in`", "compare with `==` and `or`"),
    ast.NotIn: ("`not in`", "compare with `!=` and `and`"),
    ast.Is: ("`is`", "use `==`"),
    ast.IsNot: ("`is not`", "use `!=`"),
}

CALLS: Final = {
    "all": LOOP,
    "any": LOOP,
    "divmod": "use `//` and `%`",
    "enumerate": "use `for i in range(len(...))`",
    "getattr": "write `input.name`",
    "print": "assign to fields of `output`",
    "range": "it stands only in `for i in range(...)`",
    "reversed": "use `range` with a step of -1",
    "round": "it rounds halves to even in Python but away from zero in C; use `floor(x + 0.5)`",
    "sorted": LOOP,
    "str": "texts can only be compared and assigned",
    "sum": LOOP,
    "zip": "use `for i in range(len(...))`",
}


def refusal(node: ast.AST) -> str:
    """Return the message for a construct that is not part of the subset."""
    construct, instead = REFUSALS.get(type(node), (f"`{type(node).__name__}`", "see the E-Code reference"))
    verb = "is" if construct.startswith("`") else "are"
    return f"{construct} {verb} not part of the subset; {instead}"


def refused_call(name: str) -> str | None:
    """Return the message for calling one of Python's own functions, None if there is nothing special to say."""
    instead = CALLS.get(name)
    return None if instead is None else f"`{name}()` is not part of the subset; {instead}"
