"""Members of a group over TLS, while rights and revocations change: who may not be one any more is cut off."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from echoic import Group, Hub, Identity
from echoic.channels import AUDIT_CHANNEL
from echoic.hub import AuditRecord
from echoic.testing.samples import Trade
from echoic.trust.authority import Authority
from tests.conftest import StartHub
from tests.hub.parties import eventually

NAMES = ("n1", "n2", "n3")
ALL = "".join(f"allow {name} publish,subscribe ledger\n" for name in NAMES) + "allow n1 subscribe,admin echoic/audit\n"
SECONDS = 30.0


class Trio:
    """Three members of a group, each with a hub and a certificate, and the file of rights they go by."""

    def __init__(self, folder: Path, start_hub: StartHub) -> None:
        self.authority = Authority.create()
        self.rights = folder / "rights"
        self.grant(ALL)
        for name in NAMES:
            self.authority.issue(name, ("127.0.0.1",))
        self.hubs: dict[str, Hub] = {
            name: start_hub(identity=Identity.named(name), rights=self.rights) for name in NAMES
        }
        peers = {name: hub.address for name, hub in self.hubs.items()}
        self.members: dict[str, Group] = {
            name: hub.join("ledger", Trade, me=name, peers=peers) for name, hub in self.hubs.items()
        }
        self.told: dict[str, list[int]] = {name: [] for name in NAMES}
        for name, member in self.members.items():
            member.subscribe(lambda trade, _stamp, name=name: self.told[name].append(trade.volume))
        self.members["n1"].wait_for(lambda view: view.members == NAMES, SECONDS)

    def grant(self, rules: str) -> None:
        aside = self.rights.with_suffix(".next")
        aside.write_text(rules, "utf-8")
        aside.chmod(0o600)
        aside.replace(self.rights)

    def part(self) -> None:
        """Wait until n3 is without the others and knows it, and they go on."""
        for name in ("n1", "n2"):
            self.members[name].wait_for(lambda view: view.members == ("n1", "n2"), SECONDS)
        self.members["n3"].wait_for(lambda view: not view.primary, SECONDS)

    def submit(self, name: str, number: int) -> None:
        self.members[name].submit_sync(Trade("IBM", 1.0, number), SECONDS)

    def refusals(self, name: str) -> dict[str, str]:
        return self.members[name].statistics().engine["refused"]  # type: ignore[return-value] # of the embedded engine


@pytest.fixture
def trio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start_hub: StartHub) -> Iterator[Trio]:
    monkeypatch.setenv("ECHOIC_HOME", str(tmp_path / "home"))
    return Trio(tmp_path, start_hub)


@pytest.mark.parametrize("lost", ["publish", "subscribe"])
def test_a_member_that_loses_a_right_is_cut_off_and_let_in_again_when_it_has_it_again(trio: Trio, lost: str) -> None:
    trio.submit("n3", 1)
    trio.grant(ALL + f"deny n3 {lost} ledger\n")
    trio.part()
    trio.submit("n1", 2)
    eventually(lambda: trio.told["n2"] == [1, 2], "the others go on", SECONDS)
    eventually(
        lambda: trio.refusals("n3") == dict.fromkeys(("n1", "n2"), f"`n3` may not {lost} group `ledger`"),
        "n3 is told why it is not let in",
        SECONDS,
    )
    assert trio.refusals("n1") == {"n3": f"`n3` may not {lost} group `ledger`"}
    assert trio.told["n3"] == [1]
    trio.members["n3"].submit(Trade("IBM", 1.0, 3))
    trio.grant(ALL)
    for member in trio.members.values():
        member.wait_for(lambda view: view.members == NAMES, SECONDS)
    eventually(lambda: all(told == [1, 2, 3] for told in trio.told.values()), "nothing was lost by it", SECONDS)
    eventually(lambda: not trio.refusals("n3"), "nobody refuses anybody any more", SECONDS)


def test_a_member_whose_certificate_is_revoked_is_cut_off_and_the_others_go_on(trio: Trio) -> None:
    trio.submit("n3", 1)
    trio.authority.revoke("n3")
    trio.part()
    trio.submit("n2", 2)
    eventually(lambda: trio.told["n1"] == [1, 2], "the others go on", SECONDS)
    eventually(lambda: "revoked" in trio.refusals("n3").get("n1", ""), "n3 learns why", SECONDS)
    assert trio.told["n3"] == [1]


def test_who_may_not_be_a_member_is_told_to_the_operator(trio: Trio) -> None:
    told: list[AuditRecord] = []
    hub = trio.hubs["n1"]
    hub.open(f"echoic://{hub.address}/{AUDIT_CHANNEL}", AuditRecord).subscribe(told.append)
    trio.grant(ALL + "deny n3 * *\n")
    trio.part()
    eventually(
        lambda: any(
            (record.who, record.right, record.channel, record.allowed, record.request, record.peer)
            == ("n3", "publish", "ledger", False, "Introduction", trio.hubs["n3"].address)
            for record in told
        ),
        "the refusal is on the trail",
        SECONDS,
    )
    assert any("deny n3 * *" in record.reason for record in told)
