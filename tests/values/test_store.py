"""The store: what is put comes back, memory keeps to its budget, and nothing stays that was released."""

import gc
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from echoic.errors import EncodeError, LimitExceededError
from echoic.values import Stored, ValueStore, spilling
from tests.values.conftest import BUDGET_BYTES, decode_text, encode_text, open_descriptors


def text_of(size: int, letter: str = "x") -> str:
    return letter * size


def content(store: ValueStore[str], handle: int) -> bytes:
    stored = store.get(handle)
    assert isinstance(stored, Stored)
    return b"".join(stored.pieces)


def test_an_object_comes_back_as_the_very_object_and_is_never_encoded(tmp_path: Path) -> None:
    store: ValueStore[object] = ValueStore(spill=tmp_path)
    for value in (object(), None, Stored((b"mine",), 4)):
        assert store.get(store.put(value, 100)) is value


def test_pieces_come_back_as_they_were_given(store: ValueStore[str]) -> None:
    pieces = [b"some", memoryview(b"more"), bytearray(b"bytes")]
    handle = store.put_pieces(pieces)
    found = store.get(handle)
    assert isinstance(found, Stored)
    assert all(one is other for one, other in zip(found.pieces, pieces, strict=True))
    assert found.size == store.size(handle) == 13
    assert list(store.pieces(handle)) == pieces


def test_pieces_of_an_object_are_the_stores_encoding_or_the_callers(store: ValueStore[str]) -> None:
    handle = store.put("abcdef", 6)
    assert store.pieces(handle) == [b"abc", b"def"]
    assert store.pieces(handle, lambda text: [text.upper().encode()]) == [b"ABCDEF"]


def test_the_least_recently_used_value_leaves_memory_first(store: ValueStore[str]) -> None:
    first, second, third = (store.put(text_of(300, letter), 300) for letter in "abc")
    store.get(first)
    fourth = store.put(text_of(300, "d"), 300)
    assert store.statistics().spilled == 1
    for handle, letter in ((first, "a"), (third, "c"), (fourth, "d")):
        assert store.get(handle) == text_of(300, letter)
    assert store.statistics().spilled == 1  # all of these were in memory
    assert store.get(second) == text_of(300, "b")
    assert store.statistics().spilled == 2


def test_a_value_that_came_back_keeps_its_file_and_leaves_again_for_nothing(store: ValueStore[str]) -> None:
    handles = [store.put(text_of(600, letter), 600) for letter in "ab"]
    for _ in range(5):
        assert [store.get(handle) for handle in handles] == [text_of(600, "a"), text_of(600, "b")]
    assert store.statistics().spilled == 2
    assert store.statistics().file_bytes == 1200


def test_a_value_that_came_back_is_one_object_for_all_who_get_it(store: ValueStore[str]) -> None:
    first = store.put(text_of(600), 600)
    store.put(text_of(600), 600)
    assert store.get(first) is store.get(first)


def test_a_value_larger_than_memory_goes_to_a_file_and_sends_nobody_away(store: ValueStore[str]) -> None:
    small = store.put("small", 5)
    large = store.put(text_of(5000), 5000)
    bytes_of_it = store.put_pieces([b"y" * 5000])
    statistics = store.statistics()
    assert (statistics.heap_bytes, statistics.file_bytes, statistics.spilled) == (5, 10_000, 2)
    assert store.get(large) == text_of(5000)
    assert content(store, bytes_of_it) == b"y" * 5000
    assert store.get(small) == "small"
    assert store.statistics().heap_bytes == 5


def test_a_spilled_value_is_encoded_for_the_caller_from_the_object(store: ValueStore[str]) -> None:
    handle = store.put(text_of(5000), 5000)
    assert b"".join(store.pieces(handle)) == b"x" * 5000
    assert store.pieces(handle, lambda text: [str(len(text)).encode()]) == [b"5000"]


