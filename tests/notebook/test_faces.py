"""Hubs, channels and batches as a notebook shows them: small tables in which everything is escaped."""

from html.parser import HTMLParser

import numpy

from echoic import Batch, Hub, event, float64, int64
from tests.conftest import StartHub

HOSTILE = "<img src=x onerror=alert(1)>"
KNOWN_TAGS = {"div", "p", "code", "table", "thead", "tbody", "tr", "th", "td"}


class Cells(HTMLParser):
    """The texts of a page, and its tags, of which none has an attribute."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.caption = ""
        self._open: list[str] = []
        self.feed(text)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in KNOWN_TAGS
        assert not attrs
        self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1] in ("td", "th"):
            self.rows[-1][-1] += data
        else:
            self.caption += data


@event
class Note:
    number: int64
    text: str
    price: float64


def test_a_batch_is_shown_by_its_first_and_last_events() -> None:
    page = Cells(Batch.of([Note(n, f"note {n}", n / 2) for n in range(1000)])._repr_html_())
    assert page.caption == "<Batch of 1000 Note>"
    assert page.rows[0] == ["", "number", "text", "price"]
    assert [row[1] for row in page.rows[1:]] == ["0", "1", "2", "3", "4", "995", "996", "997", "998", "999"]


def test_texts_of_strangers_are_escaped_and_cut() -> None:
    page = Cells(Batch.of([Note(1, HOSTILE, 0.0), Note(2, "x" * 10_000, 0.0)])._repr_html_())
    assert page.rows[1][2] == HOSTILE
    assert len(page.rows[2][2]) < 200


def test_an_array_is_shown_in_short() -> None:
    made = numpy.zeros(2, [("wind", "f8", (40, 250))])
    assert len(Batch.of(made)._repr_html_()) < 2000


def test_an_empty_batch_has_only_a_head() -> None:
    assert Cells(Batch.of([], Note)._repr_html_()).rows == [["", "number", "text", "price"]]


def test_a_channel_is_shown_by_its_type_and_a_hub_by_its_channels(start_hub: StartHub) -> None:
    hub: Hub = start_hub()
    notes = hub.create("notes", Note)
    notes.source().submit_sync(Note(1, HOSTILE, 1.5))
    assert Cells(notes._repr_html_()).rows == [
        ["field", "type"],
        ["number", "int64"],
        ["text", "string"],
        ["price", "float64"],
    ]
    assert Cells(hub.create("anything")._repr_html_()).rows == []
    page = Cells(hub._repr_html_())
    assert hub.address in page.caption
    assert page.rows[2][:2] == ["notes", "Note"]
