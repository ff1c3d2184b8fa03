"""Python hints and types of terms, in both directions; methods and names in scripts."""

from typing import Annotated, Any

import pytest

from echoic.errors import EncodeError, FormatError
from echoic.terms import Placeholder, Term, TermList, Value, parse_text
from echoic.toolbus import Tool, do, eval_, event, request
from echoic.toolbus.handlers import script_name
from echoic.toolbus.hints import from_hint, pattern_of, to_hint, type_of


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (int, "int"),
        (float, "real"),
        (str, "str"),
        (bool, "bool"),
        (bytes, "blob"),
        (list, "list"),
        (list[int], "list(int)"),
        (list[list[str]], "list(list(str))"),
        (tuple[int, str], "[int,str]"),
        (tuple[int, ...], "list(int)"),
        (TermList, "list"),
        (Term, "term"),
        (object, "term"),
        (Any, "term"),
        (int | str, "term"),
        (Annotated[Term, "val(int)"], "val(int)"),
        (Annotated[int, "price"], "price"),
    ],
)
def test_hints_are_types_of_terms(hint: object, text: str) -> None:
    assert type_of(hint) == parse_text(text)


@pytest.mark.parametrize("hint", [dict, set[int], complex, Tool])
def test_what_is_no_type_of_terms_is_refused(hint: object) -> None:
    with pytest.raises(FormatError, match="not the type of a term"):
        type_of(hint)


@pytest.mark.parametrize(
    ("hint", "value", "expected"),
    [
        (int, 3, 3),
        (list[int], TermList(1, 2), [1, 2]),
        (list[list[int]], TermList(TermList(1), TermList()), [[1], []]),
        (tuple[int, str], TermList(1, "x"), (1, "x")),
        (TermList, TermList(1), TermList(1)),
        (int | str, "x", "x"),
        (int | list[int], TermList(1), [1]),
        (object, TermList(1), TermList(1)),
        (Annotated[Term, "val(int)"], Term("val", 1), Term("val", 1)),
    ],
)
def test_values_arrive_as_the_hint_says(hint: object, value: Value, expected: object) -> None:
    found = to_hint(hint, value)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (int, "3"),
        (int, 3.0),
        (int, True),
        (bool, 1),
        (float, 1),
        (str, Term("x")),
        (list[int], TermList("x")),
        (int | str, 1.5),
    ],
)
def test_values_that_do_not_fit_are_refused(hint: object, value: Value) -> None:
    with pytest.raises(EncodeError, match=r"expected `.*`, got `.*`"):
        to_hint(hint, value)


def test_an_integer_will_do_where_a_float_is_returned() -> None:
    assert type(from_hint(float, 3)) is float
    with pytest.raises(EncodeError):
        from_hint(int, 3.0)
    with pytest.raises(EncodeError, match="not a term"):
        from_hint(object, {1: 2})


def test_patterns_have_placeholders_where_types_are() -> None:
    assert pattern_of(parse_text("val(int,list(str),[real])")) == parse_text("val(<int>,<list(str)>,[<real>])")
    assert pattern_of(Term("int")) is Placeholder(Term("int"))


def test_names_of_methods_and_of_scripts() -> None:
    assert [script_name(name) for name in ("get_text", "print_", "a")] == ["get-text", "print", "a"]


class Editor(Tool, name="editor"):
    @eval_
    def get_text(self, line: int, column: int = 0) -> str:
        return f"{line}:{column}"

    @do
    def set_text(self, *texts: str) -> None: ...

    @event
    def changed(self, line: int) -> None: ...

    @request
    def may_i(self) -> bool: ...


def test_a_class_offers_what_its_methods_say() -> None:
    assert str(Editor.interface()) == (
        "signature([rec-eval(<editor>,get-text(<int>)),rec-eval(<editor>,get-text(<int>,<int>)),"
        "rec-do(<editor>,<set-text>)],"
        '[snd-value(<editor>,value(<str>)){[value-of,"get-text"]},snd-event(<editor>,changed(<int>)),'
        "snd-request(<editor>,may-i)],[rec-terminate(<editor>,<term>)])"
    )


def test_handlers_are_inherited_and_replaced() -> None:
    class Better(Editor, name="editor"):
        @eval_
        def get_text(self, line: int) -> str:
            return "better"

    assert Better.find_handler("eval", "get-text").required == 1
    assert Better.find_handler("do", "set-text") is not None
    assert Better.find_handler("eval", "set-text") is None


def test_arguments_are_counted_and_checked() -> None:
    handler = Editor.find_handler("eval", "get-text")
    assert handler.arguments((1,)) == [1]
    with pytest.raises(EncodeError, match="1 to 2 arguments, got 3"):
        handler.arguments((1, 2, 3))
    with pytest.raises(EncodeError, match='expected `int`, got `"x"` - at argument 2 of `get-text`'):
        handler.arguments((1, "x"))
    with pytest.raises(EncodeError, match="expected `str`, got `3` - at what `get-text` returns"):
        handler.result(3)


def test_a_wrong_hint_is_told_when_the_class_is_made() -> None:
    with pytest.raises(FormatError, match="dict"):

        class Bad(Tool, name="bad"):
            @eval_
            def look(self, table: dict) -> int:
                return 1


def test_two_methods_cannot_have_one_name() -> None:
    with pytest.raises(FormatError, match="two methods"):

        class Bad(Tool, name="bad"):
            @eval_("x")
            def one(self) -> int:
                return 1

            @eval_("x")
            def two(self) -> int:
                return 2


def test_a_tool_that_is_not_connected_says_so() -> None:
    from echoic.errors import ClosedError

    with pytest.raises(ClosedError, match="not connected"):
        Editor().changed(1)
    with pytest.raises(EncodeError, match="declares no event `x`, only `changed`"):
        Editor().event("x")