def test_without_a_decoder_a_spilled_object_comes_back_as_bytes(tmp_path: Path) -> None:
    store: ValueStore[str] = ValueStore(encode=encode_text, budget_bytes=10, spill=tmp_path)
    handle = store.put(text_of(50), 50)
    assert content(store, handle) == b"x" * 50
    with pytest.raises(EncodeError, match="has left memory"):
        store.pieces(handle, encode_text)


def test_what_cannot_be_encoded_stays_in_memory_and_others_leave_in_its_place(tmp_path: Path) -> None:
    store: ValueStore[object] = ValueStore(budget_bytes=1000, spill=tmp_path)
    thing = object()
    stuck = store.put(thing, 400)
    first = store.put(b"a" * 400, 400)
    store.put(b"b" * 400, 400)
    assert store.get(stuck) is thing
    assert store.statistics().spilled == 1
    found = store.get(first)
    assert isinstance(found, Stored)
    assert found.pieces == (b"a" * 400,)
    with pytest.raises(EncodeError, match="type `object`"):
        store.put(object(), 1001)
    assert store.statistics().values == 3


def test_a_failing_encoder_fails_the_put_and_harms_nobody(tmp_path: Path) -> None:
    def encode(value: str) -> list[bytes]:
        raise ZeroDivisionError(value)

    store = ValueStore(encode=encode, budget_bytes=1000, spill=tmp_path)
    handle = store.put("value", 800)
    with pytest.raises(ZeroDivisionError):
        store.put("other", 800)
    assert store.get(handle) == "value"
    assert store.statistics().heap_bytes == 800
    store.release(handle)
    assert store.statistics().heap_bytes == 0
    store.put("third", 1000)


def test_a_pinned_value_stays_in_memory(store: ValueStore[str]) -> None:
    value = text_of(600)
    handle = store.put(value, 600)
    with store.pinned(handle):
        other = store.put(text_of(600, "y"), 600)  # goes to a file itself, for nobody can leave
        assert store.get(handle) is value
        assert (store.statistics().heap_bytes, store.statistics().spilled) == (600, 1)
        assert store.get(other) == text_of(600, "y")
        assert store.statistics().heap_bytes == 600
    assert store.statistics().pinned == 0
    assert store.get(other) == text_of(600, "y")
    assert store.get(handle) is not value  # it has left since


def test_a_pinned_value_that_is_released_goes_when_the_last_pin_does(store: ValueStore[str]) -> None:
    handle = store.put("value", 5)
    store.pin(handle)
    store.pin(handle)
    store.release(handle)
    store.release(handle)
    assert store.get(handle) == "value"
    with pytest.raises(LookupError, match="was released"):
        store.pin(handle)
    store.unpin(handle)
    assert store.get(handle) == "value"
    store.unpin(handle)
    assert store.statistics().values == store.statistics().heap_bytes == store.statistics().pinned == 0
    with pytest.raises(LookupError):
        store.unpin(handle)


ASKING: list[Callable[[ValueStore[str], int], object]] = [
    ValueStore.get,
    ValueStore.pieces,
    ValueStore.size,
    ValueStore.pin,
    ValueStore.unpin,
    ValueStore.share,
]


@pytest.mark.parametrize("ask", ASKING, ids=lambda ask: ask.__name__)
def test_a_value_that_is_not_there_is_not_found(store: ValueStore[str], ask: Callable[..., object]) -> None:
    handle = store.put("value", 5)
    store.release(handle)
    store.release(handle)
    for missing in (handle, 0, -1, 77):
        with pytest.raises(LookupError, match=str(missing)):
            ask(store, missing)


def test_what_is_not_pinned_cannot_be_unpinned(store: ValueStore[str]) -> None:
    handle = store.put("value", 5)
    with pytest.raises(LookupError, match="not pinned"):
        store.unpin(handle)


def test_handles_are_not_used_again(store: ValueStore[str]) -> None:
    seen = set()
    for _ in range(100):
        handle = store.put("value", 5)
        seen.add(handle)
        store.release(handle)
    assert len(seen) == 100
    assert 0 not in seen


