"""`echoic bus` on files: checks, traces, interfaces, and all that can be wrong with them."""

import contextlib
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from echoic.cli.bus_run import Manner, Run
from echoic.cli.bus_scripts import PLAIN
from echoic.cli.bus_trace_page import page_of
from echoic.cli.bus_tracing import TraceHead
from echoic.errors import RefusedError
from echoic.scripts.exploring import read_aut
from echoic.toolbus import Tool
from echoic.toolbus.history import TracedStep
from tests.cli.terminals import free_port, type_here

HELLO = 'process Hello is printf("hello\\n") . shutdown("done")\ntoolbus(Hello)\n'
PHILOSOPHERS = """process PHIL(L: int, R: int) is
  ( snd-msg(get(L)) . snd-msg(get(R)) . snd-msg(put(L)) . snd-msg(put(R)) ) * delta
process FORK(N: int) is
  ( rec-msg(get(N)) . rec-msg(put(N)) ) * delta
toolbus(PHIL(0,1), FORK(0), PHIL(1,2), FORK(1), PHIL(2,0), FORK(2))
"""
DOORS = """tool door is { command = "door" }
process P is
  let D: door, N: int in
    rec-connect(D?) . snd-eval(D, state) . rec-value(D, open(N?)) .
    if equal(N, 2) then rec-msg(never) else shutdown("done") fi
  endlet
toolbus(P)
"""
STUBS = """process Door is rec-msg(eval, door, state) . snd-msg(value, door, open(1))
toolbus(Door)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    for name, text in (("hello.tb", HELLO), ("phil.tb", PHILOSOPHERS), ("doors.tb", DOORS), ("stubs.tb", STUBS)):
        Path(name).write_text(text)


def test_a_script_that_is_in_order_is_said_to_be() -> None:
    assert type_here("bus", "check", "hello.tb") == (0, "3 states and 2 steps were looked at: nothing is wrong\n", "")
    assert type_here("bus", "check", "hello.tb", "--no-explore")[1] == "the text is in order: 0 warnings\n"


def test_a_deadlock_is_shown_with_the_shortest_way_to_it() -> None:
    code, out, err = type_here("bus", "check", "phil.tb")
    assert (code, err) == (1, "")
    assert out.startswith("phil.tb:2:23: deadlock: PHIL(1) waits for snd-msg(get(1))")
    assert "    3. PHIL(5) -> FORK(6): snd-msg(get(2))  at 2:5, 4:5" in out
    code, out, _ = type_here("bus", "check", "phil.tb", "--json")
    found = json.loads(out)
    assert (code, found["ok"], found["explored"]["complete"]) == (1, False, True)
    (deadlock,) = found["findings"]
    assert (deadlock["kind"], deadlock["line"], len(deadlock["trace"])) == ("deadlock", 2, 3)


def test_states_are_written_for_other_programs() -> None:
    type_here("bus", "check", "phil.tb", "--aut", "phil.aut", "--dot", "phil.dot")
    assert read_aut(Path("phil.aut").read_text()).states > 3
    assert Path("phil.dot").read_text().startswith("digraph")
    assert type_here("bus", "check", "phil.tb", "--aut", "nowhere/phil.aut")[0] == 1
    assert type_here("bus", "check", "phil.tb", "--aut", "phil.aut", "--no-explore")[0] == 1


def test_what_tools_may_say_is_chosen_by_domains_and_stubs() -> None:
    assert type_here("bus", "check", "doors.tb")[0] == 0  # 0 and 1 only
    code, out, _ = type_here("bus", "check", "doors.tb", "--domain", "int=1..2")
    assert code == 1
    assert "deadlock" in out
    assert type_here("bus", "check", "doors.tb", "--domain", "int=1..2", "--stubs", "stubs.tb")[0] == 0
    for wrong in ("int", "int=2..1", "int=x", "Int=1", "int=1..100000", "term=f("):
        code, _, err = type_here("bus", "check", "doors.tb", "--domain", wrong)
        assert (code, "at --domain" in err) == (1, True), wrong
    assert type_here("bus", "check", "doors.tb", "--stubs", "hello.tb")[2].startswith("error: the stubs play no tool")


def test_a_limited_exploration_says_what_it_has_not_looked_at() -> None:
    code, out, _ = type_here("bus", "check", "phil.tb", "--states-max", "2")
    assert code == 0
    assert "not looked at: " in out
    assert type_here("bus", "check", "phil.tb", "--states-max", "2", "--strict")[0] == 1
    assert type_here("bus", "check", "phil.tb", "--states-max", "0")[0] == 1


def test_mistakes_are_shown_with_carets_wherever_they_are_found() -> None:
    Path("bad.tb").write_text("process P is snd-mesg(a)\ntoolbus(P)\n")
    shown = (
        "bad.tb:1:14: there is no atom `snd-mesg` (did you mean `snd-msg`?)\n    process P is snd-mesg(a)\n"
        "                 ^\n"
    )
    assert type_here("bus", "check", "bad.tb") == (1, shown, "")
    assert type_here("bus", "run", "bad.tb") == (2, "", f"error: {shown}")
    (problem,) = json.loads(type_here("bus", "check", "bad.tb", "--json")[1])["errors"]
    assert (problem["line"], problem["column"]) == (1, 14)
    Path("typed.tb").write_text("process P is let X: int in X := Y endlet\ntoolbus(P, Q)\n")
    code, out, _ = type_here("bus", "check", "typed.tb")
    assert (code, out.count("^")) == (1, 2)


@pytest.mark.parametrize("verb", ["run", "check", "tifs"])
def test_a_script_that_is_not_there_is_not_found(verb: str) -> None:
    expected = (3, "", "error: there is no script helo.tb (did you mean `hello.tb`?)\n")
    assert type_here("bus", verb, "helo.tb") == expected
    assert type_here("bus", verb, ".")[0] == 3


def test_included_files_are_looked_for_in_folders() -> None:
    Path("parts").mkdir()
    Path("parts/part.tb").write_text('process Part is printf("part\\n")\n')
    Path("whole.tb").write_text("#include <part.tb>\n#ifdef ON\ntoolbus(Part)\n#endif\n")
    assert type_here("bus", "check", "whole.tb", "-I", "parts", "-D", "ON")[0] == 0
    assert type_here("bus", "check", "whole.tb", "-I", "parts")[0] == 1
    assert "part.tb" in type_here("bus", "check", "whole.tb", "-D", "ON")[1]
    assert type_here("bus", "check", "whole.tb", "-D", "=1")[2] == "error: expected NAME=TEXT, got `=1` - at -D\n"


def test_interfaces_are_told() -> None:
    code, out, err = type_here("bus", "tifs", "doors.tb")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "door             input  rec-eval(<door>,state)"
    (door,) = json.loads(type_here("bus", "tifs", "doors.tb", "--json")[1])
    assert door["signature"].startswith("signature([rec-eval(<door>,state)],[snd-value(<door>,open(<int>))],[")
    assert type_here("bus", "tifs", "doors.tb", "dor")[2] == (
        "error: doors.tb has no tool dor (did you mean `door`?)\n"
    )
    assert type_here("bus", "tifs", "hello.tb") == (0, "", "hello.tb has no tools\n")


HEAD = '{"trace":1,"script":"x.tb","seed":1,"began":0.0}\n'
STEP = (
    '{"number":1,"at":0.5,"process":1,"name":"A","atom":"snd-msg","arguments":["\\"\\u001b[2J<b>\\""],"file":"x.tb",'
    '"line":3,"column":1,"partner":2,"partner_name":"B","partner_line":9}\n'
)


def test_a_trace_is_shown_and_nothing_in_it_drives_a_terminal() -> None:
    Path("x.trace").write_text(HEAD + STEP + STEP.replace('"partner":2,"partner_name":"B",', ""))
    code, out, _ = type_here("bus", "trace", "x.trace")
    assert (code, len(out.splitlines())) == (0, 2)
    assert "A(1) -> B(2)" in out.splitlines()[0]
    assert out.splitlines()[0].endswith("x.tb:3, 9")
    assert "\x1b" not in out
    assert len(type_here("bus", "trace", "x.trace", "--handshakes")[1].splitlines()) == 1
    assert len(type_here("bus", "trace", "x.trace", "--process", "B", "--json")[1].splitlines()) == 1
    assert type_here("bus", "trace", "x.trace", "--atom", "printf")[1] == ""
    assert type_here("bus", "trace", "x.trace", "-n", "0")[0] == 1


def test_a_page_is_one_file_that_loads_nothing_and_escapes_everything() -> None:
    Path("x.trace").write_text(HEAD + STEP)
    code, out, err = type_here("bus", "trace", "x.trace", "--html", "x.html")
    assert (code, out, err) == (0, "", "1 steps are drawn in x.html\n")
    page = Path("x.html").read_text()
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
    assert not re.search(r"(?:src|href)=|url\((?!#)|<script|@import", page)
    svg = page[page.index("<svg") : page.index("</svg>") + 6]
    ElementTree.fromstring(re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f]", "", svg))


def test_hostile_names_stay_texts() -> None:
    step = TracedStep(
        number=1, at=0.0, process=1, name='"><script>', atom="snd-eval", arguments=["'\"><img src=x>", "f"], file="<&>",
        line=1, column=1,
    )  # fmt: skip
    page = page_of(TraceHead(trace=1, script="</title><script>", seed=1, began=0.0), [step], more=True)
    assert "<script>" not in page
    assert "<img" not in page


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a trace"),
        ("hello\n", "is not a trace"),
        ('{"digest":"x"}\n', "but the log of a run"),
        ('{"at":1,"says":"bus"}\n', "but what tools and a bus have said"),
        (HEAD.replace('"trace":1', '"trace":2'), "version 2"),
        (HEAD + STEP + "{}\n", "is damaged"),
        ("\x00" * 100, "is not a trace"),
    ],
)
def test_what_is_no_trace_is_refused(text: str, said: str) -> None:
    Path("x.trace").write_text(text)
    code, _, err = type_here("bus", "trace", "x.trace")
    assert code == 1
    assert said in err
    assert err.count("\n") == 1


def test_what_is_no_recording_is_refused() -> None:
    Path("x.run").write_text("hello\n")
    code, _, err = type_here("bus", "replay", "x.run", "hello.tb")
    assert code == 1
    assert "is not the log of a run" in err
    assert type_here("bus", "replay", "nothing.run", "hello.tb")[0] == 3
    assert type_here("bus", "console", "--watch", "0")[0] == 1


def test_a_bus_that_strangers_could_reach_is_denied() -> None:
    code, _, err = type_here("bus", "run", "hello.tb", "--listen", "0.0.0.0:0")
    assert code == 4
    assert "name an --identity (echoic keys), or pass --insecure if meant" in err
    assert type_here("bus", "run", "hello.tb", "--name", "../x")[0] == 1


@pytest.mark.parametrize("said", ["option", "environment", "channels"])
def test_a_bus_goes_by_a_file_of_rights(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert type_here("bus", "run", "hello.tb", "--rights", "nothing")[0] == 3
    Path("rights").touch(0o600)
    Path("rights").write_text("allow anonymous publish tool:calc\nallow anonymous admin bus.*\n")
    Path("two.tb").write_text(
        "tool calc is { }\ntool button is { }\n"
        "process P is let C: calc, B: button in rec-connect(C?) . rec-connect(B?) endlet\ntoolbus(P)\n"
    )
    if said == "environment":
        monkeypatch.setenv("ECHOIC_RIGHTS", "rights")
    rights = None if said == "environment" else Path("rights")
    manner = Manner(rights=rights, channel=said == "channels", names=f"127.0.0.1:{free_port()}")
    with contextlib.ExitStack() as stack:
        bus = Run(Path("two.tb"), PLAIN, manner, quiet=True).bus(stack)
        bus.start()
        Tool().connect(bus.address, name="calc", timeout=60)
        with pytest.raises(RefusedError, match="`anonymous` may not publish `tool:button`"):
            Tool().connect(bus.address, name="button", timeout=60)


def test_help_teaches() -> None:
    for verb in ("run", "check", "trace", "tifs", "console", "record", "replay"):
        code, out, _ = type_here("bus", verb, "--help")
        assert code == 0
        assert f"echoic bus {verb}" in out or f"bus {verb}" in out, verb
        assert "Try" in out, verb
    _, out, _ = type_here("bus", "--help")
    assert "echoic bus run hello.tb" in out
