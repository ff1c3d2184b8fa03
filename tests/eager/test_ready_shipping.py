"""Ready-made modulators travel like any other: as a parcel whose text is one import, or as E-Code."""

from typing import Any

import pytest

import echoic
from echoic.eager.loading import load
from echoic.eager.modulator import EcodeModulator
from echoic.eager.parcel import pack, unpack
from echoic.eager.ready import (
    Cluster,
    Compress,
    Difference,
    DifferenceByKey,
    Encrypt,
    Every,
    Latest,
    Priority,
    RateLimit,
    RateLimitByTime,
    Uncluster,
    Window,
)
from echoic.formats import Format
from echoic.trust import SigningKey
from tests.eager.ready_runs import sent, travelled


@echoic.event
class Trade:
    symbol: str
    price: float
    at: int = 0


KEY = SigningKey.generate()
RECIPIENT = bytes(range(1, 33))
SHIPPED = [
    (Latest("symbol"), Latest("price")),
    (Priority("price", 10), Priority("price", 11)),
    (RateLimit(5, burst=2), RateLimit(6, burst=2)),
    (DifferenceByKey("price", 1, "symbol"), DifferenceByKey("price", 2, "symbol")),
    (Compress(Trade, count=3), Compress(Trade, count=4)),
    (Cluster(Trade, count=2, period_ns=1_000), Cluster(Trade, count=2, period_ns=2_000)),
    (Encrypt(RECIPIENT, Trade), Encrypt(RECIPIENT[::-1], Trade)),
]
CODED = [Window({"price": (1, 2)}), Difference("price", 1), Every(2), RateLimitByTime("at", 5)]


def packed(modulator: Any) -> tuple[bytes, bytes]:
    return pack(modulator, "echoic://127.0.0.1:1/trades", Format.of(Trade), KEY)


@pytest.mark.parametrize(("modulator", "_other"), SHIPPED, ids=lambda each: type(each).__name__)
def test_it_arrives_with_its_state_and_works(modulator: Any, _other: Any) -> None:
    parcel, key = unpack(packed(modulator)[0])
    loaded = load(parcel, key)
    made = loaded.make({})
    assert parcel.text == f"from {type(modulator).__module__} import {type(modulator).__name__}\n"
    assert made == modulator
    assert parcel.period_ns == modulator.period_ns
    made.start()
    out = sent(made, [Trade("A", 1.0), Trade("B", 2.0), Trade("A", 8.0)])
    assert travelled(out, loaded.output or Trade)


@pytest.mark.parametrize(("modulator", "other"), SHIPPED, ids=lambda each: type(each).__name__)
def test_equal_ones_share_a_stream_and_others_do_not(modulator: Any, other: Any) -> None:
    again = unpack(packed(modulator)[0])
    assert again[0].text == unpack(packed(other)[0])[0].text
    assert packed(modulator)[1] == packed(modulator)[1]
    assert packed(modulator)[1] != packed(other)[1]


def test_only_those_that_choose_what_is_sent_are_buffered() -> None:
    assert [type(each).__name__ for each, _ in SHIPPED if each.buffered] == ["Latest", "Priority"]


@pytest.mark.parametrize("modulator", CODED, ids=lambda each: type(each).__name__)
def test_what_e_code_can_say_is_e_code(modulator: Any) -> None:
    assert isinstance(modulator, EcodeModulator)
    assert type(modulator).__name__ in repr(modulator)


def test_clusters_of_two_types_are_two_streams() -> None:
    @echoic.event
    class Quote:
        symbol: str
        price: float

    assert packed(Cluster(Trade))[1] != packed(Cluster(Quote))[1]
    assert isinstance(Cluster.pair(Trade)[1], Uncluster)
