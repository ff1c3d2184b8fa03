"""Processes that wait for a value, and those that wait until a tool has one."""

import random

import pytest

from echoic.scripts.graph import compile  # noqa: A004 - the word for it
from echoic.scripts.running import Machine
from echoic.scripts.running.limits import MachineLimits
from echoic.scripts.running.messages import (
    Announce,
    Connected,
    Delivered,
    Effect,
    Fetch,
    Fetched,
    FromTool,
    Halted,
    Lost,
    Note,
    Print,
    Said,
    Step,
    Tell,
    ToTool,
    Warned,
)
from echoic.scripts.syntax import load
from echoic.terms import Term, TermList, Value, to_placeholder
from tests.terms.cut_values import Owner

TOOL = 'tool t is { command = "t" }\n'
OWNER = Owner()
TEXT = OWNER.reference("a text")
CALL = OWNER.reference(Term("f", "a", "b"))


def machine_of(body: str, *more: str, traced: bool = False, limits: MachineLimits | None = None) -> Machine:
    """Return a machine whose tool 1 has connected, with a process that knows it."""
    text = TOOL + f"process P is let T:t, S:str, V:term, U:term, I:int in rec-connect(T?) . {body} endlet\n"
    text += "".join(f"process P{number} is let S:str, V:term in {each} endlet\n" for number, each in enumerate(more))
    text += f"toolbus({','.join(['P', *(f'P{number}' for number in range(len(more)))])})"
    program = compile(load(text, "script"))
    machine = Machine(program, chance=random.Random(1), now_ns=0, traced=traced, limits=limits or MachineLimits())
    machine.start()
    assert machine.receive(Connected("t"), 0) == 1
    return machine


def event(machine: Machine, value: Value) -> None:
    machine.receive(Said(1, FromTool.EVENT, (value,)), 0)


def run_out(machine: Machine) -> list[Effect]:
    while machine.run(1000, 0):
        pass
    return machine.take_effects()


def test_values_are_passed_on_without_being_fetched() -> None:
    machine = machine_of(
        "rec-event(T,e(S?)) . snd-ack-event(T,e) . V := [S,1] . snd-msg(m(V)) . snd-note(n(S)) . rec-msg(never)",
        "subscribe(n(<str>)) . rec-msg(m(V?)) . rec-note(n(S?)) . snd-msg(out(V,S))",
        "let W:term, X:str in rec-msg(out(W?,X?)) . rec-msg(never) endlet",
    )
    event(machine, Term("e", TEXT))
    effects = run_out(machine)
    assert [type(effect) for effect in effects] == [Tell]
    assert effects[0] == Tell(1, ToTool.ACK_EVENT, (Term("e", TEXT),), 1)
    machine.receive(Delivered(1), 0)
    assert run_out(machine) == [Announce(Term("n", TEXT))]
    assert machine.holders()[TEXT][:2] == ("`S` of process `P(1)`", "`V` of process `P(1)`")
    assert len(machine.holders()[TEXT]) == 4


def test_who_has_told_a_tool_of_a_value_waits_until_it_is_there() -> None:
    machine = machine_of(
        'rec-event(T,e(S?)) . snd-do(T,d(S)) . (printf("on") + rec-msg(go)) . rec-msg(never)', "snd-msg(go)"
    )
    event(machine, Term("e", TEXT))
    assert run_out(machine) == [Tell(1, ToTool.DO, (Term("d", TEXT),), 1)]
    assert machine.possible() == ()
    machine.receive(Delivered(7), 0)
    assert run_out(machine) == []
    machine.receive(Delivered(1), 0)
    machine.receive(Delivered(1), 0)
    assert machine.possible() != ()
    run_out(machine)
    assert machine.statistics().steps == 4


def test_what_a_tool_is_told_without_references_holds_nobody() -> None:
    machine = machine_of('rec-event(T,e(S?)) . snd-do(T,d(1)) . printf("on") . rec-msg(never)')
    event(machine, Term("e", TEXT))
    assert run_out(machine) == [Tell(1, ToTool.DO, (Term("d", 1),)), Print("on")]


@pytest.mark.parametrize("end", [Lost(1, "gone"), Said(1, FromTool.DISCONNECT)])
def test_a_hold_ends_with_its_tool(end: Lost | Said) -> None:
    machine = machine_of('rec-event(T,e(S?)) . snd-do(T,d(S)) . printf("on") . rec-msg(never)')
    event(machine, Term("e", TEXT))
    run_out(machine)
    machine.receive(end, 0)
    assert Print("on") in run_out(machine)


