"""Every page of the viewer in a real browser: it loads, it moves, it is read on any screen, and by keyboard."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.viewer.browser.conftest import OpenTab
from tests.viewer.browser.stage import World, contrast, empty_world, world
from tests.viewer.browser.tabs import DESKTOP, PHONE, Tab, channel_address

PAGES = ("#/channels", channel_address("trades"), channel_address("wind"), "#/groups", "#/bus", "#/pipelines")
READ = (
    "main h1",
    "tr[data-channel=trades] a",
    "tr[data-channel=trades] td",
    "tr[data-channel=cheap] td[data-part=type]",
    "th",
    "nav a",
    "#saved",
    "#state",
    "main .muted",
)
SCREENS = {"desktop": DESKTOP, "phone": PHONE}


@pytest.fixture(scope="module")
def shown() -> Iterator[World]:
    with world() as made:
        yield made


def settled(tab: Tab, address: str) -> None:
    """Wait until a page has something to show."""
    tab.go(address)
    tab.locate("main h1, main h2").first.wait_for()
    if address == "#/channels":
        tab.locate("tr[data-channel=trades]").wait_for()
    if "/channel/" in address:
        tab.grows("[data-view][data-draws]", "data-draws")


def test_the_page_loads_and_asks_nobody_but_the_viewer(open_tab: OpenTab, shown: World) -> None:
    tab = open_tab(shown.url)
    for name in ("trades", "wind", "cheap"):
        tab.locate(f"tr[data-channel={name}]").wait_for()
    assert "token" not in tab.page.url
    assert {socket.url for socket in tab.sockets} == {f"{tab.origin.replace('http', 'ws')}/feed"}
    assert len(tab.asked) > 5  # every request of them was looked at: see Tab


def test_what_the_table_of_channels_says_is_what_goes_through_them(open_tab: OpenTab, shown: World) -> None:
    tab = open_tab(shown.url)
    row = tab.locate("tr[data-channel=trades]")
    row.wait_for()

    def moving() -> bool:
        said = row.locator("[data-part=events]").inner_text().replace(",", "")
        return bool(re.fullmatch(r"[\d.]+", said)) and float(said) > 100

    tab.eventually(moving, "some hundred trades a second")
    assert "Trade" in row.inner_text()


def test_a_chart_is_drawn_again_and_again_and_its_numbers_change(open_tab: OpenTab, shown: World) -> None:
    tab = open_tab(shown.url, channel_address("trades"))
    tab.grows("[data-view=chart]", "data-draws")
    tab.grows("[data-view=chart]", "data-records")
    legend = tab.locate(".legend")
    before = legend.inner_text()
    tab.eventually(lambda: legend.inner_text() != before, "the numbers in the legend change")
    pixels = (
        "canvas => new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer)"
    )
    colours = tab.locate("[data-view=chart] canvas").first.evaluate(f"canvas => new Set(({pixels})(canvas)).size")
    assert colours > 10


def test_events_of_any_type_are_a_table_of_texts(open_tab: OpenTab, shown: World) -> None:
    tab = open_tab(shown.url, channel_address("trades"))
    tab.page.get_by_role("button", name="Events", exact=True).click()
    tab.grows("[data-view=events]", "data-draws")
    tab.eventually(lambda: "IBM" in tab.locate("[data-view=events]").inner_text(), "a symbol is in the table")


def test_bytes_saved_at_the_source_are_on_the_screen_of_every_page(open_tab: OpenTab, shown: World) -> None:
    tab = open_tab(shown.url)
    for address in PAGES:
        settled(tab, address)
        tab.eventually(lambda: tab.saved() >= 0, "the header knows what was saved")
        for screen in SCREENS.values():
            tab.page.set_viewport_size(screen)
            box = tab.locate("#saved-bytes").bounding_box()
            assert box is not None
            assert box["width"] > 10
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= screen["width"]
            assert box["y"] + box["height"] <= screen["height"]
            assert re.search(r"\d", tab.locate("#saved-bytes").inner_text())


def test_a_phone_never_scrolls_sideways(open_tab: OpenTab, shown: World) -> None:
    tab = open_tab(shown.url, viewport=PHONE, has_touch=True, is_mobile=True)
    for address in PAGES:
        settled(tab, address)
        for screen in (PHONE, {"width": 320, "height": 640}):
            tab.page.set_viewport_size(screen)
            tab.page.wait_for_timeout(100)
            assert not tab.scrolls_sideways(), (address, screen)


def test_a_viewer_without_channels_says_how_to_get_one(open_tab: OpenTab) -> None:
    with empty_world() as viewer:
        tab = open_tab(viewer.url)
        tab.page.get_by_text("No channels yet").wait_for()
        for page in ("#/groups", "#/bus", "#/pipelines"):
            tab.go(page)
            tab.locate("main .empty").first.wait_for()


COLOURS = """selector => {
  const element = document.querySelector(selector);
  let ground = element;
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  while (ground && (parts(getComputedStyle(ground).backgroundColor)[3] ?? 1) === 0) ground = ground.parentElement;
  const back = ground ? parts(getComputedStyle(ground).backgroundColor) : [255, 255, 255];
  return [parts(getComputedStyle(element).color), back];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(open_tab: OpenTab, shown: World, scheme: str) -> None:
    tab = open_tab(shown.url, color_scheme=scheme)
    settled(tab, "#/channels")
    for selector in READ:
        front, back = tab.page.evaluate(COLOURS, selector)
        assert contrast(tuple(front), tuple(back)) >= 4.5, (selector, front, back)
    front, back = tab.page.evaluate(COLOURS, "body")
    assert (sum(back[:3]) > 600) == (scheme == "light")


def test_the_theme_is_chosen_by_key_and_kept(open_tab: OpenTab, shown: World) -> None:
    tab = open_tab(shown.url, color_scheme="light")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = tab.page.evaluate(ground)
    seen = set()
    for _ in range(3):
        tab.page.keyboard.press("t")
        seen.add(tab.page.evaluate(ground))
    assert len(seen | {light}) == 2
    while tab.page.evaluate(ground) == light:
        tab.page.keyboard.press("t")
    dark = tab.page.evaluate(ground)
    tab.page.reload()
    tab.live()
    assert tab.page.evaluate(ground) == dark


def test_everything_is_reached_by_the_keyboard(open_tab: OpenTab, shown: World) -> None:
    tab = open_tab(shown.url)
    settled(tab, "#/channels")
    press, heading = tab.page.keyboard.press, tab.locate("main h1, main h2").first
    for keys, title in (("gg", "Groups"), ("gb", "Bus"), ("gp", "Pipelines"), ("gc", "Channels")):
        for key in keys:
            press(key)
        tab.eventually(lambda title=title: title.lower() in tab.page.title().lower(), f"{keys} leads to {title}")
    heading.wait_for()
    tab.locate("tr[data-channel=trades]").wait_for()
    press("/")
    tab.page.keyboard.type("wind")
    tab.eventually(lambda: not tab.locate("tr[data-channel=trades]").count(), "the filter filters")
    reached = tab_through(tab)
    assert any("wind" in each for each in reached)
    press("?")
    tab.locate("#shortcuts[open]").wait_for()
    press("Escape")
    tab.locate("#shortcuts[open]").wait_for(state="detached")


def test_the_controls_of_a_channel_are_in_the_order_of_tabs(open_tab: OpenTab, shown: World) -> None:
    tab = open_tab(shown.url)
    controls = "main :is(button, input, select, textarea, summary, a[href])"
    for name in ("trades", "wind", "cheap"):
        settled(tab, channel_address(name))
        visible = tab.page.evaluate(
            "selector => [...document.querySelectorAll(selector)]"
            ".filter(one => one.checkVisibility() && !one.disabled && one.tabIndex >= 0).length",
            controls,
        )
        reached = tab_through(tab)
        assert len(reached) >= visible, (name, reached)


def test_space_holds_a_picture_still_and_lets_it_go_on(open_tab: OpenTab, shown: World) -> None:
    tab = open_tab(shown.url, channel_address("trades"))
    tab.grows("[data-view=chart]", "data-draws")
    tab.page.keyboard.press("Space")
    tab.locate("[data-paused]").wait_for()
    legend = tab.locate(".legend")
    tab.page.wait_for_timeout(300)
    before = legend.inner_text()
    tab.page.wait_for_timeout(700)
    assert legend.inner_text() == before
    tab.page.keyboard.press("Space")
    tab.eventually(lambda: legend.inner_text() != before, "it goes on")


FOCUS = """() => {
  const element = document.activeElement;
  if (!element || element === document.body || window.reachedByTab.has(element)) return null;
  window.reachedByTab.add(element);
  const box = element.getBoundingClientRect();
  const around = [element, element.parentElement, element.parentElement?.parentElement].filter(Boolean);
  const ringed = around.map(getComputedStyle).some((seen) => seen.outlineStyle !== 'none' || seen.boxShadow !== 'none');
  const text = element.innerText || element.ariaLabel || element.name || element.outerHTML;
  return [text, box.width * box.height > 0, ringed];
}"""


def tab_through(tab: Tab) -> list[str]:
    """Press the Tab key until the focus is where it began; return the texts of what had it."""
    tab.page.evaluate("document.activeElement?.blur(); window.reachedByTab = new Set()")
    reached: list[str] = []
    for _ in range(200):
        tab.page.keyboard.press("Tab")
        text = tab.page.evaluate(FOCUS)
        if text is None:
            break
        assert text[1], f"{text[0]} has the focus and is not seen"
        assert text[2], f"{text[0]} has the focus, and nothing shows it"
        reached.append(text[0])
    return reached


def test_pictures_of_the_pages_are_taken(open_tab: OpenTab, shown: World, screenshots: Path) -> None:
    tab = open_tab(shown.url, viewport=DESKTOP)
    for address in ("#/channels", channel_address("trades"), channel_address("wind"), channel_address("cheap")):
        settled(tab, address)
        tab.page.wait_for_timeout(1000)  # some seconds of lines look better than none
        tab.pictures(screenshots, re.sub(r"[#/]+", "-", address).strip("-"))
