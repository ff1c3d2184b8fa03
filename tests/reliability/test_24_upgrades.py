"""Trial 24: hubs, types and journals of other versions; and hubs that are too strict or too trusting, who are found."""

import random

import msgspec
import pytest

import echoic
from echoic.errors import EchoicError
from echoic.recorder import Journal
from echoic.testing.trials import upgrades
from echoic.testing.trials.dialect import Dialect, Featureless
from echoic.testing.trials.interpreter import HOST, Interpreter
from echoic.wire import hello
from tests.golden.recorded import GOLDEN, Weather
from tests.reliability.trying import try_out

LARGE_BYTES = 17 * 1024 * 1024


@echoic.event
class Parcel:
    contents: bytes


@echoic.event
class LaterWeather:
    """Weather as a later program has it: wider, in another order, with a field more and one less."""

    confidence: float = 1.0
    temperature: float = 0.0
    pressure: float = 0.0
    station: int = 0


def test_hubs_and_journals_of_other_versions_are_understood_or_told_that_they_are_not(
    request: pytest.FixtureRequest,
) -> None:
    figures = try_out(request, "upgrades").figures
    assert figures["secured"] >= 4


def test_a_large_event_is_refused_for_a_hub_that_knows_of_none_and_small_ones_go_on() -> None:
    plain, elder = Dialect(random.Random(0)), Featureless(random.Random(0))
    with (
        echoic.Hub(f"{HOST}:0") as dialled,
        echoic.Hub(f"{HOST}:0") as dialler,
        Interpreter(dialled.address, plain, elder) as between,
    ):
        parcels = dialled.create("parcels", Parcel)
        got: list[int] = []
        dialler.open(f"echoic://{between.address}/parcels", Parcel).subscribe(
            lambda each: got.append(len(each.contents))
        )
        source = parcels.source()
        source.submit_sync(Parcel(b"small"))
        with pytest.raises(EchoicError, match="limit is 16777216"):
            source.submit_sync(Parcel(bytes(LARGE_BYTES)))
        source.submit_sync(Parcel(b"after"))
    assert got == [5, 5]


def test_a_journal_of_earlier_days_is_read_as_a_type_that_has_changed_since() -> None:
    batches = [one.batch for one in Journal(GOLDEN).read() if one.batch.format.name == "Weather"]
    assert batches
    for batch in batches:
        for before, after in zip(batch.to(Weather).events(), batch.to(LaterWeather).events(), strict=True):
            assert after.confidence == 1.0
            common = set(Weather.__annotations__) & set(LaterWeather.__annotations__)
            assert common
            assert all(getattr(before, name) == getattr(after, name) for name in common)


class StrictHello(hello.Hello, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of a hub that takes whatever it does not know for an error."""


def test_a_hub_that_refuses_what_it_does_not_know_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hello, "_decoder", msgspec.msgpack.Decoder(StrictHello))
    (problem,) = upgrades.run(10, 0, lambda done: None).problems
    assert "(talkative), seed 0" in problem


def test_a_hub_that_believes_every_version_to_be_its_own_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Believing(msgspec.Struct):
        number: int = 0

        @property
        def version(self) -> int:
            return hello.VERSION

    monkeypatch.setattr(hello, "_version_decoder", msgspec.msgpack.Decoder(Believing))
    (problem,) = upgrades.run(10, 0, lambda done: None).problems
    assert "(other_version, secured), seed 0" in problem


def test_a_right_that_is_missing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrades, "GRANTS", {**upgrades.GRANTS, "dialler": ["publish things"]})
    problems = upgrades.run(10, 1, lambda done: None).problems
    assert problems
    assert all(", secured), seed 1: " in problem and "may not subscribe" in problem for problem in problems), problems
