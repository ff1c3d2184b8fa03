"""What a widget is fed with: chosen by the type, reduced at the source, paced, and bounded."""

import threading
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

from echoic import Array, Channel, Format, Hub, event, float32, float64, int32
from echoic.channels import DerivationCounts
from echoic.errors import FormatError
from echoic.notebook import feed as feed_module
from echoic.notebook.feed import Feed
from echoic.notebook.views import View, view_of
from tests.conftest import StartHub
from tests.system.processes import wait_until


@event
class Trade:
    symbol: str
    price: float64
    volume: int32


@event
class Weather:
    hour: int32
    wind: Array[float32, 8, 12]


@event
class Letter:
    text: str


@event
class Spectrum:
    name: str
    power: Array[float64, 16]


class Page:
    """Stands where the widget does, and remembers what it was to show."""

    def __init__(self) -> None:
        self.told: list[tuple[dict[str, Any], list[bytes]]] = []
        self._lock = threading.Lock()

    def __call__(self, content: dict[str, Any], buffers: list[bytes]) -> None:
        with self._lock:
            self.told.append((content, buffers))

    def of(self, kind: str) -> list[tuple[dict[str, Any], list[bytes]]]:
        with self._lock:
            return [each for each in self.told if each[0]["type"] == kind]


@pytest.fixture
def open_feed() -> Iterator[Any]:
    feeds: list[Feed] = []

    def opened(channel: Channel, fields: Any = None, points_per_second: float = 50.0) -> tuple[Feed, Page]:
        page = Page()
        feeds.append(Feed(channel, view_of(channel.format, fields), points_per_second, page))
        wait_until(lambda: feeds[-1].running, "the feed has subscribed")
        return feeds[-1], page

    yield opened
    for each in feeds:
        each.close()


@pytest.mark.parametrize(
    ("declared", "fields", "expected"),
    [
        (Trade, None, View("chart", ("price", "volume"), None)),
        (Trade, "price", View("chart", ("price",), None)),
        (Weather, None, View("field", ("wind",), None)),
        (Weather, ["wind[3][4]", "hour"], View("chart", ("wind[3][4]", "hour"), None)),
        (Spectrum, None, View("field", ("power",), None)),
        (Letter, None, View("events", (), None)),
    ],
)
def test_the_type_decides_how_a_channel_is_shown(declared: type, fields: Any, expected: View) -> None:
    found = view_of(Format.of(declared), fields)
    assert (found.kind, found.fields) == (expected.kind, expected.fields)
    assert found.reduction is not None


@pytest.mark.parametrize("fields", ["symbol", "prise", ["price", "symbol"], []])
def test_what_cannot_be_drawn_is_refused_with_a_reason(fields: Any) -> None:
    with pytest.raises(FormatError):
        view_of(Format.of(Trade), fields)


def test_events_without_a_type_are_shown_as_they_are() -> None:
    assert view_of(None, None) == View("events", (), None)
    with pytest.raises(FormatError, match="no type"):
        view_of(None, "price")


def test_points_of_a_chart_are_envelopes_with_rising_times(start_hub: StartHub, open_feed: Any) -> None:
    hub: Hub = start_hub()
    channel = hub.create("trades", Trade)
    _, page = open_feed(channel)
    source = channel.source()
    source.submit_batch([Trade("IBM", float(n), -n) for n in range(40)])
    source.flush()
    wait_until(lambda: sum(content["count"] for content, _ in page.of("points")) == 40, "all points have come")
    times = numpy.concatenate([numpy.frombuffer(buffers[0], "<f8") for _, buffers in page.of("points")])
    values = numpy.concatenate([numpy.frombuffer(buffers[1], "<f8").reshape(-1, 7) for _, buffers in page.of("points")])
    assert (numpy.diff(times) >= 0).all()
    assert values[:, 3].tolist() == list(range(40))  # the last price of each
    assert values[:, 6].tolist() == [-n for n in range(40)]
    wait_until(lambda: any("40 events" in content["text"] for content, _ in page.of("status")), "the status tells")