def test_full_files_are_an_error_at_once_and_room_is_there_again_after_a_release(tmp_path: Path) -> None:
    store: ValueStore[bytes] = ValueStore(budget_bytes=1000, spill=tmp_path, file_bytes_max=2000)
    handles = [store.put_pieces([b"x" * 1000]) for _ in range(3)]
    with pytest.raises(LimitExceededError, match="limit is 2000"):
        store.put_pieces([b"x" * 1000])
    with pytest.raises(LimitExceededError, match="limit of the spill files is 2000"):
        store.put(b"x" * 2001, 2001)
    assert [store.size(handle) for handle in handles] == [1000] * 3
    assert store.statistics().values == 3
    for handle in handles:
        store.release(handle)
    assert store.statistics().heap_bytes == store.statistics().file_bytes == 0
    assert [store.put_pieces([b"x" * 1000]) for _ in range(3)]


def test_a_folder_that_takes_no_files_is_an_error_that_says_so(tmp_path: Path) -> None:
    store: ValueStore[bytes] = ValueStore(budget_bytes=10, spill=tmp_path / "nowhere")
    inside = store.put(b"0123456789", 10)
    with pytest.raises(LimitExceededError, match="nowhere"):
        store.put(b"x" * 20, 20)
    assert store.get(inside) == b"0123456789"


def test_there_are_only_so_many_values(tmp_path: Path) -> None:
    store: ValueStore[bytes] = ValueStore(values_max=2, budget_bytes=100, spill=tmp_path)
    kept = [store.put(b"", 0), store.put_pieces([])]
    before = open_descriptors()
    for put in (lambda: store.put(b"x" * 50, 50), lambda: store.put(b"x" * 500, 500), lambda: store.put_pieces([b"x"])):
        with pytest.raises(LimitExceededError, match="limit is 2"):
            put()
    incoming = store.receive(1)
    incoming.write(b"x")
    with pytest.raises(LimitExceededError, match="limit is 2"):
        incoming.done()
    assert store.statistics().heap_bytes == store.statistics().file_bytes == 0
    gc.collect()
    assert open_descriptors() == before
    store.release(kept[0])
    store.put(b"x", 1)


def test_a_value_has_no_fewer_bytes_than_none(store: ValueStore[str]) -> None:
    with pytest.raises(EncodeError, match="-1 bytes"):
        store.put("", -1)


def test_clear_forgets_all_values_and_closes_all_files(store: ValueStore[str]) -> None:
    gc.collect()
    before = open_descriptors()
    handles = [store.put(text_of(400), 400) for _ in range(20)] + [store.put_pieces([b"x" * 3000])]
    assert store.share(handles[0]) is not None
    pinned = handles[3]
    store.pin(pinned)
    assert open_descriptors() > before
    store.clear()
    assert store.statistics().values == 1
    store.unpin(pinned)
    statistics = store.statistics()
    assert (statistics.values, statistics.heap_bytes, statistics.shared_bytes, statistics.file_bytes) == (0, 0, 0, 0)
    gc.collect()
    assert open_descriptors() == before


def test_a_store_that_is_dropped_leaves_no_descriptors(tmp_path: Path) -> None:
    gc.collect()
    before = open_descriptors()
    store: ValueStore[bytes] = ValueStore(budget_bytes=1000, spill=tmp_path)
    for _ in range(10):
        store.put(b"x" * 900, 900)
    store.share(store.put(b"y" * 100, 100))
    del store
    gc.collect()
    assert open_descriptors() == before


def test_a_view_outlives_its_value_and_the_values_that_come_after(store: ValueStore[str]) -> None:
    handle = store.put_pieces([b"first" * 1000])
    (view,) = store.pieces(handle)
    store.release(handle)
    for _ in range(10):
        store.release(store.put_pieces([b"later" * 1000]))
    assert view == b"first" * 1000


