"""Groups, buses and pipelines: a real group of three members, a real bus with a tool, and what a pipeline tells.

No Spark runs here: the progress of the pipeline is published as `echoic.spark` publishes it, an event of the same type
on a channel of the same name, with figures as they were in a run. That a pipeline does so is tested with Spark.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from echoic import Hub, Source, event
from echoic.hub import GroupStatusSource
from echoic.spark.pipeline.progress import Progress
from echoic.viewer import Viewer
from tests.cli.terminals import free_port
from tests.viewer.browser.conftest import OpenTab
from tests.viewer.browser.stage import Publisher, watched
from tests.viewer.browser.tabs import DESKTOP, PHONE, Tab

SCRIPT = """\
tool hello is { command = "python hello.py" }

%% Asks the tool again and again, and tells whoever listens.
process COOK is
  let H : hello, Text : str in
    execute(hello, H?) .
    ( snd-eval(H, get-text("<b>soup</b>")) .
      rec-value(H, text(Text?)) .
      snd-msg(dish(Text)) delay(msec(100))
    ) * delta
  endlet

process WAITER is
  let Text : str in ( rec-msg(dish(Text?)) . snd-msg(served(Text)) ) * delta endlet

process GUEST(Name : str) is
  let Text : str in ( rec-msg(served(Text?)) ) * delta endlet

process CRITIC is rec-msg(dessert)

toolbus(COOK, WAITER, GUEST("anna"), GUEST("<img src=x onerror=alert(1)>"), CRITIC)
"""
HELLO = Path(__file__).parents[3] / "examples" / "toolbus" / "hello.py"
MEMBERS = ("n1", "n2", "n3")


@event
class Transfer:
    """What the members of the group agree on."""

    account: str
    amount: int


def group(stack: ExitStack, names: str) -> None:
    """Join three members, each in a hub of its own, who submit at a rate that rises and falls."""
    addresses = {name: f"127.0.0.1:{free_port()}" for name in MEMBERS}
    hubs = [stack.enter_context(Hub(address, names=names, name=name)) for name, address in addresses.items()]
    joined = [hub.join("ledger", Transfer, me=name, peers=addresses) for name, hub in zip(MEMBERS, hubs, strict=True)]
    for hub, member in zip(hubs, joined, strict=True):
        stack.enter_context(member)
        stack.enter_context(GroupStatusSource(hub, member))
        member.subscribe(lambda _, __: None)

    def submit(_: Source, number: int) -> None:
        for _ in range(5 + 60 * (number // 40 % 2)):
            joined[0].submit(Transfer("A", number))

    pace = hubs[0].create("pace", Transfer)
    stack.callback(Publisher(pace, submit, 0.05).close)


def pipeline(stack: ExitStack, names: str) -> None:
    """Tell of a pipeline with two outputs, as `echoic.spark` does."""
    hub = stack.enter_context(Hub(names=names, name="pipeline"))
    channel = hub.create("pipeline.lab", Progress)

    def tell(source: Source, number: int) -> None:
        at = time.time()
        for output, rows in (("odd_lots", 400), ("ticks", 12)):
            lag = 120 * (number % 7)
            source.submit(Progress("lab", output, number, 1000, 2400.0 - lag, rows, lag, 410, at - 5, 3, 42, at))

    stack.callback(Publisher(channel, tell, 0.25).close)


def bus(stack: ExitStack, folder: Path, script: str = SCRIPT) -> None:
    """Run a script with a tool; the folder is where its console answers."""
    (folder / "kitchen.tb").write_text(script, encoding="utf-8")
    shutil.copy(HELLO, folder)
    process = subprocess.Popen(
        [sys.executable, "-c", "from echoic.cli import main; main()", "bus", "run", "kitchen.tb"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    stack.callback(process.wait, 30)
    stack.callback(process.terminate)


@pytest.fixture(scope="module")
def shown() -> Iterator[Viewer]:
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="echoic-")))
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        names = stack.enter_context(Hub(name="names")).address
        bus(stack, folder)
        group(stack, names)
        pipeline(stack, names)
        yield stack.enter_context(watched(names))


def settled(tab: Tab, address: str) -> None:
    tab.go(address)
    wanted = {
        "#/groups": ("ledger", *MEMBERS),
        "#/bus": ("kitchen", "COOK", "WAITER", "CRITIC", "hello"),
        "#/pipelines": ("lab", "odd_lots", "ticks"),
    }
    for text in wanted[address]:
        tab.eventually(lambda text=text: text in tab.locate("main").inner_text(), f"{text} is on {address}")


def test_a_group_shows_its_view_and_how_it_packs(open_tab: OpenTab, shown: Viewer) -> None:
    tab = open_tab(shown.url, "#/groups")
    settled(tab, "#/groups")
    tab.eventually(lambda: tab.locate("main canvas").count() > 0, "packing is drawn over time")
    words = tab.locate("main").inner_text().lower()
    assert "leader" in words
    assert "packing" in words
    text = tab.locate("main").inner_text()
    tab.eventually(lambda: tab.locate("main").inner_text() != text, "the figures move")


def test_a_bus_shows_who_waits_for_whom_and_what_was_said(open_tab: OpenTab, shown: Viewer) -> None:
    tab = open_tab(shown.url, "#/bus")
    settled(tab, "#/bus")
    tab.eventually(lambda: "dessert" in tab.locate("main").inner_text(), "what the critic waits for")
    tab.eventually(lambda: tab.locate("main svg, main canvas").count() > 0, "messages are drawn as a diagram")
    tab.eventually(lambda: "<img src=x onerror" in tab.locate("main").inner_text(), "the name of a guest is a text")
    assert tab.locate("main img").count() == 0
    text = tab.locate("main").inner_text()
    tab.eventually(lambda: tab.locate("main").inner_text() != text, "steps go on")


def test_a_pipeline_shows_how_each_output_gets_on(open_tab: OpenTab, shown: Viewer) -> None:
    tab = open_tab(shown.url, "#/pipelines")
    settled(tab, "#/pipelines")
    text = tab.locate("main").inner_text()
    tab.eventually(lambda: tab.locate("main").inner_text() != text, "batches go on")


def test_the_other_pages_fit_every_screen_and_pictures_of_them_are_taken(
    open_tab: OpenTab, shown: Viewer, screenshots: Path
) -> None:
    tab = open_tab(shown.url, viewport=DESKTOP)
    for address in ("#/groups", "#/bus", "#/pipelines"):
        settled(tab, address)
        tab.page.set_viewport_size(PHONE)
        tab.page.wait_for_timeout(100)
        assert not tab.scrolls_sideways()
        tab.pictures(screenshots, address.strip("#/"))
