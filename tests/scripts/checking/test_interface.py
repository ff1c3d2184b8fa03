"""What a script wants from a tool."""

import pytest

from echoic.errors import ScriptError
from echoic.scripts.checking import Interface, interface, mismatch
from echoic.scripts.syntax import load
from echoic.terms import Placeholder, Term

SCRIPT = """
tool calc is { command = "calc" }
tool ui is { command = "ui" }
process CALC is
let C : calc, U : ui, E : str, V : term, N : int, L : list(int) in
  execute(calc, C?) . rec-connect(U?) .
  ( snd-eval(C, expr(E)) . rec-value(C, val(V?)) . snd-eval(C, expr("a"))
  + snd-do(C, show([1, N], sub(L, <real>), true))
  + rec-event(U, button(E?), 3) . snd-ack-event(U, button(E))
  + rec-request(U, find(E?)) . snd-response(U, found(V))
  + snd-do(U, V)
  ) * snd-terminate(C, done)
endlet
toolbus(CALC)
"""


def test_atoms_are_the_entries_of_the_interface() -> None:
    found = interface(load(SCRIPT), "calc")
    assert str(found.term) == (
        "signature([rec-eval(<calc>,expr(<str>)),rec-do(<calc>,show([<int>,<int>],sub(<list(int)>,<real>),<bool>))],"
        "[snd-value(<calc>,val(<term>))],"
        "[snd-connect(<calc>),snd-disconnect(<calc>),rec-terminate(<calc>,<term>)])"
    )


def test_the_interface_is_text_of_fixed_columns() -> None:
    assert interface(load(SCRIPT), "ui").text == (
        "ui               input  rec-do(<ui>,<term>)\n"
        "ui               output snd-event(<ui>,button(<str>),<int>)\n"
        "ui               output rec-ack-event(<ui>,button(<str>))\n"
        "ui               output snd-request(<ui>,find(<str>))\n"
        "ui               output rec-response(<ui>,found(<term>))\n"
        "ui               other  snd-connect(<ui>)\n"
        "ui               other  snd-disconnect(<ui>)\n"
        "ui               other  rec-terminate(<ui>,<term>)\n"
    )


def test_a_tool_that_is_not_there_has_no_interface() -> None:
    with pytest.raises(ScriptError, match=r"tool `clac` is not defined \(did you mean `calc`\?\)"):
        interface(load(SCRIPT), "clac")


def offered(*entries: Term) -> Interface:
    received = tuple(entry for entry in entries if entry.name in ("rec-eval", "rec-do"))
    return Interface("calc", received, tuple(entry for entry in entries if entry not in received), ())


CALC = Placeholder(Term("calc"))
ANY = Placeholder(Term("term"))
EVAL = Term("rec-eval", CALC, Term("expr", Placeholder(Term("str"))))
DO = Term("rec-do", CALC, ANY)
VALUE = Term("snd-value", CALC, Term("val", Placeholder(Term("int"))))


@pytest.mark.parametrize(
    "entries", [(EVAL, DO, VALUE), (EVAL, DO), (Term("rec-eval", CALC, ANY), DO, Term("snd-value", CALC, ANY))]
)
def test_a_tool_fits_that_receives_everything_and_sends_what_is_expected(entries: tuple[Term, ...]) -> None:
    assert mismatch(interface(load(SCRIPT), "calc"), offered(*entries)) == ""


def test_both_sides_are_shown_where_a_tool_does_not_fit() -> None:
    wrong = Term("rec-eval", CALC, Term("expr", Placeholder(Term("int"))))
    event = Term("snd-event", CALC, Term("pressed"))
    assert mismatch(interface(load(SCRIPT), "calc"), offered(wrong, VALUE, event)) == (
        "tool `calc` does not fit the script:\n"
        "    the script has  rec-eval(<calc>,expr(<str>))\n"
        "    the tool has    rec-eval(<calc>,expr(<int>))\n"
        "    the script has  rec-do(<calc>,show([<int>,<int>],sub(<list(int)>,<real>),<bool>))\n"
        "    the tool has    nothing like it\n"
        "    the tool has    snd-event(<calc>,pressed)\n"
        "    the script has  nothing like it"
    )


def test_every_tool_fits_the_script_that_it_was_read_from() -> None:
    script = load(SCRIPT)
    for tool in ("calc", "ui"):
        assert mismatch(interface(script, tool), interface(script, tool)) == ""