def test_many_spilled_values_take_few_descriptors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spilling, "SEGMENT_BYTES", 1024 * 1024)
    store: ValueStore[bytes] = ValueStore(budget_bytes=0, spill=tmp_path)
    before = open_descriptors()
    handles = [store.put(number.to_bytes(4, "big") * 1024, 4096) for number in range(2000)]
    assert open_descriptors() - before <= 2 * 8
    for number, handle in enumerate(handles):
        (view,) = store.pieces(handle)
        assert view == number.to_bytes(4, "big") * 1024


def test_threads_share_a_store_and_memory_keeps_to_its_budget(store: ValueStore[str]) -> None:
    problems: list[object] = []
    over: list[int] = []

    def work(letter: str) -> None:
        try:
            kept: list[tuple[int, str]] = []
            for number in range(300):
                text = text_of(1 + number * 7 % 400, letter)
                kept.append((store.put(text, len(text)), text))
                handle, expected = kept[number * 31 % len(kept)]
                with store.pinned(handle):
                    assert store.get(handle) == expected
                over.append(store.statistics().heap_bytes)
                if len(kept) > 20:
                    store.release(kept.pop(0)[0])
            for handle, expected in kept:
                assert b"".join(store.pieces(handle)) == expected.encode()
                store.release(handle)
        except BaseException as error:  # noqa: BLE001 - shown below
            problems.append(error)

    threads = [threading.Thread(target=work, args=(letter,)) for letter in "abcdef"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert max(over) <= BUDGET_BYTES
    statistics = store.statistics()
    assert statistics.heap_bytes_peak <= BUDGET_BYTES
    assert (statistics.values, statistics.heap_bytes, statistics.file_bytes, statistics.pinned) == (0, 0, 0, 0)
    assert statistics.spilled


@pytest.mark.parametrize("act", ["release", "pin", "get"])
def test_a_value_that_is_wanted_while_it_leaves_is_served_from_memory(tmp_path: Path, act: str) -> None:
    encoding, encoded = threading.Event(), threading.Event()

    def encode(text: str) -> list[bytes]:
        if text.startswith("slow"):
            encoding.set()
            assert encoded.wait(60)
        return [text.encode()]

    store = ValueStore(encode=encode, decode=decode_text, budget_bytes=1000, spill=tmp_path)
    value = "slow" + text_of(596)
    slow = store.put(value, 600)
    other: list[int] = []
    putting = threading.Thread(target=lambda: other.append(store.put(text_of(600), 600)))
    putting.start()
    assert encoding.wait(60)
    assert store.get(slow) is value
    if act == "release":
        store.release(slow)
    elif act == "pin":
        store.pin(slow)
    encoded.set()
    putting.join()
    assert store.get(other[0]) == text_of(600)
    statistics = store.statistics()
    assert statistics.heap_bytes == 600
    match act:
        case "release":
            assert (statistics.values, statistics.file_bytes) == (1, 0)
        case "pin":
            assert store.get(slow) is value
        case _:
            assert store.get(slow) == value


def test_two_who_read_a_spilled_value_at_once_get_the_same_object(tmp_path: Path) -> None:
    together = threading.Barrier(2)

    def decode(pieces: object) -> str:
        together.wait(60)  # both have found it in the file
        return decode_text(pieces)

    store = ValueStore(encode=encode_text, decode=decode, budget_bytes=2000, spill=tmp_path)
    handle = store.put(text_of(600), 600)
    store.release(store.put(text_of(1900), 1900))
    got: list[object] = []
    readers = [threading.Thread(target=lambda: got.append(store.get(handle))) for _ in range(2)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert got[0] is got[1]
    assert store.statistics().heap_bytes == 600


def test_a_value_that_is_released_while_it_is_read_is_read_and_gone(tmp_path: Path) -> None:
    handles: list[int] = []

    def decode(pieces: object) -> str:
        store.release(handles[0])
        return decode_text(pieces)

    store = ValueStore(encode=encode_text, decode=decode, budget_bytes=1000, spill=tmp_path)
    handles.append(store.put(text_of(600), 600))
    store.release(store.put(text_of(600), 600))
    assert store.get(handles[0]) == text_of(600)
    assert store.statistics().values == store.statistics().heap_bytes == store.statistics().file_bytes == 0
