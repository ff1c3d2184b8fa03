"""Tools of the ToolBus: every atom that speaks with one, its states, what it says out of turn, and its interface."""

import pytest

from echoic.errors import ScriptError
from echoic.scripts.checking import interface
from echoic.scripts.running import MachineLimits, ToolState
from echoic.scripts.running.messages import Connected, Dismiss, FromTool, Kill, Lost, Said, Start
from echoic.scripts.syntax import load
from echoic.terms import parse_text, write_text
from tests.papers.toolbus_driver import SEEDS, Bus, answering, warnings

TOOLS = """tool calc is { command = "calc -x" host = "far" details = "d" }
tool view(FILE:str, N:int) is { command = "view FILE -n N" }
"""


def with_tools(body: str, seed: int = 0, **options: object) -> Bus:
    """Run a process that knows two tools, T and U, two integers, and a term."""
    declared = "let T:calc, U:calc, V:view, X:int, Y:int, A:term in"
    return Bus(f"{TOOLS} process P is {declared} {body} endlet toolbus(P)", seed, **options)  # type: ignore[arg-type]


def connected(body: str, **options: object) -> Bus:
    """Run a process that has T, which is tool number 1."""
    bus = with_tools(f"rec-connect(T?) . {body}", **options)
    assert bus.connect("calc") == 1
    return bus


# Coming


def test_execute_starts_a_tool_and_goes_on_when_it_has_connected() -> None:
    bus = with_tools('execute(calc, T?) . printf("%t", T)')
    assert bus.effects == [Start(1, "calc", "far", "calc -x", "d")]
    assert (bus.text, bus.state_of(1)) == ("", ToolState.UNCONNECTED)
    assert bus.hear(Connected("calc", 1)).text == "calc(1)"
    assert bus.state_of(1) in (ToolState.READY, None)


def test_execute_waits_for_the_very_tool_it_has_started() -> None:
    bus = with_tools('execute(calc, T?) . printf("%t", T)')
    bus.connect("calc")
    assert bus.text == ""
    assert bus.machine.receive(Connected("view", 1), 0) is None
    assert bus.go().text == ""
    assert bus.hear(Connected("calc", 1)).text == "calc(1)"


def test_a_tool_connects_once() -> None:
    bus = with_tools("execute(calc, T?) . rec-msg(never)").hear(Connected("calc", 1))
    assert bus.machine.receive(Connected("calc", 1), 0) is None
    bus.go()
    assert len(bus.warned) == 1


def test_parameters_of_a_tool_are_replaced_in_its_command() -> None:
    (start,) = with_tools('X := 3 . execute(view("a.txt", X), V?)').effects
    assert isinstance(start, Start)
    assert start.command == "view a.txt -n 3"


def test_two_that_execute_get_two_tools() -> None:
    bus = with_tools('(execute(calc, T?) . printf("T%t ", T) || execute(calc, U?) . printf("U%t ", U))')
    assert sorted(effect.tool for effect in bus.effects if isinstance(effect, Start)) == [1, 2]
    assert sorted(bus.hear(Connected("calc", 2), Connected("calc", 1)).text.split()) in (
        ["Tcalc(1)", "Ucalc(2)"],
        ["Tcalc(2)", "Ucalc(1)"],
    )


def test_rec_connect_takes_a_tool_of_its_type_that_came_by_itself() -> None:
    bus = with_tools('rec-connect(T?) . printf("%t ", T) . rec-connect(T?) . printf("%t ", T)')
    bus.connect("view")
    assert bus.text == ""
    bus.connect("calc")
    assert bus.text == "calc(2) "
    bus.connect("calc")
    assert bus.text == "calc(2) calc(3) "


def test_a_tool_is_claimed_by_one_process() -> None:
    script = TOOLS + "process P is let T:calc in rec-connect(T?) . printf(C) endlet toolbus(P, P)"
    for seed in SEEDS:
        bus = Bus(script.replace("C", '"c"'), seed)
        bus.connect("calc")
        assert bus.text == "c"


def test_a_tool_nobody_knows_is_refused_with_a_warning() -> None:
    bus = with_tools("rec-connect(T?)")
    assert bus.machine.receive(Connected("stranger"), 0) is None
    assert bus.machine.receive(Connected("calc", 77), 0) is None
    assert len(bus.go().warned) == 2


# Eval and do