def test_a_process_whose_last_word_has_a_hold_ends_when_it_is_delivered() -> None:
    machine = machine_of("rec-event(T,e(S?)) . snd-do(T,d(S))")
    event(machine, Term("e", TEXT))
    run_out(machine)
    assert not machine.halted
    machine.receive(Delivered(1), 0)
    assert machine.halted
    assert run_out(machine) == [Halted(None)]


def test_a_value_is_fetched_once_and_takes_the_place_of_the_reference_everywhere() -> None:
    machine = machine_of(
        "rec-event(T,e(S?)) . V := quote(f(S)) . snd-msg(m(S)) . "
        'printf("%s", S) . printf("%s", S) . printf("%t", V) . rec-msg(never)',
        'rec-msg(m(S?)) . printf("%s", S) . rec-msg(never)',
    )
    event(machine, Term("e", TEXT))
    event(machine, Term("e", TEXT))
    assert run_out(machine) == [Fetch(TEXT)]
    assert (
        "needed by `P(1)`, `P0(2)`" in machine.holders()[TEXT] or "needed by `P0(2)`, `P(1)`" in machine.holders()[TEXT]
    )
    machine.receive(Fetched(TEXT, "a text"), 0)
    texts = sorted(effect.text for effect in run_out(machine) if isinstance(effect, Print))
    assert texts == ["a text", "a text", "a text", 'f("a text")']
    assert machine.holders() == {}


def test_whoever_needs_a_value_is_found_by_nobody_and_has_his_turn_first_when_it_is_there() -> None:
    machine = machine_of(
        'rec-event(T,e(S?)) . (if equal(S,"b text") then tau fi + rec-msg(go)) . printf("went") . rec-msg(never)',
        'subscribe(n) . rec-note(n) . (snd-msg(go) + tau . rec-msg(no)) . printf("sent") . rec-msg(never)',
    )
    event(machine, Term("e", TEXT))
    assert run_out(machine) == [Fetch(TEXT)]
    machine.receive(Note(Term("n")), 0)
    machine.run(1, 0)
    assert machine.statistics().handshakes == 0
    machine.receive(Fetched(TEXT, "a text"), 0)
    machine.run(1, 0)
    assert machine.statistics().handshakes == 1


def test_a_message_behind_a_guard_on_a_value_is_offered_and_asked_for() -> None:
    machine = machine_of(
        'rec-event(T,e(S?)) . (if equal(S,"a text") then rec-msg(go) fi + if equal(S,"no text") then rec-msg(stay) fi)'
        " . rec-msg(never)",
        'rec-msg(never) + snd-msg(go) . printf("went") . rec-msg(never)',
    )
    event(machine, Term("e", TEXT))
    effects = run_out(machine)
    assert effects == [Fetch(TEXT)]
    machine.receive(Fetched(TEXT, "a text"), 0)
    assert run_out(machine) == [Print("went")]


def test_an_application_elsewhere_meets_who_looks_into_it() -> None:
    machine = machine_of(
        "rec-event(T,e(V?)) . snd-msg(V) . rec-msg(never)",
        'rec-msg(f("a",S?)) . printf(S) . rec-msg(never)',
        "rec-msg(g)",
    )
    event(machine, Term("e", CALL))
    assert run_out(machine) == [Fetch(CALL)]
    machine.receive(Fetched(CALL, Term("f", "a", "b")), 0)
    assert run_out(machine) == [Print("b")]


def test_what_a_waiting_partner_has_is_fetched_for_who_looks_at_it() -> None:
    machine = machine_of(
        "rec-event(T,e(V?)) . snd-msg(V) . rec-msg(never)", 'tau . tau . tau . tau . rec-msg("a text") . rec-msg(never)'
    )
    event(machine, Term("e", TEXT))
    assert run_out(machine) == [Fetch(TEXT)]
    machine.receive(Fetched(TEXT, "a text"), 0)
    run_out(machine)
    assert machine.statistics().handshakes == 1


def test_a_value_that_is_lost_is_a_value() -> None:
    machine = machine_of('rec-event(T,e(V?)) . if equal(V,"a text") then tau else printf("%t",V) fi . rec-msg(never)')
    event(machine, Term("e", TEXT))
    assert run_out(machine) == [Fetch(TEXT)]
    machine.receive(Fetched(TEXT, Term("lost-value", "gone")), 0)
    assert run_out(machine) == [Print('lost-value("gone")')]


