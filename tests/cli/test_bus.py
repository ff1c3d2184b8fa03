"""`echoic bus` with real processes: running scripts with their tools, looking at them, ending them."""

import json
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.terminals import Desk, desk, poll, type_here

pytestmark = pytest.mark.system

TOOL = """
from echoic.toolbus import Term, Tool, do, eval_, event

class Adder(Tool, name="adder"):
    @eval_(returns="sum(int)")
    def add(self, one: int, other: int) -> Term:
        return Term("sum", one + other)

    @do
    def show(self, value: int) -> None:
        print("shown", value, "\\x1b[2J")

Adder.run()
"""
SUMS = """
tool adder is { command = "python adder.py" }
process Sums is
  let A: adder, V: int in
    execute(adder, A?) . snd-eval(A, add(LEFT, 2)) . rec-value(A, sum(V?)) . printf("sum %d\\n", V) .
    snd-do(A, show(V)) . snd-do(A, show(0)) . shutdown("done")
  endlet
toolbus(Sums)
"""
WAITING = """
tool adder is { command = "python adder.py" }
process Asks is let A: adder in
  subscribe(news(<int>)) . snd-note(news(7)) . execute(adder, A?) . (rec-event(A, ready) + rec-msg(nobody)) endlet
process Sleeps is printf("awake\\n") . tau delay(sec(3600))
toolbus(Asks, Sleeps)
"""


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.chdir(tmp_path)
    Path("adder.py").write_text(TOOL)
    with tempfile.TemporaryDirectory() as runtime, desk() as made:  # the address of a socket must be short
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        yield made


def write(name: str, text: str) -> str:
    Path(name).write_text(textwrap.dedent(text))
    return name


def test_a_script_runs_with_its_tool_and_can_be_traced_recorded_and_repeated(system: Desk) -> None:
    write("sums.tb", SUMS)
    ran = system.run("bus", "run", "sums.tb", "-D", "LEFT=40", "--trace", "sums.trace", "--record", "sums.run")
    assert ran.process.returncode == 0, ran.err
    assert ran.out.splitlines()[0] == "sum 42"
    assert "adder(1) >> shown 42 \\x1b[2J\n" in ran.out  # nothing that a terminal would obey

    code, out, _ = type_here("bus", "trace", "sums.trace")
    assert code == 0
    assert [line.split()[3].partition("(")[0] for line in out.splitlines()] == [
        "execute",
        "rec-connect",
        "snd-eval",
        "rec-value",
        "printf",
        "snd-do",
        "snd-do",
        "shutdown",
    ]
    code, again, err = type_here("bus", "replay", "sums.run", "sums.tb", "-D", "LEFT=40", "--trace", "again.trace")
    assert (code, again, err) == (0, "sum 42\n", "8 steps were done again\n")
    assert steps_of("again.trace") == steps_of("sums.trace")
    code, _, err = type_here("bus", "replay", "sums.run", "sums.tb", "-D", "LEFT=1")
    assert code == 1
    assert err.startswith("error: the log is of another script: sums.tb has changed")


def steps_of(path: str) -> list[object]:
    _, *steps = map(json.loads, Path(path).read_text().splitlines())
    return [(step["number"], step["atom"], step["arguments"], step["line"]) for step in steps]


def test_tools_are_imitated_for_a_script_that_has_changed(system: Desk) -> None:
    write("sums.tb", SUMS)
    recorded = system.run("bus", "record", "sums.tb", "sums.words", "--tools", "-D", "LEFT=40")
    assert recorded.process.returncode == 0, recorded.err
    Path("adder.py").unlink()
    write("sums.tb", SUMS.replace("sum %d", "the sum is %d"))
    played = system.run("bus", "replay", "sums.words", "sums.tb", "-D", "LEFT=40")
    assert (played.process.returncode, played.out) == (0, "the sum is 42\n")
    other = system.run("bus", "replay", "sums.words", "sums.tb", "-D", "LEFT=1")
    assert other.process.returncode == 1
    assert "in the recording" in other.err
    nobody = system.run("bus", "replay", "sums.words", "sums.tb", "-D", "LEFT=40", "--tool", "nobody")
    assert (nobody.process.returncode, nobody.err) == (1, "error: sums.words has nothing of a tool nobody\n")


def test_a_console_shows_a_running_bus_and_ends_it(system: Desk) -> None:
    write("waiting.tb", WAITING)
    assert type_here("bus", "console")[::2] == (3, "error: no bus runs here (echoic bus run --help)\n")
    running = system.start("bus", "run", "waiting.tb", "--name", "office", "--quiet").shows("awake")
    poll(lambda: '"state":"ready"' in type_here("bus", "console", "office", "--json")[1], "the tool to be there")
    state = json.loads(type_here("bus", "console", "office", "--json")[1])
    asks, sleeps = state["processes"]
    assert (asks["name"], asks["notes"], asks["waiting"][0]["text"]) == ("Asks", ["news(7)"], "rec-event(A, ready)")
    assert (sleeps["name"], sleeps["timed"]) == ("Sleeps", True)
    assert (state["tools"][0]["name"], state["tools"][0]["state"]) == ("adder", "ready")
    assert [each.endswith("no `snd-msg` sends anything like this") for each in state["checks"]] == [True]

    _, out, _ = type_here("bus", "console")
    assert "note for Asks(1): news(7)" in out
    assert "rec-event(A, ready)" in out
    missing = type_here("bus", "console", "offfice")
    assert missing == (3, "", "error: no bus offfice runs here (did you mean `office`?)\n")

    second = system.start("bus", "run", "waiting.tb", "--name", "other", "--quiet").shows("awake")
    _, listed, _ = type_here("bus", "console")
    assert [line.split()[0] for line in listed.splitlines()] == ["BUS", "office", "other"]
    assert second.interrupt(signal.SIGTERM) == 0
    assert "ended by SIGTERM after" in second.err

    assert type_here("bus", "console", "office", "--shutdown") == (0, "", "bus office ends\n")
    assert running.ends() == 0
    assert running.err.endswith("ended by a console\n")
    assert type_here("bus", "console", "office")[0] == 3


