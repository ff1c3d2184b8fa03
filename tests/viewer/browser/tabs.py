"""A tab of a real browser that shows the viewer, and what a reader sees and does in it."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import quote, urlsplit

from playwright.sync_api import ConsoleMessage, Dialog, Locator, Page, Request, Response, WebSocket

__all__ = ["DESKTOP", "FLAGS", "PATIENCE_MS", "PHONE", "STRANGER", "Tab", "channel_address", "screenshots_folder"]

STRANGER: Final = "stranger.example"
# As root there is no sandbox to be had; the others keep Chromium from calling home.
FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Offline, but for this machine, to which the name of a stranger leads as well.
    f"--host-resolver-rules=MAP {STRANGER} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)
PATIENCE_SECONDS: Final = 60.0
PATIENCE_MS: Final = PATIENCE_SECONDS * 1000
LOOK_MS: Final = 50
DESKTOP: Final = {"width": 1280, "height": 800}
PHONE: Final = {"width": 390, "height": 844}

T = TypeVar("T")


def screenshots_folder(otherwise: Path) -> Path:
    folder = Path(os.environ.get("ECHOIC_SCREENSHOTS") or otherwise)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def channel_address(name: str) -> str:
    """Return what stands behind the viewer's address while a channel is shown."""
    return f"#/channel/{quote(name, safe='')}"


class Tab:
    """A page with its console and its requests.

    Args:
        page: Of a context of its own.
        url: As the viewer prints it, with the token.
    """

    def __init__(self, page: Page, url: str) -> None:
        self.page: Final = page
        self.url: Final = url
        self.origin: Final = "{0.scheme}://{0.netloc}".format(urlsplit(url))
        self.allowed: Final[list[str]] = []
        """What the console may say in this test: parts of messages."""
        self.sockets: Final[list[WebSocket]] = []
        self.asked: Final[list[str]] = []
        self._complaints: Final[list[str]] = []
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self._complaints.append(f"uncaught: {error}"))
        page.on("dialog", self._refuse)
        page.on("request", self._note)
        page.on("response", self._judge)
        page.on("websocket", lambda socket: self.sockets.append(socket))  # noqa: PLW0108 - a builtin cannot be one

    def enter(self, address: str = "") -> None:
        """Open the page with the token, and wait until it is live."""
        self.page.goto(self.url)
        self.live()
        if address:
            self.go(address)

    def beside(self, address: str) -> "Tab":
        """Open another tab of the same browser, which has the token already."""
        other = Tab(self.page.context.new_page(), f"{self.origin}/")
        other.enter(address)
        return other

    def window(self) -> str:
        """Return which part of a field the page shows: top, left, height and width."""
        return self.page.locator("[data-view=field]").get_attribute("data-window") or ""

    def go(self, address: str) -> None:
        """Show a page of the viewer: `#/groups`."""
        self.page.evaluate("address => { location.hash = address; }", address)

    def live(self) -> None:
        """Wait until the page has its connection."""
        self.page.locator("#state[data-state=live]").wait_for()

    def saved(self) -> int:
        """Return the bytes saved at the source, as the header says it; -1 while it does not know."""
        return int(self.page.locator("#saved").get_attribute("data-bytes") or -1)

    def number(self, selector: str, attribute: str) -> int:
        return int(self.page.locator(selector).first.get_attribute(attribute) or 0)

    def eventually(self, look: Callable[[], T], what: str) -> T:
        """Return what is seen once it is true."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (found := look()):
            assert time.monotonic() < deadline, f"not within {PATIENCE_SECONDS} s: {what}\n{self.text()[:2000]}"
            self.page.wait_for_timeout(LOOK_MS)
        return found

    def grows(self, selector: str, attribute: str) -> None:
        """Wait until a count on the page goes up."""
        self.page.locator(selector).first.wait_for(state="attached")
        before = self.number(selector, attribute)
        self.eventually(lambda: self.number(selector, attribute) > before, f"{attribute} of {selector} grows")

    def text(self) -> str:
        return str(self.page.inner_text("body"))

    def locate(self, selector: str) -> Locator:
        return self.page.locator(selector)

    def pictures(self, folder: Path, name: str) -> None:
        """Take pictures of all of the page, light and dark, wide and on a phone."""
        for screen, size in (("desktop", DESKTOP), ("phone", PHONE)):
            self.page.set_viewport_size(size)
            for scheme in ("light", "dark"):
                self.page.emulate_media(color_scheme=scheme)
                self.page.wait_for_timeout(200)  # what is drawn is drawn in the other colours
                path = folder / f"{name}-{scheme}-{screen}.png"
                self.page.screenshot(path=path, full_page=True)
                assert path.stat().st_size > 5000
        self.page.emulate_media(color_scheme="light")
        self.page.set_viewport_size(DESKTOP)

    def complaints(self) -> list[str]:
        """Return what the console said, and who else was asked for something."""
        return [each for each in self._complaints if not any(part in each for part in self.allowed)]

    def scrolls_sideways(self) -> bool:
        return bool(self.page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._complaints.append(f"console {message.type}: {message.text}")

    def _refuse(self, dialog: Dialog) -> None:
        self._complaints.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def _note(self, request: Request) -> None:
        self.asked.append(request.url)
        if not request.url.startswith((f"{self.origin}/", "data:", "blob:")):
            self._complaints.append(f"a request to somebody else: {request.url}")

    def _judge(self, response: Response) -> None:
        if response.status >= 400:
            self._complaints.append(f"{response.status} for {response.url}")
