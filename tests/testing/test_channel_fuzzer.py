"""The fuzzer of hubs, short; trial 7 (`echoic soak frames`) and `echoic fuzz channels --count N` are the campaigns."""

import json
from random import Random

import msgspec
import pytest

from echoic.channels import Concentrator, directory, member
from echoic.channels.requests import Requests
from echoic.cli.fuzz import fuzz_channels
from echoic.testing import ChannelFuzzer, channel_fuzzer


def test_the_mutations_reach_every_parser_and_much_is_taken() -> None:
    report = ChannelFuzzer(Random(1)).run(10_000)
    assert report.findings == []
    assert report.accepted + sum(report.refused.values()) == report.frames == 10_000
    assert report.accepted > 4_000
    for error in ("MalformedFormatError", "MalformedBatchError", "MalformedFrameError", "UnknownFormatError"):
        assert report.refused[error] > 40


def test_the_same_seed_gives_the_same_frames() -> None:
    one, two = (ChannelFuzzer(Random(7)).run(1_000) for _ in range(2))
    assert one == two


def test_a_hub_that_forgets_a_check_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member, "_failures", msgspec.msgpack.Decoder())
    report = ChannelFuzzer(Random(5)).run(40_000)
    assert report.findings


def test_a_hub_that_trusts_what_it_is_told_about_placement_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_raw(self: member.Member, source: int, first: int) -> bool:
        turns = (self._placed or {}).get(source, ((first, True),))
        return not [here for since, here in turns if since <= first][-1]

    monkeypatch.setattr(member.Member, "is_raw", is_raw)
    report = ChannelFuzzer(Random(5)).run(20_000)
    assert any("IndexError" in finding.error for finding in report.findings)


def test_the_hostile_hub_has_derivations_at_work_and_is_derived_from() -> None:
    fuzzer, active, derived = ChannelFuzzer(Random(8)), 0, 0
    for _ in range(40):
        fuzzer.run(100)
        active += bool(fuzzer.victim.members["echoic://victim:1/mine"].derivations)
        derived += bool(fuzzer.victim.derivations)
    assert derived > 10
    assert active > 5


def test_a_hub_that_keeps_the_requests_of_one_it_gave_up_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Requests, "gone", lambda self, hub, reason: None)
    monkeypatch.setattr(Requests, "overdue", lambda self, now_ns: None)
    report = ChannelFuzzer(Random(4)).run(20_000)
    assert any("gave up" in finding.error for finding in report.findings)


def test_a_hub_that_remembers_without_limit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_fuzzer, "KEPT_MAX", 6)
    report = ChannelFuzzer(Random(5)).run(5_000)
    assert any("limit is 6" in finding.error for finding in report.findings)


def test_a_channel_has_room_for_so_many_hubs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory, "MEMBERS_MAX", 10)
    monkeypatch.setattr(channel_fuzzer, "LIFE_FRAMES", 100_000)
    fuzzer = ChannelFuzzer(Random(6))
    assert fuzzer.run(10_000).findings == []
    victim: Concentrator = fuzzer.victim
    assert 0 < len(victim.manager.directory.get("mine").sinks) <= 10


def test_the_campaign_is_repeated_by_its_seed(capsys: pytest.CaptureFixture[str]) -> None:
    reports = []
    for _ in range(2):
        fuzz_channels(count=300, seed=7, as_json=True)
        reports.append(json.loads(capsys.readouterr().out))
    one, two = ({**report, "seconds": 0} for report in reports)
    assert one == two
    assert (one["frames"], one["findings"]) == (300, [])
