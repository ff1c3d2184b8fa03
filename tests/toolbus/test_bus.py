"""A bus with tools in its own process, stubs, clocks, a keyboard; running, stepping and ending."""

import threading
import time
from pathlib import Path

import pytest

from echoic.errors import ClosedError, InsecureError, LocalError, RefusedError, ScriptError, UnreachableError
from echoic.scripts.running.messages import FromTool, Step, ToTool
from echoic.terms import Term, TermList
from echoic.toolbus import Bus, BusLimits, Tool, do, eval_
from echoic.toolbus.direct import DirectLine
from tests.toolbus.conftest import MakeBus
from tests.toolbus.workshop import Button, Calc, Crasher, Patient, Wrong, script

HELLO = 'process P is printf("hello\\n") . shutdown(done(1))\ntoolbus(P)'


def test_a_script_without_tools_runs_to_its_end(make_bus: MakeBus, printed: list[str]) -> None:
    bus = make_bus(HELLO)
    assert bus.run(5) is Term("done", 1)
    assert bus.halted
    assert printed == ["hello\n"]
    assert bus.statistics().machine.steps == 2


def test_a_script_that_ends_by_itself_has_no_value(make_bus: MakeBus) -> None:
    assert make_bus("process P is tau\ntoolbus(P)").run(5) is None


def test_a_script_can_be_a_file_with_includes_and_macros(make_bus: MakeBus, printed: list[str], tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "greet.tb").write_text("process GREET is printf(WORD)\n")
    (tmp_path / "main.tb").write_text("#include <greet.tb>\ntoolbus(GREET)\n")
    make_bus(tmp_path / "main.tb", include=[tmp_path / "more"], defines={"WORD": '"hi"'}).run(5)
    assert printed == ["hi"]


def test_what_is_wrong_with_a_script_is_told_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match="X"):
        Bus.from_script("process P is X := 1\ntoolbus(P)")
    with pytest.raises(ScriptError, match="cannot be read"):
        Bus.from_script(tmp_path / "nothing.tb")


def test_an_attached_tool_answers_and_does(make_bus: MakeBus, printed: list[str]) -> None:
    bus = make_bus(
        script(
            """execute(calc, T?) . snd-eval(T, expr("1+2")) . rec-value(T, val(V?)) . printf("%d", V)
            . snd-eval(T, slow-expr("4+5")) . rec-value(T, val(V?)) . printf(" %d", V)
            . snd-do(T, show(V)) . snd-do(T, show-later([V]))
            . snd-eval(T, doubled([1,2])) . rec-value(T, val([2,4]))
            . snd-terminate(T, bye) . rec-disconnect(T) . shutdown("")"""
        )
    )
    tool = Calc()
    bus.attach(tool)
    bus.run(10)
    assert "".join(printed) == "3 9"
    assert tool.shown == [9, TermList(9)]
    assert tool.terminated is Term("bye")
    assert tool.wait(60)
    assert bus.warnings() == ()


@pytest.mark.parametrize("cls", [Button, Patient])
def test_a_tool_acts_by_itself_with_await_and_without(cls: type[Tool], make_bus: MakeBus, printed: list[str]) -> None:
    bus = make_bus(
        script(
            """rec-connect(T?) .
            ( rec-event(T, pressed(V?)) . printf("%d ", V) . snd-ack-event(T, pressed(V), thanks(V))
            + rec-request(T, price(S?)) . snd-response(T, costs(75)) )
            * rec-event(T, pressed(75)) . snd-ack-event(T, pressed(75)) . shutdown("")""",
            variables="V: int, S: str",
            tool="button",
        )
    )
    tool = cls()
    bus.attach(tool)
    bus.run(10)
    assert "".join(printed) == "0 1 2 "
    if isinstance(tool, Button):
        assert tool.acknowledged == [Term("thanks", 0), Term("thanks", 1), Term("thanks", 2)]


