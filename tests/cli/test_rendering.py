"""Events on the screen: faithful, and harmless."""

import csv
import io
import json
import math

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.cli.declaring import declared_type
from echoic.cli.rendering import Renderer, as_blocks, as_csv, as_json
from echoic.cli.screen import json_text, printable, quoted
from echoic.cli.tables import table_lines
from echoic.errors import FormatError
from echoic.formats import Format
from echoic.formats.text_values import fit_event, parse_words
from echoic.testing.samples import Everything, Trade, sample_events
from echoic.wire import Batch

FORMAT = Format.of(
    declared_type(
        "Report{text: str, note: str?, data: bytes, flag: bool, ratio: float, samples: float32[], "
        "at: Point{x: float, y: float}, path: Step{n: int, name: str}[]}"
    )
)


def reflected(text: str, format: Format = FORMAT) -> object:
    """Return an event as a program has it that never saw its type."""
    return Batch.of([fit_event(parse_words([text]), format)], format).events()[0]


EVENT = reflected(
    "{text: a b, note: null, data: AAEC, flag: true, ratio: 0.1, samples: [1, 2.5], at: {x: 1, y: -2},"
    " path: [{n: 1, name: up}, {n: 2, name: 'no'}]}"
)


def test_blocks_are_yaml() -> None:
    assert as_blocks()(EVENT) == (
        "text: a b\n"
        "note: null\n"
        'data: "\\0\\x01\\x02"\n'
        "flag: true\n"
        "ratio: 0.1\n"
        "samples: [1.0, 2.5]\n"
        "at:\n  x: 1.0\n  y: -2.0\n"
        'path:\n- n: 1\n  name: up\n- n: 2\n  name: "no"\n'
        "---\n"
    )


def test_csv_has_a_column_for_each_leaf() -> None:
    render = as_csv()
    names, row, again = csv.reader(io.StringIO(render(EVENT) + render(EVENT)))
    assert names == ["text", "note", "data", "flag", "ratio", "samples", "at.x", "at.y", "path"]
    assert row == again
    assert row == ["a b", "", "AAEC", "true", "0.1", "[1.0,2.5]", "1.0", "-2.0", row[-1]]
    assert json.loads(row[-1]) == [{"n": 1, "name": "up"}, {"n": 2, "name": "no"}]


def test_json_is_read_back_as_the_same_event() -> None:
    assert fit_event(json.loads(as_json()(EVENT)), FORMAT) == fit_event(json.loads(as_json()(EVENT)), FORMAT)
    text = as_json()(EVENT)
    assert reflected(text) == reflected(text)
    assert as_json()(reflected(text)) == text


def test_a_field_is_picked_by_its_path() -> None:
    assert as_blocks("at.y")(EVENT) == "-2.0\n---\n"
    assert as_csv("at")(EVENT) == "x,y\n1.0,-2.0\n"
    assert as_json("samples")(EVENT) == "[1.0,2.5]\n"
    with pytest.raises(FormatError, match="did you mean `at`"):
        as_blocks("att")(EVENT)
    with pytest.raises(FormatError, match="there are no fields in float"):
        as_blocks("at.x.z")(EVENT)


def test_long_texts_and_arrays_are_cut_on_request() -> None:
    long = reflected("{text: '" + "x" * 300 + "'}", Format.of(declared_type("T{text: str}")))
    assert as_blocks()(long) == "text: " + "x" * 128 + "...\n---\n"
    assert as_blocks("", 0)(long) == "text: " + "x" * 300 + "\n---\n"
    assert as_blocks("samples", 1)(EVENT) == "[1.0, ...]\n---\n"
    assert as_json("samples", 1)(EVENT) == "[1.0]\n"


def test_members_of_enumerations_are_named_for_people() -> None:
    event = Batch.of([Trade("IBM", 75.5, 1)]).to(Format.of(Trade)).events()[0]
    assert "side: 1 (BUY)\n" in as_blocks()(event)
    assert json.loads(as_json()(event))["side"] == 1


def test_numbers_that_json_has_not_are_null() -> None:
    event = reflected("{a: nan, b: [inf, 1]}", Format.of(declared_type("T{a: float, b: float[]}")))
    assert as_json()(event) == '{"a":null,"b":[null,1.0]}\n'
    assert as_blocks()(event) == "a: nan\nb: [inf, 1.0]\n---\n"


@pytest.mark.parametrize("renderer", [as_blocks, as_csv, as_json])
def test_every_sample_can_be_shown(renderer: type[Renderer]) -> None:
    render = renderer()
    for declared in (Everything, Trade):
        batch = Batch.of([event for event in sample_events() if isinstance(event, declared)], declared)
        for event in [*batch.events(), *batch.to(Format.of(declared))]:
            assert render(event).replace("\n", "").replace("\t", "").isprintable()


@given(st.text(st.characters(codec="utf-8")))
def test_no_text_drives_a_terminal(text: str) -> None:
    format = Format.of(declared_type("T{text: str, texts: str[]}"))
    event = Batch.of([{"text": text, "texts": [text]}], format).events()[0]
    for render in (as_blocks(), as_csv(), as_json(), as_blocks("text"), as_csv("text")):
        assert render(event).replace("\n", "").replace("\t", "").isprintable()
    assert json.loads(as_json()(event)) == {"text": text, "texts": [text]}
    assert printable(text).isprintable()
    assert quoted(text).isprintable()
    assert json.loads(json_text(text)) == text
    assert all(line.isprintable() for line in table_lines(["A"], [[text]]))


def test_special_floats_of_numpy_are_told() -> None:
    assert math.isnan(numpy.float32("nan"))
    assert "nan" in as_blocks()(reflected("{a: [nan]}", Format.of(declared_type("T{a: float32[]}"))))


def test_numbers_stand_to_the_right() -> None:
    assert table_lines(["NAME", "COUNT"], [["a", 1], ["long name", 10]]) == [
        "NAME       COUNT",
        "a              1",
        "long name     10",
    ]
