"""Processes of the ToolBus: what each atom and operator does, in the order of the reference, with its decided default.

Tools are in `test_toolbus_tools.py`, matching in `test_toolbus_matching.py`, words and expressions in
`test_toolbus_language.py`, time and chance in `test_toolbus_scheduling.py`, the differences between the originals in
`test_toolbus_probes.py`, terms in `test_toolbus_terms.py`.
"""

import re
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.scripts.graph import compile  # noqa: A004 - the word for it
from echoic.scripts.running import Machine, MachineLimits
from echoic.scripts.running.messages import AskLine, LineRead, Note, Print
from echoic.scripts.syntax import load
from echoic.terms import parse_text
from tests.papers.toolbus_driver import SEEDS, Bus, alone, complaints, outcomes, printed
from tests.papers.toolbus_rules import steps_of, written

GO_LATER = "process R is snd-msg(go) delay(sec(1)) "

# Atoms inside a process


def test_tau_does_nothing_and_delta_never() -> None:
    assert printed('process P is tau . printf("a")') == "a"
    assert printed('process P is delta . printf("a")') == ""


def test_an_assignment_stores_what_is_of_the_type() -> None:
    assert printed('process P is let X:int in X := add(1,1) . printf("%d", X) endlet') == "2"
    bus = alone('let T:term, X:int in T := "a" . X := T . printf("stored") endlet')
    assert bus.text == ""


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('"plain"', "plain"),
        ('"%d|%d", 1, -2', "1|-2"),
        ('"%s", "a b"', "a b"),
        ('"%s", f("a")', 'f("a")'),
        ('"%t %t", "a", ["a",f(b)]', 'a ["a",f(b)]'),
        ('"%l", [1,"a",x]', '[1,"a",x]'),
        ('"100%%"', "100%"),
        ('"%%d %d", 3', "%d 3"),
        ('"%d", "kinds are not enforced"', "kinds are not enforced"),
        ('"%s %s", 1, [2]', "1 [2]"),
        ('"%t", X', "undefined"),
        ('"a\\tb\\n"', "a\tb\n"),
    ],
)
def test_printf_formats_as_c_does(arguments: str, text: str) -> None:
    assert printed(f"process P is let X:int in printf({arguments}) endlet") == text


def test_printf_shows_reals() -> None:
    assert printed('process P is printf("%f", 1.5)').startswith("1.5")
    assert printed('process P is printf("%t", 1.5)') == "1.5"


@pytest.mark.parametrize("arguments", ['"%d"', '"%", 1', '"a", 1', '"%q", 1', '"%d %d", 1'])
def test_formats_that_are_not_in_order_stop_nobody(arguments: str) -> None:
    assert (
        printed(f'process P is printf({arguments}) process Q is tau . printf("#on#") toolbus(P,Q)').count("#on#") == 1
    )


def test_read_asks_for_a_line_and_matches_it() -> None:
    bus = alone('let X:int in read("number? ", n(X?)) . printf("%d", X) endlet')
    assert AskLine("number? ") in bus.effects
    assert bus.hear(LineRead("n(12)")).text == "12"
    assert bus.ending == "halted"


@pytest.mark.parametrize("line", ["n(", 'n("a")', "", "m(1)", None])
def test_read_does_not_take_a_line_that_is_none_or_does_not_match(line: str | None) -> None:
    bus = alone('let X:int in read("? ", n(X?)) . printf("%d", X) endlet')
    assert bus.hear(LineRead(line)).text == ""


# Messages


def test_a_message_is_a_handshake_of_two_processes() -> None:
    script = """process P is snd-msg(x) . printf("sent") process Q is rec-msg(x) delay(sec(1)) toolbus(P, Q)"""
    bus = Bus(script)
    assert bus.text == ""
    assert bus.wait(1).text == "sent"
    assert bus.machine.statistics().handshakes == 1


def test_only_one_receiver_gets_a_message() -> None:
    script = "process P is snd-msg(x) process Q is rec-msg(x) . printf(N) toolbus(P, Q, Q)".replace("N", '"got "')
    assert printed(script) == "got "
    assert Bus(script).ending == "waiting"


