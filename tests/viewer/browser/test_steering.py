"""What a hand on the page changes at the source: sliders, pan and zoom of a field, and channels derived in the editor.

What the page says of it is not believed: parameters are read where the channel is, and events are taken by plain sinks.
"""

import re
import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator

from echoic import Channel
from echoic.channels import DerivationCounts
from echoic.cli.demo_events import Trade
from tests.viewer.browser.conftest import OpenTab
from tests.viewer.browser.stage import World, world
from tests.viewer.browser.tabs import Tab, channel_address


@pytest.fixture(scope="module")
def shown() -> Iterator[World]:
    with world() as made:
        yield made


class Taken:
    """The prices that a plain sink of a channel was given since somebody last asked."""

    def __init__(self, channel: Channel) -> None:
        self._lock = threading.Lock()
        self._prices: list[float] = []
        self.sink = channel.subscribe(self._take)

    def fresh(self) -> list[float]:
        with self._lock:
            prices, self._prices = self._prices, []
        return prices

    def _take(self, event: Trade) -> None:
        with self._lock:
            self._prices.append(event.price)


def test_a_slider_changes_what_the_source_sends(open_tab: OpenTab, shown: World) -> None:
    taken = Taken(shown.cheap)
    tab = open_tab(shown.url, channel_address("cheap"))
    slider = tab.locate("input[type=range][data-parameter=low]")
    slider.wait_for()
    before = tab.eventually(taken.fresh, "some trades are cheap")
    assert max(before) < 74.0
    moved(slider, 0.1)
    tab.eventually(lambda: low_of(shown) != 74.0, "the parameter has changed at the source")
    told = float(slider.input_value())
    tab.eventually(lambda: abs(low_of(shown) - told) < 1e-9, "the last position is the one that counts")
    taken.fresh()
    only_below(tab, taken, told)
    moved(slider, 0.9)
    high = float(slider.input_value())
    assert high > told
    tab.eventually(lambda: low_of(shown) == pytest.approx(high), "and the other way")
    tab.eventually(lambda: any(price >= told for price in taken.fresh()), "more is sent again")
    taken.sink.close()


def low_of(shown: World) -> float:
    """Return the parameter as the channel's manager has it."""
    return float(shown.desk.open("cheap").params.values["low"])


def only_below(tab: Tab, taken: Taken, limit: float) -> None:
    """Wait until nothing above a limit is sent any more, though trades go on."""

    def quiet() -> bool:
        taken.fresh()
        tab.page.wait_for_timeout(500)
        return all(price < limit for price in taken.fresh())

    tab.eventually(quiet, f"only what is below {limit} is sent")


def moved(slider: Locator, share: float) -> None:
    """Drag a slider with the mouse, to so much of its way."""
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    assert box is not None
    mouse, height = slider.page.mouse, box["y"] + box["height"] / 2
    mouse.move(box["x"] + box["width"] / 2, height)
    mouse.down()
    mouse.move(box["x"] + box["width"] * share, height, steps=8)
    mouse.up()


def test_a_slider_is_moved_by_arrow_keys(open_tab: OpenTab, shown: World) -> None:
    tab = open_tab(shown.url, channel_address("cheap"))
    slider = tab.locate("input[type=range][data-parameter=low]")
    slider.focus()
    before = low_of(shown)
    slider.press("ArrowLeft")
    tab.eventually(lambda: low_of(shown) < before, "an arrow key moves it")


def of_the_field(shown: World) -> DerivationCounts | None:
    """Return what the derivation for the page's field has done inside the source."""
    found = shown.derivations(shown.station, "wind")
    return max(found, key=lambda each: each.events_in, default=None)


def window_of(tab: Tab) -> list[float]:
    return [float(part) for part in re.findall(r"[\d.]+", tab.window())]


def test_pan_and_zoom_of_a_field_change_what_the_source_sends(open_tab: OpenTab, shown: World) -> None:
    tab = open_tab(shown.url, channel_address("wind"))
    tab.grows("[data-view=field]", "data-draws")
    whole = window_of(tab)
    assert whole[2:] == [37, 253]
    tab.eventually(lambda: of_the_field(shown), "one derivation runs for the page")

    def bytes_an_event() -> float:
        """Return how large what the source sends is, measured over some events."""
        one = of_the_field(shown)
        tab.eventually(lambda: of_the_field(shown).events_out > one.events_out + 3, "fields are sent")
        two = of_the_field(shown)
        return (two.bytes_out - one.bytes_out) / (two.events_out - one.events_out)

    large = bytes_an_event()
    canvas = tab.locate("[data-view=field] canvas").first
    box = canvas.bounding_box()
    tab.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    for _ in range(8):
        tab.page.mouse.wheel(0, -240)
        tab.page.wait_for_timeout(60)
    tab.eventually(lambda: window_of(tab)[3] < 200, "the page shows a part of it")
    saved = of_the_field(shown).bytes_saved
    tab.eventually(lambda: bytes_an_event() < large / 2, "the source sends less")
    tab.eventually(lambda: of_the_field(shown).bytes_saved > saved, "and saves more")
    seen = window_of(tab)
    tab.page.mouse.down()
    tab.page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + box["height"] / 2, steps=6)
    tab.page.mouse.up()
    tab.eventually(lambda: window_of(tab)[1] < seen[1], "dragging to the right shows what lies to the left")
    assert window_of(tab)[2:] == seen[2:]
    canvas.focus()
    tab.page.keyboard.press("0")
    tab.eventually(lambda: window_of(tab) == whole, "0 shows all of it")
    tab.eventually(lambda: bytes_an_event() > large / 2, "and the source sends all of it")


