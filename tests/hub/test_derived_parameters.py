"""The parameters of a derived channel, as those see them who did not derive it."""

import pytest

from echoic import event, float32, int32
from echoic.channels import Directory, Recipe, Step
from echoic.errors import EncodeError
from echoic.formats import Format
from tests.conftest import StartHub
from tests.hub.parties import Collector, Trade, trade

CODE = "input.price < param.low"


@event
class Inner:
    low: float32
    high: float32


@event
class Settings:
    """All that plain values could not say."""

    low: float32
    count: int32
    inner: Inner
    note: str | None = None


def test_who_opens_a_derived_channel_sees_and_changes_its_parameters(start_hub: StartHub) -> None:
    there, here, elsewhere = start_hub(), start_hub(), start_hub()
    channel = there.create("trades", Trade)
    source = channel.source()
    derived = here.open(channel.id).derive(CODE, params={"low": 10.0, "note": "first"}, name="cheap")
    got = Collector()
    derived.subscribe(got)
    opened = elsewhere.open(derived.id)
    assert opened.params.values == {"low": 10.0, "note": "first"}
    opened.params.update(low=2)
    assert opened.params.values == {"low": 2.0, "note": "first"}
    for number in range(5):
        source.submit_sync(trade(number))
    assert elsewhere.open(derived.id).params.values == {"low": 2.0, "note": "first"}
    assert got.events
    assert all(each.price < 2 for each in got.events)


def test_parameters_of_a_class_keep_their_types_for_others(start_hub: StartHub) -> None:
    there, elsewhere = start_hub(), start_hub()
    channel = there.create("trades", Trade)
    derived = channel.derive(CODE, params=Settings(low=1.5, count=2, inner=Inner(low=0.5, high=2.5)), name="cheap")
    params = elsewhere.open(derived.id).params
    assert isinstance(params.values, dict)
    assert (params.values["low"], params.values["note"]) == (1.5, None)
    params.update(count=7, inner={"high": 3.5}, note="second")
    assert (params.values["count"], params.values["note"]) == (7, "second")
    with pytest.raises(EncodeError, match="expected `int32`"):
        params.update(count=2**40)
    again = elsewhere.open(derived.id).params.values
    assert isinstance(again, dict)
    assert (again["count"], again["inner"].low, again["inner"].high) == (7, 0.5, 3.5)


def test_a_channel_that_was_there_already_keeps_its_parameters_and_says_so(start_hub: StartHub) -> None:
    channel = start_hub().create("trades", Trade)
    first = channel.derive(CODE, params={"low": 10.0}, name="cheap")
    second = channel.derive(CODE, params={"low": 20.0}, name="cheap")
    assert second.id == first.id
    assert second.params.values == first.params.values == {"low": 10.0}


def test_a_text_that_is_a_python_function_is_one(start_hub: StartHub) -> None:
    channel = start_hub().create("trades", Trade)
    got = Collector()
    texts = (
        "def f(input):\n    return input.number % 2 == 1",
        "# odd ones\nfrom math import pi\n\ndef f(input):\n  return 1\n",
    )
    first, second = (channel.derive(text) for text in texts)
    assert first.endpoints.member.lineage[-1].recipe.spelling == "python"
    assert second.endpoints.member.lineage[-1].recipe.spelling == "python"
    assert channel.derive("input.number > 1").endpoints.member.lineage[-1].recipe.spelling == "ecode"
    first.subscribe(got)
    source = channel.source()
    for number in range(4):
        source.submit_sync(trade(number))
    assert [each.number for each in got.events] == [1, 3]


def test_a_listing_tells_what_is_derived_from_what_and_counts_inherited_sources() -> None:
    directory = Directory()
    directory.create("trades", Format.of(Trade))
    directory.join_source("trades", "127.0.0.1:1")
    directory.derive(Step("", "cheap", Recipe("trades", "1")))
    cheap, trades = directory.entries("127.0.0.1:9")
    assert (cheap.name, cheap.parent, cheap.sources) == ("cheap", "trades", 1)
    assert (trades.name, trades.parent, trades.sources) == ("trades", "", 1)


def test_the_last_fault_is_among_the_counts(start_hub: StartHub) -> None:
    channel = start_hub().create("trades", Trade)
    derived = channel.derive("10 / input.number > 0")
    got = Collector()
    derived.subscribe(got)
    source = channel.source()
    source.submit_sync(trade(0))
    source.submit_sync(trade(1))
    handle = derived.derivation
    assert handle is not None
    (counts,) = handle.counts().values()
    assert (counts.faults, counts.fault) == (1, "an integer is divided by zero - at line 1, column 4")
    assert [each.number for each in got.events] == [1]