def test_messages_have_as_many_arguments_on_both_sides() -> None:
    assert printed('process P is snd-msg(f,1) process Q is rec-msg(f) . printf("a") toolbus(P,Q)') == ""
    assert printed('process P is snd-msg(f) process Q is rec-msg(f,<int>) . printf("a") toolbus(P,Q)') == ""


def test_a_process_does_not_communicate_with_itself_but_with_another_of_its_kind() -> None:
    body = 'snd-msg(x) . printf("s") || rec-msg(x) . printf("r")'
    assert alone(body).text == ""
    assert sorted(printed_sorted(f"process P is {body} toolbus(P, P)")) == sorted("rsrs")


def printed_sorted(script: str) -> str:
    (text,) = {"".join(sorted(each)) for each in outcomes(script, SEEDS)}
    return text


def test_a_sender_does_not_meet_a_sender() -> None:
    assert Bus("process P is snd-msg(x) toolbus(P, P)").ending == "waiting"
    assert Bus("process P is rec-msg(x) toolbus(P, P)").ending == "waiting"


# Notes


def test_notes_go_to_all_that_have_subscribed_and_never_wait() -> None:
    script = """process P is snd-note(n(1)) . printf("sent ")
    process P2 is snd-note(n(2)) delay(sec(1)) . printf("sent ")
    process Q is let X:int in subscribe(n(<int>)) . rec-msg(never) + rec-note(n(X?)) . printf("%d ", X) endlet
    process Q2 is let X:int in subscribe(n(<int>)) . rec-note(n(X?)) delay(sec(2)) . printf("%d ", X) endlet
    toolbus(P, P2, Q2, Q2)"""
    assert Bus(script).text == "sent "
    assert printed("process P is snd-note(n) . printf(X)".replace("X", '"sent"')) == "sent"
    assert printed(
        """process Q is let X:int in subscribe(n(<int>)) . snd-msg(ready) . rec-note(n(X?)) . printf("%d", X) endlet
        process P is rec-msg(ready) . rec-msg(ready) . snd-note(n(7)) toolbus(P, Q, Q)"""
    ) == ("77")


def test_a_note_before_the_subscription_is_lost() -> None:
    assert (
        printed('process P is snd-note(n) . subscribe(n) . (rec-note(n) . printf("a") + printf("b") delay(1))', 2)
        == "b"
    )


def test_the_oldest_note_that_matches_is_taken() -> None:
    assert (
        printed("""process P is let X:int in subscribe(m(<int>)) . subscribe(n(<int>)) .
        snd-note(n(1)) . snd-note(m(2)) . snd-note(n(3)) . snd-note(m(4)) . rec-note(m(X?)) . printf("%d ", X) .
        rec-note(n(X?)) . printf("%d ", X) . rec-note(n(X?)) . printf("%d ", X) . rec-note(m(X?)) .
        printf("%d ", X) endlet""")
        == "2 1 3 4 "
    )


def test_one_copy_for_a_process_with_several_subscriptions_that_match() -> None:
    script = """process P is subscribe(n(<int>)) . subscribe(n(1)) . subscribe(n(<term>)) . snd-note(n(1)) .
    rec-note(n(1)) . (no-note(n(1)) . printf("one") + rec-note(n(1)) . printf("two"))"""
    assert printed(script) == "one"


def test_a_subscription_is_what_its_pattern_was_when_it_was_made() -> None:
    assert (
        printed("""process P is let X:int in X := 1 . subscribe(n(X)) . X := 2 . snd-note(n(2)) . snd-note(n(1)) .
        rec-note(n(<int>)) . no-note(n(<term>)) . printf("only the first") endlet""")
        == "only the first"
    )
    assert complaints("process P is let X:int in subscribe(n(X?)) endlet toolbus(P)")
    assert complaints("process P is let X:int in unsubscribe(n(X?)) endlet toolbus(P)")


