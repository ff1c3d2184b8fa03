"""Who may not look: pages of others, whoever has no token, and names that only point here."""

import http.server
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser

from echoic.viewer import Viewer
from tests.viewer.browser.conftest import OpenTab
from tests.viewer.browser.stage import TOKEN, empty_world
from tests.viewer.browser.tabs import PATIENCE_MS, STRANGER


@pytest.fixture(scope="module")
def viewer() -> Iterator[Viewer]:
    with empty_world() as made:
        yield made


@pytest.fixture
def foreign_page() -> Iterator[str]:
    """Serve a page of somebody else, on this machine."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><link rel=icon href=data:,><title>elsewhere</title>")

        def log_message(self, *_: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


SOCKET = """address => new Promise((resolve) => {
  const socket = new WebSocket(address);
  socket.onopen = () => resolve('open');
  socket.onerror = () => resolve('refused');
  socket.onclose = ({ code }) => resolve(`closed ${code}`);
})"""
FETCH = """async ([address, options]) => {
  try {
    const answer = await fetch(address, options);
    return `${answer.type} ${answer.status} ${(await answer.text()).length}`;
  } catch (error) {
    return `refused: ${error}`;
  }
}"""
SCRIPT = """([address, type]) => new Promise((resolve) => {
  const script = Object.assign(document.createElement('script'), { src: address, type });
  script.onload = () => resolve('loaded');
  script.onerror = () => resolve('refused');
  document.head.append(script);
})"""


def test_the_page_of_somebody_else_gets_neither_the_feed_nor_anything_to_read(
    open_tab: OpenTab, viewer: Viewer, foreign_page: str
) -> None:
    tab = open_tab(viewer.url)  # so that the browser has the cookie
    other = tab.page.context.new_page()
    other.goto(foreign_page)
    feed = f"ws://{viewer.address}/feed"
    assert tab.page.evaluate(SOCKET, feed) == "open"
    assert other.evaluate(SOCKET, feed) == "refused"
    origin = f"http://{viewer.address}"
    for address in (origin, f"{origin}/decoder.mjs", f"{origin}/?token={TOKEN}"):
        assert other.evaluate(FETCH, [address, {"credentials": "include"}]).startswith("refused")
        assert other.evaluate(FETCH, [address, {"mode": "no-cors"}]).startswith(("refused", "opaque 0 0"))
    for kind in ("module", "text/javascript"):
        assert other.evaluate(SCRIPT, [f"{origin}/decoder.mjs", kind]) == "refused"


def test_the_page_of_somebody_else_cannot_show_the_viewer_in_a_frame(
    open_tab: OpenTab, viewer: Viewer, foreign_page: str
) -> None:
    tab = open_tab(viewer.url)
    other = tab.page.context.new_page()
    other.goto(foreign_page)
    other.evaluate(
        "address => new Promise(done => { const frame = document.createElement('iframe'); frame.src = address;"
        " frame.onload = done; document.body.append(frame); })",
        f"http://{viewer.address}/",
    )
    assert all("saved at the source" not in frame.content() for frame in other.frames)


def test_whoever_has_no_token_is_told_where_it_is(browser: Browser, viewer: Viewer) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    for address in ("/", "/?token=wrong", f"/?token={TOKEN[:-1]}0", "/shell.mjs", "/feed"):
        answer = page.goto(f"http://{viewer.address}{address}")
        assert answer is not None
        assert answer.status in (403, 404), address
        assert TOKEN not in page.content()
    page.goto(f"http://{viewer.address}/")
    assert "token" in page.inner_text("body")
    assert page.evaluate(SOCKET, f"ws://{viewer.address}/feed") == "refused"
    context.close()


def test_a_name_that_only_points_here_is_refused(browser: Browser, viewer: Viewer) -> None:
    port = urlsplit(viewer.url).port
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    # As in DNS rebinding: the stranger's name leads to this machine, and the page is of the stranger's origin.
    answer = page.goto(f"http://{STRANGER}:{port}/?token={TOKEN}")
    assert answer is not None
    assert answer.status in (400, 403, 421)
    assert "saved at the source" not in page.content()
    assert page.evaluate(SOCKET, f"ws://{STRANGER}:{port}/feed") == "refused"
    context.close()


def test_the_cookie_is_out_of_reach_of_scripts_and_not_sent_elsewhere(open_tab: OpenTab, viewer: Viewer) -> None:
    tab = open_tab(viewer.url)
    assert tab.page.evaluate("document.cookie") == ""
    (cookie,) = tab.page.context.cookies()
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert tab.page.evaluate("performance.getEntries().map(entry => entry.name).join()").count(TOKEN) == 0