def test_a_fast_channel_is_reduced_at_its_source(start_hub: StartHub, open_feed: Any) -> None:
    maker, looker = start_hub(), start_hub()
    channel = maker.create("trades", Trade)
    feed, _ = open_feed(looker.open(channel.id), "price", 10.0)
    source = channel.source()
    stop = threading.Event()

    def publish() -> None:
        batch = [Trade("IBM", 1.0, 1)] * 100
        while not stop.wait(0.005):
            source.submit_batch(batch)
            source.flush()

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        wait_until(lambda: feed.every > 50, "one point stands for many events")
        before = counts(feed)
        wait_until(lambda: counts(feed).events_in > before.events_in + 5000, "many events have come")
        after = counts(feed)
    finally:
        stop.set()
        thread.join()
    assert after.bytes_saved > 0
    assert (after.events_out - before.events_out) * 20 < after.events_in - before.events_in


def counts(feed: Feed) -> DerivationCounts:
    assert feed.derived is not None
    assert feed.derived.derivation is not None
    (found,) = feed.derived.derivation.counts().values()
    return found


def test_the_last_picture_of_a_field_is_shown(start_hub: StartHub, open_feed: Any) -> None:
    hub: Hub = start_hub()
    channel = hub.create("weather", Weather)
    _, page = open_feed(channel)
    wind = numpy.arange(96, dtype="f4").reshape(8, 12)
    channel.source().submit_sync(Weather(7, wind))
    wait_until(lambda: page.of("field"), "a picture has come")
    content, (cells,) = page.of("field")[-1]
    assert (content["rows"], content["columns"], content["low"], content["high"]) == (8, 12, 0.0, 95.0)
    assert numpy.frombuffer(cells, "<f4").tolist() == wind.ravel().tolist()


def test_texts_are_shown_in_short_and_as_text(start_hub: StartHub, open_feed: Any) -> None:
    hub: Hub = start_hub()
    channel = hub.create("letters", Letter)
    _, page = open_feed(channel)
    channel.source().submit_sync(Letter("<b>" + "x" * 1000))
    wait_until(lambda: page.of("events"), "an event has come")
    content, buffers = page.of("events")[-1]
    assert content["head"] == ["text"]
    assert content["rows"][0][0].startswith("<b>xxx")
    assert len(content["rows"][0][0]) <= 60
    assert buffers == []


def test_a_channel_without_a_type_shows_whatever_comes(start_hub: StartHub, open_feed: Any) -> None:
    hub: Hub = start_hub()
    channel = hub.create("anything")
    _, page = open_feed(channel)
    channel.source(Trade).submit_sync(Trade("IBM", 75.5, 3))
    wait_until(lambda: page.of("events"), "an event has come")
    assert page.of("events")[-1][0] == {
        "type": "events",
        "head": ["symbol", "price", "volume"],
        "rows": [["IBM", "75.5", "3"]],
    }


def test_a_feed_that_is_paused_is_no_sink_and_one_that_goes_on_is(start_hub: StartHub, open_feed: Any) -> None:
    hub: Hub = start_hub()
    channel = hub.create("trades", Trade)
    feed, page = open_feed(channel, "price")
    feed.pause(True)
    wait_until(lambda: not feed.running, "the feed has unsubscribed")
    source = channel.source()
    source.submit_sync(Trade("IBM", 1.0, 1))
    feed.pause(False)
    wait_until(lambda: feed.running, "the feed has subscribed again")
    source.submit_sync(Trade("IBM", 2.0, 1))
    wait_until(lambda: page.of("points"), "a point has come")
    (_, (_, values)), *_ = page.of("points")
    assert numpy.frombuffer(values, "<f8")[3] == 2.0


def test_a_feed_ends_with_its_hub(start_hub: StartHub, open_feed: Any) -> None:
    hub: Hub = start_hub()
    feed, page = open_feed(hub.create("trades", Trade), "price")
    hub.close()
    wait_until(lambda: feed.ended, "the feed has ended")
    assert "closed" in page.of("status")[-1][0]["text"]


def test_what_waits_for_a_push_is_bounded(start_hub: StartHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "GATHERED_MAX", 100)
    hub: Hub = start_hub()
    channel = hub.create("trades", Trade)
    shown = threading.Event()
    feed = Feed(channel, view_of(channel.format, "price"), 1000.0, lambda content, buffers: shown.wait())
    try:
        wait_until(lambda: feed.running, "the feed has subscribed")
        source = channel.source()
        for _ in range(20):
            source.submit_batch([Trade("IBM", 1.0, 1)] * 30)
            source.flush()
        wait_until(lambda: feed.waiting > 70, "some have gathered")
        assert feed.waiting <= 100
    finally:
        shown.set()
        feed.close()