def test_unsubscribing_deletes_queued_notes_that_match_and_no_others() -> None:
    assert (
        printed("""process P is subscribe(n(<int>)) . subscribe(m(<int>)) . snd-note(n(1)) . snd-note(m(1)) .
        snd-note(n(2)) . unsubscribe(n(<int>)) . no-note(n(<int>)) . rec-note(m(1)) . snd-note(n(3)) . snd-note(m(2)) .
        no-note(n(<term>)) . rec-note(m(2)) . printf("gone")""")
        == "gone"
    )


def test_no_note_waits_until_none_matches() -> None:
    assert (
        printed(
            """process P is subscribe(n) . snd-note(n) .
        (no-note(n) . printf("b") || printf("a") delay(sec(1)) . rec-note(n))""",
            1,
        )
        == "ab"
    )


def test_too_many_notes_drop_the_oldest_with_a_warning() -> None:
    body = "subscribe(n(<int>)) . snd-note(n(1)) . snd-note(n(2)) . snd-note(n(3)) . snd-note(n(4)) . rec-msg(never)"
    bus = alone(body, limits=MachineLimits(notes_per_process_max=2))
    assert bus.machine.state().processes[0].notes == (parse_text("n(3)"), parse_text("n(4)"))
    assert len(bus.warned) == 1
    assert bus.machine.statistics().notes_dropped == 2


def test_notes_come_from_outside_too() -> None:
    bus = alone('let X:int in subscribe(n(<int>)) . rec-note(n(X?)) . printf("%d", X) endlet')
    assert bus.hear(Note(parse_text("m(1)")), Note(parse_text("n(5)"))).text == "5"


# Creation


def test_processes_are_created_with_values_and_numbered_from_one() -> None:
    script = """process Q(A:int) is rec-msg(go) . printf("%d ", A)
    process P is let X:int, I:int in X := 1 . create(Q(X), I?) . printf("id %d ", I) . X := 2 . create(Q(X), I?) .
    printf("id %d ", I) . snd-msg(go) . snd-msg(go) endlet toolbus(P)"""
    assert outcomes(script) <= {"id 2 id 3 1 2 ", "id 2 id 3 2 1 "}


def test_a_created_process_runs_beside_its_creator() -> None:
    script = """process Q is printf("q") delay(sec(1))
    process P is let I:int in create(Q, I?) . printf("p") endlet toolbus(P)"""
    assert printed(script) == "p"
    assert Bus(script).ending == "waiting"
    assert Bus(script).wait(1).ending == "halted"


def test_creation_waits_where_there_are_too_many() -> None:
    body = 'let I:int in (create(Q, I?) . printf("c")) * delta endlet process Q is rec-msg(never)'
    assert alone(body, limits=MachineLimits(processes_max=4)).text == "ccc"


# Operators


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        ("a . b . c", "abc"),
        ("delta . a", ""),
        ("a + b", "a b"),
        ("a + delta", "a"),
        ("delta + a . b", "ab"),
        ("(a + b) . c", "ac bc"),
        ("a . c + b . d", "ac bd"),
        ("a . (b + c)", "ab ac"),
        ("a || b", "ab ba"),
        ("(a || b) . c", "abc bac"),
        ("a . b || c", "abc acb cab"),
        ("a || delta", "a"),
        ("(a || delta) . b", "a"),
        ("delta * a . b", "ab"),
        ("a +> b", "b"),
        ("a <+ b", "a"),
        ("a +> delta", "a"),
        ("delta <+ b", "b"),
        ("a +> b +> c", "c"),
        ("a +> b +> delta", "b"),
        ("a <+ b <+ c", "a"),
        ("delta <+ b <+ c", "b"),
        ("(a +> b) + c", "b c"),
        ("(a <+ b) + c", "a c"),
        ("(a + b) +> c", "c"),
        ("(a + b) +> delta", "a b"),
        ("c <+ (a + b)", "c"),
        ("(a +> b) . c", "bc"),
        ("(a . c) +> delta . b", "ac"),
        ("(a +> b) || c", "bc cb"),
        ("((a +> b) + c) +> delta", "b c"),
        ("(a +> (b || c)) . d", "bcd cbd"),
        ("a +> (b +> (c + d))", "c d"),
        ("(a . b) >> x", "ab ax x"),
        ("((a . b) >> x) . d", "abd axd xd"),
        ("a >> delta", "a"),
        ("delta >> x", "x"),
        ("(a >> x . y) || delta", "ay xy"),
        ("(a . b >> x) >> y", "ab ax ay y"),
        ("(a || b) >> x", "ab ba ax bx x"),
        ("a . (b >> x) . c", "abc axc"),
        ("(a >> x) + y", "a x y"),
        ("if true then a else b fi", "a"),
        ("if false then a else b fi", "b"),
        ("if false then a fi", ""),
        ("if false then a fi + b", "b"),
        ("if true then a . b fi", "ab"),
        ("if true then if false then a else b fi else c fi", "b"),
        ("a +> if false then b fi", "a"),
        ("if true then a + b else c fi", "a b"),
        ("if false then a fi <+ b", "b"),
    ],
)
def test_operators(body: str, texts: str) -> None:
    letters = re.sub(r"\b([abcdxy])\b", r'printf("\1")', body)
    script = f"process P is {letters} toolbus(P)"
    expected = set(texts.split()) or {""}
    assert outcomes(script, range(80)) == expected


