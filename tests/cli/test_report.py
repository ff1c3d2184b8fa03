"""`echoic report`: one file that needs nothing else, whatever things are called."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from echoic import Hub, event
from echoic.channels import DerivationCounts, Reported
from echoic.cli.report import observe
from echoic.cli.report_page import Observed, page
from echoic.cli.report_plots import bars, lines, sparkline
from echoic.monitor import ChannelLoad, Load, derivation_loads, derivation_sample
from tests.cli.terminals import free_port, type_here

HOSTILE = "\"><script>alert(1)</script><img src=x onerror='a'>&amp;\x1b[2J\u202e"


@event
class Trade:
    price: float
    volume: int


class Reader(HTMLParser):
    """Collects elements, attributes and text."""

    VOID = frozenset({"meta", "link", "img", "br"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: set[str] = set()
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def is_by_itself(html: str) -> Reader:
    """See that a page runs nothing and loads nothing."""
    found = Reader(html)
    assert not {"script", "img", "link", "iframe", "object", "a", "form", "base"} & set(found.elements)
    assert not {name for name in found.attributes if name.startswith("on") or name in ("src", "href", "style")}
    assert "default-src 'none'" in html
    assert "url(" not in html
    assert "@import" not in html
    return found


def hostile_load() -> Load:
    channel = ChannelLoad(HOSTILE, f"echoic://127.0.0.1:1/{HOSTILE}", HOSTILE, 5.0, 10.0, 1, 1, 7, 3, 2, None)
    counts = DerivationCounts(
        HOSTILE, "echoic://127.0.0.1:9/x", HOSTILE, "source", 1, 10, 5, 320, 160, 160, 400, 5, 1, HOSTILE, HOSTILE
    )
    sample = derivation_sample({"127.0.0.1:1": Reported("hub", [], [counts])})
    return Load(0.0, [channel], derivation_loads({}, sample, 1.0), [], HOSTILE, HOSTILE, 160, 160.0)


def test_hostile_names_are_text() -> None:
    load = hostile_load()
    html = page(Observed(1.0, [load, load], load, [], {"system": HOSTILE}))
    found = is_by_itself(html)
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert any("<script>alert(1)</script>" in text for text in found.text)
    assert "is suspended at 127.0.0.1:1" in html
    assert "3 events of" in html


def test_a_report_of_real_channels_has_plots_and_tables() -> None:
    with Hub("127.0.0.1:0") as names, Hub("127.0.0.1:0", names=names.address) as hub:
        trades = hub.create("trades", Trade)
        cheap = trades.derive("input.volume % 2 == 0", name="even")
        with Hub("127.0.0.1:0", names=names.address) as reader, Hub("127.0.0.1:0", names=names.address) as looking:
            reader.open(cheap.id, Trade).subscribe(lambda trade: None)
            source = trades.source()
            source.submit_batch([Trade(1.0, volume) for volume in range(100)])
            source.flush()
            observed = observe(looking, 0.2)
    html = page(observed)
    found = is_by_itself(html)
    assert {"trades", "even", "Derivations", "Machine", "Lag"} <= {text.strip() for text in found.text}
    assert found.elements.count("svg") >= 1
    assert observed.mean.saved_bytes > 0
    assert len(observed.loads) >= 1


def test_a_file_is_written_and_told(tmp_path: Path) -> None:
    with Hub("127.0.0.1:0") as names:
        names.create("trades", Trade)
        where = ("--seconds", "0.1", "--names", names.address)
        path = tmp_path / "r.html"
        code, out, said = type_here("report", "-o", str(path), "--json", *where)
        assert code == 0
        assert json.loads(out)["channels"][0]["name"] == "trades"
        assert f"{path} has 1 channels" in said
        assert "trades" in path.read_text("utf-8")
        code, out, said = type_here("report", "-o", "-", *where)
        assert (code, said) == (0, "")
        is_by_itself(out)
        assert type_here("report", "-o", str(tmp_path / "no" / "r.html"), *where)[0] == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--seconds 0", "expected --seconds to be above 0"),
        ("--seconds nan", "expected --seconds to be above 0"),
        ("-o - --json", "cannot both go to stdout"),
    ],
)
def test_what_cannot_be_is_told(words: str, said: str) -> None:
    code, out, err = type_here("report", *words.split())
    assert (code, out) == (1, "")
    assert said in err


def test_nobody_who_serves_names_is_told() -> None:
    code, _, said = type_here("report", "--names", f"127.0.0.1:{free_port()}", "--seconds", "0.1")
    assert code == 1
    assert "nobody serves names" in said


def test_plots_bear_what_is_not_a_number() -> None:
    for plot in (
        lines([0.0, 1.0, 2.0], {HOSTILE: [1.0, float("nan"), float("inf")], "b": [0.0, 0.0, 0.0]}, str),
        lines([], {}, str),
        bars({HOSTILE: float("inf"), "b": -1.0, "c": 5.0}, str),
        bars({}, str),
        sparkline([], HOSTILE),
        sparkline([float("nan")], ""),
    ):
        Reader(plot)
        assert not re.search(r"[\d\"](nan|inf)|(nan|inf)[,\"]", plot.replace(">inf<", "><"))
