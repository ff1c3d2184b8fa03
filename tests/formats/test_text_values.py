"""Events as people type them."""

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.cli.declaring import declared_type, is_declaration
from echoic.errors import EchoicError, EncodeError, FormatError
from echoic.formats import Format
from echoic.formats.text_values import fit_event, parse_json, parse_words
from echoic.testing.samples import Trade
from echoic.wire import Batch

POINT = "Point{x: float, y: float = 0}"
FORMAT = Format.of(
    declared_type(
        f"Everything{{text: str, note: str? = null, data: bytes, flag: bool, small: uint8, price: float, "
        f"code: char[4], tags: str[], n: int, samples: float32[n], grid: int16[2][2], at: {POINT}, path: {POINT}[]}}"
    )
)
TYPED: dict[str, object] = {
    "text": "a b",
    "note": None,
    "data": b"\0\1",
    "flag": True,
    "small": 7,
    "price": 75.5,
    "code": b"abc",
    "tags": ["a", "b c"],
    "n": 2,
    "samples": [1.0, 2.0],
    "grid": [[1, 2], [3, 4]],
    "at": {"x": 1.0, "y": 0.0},
    "path": [{"x": 1.0, "y": 2.0}],
}


RELAXED = (
    "{text: a b, data: AAE=, flag: true, small: 7, price: 75.5, code: abc, tags: [a, 'b c'], samples: [1, 2],"
    " grid: [[1, 2], [3, 4]], at: {x: 1}, path: [{x: 1, y: 2}]}"
)
JSON = (
    '{"text": "a b", "data": "AAE=", "flag": true, "small": 7, "price": 75.5, "code": "abc", "tags": ["a", "b c"],'
    '"samples": [1.0, 2.0], "grid": [[1, 2], [3, 4]], "at": {"x": 1.0}, "path": [{"x": 1.0, "y": 2.0}]}'
)
WORDS = (
    "text=a b|data=AAE=|flag=true|small=0x7|price=75.5|code=abc|tags=[a, b c]|samples=[1,2]|grid=[[1,2],[3,4]]"
    "|at={x: 1}|path=[{x: 1, y: 2}]"
)


@pytest.mark.parametrize("words", [[RELAXED], [JSON], WORDS.split("|")], ids=["relaxed", "json", "words"])
def test_three_spellings_of_one_event(words: list[str]) -> None:
    event = fit_event(parse_words(words), FORMAT)
    assert event == TYPED
    assert Batch.of([event], FORMAT).count == 1


def test_a_word_without_quotes_is_what_its_field_is() -> None:
    format = Format.of(declared_type("T{text: str, number: int, ratio: float}"))
    assert fit_event(parse_words(["{text: 75, number: 75, ratio: 75}"]), format) == {
        "text": "75",
        "number": 75,
        "ratio": 75.0,
    }


def test_an_enumeration_is_given_by_name_or_number() -> None:
    for side in ("SELL", "2"):
        event = fit_event(parse_words([f"{{symbol: IBM, price: 1, volume: 2, side: {side}}}"]), Format.of(Trade))
        assert event["side"] == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{price: x}", 'expected `float64`, got "x" - at `Trade.price`'),
        ("{price: [1]}", "expected `float64`, got ['1'] - at `Trade.price`"),
        ('{"price": true}', "expected `float64`, got True - at `Trade.price`"),
        ("{volume: 1.5}", 'expected `int64`, got "1.5" - at `Trade.volume`'),
        ("{prize: 1}", "`Trade` has no field `prize`; did you mean `price`? - at `Trade.prize`"),
        ("{symbol: IBM}", "expected `float64`, but the field is missing - at `Trade.price`"),
        ("{side: UP}", "known are BUY, SELL"),
        ("{price: 1, price: 2}", "field `price` is given twice"),
        ("{price: 1", "expected `,` or `}`, got the end - at character 10"),
        ("{price 1}", 'expected `:`, got "1}" - at character 8'),
        ("{price: }", 'expected a value, got "}" - at character 9'),
        ("{price: 1} 2", 'expected the end, got "2" - at character 12'),
        ("{price: " + "[" * 100, "nested more than 64 deep"),
        ('{symbol: "\\q"}', "a quoted text is malformed"),
        ("price", "expected {field: value, ...} or field=value"),
        ("[1]", "expected {field: value, ...} or field=value"),
    ],
)
def test_a_complaint_says_what_and_where(text: str, said: str) -> None:
    with pytest.raises(EchoicError) as complaint:
        fit_event(parse_words([text]), Format.of(Trade))
    assert said in str(complaint.value)


def test_lines_of_json_must_be_json() -> None:
    with pytest.raises(EncodeError, match="not a line of JSON"):
        parse_json("{symbol: IBM}")


@given(st.text(max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    for parse in (lambda: parse_words(["{" + text]), lambda: declared_type("T{" + text)):
        try:
            parse()
        except EchoicError:
            pass


plain = st.recursive(
    st.text(st.characters(codec="utf-8")) | st.integers() | st.booleans() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.from_regex(r"[a-z_]{1,5}", fullmatch=True), inner),
    max_leaves=10,
)


@settings(max_examples=40)
@given(st.dictionaries(st.from_regex(r"[a-z_]{1,5}", fullmatch=True), plain))
def test_json_in_braces_is_read_as_json(value: dict[str, Any]) -> None:
    assert parse_words([json.dumps(value)]) == value


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("T{a}", "expected `:`"),
        ("T{a: foo}", "no type is called `foo`"),
        (f"T{{a: int[{'9' * 5000}]}}", "a dimension of 5000 characters is none - at character"),
        ("T{a: int", "expected `}`"),
        ("T{}", "expected the name of a field"),
        ("T{a: int} b", "expected the end of the declaration"),
        ("T{a: int = x}", "the default does not fit: expected `int64`"),
        ("T{a: int[n]}", "has no field `n`"),
        ("T{a: " * 20, "nested more than 16 deep"),
        ("nothing.here:T", "cannot import"),
        ("T", "expected MODULE:CLASS or a declaration"),
    ],
)
def test_a_declaration_that_is_none_is_refused(declared: str, said: str) -> None:
    with pytest.raises(FormatError) as complaint:
        declared_type(declared)
    assert said in str(complaint.value)


def test_a_declaration_is_laid_out_like_the_class() -> None:
    declared = declared_type("Station{name: str, latitude: float, longitude: float}")
    assert declared == Format.of(declared_type("echoic.testing.samples:Station"))


@pytest.mark.parametrize(
    ("word", "expected"), [("a.b:C", True), ("T{a: int}", True), ("{a: b}", False), ("a=b:c", False)]
)
def test_types_are_told_from_values(word: str, expected: bool) -> None:
    assert is_declaration(word) is expected


def test_numbers_may_be_special() -> None:
    event = fit_event(parse_words(["{x: nan, y: -inf}"]), Format.of(declared_type(POINT)))
    assert math.isnan(event["x"])
    assert event["y"] == -math.inf
