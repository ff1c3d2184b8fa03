"""Shares: a quarter of the page for each name, and all of it for whoever has started the viewer."""

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from echoic import Hub
from echoic.testing.samples import Trade
from echoic.trust import ALL_RIGHTS
from echoic.viewer import Viewer, editing, server
from echoic.viewer.crew import Crew
from echoic.viewer.shares import Shares
from tests.system.processes import wait_until
from tests.viewer.test_feed import Tab, sinks_of
from tests.viewer.test_grants import HOUR, SECONDS, Lab

TABS = server.BROWSERS_MAX // 4


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("ECHOIC_HOME", str(tmp_path_factory.mktemp("home")))
        yield Lab(stack)


def token_of(lab: Lab, who: str) -> str:
    return lab.authority.issue_token(who, ALL_RIGHTS, ("*",), HOUR)


def test_a_name_has_a_quarter_and_the_others_have_the_rest() -> None:
    shares = Shares(8, "tabs are open")
    assert [shares.take("mallory") for _ in range(2)] == ["", ""]
    assert shares.take("mallory") == "2 tabs are open for `mallory`, which is the limit of one name"
    assert [shares.take("alice") for _ in range(2)] == ["", ""]
    shares.give_back("mallory")
    assert shares.take("mallory") == ""


def test_whoever_has_started_the_viewer_has_all_that_is_left() -> None:
    shares = Shares(8, "tabs are open")
    assert shares.take("alice") == ""
    assert [shares.take("") for _ in range(7)] == [""] * 7
    assert shares.take("") == "8 tabs are open, which is the limit"


def test_what_must_be_done_is_done_and_counts() -> None:
    shares = Shares(8, "tabs are open")
    for _ in range(3):
        shares.charge("mallory")
    shares.discharge("mallory")
    assert "`mallory`" in shares.take("mallory")
    shares.discharge("mallory")
    assert shares.take("mallory") == ""


def test_what_must_be_done_for_one_name_takes_nothing_from_others() -> None:
    shares = Shares(8, "tabs are open")
    for _ in range(64):
        shares.charge("mallory")
    assert shares.take("alice") == ""


def test_work_of_one_name_that_waits_leaves_threads_to_others() -> None:
    crew, over = Crew(8), threading.Event()
    try:
        begun = [crew.begin("mallory", over.wait) for _ in range(3)]
        assert [each is None for each in begun] == [False, False, True]
        crew.insist("mallory", lambda: None)
        honest = crew.begin("alice", lambda: "done")
        assert honest is not None
        assert honest.result(SECONDS) == "done"
        over.set()
        wait_until(lambda: crew.begin("mallory", lambda: None) is not None, "it may begin more")
    finally:
        over.set()
        crew.close()


@pytest.mark.system
def test_one_name_cannot_take_all_tabs_however_many_tokens_it_has(lab: Lab) -> None:
    with ExitStack() as stack:
        for _ in range(TABS):
            stack.enter_context(lab.tab(token_of(lab, "mallory"))).ask("Look", page="")
        with lab.tab(token_of(lab, "mallory")) as crowded, pytest.raises(ConnectionClosed) as closed:
            crowded.until(lambda: False)
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, "one name" in closed.value.rcvd.reason) == (1013, True)
        with lab.tab(token_of(lab, "alice")) as honest:
            assert honest.ask("Look", page="")["type"] == "Done"
    wait_until(lambda: lab.viewer.statistics().browsers == 0, "all have gone")
    with lab.tab(token_of(lab, "mallory")) as again:
        assert again.ask("Look", page="")["type"] == "Done"


@pytest.mark.system
def test_a_tab_that_cannot_be_told_of_keeps_no_place() -> None:
    def fail(_: int) -> None:
        raise ValueError("whoever is told has a mistake")

    with Hub() as hub, Viewer(hub, "127.0.0.1:0", on_browser=fail) as viewer:
        headers = {"Authorization": f"Bearer {viewer.token}"}
        for _ in range(server.BROWSERS_MAX):
            with pytest.raises(InvalidStatus):
                connect(f"ws://{viewer.address}/feed", additional_headers=headers)
        assert (viewer.statistics().browsers, viewer._tabs.take("")) == (0, "")  # noqa: SLF001 - no tab can be opened


@pytest.mark.system
def test_a_watch_that_was_closed_is_gone_also_if_the_viewer_ends_before_there_was_a_thread() -> None:
    over = threading.Event()
    try:
        with Hub() as hub, Viewer(hub, "127.0.0.1:0") as viewer:
            hub.create("trades", Trade)
            headers = {"Authorization": f"Bearer {viewer.token}"}
            with connect(f"ws://{viewer.address}/feed", additional_headers=headers, close_timeout=1) as opened:
                tab = Tab(opened)
                tab.ask("Open", watch=1, channel="trades", view={"type": "Events"})
                assert sinks_of(hub) == 1
                while viewer._crew.begin("", over.wait) is not None:  # noqa: SLF001 - all its threads wait
                    pass
                opened.send(json.dumps({"type": "Close", "number": 99, "watch": 1}))
                wait_until(lambda: viewer.statistics().watches == 0, "the tab has closed it")
                viewer.close()
            over.set()
            wait_until(lambda: sinks_of(hub) == 0, "nobody listens")
    finally:
        over.set()


@pytest.mark.system
def test_one_name_cannot_have_all_that_is_derived_in_the_page(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab.viewer._desk, "_shares", Shares(8, "channels were derived here"))  # noqa: SLF001 - fewer
    wanted = {"channel": "trades", "code": "{ return 1; }", "output": "", "params": {}}
    with lab.tab(token_of(lab, "mallory")) as tab, lab.tab(token_of(lab, "alice")) as other:
        for number in range(2):
            assert tab.ask("Derive", name=f"trades.m{number}", **wanted)["type"] == "Description"
        assert "limit of one name: drop some" in tab.ask("Derive", name="trades.m2", **wanted)["message"]
        assert other.ask("Derive", name="trades.a", **wanted)["type"] == "Description"
        assert tab.ask("Drop", channel="trades.m0")["type"] == "Done"
        assert tab.ask("Derive", name="trades.m2", **wanted)["type"] == "Description"
    assert Shares(editing.KEPT_MAX, "").each == 64
