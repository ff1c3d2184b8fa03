"""The types of the functions that expressions may call; what they do is in `graph/functions.py`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from echoic.terms import Term, Value

__all__ = ["ANY", "BOOL", "INT", "LIST", "REAL", "SIGNATURES", "STR", "Signature"]

BOOL: Final = Term("bool")
INT: Final = Term("int")
REAL: Final = Term("real")
STR: Final = Term("str")
LIST: Final = Term("list")
ANY: Final = Term("term")


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes and gives."""

    arguments: tuple[Value, ...]
    result: Value


def _table(lines: str) -> Mapping[str, Signature]:
    table: dict[str, Signature] = {}
    for line in lines.strip().splitlines():
        names, types = line.split(":")
        arguments, result = types.split("->")
        signature = Signature(tuple(Term(each) for each in arguments.split()), Term(result.strip()))
        table |= dict.fromkeys(names.split(), signature)
    return table


SIGNATURES: Final = _table("""
not                                                      : bool           -> bool
and or                                                   : bool bool      -> bool
equal not-equal                                          : term term      -> bool
add sub mul div mod                                      : int int        -> int
abs                                                      : int            -> int
less less-equal greater greater-equal                    : int int        -> bool
radd rsub rmul rdiv atan2                                : real real      -> real
rabs sin cos atan exp log log10 sqrt                     : real           -> real
rless rless-equal rgreater rgreater-equal                : real real      -> bool
int-to-real                                              : int            -> real
real-to-int                                              : real           -> int
first                                                    : list           -> term
next                                                     : list           -> list
size                                                     : list           -> int
join                                                     : term term      -> list
index                                                    : list int       -> term
replace                                                  : list int term  -> list
get                                                      : list term      -> term
put                                                      : list term term -> list
member                                                   : term list      -> bool
subset                                                   : list list      -> bool
diff inter                                               : list list      -> list
is-bool is-int is-real is-str is-bstr is-appl is-list    : term           -> bool
is-empty is-formal is-var is-result-var                  : term           -> bool
fun args quote sec msec                                  : term           -> term
concat                                                   : str str        -> str
current-time functions                                   :                -> list
process-id                                               :                -> int
process-name                                             :                -> str
get-property                                             : str            -> term
""")
"""The functions by name. Any of them may give `undefined`, which every type has."""