def test_an_eval_is_told_and_its_value_taken() -> None:
    bus = connected('snd-eval(T, expr("1+2")) . rec-value(T, val(X?)) . printf("%d", X)')
    assert bus.told == ['1 eval expr("1+2")']
    assert bus.state_of(1) is ToolState.BLOCKED
    assert bus.say(1, "value", "val(3)").text == "3"
    assert bus.ending == "halted"


def test_variables_are_put_into_what_tools_are_told_and_nothing_is_evaluated() -> None:
    bus = connected("X := 5 . snd-eval(T, f(X, add(X,1)))")
    assert bus.told == ["1 eval f(5,add(5,1))"]


@pytest.mark.parametrize("first", ["snd-eval(T, f(1))", "snd-do(T, f(1))"])
@pytest.mark.parametrize("second", ["snd-eval(T, f(2))", "snd-do(T, f(2))", "get-perf-stats(T)"])
def test_a_tool_that_is_busy_is_not_asked_again(first: str, second: str) -> None:
    bus = connected(f"{first} . {second} . rec-msg(never)")
    assert len(bus.told) == 1
    assert bus.state_of(1) is ToolState.BLOCKED
    if first.startswith("snd-eval"):
        bus.say(1, "value", "ok")
    else:
        bus.say(1, "void")
    assert len(bus.told) == 2


def test_two_tools_are_busy_on_their_own() -> None:
    bus = with_tools("rec-connect(T?) . rec-connect(U?) . snd-eval(T, f) . snd-eval(U, f) . rec-msg(never)")
    bus.connect("calc")
    bus.connect("calc")
    assert bus.told == ["1 eval f", "2 eval f"]


def test_a_do_has_no_value() -> None:
    bus = connected('snd-do(T, show(1)) . (rec-value(T, A?) . printf("value") + printf("done") delay(sec(1)))')
    assert bus.say(1, "void").wait(1).text == "done"
    assert bus.warned == []


def test_values_are_taken_in_order_skipping_those_that_do_not_match() -> None:
    bus = connected("snd-eval(T, f) . snd-eval(T, f) . snd-eval(T, f) . rec-msg(go)" + " . rec-value(T, n(X?))" * 2)
    for value in ("n(1)", "m(2)", "n(3)"):
        bus.say(1, "value", value)
    assert len(bus.told) == 3
    assert [write_text(each[1][0]) for each in bus.machine.state().tools[0].queued] == ["n(1)", "m(2)", "n(3)"]
    ordered = connected(
        'snd-eval(T, f) . snd-eval(T, f) . snd-eval(T, f) . tau delay(1) . rec-value(T, m(X?)) . printf("%d", X)'
        ' . rec-value(T, n(X?)) . printf("%d", X) . rec-value(T, n(X?)) . printf("%d", X)'
    )
    for value in ("n(1)", "m(2)", "n(3)"):
        ordered.say(1, "value", value)
    assert ordered.wait(1).text == "213"


def test_a_value_is_that_of_the_tool_that_was_asked() -> None:
    bus = with_tools(
        'rec-connect(T?) . rec-connect(U?) . snd-eval(T, f) . snd-eval(U, f) . rec-value(U, v(X?)) . printf("%d", X)'
    )
    bus.connect("calc")
    bus.connect("calc")
    assert bus.say(1, "value", "v(1)").text == ""
    assert bus.say(2, "value", "v(2)").text == "2"


def test_cancel_is_possible_while_an_eval_is_under_way() -> None:
    bus = connected('(snd-cancel(T) . printf("c")) || snd-eval(T, f) delay(sec(1)) . rec-msg(never)')
    assert (bus.told, bus.text) == ([], "")
    bus.wait(1)
    assert (bus.told, bus.text) == (["1 eval f", "1 cancel"], "c")
    assert bus.state_of(1) is ToolState.READY
    busy = connected("snd-do(T, f) . snd-cancel(T) . rec-msg(never)")
    assert busy.told == ["1 do f"]


def test_a_value_after_a_cancel_is_out_of_turn() -> None:
    bus = connected('snd-eval(T, f) . snd-cancel(T) . rec-value(T, v(X?)) . printf("taken")')
    bus.say(1, "value", "v(1)")
    assert bus.text == ""


# Events and requests


