"""Patterns: what `make` makes, and what `match` takes."""

import pytest
from hypothesis import given

from echoic.errors import EncodeError, MalformedTermError
from echoic.terms import Annotated, Placeholder, Term, TermList, Value, make, match, parse_text, plain
from tests.terms.values import deep, exactly, uncollected, values

MADE: list[tuple[str, tuple[object, ...], str]] = [
    ("f(<int>,<real>,<str>,<bool>,<blob>)", (1, 2.5, "x", True, b"\0"), 'f(1,2.5,"x",true,@blob"AA==")'),
    ("<term>", (Term("x"),), "x"),
    ("[<term>,<term>]", (1, [2]), "[1,[2]]"),
    ("f(<list>)", ([1, 2],), "f(1,2)"),
    ("f(<list>)", ([],), "f"),
    ("f(0,<list>)", ([1, 2],), "f(0,1,2)"),
    ("[0,<list>]", ([1, 2],), "[0,1,2]"),
    ("[<list>]", ([1, 2],), "[1,2]"),
    ("f(<list>,0)", ([1, 2],), "f([1,2],0)"),
    ("<list>", ([1],), "[1]"),
    ("<appl(<int>,<list>)>", ("g", 1, [2, 3]), "g(1,2,3)"),
    ("<fun(1)>", ("g",), "g(1)"),
    ("<id>", ("g",), "g"),
    ("<str(<int>)>", ("two words", 1), '"two words"(1)'),
    ("<placeholder>", (Term("int"),), "<int>"),
    ("f(<other>,<g(1)>)", (), "f(<other>,<g(1)>)"),
]


@pytest.mark.parametrize(("pattern", "args", "text"), MADE)
def test_a_pattern_is_filled_and_read_back(pattern: str, args: tuple[object, ...], text: str) -> None:
    made = make(pattern, *args)
    assert exactly(made, parse_text(text))
    assert make(parse_text(pattern), *args) is made or not isinstance(made, Term)
    taken = match(made, pattern)
    assert taken is not None
    assert TermList(*taken) is TermList(*args)


def test_annotations_are_made_and_not_matched() -> None:
    assert make("f(<int>{a}){<str>}", 1, "x") is parse_text('f(1{a}){"x"}')
    assert match(parse_text("f(1{b}){c}"), "f(<int>{a}){<str>}") == (Annotated(1, Term("b")),)
    assert match(parse_text("f(1{b}){c}"), "<term>") == (parse_text("f(1{b}){c}"),)
    assert match(parse_text("[1{b},2]"), "[1,<list>]") == (TermList(2),)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("1", "<real>"),
        ("true", "<int>"),
        ("1", "<bool>"),
        ("1.0", "1"),
        ("f(1)", "f(2)"),
        ("f(1)", '"f"(1)'),
        ("f(1)", "f(1,2)"),
        ("f", "f(<int>,<list>)"),
        ("f(1)", "<fun>"),
        ('"f"', "<fun>"),
        ("f", "<str>"),
        ("f(1)", "<str(1)>"),
        ("f(1)", "<appl>"),
        ("1", "<appl>"),
        ("f(1)", "<appl(2)>"),
        ("f", "<list>"),
        ("1", "<placeholder>"),
        ("x", "<other>"),
        ("[1]", "f(1)"),
    ],
)
def test_what_a_pattern_does_not_match(text: str, pattern: str) -> None:
    assert match(parse_text(text), pattern) is None


def test_what_a_pattern_takes() -> None:
    for text, pattern, taken in (
        ("true", "<appl>", ("true",)),
        ("true", "<bool>", (True,)),
        ('"x"', "<appl>", ("x",)),
        ("f(1,g(2))", "<appl(<int>,<fun(<term>)>)>", ("f", 1, "g", 2)),
        ("<other>", "<other>", ()),
        ("f", "f(<list>)", (TermList(),)),
        ('"f"', '"f"(<list>)', (TermList(),)),
        ("f([1])", "f(<list>)", (TermList(TermList(1)),)),
    ):
        assert match(parse_text(text), pattern) == taken


def test_what_cannot_be_made_is_refused() -> None:
    for pattern, args, told in (
        ("<int>", (), "no value for `<int>`"),
        ("<int>", (1, 2), "2 values for a pattern of 1"),
        ("<int>", (True,), "expected `int`, got `bool` - at placeholder 1"),
        ("f(<int>,<real>)", (1, 1), "at placeholder 2"),
        ("<appl(1)>", (Term("f"),), "expected `appl`, got `Term`"),
        ("<term>", (object(),), "is not a term"),
    ):
        with pytest.raises(EncodeError, match=told):
            make(pattern, *args)
    for use in (lambda: make("f("), lambda: match(1, "f(")):
        with pytest.raises(MalformedTermError):
            use()


@given(values)
def test_every_value_matches_itself_where_it_is_no_pattern(value: Value) -> None:
    if "<" not in str(value):
        assert match(value, Placeholder(Term("term"))) is not None
        if not isinstance(value, str):
            assert match(value, value) == ()
            assert exactly(make(value), value)
            assert match(plain(value), value) == ()


@pytest.mark.slow
def test_patterns_as_deep_as_values_may_be() -> None:
    with uncollected():
        value: Value = Term("z")
        pattern: Value = Placeholder(Term("fun"))
        for _ in range(100_000):
            value, pattern = Term("f", value), Term("f", pattern)
        assert match(value, pattern) == ("z",)
        assert make(pattern, "z") is value
        assert match(deep(10_000), value) is None
