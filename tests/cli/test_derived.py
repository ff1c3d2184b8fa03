"""Derived channels from the command line: real terminals beside a hub that is up and a publisher that goes on."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

from echoic import Format, Hub, Policy
from tests.cli.terminals import TRADE, Desk, Terminal, desk, poll

pytestmark = pytest.mark.system

MEAN = """{
    int i;
    double total = 0.0;
    for (i = 0; i < 3; i++)
        total += input.samples[i];
    output.average = total / 3.0;
    return 1;
}
"""
LOW_LOTS = """
def low_lots(input, param):
    return input.volume < param.low
"""


@pytest.fixture(scope="module")
def system() -> Iterator[Desk]:
    with desk() as made:
        made.start("up", f"trades={TRADE}", "winds=Wind{samples: float[3]}", "loose=").says("try: echoic ls")
        trades = made.start("pub", "trades", "--stdin", "-r", "100")
        prices = "".join(json.dumps({"symbol": "IBM", "price": price, "volume": price}) + "\n" for price in range(100))
        _feed(trades, prices)
        made.start("pub", "winds", "samples=[1.5, 2, 4]", "-r", "50", "-p", "1").shows("samples")
        yield made


def _feed(terminal: Terminal, lines: str) -> None:
    """Type the same lines again and again, for as long as somebody reads them."""

    def type_on() -> None:
        try:
            while terminal.process.poll() is None:
                terminal.type(lines.rstrip("\n"))
        except (BrokenPipeError, ValueError):
            return  # it has ended

    threading.Thread(target=type_on, daemon=True).start()


def test_a_derived_channel_is_echoed_by_its_name_and_reported_on(system: Desk) -> None:
    derive = system.start("derive", "trades", "input.price < 10", "--name", "cheap", "--watch")
    derive.shows("/cheap\n").says("for as long as 'trades' is")
    echo = system.start("echo", "cheap", "--json", "--field", "price")
    poll(lambda: echo.out.count("\n") >= 30, "thirty events that pass")
    derive.shows("10.0 %")
    info, listed, top = system.start("info", "cheap"), system.start("ls"), system.start("top", "--once", "--json")
    assert (info.ends(), listed.ends(), top.ends()) == (0, 0, 0)
    assert (derive.interrupt(), echo.interrupt()) == (0, 0)
    assert {float(line) for line in echo.out.splitlines()} == set(map(float, range(10)))
    assert "derived:  from trades, to run at the source\ncode:     input.price < 10\n" in info.out
    assert " ns per event, runs at the source" in info.out
    assert ["cheap", "Trade", "1", "1", "trades"] in [line.split() for line in listed.out.splitlines()]
    load = next(each for each in json.loads(top.out)["derivations"] if each["name"] == "cheap")
    assert load["parent"] == "trades"
    assert 0 < load["events_out"] < load["events_in"]
    assert load["bytes_saved"] > 0
    assert load["suspended"] == {}


def test_a_derived_channel_stays_when_the_command_that_made_it_has_ended(system: Desk) -> None:
    made = system.run("derive", "trades", "input.price >= 90", "--name", "dear", "--leave", "--json")
    assert made.process.returncode == 0
    told = json.loads(made.out)
    assert (told["names"], told["type"], told["parent"]) == (["dear"], "Trade", "trades")
    by_name, by_id = system.start("echo", "dear", "--once"), system.start("echo", told["channels"][0], "--once")
    assert (by_name.ends(), by_id.ends()) == (0, 0)


def test_channels_without_a_name_are_known_by_id_and_shown_on_request(system: Desk) -> None:
    id = system.run("derive", "trades", "input.volume == 1", "--leave").out.strip()
    assert id.rpartition("/")[2].startswith("trades.")
    listed, everything = system.start("ls"), system.start("ls", "--all", "-v")
    assert (listed.ends(), everything.ends()) == (0, 0)
    assert id not in listed.out
    assert id in everything.out


def test_a_transform_comes_from_a_file_with_its_own_type(system: Desk, tmp_path: Path) -> None:
    file = tmp_path / "mean.ec"
    file.write_text(MEAN, encoding="utf-8")
    output = "Mean{average: float}"
    derive = system.run("derive", "winds", "--file", str(file), "--output", output, "--name", "means", "--leave")
    assert derive.process.returncode == 0, derive.err
    echo, kind = system.start("echo", "means", "--once", "--json"), system.start("type", "means")
    assert (echo.ends(), kind.ends()) == (0, 0)
    assert json.loads(echo.out) == {"average": 2.5}
    assert kind.out.startswith("Mean ")


def test_a_router_has_a_channel_for_each_port(system: Desk) -> None:
    derive = system.run("derive", "trades", "input.volume >= 50", "--ports", "2", "--name", "lots", "--leave")
    assert [line.rpartition("/")[2] for line in derive.out.splitlines()] == ["lots.0", "lots.1"]
    ports = [system.start("echo", f"lots.{port}", "-n", "60", "--field", "volume", "--json") for port in (0, 1)]
    assert [port.ends() for port in ports] == [0, 0]
    small, large = ({int(line) for line in port.out.splitlines()} for port in ports)
    assert max(small) < 50 <= min(large)
    assert "port 1 of 2" in system.run("info", "lots.1").out


def test_parameters_are_shown_and_changed_at_the_sources(system: Desk, tmp_path: Path) -> None:
    file = tmp_path / "low_lots.py"
    file.write_text(LOW_LOTS, encoding="utf-8")
    system.run("derive", "trades", "--file", str(file), "--param", "low:int32=5", "--name", "low", "--leave")
    assert system.run("param", "low").out == "low: 5\n"
    echo = system.start("echo", "low", "--json", "--field", "volume")
    echo.shows("4\n")
    changed = system.run("param", "low", "low=0x20", "--json")
    assert (json.loads(changed.out), changed.err) == ({"low": 32}, "changed at 1 hub with sources\n")
    echo.shows("31\n")
    again = system.run("derive", "trades", "--file", str(file), "--param", "low:int32=5", "--name", "low", "--leave")
    assert "it was there already, with parameters of its own: echoic param low" in again.err
    info = json.loads(system.run("info", "low", "--json").out)["derivation"]
    assert (info["params"], info["spelling"], info["parent"]) == ({"low": 32}, "python", "trades")


def test_echo_filters_inside_the_source(system: Desk) -> None:
    condition = 'input.price < 3 && input.symbol == "IBM"'
    forms = [["--field", "price"], ["--csv"], ["--json"]]
    field, table, lines = [system.start("echo", "trades", "--filter", condition, "-n", "6", *form) for form in forms]
    assert (field.ends(), table.ends(), lines.ends()) == (0, 0, 0)
    assert {line for line in field.out.splitlines() if line != "---"} == {"0.0", "1.0", "2.0"}
    assert table.out.startswith("symbol,price,volume\nIBM,")
    assert {json.loads(line)["volume"] for line in lines.out.splitlines()} == {0, 1, 2}


def test_echo_waits_for_the_channel_it_filters() -> None:
    with desk() as room:
        echo = room.start("echo", "ticks", "--filter", "input.n > 1", "--once", "--json")
        echo.says("waiting for channel 'ticks'")
        pub = room.start("pub", "ticks", "Tick{n: int}", "--stdin", "-r", "20")
        pub.type(*(f'{{"n": {number}}}' for number in [0, 1, 2] * 40))
        assert echo.ends() == 0
        assert json.loads(echo.out) == {"n": 2}


def test_pub_waits_for_who_hears_what_is_derived() -> None:
    with desk() as room:
        room.start("up", "ticks=Tick{n: int}").says("try: echoic ls")
        room.run("derive", "ticks", "input.n % 2", "--ports", "2", "--name", "halves", "--leave")
        pub = room.start("pub", "ticks", "n=3", "-w", "2", "--json")
        pub.says("waiting for 2 subscribers")
        readers = [["ticks", "--filter", "input.n > 1"], ["halves.1"]]
        echoes = [room.start("echo", *words, "--once", "--field", "n", "--json") for words in readers]
        assert [pub.ends(), *(echo.ends() for echo in echoes)] == [0, 0, 0]
        assert [echo.out for echo in echoes] == ["3\n", "3\n"]
        assert json.loads(pub.out)["bytes"] > 0
        assert "nobody is subscribed" not in pub.err


def test_a_derivation_is_made_anew_when_its_channel_has_come_back() -> None:
    with desk() as room:
        room.start("names", "serve").says("serving names")
        first = room.start("pub", "ticks", "Tick{n: int}", "n=1", "-r", "50", "-p", "1")
        first.shows("n: 1")
        code = "input.n > param.low"
        derive = room.start("derive", "ticks", code, "--param", "low=5", "--name", "few").shows("/few")
        assert room.run("param", "few", "low=0").out == "low: 0\n"
        derive.says("parameters of 'few' were changed: {\"low\":0}")
        echo = room.start("echo", "few", "--json").shows('{"n":1}')
        assert first.interrupt() == 0
        derive.says("waiting for channel 'ticks'")
        room.start("pub", "ticks", "Tick{n: int}", "n=2", "-r", "50", "-p", "1").shows("n: 2")
        derive.says("derived anew: echoic://")
        echo.shows('{"n":2}')
        assert room.run("param", "few").out == "low: 0\n"
        assert derive.err.count("were changed") == 1


def test_faults_and_suspension_are_told_on_stderr(system: Desk) -> None:
    code = "100 / (input.volume - 7) != 1"
    derive = system.start("derive", "trades", code, "--name", "risky", "--watch", "--json").shows("/risky")
    echo = system.start("echo", "risky")
    echo.says("the derivation of risky has faulted at ").says("an integer is divided by zero - at line 1, column 5")
    derive.says("of `risky` faulted at ").says("the last because an integer is divided by zero - at line 1, column 5")
    endless = system.start("echo", "trades", "--filter", "{ while (1) ; return 1; }", "--timeout", "20")
    endless.says("is suspended at ").says("a loop has used up the fuel of its event")
    assert (derive.interrupt(), echo.interrupt(), endless.interrupt()) == (0, 0, 0)
    reports = [json.loads(line)["derivation"] for line in derive.out.splitlines()[1:]]
    assert any(report is not None and report["faults"] for report in reports)


def test_code_is_checked_against_types_and_explained(system: Desk, tmp_path: Path) -> None:
    file = tmp_path / "code.ec"
    file.write_text(
        "static int seen;\nint i;\nint total = 0;\nfor (i = 0; i < 3; i++) total += input.samples[i] > param.low;\n"
        "while (total > 2) total--;\nseen++;\nreturn total;\n",
        encoding="utf-8",
    )
    words = ["ecode", "check", str(file), "--input", "Wind{samples: float[3]}", "--param", "low=1.5"]
    shown, parsed = system.start(*words), system.start(*words, "--json")
    assert (shown.ends(), parsed.ends()) == (0, 0), shown.err
    assert shown.out.startswith("kind:     filter of Wind, in E-Code\ncost:     at most ")
    assert "loop:     line 4, at most 3 turns, proved\n" in shown.out
    assert "loop:     line 5, no bound proved, runs on fuel\n" in shown.out
    assert "static:   seen: int32\nuses:     input.samples, param.low\n" in shown.out
    found = json.loads(parsed.out)
    assert (found["ok"], found["kind"], found["bounded"]) == (True, "filter", False)
    assert [loop["turns"] for loop in found["loops"]] == [3, None]


def test_every_mistake_in_code_is_shown_with_a_caret(system: Desk) -> None:
    words = ["ecode", "check", "-", "--channel", "trades"]
    shown, parsed = system.start(*words), system.start(*words, "--json")
    for terminal in (shown, parsed):
        terminal.type("if (input.pricee < 3)", "\treturn 1;", "return input.volum > 3;")
    assert (shown.ends(), parsed.ends()) == (1, 1)
    assert "<stdin>:1:11: record `Trade` has no field `pricee` (did you mean `price`?)\n" in shown.out
    assert "    if (input.pricee < 3)\n              ^\n" in shown.out
    assert [problem["line"] for problem in json.loads(parsed.out)["problems"]] == [1, 3]


@pytest.mark.parametrize(
    ("code", "words", "said"),
    [
        (2, ["echo", "trades", "--filter", "input.prise < 3"], "input.prise < 3\n          ^\n"),
        (2, ["derive", "trades", "input.price <"], "<code>:1:"),
        (2, ["derive", "trades", "input.price < 3", "--placement", "moon"], "Invalid value"),
        (3, ["derive", "trdes", "1"], "channel 'trdes' not found at {names}; did you mean 'trades'?"),
        (3, ["param", "trdes"], "did you mean 'trades'?"),
        (1, ["derive", "trades"], "the code is given as CODE or by --file, and there is none"),
        (1, ["derive", "loose", "1"], "channel 'loose' has no type, and only typed channels can be derived from"),
        (1, ["derive", "trades", "1", "--param", "low:int8=300"], "300"),
        (1, ["derive", "trades", "1", "--name", "trades"], "trades"),
        (1, ["param", "trades"], "channel `trades` has no parameters"),
        (1, ["ecode", "check", "-"], "name the type of the events by --input TYPE or --channel CHANNEL"),
    ],
)
def test_exit_codes_and_what_is_said(system: Desk, code: int, words: list[str], said: str) -> None:
    done = system.run(*words)
    assert (done.process.returncode, done.out) == (code, "")
    assert said.format(names=system.names) in done.err
    assert "Traceback" not in done.err


def test_a_source_that_runs_no_code_of_others_is_a_denial(system: Desk) -> None:
    with Hub(policy=Policy(derive=False)) as hub:
        ticks = hub.create("ticks", Format.of(numpy.dtype([("n", "i8")])).renamed("Tick"))
        ticks.source()
        denied = system.run("echo", ticks.id, "--filter", "input.n > 1")
        assert denied.process.returncode == 4
        assert f"the hub at {hub.address} runs no code of others" in denied.err


def test_values_that_do_not_fit_a_parameter_are_refused_by_name(system: Desk) -> None:
    code = "input.price < param.low"
    system.run("derive", "trades", code, "--param", "low=1.5", "--param", "note=a b", "--name", "tuned", "--leave")
    wrong, unknown = system.start("param", "tuned", "low=high"), system.start("param", "tuned", "lo=1")
    assert (wrong.ends(), unknown.ends()) == (1, 1)
    assert 'expected `float64`, got "high" - at `param.low`' in wrong.err
    assert "did you mean `low`?" in unknown.err
    assert system.run("param", "tuned", "{low: 3}").out == "low: 3.0\nnote: a b\n"