def test_ctrl_c_ends_a_bus_and_its_tools(system: Desk) -> None:
    write("waiting.tb", WAITING)
    Path("adder.py").write_text(TOOL + "\nprint('tool ended')\n")
    running = system.start("bus", "run", "waiting.tb", "--quiet")
    poll(lambda: '"state":"ready"' in type_here("bus", "console", "--json")[1], "the tool to be there")
    assert running.interrupt() == 0
    assert "ended by Ctrl-C after" in running.err
    assert "tools connect to" not in running.err, "it has started all of them"
    assert "adder(1) >> tool ended" in running.out


def test_a_bus_says_where_tools_connect_to_that_it_does_not_start(system: Desk) -> None:
    write("sums.tb", SUMS.replace('command = "python adder.py"', "").replace("execute(adder, A?)", "rec-connect(A?)"))
    running = system.start("bus", "run", "sums.tb", "-D", "LEFT=1").says("Ctrl-C ends\n")
    host, port = re.findall(r"^tools connect to (127\.0\.0\.1):(\d+), Ctrl-C ends$", running.err, re.MULTILINE)[0]
    subprocess.run([sys.executable, "adder.py", "-TB_HOST", host, "-TB_PORT", port], check=True, timeout=60)
    assert running.ends() == 0
    assert "sum 3" in running.out


def test_a_script_in_which_nothing_can_happen_any_more_fails(system: Desk) -> None:
    write("stuck.tb", "process A is snd-msg(a) . rec-msg(b)\nprocess B is rec-msg(a) . snd-msg(c)\ntoolbus(A, B)\n")
    ran = system.run("bus", "run", "stuck.tb", "--quiet")
    assert ran.process.returncode == 1
    assert "nothing can happen in stuck.tb any more, after 1 steps" in ran.err
    assert "A(1) waits for rec-msg(b) at line 1" in ran.err
    write("lost.tb", SUMS.replace("adder.py", "nothing.py"))
    lost = system.run("bus", "run", "lost.tb", "-D", "LEFT=1")
    assert lost.process.returncode == 1
    assert "Sums(1) waits for execute(adder, A?)" in lost.err
    write("read.tb", 'process P is let X: str in read("? ", X?) endlet toolbus(P)')
    assert system.run("bus", "run", "read.tb").process.returncode == 1


def test_what_is_typed_is_read_by_the_script(system: Desk) -> None:
    write("read.tb", 'process P is let X: str in read("who? ", X?) . printf("hello %s\\n", X) endlet toolbus(P)')
    running = system.start("bus", "run", "read.tb")
    running.type("Ann")
    assert running.ends() == 0
    assert running.out == "who? hello Ann\n"


def test_steps_are_told_on_a_channel(system: Desk) -> None:
    listening = system.start("echo", "bus.loop", "--json", "-n", "1", "--filter", "input.line == 1")
    write("loop.tb", "process P is (tau delay(msec(50))) * delta\ntoolbus(P)\n")
    running = system.start("bus", "run", "loop.tb", "--channel")
    assert listening.ends() == 0
    step = json.loads(listening.out)
    assert (step["name"], step["atom"], step["line"]) == ("P", "tau", 1)
    assert running.interrupt() == 0


def test_a_skeleton_runs_as_it_is(system: Desk) -> None:
    write(
        "shop.tb",
        """
        tool shop is { command = "python shop.py" }
        process P is
          let S: shop, N: int, L: list, T: term in
            execute(shop, S?) . snd-eval(S, price-of("apple", [1, 2])) . rec-value(S, price(N?, L?)) .
            snd-do(S, print(N)) . snd-eval(S, any) . rec-value(S, T?) . printf("%d %l\\n", N, L) .
            (rec-event(S, sold(N?)) + snd-do(S, print(N, "twice")) . shutdown("done"))
          endlet
        toolbus(P)
        """,
    )
    code, out, err = type_here("bus", "tifs", "shop.tb", "--stubs", "python")
    assert (code, err) == (0, "")
    assert 'def price_of(self, value1: str, value2: tuple[int, int]) -> Annotated[Term, "price(int,list)"]:' in out
    Path("shop.py").write_text(out)
    ran = system.run("bus", "run", "shop.tb")
    assert (ran.process.returncode, ran.out) == (0, "0 []\n"), ran.err


def test_the_version_is_told_without_importing_anything_costly() -> None:
    source = "import sys; sys.argv = ['echoic', '--version']; from echoic.cli import main; main(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stdout.split())
    assert not loaded & {"lark", "numpy", "cyclopts", "echoic.toolbus", "echoic.scripts", "echoic.hub"}
