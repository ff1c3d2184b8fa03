"""The module that draws, in a real Chromium, with what a real feed has told, on a page that does as anywidget does."""

import base64
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from echoic import Array, Channel, Hub, event, float32, float64
from echoic.notebook import widget
from echoic.notebook.feed import Feed
from echoic.notebook.views import view_of
from tests.conftest import StartHub
from tests.system.processes import wait_until
from tests.viewer.browser.tabs import FLAGS

CHROMIUM = shutil.which("chromium")
MODULE = Path(widget.__file__).with_name("live.mjs").read_text("utf-8")
HOSTILE = "<img src=x onerror='document.title=`hit`'>"

pytestmark = [pytest.mark.system, pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")]

# What anywidget does: import the text as a module, call `render` with a model and a place, keep the way to clean up.
HOST = """
async ([source, state]) => {
    const module = await import(URL.createObjectURL(new Blob([source], {type: "text/javascript"})));
    const hearers = {};
    window.sent = [];
    window.model = {
        get: (name) => state[name],
        set: (name, value) => { state[name] = value; for (const each of hearers["change:" + name] ?? []) each(); },
        on: (name, hearer) => (hearers[name] ??= new Set()).add(hearer),
        off: (name, hearer) => hearers[name]?.delete(hearer),
        send: (content) => sent.push(content),
    };
    window.tell = (content, buffers) => {
        const views = buffers.map((text) => {
            const bytes = Uint8Array.from("?" + atob(text), (each) => each.charCodeAt(0));
            return new DataView(bytes.buffer, 1);  // which no typed array could look into
        });
        for (const each of hearers["msg:custom"] ?? []) each(content, views);
    };
    const place = document.createElement("div");
    document.body.append(place);
    window.clean = module.default.render({model, el: place});
}
"""
# How many pixels of the canvas are drawn, and how many colours they have.
LOOK = """
() => new Promise((answer) => requestAnimationFrame(() => requestAnimationFrame(() => {
    const canvas = document.querySelector("canvas");
    const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const pixels = new Uint32Array(data.buffer), colours = new Map();
    for (const each of pixels) if (each >>> 24) colours.set(each, (colours.get(each) ?? 0) + 1);
    answer({drawn: [...colours.values()].reduce((a, b) => a + b, 0), colours: colours.size});
})))
"""


@event
class Trade:
    bid: float64
    ask: float64


@event
class Weather:
    wind: Array[float32, 37, 253]


@event
class Letter:
    text: str


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    opened = browser.new_page(viewport={"width": 720, "height": 400})
    asked: list[str] = []
    failed: list[str] = []
    opened.on("request", lambda request: asked.append(request.url))
    opened.on("pageerror", lambda error: failed.append(str(error)))
    opened.goto("about:blank")
    yield opened
    opened.close()
    assert failed == []
    assert [url for url in asked if not url.startswith(("blob:", "about:"))] == []  # it asks nobody for anything


class Told:
    """What a real feed has told, to be passed on to a page."""

    def __init__(self, channel: Channel, fields: Any = None) -> None:
        self.view = view_of(channel.format, fields)
        self.state = {
            "kind": self.view.kind,
            "channel": channel.name,
            "fields": list(self.view.fields),
            "seconds": 0.5,
            "ended": False,
        }
        self._messages: list[tuple[dict[str, object], list[bytes]]] = []
        self._lock = threading.Lock()
        self.feed = Feed(channel, self.view, 1000.0, self._keep)
        wait_until(lambda: self.feed.running, "the feed has subscribed")

    def _keep(self, content: dict[str, object], buffers: list[bytes]) -> None:
        with self._lock:
            self._messages.append((content, buffers))

    @property
    def shown(self) -> int:
        """How many points or pictures were told."""
        with self._lock:
            return sum(_weight(content) for content, _ in self._messages)

    def pass_on(self, page: Any, count: int = 1) -> None:
        """Wait until so much was told, end the feed, and tell the page all of it."""
        wait_until(lambda: self.shown >= count, "all was told")
        self.feed.close()
        for content, buffers in self._messages:
            page.evaluate(
                "([content, buffers]) => tell(content, buffers)", [content, [_text(each) for each in buffers]]
            )


def _weight(content: dict[str, Any]) -> int:
    return {"points": content.get("count", 0), "status": 0}.get(content["type"], 1)


def _text(buffer: bytes) -> str:
    return base64.b64encode(buffer).decode()


def test_a_chart_is_drawn_with_a_line_for_each_field(start_hub: StartHub, page: Any, tmp_path: Path) -> None:
    hub: Hub = start_hub()
    channel = hub.create("trades", Trade)
    told = Told(channel)
    page.evaluate(HOST, [MODULE, told.state])
    source = channel.source()
    for start in range(0, 200, 50):
        source.submit_batch([Trade(numpy.sin(n / 9), 2 + numpy.cos(n / 9)) for n in range(start, start + 50)])
        source.flush()
    told.pass_on(page, 200)
    seen = page.evaluate(LOOK)
    assert seen["drawn"] > 1000
    assert seen["colours"] > 4
    assert "bid" in page.locator("body").inner_text()
    assert "ask" in page.locator("body").inner_text()
    page.screenshot(path=str(tmp_path / "chart.png"))


def test_a_field_is_drawn_as_a_heat_map(start_hub: StartHub, page: Any, tmp_path: Path) -> None:
    hub: Hub = start_hub()
    channel = hub.create("weather", Weather)
    told = Told(channel)
    page.evaluate(HOST, [MODULE, told.state])
    rows, columns = numpy.mgrid[0:37, 0:253]
    channel.source().submit_sync(Weather(numpy.sin(rows / 6) * numpy.cos(columns / 20)))
    told.pass_on(page)
    seen = page.evaluate(LOOK)
    assert seen["drawn"] >= 600 * 200  # the whole canvas
    assert seen["colours"] > 100
    assert "37 x 253" in page.locator("body").inner_text()
    page.screenshot(path=str(tmp_path / "field.png"))


def test_hostile_texts_are_shown_as_text(start_hub: StartHub, page: Any) -> None:
    hub: Hub = start_hub()
    channel = hub.create("letters", Letter)
    told = Told(channel)
    page.evaluate(HOST, [MODULE, told.state])
    channel.source().submit_sync(Letter(HOSTILE))
    told.pass_on(page)
    assert page.locator("td").all_inner_texts() == [HOSTILE]
    assert page.locator("img").count() == 0
    assert page.title() == ""


def test_a_view_tells_when_it_is_out_of_sight_and_when_it_is_gone(start_hub: StartHub, page: Any) -> None:
    hub: Hub = start_hub()
    told = Told(hub.create("trades", Trade))
    told.feed.close()
    page.evaluate(HOST, [MODULE, told.state])
    page.wait_for_function("sent.length === 1 && sent[0].seen === true")
    page.evaluate("() => { document.body.prepend(document.createElement('p')); "
                  "document.querySelector('p').style.height = '5000px'; }")  # fmt: skip
    page.wait_for_function("sent.length === 2 && sent[1].seen === false")
    page.evaluate("() => document.querySelector('canvas').scrollIntoView()")
    page.wait_for_function("sent.length === 3 && sent[2].seen === true")
    page.evaluate("() => model.set('ended', true)")
    assert "stopped" in page.locator("body").inner_text()
    page.evaluate("() => clean()")
    page.wait_for_function("sent.length === 4 && sent[3].seen === false && sent[3].view === sent[0].view")
