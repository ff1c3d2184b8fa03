"""Hostile texts: whatever comes from a channel is shown as a text and is never anything else."""

import threading
from collections.abc import Iterator, Sequence

import pytest

from echoic import Array, Hub, Source, event
from echoic.errors import EchoicError
from echoic.viewer import Viewer
from tests.viewer.browser.conftest import OpenTab
from tests.viewer.browser.stage import TOKEN, Publisher
from tests.viewer.browser.tabs import Tab, channel_address

RUN = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script><svg/onload=window.hacked=1>'
NASTY = (
    RUN,
    "\u202egnp.exe\u2066 right to left",
    "nul \0 bell \a escape \x1b[31m red \x7f \x85 \u2028 \ufeff",
    "javascript:window.hacked=1",
    "{{constructor.constructor('window.hacked=1')()}} ${window.hacked=1} %s %o",
    "\U0001f469\u200d\U0001f469\u200d\U0001f466 Z\u0351\u036b\u0343\u036a\u0302 \ud7ff",
    "x" * 100_000,
    "__proto__",
)
MARKUP_NAME = "<b onmouseover=alert(1)>lab&amp;</b>"


@event
class Note:
    """A type whose fields are called as what JavaScript objects have anyway."""

    number: int
    text: str
    constructor: str
    toString: str  # noqa: N815 - so that it is in the way
    hasOwnProperty: float  # noqa: N815 - likewise
    tags: Array[str, ...]
    data: bytes


class Stage:
    """A channel of hostile texts, and a viewer for it."""

    def __init__(self, texts: Sequence[str] = NASTY) -> None:
        self.texts = texts
        self.names = Hub(name="names")
        self.hub = Hub(names=self.names.address, name="<img src=x onerror=window.hacked=1>")
        self.eyes = Hub(names=self.names.address, name="viewer")
        self.name = self._named()
        self.channel = self.hub.create(self.name, Note)
        self.publisher = Publisher(self.channel, self._publish, 0.05)
        self.viewer = Viewer(self.eyes, listen="127.0.0.1:0", token=TOKEN)

    def close(self) -> None:
        for each in (self.viewer, self.publisher, self.eyes, self.hub, self.names):
            each.close()

    def _named(self) -> str:
        """Return a name with as much markup in it as names of channels may have."""
        for name in (MARKUP_NAME, "<b>lab&amp;</b>", "<b>lab", "'\"&lab", "lab&amp;"):
            try:
                self.hub.create(name, Note)
            except EchoicError:
                continue
            self.hub.remove(name)
            return name
        return "constructor"

    def _publish(self, source: Source, number: int) -> None:
        text = self.texts[number % len(self.texts)]
        source.submit(Note(number, text, text, RUN, float("nan"), [text[:1000], RUN], b"<b>\0\xff"))


@pytest.fixture(scope="module")
def hostile() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    stage.close()


def unharmed(tab: Tab) -> None:
    """Check that nothing has run, and that no element was made of a text."""
    assert tab.page.evaluate("window.hacked") is None
    assert tab.locate("main img, main script, main b[onmouseover], main svg[onload]").count() == 0
    assert not tab.scrolls_sideways()


def test_events_of_hostile_texts_are_shown_as_texts(open_tab: OpenTab, hostile: Stage) -> None:
    tab = open_tab(hostile.viewer.url, channel_address(hostile.name))
    tab.page.get_by_role("button", name="Events", exact=True).click()
    view = tab.locate("[data-view=events]")
    tab.grows("[data-view=events]", "data-draws")
    tab.eventually(lambda: "<img src=x onerror" in view.inner_text(), "the markup is there to be read")
    tab.eventually(lambda: tab.number("[data-view=events]", "data-records") > 2 * len(NASTY), "each text was shown")
    unharmed(tab)
    assert len(view.inner_text()) < 200_000  # a long text does not bury the page
    for direction in ("\u202e", "\u2066"):
        assert direction not in view.inner_text() or isolates(tab)


def isolates(tab: Tab) -> bool:
    """Tell whether what turns the direction of writing ends with its cell."""
    cells = "[...document.querySelectorAll('[data-view=events] td')]"
    return bool(tab.page.evaluate(f"{cells}.every(cell => getComputedStyle(cell).unicodeBidi !== 'normal')"))


def test_the_name_and_the_fields_of_a_channel_are_texts(open_tab: OpenTab, hostile: Stage) -> None:
    tab = open_tab(hostile.viewer.url)
    tab.eventually(lambda: hostile.name in tab.locate("main").inner_text(), "the name is in the table")
    unharmed(tab)
    tab.page.get_by_role("link", name=hostile.name, exact=True).click()
    tab.eventually(lambda: hostile.name in tab.locate("main h1").inner_text(), "and above its page")
    tab.eventually(lambda: "hasOwnProperty" in tab.locate("main").inner_text(), "its fields are named")
    unharmed(tab)


def test_a_program_that_ends_with_hostile_last_words_does_not_harm_the_page(open_tab: OpenTab) -> None:
    stage = Stage()
    ended = threading.Event()
    try:
        tab = open_tab(stage.viewer.url, channel_address(stage.name))
        tab.grows("[data-view][data-draws]", "data-draws")
        stage.publisher.close()
        stage.hub.close()
        tab.eventually(lambda: tab.locate("main .notice:visible").count(), "the page says that the channel has ended")
        unharmed(tab)
        ended.set()
    finally:
        stage.close()
    assert ended.is_set()
