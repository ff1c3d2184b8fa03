"""Trial 23: hostile texts wherever the page shows one, and visitors who may not look, in a real browser.

What a text must not do is the same everywhere (`unharmed`): nothing runs, no element is made of it, no dialog appears,
nobody else is asked for anything; the last two are what every tab complains of in the end.
"""

import random
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from echoic import Hub, event
from echoic.errors import EchoicError
from echoic.formats import format_of_text
from echoic.hub import GroupStatusSource
from echoic.links import Identity
from echoic.testing.samples import Trade
from echoic.trust.authority import Authority
from echoic.viewer import Viewer
from tests.reliability.trying import sized
from tests.viewer.browser.conftest import CHROMIUM, OpenTab, browser, open_tab, running  # noqa: F401 - fixtures
from tests.viewer.browser.stage import watched
from tests.viewer.browser.tabs import PATIENCE_MS, channel_address
from tests.viewer.browser.test_hostile import Stage, unharmed
from tests.viewer.browser.test_other_pages import bus

pytestmark = [pytest.mark.system, pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")]
DO = "window.hacked=1"
TEXTS = (
    f'<img src=x onerror="{DO}"><script>{DO}</script>',
    f"<svg/onload={DO}><math><mtext></form><form><mglyph><style></math><img src onerror={DO}>",
    f"javascript:{DO}",
    f"data:text/html,<script>{DO}</script>",
    f'"><a href="javascript:{DO}" autofocus onfocus={DO}>x</a>',
    f"' onmouseover='{DO}' style='animation:x' onanimationstart='{DO}",
    f"</title></textarea></style></script><script>{DO}</script>",
    f"<iframe srcdoc='<script>parent.hacked=1</script>'></iframe><object data=javascript:{DO}>",
    f"{{{{constructor.constructor('{DO}')()}}}} ${{{DO}}} #{{{DO}}} <%= {DO} %>",
    "<style>*{display:none!important;background:url(http://stranger.example/x)}</style>",
    "}*{display:none}@import url(//stranger.example/y);a{",
    "<link rel=stylesheet href=//stranger.example/z><meta http-equiv=refresh content='0;url=//stranger.example'>",
    "\u202egnp.exe\u2066 \u200f\ufeff\u2028 Z\u0351\u036b\u0343\u036a\u0302",
    "nul \0 bell \a escape \x1b[31m \x7f \x85",
    "<b>" * 20_000,
)
MEMBER = f"<img src=x onerror={DO}>"
PRINTABLE = tuple(text for text in TEXTS if text.isprintable() and len(text) < 1000)


@event
class Note:
    """What the members of a group with a hostile name agree on."""

    text: str


def variants(count: int, seed: int) -> list[str]:
    """Return so many hostile texts: those above, then pieces of them put together."""
    chance, found = random.Random(seed), list(TEXTS)
    while len(found) < count:
        pieces = [text[: chance.randrange(1, 200)] for text in chance.sample(TEXTS, 3)]
        found.append(chance.choice(("", " ", "\n", '"', "'", ">")).join(pieces))
    return found[:count]


@pytest.fixture(scope="module")
def texts(request: pytest.FixtureRequest) -> list[str]:
    return variants(sized(request, "viewer"), request.config.getoption("--seed") or 1)


@pytest.fixture(scope="module")
def stage(texts: list[str]) -> Iterator[Stage]:
    made = Stage(texts)
    yield made
    made.close()


def test_hostile_texts_in_events_are_shown_as_texts(open_tab: OpenTab, stage: Stage, texts: list[str]) -> None:  # noqa: F811
    tab = open_tab(stage.viewer.url, channel_address(stage.name))
    tab.page.get_by_role("button", name="Events", exact=True).click()
    tab.eventually(lambda: tab.number("[data-view=events]", "data-records") > len(texts), "each text was shown")
    view = tab.locate("[data-view=events]")
    tab.eventually(lambda: "<svg/onload" in view.inner_text(), "the markup is there to be read")
    unharmed(tab)


def test_no_hostile_text_can_be_the_name_of_a_channel_a_type_or_a_field(stage: Stage, texts: list[str]) -> None:
    for text in texts:
        for attempt in (
            lambda text=text: stage.hub.create(text, Note),
            lambda text=text: format_of_text(f"{text}{{x: int}}"),
            lambda text=text: format_of_text(f"Note{{{text}: int}}"),
        ):
            with pytest.raises(EchoicError):
                attempt()


def test_hostile_texts_that_others_quote_are_texts(open_tab: OpenTab, stage: Stage, texts: list[str]) -> None:  # noqa: F811
    tab = open_tab(stage.viewer.url, channel_address(stage.name))
    editor = tab.locate("textarea[name=code]")
    for text in texts:
        editor.fill(f"{{ return {text[:2000]}; }}")
        tab.locate("[data-action=check]").click()
        tab.locate("[data-mistake]").first.wait_for()
        unharmed(tab)
    for text in texts[: len(TEXTS)]:
        tab.go(channel_address(text[:200]))
        tab.locate("main .empty, main h1").first.wait_for()
        unharmed(tab)


def test_hostile_texts_of_a_bus_and_of_a_group_are_texts(open_tab: OpenTab) -> None:  # noqa: F811
    quoted = [text.replace("\\", "\\\\").replace('"', '\\"') for text in PRINTABLE]
    guests = ", ".join(f'GUEST("{text}")' for text in quoted)
    script = f"process GUEST(Name : str) is snd-note(told(Name)) . rec-msg(dessert(Name))\ntoolbus({guests})\n"
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="echoic-")))
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        names = stack.enter_context(Hub(name="names"))
        bus(stack, folder, script)
        hub = stack.enter_context(Hub(names=names.address, name=PRINTABLE[0][:60]))
        group = stack.enter_context(hub.join("ledger", Note, me=MEMBER, peers={MEMBER: hub.address}))
        stack.enter_context(GroupStatusSource(hub, group))
        viewer = stack.enter_context(watched(names.address))
        tab = open_tab(viewer.url, "#/bus")
        tab.eventually(lambda: "<svg/onload" in tab.locate("main").inner_text(), "what a guest is called")
        unharmed(tab)
        tab.go("#/groups")
        tab.eventually(lambda: MEMBER in tab.locate("main").inner_text(), "the name of a member")
        unharmed(tab)


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Viewer, Authority]]:
    """A viewer by TLS that only signed tokens open, and two channels."""
    monkeypatch.setenv("ECHOIC_HOME", str(tmp_path / "home"))
    authority = Authority.create()
    authority.issue("lab", ["127.0.0.1"])
    with (
        Hub(name="names") as names,
        Hub(names=names.address, name="lab") as hub,
        Hub(names=names.address, name="eyes") as eyes,
        Viewer(eyes, "127.0.0.1:0", identity=Identity.named("lab")) as viewer,
    ):
        hub.create("secrets", Trade)
        trades = hub.create("trades", Trade)
        trades.derive("{ return input.price < param.low; }", params={"low": 7.0}, name="trades.cheap")
        yield viewer, authority


