"""Channels by name or id, at a name server or in one hub."""

import threading

import pytest

from echoic import Hub, event
from echoic.channels import DerivationCounts, Reported
from echoic.errors import ChannelNotFoundError, UnreachableError
from echoic.monitor import ask_all, browse, derivation_sample, find, group_channels, group_of, manager_of, survey
from echoic.monitor.survey import ASKERS_MAX
from tests.cli.terminals import free_port
from tests.hub.parties import eventually


@event
class Trade:
    price: float


def test_a_channel_is_found_by_name_and_by_id_and_a_near_one_is_named() -> None:
    with Hub("127.0.0.1:0") as names, Hub("127.0.0.1:0", names=names.address) as hub:
        trades = hub.create("trades", Trade)
        assert find(hub, "trades").id == find(hub, trades.id).id == trades.id
        with pytest.raises(ChannelNotFoundError, match=f"'trdes' not found at {names.address}; did you mean 'trades'"):
            find(hub, "trdes")
        with pytest.raises(ChannelNotFoundError, match="did you mean 'trades'"):
            find(hub, f"echoic://{hub.address}/trdes")


def test_a_hub_without_a_name_server_knows_its_own() -> None:
    with Hub("127.0.0.1:0") as hub:
        trades = hub.create("trades", Trade)
        assert [entry.name for entry in browse(hub)] == ["trades"]
        assert find(hub, "trades").id == trades.id
        with pytest.raises(ChannelNotFoundError, match=f"not found at {hub.address}"):
            find(hub, "nothing")


def test_nobody_who_serves_names_is_told_with_what_to_do() -> None:
    told = pytest.raises(UnreachableError, match="start `echoic up`, or pass --names")
    with Hub("127.0.0.1:0", names=f"127.0.0.1:{free_port()}") as hub, told:
        browse(hub)


def test_who_fails_or_is_late_is_left_out() -> None:
    def ask(question: int) -> int:
        if question == 2:
            raise UnreachableError("gone")
        return question * 10

    assert ask_all([1, 2, 3], ask) == {1: 10, 3: 30}
    assert ask_all([], ask) == {}


def test_what_nobody_has_begun_to_ask_in_time_is_not_asked_any_more() -> None:
    asked: list[int] = []
    answering = threading.Event()

    def ask(question: int) -> None:
        asked.append(question)
        answering.wait()

    assert ask_all(range(1000), ask, 0.0) == {}
    answering.set()
    eventually(lambda: not any(thread.name == "echoic-survey" for thread in threading.enumerate()))
    assert len(asked) <= ASKERS_MAX


def test_what_is_no_id_has_no_manager_and_no_derivation() -> None:
    assert manager_of("echoic://127.0.0.1:1/trades") == "127.0.0.1:1"
    assert manager_of("trades") == manager_of("echoic://nowhere/trades") == manager_of("") == ""

    def counts(id: str) -> DerivationCounts:
        return DerivationCounts("cheap", id, "trades", "source", 1, 0, 0, 0, 0, 0, 0, 1, 0, "")

    told = {"a": Reported("a", [], [counts("rubbish"), counts(""), counts("echoic://127.0.0.1:1/cheap")])}
    assert list(derivation_sample(told)) == [("a", "127.0.0.1:1", "cheap")]


def test_a_survey_has_what_managers_say_and_what_has_no_name() -> None:
    with Hub("127.0.0.1:0") as names, Hub("127.0.0.1:0", names=names.address) as hub:
        trades = hub.create("trades", Trade)
        trades.derive("input.price < 1")
        ((entry, detail),) = survey(hub)
        assert detail is not None
        assert (entry.name, detail.type) == ("trades", "Trade")
        assert len(survey(hub, unnamed=True)) == 2


def test_a_group_that_is_not_there_is_told_with_those_that_are() -> None:
    with Hub("127.0.0.1:0") as names, Hub("127.0.0.1:0", names=names.address) as hub:
        for name in ("ledger.group", "ledger.group.n2", "orders.group"):
            hub.create(name, Trade)
        assert [each.name for each in group_channels(hub, "ledger")] == ["ledger.group", "ledger.group.n2"]
        assert len(group_channels(hub, "orders", [hub.address])) == 1
        with pytest.raises(ChannelNotFoundError, match=r"no member of group 'leger' at .*; did you mean 'ledger'"):
            group_channels(hub, "leger")
        with pytest.raises(ChannelNotFoundError, match="; there is ledger, orders"):
            group_channels(hub, "xyz")
    assert [group_of(each) for each in ("a.group", "a.group.n1", "a.groups", "group")] == ["a", "a", "", ""]
