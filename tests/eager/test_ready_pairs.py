"""Ready-made pairs: what a modulator compresses, clusters or encrypts comes out of its demodulator as it went in."""

import zlib
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import echoic
from echoic.eager.modulator import Demodulator
from echoic.eager.ready import (
    Cluster,
    Compress,
    Compressed,
    Decompress,
    Decrypt,
    Encrypt,
    Encrypted,
    Uncluster,
    encryption,
)
from echoic.eager.ready.gathering import Gathering
from echoic.errors import IncompatibleTypesError, LimitExceededError, LocalError, MalformedBatchError
from echoic.formats import Format
from tests.eager.ready_runs import drained, sent, travelled
from tests.strategies import formats, records_of, spans, to_object

FEW = settings(max_examples=40, deadline=None)


@echoic.event
class Leg:
    venue: str
    size: echoic.int32


@echoic.event
class Trade:
    symbol: str
    price: float
    legs: echoic.Array[Leg, ...] = ()
    samples: echoic.Array[echoic.float32, ...] = ()
    note: bytes | None = None


@echoic.event
class Price:
    price: float


legs = st.builds(Leg, st.text(max_size=5), st.integers(-(1 << 31), (1 << 31) - 1))
trades = st.builds(
    Trade,
    st.text(max_size=8),
    st.floats(allow_nan=False),
    st.lists(legs, max_size=3),
    st.lists(st.floats(width=32, allow_nan=False), max_size=4),
    st.none() | st.binary(max_size=5),
)
PAIRS = {"compress": Compress.pair, "cluster": Cluster.pair, "encrypt": Encrypt.pair}
pairs = st.sampled_from(sorted(PAIRS))