def test_an_eval_that_fails_has_the_value_tool_error_and_warns(make_bus: MakeBus, printed: list[str]) -> None:
    bus = make_bus(
        script(
            """execute(calc, T?) . snd-eval(T, expr("1+x"))
            . (rec-value(T, tool-error(S?, W?)) . printf("%s: %s", S, W) + rec-value(T, val(V?))) . shutdown("")""",
            variables="V: int, S: str, W: str",
        )
    )
    bus.attach(Calc)
    bus.run(10)
    assert "".join(printed) == "expr: ValueError: invalid literal for int() with base 10: 'x'"
    assert "ValueError" in bus.warnings()[0]


def test_a_value_that_does_not_fit_a_hint_is_refused_with_a_clear_text(make_bus: MakeBus, printed: list[str]) -> None:
    bus = make_bus(
        script(
            """execute(calc, T?) . X := quote(expr(1)) . snd-eval(T, X) . rec-value(T, tool-error(S?, W?))
            . printf("%s", W) . X := quote(nothing) . snd-eval(T, X) . (rec-value(T, tool-error(S?, W?))
            + rec-value(T, val(S?))) . printf("%s", W) . shutdown("")""",
            variables="S: str, W: str, X: term",
        )
    )
    bus.provide("calc", DirectLine(Calc(), bus))
    bus.run(10)
    assert "expected `str`, got `1` - at argument 1 of `expr`" in printed[0]
    assert "has no `@eval_` method `nothing`" in printed[1]


def test_a_tool_that_does_not_fit_is_refused_with_both_interfaces(make_bus: MakeBus) -> None:
    bus = make_bus(script('execute(calc, T?) . snd-eval(T, expr("1")) . rec-value(T, val(V?))'))
    with pytest.raises(RefusedError) as refused:
        bus.attach(Wrong)
    text = str(refused.value)
    assert "rec-eval(<calc>,expr(<str>))" in text
    assert "rec-eval(<calc>,expr(<int>))" in text
    assert "snd-value(<calc>,val(<int>))" in text
    assert "snd-value(<calc>,val(<str>))" in text


def test_values_of_evals_that_a_script_does_not_use_need_not_fit(make_bus: MakeBus) -> None:
    bus = make_bus(script("execute(calc, T?) . snd-eval(T, where-are-you) . rec-value(T, val(V?))"))
    bus.attach(Calc)
    assert bus.run(5) is None


def test_a_script_is_tested_with_stubs(make_bus: MakeBus, printed: list[str]) -> None:
    bus = make_bus(
        script(
            """execute(calc, T?) . rec-event(T, go(V?)) . snd-eval(T, expr(V)) . rec-value(T, val(V?)) . printf("%d", V)
            . snd-ack-event(T, go(1)) . snd-do(T, stop) . shutdown("")"""
        )
    )
    stub = bus.stub("calc", {"expr": lambda number: Term("val", number * 10)})
    bus.start()
    bus.inject_event("calc", Term("go", 1))
    assert bus.wait(60)
    assert printed == ["10"]
    assert [str(kind) for kind, _ in stub.told] == ["eval", "ack-event", "do", "terminate"]
    assert stub.closed


def test_a_bus_can_be_stepped(make_bus: MakeBus, printed: list[str]) -> None:
    bus = make_bus('process P is printf("a") . printf("b") . delay(sec(1))\ntoolbus(P)'.replace(" . delay(sec(1))", ""))
    assert bus.step()
    assert printed == ["a"]
    assert bus.step()
    assert printed == ["a", "b"]
    assert not bus.step()
    assert bus.halted
    with pytest.raises(LocalError, match="no tool"):
        bus.inject_event("calc", Term("go"))


def test_a_stepped_bus_hears_events_that_are_injected(make_bus: MakeBus) -> None:
    bus = make_bus(script("rec-connect(T?) . rec-event(T, go(V?)) . shutdown(V)", command=""))
    bus.stub("calc")
    assert bus.step()
    assert not bus.step()
    bus.inject_event("calc", Term("go", 5))
    assert bus.step()
    assert bus.step()
    assert (bus.halted, bus.value) == (True, 5)


