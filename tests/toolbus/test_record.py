"""Recordings of tools, imitation, and whole runs again."""

from pathlib import Path

import pytest

from echoic.errors import JournalError, RefusedError
from echoic.scripts.running.messages import Print, Step
from echoic.toolbus import Recording, imitate, read_recording, read_run, replay_run
from tests.toolbus.conftest import MakeBus
from tests.toolbus.workshop import Button, Calc, script

BODY = """execute(calc, T?) . snd-eval(T, expr("1+2")) . rec-value(T, val(V?)) . printf("%d", V)
    . snd-do(T, show(V)) . snd-eval(T, expr("30")) . rec-value(T, val(V?)) . printf(" %d", V) . shutdown(V)"""
SCRIPT = script(BODY)


@pytest.fixture
def recorded(make_bus: MakeBus, tmp_path: Path) -> Path:
    path = tmp_path / "calc.tbrec"
    bus = make_bus(SCRIPT)
    bus.attach(Calc)
    with Recording(path) as recording:
        bus.on_word(recording.add)
        bus.run(10)
    return path


def test_a_recording_has_every_word_in_order(recorded: Path) -> None:
    words = [(word.says, word.word, word.text) for word in read_recording(recorded)]
    assert words == [
        ("tool", "connected", "[]"),
        ("bus", "eval", '[expr("1+2")]'),
        ("tool", "value", "[val(3)]"),
        ("bus", "do", "[show(3)]"),
        ("tool", "void", "[]"),
        ("bus", "eval", '[expr("30")]'),
        ("tool", "value", "[val(30)]"),
        ("bus", "terminate", "[30]"),
    ]


def test_a_tool_is_imitated_from_its_recording(recorded: Path, make_bus: MakeBus, printed: list[str]) -> None:
    printed.clear()
    bus = make_bus(SCRIPT)
    assert imitate(bus, recorded) == ["calc"]
    assert bus.run(10) == 30
    assert "".join(printed) == "3 30"
    assert bus.warnings() == ()


def test_who_imitates_tells_where_a_script_has_changed(recorded: Path, make_bus: MakeBus) -> None:
    bus = make_bus(script(BODY.replace('"1+2"', '"1+1"')))
    imitate(bus, recorded, "calc")
    assert bus.run(10) == 30
    assert [text for text in bus.warnings() if 'told eval [expr("1+1")], in the recording eval [expr("1+2")]' in text]


def test_a_tool_that_acts_by_itself_is_imitated(make_bus: MakeBus, tmp_path: Path, printed: list[str]) -> None:
    text = script(
        """rec-connect(T?) . (rec-event(T, pressed(V?)) . printf("%d ", V) . snd-ack-event(T, pressed(V)))
        * rec-request(T, price(S?)) . snd-response(T, costs(7))
        . rec-event(T, pressed(V?)) . snd-ack-event(T, pressed(V)) . printf("%d", V) . shutdown(V)""",
        variables="V: int, S: str",
        tool="button",
    )
    bus = make_bus(text)
    bus.attach(Button())
    with Recording(tmp_path / "button.tbrec") as recording:
        bus.on_word(recording.add)
        assert bus.run(10) == 7
    again = make_bus(text)
    imitate(again, tmp_path / "button.tbrec")
    assert again.run(10) == 7
    assert "".join(printed) == "0 1 2 7" * 2


@pytest.mark.parametrize("text", ["", "nonsense\n", '{"at":1}\n', '["x"]\n'])
def test_what_is_no_recording_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(text)
    if text:
        with pytest.raises(JournalError, match="not a recording"):
            list(read_recording(path))
    with pytest.raises(JournalError):
        read_run(path)
    with pytest.raises(JournalError, match="cannot be read"):
        list(read_recording(tmp_path / "nothing"))


def test_a_run_is_repeated_step_for_step(make_bus: MakeBus, tmp_path: Path) -> None:
    text = """
    tool calc is { }
    process P(N: int) is let T: calc, V: int in
        rec-connect(T?) . snd-eval(T, expr("1")) . rec-value(T, val(V?)) . snd-msg(ready(N))
        . printf("%d", N) delay(msec(20))
    endlet
    process Q is let N: int in
        rec-msg(ready(N?)) . rec-msg(ready(N?)) . rec-msg(ready(N?)) . shutdown(N) delay(msec(60))
    endlet
    toolbus(P(1), P(2), P(3), Q)
    """
    steps: list[Step] = []
    bus = make_bus(text, seed=None, log=tmp_path / "run", traced=True)
    bus.on_step(steps.append)
    for _ in range(3):
        bus.attach(Calc())
    value = bus.run(10)
    again = [effect for effects in replay_run(tmp_path / "run", text) for effect in effects]
    assert [effect for effect in again if isinstance(effect, Step)] == steps
    assert "".join(effect.text for effect in again if isinstance(effect, Print)) == "".join(
        str(step.process) for step in steps if step.atom == "printf"
    )
    assert value in (1, 2, 3)
    with pytest.raises(RefusedError, match="another script"):
        list(replay_run(tmp_path / "run", text.replace("delay", "  delay")))