def test_events_are_taken_in_order_and_acknowledged() -> None:
    bus = connected(
        'rec-event(T, b(X?)) . printf("%d", X) . rec-event(T, a(X?)) . printf("%d", X) . snd-ack-event(T, b(2)) .'
        " snd-ack-event(T, a(1)) . rec-msg(never)"
    )
    bus.say(1, "event", "a(1)").say(1, "event", "b(2)")
    assert bus.text == "21"
    assert [line.split()[:3] for line in bus.told] == [["1", "ack-event", "b(2)"], ["1", "ack-event", "a(1)"]]


def test_an_event_may_have_several_arguments_and_its_acknowledgement_the_first() -> None:
    bus = connected(
        'rec-event(T, button(A?), at(X?,Y?)) . printf("%d %d", X, Y) . snd-ack-event(T, button(A)) . rec-msg(n)'
    )
    assert bus.say(1, "event", "button(ok)").text == ""
    assert bus.say(1, "event", "button(no)", "at(3,4)").text == "3 4"
    assert [line.split()[:3] for line in bus.told] == [["1", "ack-event", "button(no)"]]


def test_only_what_has_happened_is_acknowledged() -> None:
    bus = connected('(snd-ack-event(T, e(1)) . printf("acked")) || rec-event(T, e(X?))')
    assert bus.told == []
    assert bus.say(1, "event", "e(2)").told == []
    assert bus.say(1, "event", "e(1)").text in ("", "acked")


def test_data_go_back_with_an_acknowledgement() -> None:
    bus = connected("rec-event(T, e(X?)) . snd-ack-event(T, e(X), back(7)) . rec-msg(never)")
    assert bus.say(1, "event", "e(1)").told == ["1 ack-event e(1) back(7)"]


def test_events_come_also_while_a_tool_is_busy() -> None:
    bus = connected('snd-eval(T, f) . rec-event(T, e(X?)) . printf("%d", X) . rec-msg(never)')
    assert bus.say(1, "event", "e(4)").text == "4"
    assert bus.state_of(1) is ToolState.BLOCKED


def test_requests_are_answered() -> None:
    bus = connected('rec-request(T, look(X?)) . printf("%d", X) . snd-response(T, found(X)) . rec-msg(never)')
    bus.say(1, "request", "other(1)")
    assert bus.text == ""
    assert bus.say(1, "request", "look(5)").told == ["1 response found(5)"]


def test_statistics_of_a_tool() -> None:
    bus = connected('get-perf-stats(T) . rec-perf-stats(T, s(X?)) . printf("%d", X)')
    assert bus.told == ["1 get-perf-stats"]
    assert bus.say(1, "perf-stats", "s(9)").text == "9"


# Going


def test_a_tool_that_leaves_is_released_by_rec_disconnect() -> None:
    bus = connected('rec-disconnect(T) . printf("left") . rec-msg(never)')
    assert bus.text == ""
    bus.say(1, "disconnect")
    assert bus.text == "left"
    assert Dismiss(1) in bus.effects
    assert bus.state_of(1) is None


def test_a_tool_that_left_is_known_until_it_is_released() -> None:
    bus = connected('tau delay(sec(1)) . rec-disconnect(T) . printf("left") . rec-msg(never)')
    bus.say(1, "disconnect")
    assert bus.state_of(1) is ToolState.DISCONNECTED
    assert bus.wait(1).text == "left"
    lost = connected('tau delay(sec(1)) . rec-disconnect(T) . printf("left") . rec-msg(never)').lose(1)
    assert lost.state_of(1) is ToolState.UNREACHABLE
    assert lost.wait(1).text == "left"


@pytest.mark.parametrize(
    "before", ["tau", "snd-eval(T, f)", "snd-do(T, f)", "get-perf-stats(T)", "snd-eval(T, f) . snd-cancel(T)"]
)
@pytest.mark.parametrize("how", ["disconnect", "lost"])
def test_a_tool_may_go_in_any_state(before: str, how: str) -> None:
    bus = connected(
        f'{before} . (snd-eval(T, g) . rec-msg(never) +> rec-disconnect(T) . printf("left"))'.replace("+>", "+")
    )
    told = len(bus.told)
    if told and bus.told[-1].endswith("eval g"):
        return
    if how == "lost":
        bus.lose(1)
    else:
        bus.say(1, "disconnect")
    assert bus.text == "left"
    assert len(bus.told) == told