def test_a_note_is_sent_to_all_or_nobody() -> None:
    machine = machine_of(
        "rec-event(T,e(V?)) . snd-note(n(V)) . rec-msg(never)",
        'subscribe(n(<str>)) . subscribe(n("a text")) . rec-note(n(V?)) . printf("%t.",V) . rec-msg(never)',
        'subscribe(n("a text")) . rec-note(n("a text")) . printf("second") . rec-msg(never)',
    )
    run_out(machine)
    event(machine, Term("e", TEXT))
    assert run_out(machine) == [Fetch(TEXT)]
    machine.receive(Fetched(TEXT, "a text"), 0)
    effects = run_out(machine)
    assert effects[0] == Announce(Term("n", "a text"))
    assert {effect.text for effect in effects if isinstance(effect, Print)} == {"a text.", "second"}


def test_notes_from_outside_keep_their_order_while_one_waits_for_a_value() -> None:
    limits = MachineLimits(notes_per_process_max=2)
    machine = machine_of(
        "rec-msg(never)", 'subscribe("a text") . subscribe(n) . (rec-note(V?) . printf("%t",V)) * delta', limits=limits
    )
    run_out(machine)
    for note in (TEXT, Term("n"), Term("n")):
        machine.receive(Note(note), 0)
    effects = run_out(machine)
    assert effects[0] == Fetch(TEXT)
    assert isinstance(effects[1], Warned)
    assert "2 notes from outside" in effects[1].text
    assert machine.holders()[TEXT] == ("a note from outside", "needed by a note from outside")
    machine.receive(Fetched(TEXT, "a text"), 0)
    assert run_out(machine) == [Print("a text"), Print("n")]


def test_an_event_is_acknowledged_by_how_it_begins() -> None:
    for acknowledged, answers in (("e", []), ("e(1)", []), ('e(1,"a text")', [TEXT]), ("e(2)", None), ("f", None)):
        machine = machine_of(f"rec-event(T,e(I?,V?)) . snd-ack-event(T,{acknowledged}) . rec-msg(never)")
        event(machine, Term("e", 1, TEXT))
        effects = run_out(machine)
        for reference in answers or ():
            assert effects == [Fetch(reference)]
            machine.receive(Fetched(reference, OWNER.value(reference)), 0)
            effects = run_out(machine)
        assert [type(effect) for effect in effects] == ([] if answers is None else [Tell])


def test_an_event_that_is_elsewhere_as_a_whole_is_known_by_its_name() -> None:
    for acknowledged, asked in (("f", False), ('f("a")', True), ("g", None), ("f(1,2,3)", None)):
        machine = machine_of(f"rec-event(T,V?) . snd-ack-event(T,{acknowledged}) . rec-msg(never)")
        event(machine, CALL)
        effects = run_out(machine)
        if asked:
            assert effects == [Fetch(CALL)]
            machine.receive(Fetched(CALL, Term("f", "a", "b")), 0)
            effects = run_out(machine)
        assert [type(effect) for effect in effects] == ([] if asked is None else [Tell])
        assert "an event of tool `t(1)` that is not acknowledged" in str(machine.holders()) or asked is not None


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("shutdown(S)", [Tell(1, ToTool.TERMINATE, ("a text",)), Halted("a text")]),
        ("execute(u(S),U?) . rec-msg(never)", None),
        ("subscribe(n(S)) . rec-msg(never)", []),
        ("unsubscribe(n(S)) . rec-msg(never)", []),
        ("read(S,V?) . rec-msg(never)", None),
        ("if greater(size(concat(S,S)),1) then tau fi . rec-msg(never)", None),
    ],
)
def test_some_atoms_need_the_value(body: str, wanted: list[Effect] | None) -> None:
    body = body.replace("u(S)", "t(S)")
    machine = machine_of(f"rec-event(T,e(S?)) . {body}")
    event(machine, Term("e", TEXT))
    assert run_out(machine) == [Fetch(TEXT)]
    machine.receive(Fetched(TEXT, "a text"), 0)
    effects = run_out(machine)
    if wanted is not None:
        assert effects == wanted


def test_a_step_does_not_keep_what_it_tells_of() -> None:
    machine = machine_of(
        "rec-event(T,e(S?)) . snd-msg(m([S])) . rec-msg(never)", "rec-msg(m(V?)) . rec-msg(never)", traced=True
    )
    event(machine, Term("e", TEXT))
    steps = [effect for effect in run_out(machine) if isinstance(effect, Step)]
    shown = to_placeholder(TEXT)
    assert steps[1].arguments[1] is Term("e", shown)
    assert steps[2].arguments == (Term("m", TermList(shown)),)
