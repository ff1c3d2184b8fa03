"""Connections that are lost and come back: the viewer's, which is killed, and that of a channel's program."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from echoic import Hub
from echoic.cli.demo_events import Trade, Wind
from tests.viewer.browser.conftest import OpenTab
from tests.viewer.browser.stage import CHEAP, TOKEN, Exchange, Publisher, Weather, watched
from tests.viewer.browser.tabs import channel_address

COMMAND = (sys.executable, "-c", "from echoic.cli import main; main()")
LOST = "WebSocket connection to"  # what a browser says of it, whoever catches the error
PATIENCE_SECONDS = 60.0


class ViewerProcess:
    """`echoic viewer`, in a process that can be killed."""

    def __init__(self, names: str, listen: str, token_file: Path) -> None:
        words = [
            "viewer",
            "--names",
            names,
            "--listen",
            listen,
            "--token-file",
            str(token_file),
            "--no-browser",
            "--json",
        ]
        self._process = subprocess.Popen(
            [*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        late = threading.Timer(PATIENCE_SECONDS, self._process.kill)
        late.start()
        line = self._process.stdout.readline()
        late.cancel()
        assert line, "the viewer has ended"
        self.url: str = json.loads(line)["url"]

    def end(self) -> None:
        self._process.kill()
        self._process.wait(PATIENCE_SECONDS)
        self._process.stdout.close()


@pytest.fixture
def names() -> Iterator[str]:
    """Have channels that go on whatever happens to the viewer."""
    with ExitStack() as stack:
        server = stack.enter_context(Hub(name="names"))
        hub = stack.enter_context(Hub(names=server.address, name="sources"))
        desk = stack.enter_context(Hub(names=server.address, name="desk"))
        trades, wind = hub.create("trades", Trade), hub.create("wind", Wind)
        desk.open("trades", Trade).derive(CHEAP, params={"low": 74.0}, name="cheap")
        for publisher in (Publisher(trades, Exchange(), 0.04), Publisher(wind, Weather(), 0.1)):
            stack.callback(publisher.close)
        yield server.address


@contextmanager
def process(names: str, listen: str, token_file: Path) -> Iterator[ViewerProcess]:
    viewer = ViewerProcess(names, listen, token_file)
    try:
        yield viewer
    finally:
        viewer.end()


def test_a_viewer_that_is_killed_and_started_again_goes_on_where_the_page_was(
    open_tab: OpenTab, names: str, tmp_path: Path
) -> None:
    token_file = tmp_path / "token"
    with ExitStack() as stack:
        viewer = ViewerProcess(names, "127.0.0.1:0", token_file)
        field = open_tab(viewer.url, channel_address("wind"))
        chart = field.beside(channel_address("trades"))
        for tab in (field, chart):
            tab.allowed += [LOST, "ERR_CONNECTION_REFUSED"]
        field.grows("[data-view=field]", "data-draws")
        chart.grows("[data-view=chart]", "data-draws")
        field.locate("[data-view=field] canvas").first.focus()
        for _ in range(4):
            field.page.keyboard.press("+")
        field.eventually(lambda: "253" not in field.window(), "the field is zoomed")
        window = field.window()
        viewer.end()
        for tab in (field, chart):
            tab.locate("#state:not([data-state=live])").wait_for()
        address = field.origin.partition("//")[2]
        again = stack.enter_context(process(names, address, token_file))
        assert again.url == viewer.url
        for tab, view in ((field, "field"), (chart, "chart")):
            tab.live()
            tab.grows(f"[data-view={view}]", "data-records")
            tab.grows(f"[data-view={view}]", "data-draws")
        assert field.window() == window


def test_a_viewer_with_another_token_says_where_the_address_is(open_tab: OpenTab, names: str, tmp_path: Path) -> None:
    viewer = ViewerProcess(names, "127.0.0.1:0", tmp_path / "one")
    tab = open_tab(viewer.url)
    tab.allowed += [LOST, "ERR_CONNECTION_REFUSED", "403"]
    tab.locate("tr[data-channel=trades]").wait_for()  # so that nothing is being loaded any more
    viewer.end()
    with process(names, tab.origin.partition("//")[2], tmp_path / "another"):
        tab.eventually(lambda: "token" in tab.locate("#state").inner_text().lower(), "the page says why it stays dark")


def test_a_channel_that_ends_and_comes_back_is_shown_again(open_tab: OpenTab) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(Hub(name="names"))
        viewer = stack.enter_context(watched(server.address, TOKEN))

        def publishing() -> ExitStack:
            program = ExitStack()
            hub = program.enter_context(Hub(names=server.address, name="exchange"))
            program.callback(Publisher(hub.create("trades", Trade), Exchange(), 0.04).close)
            return program

        first = publishing()
        tab = open_tab(viewer.url, channel_address("trades"))
        tab.grows("[data-view=chart]", "data-draws")
        first.close()
        tab.eventually(lambda: tab.locate("main .notice:visible").count(), "the page says that the channel has ended")
        second = stack.enter_context(publishing())
        assert second is not first
        tab.eventually(lambda: not tab.locate("main .notice:visible").count(), "what it said is gone")
        tab.grows("[data-view=chart]", "data-records")
        tab.grows("[data-view=chart]", "data-draws")