def test_what_runs_by_itself_is_not_stepped(make_bus: MakeBus) -> None:
    bus = make_bus("process P is delta\ntoolbus(P)".replace("delta", "rec-msg(never)"))
    bus.start()
    with pytest.raises(LocalError, match="by itself"):
        bus.step()
    with pytest.raises(LocalError, match="already"):
        bus.start()
    bus.close()
    with pytest.raises(ClosedError):
        bus.step()


def test_an_hour_passes_at_once_with_a_virtual_clock(make_bus: MakeBus, printed: list[str]) -> None:
    bus = make_bus(
        'process P is printf("a") delay(sec(3600)) . printf("b") delay(sec(3600))\ntoolbus(P)', clock="virtual"
    )
    begun = time.monotonic()
    bus.run(10)
    assert "".join(printed) == "ab"
    assert time.monotonic() - begun < 5


def test_a_virtual_clock_stands_still_while_a_tool_works(make_bus: MakeBus, printed: list[str]) -> None:
    bus = make_bus(
        script(
            """execute(calc, T?) . snd-eval(T, sleep-for(0.2))
            . ( rec-value(T, val(V?)) . printf("value") + printf("timer") delay(sec(10)) ) . shutdown("")"""
        ),
        clock="virtual",
    )
    bus.attach(Calc)
    bus.run(10)
    assert printed == ["value"]


def test_real_delays_are_kept(make_bus: MakeBus) -> None:
    begun = time.monotonic()
    make_bus("process P is tau delay(msec(150))\ntoolbus(P)").run(10)
    assert 0.15 <= time.monotonic() - begun < 5


def test_lines_are_read_from_the_keyboard(make_bus: MakeBus, printed: list[str]) -> None:
    prompts: list[str] = []
    lines = iter(["f(1)", None])

    def read_line(prompt: str) -> str | None:
        prompts.append(prompt)
        return next(lines)

    bus = make_bus(
        'process P is let N: int in read("number? ", f(N?)) . printf("%d", N) . shutdown(N) endlet\ntoolbus(P)',
        read_line=read_line,
    )
    assert bus.run(10) == 1
    assert prompts[0] == "number? "


def test_every_step_is_told_to_hooks(make_bus: MakeBus) -> None:
    steps: list[Step] = []
    bus = make_bus("process P is snd-msg(a)\nprocess Q is rec-msg(a) . tau\ntoolbus(P, Q)", traced=True)
    bus.on_step(steps.append)
    bus.run(5)
    assert {step.atom for step in steps} >= {"tau"}
    handshake = next(step for step in steps if step.atom.endswith("msg"))
    assert handshake.partner is not None
    assert [step.number for step in steps] == sorted(step.number for step in steps)


def test_a_tool_that_floods_the_bus_is_slowed_down(make_bus: MakeBus) -> None:
    bus = make_bus(
        script("rec-connect(T?) . (rec-event(T, n(V?)) * rec-event(T, stop)) . shutdown(V)", command=""),
        limits=BusLimits(heard_max=10),
    )
    stub = bus.stub("calc")

    def flood() -> None:
        for number in range(5000):
            stub.say(FromTool.EVENT, Term("n", number))
        stub.say(FromTool.EVENT, Term("stop"))

    thread = threading.Thread(target=flood, daemon=True)
    unheard = 0
    bus.start()
    thread.start()
    while not bus.wait(0.001):
        unheard = max(unheard, bus.statistics().unheard)
    assert unheard <= 11
    assert bus.statistics().tools[0].said > 4900


def test_a_value_that_nobody_asked_for_is_warned_about_and_ignored(make_bus: MakeBus) -> None:
    bus = make_bus(
        script(
            'rec-connect(T?) . rec-event(T, go) . snd-eval(T, expr("1")) . rec-value(T, val(V?)) . shutdown(V)',
            command="",
        )
    )
    stub = bus.stub("calc", {"expr": Term("val", 7)})
    bus.start()
    stub.say(FromTool.VALUE, Term("val", 1))
    stub.say(FromTool.VOID)
    stub.say(FromTool.EVENT, Term("go"))
    assert bus.wait(60)
    assert bus.value == 7
    assert any("nobody has asked" in text for text in bus.warnings())


