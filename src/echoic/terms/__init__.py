"""Pure. WHAT tools exchange: terms, their types, patterns and codecs.

Here are the values, their text form, types and patterns. The other forms are in modules of their own: `saf` (binary,
what our tools speak), `taf` (text with sharing), `baf` (read only) and `appendix_b` (of the thesis).
"""

from echoic.terms.patterns import make, match
from echoic.terms.term import UNDEFINED, Annotated, Placeholder, Term, TermList, Value, plain, same, value_of
from echoic.terms.text import parse_text, write_text
from echoic.terms.types import accepts, is_type, may_hold

__all__ = [
    "UNDEFINED",
    "Annotated",
    "Placeholder",
    "Term",
    "TermList",
    "Value",
    "accepts",
    "is_type",
    "make",
    "match",
    "may_hold",
    "parse_text",
    "plain",
    "same",
    "value_of",
    "write_text",
]
