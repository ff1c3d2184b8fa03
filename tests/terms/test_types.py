"""Which values are of which types, and which types go together."""

import pytest
from hypothesis import given

from echoic.terms import UNDEFINED, Term, TermList, Value, accepts, is_type, may_hold, parse_text
from tests.terms.values import deep, doubled, uncollected, values


@pytest.mark.parametrize(
    ("wanted", "yes", "no"),
    [
        ("bool", "true false undefined", '1 "true" f [] true(1)'),
        ("int", "1 -7 undefined", '1.0 true "1" int [1] <int>'),
        ("real", "1.0 undefined", "1 real"),
        ("str", '"x" undefined', 'x "x"(1) str'),
        ("blob", '@blob"AA=="', '"AA==" blob'),
        ("bstr", '@blob"AA=="', '"AA=="'),
        ("list", "[] [1,x] undefined", "list list(1) 1"),
        ("term", '1 1.0 true "x" [] f(1) <int> @blob"" undefined', ""),
        ("list(int)", "[] [1,2] [1,undefined] undefined", "[1,2.0] 1 list(1) [[1]]"),
        ("list(list(int))", "[[1],[]]", "[1] [[x]]"),
        ("[int,str]", '[1,"a"] undefined', '[1] [1,"a",2] ["a",1] []'),
        ("[]", "[]", "[1]"),
        ("f", "f f(1) f(x,y) undefined", '"f" "f"(1) g g(1) [f]'),
        ("f(int,term)", "f(1,x) f(undefined,2)", 'f f(1) f(x,1) f(1,2,3) "f"(1,2)'),
        ('"f"', '"f" "f"(1)', 'f f(1) "g"'),
        ('"f"(int)', '"f"(1)', 'f(1) "f" "f"(x)'),
        ("<int>", "1", "x"),
        ("f(<int>)", "f(1)", "f(x)"),
        ("list(<f>)", "[f(1),f]", "[g]"),
        ("calc", "calc(1) calc(2)", "calculator(1)"),
        ("list(int,int)", "list(1,2)", "[1,2]"),
        ("true", "true", "false 1"),
        ("(int,int)", "(1,2)", "(1) ()"),
    ],
)
def test_a_type_accepts_its_values_and_no_others(wanted: str, yes: str, no: str) -> None:
    for text in yes.split():
        assert accepts(parse_text(wanted), parse_text(text)), text
    for text in no.split():
        assert not accepts(parse_text(wanted), parse_text(text)), text


def test_annotations_count_nowhere() -> None:
    assert accepts(parse_text("list(int){x}"), parse_text("[1{a},2]{b}"))
    assert not accepts(parse_text("list(int{x})"), parse_text('[1{a},"x"{c}]'))
    assert may_hold(parse_text("f(int{a})"), parse_text("f(<int>)"))
    assert is_type(parse_text("f(int{a})"))


@pytest.mark.parametrize(
    ("one", "yes", "no"),
    [
        ("term", "int f(int) [int] list undefined", ""),
        ("int", "int term <int> undefined", "real f list(int) [int] bool str"),
        ("bool", "bool true false", "int f true(1)"),
        ("blob", "bstr blob", "str"),
        ("list", "list list(int) [] [int,str]", "f int"),
        ("list(int)", "list(int) list list(term) [int,int] []", "list(str) [int,str] f(int) int"),
        ("[int,str]", "[int,str] [term,str] list list(term)", "[int] [int,int] list(int)"),
        ("f", "f f(int) f(int,str)", 'g g(int) "f"'),
        ("f(int,str)", "f f(int,str) f(term,str)", "f(int,int) f(int) f(str,str) f(int,str,int)"),
        ("f(g(int))", "f(g) f(g(term))", "f(g(str)) f(h)"),
        ('"f"', '"f" "f"(int) str', '"g" f'),
    ],
)
def test_types_go_together_if_a_value_could_be_of_both(one: str, yes: str, no: str) -> None:
    for text, wanted in [(text, True) for text in yes.split()] + [(text, False) for text in no.split()]:
        assert may_hold(parse_text(one), parse_text(text)) is wanted, text
        assert may_hold(parse_text(text), parse_text(one)) is wanted, text


def test_what_can_be_a_type() -> None:
    for text in ["int", "list(int)", "[int,str]", "f(g,<h>)", "term", "undefined", "true"]:
        assert is_type(parse_text(text))
    for text in ["1", "f(1)", "[2.5]", "<3>", '@blob""', "list(7)"]:
        assert not is_type(parse_text(text))


@given(values)
def test_everything_is_a_term_and_goes_with_itself(value: Value) -> None:
    assert accepts(Term("term"), value)
    assert accepts(value, UNDEFINED)
    assert may_hold(value, value)
    assert may_hold(Term("term"), value)


@pytest.mark.slow
def test_types_as_deep_and_as_shared_as_values_may_be() -> None:
    bomb = doubled(300)
    assert accepts(bomb, bomb)
    assert may_hold(bomb, bomb)
    assert is_type(bomb)
    with uncollected():
        tall = deep(100_000)
        assert may_hold(tall, tall)
        assert not is_type(tall)
        assert not accepts(TermList(tall), TermList(1))