def test_nothing_is_told_to_a_tool_that_is_gone() -> None:
    for atom in ("snd-eval(T, f)", "snd-do(T, f)", 'snd-terminate(T, "x")', "get-perf-stats(T)", 'snd-kill(T, "x")'):
        bus = connected(f"tau delay(sec(1)) . {atom} . rec-msg(never)").lose(1).wait(2)
        assert bus.told == []
        assert not any(isinstance(effect, Kill) for effect in bus.effects)


def test_losing_a_tool_disrupts_what_was_done_with_it() -> None:
    bus = connected('(snd-eval(T, f) . rec-value(T, v(X?)) . printf("%d", X)) >> rec-disconnect(T) . printf("after")')
    assert bus.lose(1).text == "after"


def test_a_tool_that_is_lost_before_it_connects() -> None:
    bus = with_tools('execute(calc, T?) . printf("here") + printf("late") delay(sec(1))')
    bus.hear(Lost(1, "no such command")).wait(2)
    assert "here" not in bus.text
    assert bus.warned


def test_terminate_asks_a_tool_to_end() -> None:
    bus = connected('snd-terminate(T, "bye") . rec-msg(never)')
    assert bus.told == ['1 terminate "bye"']
    assert bus.state_of(1) is ToolState.TERMINATED
    assert bus.say(1, "disconnect").warned == []


def test_terminate_is_possible_while_a_tool_is_busy() -> None:
    assert connected('snd-eval(T, f) . snd-terminate(T, "bye") . rec-msg(never)').told[1:] == ['1 terminate "bye"']


def test_kill_is_for_tools_that_were_started() -> None:
    bus = with_tools('execute(calc, T?) . snd-kill(T, "now") . rec-disconnect(T) . printf("gone")')
    bus.hear(Connected("calc", 1))
    assert Kill(1) in bus.effects
    assert bus.lose(1).text == "gone"
    stranger = connected('snd-kill(T, "now") . printf("killed")')
    assert stranger.text == ""
    assert not any(isinstance(effect, Kill) for effect in stranger.effects)


def test_shutdown_terminates_all_tools_that_are_there() -> None:
    bus = with_tools('rec-connect(T?) . rec-connect(U?) . execute(view("a",1), V?) . shutdown("enough")')
    bus.connect("calc")
    bus.connect("calc")
    bus.hear(Connected("view", 3))
    assert sorted(bus.told) == [f'{number} terminate "enough"' for number in (1, 2, 3)]
    assert bus.ending == 'shutdown "enough"'
    assert bus.machine.receive(Connected("calc"), 0) is None


# Out of turn


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("rec-value(T, v(X?))", "value v(1)"),
        ("rec-msg(never)", "void"),
        ("snd-eval(T, f) . rec-msg(never)", "void"),
        ("snd-do(T, f) . rec-value(T, v(X?))", "value v(1)"),
    ],
)
def test_what_a_tool_says_out_of_turn_is_ignored_with_a_warning(body: str, said: str) -> None:
    bus = connected(f'{body} . printf("taken")')
    state = bus.state_of(1)
    bus.say(1, *said.split())
    assert bus.text == ""
    assert len(bus.warned) == 1
    assert bus.state_of(1) is state


def test_one_value_for_one_eval() -> None:
    bus = connected('snd-eval(T, f) . rec-value(T, v(X?)) . rec-value(T, v(X?)) . printf("twice")')
    bus.say(1, "value", "v(1)").say(1, "value", "v(2)")
    assert bus.text == ""
    assert len(bus.warned) == 1


@pytest.mark.parametrize("kind", ["value", "void", "event", "request", "disconnect", "perf-stats"])
def test_a_tool_that_is_not_there_is_not_listened_to(kind: str) -> None:
    bus = with_tools('execute(calc, T?) . rec-event(T, e(1)) . printf("taken")')
    bus.hear(Said(9, FromTool(kind), (parse_text("e(1)"),)))
    assert len(bus.warned) == 1
    assert bus.state_of(1) is ToolState.UNCONNECTED
    assert bus.lose(9).text == ""


@pytest.mark.parametrize("kind", ["value", "void", "event", "request"])
def test_a_tool_that_has_left_or_not_come_says_nothing(kind: str) -> None:
    values = () if kind == "void" else ("e(1)",)
    waiting = with_tools('execute(calc, T?) . rec-event(T, e(1)) . printf("taken")').say(1, kind, *values)
    assert len(waiting.warned) == 1
    assert waiting.hear(Connected("calc", 1)).text == ""
    left = connected('rec-msg(never) + rec-event(T, e(2)) . printf("taken")').lose(1)
    warned = len(left.warned)
    assert len(left.say(1, kind, *values).warned) == warned + 1


