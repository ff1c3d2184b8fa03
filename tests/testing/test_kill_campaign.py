"""The audit of a campaign of kills finds what it is there to find; the campaign itself is in `tests/reliability`."""

from pathlib import Path

import pytest

from echoic.recorder import Disk, JournalWriter
from echoic.testing.kill_audit import Audit
from echoic.testing.kill_campaign import Campaign
from echoic.testing.kill_roles import CHANNEL, Setting, Tick, ticks
from echoic.wire import Batch

EVENTS = 100


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(str(tmp_path), EVENTS, sources=1, sinks=0)


def audited(setting: Setting, *runs: tuple[int, int, int, int]) -> Audit:
    """Return what is found in a journal of runs: source, number of the first event as recorded and in it, and count."""
    writer = JournalWriter.open(Disk(setting.journal), CHANNEL, id=bytes(16), now_ns=0)
    for source, recorded, first, count in runs:
        writer.append(Batch.of(ticks(0, first, count), Tick), source, recorded, 0)
    writer.close(0)
    audit = Audit(setting)
    audit.read_journal()
    return audit


def test_a_complete_journal_has_no_fault(setting: Setting) -> None:
    audit = audited(setting, (1, 0, 0, 30), (1, 30, 30, 70))
    assert (audit.events, audit.lost, audit.doubled, audit.disordered, audit.problems) == (EVENTS, 0, 0, 0, [])


def test_lost_events_are_found(setting: Setting) -> None:
    audit = audited(setting, (1, 0, 0, 30), (1, 40, 40, 60))
    assert (audit.lost, audit.doubled, audit.disordered) == (10, 0, 1)


def test_events_that_were_never_sent_are_found(setting: Setting) -> None:
    assert audited(setting, (1, 0, 0, 30)).lost == 70


def test_doubled_events_are_found(setting: Setting) -> None:
    audit = audited(setting, (1, 0, 0, EVENTS), (2, 50, 50, 20))
    assert (audit.lost, audit.doubled) == (0, 20)


def test_events_with_other_values_are_found(setting: Setting) -> None:
    (problem,) = audited(setting, (1, 0, 10, 90)).problems
    assert problem == "event 10 of 0 is recorded under the number 0"


def test_a_seed_plans_the_same_kills(tmp_path: Path) -> None:
    plans = [Campaign(tmp_path, 1000, 20, seed).plan for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]
    assert {kill.kind for kill in plans[0]} == {"source", "recorder", "sink", "manager", "names"}
