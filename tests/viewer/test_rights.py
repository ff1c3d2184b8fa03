"""The file of rights at the page: a token opens it, and the file has the last word on the name in the token."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from echoic import Hub
from echoic.channels import AUDIT_CHANNEL
from echoic.testing.samples import Trade
from echoic.trust import ALL_RIGHTS
from tests.system.processes import wait_until
from tests.viewer.test_feed import Tab, chart
from tests.viewer.test_grants import CODE, HOUR, SECONDS, Lab, listed

pytestmark = pytest.mark.system
RULES = """
allow anonymous  *                        *
allow alice      subscribe,derive,steer   trades
allow bob        subscribe                trades
allow *          subscribe                weather*
deny  mallory    *                        *
"""


class RuledLab(Lab):
    """A lab with a file of rights, which its viewer goes by."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.rights = folder / "rights"
        self.rights.touch(0o600)
        self.rights.write_text(RULES)
        super().__init__(stack, self.rights)

    def token_of(self, who: str) -> str:
        return self.authority.issue_token(who, ALL_RIGHTS, ("*",), HOUR)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RuledLab]:
    monkeypatch.setenv("ECHOIC_HOME", str(tmp_path / "home"))
    with ExitStack() as stack:
        yield RuledLab(stack, tmp_path)


def names_in(tab: Tab) -> set[str]:
    tab.ask("Look", page="channels")
    pushed: dict[str, Any] = tab.push("Overview")
    return {each["name"] for each in pushed["load"]["channels"]}


def test_a_name_that_the_file_denies_has_nothing_whatever_its_token_says(lab: RuledLab) -> None:
    with lab.tab(lab.token_of("mallory")) as tab:
        assert names_in(tab) == set()
        for refused in (
            tab.ask("Describe", channel="trades"),
            tab.ask("Open", watch=1, channel="trades", view=chart("price")),
            tab.ask("Steer", channel="trades.cheap", values={"low": 3.0}),
        ):
            assert "not found" in refused["message"]


def test_a_name_has_what_both_the_token_and_the_file_allow(lab: RuledLab) -> None:
    with lab.tab(lab.token_of("bob")) as tab:
        assert {each["name"] for each in listed(tab)["channels"]} == {"trades", "trades.cheap"}
        assert tab.ask("Describe", channel="trades.cheap")["may"] == []
        assert tab.ask("Open", watch=1, channel="trades", view=chart("price"))["type"] == "Opened"
        wanted = {"channel": "trades", "code": CODE, "output": "", "params": {"low": 1.0}}
        assert "may not derive" in tab.ask("Check", **wanted)["message"]
        assert "may not steer" in tab.ask("Steer", channel="trades.cheap", values={"low": 3.0})["message"]


def test_what_is_derived_through_a_channel_without_a_name_is_listed(lab: RuledLab) -> None:
    with Hub(names=lab.eyes.names[0]) as hub, lab.tab(lab.token_of("bob")) as tab:
        unnamed = hub.open("trades", Trade).derive("{ return input.price < 73.0; }")
        unnamed.derive("{ return input.price < 72.0; }", name="trades.twice")
        tab.ask("Look", page="channels")
        tab.push("Overview", lambda each: "trades.twice" in {one["name"] for one in each["load"]["channels"]})
        assert tab.ask("Describe", channel="trades.twice")["type"] == "Description"


def test_what_is_derived_has_the_rights_of_its_parent_and_is_called_after_it(lab: RuledLab) -> None:
    with lab.tab(lab.token_of("alice")) as tab:
        assert tab.ask("Describe", channel="trades.cheap")["may"] == ["derive", "steer"]
        wanted = {"channel": "trades", "code": "{ return 1; }", "output": "", "params": {}}
        assert "may not admin" in tab.ask("Derive", name="weather.copy", **wanted)["message"]
        assert tab.ask("Derive", name="trades.mine", **wanted)["type"] == "Description"
        assert tab.ask("Drop", channel="trades.mine")["type"] == "Done"


def test_a_change_of_the_file_counts_for_tabs_that_are_open(lab: RuledLab) -> None:
    with lab.tab(lab.token_of("bob")) as tab:
        assert tab.ask("Open", watch=1, channel="trades", view=chart("price"))["type"] == "Opened"
        lab.rights.write_text(RULES + "deny bob * trades\n")
        assert "withdrawn" in tab.push("Ended", lambda each: each["watch"] == 1)["reason"]
        assert "not found" in tab.ask("Describe", channel="trades")["message"]


def test_what_the_file_decides_at_the_page_is_audited(lab: RuledLab) -> None:
    told: list[Any] = []
    lab.eyes.open(AUDIT_CHANNEL).subscribe(told.append)
    with lab.tab(lab.token_of("mallory")) as tab:
        tab.ask("Describe", channel="trades")
    wait_until(lambda: any(each.who == "mallory" for each in told), "the refusal is told", SECONDS)
    (record,) = [each for each in told if each.who == "mallory"]
    assert (record.right, record.channel, record.allowed, record.request) == ("subscribe", "trades", False, "Describe")
    assert record.peer.startswith("127.0.0.1:")
    assert "deny mallory" in record.reason


def test_rights_that_a_program_sets_count_as_well_and_without_any_the_token_alone_does(lab: RuledLab) -> None:
    with lab.tab(lab.token_of("mallory")) as tab:
        lab.eyes.set_rights(None)
        deadline = time.monotonic() + SECONDS
        while "trades" not in names_in(tab):
            assert time.monotonic() < deadline
