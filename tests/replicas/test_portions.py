"""How a part of a log travels: cut anywhere it is the same, and what is not one is refused."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import EchoicError, LimitExceededError, MalformedBatchError
from echoic.replicas import Portion
from echoic.replicas.portions import CHUNK_BYTES_MAX, LENGTH, decode_portions, encode_portions
from echoic.wire import Batch
from tests.replicas.ticks import Tick, tick


def portion(first: int, *runs: int) -> Portion:
    numbers = range(first, first + sum(runs))
    senders = tuple((f"member {number}", events) for number, events in enumerate(runs))
    return Portion(first, senders, Batch.of([tick(number) for number in numbers], Tick))


def shown(found: Portion) -> tuple[int, object, list[str]]:
    return found.first, found.senders, list(map(str, found.batch.to(Tick).events()))


runs = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@given(st.lists(runs, max_size=5), st.lists(st.integers(0, 300), max_size=8))
def test_portions_survive_any_cutting_of_their_bytes(given_runs: list[list[int]], cuts: list[int]) -> None:
    portions, first = [], 1
    for each in given_runs:
        portions.append(portion(first, *each))
        first += sum(each)
    data = b"".join(encode_portions(portions))
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    chunks = [data[start:end] for start, end in pairwise(places)]
    assert list(map(shown, decode_portions(chunks))) == list(map(shown, portions))


@given(runs, st.integers(0, 40))
def test_what_comes_after_a_number_is_the_rest(given_runs: list[int], known: int) -> None:
    whole = portion(11, *given_runs)
    rest = whole.after(known)
    flat = [(number, sender) for number, sender in enumerate((s for s, n in whole.senders for _ in range(n)), 11)]
    wanted = [(number, sender) for number, sender in flat if number > known]
    if rest is None:
        assert wanted == []
        return
    found = enumerate((sender for sender, events in rest.senders for _ in range(events)), rest.first)
    assert list(found) == wanted
    assert [str(event) for event in rest.batch.events()] == [str(tick(number)) for number, _ in wanted]
    assert rest.last == whole.last


def test_chunks_have_a_megabyte_at_most() -> None:
    portions = [portion(1 + 4000 * number, 2000, 2000) for number in range(8)]
    chunks = list(encode_portions(portions))
    assert len(chunks) > 2
    assert max(map(len, chunks)) <= CHUNK_BYTES_MAX


@given(st.binary(max_size=200))
def test_bytes_that_are_no_portions_are_refused(data: bytes) -> None:
    try:
        found = list(decode_portions([data]))
    except EchoicError:
        return
    assert not data or found


@given(st.data())
def test_a_flipped_byte_is_refused_or_gives_events(data: st.DataObject) -> None:
    whole = bytearray(b"".join(encode_portions([portion(1, 2, 1)])))
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    try:
        for found in decode_portions([bytes(whole)]):
            assert sum(events for _, events in found.senders) == found.batch.count
            found.batch.events()
    except EchoicError:
        pass


def test_a_length_beyond_the_limit_is_refused_before_it_arrives() -> None:
    with pytest.raises(LimitExceededError, match="4294967295 bytes, limit is"):
        list(decode_portions([LENGTH.pack(0xFFFF_FFFF)]))


@pytest.mark.parametrize(("first", "counts"), [(0, (1,)), (1, (2,)), (1, (1, 0)), (1, ()), (1, (2, -1))])
def test_counts_that_contradict_each_other_are_refused(first: int, counts: tuple[int, ...]) -> None:
    batch = Batch.of([tick(1)], Tick)
    senders = [("n", events) for events in counts]
    body = msgspec.msgpack.encode((first, senders, batch.format.descriptor, b"".join(batch.buffers())))
    with pytest.raises(MalformedBatchError, match="its senders have"):
        list(decode_portions([LENGTH.pack(len(body)) + body]))
