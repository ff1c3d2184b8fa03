"""The binary forms: every value survives, sharing is written once, and hostile bytes are read or refused."""

import gc
import math
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from echoic.errors import EncodeError, LimitExceededError, MalformedTermError
from echoic.terms import Annotated, Placeholder, Term, TermList, Value, parse_text
from echoic.terms.appendix_b import decode_appendix_b, encode_appendix_b
from echoic.terms.baf import decode_baf
from echoic.terms.saf import (
    BlockReader,
    decode_file,
    decode_saf,
    encode_blocks,
    encode_file,
    encode_pieces,
    encode_saf,
)
from echoic.terms.term import shared_terms
from tests.terms.baf_writer import chain, encode_baf
from tests.terms.values import doubled, exactly, uncollected, values

Codec = tuple[Callable[[Value], bytes], Callable[[bytes], Value]]

CODECS: dict[str, Codec] = {
    "saf": (encode_saf, decode_saf),
    "file": (encode_file, decode_file),
    "appendix_b": (encode_appendix_b, decode_appendix_b),
}
every_codec = pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS.keys())


@every_codec
@given(value=values)
def test_every_value_survives(codec: Codec, value: Value) -> None:
    encode, decode = codec
    assert exactly(decode(encode(value)), value)


@every_codec
@given(value=values, data=st.data())
def test_bytes_that_are_cut_or_changed_are_read_or_refused(codec: Codec, value: Value, data: st.DataObject) -> None:
    encode, decode = codec
    written = bytearray(encode(value))
    for at in data.draw(st.lists(st.integers(0, len(written) - 1), max_size=3)):
        written[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(written)))
    for changed in (bytes(written), bytes(written[:cut]), bytes(written[:cut] + written[cut + 1 :])):
        try:
            decode(changed)
        except (MalformedTermError, LimitExceededError):
            pass


