"""The tree to text and back."""

import pytest
from hypothesis import given, settings

from echoic.errors import EncodeError
from echoic.scripts.syntax import load, write_process, write_script, write_type
from echoic.scripts.syntax.tree import Script
from tests.scripts.syntax.scripts import scripts
from tests.scripts.syntax.shapes import body_of, shape


@given(scripts)
@settings(max_examples=100, deadline=None)
def test_what_is_written_is_read_as_the_same(script: Script) -> None:
    text = write_script(script)
    again = load(text)
    assert shape(again) == shape(script)
    assert write_script(again) == text


@pytest.mark.parametrize(
    "text",
    [
        "a . b + c . d",
        "(a + b) . (c + d)",
        "a * b * c",
        "a * (b * c)",
        "(a . b) . c",
        "a . b . c",
        "(a +> b) +> c",
        "a >> b * c . d + e <+ f +> g || h",
        "a >> (b * (c . (d + (e <+ (f +> (g || h))))))",
    ],
)
def test_parentheses_stand_only_where_they_are_needed(text: str) -> None:
    text = "".join(character.upper() if character.isalpha() else character for character in text)
    assert write_process(body_of(text)) == text


def test_long_processes_have_a_line_for_each_part() -> None:
    text = """process SERVER(PORT : int) is
  let
    REQUEST : term,
    ANSWER : term
  in
    ( rec-msg(request(PORT, REQUEST?)) . ANSWER := quote(answer(REQUEST)) . snd-msg(reply(PORT))
    + rec-msg(stop(PORT))
      . printf("this server has been stopped by somebody, it will not answer any more\\n")
      . shutdown("stopped")
    )
    * delta
  endlet
"""
    assert write_script(load(text)) == text


def test_a_sequence_may_be_very_long() -> None:
    text = "process P is\n  " + "\n  . ".join(["tau"] * 5_000) + "\n"
    assert write_script(load(text)) == text


def test_what_no_script_can_have_is_refused() -> None:
    for value in (b"blob", float("nan")):
        with pytest.raises(EncodeError):
            write_type(value)