expressions = st.recursive(
    st.sampled_from(["a", "b", "c", "d", "e", "delta"]),
    lambda parts: st.tuples(st.sampled_from([".", "+", "+>", "<+", "*", ">>", "||"]), parts, parts),
    max_leaves=7,
)


@settings(max_examples=120, deadline=None)
@given(expressions, st.integers(0, 999))
def test_processes_do_what_the_rules_of_their_operators_say(process: object, seed: int) -> None:
    machine = Machine(compile(load(f"process P is {written(process)} toolbus(P)")), chance=Random(seed), now_ns=0)
    machine.start()
    machine.run(60, 0)
    text = "".join(effect.text for effect in machine.take_effects() if isinstance(effect, Print))
    possible: list[object] = [process]
    for place, letter in enumerate(text):
        possible = [rest for each in possible for done, rest in steps_of(each) if done == letter]
        assert possible, f"{text[: place + 1]} by {written(process)}"
        possible = list({repr(each): each for each in possible}.values())
    if machine.halted:
        assert any(not steps_of(each) for each in possible), f"{text} is not all of {written(process)}"


COUNTING = 'process P is let N:int in N := 0 . {} . printf("%d", N) endlet'


def test_a_loop_goes_round_until_its_exit_is_taken() -> None:
    loop = "(if less(N,5) then N := add(N,1) fi) * (if equal(N,5) then tau fi)"
    assert printed(COUNTING.format(f"({loop})")) == "5"
    assert {len(text) for text in outcomes('process P is printf("a") * printf("b") toolbus(P)')} >= {1, 2, 3}
    assert all(text.endswith("b") for text in outcomes('process P is printf("a") * printf("b") toolbus(P)'))
    assert alone("tau * delta").ending == "endless"


def test_a_guard_before_a_loop_is_looked_at_once() -> None:
    loop = "(if equal(N,0) then ((if less(N,3) then N := add(N,1) fi) * (if equal(N,3) then tau fi)) fi)"
    assert printed(COUNTING.format(loop)) == "3"


def test_a_guard_is_no_step_and_is_evaluated_again() -> None:
    assert (
        printed(
            """process P is let X:int in X := 0 .
        (if equal(X,1) then printf("b") fi || printf("a") delay(sec(1)) . X := 1) endlet""",
            1,
        )
        == "ab"
    )
    script = (
        GO_LATER
        + """process P is let X:int in X := 0 . (if equal(X,1) then rec-msg(go) . printf("b") fi ||
        printf("a") delay(sec(2)) . X := 1) endlet toolbus(P, R)"""
    )
    assert printed(script, 1) == ""
    assert printed(script, 2) == "ab"
    bus = alone('if true then printf("a") fi', traced=True)
    assert len(bus.steps) == 1


