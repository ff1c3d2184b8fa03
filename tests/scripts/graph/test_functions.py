import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.scripts.checking.signatures import SIGNATURES
from echoic.scripts.graph import EVALUATION_ERRORS, FUNCTIONS
from echoic.scripts.graph.functions import wrap_int32
from echoic.terms import UNDEFINED, Annotated, Term, TermList, Value, same

elements = st.lists(st.sampled_from([1, 1.0, True, "a", Term("a"), TermList(1)]), max_size=6).map(
    lambda each: TermList(*each)
)
integers = st.integers(-50, 50) | st.integers()


def call(name: str, *arguments: Value) -> Value:
    function = FUNCTIONS[name].call
    assert function is not None
    return function(*arguments)


def test_the_checks_know_the_same_functions() -> None:
    assert {name: (function.parameters, function.result) for name, function in FUNCTIONS.items()} == {
        name: (signature.arguments, signature.result) for name, signature in SIGNATURES.items()
    }


@given(integers, integers.filter(bool))
def test_division_rounds_towards_zero(one: int, other: int) -> None:
    quotient, rest = call("div", one, other), call("mod", one, other)
    assert isinstance(quotient, int)
    assert isinstance(rest, int)
    assert quotient * other + rest == one
    assert abs(rest) < abs(other)
    assert rest == 0 or (rest < 0) == (one < 0)


@given(integers)
def test_a_word_of_32_bits_wraps(number: int) -> None:
    wrapped = wrap_int32(number)
    assert isinstance(wrapped, int)
    assert -(2**31) <= wrapped < 2**31
    assert (wrapped - number) % 2**32 == 0


@given(elements, elements)
def test_difference_and_intersection_share_out_a_list(one: TermList, other: TermList) -> None:
    left, common = call("diff", one, other), call("inter", one, other)
    assert isinstance(left, TermList)
    assert isinstance(common, TermList)
    assert len(left) + len(common) == len(one)
    assert call("subset", common, other) is True
    assert call("subset", common, one) is True
    assert call("subset", one, other) is (len(left) == 0)


@given(elements, st.sampled_from(["a", "b", 1, True]), st.integers())
def test_what_is_put_is_got(keys: TermList, key: Value, value: int) -> None:
    table: Value = TermList()
    for each in keys:
        table = call("put", table, each, 0)
    known = call("get", table, key) is not UNDEFINED
    changed = call("put", table, key, value)
    assert isinstance(table, TermList)
    assert isinstance(changed, TermList)
    assert call("get", changed, key) == value
    assert len(changed) == len(table) + (not known)
    assert all(same(call("get", changed, each), 0) for each in keys if not same(each, key))


@given(elements, st.integers(-2, 8))
def test_an_index_counts_from_one(parts: TermList, position: int) -> None:
    inside = 1 <= position <= len(parts)
    found = call("index", parts, position)
    assert found is parts[position - 1] if inside else found is UNDEFINED
    changed = call("replace", parts, position, "changed")
    assert (changed is parts) is (not inside)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("div", (1, 0)),
        ("mod", (1, 0)),
        ("rdiv", (1.0, 0.0)),
        ("sqrt", (-1.0,)),
        ("log", (0.0,)),
        ("exp", (1e9,)),
        ("real-to-int", (math.inf,)),
        ("real-to-int", (math.nan,)),
        ("int-to-real", (10**400,)),
        ("mul", (1 << 600_000, 1 << 600_000)),
        ("concat", ("x" * 9_000_000, "x" * 9_000_000)),
        ("sec", ("soon",)),
    ],
)
def test_what_has_no_meaning_is_an_error_of_its_kind(name: str, arguments: tuple[Value, ...]) -> None:
    with pytest.raises(EVALUATION_ERRORS):
        call(name, *arguments)


def test_elements_keep_their_annotations() -> None:
    noted = Annotated(1, Term("label"))
    assert call("first", TermList(noted)) is noted
    assert call("join", noted, Annotated(TermList(2), Term("label"))) is TermList(noted, 2)
    assert call("member", noted, TermList(1)) is True
    assert call("get", TermList(TermList(noted, noted)), 1) is noted
