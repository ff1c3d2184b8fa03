"""Pure. WHAT tools exchange: terms, their types, patterns and codecs.

Here are the values, their text form, types and patterns, and references to values that are elsewhere. The other forms
are in modules of their own: `saf` (binary, what our tools speak), `taf` (text with sharing), `baf` (read only) and
`appendix_b` (of the thesis).
"""

from echoic.terms.patterns import make, match
from echoic.terms.references import (
    from_placeholder,
    part_of,
    present,
    references_in,
    refers,
    spelled,
    to_placeholder,
    unspelled,
    with_values,
)
from echoic.terms.term import (
    UNDEFINED,
    Annotated,
    Placeholder,
    Reference,
    ReferenceKind,
    Term,
    TermList,
    Value,
    ValueNeeded,
    plain,
    same,
    value_of,
)
from echoic.terms.text import parse_text, write_text
from echoic.terms.types import accepts, is_type, may_hold

__all__ = [
    "UNDEFINED",
    "Annotated",
    "Placeholder",
    "Reference",
    "ReferenceKind",
    "Term",
    "TermList",
    "Value",
    "ValueNeeded",
    "accepts",
    "from_placeholder",
    "is_type",
    "make",
    "match",
    "may_hold",
    "parse_text",
    "part_of",
    "plain",
    "present",
    "references_in",
    "refers",
    "same",
    "spelled",
    "to_placeholder",
    "unspelled",
    "value_of",
    "with_values",
    "write_text",
]
