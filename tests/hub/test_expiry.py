"""Certificates that expire or are renewed while links and members stand by them: nobody stays, and nothing is lost."""

import dataclasses
import time
from pathlib import Path

import pytest

from echoic import Hub, Identity
from echoic.testing.samples import Trade
from echoic.testing.trials.tls_expiry import issue_brief
from echoic.trust import write_private
from echoic.trust.authority import Authority
from tests.conftest import StartHub
from tests.hub.parties import eventually

HOSTS = ("127.0.0.1",)
SECONDS = 30.0


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    monkeypatch.setenv("ECHOIC_HOME", str(tmp_path / "home"))
    made = Authority.create()
    made.issue("exchange", HOSTS)
    return made


class Wire:
    """A hub with a source, another with a sink, and how they stand."""

    def __init__(self, exchange: Hub, desk: Hub) -> None:
        self.exchange = exchange
        trades = exchange.create("trades", Trade)
        self.got: list[int] = []
        self.sent = 0
        self.opened = desk.open(trades.id, Trade)
        self.opened.subscribe(lambda trade: self.got.append(trade.volume))
        self.source = trades.source()

    def send(self) -> None:
        self.source.submit(Trade("IBM", 1.0, self.sent))
        self.sent += 1
        time.sleep(0.01)

    @property
    def linked(self) -> bool:
        return any(link.connected for link in self.exchange.statistics().links)

    @property
    def holds_until(self) -> float:
        """Until when the certificate holds that the other side has shown; 0 if there is no connection."""
        links = self.exchange._switchboard.links()  # noqa: SLF001 - which nobody else is told
        shown = [link.connection.credentials for link in links if link.connection is not None]
        return max((each.expires for each in shown if each is not None), default=0.0)

    def check(self) -> None:
        """See that everything has come, once and in order."""
        eventually(lambda: len(self.got) >= self.sent, "all that was sent has come", SECONDS)
        assert self.got == list(range(self.sent))


def test_who_lets_its_certificate_expire_is_hung_up_and_with_another_goes_on_where_it_was(
    authority: Authority, start_hub: StartHub
) -> None:
    desk = issue_brief(authority, "desk", 5)
    wire = Wire(start_hub(identity=Identity.named("exchange")), start_hub(identity=desk))
    wire.send()
    wire.check()
    expires = wire.holds_until
    while wire.linked and time.time() < expires + 10:
        wire.send()
    assert expires <= time.time() < expires + 5, "it is hung up soon, and not before"
    before = len(wire.got)
    for _ in range(50):
        wire.send()
    assert len(wire.got) == before, "what is sent after that does not reach it"
    authority.issue("desk", HOSTS, replace=True)
    wire.check()


def test_a_hub_whose_certificate_is_renewed_shows_it_before_the_first_expires_and_loses_nothing(
    authority: Authority, start_hub: StartHub
) -> None:
    desk = dataclasses.replace(issue_brief(authority, "desk", 600), revoked=None)  # so that only its own file changes
    exchange = dataclasses.replace(Identity.named("exchange"), revoked=None)
    wire = Wire(start_hub(identity=exchange), start_hub(identity=desk))
    wire.send()
    wire.check()
    authority.issue("desk", HOSTS, replace=True)
    deadline = time.monotonic() + SECONDS
    while wire.holds_until < time.time() + 86400 and time.monotonic() < deadline:
        wire.send()
    assert wire.holds_until > time.time() + 86400
    wire.check()


def test_a_renewed_certificate_counts_when_its_key_is_there_too(
    authority: Authority, start_hub: StartHub, tmp_path: Path
) -> None:
    both = issue_brief(authority, "desk", 600)
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    desk = dataclasses.replace(both, certificate=certificate, key=key, revoked=None)

    def copy(to: Path) -> None:
        first, mark, rest = both.certificate.read_bytes().partition(b"-----BEGIN CERTIFICATE")
        write_private(to, first if to == key else mark + rest, replace=True)

    copy(certificate)
    copy(key)
    exchange = dataclasses.replace(Identity.named("exchange"), revoked=None)
    wire = Wire(start_hub(identity=exchange), start_hub(identity=desk))
    wire.send()
    wire.check()
    first = wire.holds_until
    authority.issue("desk", HOSTS, replace=True)
    copy(certificate)
    until = time.monotonic() + 3
    while time.monotonic() < until:
        wire.send()
        assert wire.holds_until == first, "half of it changes nothing"
    copy(key)
    eventually(lambda: wire.holds_until > first, "both together do", SECONDS)
    wire.check()


def test_a_member_that_lets_its_certificate_expire_is_cut_off_and_comes_back_with_another(
    authority: Authority, start_hub: StartHub
) -> None:
    names = ("n1", "n2", "n3")
    for name in names[:2]:
        authority.issue(name, HOSTS)
    brief = issue_brief(authority, "n3", 10)
    hubs = {name: start_hub(identity=Identity.named(name) if name != "n3" else brief) for name in names}
    peers = {name: hub.address for name, hub in hubs.items()}
    members = {name: hub.join("ledger", Trade, me=name, peers=peers) for name, hub in hubs.items()}
    told: dict[str, list[int]] = {name: [] for name in names}
    for name, member in members.items():
        member.subscribe(lambda trade, _stamp, name=name: told[name].append(trade.volume))
    members["n1"].wait_for(lambda view: view.members == names, SECONDS)
    members["n3"].submit_sync(Trade("IBM", 1.0, 1), SECONDS)
    members["n1"].wait_for(lambda view: view.members == names[:2], SECONDS)
    members["n3"].wait_for(lambda view: not view.primary, SECONDS)
    members["n1"].submit_sync(Trade("IBM", 1.0, 2), SECONDS)
    assert 2 not in told["n3"]
    members["n3"].submit(Trade("IBM", 1.0, 3))
    authority.issue("n3", HOSTS, replace=True)
    eventually(lambda: all(each == [1, 2, 3] for each in told.values()), "nothing was lost by it", SECONDS)
