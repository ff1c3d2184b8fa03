"""`echoic journal`, as those type it who look at what was recorded."""

import json
from pathlib import Path

import pytest

import echoic
from echoic.recorder import Disk, JournalOptions, JournalWriter
from echoic.wire import Batch
from tests.cli.terminals import Terminal, type_here

pytestmark = pytest.mark.system

START_NS = 1_700_000_000_000_000_000
SECOND_NS = 1_000_000_000


@echoic.event
class Trade:
    symbol: str
    price: float
    volume: int = 0


def record(path: Path, channel: str = "trades", batches: int = 3) -> None:
    """Record batches of two trades, a second apart, and the position of a sink."""
    writer = JournalWriter.open(Disk(path), channel, JournalOptions(durability="os"), id=bytes(16), now_ns=START_NS)
    for number in range(batches):
        trades = [Trade("IBM", 70.5 + number, number), Trade("DEC", 10.25 + number)]
        writer.append(Batch.of(trades, Trade), 7, 2 * number, START_NS + number * SECOND_NS)
    writer.commit(START_NS)
    writer.mark("billing", (4,))
    writer.close(START_NS)


def damage(path: Path) -> None:
    """Flip a bit of the second batch."""
    (segment,) = (path / "trades" / "0").glob("*.segment")
    data = bytearray(segment.read_bytes())
    data[data.index(b"IBM", data.index(b"IBM") + 1)] ^= 1
    segment.write_bytes(data)