def test_the_bytes_saved_in_the_header_grow_while_a_field_is_looked_at(open_tab: OpenTab, shown: World) -> None:
    tab = open_tab(shown.url, channel_address("wind"))
    tab.grows("[data-view=field]", "data-draws")
    before = tab.saved()
    tab.eventually(lambda: tab.saved() > before, "bytes saved at the source grow")


def test_nothing_is_derived_for_a_tab_that_is_closed(open_tab: OpenTab, shown: World) -> None:
    tab = open_tab(shown.url, channel_address("wind"))
    tab.grows("[data-view=field]", "data-draws")
    other = open_tab(shown.url)
    tab.page.close()

    def derived() -> int:
        return sum(each.events_in for each in shown.derivations(shown.station, "wind"))

    def idle() -> bool:
        before = derived()
        other.page.wait_for_timeout(500)  # five fields
        return derived() == before

    other.eventually(idle, "nothing is derived for nobody")


BAD = "{\n    return input.prise < 75.0;\n}"


def test_a_mistake_in_e_code_is_shown_with_its_caret(open_tab: OpenTab, shown: World) -> None:
    tab = open_tab(shown.url, channel_address("trades"))
    write(tab, BAD)
    tab.locate("[data-action=check]").click()
    mistake = tab.locate("[data-mistake]").first
    mistake.wait_for()
    told = mistake.inner_text()
    assert "prise" in told
    lines = told.splitlines()
    caret = next(number for number, line in enumerate(lines) if line.strip().startswith("^"))
    assert lines[caret - 1][lines[caret].index("^") :].startswith("prise")
    write(tab, BAD.replace("prise", "price"))
    tab.locate("[data-action=check]").click()
    tab.eventually(lambda: not tab.locate("[data-mistake]").count(), "what was mended is no mistake any more")


def write(tab: Tab, code: str, **others: str) -> None:
    """Write into the editor."""
    editor = tab.locate("textarea[name=code]")
    editor.fill(code)
    for name, text in others.items():
        tab.locate(f"[name={name}]").fill(text)


def test_deriving_opens_the_derived_channel(open_tab: OpenTab, shown: World) -> None:
    tab = open_tab(shown.url, channel_address("trades"))
    write(tab, "{\n    return input.volume < param.lot;\n}", params="lot=50", name="small_lots")
    tab.locate("[data-action=derive]").click()
    tab.eventually(
        lambda: "small_lots" in tab.page.url or "small_lots" in tab.page.title(), "the derived channel is shown"
    )
    tab.locate("input[type=range][data-parameter=lot]").wait_for()
    tab.grows("[data-view][data-draws]", "data-records")
    volumes: list[int] = []
    sink = shown.desk.open("small_lots", Trade).subscribe(lambda trade: volumes.append(trade.volume))
    tab.eventually(lambda: len(volumes) > 20, "anybody can subscribe to it")
    assert max(volumes) < 50
    sink.close()
    tab.go("#/channels")
    tab.locate("tr[data-channel=small_lots]").wait_for()


def test_a_derivation_that_is_wrong_is_refused_in_words(open_tab: OpenTab, shown: World) -> None:
    tab = open_tab(shown.url, channel_address("trades"))
    write(tab, BAD, name="wrong")
    tab.locate("[data-action=derive]").click()
    tab.locate("[data-mistake]").first.wait_for()
    assert "wrong" not in [entry.name for entry in shown.desk.channels(shown.names.address)]


def test_why_nothing_was_derived_is_said_until_something_is_written(open_tab: OpenTab, shown: World) -> None:
    tab = open_tab(shown.url, channel_address("trades"))
    write(tab, "{\n    return 1;\n}")
    tab.locate(".mistakes .fine").wait_for()
    tab.locate("[name=name]").fill("wind")
    tab.locate("[name=name]").press("Enter")
    told = tab.locate("[data-mistake]")
    told.first.wait_for()
    tab.page.wait_for_timeout(1000)  # a check would have taken its place by now
    assert "is registered already" in told.first.inner_text()
    tab.locate("[name=name]").fill("another")
    tab.locate(".mistakes .fine").wait_for()
