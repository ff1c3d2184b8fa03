"""Hubs with certificates and rules, over TLS: who is let, who is not, what is told of it, what changes meanwhile."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import echoic
from echoic import Hub, Identity, Source
from echoic.channels import AUDIT_CHANNEL
from echoic.errors import (
    ChannelNotFoundError,
    ClosedError,
    DeliveryError,
    DeniedError,
    EchoicError,
    InsecureError,
    LocalError,
    UnreachableError,
)
from echoic.hub import AuditRecord
from echoic.testing.samples import Trade
from echoic.trust.authority import Authority
from tests.conftest import StartHub
from tests.hub.parties import eventually

RULES = """
allow exchange publish,admin            *
allow desk     subscribe,derive,steer   trades*
allow press    subscribe                trades.cheap
allow auditor  subscribe                echoic/audit
allow n*       publish,subscribe        ledger
"""


class Office:
    """Identities by name, hubs that have them, and the file of rights they all go by."""

    def __init__(self, folder: Path, start_hub: StartHub) -> None:
        self.authority = Authority.create()
        self.rights = folder / "rights"
        self.grant(RULES)
        self._start_hub = start_hub

    def grant(self, rules: str) -> None:
        aside = self.rights.with_suffix(".next")
        aside.write_text(rules, "utf-8")
        aside.chmod(0o600)
        aside.replace(self.rights)

    def hub(self, name: str, *, hosts: tuple[str, ...] = ("127.0.0.1",), **options: object) -> Hub:
        self.authority.issue(name, hosts, replace=True)
        return self._start_hub(identity=Identity.named(name), rights=self.rights, **options)


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start_hub: StartHub) -> Iterator[Office]:
    monkeypatch.setenv("ECHOIC_HOME", str(tmp_path / "home"))
    return Office(tmp_path, start_hub)


def test_events_flow_among_those_who_may_and_what_others_wanted_is_told(office: Office) -> None:
    exchange, desk, press, auditor = (office.hub(name) for name in ("exchange", "desk", "press", "auditor"))
    trades = exchange.create("trades", Trade)
    told: list[AuditRecord] = []
    auditor.open(f"echoic://{exchange.address}/{AUDIT_CHANNEL}", AuditRecord).subscribe(told.append)
    got: list[Trade] = []
    cheap = desk.open(trades.id, Trade).derive("{ return input.price < 80; }", name="trades.cheap")
    cheap.subscribe(got.append)
    seen: list[Trade] = []
    press.open(f"echoic://{exchange.address}/trades.cheap", Trade).subscribe(seen.append)
    with pytest.raises(ChannelNotFoundError, match="or none that you have a right to"):
        press.open(trades.id, Trade)
    with pytest.raises(DeniedError, match="`desk` may not publish `trades`"):
        desk.open(trades.id, Trade).source()
    source = trades.source()
    source.submit_batch([Trade("IBM", 70.0 + number, number) for number in range(20)])
    source.drain()
    assert len(got) == len(seen) == 10
    eventually(lambda: sum(not record.allowed for record in told) >= 2, "the refusals are told")
    refused = {(record.who, record.right, record.request) for record in told if not record.allowed}
    assert refused == {("press", "subscribe", "Describe"), ("desk", "publish", "Join")}
    assert ("desk", "derive", True) in {(record.who, record.right, record.allowed) for record in told}
    assert all(record.hub == exchange.address and not record.missed for record in told)


@pytest.mark.parametrize(("third", "formed"), [("n3", True), ("mallory", False)])
def test_a_group_has_members_who_may(office: Office, third: str, formed: bool) -> None:
    hubs = [office.hub(name) for name in ("n1", "n2", third)]
    peers = {f"n{number}": hub.address for number, hub in enumerate(hubs, 1)}
    members = [hub.join("ledger", Trade, me=me, peers=peers) for me, hub in zip(peers, hubs, strict=True)]
    if formed:
        members[0].wait_for(lambda view: len(view.members) == 3)
        assert members[2].submit_sync(Trade("IBM", 1.0, 1)).sequence == 1
    else:  # which needs all members at its first start
        with pytest.raises(DeliveryError):
            members[0].wait_for(lambda view: bool(view.members), timeout=3)


def test_a_hub_stands_where_its_certificate_lets_it(office: Office) -> None:
    exchange, liar = office.hub("exchange"), office.hub("desk", hosts=("localhost",))
    exchange.create("trades", Trade)
    with pytest.raises(UnreachableError):
        liar.open(f"echoic://{exchange.address}/trades", Trade)


def test_a_right_that_is_withdrawn_counts_within_seconds(office: Office) -> None:
    exchange, desk = office.hub("exchange"), office.hub("desk")
    trades = exchange.create("trades", Trade)
    got: list[Trade] = []
    desk.open(trades.id, Trade).subscribe(got.append)
    source = trades.source()
    source.submit_sync(Trade("IBM", 1.0, 1))
    office.grant("allow exchange publish,admin *")
    eventually(lambda: not source.heard, "the sink is cut off", 10)
    source.submit_sync(Trade("IBM", 2.0, 2))
    assert got == [Trade("IBM", 1.0, 1)]
    office.grant("nonsense")
    time.sleep(1.5)
    with pytest.raises(ChannelNotFoundError):
        desk.open(trades.id, Trade)


def test_a_manager_alone_cannot_keep_a_publisher_from_the_sinks_that_it_knows(
    office: Office, start_hub: StartHub
) -> None:
    exchange = office.hub("exchange")
    office.grant(RULES + "allow n1 publish trades\nallow press subscribe trades\n")
    for name in ("n1", "desk", "press"):
        office.authority.issue(name, ["127.0.0.1"])
    writer, desk, press = (start_hub(identity=Identity.named(name)) for name in ("n1", "desk", "press"))
    trades = exchange.create("trades", Trade)
    eventually(lambda: opens(press, trades.id), "the rules count")
    known: list[int] = []
    later: list[int] = []
    desk.open(trades.id, Trade).subscribe(lambda trade: known.append(trade.volume))
    source = writer.open(trades.id, Trade).source()
    source.submit_sync(Trade("IBM", 1.0, 1))
    office.grant(RULES + "allow press subscribe trades\n")
    eventually(lambda: exchange.describe(trades.id).sources == [], "the source is struck from the book")
    press.open(trades.id, Trade).subscribe(lambda trade: later.append(trade.volume))
    source.submit_sync(Trade("IBM", 1.0, 2))
    assert (known, later) == ([1, 2], [])
    with pytest.raises(ChannelNotFoundError):
        source.confirm()


def test_who_loses_the_right_to_publish_takes_no_other_publisher_from_those_who_listen(office: Office) -> None:
    both = RULES + "allow press publish trades\n"
    office.grant(both)
    exchange, desk, press = (office.hub(name) for name in ("exchange", "desk", "press"))
    trades, got = exchange.create("trades", Trade), list[int]()
    sink = desk.open(trades.id, Trade).subscribe(lambda trade: got.append(trade.volume))
    ours, theirs = trades.source(), press.open(trades.id, Trade).source()
    for volume, source in enumerate((ours, theirs)):
        source.submit_sync(Trade("IBM", 1.0, volume))
    office.grant(RULES)
    eventually(lambda: not theirs.heard, "one of them is not heard any more", 10)
    theirs.submit(Trade("IBM", 1.0, 2))
    ours.submit_sync(Trade("IBM", 1.0, 3))
    assert (got, sink.closed) == ([0, 1, 3], False)
    office.grant(both)
    eventually(lambda: confirmed(theirs), "it may publish again", 10)

    def heard() -> bool:
        theirs.submit_sync(Trade("IBM", 1.0, 4))
        return 4 in got

    eventually(heard, "it is heard again", 10)
    assert got == [0, 1, 3, 4]


def confirmed(source: Source) -> bool:
    try:
        source.confirm()
    except EchoicError:
        return False
    return True


def opens(hub: Hub, id: str) -> bool:
    try:
        return bool(hub.open(id, Trade))
    except EchoicError:
        return False


def test_who_is_revoked_is_cut_off_within_seconds_and_others_lose_nothing(office: Office) -> None:
    exchange, desk, thief = office.hub("exchange"), office.hub("desk"), office.hub("press")
    office.grant(RULES + "allow press subscribe trades\n")
    trades = exchange.create("trades", Trade)
    got: list[Trade] = []
    stolen: list[Trade] = []
    desk.open(trades.id, Trade).subscribe(got.append)
    eventually(lambda: _subscribes(thief, trades.id, stolen), "the rules have been read again", 10)
    source = trades.source()
    source.submit_sync(Trade("IBM", 0.0, 0))
    assert len(got) == len(stolen) == 1
    office.authority.revoke("press")
    for number in range(1, 400):
        source.submit(Trade("IBM", 1.0, number))
        time.sleep(0.01)
        if number > 200 and not _linked(exchange, "press"):
            break
    assert not _linked(exchange, "press")
    source.submit(Trade("IBM", 1.0, -1))
    eventually(lambda: got and got[-1].volume == -1, "the honest sink goes on", 30)
    assert [trade.volume for trade in got] == [*range(len(got) - 1), -1]
    assert stolen[-1].volume != -1


def _subscribes(hub: Hub, id: str, into: list[Trade]) -> bool:
    try:
        hub.open(id, Trade).subscribe(into.append)
    except (ChannelNotFoundError, DeniedError):
        return False
    return True


def _linked(hub: Hub, who: str) -> bool:
    return any(link.who == who and link.connected for link in hub.statistics().links)


def test_a_file_of_rights_that_is_missing_wrong_or_others_to_write_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rights"
    with pytest.raises(LocalError, match="there is no file of rights"):
        Hub(rights=path)
    path.write_text("allow everybody everything")
    path.chmod(0o600)
    with pytest.raises(LocalError, match=r"- at .*rights:1"):
        Hub(rights=path)
    path.chmod(0o666)
    with pytest.raises(InsecureError, match="others may write"):
        Hub(rights=path)


def test_a_hub_without_a_certificate_may_have_rules_for_whoever_is_on_this_machine(start_hub: StartHub) -> None:
    exchange = start_hub(rights=echoic.parse_rights("allow anonymous subscribe trades"))
    other = start_hub()
    trades = exchange.create("trades", Trade)
    got: list[Trade] = []
    trades.derive("{ return 1; }").subscribe(got.append)  # what the hub's own program does is not asked about
    other.open(trades.id, Trade).subscribe(got.append)
    with pytest.raises(DeniedError, match="`anonymous` may not publish `trades`"):
        other.open(trades.id, Trade).source()
    source = trades.source()
    source.submit(Trade("IBM", 1.0, 1))
    source.drain()
    assert len(got) == 2


def test_a_derived_channel_with_a_name_is_found_at_a_name_server_that_lets_managers_enter_names(office: Office) -> None:
    server = office.hub("names")
    exchange, desk, press = (office.hub(name, names=server.address) for name in ("exchange", "desk", "press"))
    exchange.create("trades", Trade)
    desk.open("trades", Trade).derive("{ return input.price < 80; }", name="trades.cheap")

    def found() -> bool:
        try:
            return press.open("trades.cheap", Trade).id == f"echoic://{exchange.address}/trades.cheap"
        except ChannelNotFoundError:
            return False

    eventually(found, "the manager has entered it")


def test_rights_are_set_by_several_threads_and_not_in_a_closed_hub(start_hub: StartHub) -> None:
    hub, rules = start_hub(), echoic.parse_rights("allow * * *")
    failed: list[BaseException] = []

    def set_rights() -> None:
        try:
            hub.set_rights(rules)
        except EchoicError as error:
            failed.append(error)

    threads = [threading.Thread(target=set_rights) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    hub.close()
    with pytest.raises(ClosedError):
        hub.set_rights(rules)


def test_a_named_sink_of_somebody_goes_on_where_it_was_whatever_another_of_its_name_does(
    office: Office, tmp_path: Path
) -> None:
    office.grant(RULES + "allow press subscribe trades\n")
    exchange, desk, press = (office.hub(name) for name in ("exchange", "desk", "press"))
    trades = exchange.create("trades", Trade)
    exchange.record(trades, tmp_path / "journal")
    source = trades.source()
    for hub, first, end in ((desk, 0, 5), (press, 0, 10), (desk, 5, 15), (press, 10, 20)):
        source.submit_batch([Trade("IBM", 1.0, end - 5 + number) for number in range(5)])
        got: list[int] = []
        with hub.open(trades.id, Trade).resume(lambda trade, _, got=got: got.append(trade.volume), name="billing"):
            eventually(lambda got=got, count=end - first: len(got) >= count, "what has come since is there")
        assert got == list(range(first, end))