def carried(modulator: Gathering, demodulator: Demodulator, events: list[Any]) -> list[Any]:
    """Return events that went through both halves, and over a wire between them."""
    modulator.start()
    made = sent(modulator, events)
    modulator.period()
    made += drained(modulator)
    assert len(made) == -(-len(events) // modulator.count)
    return sent(demodulator, travelled(made, modulator.output)) if made else []


@FEW
@given(pairs, st.lists(trades, max_size=12), st.integers(1, 5))
def test_events_with_texts_and_arrays_come_back_as_they_were(pair: str, events: list[Any], count: int) -> None:
    found = carried(*PAIRS[pair](Trade, count=count), events)
    assert found == events
    assert all(type(event) is Trade for event in found)


@FEW
@given(pairs, formats(architectures=spans()), st.data())
def test_events_of_any_type_come_back_without_knowing_their_class(pair: str, format: Format, data: Any) -> None:
    if pair == "cluster" and format.fields_total > 100:
        return
    records = data.draw(st.lists(records_of(format), min_size=1, max_size=5))
    events = [to_object(record, format) for record in records]
    modulator, demodulator = PAIRS[pair](format, count=3)
    assert travelled(carried(modulator, demodulator, events), format) == travelled(events, format)


@pytest.mark.parametrize("pair", ["compress", "encrypt"])
def test_a_source_of_another_layout_describes_it_and_the_sink_converts(pair: str) -> None:
    foreign = Format.of(Trade).on(echoic.ARCHITECTURES["powerpc"] if "powerpc" in echoic.ARCHITECTURES else _other())
    events = [Trade("IBM", 75.5, [Leg("NYSE", 3)], [0.5]), Trade("SUN", 1.25)]
    theirs = echoic.Batch.of(events, foreign).events()
    modulator, demodulator = PAIRS[pair](Trade, count=2)
    assert carried(modulator, demodulator, theirs) == events
    modulator, demodulator = PAIRS[pair](None, count=2)
    assert [event.symbol for event in carried(modulator, demodulator, events)] == ["IBM", "SUN"]


def _other() -> echoic.Architecture:
    return next(
        each for each in echoic.ARCHITECTURES.values() if each.byte_order == "big" and each.slots.name == "SPAN"
    )


@pytest.mark.parametrize("pair", PAIRS)
def test_a_sink_may_have_fewer_fields_than_the_source(pair: str) -> None:
    modulator, _ = PAIRS[pair](Trade, count=2)
    private = bytes(range(32))
    fewer = {"compress": Decompress(Price), "cluster": Uncluster(Price), "encrypt": Decrypt(Price, private)}[pair]
    if isinstance(fewer, Decrypt):
        modulator = Encrypt(fewer.public, count=2)
    elif isinstance(fewer, Decompress):
        modulator = Compress(count=2)
    assert carried(modulator, fewer, [Trade("A", 1.5), Trade("B", 2.5)]) == [Price(1.5), Price(2.5)]


@pytest.mark.parametrize("pair", PAIRS)
def test_what_is_gathered_leaves_when_there_is_enough_or_the_period_is_over(pair: str) -> None:
    modulator, demodulator = PAIRS[pair](Trade, count=3, period_ns=5_000_000)
    modulator.start()
    events = [Trade("A", float(number)) for number in range(5)]
    first = sent(modulator, events)
    assert len(first) == 1
    assert modulator.waiting == 2
    modulator.period()
    second = drained(modulator)
    modulator.period()
    assert drained(modulator) == []
    assert sent(demodulator, travelled(first + second, modulator.output)) == events
    assert modulator.period_ns == 5_000_000
    assert not modulator.buffered


def test_compression_makes_a_hundred_events_smaller() -> None:
    modulator, _ = Compress.pair(Trade, count=100)
    modulator.start()
    events = [Trade("IBM", 75.0 + number % 4, [Leg("NYSE", 100)]) for number in range(100)]
    (made,) = sent(modulator, events)
    assert made.count == 100
    assert len(made.data) * 5 < len(echoic.Batch.of(events).records)


def test_a_cluster_is_an_ordinary_event_with_an_array() -> None:
    modulator = Cluster(Price, count=2)
    format = Format.of(modulator.output)
    assert [(field.name, field.spelling) for field in format.fields] == [
        ("count", "uint32"),
        ("events", "Price[count]"),
    ]
    modulator.start()
    (cluster,) = travelled(sent(modulator, [Price(1.0), Price(2.0)]), format)
    assert [event.price for event in cluster.events] == [1.0, 2.0]


def test_decompression_stops_at_its_limit() -> None:
    bomb = Compressed(1, zlib.compress(bytes(1 << 20)))
    with pytest.raises(LimitExceededError, match="become more than 4096"):
        Decompress(Trade, bytes_max=4096).enqueue(bomb)


@given(st.binary(max_size=60))
def test_decompression_refuses_what_was_not_compressed_by_it(data: bytes) -> None:
    for hostile in (data, zlib.compress(data), zlib.compress(data)[:-1], zlib.compress(data) + b"x"):
        with pytest.raises(echoic.EchoicError):
            Decompress(Trade).enqueue(Compressed(1, hostile))


def test_a_bundle_has_as_many_events_as_were_announced() -> None:
    modulator, demodulator = Compress.pair(Trade, count=1)
    modulator.start()
    (made,) = sent(modulator, [Trade("A", 1.0)])
    with pytest.raises(MalformedBatchError, match="a bundle has 1 events, 2 were announced"):
        demodulator.enqueue(Compressed(2, made.data))


def test_a_sink_of_an_incompatible_type_is_told_so() -> None:
    @echoic.event
    class Wrong:
        price: str

    modulator = Compress(count=1)
    modulator.start()
    with pytest.raises(IncompatibleTypesError):
        sent(Decompress(Wrong), sent(modulator, [Trade("A", 1.0)]))


def encrypted(modulator: Encrypt, events: list[Any]) -> list[Any]:
    modulator.start()
    return travelled(sent(modulator, events), Encrypted)


@FEW
@given(st.sampled_from(["number", "token", "count", "sender", "data"]), st.integers(0, 10_000), st.integers(0, 7))
def test_any_bit_that_changes_on_the_way_is_noticed(field: str, place: int, bit: int) -> None:
    modulator, demodulator = Encrypt.pair(Trade)
    (event,) = encrypted(modulator, [Trade("IBM", 75.5, [Leg("NYSE", 3)])])
    value = event[field]
    if isinstance(value, bytes):
        changed = bytearray(value)
        changed[place % len(changed)] ^= 1 << bit
        value = bytes(changed)
    else:
        value ^= 1 << bit
    with pytest.raises(MalformedBatchError, match=r"was changed on its way|cannot be used"):
        demodulator.enqueue(msgspec.structs.replace(event, **{field: value}))
    assert sent(demodulator, [event]) == [Trade("IBM", 75.5, [Leg("NYSE", 3)])]


def test_only_the_holder_of_the_private_key_can_read() -> None:
    modulator, demodulator = Encrypt.pair(Trade)
    (event,) = encrypted(modulator, [Trade("SECRET", 1.0)])
    assert b"SECRET" not in event.data
    with pytest.raises(MalformedBatchError, match="not for this key"):
        Decrypt(Trade).enqueue(event)
    assert demodulator.public == modulator.recipient


def test_the_private_key_does_not_travel() -> None:
    private = bytes(range(1, 33))
    state = Encrypt(Decrypt(Trade, private).public, Trade).snapshot().state
    assert state is not None
    assert Decrypt(Trade, private).public in bytes(state.records)
    assert private not in bytes(state.records)


def test_an_event_that_is_sent_again_or_late_is_noticed() -> None:
    modulator, demodulator = Encrypt.pair(Trade)
    first, second, third = encrypted(modulator, [Trade("A", float(number)) for number in range(3)])
    assert len(sent(demodulator, [first, third])) == 2
    for late in (first, second, third):
        with pytest.raises(MalformedBatchError, match="came after event 3 of its source"):
            demodulator.enqueue(late)


def test_every_source_has_a_key_of_its_own_and_no_nonce_is_used_twice() -> None:
    private = bytes(range(1, 33))
    demodulator = Decrypt(Trade, private)
    sources = [Encrypt(demodulator.public, Trade) for _ in range(3)]
    events = [event for source in sources for event in encrypted(source, [Trade("A", 1.0)] * 4)]
    assert len({(event.sender, event.number) for event in events}) == 12
    assert len({event.sender for event in events}) == 3
    assert len({event.data for event in events}) == 12
    assert len(sent(demodulator, events[::4] + events[1::4])) == 6


def test_the_source_that_was_silent_longest_is_forgotten_and_met_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encryption, "SENDERS_MAX", 2)
    demodulator = Decrypt(Price)
    events = [encrypted(Encrypt(demodulator.public, Price), [Price(1.0), Price(2.0)]) for _ in range(3)]
    assert len(sent(demodulator, [first for first, _ in events])) == 3
    assert len(sent(demodulator, [second for _, second in events])) == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Compress(Trade, count=0), "at `count`"),
        (lambda: Compress(Trade, period_ns=-1), "at `period_ns`"),
        (lambda: Compress(Trade, level=10), "at `level`"),
        (lambda: Compress(int), "expected an event class"),
        (lambda: Cluster(Trade, count=65_537), "expected a whole number from 1 to 65536"),
        (lambda: Encrypt(b"short"), "expected 32 bytes as a key, got 5"),
        (lambda: Decrypt(Trade, "secret"), "expected 32 bytes as a key, got str"),
    ],
)
def test_what_cannot_be_is_refused_where_it_is_made(make: Any, message: str) -> None:
    with pytest.raises(LocalError, match=message):
        make()


def test_a_key_that_gives_no_secret_is_refused() -> None:
    with pytest.raises(LocalError, match="no key can be agreed upon"):
        Encrypt(bytes(32)).start()
    with pytest.raises(MalformedBatchError, match="cannot be used"):
        Decrypt(Trade).enqueue(Encrypted(1, 0, 1, bytes(32), b""))
    with pytest.raises(MalformedBatchError, match="a key of 3 bytes"):
        Decrypt(Trade).enqueue(Encrypted(1, 0, 1, b"abc", b""))