def test_a_guard_can_become_false_again() -> None:
    script = """process P is let X:int in X := 1 .
    (if equal(X,1) then rec-msg(go) . printf("no") fi || X := 0) endlet
    process R is snd-msg(go) delay(sec(1)) toolbus(P, R)"""
    assert printed(script, 3) == ""


def test_variables_of_a_let_are_undefined_whenever_it_is_entered() -> None:
    again = "((if less(N,3) then let X:int in {} endlet fi) * (if equal(N,3) then tau fi))"
    body = 'printf("%t ", X) . X := 5 . printf("%t ", X) . N := add(N,1)'
    assert printed(COUNTING.format(again.format(body))) == "undefined 5 " * 3 + "3"
    body = "if equal(X,undefined) then X := 5 fi . N := add(N,1)"
    assert printed(COUNTING.format(again.format(body))) == "3"
    receiver = ' process Q is let T:term in (rec-msg(T?) . printf("%t ", T)) * delta endlet toolbus(P, Q)'
    body = "snd-msg(m(X)) . X := 5 . snd-msg(m(X)) . N := add(N,1)"
    text = printed_last(COUNTING.format(again.format(body)) + receiver)
    assert text == "m(undefined) m(5) " * 3


def printed_last(script: str) -> str:
    (text,) = {" ".join(part for part in Bus(script, seed).text.split() if part != "3") + " " for seed in SEEDS}
    return text


def test_a_let_in_a_process_that_is_called_again_is_undefined_again() -> None:
    script = (
        """process Q is let X:int in printf("%t", X) . X := 1 . printf("%t ", X) endlet process P is Q . Q . (Q || Q)"""
    )
    assert sorted(outcomes(script + " toolbus(P)", SEEDS, 0).pop().replace(" ", "")) == sorted("undefined1" * 4)


def test_inner_declarations_shadow_outer_ones() -> None:
    assert (
        printed("""process P is let X:int in X := 1 . let X:str in X := "a" . printf("%s", X) endlet .
        printf("%d", X) endlet""")
        == "a1"
    )


# Calls


def test_a_value_parameter_follows_the_variable_it_stands_for() -> None:
    script = (
        GO_LATER
        + """process Q(A:term) is rec-msg(go) . printf("%t", A)
        process P is let X:int in X := 1 . (Q({}) || X := 2) endlet toolbus(P, R)"""
    )
    assert printed(script.format("X"), 1) == "2"
    assert printed(script.format("f(X,[X])"), 1) == "f(2,[2])"
    nested = script.replace("process P", "process Q2(B:term) is Q(B) process P").replace("(Q(", "(Q2(")
    assert printed(nested.format("X"), 1) == "2"


def test_a_value_parameter_is_not_caught_by_a_variable_of_the_same_name() -> None:
    assert (
        printed("""process Q(A:int) is let X:int in X := 9 . printf("%d %d", A, X) endlet
        process P is let X:int in X := 1 . Q(X) endlet""")
        == "1 9"
    )


def test_a_value_parameter_that_is_assigned_is_a_copy() -> None:
    script = """process Q(A:int) is printf("%d ", A) . A := add(A,6) . printf("%d ", A)
    process P is let X:int in X := 1 . Q(X) . Q(X) . printf("%d ", X) . Q(3) . X := 2 . Q(X) endlet"""
    assert printed(script) == "1 7 1 7 1 3 9 2 8 "
    loop = """process Q(A:int) is printf("%d ", A) . A := add(A,6) . printf("%d ", A)
    process P is let N:int in N := 0 .
    ((if less(N,2) then Q(N) . N := add(N,1) fi) * (if equal(N,2) then tau fi)) endlet"""
    assert printed(loop) == "0 6 1 7 "