def test_a_browser_without_a_token_that_holds_is_told_nothing(
    browser: Browser,  # noqa: F811
    guarded: tuple[Viewer, Authority],
    tmp_path: Path,
) -> None:
    viewer, authority = guarded
    good = authority.issue_token("eve", ["subscribe"], ["*"], 60)
    authority.revoke(authority.issued()[-1].id)
    forged = Authority.create(tmp_path / "elsewhere").issue_token("eve", ["subscribe"], ["*"], 60)
    context = browser.new_context(ignore_https_errors=True)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    for token in ("", "x" * 40, good, forged):
        answer = page.goto(f"{viewer.url}?token={token}" if token else viewer.url)
        assert answer is not None
        assert answer.status == 403
        assert "trades" not in page.content()
        assert context.cookies() == []
    context.close()


def test_the_page_has_no_editor_and_no_sliders_for_who_may_only_look(
    open_tab: OpenTab,  # noqa: F811
    guarded: tuple[Viewer, Authority],
) -> None:
    viewer, authority = guarded
    token = authority.issue_token("alice", ["subscribe"], ["trades*"], 3600)
    tab = open_tab(f"{viewer.url}?token={token}", ignore_https_errors=True)
    tab.eventually(lambda: "trades.cheap" in tab.locate("main").inner_text(), "what is granted is listed")
    assert "secrets" not in tab.text()
    tab.go(channel_address("trades.cheap"))
    tab.eventually(lambda: "trades.cheap" in tab.locate("main h1").inner_text(), "it is shown")
    assert tab.locate("textarea[name=code], input[type=range]").count() == 0
    tab.page.wait_for_load_state("networkidle")  # what draws is there before the door is shut
    tab.locate("[data-view]").first.wait_for(state="attached")
    tab.allowed += ["WebSocket", "403"]
    authority.revoke(authority.issued()[-1].id)
    tab.locate("#state:not([data-state=live])").wait_for()
