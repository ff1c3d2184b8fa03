"""Random values, and deep and shared ones.

The strategy gives every kind: integers of any size, reals with their bits, strings and names of any script, quoted
and odd names, tuples, placeholders, annotations anywhere, and parts that stand in many places.
"""

import gc
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import hypothesis.strategies as st

from echoic.terms import Annotated, Placeholder, Term, TermList, Value

BORDERS = tuple(
    sign * (1 << bits) + step
    for bits in (0, 6, 7, 8, 31, 32, 63, 64, 200, 14_100)
    for sign in (1, -1)
    for step in (-1, 0, 1)
)

reals = st.binary(min_size=8, max_size=8).map(lambda bits: struct.unpack("<d", bits)[0]) | st.sampled_from(
    [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1e22, 1e-7, 5e-324, 0.1]
)
texts = st.text(max_size=12) | st.text(alphabet="a\"\\\n\t\r\b\f\0\x1f\x7f'é€🜁 ", max_size=12)
names = st.sampled_from(["f", "g", "get-text", "a+b*$_", "Näme", "名", "true", "", "undefined"]) | texts
scalars = (
    st.booleans()
    | st.integers()
    | st.sampled_from(BORDERS)
    | reals
    | texts
    | st.binary(max_size=80)
    | names.map(lambda name: Term(name) if name not in ("true", "false") else True)
)


def _larger(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    many = st.lists(inner, min_size=1, max_size=4)
    return st.one_of(
        st.builds(lambda name, args, quoted: Term(name, *args, quoted=quoted), names, many, st.booleans()),
        st.lists(inner, max_size=4).map(lambda elements: TermList(*elements)),
        inner.map(Placeholder),
        st.builds(annotated, inner, many),
        inner.map(lambda part: TermList(part, Term("twice", part, part), part)),
    )


def annotated(value: Value, annotations: list[Value]) -> Annotated:
    return Annotated(value.value if isinstance(value, Annotated) else value, *annotations)


values = st.recursive(scalars, _larger, max_leaves=12)


def deep(levels: int) -> Value:
    """Return a value of so many levels; the uppermost are of each kind in turn."""
    value: Value = Term("z")
    for _ in range(levels - 4_000):
        value = Term("f", value)
    for level in range(1_000):
        value = Annotated(Placeholder(TermList(Term("g", value, level & 7))), Term("n"))
    return value


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep the garbage collector from looking again and again at millions of objects that are all in use."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def doubled(levels: int) -> Value:
    """Return a value of so many parts that takes 2 ** levels when it is written out."""
    value: Value = Term("leaf")
    for _ in range(levels):
        value = Term("pair", value, value)
    return value


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


def exactly(one: Value, other: Value) -> bool:
    """Whether two values are the same, kind, bits, annotations and all."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float) and isinstance(other, float):
        return bits(one) == bits(other)
    return one is other if isinstance(one, Term | TermList | Placeholder | Annotated) else one == other
