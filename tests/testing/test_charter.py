"""A charter: hubs that go by one speak TLS, know each other by name, and have the rights of their roles alone."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from echoic import Hub
from echoic.channels import AUDIT_CHANNEL
from echoic.errors import ChannelNotFoundError, DeniedError, EchoicError, UnreachableError
from echoic.hub import AuditRecord
from echoic.testing.charter import PLAIN, Charter, environment_of, party_of, party_of_environment
from tests.hub.parties import Collector, Tick, eventually

GRANTS = {
    "source": ["publish,admin ticks"],
    "sink": ["subscribe ticks"],
    "auditor": [f"subscribe {AUDIT_CHANNEL}"],
    "nobody": [],
}


@pytest.fixture
def charter(tmp_path: Path) -> Charter:
    return Charter.draw_up(tmp_path / "charter", GRANTS)


def test_hubs_know_each_other_by_name_and_the_trail_tells_by_which_rule(charter: Charter) -> None:
    with (
        Hub(**charter.party("source")) as market,
        Hub(**charter.party("sink")) as desk,
        Hub(**charter.party("auditor")) as office,
    ):
        ticks, got, trail = market.create("ticks", Tick), Collector(), Collector()
        office.open(f"echoic://{market.address}/{AUDIT_CHANNEL}", AuditRecord).subscribe(trail)
        desk.open(ticks.id, Tick).subscribe(got)
        ticks.source().submit_sync(Tick(0, 7))
        assert got.numbers == [7]
        assert sorted(link.who for link in market.statistics().links) == ["auditor", "sink"]
        assert [link.who for link in desk.statistics().links] == ["source"]
        eventually(lambda: any(record.who == "sink" for record in trail.events), "the trail tells of the sink")
        told = next(record for record in trail.events if record.who == "sink" and record.right == "subscribe")
        assert told.allowed
        assert "allow sink subscribe ticks" in told.reason


@pytest.mark.parametrize(
    ("role", "act", "error"),
    [
        ("sink", lambda hub, id: hub.open(id, Tick).source(), DeniedError),
        ("nobody", lambda hub, id: hub.open(id, Tick), ChannelNotFoundError),
        ("plain", lambda hub, id: hub.open(id, Tick), UnreachableError),
    ],
    ids=["a sink that publishes", "who has no right", "who has no certificate"],
)
def test_what_is_not_in_the_charter_is_refused(
    charter: Charter, role: str, act: Callable[[Hub, str], object], error: type[EchoicError]
) -> None:
    party = PLAIN if role == "plain" else charter.party(role)
    with Hub(**charter.party("source")) as market, Hub(**party) as other:
        ticks = market.create("ticks", Tick)
        with pytest.raises(error):
            act(other, ticks.id)


def test_the_environment_says_the_same(charter: Charter, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment_of(charter, "sink").items():
        monkeypatch.setitem(os.environ, name, value)
    assert party_of_environment() == charter.party("sink") == party_of(charter, "sink")
    for name, value in environment_of(None, "sink").items():
        monkeypatch.setitem(os.environ, name, value)
    assert party_of_environment() == PLAIN == party_of(None, "sink")