class Shell:
    """The command line of somebody in a folder with a journal."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *words: str) -> tuple[int, str, str]:
        return type_here("journal", *words)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    record(tmp_path / "journals")
    return Shell(tmp_path)


def test_info_tells_what_there_is(shell: Shell) -> None:
    code, out, said = shell("info", "journals")
    assert (code, said) == (0, "")
    assert out.splitlines()[:4] == [
        "channel:     trades",
        f"journal:     {'0' * 32}, made 2023-11-14T22:13:20Z",
        "events:      6",
        "recorded:    2023-11-14T22:13:20Z to 2023-11-14T22:13:22Z",
    ]
    assert "  0: sequence 0 to 5\n" in out
    assert "  billing: goes on at 4\n" in out
    record(shell.folder / "journals", "quotes", batches=0)
    quotes, trades = json.loads(shell("info", "journals", "--json")[1])
    assert (quotes["channel"], quotes["events"], quotes["first_ns"], quotes["types"]) == ("quotes", 0, None, [])
    assert (trades["events"], trades["heads"], trades["types"], trades["sinks"]) == (
        6,
        [6],
        ["Trade"],
        {"billing": [4]},
    )
    assert shell("info", "journals", "--channel", "trades")[1] == out
    assert shell("info", "journals/trades")[1] == out


def test_cat_prints_events_as_echo_does(shell: Shell) -> None:
    code, out, said = shell("cat", "journals", "-n", "1")
    assert (code, out, said) == (0, "symbol: IBM\nprice: 70.5\nvolume: 0\n---\n", "")
    assert shell("cat", "journals", "--csv", "--start", "4", "--metadata")[1].splitlines() == [
        "_sequence,_source,_number,_time,_partition,symbol,price,volume",
        f"4,7,4,{START_NS + 2 * SECOND_NS},0,IBM,72.5,2",
        f"5,7,5,{START_NS + 2 * SECOND_NS},0,DEC,12.25,0",
    ]
    chosen = shell(
        "cat", "journals", "--json", "--where", "input.price < 12", "--columns", "price,symbol", "--metadata"
    )
    assert [json.loads(line) for line in chosen[1].splitlines()] == [
        {
            "_sequence": number,
            "_source": 7,
            "_number": number,
            "_time": START_NS + number // 2 * SECOND_NS,
            "_partition": 0,
            "price": price,
            "symbol": "DEC",
        }
        for number, price in ((1, 10.25), (3, 11.25))
    ]
    timed = shell(
        "cat", "journals", "--since", "2023-11-14T22:13:21", "--until", str(START_NS + 2 * SECOND_NS), "--csv"
    )
    assert timed[1].splitlines()[1:] == ["IBM,71.5,1", "DEC,11.25,0"]


def test_cat_goes_on_with_what_is_recorded(shell: Shell) -> None:
    terminal = Terminal("journal", "cat", str(shell.folder / "journals"), "--follow", "--csv", names="127.0.0.1:1")
    try:
        terminal.shows("DEC,12.25,0")
        path = shell.folder / "journals"
        writer = JournalWriter.open(Disk(path), "trades", id=bytes(16), now_ns=START_NS)
        writer.append(Batch.of([Trade("SUN", 1.5)], Trade), 7, 6, START_NS)
        writer.close(START_NS)
        terminal.shows("SUN,1.5,0")
        assert terminal.interrupt() == 0
        assert terminal.out.count("symbol,price,volume") == 1
    finally:
        terminal.kill()


def test_damage_is_found_named_and_recovered_from(shell: Shell) -> None:
    assert shell("verify", "journals") == (0, "", "trades: sound\n")
    assert json.loads(shell("verify", "journals", "--json")[1]) == []
    damage(shell.folder / "journals")
    code, out, said = shell("verify", "journals")
    assert code == 1
    assert out.split()[:5] == ["KIND", "FILE", "FROM", "TO", "WHAT"]
    assert f"damage  trades/0/{'0' * 20}.segment" in out
    assert "`echoic journal recover journals` keeps the rest" in said
    code, out, _ = shell("verify", "journals", "--json")
    assert (code, {flaw["kind"] for flaw in json.loads(out)}) == (1, {"damage"})
    code, out, said = shell("cat", "journals", "--csv")
    assert code == 1
    assert "2 events of partition 0 cannot be read, 2 to 3" in said
    code, out, said = shell("cat", "journals", "--csv", "--skip-holes")
    assert (code, len(out.splitlines())) == (0, 5)
    assert "cannot be read, 2 to 3" in said
    code, out, _ = shell("recover", "journals", "--json")
    assert code == 0
    (report,) = json.loads(out)
    assert report["channel"] == "trades"
    assert report["lost"] == [{"partition": 0, "first": 2, "last": 3}]
    assert (shell.folder / "journals" / report["aside"][0]).exists()
    assert shell("verify", "journals")[0] == 0
    assert shell("recover", "journals")[1] == "trades: sound, nothing was done\n"


@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv", "mcap"])
def test_what_is_exported_can_be_imported(shell: Shell, kind: str) -> None:
    code, out, said = shell("export", "journals", f"x.{kind}", "--metadata", "--json")
    assert code == 0
    told = json.loads(out)
    assert (told["events"], told["kind"], told["skipped"]) == (6, kind, 0)
    assert said == f"exported 6 events of 'trades' to x.{kind}, {told['bytes']} bytes\n"
    declared = ["--type", "Trade{symbol: str, price: float, volume: int = 0}"]
    words = ["import", f"x.{kind}", "copies", "--name", "trades", *(declared if kind == "csv" else [])]
    code, out, said = shell(*words, "--json")
    assert (code, said) == (0, "imported 6 events into 'trades' in copies\n")
    assert (json.loads(out)["fresh"], json.loads(out)["types"]) == (6, ["Trade"])
    shown = ["--json", "--metadata"]
    assert shell("cat", "copies", *shown) == shell("cat", "journals", *shown)
    code, _, said = shell(*words)
    assert (code, "--append adds to it" in said) == (1, True)
    assert "of which 6 were there already" in shell(*words, "--append")[2]


def test_an_export_holds_what_was_asked_for(shell: Shell) -> None:
    assert shell("export", "journals", "x.csv", "--where", "input.volume > 0", "--columns", "symbol,volume")[0] == 0
    text = (shell.folder / "x.csv").read_text()
    assert text == '"symbol","volume"\n"IBM",1\n"IBM",2\n'
    code, out, said = shell("export", "journals", "x.csv")
    assert (code, out) == (1, "")
    assert "x.csv is there already and would be lost; --force replaces it" in said
    assert (shell.folder / "x.csv").read_text() == text
    assert shell("export", "journals", "x.csv", "--force", "--start", "5")[0] == 0
    assert len((shell.folder / "x.csv").read_text().splitlines()) == 2
    damage(shell.folder / "journals")
    code, _, said = shell("export", "journals", "y.csv")
    assert (code, "2 to 3" in said, (shell.folder / "y.csv").exists()) == (1, True, False)
    assert json.loads(shell("export", "journals", "y.csv", "--skip-holes", "--json")[1])["skipped"] == 2


WRONG = {
    ("info", "nowhere"): (3, "there is no directory nowhere"),
    ("info", "empty"): (3, "there are no journals in empty"),
    ("cat", "journals", "--channel", "trade"): (3, "channel 'trade' not found in journals; did you mean 'trades'?"),
    ("verify", "journals", "--channel", "zebra"): (3, "channel 'zebra' not found in journals (echoic journal info"),
    ("cat", "journals", "--where", "input.prize < 1"): (2, "did you mean `price`?"),
    ("cat", "journals", "--columns", "prize"): (1, "did you mean `price`?"),
    ("cat", "journals", "--since", "yesterday"): (1, "is not a time in ISO 8601: 'yesterday'"),
    ("cat", "journals", "-n", "-1"): (1, "expected --count to be a number of events, got -1"),
    ("cat", "journals", "--follow", "--end", "3"): (1, "--follow goes on for ever"),
    ("export", "journals"): (2, "FILE"),
    ("export", "journals", "x.xls"): (1, "there are parquet, arrow, csv, mcap"),
    ("export", "journals", "x.csv", "--format", "xls"): (2, "--format"),
    ("import", "nothing.csv", "copies"): (3, "there is no file nothing.csv"),
    ("import", "broken.parquet", "copies", "--name", "../up"): (1, "a channel name has at most 200 letters"),
    ("import", "broken.parquet", "copies"): (1, "cannot read broken.parquet as parquet"),
    ("import", "broken.parquet", "copies", "--type", "Trade{price: money}"): (1, "no type is called `money`"),
}


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_wrong_words_are_answered_in_one_sentence(shell: Shell, words: tuple[str, ...]) -> None:
    (shell.folder / "empty").mkdir()
    (shell.folder / "broken.parquet").write_bytes(b"PAR1 and nothing else PAR1")
    code, told = WRONG[words]
    done = shell(*words)
    assert (done[0], told in done[2] + done[1]) == (code, True), done


def test_a_journal_that_has_lost_its_description_is_pointed_at(shell: Shell) -> None:
    (shell.folder / "journals" / "trades" / "journal.json").unlink()
    code, _, said = shell("info", "journals")
    assert code == 3
    assert "segments of 'trades' without journal.json (echoic journal recover journals --channel trades)" in said
    assert shell("recover", "journals", "--channel", "trades")[0] == 0
    assert shell("info", "journals")[0] == 0


def test_one_of_several_channels_is_named(shell: Shell) -> None:
    record(shell.folder / "journals", "quotes")
    code, _, said = shell("cat", "journals")
    assert (code, "name one by --channel: quotes, trades" in said) == (1, True)
    assert shell("cat", "journals", "--channel", "quotes", "-n", "1")[0] == 0
    assert shell("verify", "journals") == (0, "", "quotes, trades: sound\n")


def test_every_verb_teaches_with_an_example(shell: Shell) -> None:
    verbs = ("info", "cat", "verify", "recover", "export", "import")
    overview = shell("--help")[1]
    for verb in verbs:
        assert verb in overview
        code, shown, _ = shell(verb, "--help")
        assert code == 0
        assert f"echoic journal {verb}" in shown
        assert "--json" in shown