def test_a_result_parameter_is_the_variable_of_the_caller() -> None:
    script = """process R(Z:int?) is Z := 5 process Q(Y:int?) is R(Y?) . printf("%d ", Y) . Y := add(Y,1)
    process P is let X:int in Q(X?) . printf("%d", X) endlet"""
    assert printed(script) == "5 6"
    aliased = (
        """process Q(A:int, Y:int?) is Y := 2 . printf("%d", A) process P is let X:int in X := 1 . Q(X, X?) endlet"""
    )
    assert printed(aliased) == "2"
    parallel = """process Q(Y:int?) is Y := 1 . Y := 2 delay(sec(2))
    process P is let X:int in Q(X?) || printf("%d", X) delay(sec(1)) . printf("%d", X) delay(sec(2)) endlet"""
    assert printed(parallel, 3) == "12"
    received = """process Q(Y:int?) is rec-msg(n(Y?)) process S is snd-msg(n(4))
    process P is let X:int in Q(X?) . printf("%d", X) endlet toolbus(P, S)"""
    assert printed(received) == "4"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ('N := "Q" . N(1)', "Q1"),
        ('N := "Q" . (printf("no") +> N(1))', "Q1"),
        ('N := "None" . (printf("no") +> N(1))', "no"),
        ('N := "None" . (N(1) <+ printf("no"))', "no"),
        ('N := "Q" . (printf("no") +> N)', "no"),
        ('N := "Q" . (printf("no") +> N(1,2))', "no"),
        ('N := "Q" . (printf("no") +> N("a"))', "no"),
        ('printf("no") +> N(1)', "no"),
        ('N := "S" . N(X?) . printf("%d", X)', "8"),
        ('N := "S" . (printf("no") +> N(1))', "no"),
        ('N := "None" . (N(1) + printf("no"))', "no"),
        ('N := "Q" . (N(1) . N(2))', "Q1Q2"),
        ('N := "Q" . N(1) . N := "U" . N(2)', "Q1U2"),
    ],
)
def test_a_dynamic_call_is_of_the_process_named_or_delta(call: str, text: str) -> None:
    script = f"""process Q(A:int) is printf("Q%d", A) process U(A:int) is printf("U%d", A) process S(A:int?) is A := 8
    process P is let N:str, X:int in {call} endlet"""
    assert printed(script) == text


# Biased choice with partners


def test_the_preferred_side_is_taken_also_where_partners_wait() -> None:
    script = """process A is snd-msg(a) process B is snd-msg(b)
    process P is tau delay(sec(1)) . (rec-msg(a) . printf("a") {} rec-msg(b) . printf("b")) toolbus(A, {}P)"""
    assert printed(script.format("+>", "B, "), 1) == "b"
    assert printed(script.format("<+", "B, "), 1) == "a"
    assert printed(script.format("+>", ""), 1) == "a"


def test_a_partner_cannot_start_what_is_not_preferred() -> None:
    assert (
        printed('process P is rec-msg(a) . printf("a") +> printf("b") process A is snd-msg(a) toolbus(A, P, A)') == "b"
    )
    script = """process A is snd-msg(a) delay(sec({}))
    process P is rec-msg(a) . printf("a") +> printf("b") delay(sec(2)) toolbus(A, P)"""
    assert printed(script.format(1), 5) == "a"
    assert printed(script.format(3), 5) == "b"


@pytest.mark.parametrize("order", ["P, A, B", "A, P, B", "A, B, P", "B, P, A"])
@pytest.mark.parametrize("late", ["", " delay(sec(1))"])
def test_what_is_preferred_does_not_depend_on_whose_turn_it_is(order: str, late: str) -> None:
    script = f"""process A is snd-msg(a){late} process B is snd-msg(b){late}
    process P is rec-msg(a) . printf("a") +> rec-msg(b) . printf("b") toolbus({order})"""
    assert printed(script, 2) == "b"


@pytest.mark.parametrize("order", ["P, Q, R, S", "S, R, Q, P", "Q, P, S, R"])
def test_a_partner_that_prefers_another_is_none(order: str) -> None:
    script = f"""process P is snd-msg(a) . printf("a") +> snd-msg(b) . printf("b") process S is rec-msg(a)
    process Q is rec-msg(b) +> rec-msg(c) process R is snd-msg(c) toolbus({order})"""
    assert printed(script) == "a"