def test_a_late_answer_to_a_cancelled_eval_is_dropped(make_bus: MakeBus) -> None:
    class Slow(Tool, name="calc"):
        @eval_
        def ask(self, seconds: float) -> int:
            time.sleep(seconds)
            return round(seconds * 10)

    bus = make_bus(
        script(
            """execute(calc, T?) . snd-eval(T, ask(0.3)) . tau delay(msec(50)) . snd-cancel(T)
            . snd-eval(T, ask(0.1)) . rec-value(T, value(V?)) . shutdown(V)"""
        )
    )
    bus.attach(Slow)
    assert bus.run(10) == 1


def test_a_lost_tool_fires_rec_disconnect_whatever_it_was_doing(make_bus: MakeBus) -> None:
    body = {
        "idle": "rec-connect(T?)",
        "evaluating": 'rec-connect(T?) . snd-eval(T, expr("1"))',
        "acknowledged": "rec-connect(T?) . rec-event(T, go)",
    }
    for state, start in body.items():
        bus = make_bus(script(f"{start} . rec-disconnect(T) . shutdown({state})", command=""))
        stub = bus.stub("calc")
        bus.start()
        if state == "acknowledged":
            bus.inject_event("calc", Term("go"))
        if state == "evaluating":
            stub.wait_for(ToTool.EVAL)
        stub.lose("for the test")
        assert bus.wait(60), state
        assert bus.value is Term(state)


class Slow(Tool, name="slow"):
    def __init__(self) -> None:
        super().__init__()
        self.done: list[int] = []

    @do
    def keep(self, number: int) -> None:
        time.sleep(0.05)
        self.done.append(number)


def test_what_a_tool_was_told_before_the_end_is_done(make_bus: MakeBus) -> None:
    bus = make_bus(
        'tool slow is { command = "" }\n'
        "process P is let T : slow in\n"
        "  rec-connect(T?) . snd-do(T, keep(1)) . snd-do(T, keep(2)) . shutdown(over) endlet\n"
        "toolbus(P)"
    )
    slow = Slow()
    bus.attach(slow)
    assert bus.run(5) is Term("over")
    assert slow.done == [1, 2]
    assert bus.statistics().machine.warnings == 0


def test_a_bus_that_is_closed_says_so(make_bus: MakeBus) -> None:
    bus = make_bus(script("rec-connect(T?) . rec-event(T, never)", command=""))
    tool = Calc()
    bus.attach(tool)
    bus.start()
    threading.Timer(0.2, bus.close).start()
    with pytest.raises(ClosedError):
        bus.run(10)
    assert tool.wait(60)
    with pytest.raises(UnreachableError, match="did not halt"):
        make_bus(script("rec-connect(T?)")).run(0.1)


def test_addresses_that_others_reach_need_an_identity() -> None:
    with pytest.raises(InsecureError, match="insecure=True"):
        Bus.from_script(HELLO, listen="0.0.0.0:0")


def test_a_tool_of_an_unknown_name_is_refused(make_bus: MakeBus) -> None:
    bus = make_bus(script("rec-connect(T?)"))
    with pytest.raises(RefusedError, match="did it mean `calc`"):
        bus.attach(Crasher(), name="calk")


def test_execute_without_a_command_is_lost_with_a_reason(make_bus: MakeBus) -> None:
    bus = make_bus(
        "tool calc is { }\nprocess P is let T: calc in execute(calc, T?) . shutdown(yes) endlet\n"
        "process Q is let T: calc in rec-disconnect(T?) . shutdown(no) endlet\ntoolbus(P, Q)"
    )
    assert bus.run(5) is Term("no")
    assert any("no command" in text for text in bus.warnings())
