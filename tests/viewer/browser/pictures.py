"""The pictures of the viewer in the documents: `python -m tests.viewer.browser.pictures [FOLDER]`, else docs/images.

They show what the tests show, for longer, so that there are lines to be seen: seconds of trades, a zoomed wind field, a
mistake with its caret, a group whose load rises and falls, a bus with its tool, and a pipeline.
"""

import os
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from playwright.sync_api import sync_playwright

from echoic import Hub
from echoic.cli.demo_events import LAYER_MEANS, LayerMeans
from tests.viewer.browser.stage import World, watched
from tests.viewer.browser.tabs import DESKTOP, FLAGS, Tab, channel_address
from tests.viewer.browser.test_other_pages import SCRIPT, bus, group

IMAGES: Final = Path(__file__).parents[3] / "docs" / "images"
BAD: Final = "{\n    return input.prise < param.low && input.volume >= 100;\n}"


class Album:
    """Takes pictures of one tab."""

    def __init__(self, tab: Tab, folder: Path) -> None:
        self.tab, self._folder = tab, folder

    def wait(self, seconds: float) -> None:
        self.tab.page.wait_for_timeout(seconds * 1000)

    def take(self, name: str) -> None:
        path = self._folder / f"viewer-{name}.png"
        self.tab.page.screenshot(path=path)
        print(f"{path} {path.stat().st_size:,} bytes")


def only_the_price(tab: Tab) -> None:
    """Leave the volume out: it jumps from trade to trade, and hides the other line."""
    volume = tab.locate(".legend [data-path=volume]")
    volume.wait_for()
    if volume.get_attribute("aria-pressed") == "true":
        volume.click()


def pictures_of_channels(album: Album) -> None:
    tab = album.tab
    tab.go(channel_address("cheap"))
    tab.locate("input[type=range][data-parameter=low]").wait_for()
    only_the_price(tab)
    album.wait(16)
    album.take("slider")
    tab.go(channel_address("trades"))
    tab.locate("textarea[name=code]").fill(BAD)
    tab.locate("[name=params]").fill("low=75.0")
    tab.locate("[data-action=check]").click()
    tab.locate("[data-mistake]").first.scroll_into_view_if_needed()
    tab.locate("textarea[name=code]").evaluate("box => box.closest('section').scrollIntoView()")
    album.wait(3)
    album.take("editor")
    tab.go(channel_address("wind"))
    tab.grows("[data-view=field]", "data-draws")
    canvas = tab.locate("[data-view=field] canvas").first
    canvas.focus()
    for key in ("+", "+", "ArrowRight", "ArrowDown"):
        tab.page.keyboard.press(key)
    tab.page.evaluate("document.activeElement.blur()")
    album.wait(6)
    album.take("wind")
    tab.go("#/channels")
    album.wait(45)
    album.take("channels")


def take_all(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        browser = stack.enter_context(sync_playwright()).chromium.launch(
            executable_path=shutil.which("chromium"), args=list(FLAGS)
        )
        stack.callback(browser.close)

        def album(url: str) -> Album:
            tab = Tab(browser.new_context(viewport=DESKTOP, color_scheme="light").new_page(), url)
            tab.enter()
            return Album(tab, folder)

        with ExitStack() as stage:
            world = World(stage)
            world.cheap.subscribe(lambda _: None)
            means = world.desk.open("wind").derive(LAYER_MEANS, LayerMeans, name="layer_means")
            means.subscribe(lambda _: None)
            pictures_of_channels(album(world.url))
        with ExitStack() as stage:
            place = Path(stage.enter_context(tempfile.TemporaryDirectory(prefix="echoic-")))
            os.environ["XDG_RUNTIME_DIR"] = str(place)
            names = stage.enter_context(Hub(name="names")).address
            bus(stage, place, SCRIPT.replace('"<img src=x onerror=alert(1)>"', '"bob"').replace("<b>soup</b>", "soup"))
            group(stage, names)
            looking = album(stage.enter_context(watched(names)).url)
            looking.wait(50)
            for page in ("groups", "bus"):
                looking.tab.go(f"#/{page}")
                looking.wait(4)
                looking.take(page)


if __name__ == "__main__":
    take_all(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
