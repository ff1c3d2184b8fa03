"""What may be meant, but hardly is."""

# ruff: noqa: E501 - a message is one line

import pytest

from echoic.scripts.checking.partners import COMPARISONS_MAX
from tests.scripts.checking.checked import errors, findings, in_process, warnings

DECLARED = "X : int, S : str, T : term, C : calc, U : ui, F : f"

IN_PROCESSES = [
    ("let ^X : str in tau endlet", "variable `X` hides the one that is declared in line 3"),
    ("let ^A : string in tau endlet", "type `string` has the terms of this symbol, and there are none (did you mean `str`?)"),
    ("let ^A : intt in tau endlet", "type `intt` has the terms of this symbol, and there are none (did you mean `int`?)"),
    ('printf(^"%d")', "the text of `printf` has 1 place for terms, got 0"),
    ('printf(^"%%", X)', "the text of `printf` has 0 places for terms, got 1"),
    ("snd-do(C, f(^X?))", "`X?` is sent by `snd-do`, which binds nothing: write `X`"),
    ("snd-eval(C, f(^X?)) . rec-value(C, g)", "`X?` is sent by `snd-eval`, which binds nothing: write `X`"),
    ("rec-event(C, f) . snd-ack-event(C, f(^X?))", "`X?` is sent by `snd-ack-event`, which binds nothing: write `X`"),
    ("X := ^2147483648", "this integer has more than 32 bits, which the original ToolBus cuts off"),
    ("X := -2147483648", ""),
    ("let A : item in tau endlet", ""),
    # partners
    ("^snd-msg(f(X))", "no `rec-msg` can receive this"),
    ("^rec-msg(f(X?))", "no `snd-msg` sends anything like this"),
    ("^rec-note(f(X?))  + subscribe(f(<int>)) . snd-note(g(1)) + rec-note(g(X?)) + subscribe(g(<int>)) + snd-note(f(1))", ""),
    ("snd-note(f(1)) . subscribe(f(<int>)) . rec-note(f(X?)) . ^rec-note(g(X?))", "no `snd-note` sends anything like this|no `subscribe` asks for notes like this"),
    ("snd-note(f(1)) . subscribe(f(<int>)) . ^no-note(g(<int>))", "no `snd-note` sends anything like this"),
    ("^snd-note(f(1))", "nobody subscribes to this note"),
    ("^subscribe(f(<int>))", "no `snd-note` sends anything like this"),
    ("^rec-value(C, f(X?))", "there is no `snd-eval` for tool `calc`"),
    ("snd-eval(U, f(X)) . rec-value(U, g(X?)) . ^rec-value(C, f(X?))", "there is no `snd-eval` for tool `calc`"),
    ("^snd-eval(C, f(X))", "there is no `rec-value` for tool `calc`"),
    ("^snd-cancel(C)", "there is no `snd-eval` for tool `calc`"),
    ("^snd-ack-event(C, f)", "there is no `rec-event` for tool `calc`"),
    ("^snd-response(C, f)", "there is no `rec-request` for tool `calc`"),
    ("^rec-request(C, f(X?))", "there is no `snd-response` for tool `calc`"),
    ("^rec-perf-stats(C, T?)", "there is no `get-perf-stats` for tool `calc`"),
]  # fmt: skip


@pytest.mark.parametrize(("marked", "message"), IN_PROCESSES)
def test_a_warning_is_shown_where_it_belongs(marked: str, message: str) -> None:
    column = len(f"process P is let {DECLARED} in ") + marked.find("^") + 1
    found = in_process(marked.replace("^", ""), DECLARED)
    assert errors(found) == []
    assert warnings(found) == [f"3:{column}: {each}" for each in message.split("|") if each]


def test_assigning_to_a_formal_without_a_mark_is_allowed() -> None:
    found = findings(
        "process P(A : int, B : int ?) is A := 1 . B := 2 . rec-msg(f(A?, B?))\nprocess Q is snd-msg(f(1, 2)) toolbus(Q)"
    )
    assert errors(found) == []
    message = "formal `A` has no `?`: what is assigned to it does not reach the caller"
    assert warnings(found) == [f"1:34: {message}", f"1:62: {message}"]


MATCHING = [
    ("a", "a", True),
    ("a", "b", False),
    ("a, b", "a", False),
    ("f(1)", "f(X?)", True),
    ('f("a")', "f(X?)", False),
    ("f(1.0)", "f(X?)", False),
    ("f(1)", "f(1.0)", False),
    ("f(1)", "f(1)", True),
    ("f(1)", "f(2)", False),
    ("f(X)", "f(2)", True),
    ("f(X)", 'f("a")', False),
    ("f(X)", "f(Y)", True),
    ("f(X)", "f(S)", False),
    ("f(X?)", "f(Y?)", False),
    ("f(X?)", "f(Y)", True),
    ("f(X?, 1)", "f(2, Y?)", True),
    ("f(X?)", "g(X)", False),
    ("T?", "f(X?)", False),
    ("T?", "f(X)", True),
    ("f(1)", "<f(int)>", True),
    ("f(1)", "<f(str)>", False),
    ("f(1)", "<int>", False),
    ("f(g)", "f(<term>)", True),
    ("[1, 2]", "[X?, Y?]", True),
    ("[1, 2]", "[X?]", False),
    ("[1, 2]", "L?", True),
    ("[1, 2]", "X?", False),
    ("f(1)", "G?", False),
    ("g(1)", "G?", True),
    ("g", "G?", True),
    ("undefined", "X?", True),
    ("f(1)", "f", False),
]


@pytest.mark.parametrize(("sent", "received", "matches"), MATCHING)
@pytest.mark.parametrize("swapped", [False, True])
def test_atoms_have_partners_where_they_may_match(sent: str, received: str, matches: bool, swapped: bool) -> None:
    if swapped:
        sent, received = received, sent
    let = "let X : int, Y : int, S : str, T : term, L : list, G : g in"
    found = findings(
        f"process P is {let} snd-msg({sent}) endlet\nprocess Q is {let} rec-msg({received}) endlet\ntoolbus(P, Q)"
    )
    assert errors(found) == []
    assert len(warnings(found)) == (0 if matches else 2)


def test_channels_send_and_take_notes() -> None:
    text = 'note channel "prices" as price(<str>, <real>)\nprocess P is let S : str, R : real in {} endlet toolbus(P)'
    for body in ("subscribe(price(<str>, <real>)) . rec-note(price(S?, R?))", 'snd-note(price("a", 1.0))'):
        assert warnings(findings(text.format(body))) == []
    assert warnings(findings(text.format("snd-note(price(1))"))) == ["2:39: nobody subscribes to this note"]


def test_a_process_that_is_called_by_name_has_partners() -> None:
    text = 'process P is let S : str in S := "Q" . S . rec-msg(a) endlet\nprocess Q is snd-msg(a)\ntoolbus(P)'
    assert warnings(findings(text)) == []


def test_a_type_whose_terms_are_used_is_meant() -> None:
    text = "process P is let A : strn in A := quote(strn(1)) endlet toolbus(P)"
    assert warnings(findings(text)) == []


def test_the_search_for_partners_ends() -> None:
    count = 500
    assert count * count > COMPARISONS_MAX
    sends = " . ".join(f"snd-msg(f({number}))" for number in range(count))
    receives = " . ".join(f"rec-msg(f({number}))" for number in range(-count, 0))
    assert errors(findings(f"process P is {sends}\nprocess Q is {receives}\ntoolbus(P, Q)")) == []
