"""Words that make types, and words of C that E-Code has no use for.

unsigned long int      the words of one type, in any order
uint64_t               the same, by its size
"""

from typing import TYPE_CHECKING, Final

from echoic.ecode.numbers import (
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    NUMBERS,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    Number,
)
from echoic.ecode.syntax.text import mistake

if TYPE_CHECKING:
    from echoic.ecode.syntax.lexer import Token

__all__ = ["TYPE_WORDS", "number_of", "refuse_word"]

SIZED: Final = {f"{number}_t": number for number in NUMBERS.values() if not number.floating}
SIGNED: Final = {"char": INT8, "short": INT16, "": INT32, "long": INT64, "long long": INT64}
UNSIGNED: Final = {"char": UINT8, "short": UINT16, "": UINT32, "long": UINT64, "long long": UINT64}
UNSUITABLE: Final = {
    "bool": "a variable cannot be `bool`: use `int`, which is 0 or 1 after a comparison",
    "string": "a variable cannot be `string`: texts are fields of `input`, `output` and `param` only",
    "void": "`void` is not part of E-Code",
}
TYPE_WORDS: Final = frozenset(
    {"char", "short", "int", "long", "signed", "unsigned", "float", "double", *SIZED, *UNSUITABLE}
)
REFUSED: Final = {
    "goto": "labels and `goto` are not part of E-Code",
    "switch": "`switch` is not part of E-Code: use `if` and `else`",
    "case": "`switch` and `case` are not part of E-Code: use `if` and `else`",
    "default": "`switch` and `default` are not part of E-Code: use `if` and `else`",
    "struct": "`struct` is not part of E-Code: records are the types of events",
    "union": "`union` is not part of E-Code",
    "enum": "`enum` is not part of E-Code",
    "typedef": "`typedef` is not part of E-Code",
    "sizeof": "`sizeof` is not part of E-Code",
    "auto": "`auto` is not part of E-Code",
    "extern": "`extern` is not part of E-Code",
    "inline": "`inline` is not part of E-Code",
    "register": "`register` is not part of E-Code",
    "volatile": "`volatile` is not part of E-Code",
}


def number_of(words: list["Token"], following: "Token") -> Number:
    """Return the type that some words mean together; `following` is what stands behind them.

    Raises:
        ECodeError: There are none, or they do not go together.
    """
    if not words:
        raise mistake(following.at, f"expected a type, got {following.shown}")
    kinds = [word.kind for word in words]
    for word in words:
        if word.kind in UNSUITABLE:
            raise mistake(word.at, UNSUITABLE[word.kind])
    found = _combined(kinds)
    if found is None:
        raise mistake(words[0].at, f"`{' '.join(kinds[:8])}` is not a type")
    return found


def refuse_word(token: "Token", where: str) -> None:
    """Say what is wrong with a word that cannot begin a statement or an expression.

    Raises:
        ECodeError: The word is kept for something that is not possible here.
    """
    if token.kind in REFUSED:
        raise mistake(token.at, REFUSED[token.kind])
    if token.text.isidentifier() and token.kind == token.text:
        raise mistake(token.at, f"expected {'a' if where == 'statement' else 'an'} {where}, got the word {token.shown}")


def _combined(kinds: list[str]) -> Number | None:
    match kinds:
        case [word] if word in SIZED:
            return SIZED[word]
        case ["float"]:
            return FLOAT32
        case ["double"]:
            return FLOAT64
        case _:
            pass
    rest = sorted(kinds)
    table = SIGNED
    for sign in ("signed", "unsigned"):
        if sign in rest:
            rest.remove(sign)
            table = SIGNED if sign == "signed" else UNSIGNED
    if "int" in rest and "char" not in rest:
        rest.remove("int")
    if len(kinds) != len(set(kinds)) + (rest == ["long", "long"]) or {"signed", "unsigned"} <= set(kinds):
        return None
    return table.get(" ".join(rest))
