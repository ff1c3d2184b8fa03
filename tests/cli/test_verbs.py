"""Each verb, beside a hub that is up and a publisher that goes on."""

import csv
import io
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.terminals import PROGRAM, TRADE, Desk, desk

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def system() -> Iterator[Desk]:
    with desk() as made:
        made.start("up", f"trades={TRADE}", "notes=Text{text: str, n: int = 0}", "loose=").says("try: echoic ls")
        made.start("pub", "trades", "{symbol: IBM, price: 75.5}", "-r", "50", "-p", "1").shows("IBM")
        yield made


def test_ls_shows_types_and_who_takes_part(system: Desk) -> None:
    listed = system.start("ls")
    verbose, named, types = system.start("ls", "-v"), system.start("names", "ls"), system.start("ls", "-t")
    assert listed.ends() == 0
    head, loose, notes, trades = listed.out.splitlines()
    assert head.split() == ["CHANNEL", "TYPE", "SOURCES", "SINKS"]
    assert loose.split() == ["loose", "(untyped)", "0", "0"]
    assert notes.split()[:2] == ["notes", "Text"]
    assert trades.split()[:2] == ["trades", "Trade"]
    assert (verbose.ends(), named.ends(), types.ends()) == (0, 0, 0)
    assert "echoic://127.0.0.1:" in verbose.out
    assert "trades   echoic://127.0.0.1:" in named.out
    assert types.out == "loose [(untyped)]\nnotes [Text]\ntrades [Trade]\n"


def test_every_look_speaks_json(system: Desk) -> None:
    looks = [["ls"], ["names", "ls"], ["info", "trades"], ["type", "trades"], ["doctor"]]
    started = [system.start(*words, "--json") for words in looks]
    assert [terminal.ends() for terminal in started] == [0] * len(looks)
    listed, named, info, kind, findings = (json.loads(terminal.out) for terminal in started)
    assert [each["name"] for each in listed] == ["loose", "notes", "trades"]
    assert all(each["reachable"] for each in listed)
    assert named[2] == {"name": "trades", "id": info["id"]}
    assert (info["type"], info["token"]) == ("Trade", kind["token"])
    assert [field["field"] for field in kind["fields"]] == ["symbol", "price", "volume"]
    assert {each["status"] for each in findings} <= {"ok", "info", "warn"}


def test_info_and_type_describe_a_channel_by_name_or_id(system: Desk) -> None:
    info, kind = system.start("info", "trades"), system.start("type", "trades")
    assert (info.ends(), kind.ends()) == (0, 0)
    assert "type:     Trade\n" in info.out
    assert "price   float64" in kind.out
    id = info.out.split()[1]
    by_id = system.run("type", id, "--names", "127.0.0.1:1")
    assert by_id.out == kind.out


def test_hz_bw_and_top_measure(system: Desk) -> None:
    measures = [["hz", "trades", "-n", "1"], ["bw", "trades", "-n", "1"], ["top", "--once"]]
    started = [system.start(*words) for words in measures] + [system.start(*words, "--json") for words in measures]
    assert [terminal.ends() for terminal in started] == [0] * 6
    hz, bw, top, *parsed = (terminal.out for terminal in started)
    assert hz.startswith("average rate: ")
    assert "std dev" in hz
    assert "event size mean: 32 B min: 32 B max: 32 B" in bw
    assert top.startswith("CHANNEL  EVENTS/S")
    rate, bandwidth, loads = map(json.loads, parsed)
    assert 0 < rate["rate"] < 1000
    assert 0 < bandwidth["bytes_per_second"] < 32_000
    trades = next(each for each in loads["channels"] if each["name"] == "trades")
    assert trades["events_per_second"] > 0
    assert trades["sources"] == 1


def test_echo_prints_fields_csv_and_json(system: Desk) -> None:
    forms = [["--field", "price"], ["--csv"], ["--json"], ["--field", "prize"]]
    field, table, lines, wrong = [system.start("echo", "trades", "-n", "2", *words) for words in forms]
    assert (field.ends(), table.ends(), lines.ends(), wrong.ends()) == (0, 0, 0, 1)
    assert field.out == "75.5\n---\n" * 2
    assert table.out == "symbol,price,volume\nIBM,75.5,0\nIBM,75.5,0\n"
    assert [json.loads(line) for line in lines.out.splitlines()] == [{"symbol": "IBM", "price": 75.5, "volume": 0}] * 2
    assert "has no field `prize`; did you mean `price`?" in wrong.err