@pytest.mark.parametrize("values", [(), ("a", "b", "c")])
@pytest.mark.parametrize("kind", ["value", "request", "perf-stats"])
def test_what_a_tool_says_with_other_arguments_than_it_has_harms_nobody(kind: str, values: tuple[str, ...]) -> None:
    bus = connected(
        "snd-eval(T, f) . rec-value(T, v(X?)) + rec-request(T, r(X?)) + rec-event(T, e(X?)) . rec-msg(never)"
    )
    bus.say(1, kind, *values)
    assert bus.say(1, "event").text == ""
    assert bus.ending == "waiting"


def test_a_tool_that_says_too_much_is_not_heard_further() -> None:
    bus = connected("rec-msg(never)", limits=MachineLimits(messages_per_tool_max=3))
    for number in range(10):
        bus.say(1, "event", f"e({number})")
    assert len(bus.machine.state().tools[0].queued) == 3
    assert bus.warned


def test_a_whole_conversation() -> None:
    script = (
        TOOLS
        + """process P is let T:calc, X:int, N:int in N := 0 . execute(calc, T?) .
    ((if less(N,3) then snd-eval(T, square(N)) . rec-value(T, val(X?)) . snd-do(T, show(X)) . printf("%d ", X) .
      N := add(N,1) fi) * (if equal(N,3) then snd-terminate(T, done) fi)) endlet toolbus(P)"""
    )
    answers = {f"square({n})": f"val({n * n})" for n in range(3)}
    for seed in SEEDS:
        bus = Bus(script, seed, world=answering(answers))
        assert (bus.text, bus.ending, bus.warned) == ("0 1 4 ", "halted", [])
        assert bus.told[-1] == "1 terminate done"


def test_tools_are_values_of_their_own_types() -> None:
    script = (
        TOOLS
        + """process P is let T:calc in rec-connect(T?) . snd-msg(T) . rec-msg(end) endlet
    process Q is let V:view in rec-msg(V?) . printf("wrong") endlet
    process R is let T:calc in rec-msg(T?) . snd-do(T, f) . printf("%t", T) . rec-msg(end) endlet toolbus(P, Q, R)"""
    )
    for seed in SEEDS:
        bus = Bus(script, seed)
        bus.connect("calc")
        assert (bus.text, bus.told) == ("calc(1)", ["1 do f"])


@pytest.mark.parametrize(
    "atom", ["rec-monitor(a)", "snd-attach-monitor(a)", "snd-detach-monitor(a)", "snd-continue(a)"]
)
def test_atoms_of_monitors_are_not_taken_silently(atom: str) -> None:
    try:
        bus = Bus(f"process P is {atom} toolbus(P)")
    except ScriptError:
        return
    assert bus.findings.warnings or bus.warned


# Interface


def test_the_interface_of_a_tool_is_read_off_the_script() -> None:
    script = load(
        TOOLS
        + """process P is let T:calc, V:view, S:str, X:int, A:term in rec-connect(T?) . snd-eval(T, expr(S, "c", 1)) .
    rec-value(T, val(X?)) . snd-do(T, show(A)) . snd-do(T, show(A)) . rec-event(T, button(S?)) .
    snd-ack-event(T, button(S)) . rec-connect(V?) . snd-do(V, draw([X], f(g))) endlet toolbus(P)"""
    )
    calc = interface(script, "calc")
    assert write_text(calc.term) == (
        "signature([rec-eval(<calc>,expr(<str>,<str>,<int>)),rec-do(<calc>,show(<term>))],"
        "[snd-value(<calc>,val(<int>)),snd-event(<calc>,button(<str>)),rec-ack-event(<calc>,button(<str>))],"
        "[snd-connect(<calc>),snd-disconnect(<calc>),rec-terminate(<calc>,<term>)])"
    )
    assert "rec-do(<view>,draw(" in write_text(interface(script, "view").term)


def test_result_variables_in_what_tools_are_told_are_warned_about() -> None:
    for atom in ("snd-eval(T, f(X?))", "snd-do(T, f(X?))", "snd-ack-event(T, f(X?))"):
        script = f"{TOOLS} process P is let T:calc, X:int in rec-connect(T?) . {atom} endlet toolbus(P)"
        assert warnings(script), atom
