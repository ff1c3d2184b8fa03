"""One Chromium for all tests in a browser, and a fresh context for each.

Playwright's synchronous interface keeps an event loop running in the thread that started it, between its calls too.
Other tests of the same worker would find it there and refuse to run one of their own. So it is set aside whenever no
test in a browser is at work: `loop_at_work` puts it back for a test and takes it away after it.
"""

import asyncio
import shutil
from asyncio.events import _set_running_loop
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from tests.viewer.browser.tabs import FLAGS, PATIENCE_MS, Tab, screenshots_folder

CHROMIUM = shutil.which("chromium")

OpenTab = Callable[..., Tab]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.system)
            item.add_marker(pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"))


@pytest.fixture(scope="session")
def running() -> Iterator[tuple[Browser, asyncio.AbstractEventLoop]]:
    """Start Chromium; what is given with it is the loop by which Playwright talks to it."""
    playwright = sync_playwright().start()
    loop = asyncio.get_running_loop()
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
    _set_running_loop(None)
    yield browser, loop
    _set_running_loop(loop)
    browser.close()
    playwright.stop()


@pytest.fixture
def browser(running: tuple[Browser, asyncio.AbstractEventLoop]) -> Iterator[Browser]:
    """Return the browser, for as long as a test is at work with it."""
    browser, loop = running
    _set_running_loop(loop)
    yield browser
    _set_running_loop(None)


@pytest.fixture
def open_tab(browser: Browser) -> Iterator[OpenTab]:
    """Open pages in contexts of their own; in the end none of them may have complained, or asked anybody else."""
    with ExitStack() as stack:
        tabs: list[Tab] = []

        def open_one(url: str, address: str = "", **options: object) -> Tab:
            context: BrowserContext = browser.new_context(**options)  # type: ignore[arg-type] # as the caller knows them
            context.set_default_timeout(PATIENCE_MS)
            stack.callback(context.close)
            tab = Tab(context.new_page(), url)
            tabs.append(tab)
            tab.enter(address)
            return tab

        yield open_one
        for tab in tabs:
            assert tab.complaints() == []


@pytest.fixture
def screenshots(tmp_path: Path) -> Path:
    """Return where pictures go: the folder that ECHOIC_SCREENSHOTS names, or one of the test."""
    return screenshots_folder(tmp_path)