@every_codec
@given(value=values)
def test_bytes_that_end_too_early_are_refused(codec: Codec, value: Value) -> None:
    encode, decode = codec
    written = encode(value)
    for cut in range(len(written)) if len(written) < 60 else (0, 1, len(written) // 2, len(written) - 1):
        with pytest.raises(MalformedTermError):
            decode(written[:cut])
    with pytest.raises(MalformedTermError):
        decode(written + b"\0")


@every_codec
@given(data=st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(codec: Codec, data: bytes) -> None:
    try:
        codec[1](data)
    except (MalformedTermError, LimitExceededError):
        pass


@every_codec
def test_what_is_shared_is_written_once(codec: Codec) -> None:
    encode, decode = codec
    value = doubled(500)
    assert len(encode(value)) < 500 * 40
    assert decode(encode(value)) is value


@every_codec
def test_what_is_read_is_not_kept_after_it_is_dropped(codec: Codec) -> None:
    encode, decode = codec
    written = encode(Term("unheard-of", [Annotated(1.5, "x")], Placeholder(Term("unseen")), doubled(9)))
    gc.collect()
    before = len(shared_terms())
    decode(written)
    assert len(shared_terms()) == before


@pytest.mark.slow
@every_codec
def test_a_million_levels_survive(codec: Codec, million: Value) -> None:
    encode, decode = codec
    with uncollected():
        assert decode(encode(million)) is million


@every_codec
def test_a_value_beyond_the_limit_is_refused(codec: Codec) -> None:
    encode, decode = codec
    with pytest.raises(LimitExceededError):
        decode(encode(Term("f", "x" * 300)), bytes_max=200)  # type: ignore[call-arg]


@given(value=values, sizes=st.lists(st.integers(1, 40), min_size=1), room=st.integers(128, 200))
def test_blocks_are_read_in_pieces_of_any_size_and_what_is_behind_them_is_left(
    value: Value, sizes: list[int], room: int
) -> None:
    blocks = list(encode_blocks(value, block_bytes_max=room))
    assert all(2 < len(block) <= room + 2 for block in blocks)
    stream = b"".join(blocks) + b"next"
    reader, at, turn = BlockReader(), 0, 0
    while not reader.complete:
        piece = stream[at : at + sizes[turn % len(sizes)]]
        at += reader.receive(piece)
        turn += 1
    assert stream[at:] == b"next"
    assert exactly(reader.value, value)
    assert reader.receive(b"next") == 0


def test_names_and_blobs_go_on_in_the_next_block_and_nothing_else_does() -> None:
    value = Term("f", "x" * 200_000, b"y" * 200_000, 1 << 2_000_000, "z" * 65_536)
    blocks = list(encode_blocks(value))
    assert {len(block) for block in blocks[:-1]} == {65_538}
    assert blocks[0][:2] == b"\0\0"
    assert decode_file(b"?" + b"".join(blocks)) is value
    with pytest.raises(MalformedTermError, match="cut off"):
        BlockReader().receive(b"\x02\0\x01\x01" + b"\x03\0\x01f\x01")  # a symbol's counts on both sides
    with pytest.raises(MalformedTermError, match="behind a term"):
        BlockReader().receive(b"\x03\0\x02\x01\x02")
    for size in (1, 127, 65_537):
        with pytest.raises(EncodeError):
            list(encode_blocks(value, block_bytes_max=size))
    with pytest.raises(MalformedTermError, match="cut off"):
        _ = BlockReader().value


def test_names_are_written_in_the_encoding_that_is_asked_for() -> None:
    value = Term("Zürich", "é")
    assert b"Z\xfcrich" in encode_saf(value, encoding="latin-1")
    assert decode_saf(encode_saf(value, encoding="latin-1"), encoding="latin-1") is value
    with pytest.raises(MalformedTermError, match="is not utf-8"):
        decode_saf(encode_saf(value, encoding="latin-1"))
    with pytest.raises(EncodeError, match="has no latin-1"):
        encode_saf("€", encoding="latin-1")
    for encode in (encode_saf, encode_appendix_b):
        with pytest.raises(EncodeError):
            encode(Term("f", "\ud800"))


def test_large_blobs_are_not_copied_before_they_are_sent() -> None:
    blob = bytes(1_000_000)
    (view,) = [piece for piece in encode_pieces(Term("f", blob)) if isinstance(piece, memoryview)]
    assert view.obj is blob


@pytest.mark.parametrize(
    ("hexadecimal", "told"),
    [
        ("", "cut off"),
        ("00", "kind 0"),
        ("07", "kind 7"),
        ("8000", "is not there"),
        ("04018000", "is not there"),  # a list in itself
        ("0402020180", "cut off"),
        ("04020201 8002", "is not there"),
        ("4100", "symbol 0 of 0"),
        ("04ffffffff0f", "cut off"),
        ("01ffffffff0f0161", "cut off"),
        ("06ffffff7f00", "cut off"),
        ("02ffffffff1f", "more than 32 bits"),
        ("028080808080 00", "more than 32 bits"),
        ("2100 02 c328", "is not utf-8"),
        ("1201 0201", "annotations"),
        ("1201 0400", "annotations"),
        ("1201 1401 0201 0401 0201", "annotations"),  # annotations that have annotations
        ("0301", "cut off"),
        ("08 00000000000000", "cut off"),
        ("05", "cut off"),
        ("0201 00", "1 bytes behind"),
    ],
)
def test_hostile_bytes_are_refused(hexadecimal: str, told: str) -> None:
    with pytest.raises(MalformedTermError, match=told):
        decode_saf(bytes.fromhex(hexadecimal))


def test_a_length_is_not_believed_before_the_bytes_are_there() -> None:
    with pytest.raises(LimitExceededError):
        BlockReader(bytes_max=1000).receive(b"\x06\0\x06\xff\xff\xff\x7f\0")
    reader = BlockReader()
    assert reader.receive(b"\x07\0\x06\xff\xff\xff\xff\x01\0") == 9  # half a gigabyte is announced
    assert not reader.complete


def test_a_symbol_may_be_said_to_be_quoted_again() -> None:
    value = parse_text('["f"(1),"f"(2)]')
    written = encode_saf(value)
    assert written.count(b"\x41\0") == 1
    assert decode_saf(written.replace(b"\x41\0", b"\x61\0")) is value


def readable(value: Value) -> bool:
    """Whether BAF can say a value, which knows neither large integers nor other reals than decimal ones."""
    match value:
        case Term():
            special = {"[_,_]": 2, "[]": 0, "<int>": 0, "<real>": 0, "blob": 0, "<_>": 1, "{_}": 2}
            return special.get(value.name) != len(value.args) and all(map(readable, value.args))
        case TermList():
            return all(map(readable, value.elements))
        case Placeholder():
            return readable(value.type)
        case Annotated():
            return readable(value.value) and all(map(readable, value.annotations))
        case bool():
            return True
        case int():
            return -(1 << 31) <= value < 1 << 31
        case float():
            return not math.isnan(value)
        case _:
            return True


@given(values)
def test_every_value_that_baf_can_say_is_read_from_it(value: Value) -> None:
    assume(readable(value))
    assert exactly(decode_baf(encode_baf(value)), value)


@given(values, st.data())
def test_baf_that_is_cut_or_changed_is_read_or_refused(value: Value, data: st.DataObject) -> None:
    assume(readable(value))
    written = bytearray(encode_baf(value))
    for at in data.draw(st.lists(st.integers(5, len(written) - 1), max_size=3)):
        written[at] = data.draw(st.integers(0, 255))
    for changed in (bytes(written), bytes(written[: data.draw(st.integers(0, len(written)))])):
        try:
            decode_baf(changed)
        except (MalformedTermError, LimitExceededError):
            pass


@given(st.binary(max_size=60))
def test_any_baf_is_read_or_refused(data: bytes) -> None:
    try:
        decode_baf(bytes.fromhex("008baf8300") + data)
    except (MalformedTermError, LimitExceededError):
        pass


def test_hostile_baf_is_refused() -> None:
    for data, told in (
        (b"\0\x8b\xaf\x83\x01", "not a BAF file"),
        (bytes.fromhex("008baf8300 01 01  01 66 01 00 01  01 00  00"), "in itself"),
        (bytes.fromhex("008baf8300 01 01  01 66 01 00 00  01 00  00"), "term 0 of 0"),
        (bytes.fromhex("008baf8300 01 01  01 66 01 00 01  00  00"), "choice 0 of 0"),
        (bytes.fromhex("008baf8300 01 01  01 66 01 00 01  01 05  00"), "symbol 5 of 1"),
        (bytes.fromhex("008baf8300 01 01  01 66 00 00 01  07"), "symbol 7 of 1"),
        (bytes.fromhex("008baf8300 f0ffffffff 01"), "cut off"),
        (bytes.fromhex("008baf8300 01 01 f0ffffffff 01"), "cut off"),
    ):
        with pytest.raises(MalformedTermError, match=told):
            decode_baf(data)
    with pytest.raises(LimitExceededError):
        decode_baf(bytes(100), bytes_max=99)
    with pytest.raises(LimitExceededError):
        decode_baf(encode_baf(TermList(*range(20))), elements_max=19)


@pytest.mark.slow
def test_a_hundred_thousand_levels_are_read_from_baf() -> None:
    with uncollected():
        value: Value = Term("z")
        for _ in range(100_000):
            value = Term("f", value)
        assert decode_baf(chain(100_000)) is value
