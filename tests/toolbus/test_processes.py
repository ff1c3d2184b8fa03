"""Tools that are real processes: started, crashing, hanging, leaving, killed, in each state; nothing hangs."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from echoic.errors import RefusedError
from echoic.scripts.running.messages import Start
from echoic.terms import Term
from echoic.toolbus import BusLimits
from echoic.toolbus.launcher import Launcher
from tests.toolbus.conftest import MakeBus
from tests.toolbus.workshop import RUN, Calc, script

pytestmark = pytest.mark.system
READY = script('execute(calc, T?) . printf("ready") . rec-event(T, never)')
QUICK = BusLimits(grace_seconds=0.3)


def runs(process: int) -> bool:
    """Whether a process is there, and is not one that has ended and that nobody has asked about."""
    try:
        return bool(Path(f"/proc/{process}/cmdline").read_bytes())
    except OSError:
        return False


def children(process: int) -> list[int]:
    """Return the tools that a process has started."""
    tasks = Path(f"/proc/{process}/task").iterdir()
    found = [int(number) for task in tasks for number in (task / "children").read_text().split()]
    return [number for number in found if b"-TB_TOOL_NAME" in Path(f"/proc/{number}/cmdline").read_bytes()]


def warned(bus: object, text: str) -> bool:
    return any(text in warning for warning in bus.warnings())  # type: ignore[attr-defined]


def test_a_tool_is_started_answers_prints_and_ends(make_bus: MakeBus, printed: list[str]) -> None:
    bus = make_bus(
        script(
            """execute(calc, T?) . snd-eval(T, expr("1+2")) . rec-value(T, val(V?)) . printf("%d\\n", V)
            . snd-eval(T, slow-expr("4")) . rec-value(T, val(V?)) . snd-do(T, show(V))
            . snd-terminate(T, bye) . rec-disconnect(T) . shutdown("")"""
        )
    )
    assert bus.run(20) == ""
    assert printed[0] == "3\n"
    assert "calc(1) >> shown 4\n" in printed
    assert bus.warnings() == ()
    assert bus.statistics().processes == ()


def test_several_tools_work_at_once_and_a_stalled_one_delays_nobody(make_bus: MakeBus) -> None:
    count = 40
    bus = make_bus(
        f"""
        tool calc is {{ command = "{RUN} Calc" }}
        tool hanger is {{ command = "{RUN} Hanger" }}
        process HANG is let T: hanger in
            execute(hanger, T?) . snd-eval(T, expr("1")) . rec-value(T, val(<int>)) . shutdown(never)
        endlet
        process WORK(N: int) is let T: calc, V: int, I: int in
            execute(calc, T?) . I := 0 .
            ( if less(I, {count}) then snd-eval(T, expr("1+1")) . rec-value(T, val(V?)) . I := add(I, 1) fi
            * if equal(I, {count}) then snd-msg(ready(N)) fi )
        endlet
        process COUNT is rec-msg(ready(<int>)) . rec-msg(ready(<int>)) . rec-msg(ready(<int>)) . shutdown(done)
        toolbus(HANG, WORK(1), WORK(2), WORK(3), COUNT)
        """,
        limits=QUICK,
    )
    assert bus.run(90) is Term("done"), bus.warnings()


@pytest.mark.parametrize(
    ("body", "command", "reason"),
    [
        ('snd-eval(T, expr("1")) . rec-value(T, val(<int>))', "Crasher", "exit code 3"),
        ("snd-do(T, show(1)) . snd-do(T, show(1))", "Crasher", "exit code 3"),
        ("rec-disconnect(T) . shutdown(left)", "Leaver", ""),
    ],
)
def test_a_tool_that_goes_is_noticed(body: str, command: str, reason: str, make_bus: MakeBus) -> None:
    bus = make_bus(
        f"""
        tool calc is {{ command = "{RUN} {command}" }}
        process P is let T: calc in execute(calc, T?) . snd-msg(there(T)) . {body} . shutdown(never) endlet
        process Q is let T: calc in rec-msg(there(T?)) . rec-disconnect(T) . shutdown(gone) endlet
        toolbus(P, Q)
        """,
        limits=QUICK,
    )
    assert bus.run(20) in (Term("gone"), Term("left"))
    assert not reason or warned(bus, reason)


@pytest.mark.parametrize("state", ["idle", "evaluating", "doing"])
def test_kill_9_in_any_state_fires_rec_disconnect(state: str, make_bus: MakeBus) -> None:
    act = {"idle": "tau", "evaluating": 'snd-eval(T, expr("1"))', "doing": "snd-do(T, show(1))"}[state]
    bus = make_bus(
        script(f'execute(calc, T?) . {act} . printf("busy") . rec-disconnect(T) . shutdown(gone)', command="Hanger"),
        limits=QUICK,
        output=(seen := threading.Event()) and (lambda text: seen.set() if "busy" in text else None),
    )
    bus.start()
    assert seen.wait(60)
    time.sleep(0.1)
    (process,) = children(os.getpid())
    os.kill(process, signal.SIGKILL)
    assert bus.wait(60)
    assert bus.value is Term("gone")
    assert warned(bus, "SIGKILL")


def test_snd_kill_ends_a_tool_that_hangs(make_bus: MakeBus) -> None:
    bus = make_bus(
        script(
            'execute(calc, T?) . snd-eval(T, expr("1")) . snd-kill(T, now) . rec-disconnect(T) . shutdown(gone)',
            command="Hanger",
        )
    )
    assert bus.run(20) is Term("gone")
    assert bus.statistics().processes == ()


def test_a_tool_that_does_not_end_is_killed_at_shutdown(make_bus: MakeBus) -> None:
    bus = make_bus(script("execute(calc, T?) . shutdown(done)", command="Stubborn"), limits=QUICK)
    begun = time.monotonic()
    assert bus.run(20) is Term("done")
    assert time.monotonic() - begun < 10
    assert bus.statistics().processes == ()


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("/nowhere/at/all", "No such file"),
        ("python -c 'unbalanced", "No closing quotation"),
        (f"{sys.executable} -c pass", "exit code 0 before it connected"),
        (f"{sys.executable} -c 'raise SystemExit(\\\"oh dear\\\")'", "before it connected: oh dear"),
        (f"{RUN} Wrong", "does not fit the script"),
    ],
)
def test_a_command_that_cannot_be_a_tool_is_lost_with_the_reason(command: str, reason: str, make_bus: MakeBus) -> None:
    bus = make_bus(
        f"""
        tool calc is {{ command = "{command}" }}
        process P is let T: calc, V: int in
            execute(calc, T?) . snd-eval(T, expr("1")) . rec-value(T, val(V?)) . shutdown(yes) endlet
        process Q is let T: calc in rec-disconnect(T?) . shutdown(no) endlet
        toolbus(P, Q)
        """,
        limits=QUICK,
    )
    assert bus.run(20) is Term("no")
    assert warned(bus, reason)


def test_a_tool_that_never_connects_is_given_up(make_bus: MakeBus) -> None:
    bus = make_bus(
        f"""
        tool calc is {{ command = "{sys.executable} -c 'import time; time.sleep(60)'" }}
        process P is let T: calc in execute(calc, T?) endlet
        process Q is let T: calc in rec-disconnect(T?) . shutdown(no) endlet
        toolbus(P, Q)
        """,
        limits=BusLimits(start_seconds=0.5, grace_seconds=0.3),
    )
    assert bus.run(20) is Term("no")
    assert warned(bus, "did not connect within 0.5 seconds")
    assert bus.statistics().processes == ()


def test_nobody_else_can_connect_as_a_tool_that_was_started(make_bus: MakeBus) -> None:
    bus = make_bus(
        f"""
        tool calc is {{ command = "{sys.executable} -c 'import time; time.sleep(60)'" }}
        process P is let T: calc in execute(calc, T?) . shutdown(stolen) endlet
        toolbus(P)
        """,
        limits=QUICK,
    )
    bus.start()
    deadline = time.monotonic() + 60
    while not bus.statistics().processes and time.monotonic() < deadline:
        time.sleep(0.01)
    for token in ("", "guess"):
        with pytest.raises(RefusedError, match="not started by this bus, or the token"):
            Calc().connect(bus.address, instance=1, token=token)
    assert not bus.halted


def test_a_tool_connects_by_itself_from_another_process(make_bus: MakeBus) -> None:
    bus = make_bus(
        script(
            'rec-connect(T?) . snd-eval(T, expr("20+1")) . rec-value(T, val(V?)) . snd-terminate(T, x) . shutdown(V)'
        )
    )
    bus.start()
    host, port = bus.address.split(":")
    words = [*RUN.split(), "Calc", "-TB_TOOL_NAME", "calc", "-TB_HOST", host, "-TB_PORT", port]
    tool = subprocess.run(words, timeout=60, check=False, capture_output=True)
    assert bus.wait(60)
    assert bus.value == 21
    assert tool.returncode == 0, tool.stderr


def test_a_tool_whose_bus_is_gone_ends(make_bus: MakeBus, tmp_path: Path) -> None:
    program = tmp_path / "bus.py"
    program.write_text(
        "import sys, os, threading\n"
        "from echoic.toolbus import Bus\n"
        f"bus = Bus.from_script({READY!r},"
        " output=lambda text: (sys.stdout.write(text), sys.stdout.flush()))\n"
        "bus.start()\nthreading.Event().wait()\n"
    )
    with subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.read(5) == "ready"
        deadline = time.monotonic() + 60
        tools = children(process.pid)
        assert tools
        process.kill()
    while time.monotonic() < deadline and any(map(runs, tools)):
        time.sleep(0.05)
    assert not any(map(runs, tools))


def test_tools_of_other_hosts_are_not_started() -> None:
    lost: list[tuple[int, str]] = []
    heard = threading.Event()
    launcher = Launcher(QUICK, lambda tool, reason: (lost.append((tool, reason)), heard.set()))
    launcher.start(Start(4, "calc", "elsewhere.example", "true", ""), "127.0.0.1:1")
    assert heard.wait(60)
    assert lost == [(4, "tools are started on this machine only, not on host `elsewhere.example`")]
    launcher.close()


def test_what_a_tool_is_told_by_its_launcher(printed: list[str]) -> None:
    ended = threading.Event()
    launcher = Launcher(QUICK, lambda tool, reason: ended.set(), output=printed.append)
    code = "import os, sys; print(sys.argv[1:], os.environ['TB_PORT'], len(os.environ['TB_TOKEN']) > 20)"
    launcher.start(Start(7, "calc", "", f'{sys.executable} -c "{code}"', "more"), "127.0.0.1:4711")
    assert ended.wait(60)
    launcher.close()
    expected = (
        "['-TB_TOOL_NAME', 'calc', '-TB_TOOL_ID', '7', '-TB_HOST', '127.0.0.1', '-TB_PORT', '4711', '-details', 'more']"
    )
    assert printed == [f"calc(7) >> {expected} 4711 True\n"]