def test_hostile_text_cannot_drive_the_terminal(system: Desk) -> None:
    hostile = 'a\x1b[2J\x9b\u202e\x07\r\n"b",c\\'
    forms = {"blocks": [], "csv": ["--csv"], "json": ["--json"]}
    readers = {name: system.start("echo", "notes", "--once", *words) for name, words in forms.items()}
    pub = system.start("pub", "notes", "--stdin", "-w", "3")
    pub.type(json.dumps({"text": hostile}))
    assert [pub.ends(), *(reader.ends() for reader in readers.values())] == [0] * 4
    for reader in readers.values():
        assert reader.out.replace("\n", "").isprintable()
    assert json.loads(readers["json"].out)["text"] == hostile
    assert r'text: "a\x1b[2J\x9b\u202e\x07\r\n\"b\",c\\"' in readers["blocks"].out
    _, (text, number) = csv.reader(io.StringIO(readers["csv"].out))
    assert (text, number) == ('a\\x1b[2J\\x9b\\u202e\\x07\\r\n"b",c\\', "0")


def test_pub_reads_lines_and_names_the_one_that_is_wrong(system: Desk) -> None:
    pub = system.start("pub", "notes", "--stdin")
    pub.type('{"text": "a"}', "", '{"text": 7}')
    assert pub.ends() == 1
    assert "published 1 event" in pub.err
    assert "expected `string`, got 7 - at `Text.text` - in line 3 of stdin" in pub.err


def test_pub_repeats_and_sums_up(system: Desk) -> None:
    pub = system.run("pub", "notes", "text=a b", "n=-3", "-t", "3", "-r", "100", "-p", "3", "--json")
    shown, summary = pub.out.rsplit("\n", 2)[:2]
    assert shown == "text: a b\nn: -3\n---"
    assert json.loads(summary)["events"] == 3
    assert "nobody is subscribed: -w waits" in pub.err


@pytest.mark.parametrize(
    ("code", "words", "said"),
    [
        (3, ["info", "trdes"], "channel 'trdes' not found at {names}; did you mean 'trades'? (echoic ls)"),
        (3, ["pub", "nothing", "{a: 1}"], "to create it, name its type: echoic pub nothing"),
        (3, ["echo", "nothing", "--timeout", "0.3"], "channel 'nothing' not found at {names} (echoic ls)"),
        (1, ["echo", "notes", "--timeout", "0.3"], "no event of channel 'notes' within 0.3 s"),
        (1, ["info", "a b"], "a channel name has at most"),
        (1, ["pub", "trades", "{symbol: IBM, price: x}"], 'expected `float64`, got "x" - at `Trade.price`'),
        (1, ["pub", "trades", "T{a: int}", "a=1"], "is not sent and has no default"),
        (1, ["ls", "--names", "nowhere"], "expected an address like 127.0.0.1:7401"),
        (2, ["hz"], "requires an argument"),
        (2, ["echo", "trades", "--count", "x"], "Invalid value"),
        (4, ["up", "--listen", "0.0.0.0:0"], "can be reached from other machines"),
    ],
)
def test_exit_codes_and_what_is_said(system: Desk, code: int, words: list[str], said: str) -> None:
    done = system.run(*words)
    assert (done.process.returncode, done.out) == (code, "")
    assert said.format(names=system.names) in done.err
    assert "Traceback" not in done.err


def test_a_reader_that_wants_no_more_ends_the_verb_quietly(system: Desk) -> None:
    command = subprocess.list2cmdline([*PROGRAM, "echo", "trades", "--json", "--names", system.names])
    done = subprocess.run(
        ["/bin/bash", "-c", f"{command} | head -1; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        timeout=45,
        check=False,
    )
    assert (done.returncode, done.stdout.count("\n"), done.stderr) == (0, 1, "")


def test_ctrl_c_ends_what_goes_on_for_ever(system: Desk) -> None:
    verbs = [["echo", "trades"], ["hz", "trades"], ["top"]]
    started = [system.start(*words) for words in verbs]
    for terminal in started:
        terminal.shows("\n")
    assert [terminal.interrupt() for terminal in started] == [0, 0, 0]
    assert [terminal.err for terminal in started] == ["", "", ""]


def test_a_file_says_where_names_are(system: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "echoic.toml").write_text(f'names = "{system.names}"\n', encoding="utf-8")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("ECHOIC_NAMES", raising=False)
    done = subprocess.run([*PROGRAM, "names", "ls"], capture_output=True, text=True, timeout=45, check=False)
    assert "trades" in done.stdout
