"""Two versions of a type, in the words of schema registries."""

import pytest
from hypothesis import given, settings

from echoic.errors import FormatError
from echoic.formats import (
    ARCHITECTURES,
    Array,
    Compatibility,
    Format,
    compatibility,
    event,
    int16,
    int32,
    int64,
    mismatches,
    uint8,
)
from tests.strategies import formats


@event
class Trade:
    symbol: str
    price: float


@event
class Extended:
    symbol: str
    price: float
    venue: uint8


@event
class Defaulted:
    symbol: str
    price: float
    venue: uint8 = 0


@event
class Renamed:
    symbol: str
    cost: float


@event
class Narrow:
    volume: int32


@event
class Wide:
    volume: int64


@event
class Wrapped:
    trade: Extended


@event
class WrappedLess:
    trade: Trade


@pytest.mark.parametrize(
    ("before", "after", "level"),
    [
        (Trade, Trade, Compatibility.FULL),
        (Trade, Defaulted, Compatibility.FULL),
        (Defaulted, Trade, Compatibility.FULL),
        (Trade, Extended, Compatibility.FORWARD),
        (Extended, Trade, Compatibility.BACKWARD),
        (Trade, Renamed, Compatibility.NONE),
        (Narrow, Wide, Compatibility.BACKWARD),
        (Wide, Narrow, Compatibility.FORWARD),
        (WrappedLess, Wrapped, Compatibility.FORWARD),
        (Wrapped, WrappedLess, Compatibility.BACKWARD),
        (Trade, Narrow, Compatibility.NONE),
    ],
)
def test_who_can_read_whom(before: type, after: type, level: Compatibility) -> None:
    report = compatibility(before, after)
    assert report.level is level
    assert bool(report.backward_problems) == (level in (Compatibility.FORWARD, Compatibility.NONE))
    assert bool(report.forward_problems) == (level in (Compatibility.BACKWARD, Compatibility.NONE))


def test_the_report_says_what_stands_in_the_way() -> None:
    report = compatibility(Trade, Renamed)
    assert report.backward_problems == ("`float64` is not sent and has no default - at `Trade.cost`",)
    assert report.forward_problems == ("`float64` is not sent and has no default - at `Renamed.price`",)


def test_every_reason_is_listed() -> None:
    @event
    class Other:
        symbol: int16
        price: Array[float, 3]
        venue: uint8

    problems = compatibility(Trade, Other).backward_problems
    assert [problem.rpartition("`Trade.")[2].rstrip("`") for problem in problems] == ["symbol", "price", "venue"]


def test_a_reader_that_accepts_narrowing_is_more_compatible() -> None:
    assert compatibility(Wide, Narrow, narrow=True).level is Compatibility.FULL


def test_anything_that_is_an_event_type_can_be_compared_on_any_machine() -> None:
    for name in ("sparc32", "i386", "m68k"):
        assert compatibility(Trade, Format.of(Trade).on(ARCHITECTURES[name])).level is Compatibility.FULL
    with pytest.raises(FormatError, match="expected an event class"):
        compatibility(Trade, int)


def test_the_levels_have_the_names_that_registries_use() -> None:
    assert [level.value for level in Compatibility] == ["NONE", "BACKWARD", "FORWARD", "FULL"]


@settings(max_examples=40)
@given(formats(), formats())
def test_turning_the_comparison_round_exchanges_backward_and_forward(one: Format, other: Format) -> None:
    report, turned = compatibility(one, other), compatibility(other, one)
    assert report.backward_problems == turned.forward_problems == mismatches(one, other)
    assert report.forward_problems == turned.backward_problems == mismatches(other, one)


@settings(max_examples=40)
@given(formats())
def test_every_type_is_compatible_with_itself(format: Format) -> None:
    assert compatibility(format, format).level is Compatibility.FULL
