"""What is cut, and that it can be put together again."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import EncodeError, MalformedFrameError, MalformedTermError
from echoic.terms import (
    Annotated,
    Placeholder,
    Reference,
    ReferenceKind,
    Term,
    TermList,
    Value,
    part_of,
    references_in,
    with_values,
)
from echoic.toolbus.references.cutting import (
    LEAF_BYTES,
    NODES_MAX,
    TEXT_PIECE_CHARACTERS,
    Cut,
    cut,
    pieces_of,
    sign,
    unsign,
    value_from,
)
from echoic.toolbus.references.words import PATH_MAX

KIB = 1024
THRESHOLD = 256 * KIB

scalars = st.integers() | st.floats(allow_nan=False) | st.text(max_size=30) | st.booleans() | st.binary(max_size=30)
names = st.from_regex(r"[a-z][a-z-]{0,5}", fullmatch=True).filter(lambda name: name not in ("true", "false"))
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: (
        st.builds(lambda name, parts: Term(name, *parts), names, st.lists(inner, max_size=4))
        | st.builds(lambda name, parts: Term(name, *parts, quoted=True), names, st.lists(inner, min_size=1, max_size=2))
        | st.lists(inner, max_size=4).map(lambda parts: TermList(*parts))
        | st.builds(lambda part, more: part if isinstance(part, Annotated) else Annotated(part, more), inner, inner)
    ),
    max_leaves=20,
)
said = st.lists(values, max_size=3).map(tuple)


def put_together(made: Cut, whole: tuple[Value, ...]) -> tuple[Value, ...]:
    """The skeleton with each part taken from where its path leads, as its owner does it."""
    root = TermList(*whole)
    found = {reference: part_of(root, reference.path) for reference in (*made.references, *made.inline)}
    assert set(found) == set(references_in(TermList(*made.values)))
    return tuple(with_values(value, found) for value in made.values)


@given(said, st.sampled_from([0, 1, 5, 20, THRESHOLD, math.inf]))
def test_what_is_cut_can_be_put_together(whole: tuple[Value, ...], threshold: float) -> None:
    made = cut(whole, threshold, 3, 17)
    again = put_together(made, whole)
    assert TermList(*again) is TermList(*whole)
    assert all((reference.owner, reference.variable) == (3, 17) for reference in (*made.references, *made.inline))
    assert all(reference.size >= threshold for reference in made.references)
    if threshold >= THRESHOLD:
        assert made == Cut(whole)
        assert made.values is whole


@given(said)
def test_with_the_threshold_0_every_string_and_blob_is_a_reference(whole: tuple[Value, ...]) -> None:
    waiting = list(cut(whole, 0, 1, 1).values)
    while waiting:
        match waiting.pop():
            case str() | bytes():
                pytest.fail("a leaf was not cut")
            case Term(args=parts) | TermList(elements=parts):
                waiting += parts
            case Annotated(value=value, annotations=annotations):
                waiting += (value, *annotations)


@given(said, st.sampled_from([0, 5]))
def test_references_travel_as_places(whole: tuple[Value, ...], threshold: int) -> None:
    made = cut(whole, threshold, 3, 17)
    signed, references = sign(made.values)
    assert references == made.references
    assert not references_in(TermList(*signed))
    assert TermList(*unsign(signed, references)) is TermList(*made.values)


@given(values.filter(lambda value: isinstance(value, str | bytes | Term | TermList)))
def test_content_arrives_as_it_was_sent(value: Any) -> None:
    kinds = {str: ReferenceKind.STR, bytes: ReferenceKind.BLOB, TermList: ReferenceKind.LIST}
    kind = kinds.get(type(value), ReferenceKind.APPLICATION)
    if isinstance(value, Term) and value.quoted:
        kind = ReferenceKind.QUOTED
    pieces = pieces_of(value)
    joined = b"".join(pieces)
    for received in (pieces, [joined], [joined[:1], joined[1:]], [bytearray(joined)]):
        assert value_from(kind, received) == value


@pytest.mark.parametrize(("size", "where"), [(LEAF_BYTES - 1, "here"), (LEAF_BYTES, "inline"), (THRESHOLD, "there")])
def test_t4_the_threshold_decides_where_a_leaf_is(size: int, where: str) -> None:
    for leaf, kind in (("x" * size, ReferenceKind.STR), (bytes(size), ReferenceKind.BLOB)):
        whole = (Term("f", 1, leaf),)
        made = cut(whole, THRESHOLD, 3, 17)
        reference = Reference(3, 17, (0, 1), kind, size)
        expected = {
            "here": Cut(whole),
            "inline": Cut((Term("f", 1, reference),), (), (reference,)),
            "there": Cut((Term("f", 1, reference),), (reference,)),
        }
        assert made == expected[where]


def test_a_string_has_the_size_of_its_utf_8() -> None:
    text = "é" * (THRESHOLD // 2)
    (reference,) = cut((text,), THRESHOLD, 1, 1).references
    assert reference.size == len(text.encode()) == THRESHOLD
    assert cut((text[1:],), THRESHOLD, 1, 1).references == ()


def test_with_an_infinite_threshold_large_leaves_are_put_with_their_value() -> None:
    made = cut((b"x" * 10**6,), math.inf, 1, 1)
    assert made.references == ()
    assert [reference.size for reference in made.inline] == [10**6]


def test_a_list_of_many_is_cut_as_a_whole_and_what_is_around_it_is_not() -> None:
    numbers = TermList(*range(100_000))
    made = cut((Term("val", numbers, "x"),), THRESHOLD, 3, 17)
    (reference,) = made.references
    assert made.values == (Term("val", reference, "x"),)
    assert (reference.kind, reference.count, reference.path) == (ReferenceKind.LIST, 100_000, (0, 0))
    assert THRESHOLD <= reference.size <= 10**6


@pytest.mark.parametrize("quoted", [False, True])
def test_an_application_of_many_arguments_tells_its_name(quoted: bool) -> None:
    made = cut((TermList(Term("f", *["x" * 100] * 5000, quoted=quoted)),), THRESHOLD, 3, 17)
    (reference,) = made.references
    kind = ReferenceKind.QUOTED if quoted else ReferenceKind.APPLICATION
    assert (reference.kind, reference.name, reference.count) == (kind, "f", 5000)
    assert made.values == (TermList(reference),)


def test_many_large_leaves_of_one_list_are_one_reference() -> None:
    rows = TermList(*[bytes([number % 256]) * 1000 + b"%d" % number for number in range(NODES_MAX + 1)])
    made = cut((Term("rows", rows),), 500, 1, 1)
    (reference,) = made.references
    assert reference.path == (0, 0)
    few = TermList(*rows.elements[:100])
    assert len(cut((Term("rows", few),), 500, 1, 1).references) == 100


def test_lists_of_many_within_a_list_are_cut_each() -> None:
    inner = [TermList(*range(number, number + NODES_MAX + 1)) for number in range(20)]
    made = cut((TermList(*inner),), 0, 1, 1)
    assert [reference.path for reference in made.references] == [(0, number) for number in range(20)]


def test_what_is_light_is_not_cut_however_many_parts_it_has() -> None:
    whole = (TermList(*range(NODES_MAX + 1)),)
    assert cut(whole, THRESHOLD, 1, 1).values is whole


def test_names_and_numbers_are_never_cut() -> None:
    whole = (Term("n" * 10**6), 2 ** (8 * 10**6), 1.5, True, TermList(Term("m" * 10**6, 1)), Placeholder(Term("str")))
    assert cut(whole, 0, 1, 1).values is whole


def test_t19_what_is_shared_is_cut_once() -> None:
    leaf = b"x" * THRESHOLD
    pair = Term("pair", leaf, 1)
    made = cut((TermList(pair, Term("g", leaf)), pair), THRESHOLD, 1, 1)
    (reference,) = made.references
    assert reference.path == (0, 0, 0)
    assert made.values == (TermList(Term("pair", reference, 1), Term("g", reference)), Term("pair", reference, 1))


def test_a_term_that_shares_its_parts_a_hundred_times_over_is_cut_at_once() -> None:
    value: Value = TermList("x" * 100)
    for _ in range(100):
        value = TermList(value, value)
    made = cut((value,), 0, 1, 1)
    assert TermList(*put_together(made, (value,))) is TermList(value)
    assert cut((value,), THRESHOLD, 1, 1).values == (value,)


def test_a_term_may_be_as_deep_as_it_likes() -> None:
    value: Value = "x" * THRESHOLD
    for _ in range(50_000):
        value = TermList(value)
    made = cut((value,), THRESHOLD, 1, 1)
    (reference,) = made.references
    assert reference.kind is ReferenceKind.LIST
    assert len(reference.path) < PATH_MAX
    signed, references = sign(made.values)
    assert unsign(signed, references) == made.values
    assert unsign((value,), ()) == (value,)


@pytest.mark.parametrize("depth", [PATH_MAX - 3, PATH_MAX - 2, PATH_MAX - 1, PATH_MAX, PATH_MAX + 1])
@pytest.mark.parametrize("annotated", [False, True])
def test_a_path_is_no_longer_than_its_limit(depth: int, annotated: bool) -> None:
    value: Value = "x" * THRESHOLD
    for number in range(depth):
        value = TermList(Annotated(value, number) if annotated and not isinstance(value, Annotated) else value)
    whole = (value,)
    made = cut(whole, THRESHOLD, 1, 1)
    (reference,) = made.references
    assert len(reference.path) <= PATH_MAX
    assert TermList(*put_together(made, whole)) is TermList(*whole)


def test_a_string_without_utf_8_is_refused_where_it_is_said() -> None:
    with pytest.raises(EncodeError, match="utf-8"):
        cut(("\ud800" * 10**6,), 0, 1, 1)


def test_references_that_are_there_stay() -> None:
    there = Reference(9, 1, (0,), ReferenceKind.STR, 10**6)
    whole = (Term("f", there, "x" * 100),)
    made = cut(whole, 50, 1, 1)
    assert len(made.references) == 1
    assert there not in made.references
    signed, references = sign(made.values)
    assert signed == (Term("f", Placeholder(Term("reference", 0)), Placeholder(Term("reference", 1))),)
    assert references == (there, *made.references)


@pytest.mark.parametrize("argument", [0, 5, "x", Placeholder(Term("reference", 0)), Placeholder(Term("int"))])
def test_a_place_of_ones_own_comes_back_as_it_was(argument: Value) -> None:
    own, reference = Placeholder(Term("reference", argument)), Reference(9, 1, (0,), ReferenceKind.STR, 10)
    assert sign((own,)) == ((own,), ())

    values = (TermList(own, Term("f", own)), reference)
    signed, references = sign(values)
    assert references == (reference,)
    assert unsign(signed, references) == values


@pytest.mark.parametrize("number", [1, -1, 2**70, True, "0", Term("x")])
def test_a_place_must_be_of_a_reference(number: Value) -> None:
    reference = Reference(9, 1, (0,), ReferenceKind.STR, 10)
    with pytest.raises(MalformedFrameError, match="none of the 1"):
        unsign((TermList(Placeholder(Term("reference", number))),), [reference])


def test_the_pieces_of_a_large_string_are_made_when_they_are_looked_at() -> None:
    text = "aé" * TEXT_PIECE_CHARACTERS + "z"
    pieces = pieces_of(text)
    assert len(pieces) == 3
    assert pieces[-1] == b"z"
    assert [len(piece) for piece in pieces[:2]] == [3 * TEXT_PIECE_CHARACTERS // 2] * 2
    with pytest.raises(IndexError):
        pieces[3]
    assert value_from(ReferenceKind.STR, pieces) == text


def test_the_pieces_of_a_blob_are_the_blob() -> None:
    blob = bytes(10**6)
    (piece,) = pieces_of(blob)
    assert isinstance(piece, memoryview)
    assert piece.obj is blob
    assert value_from(ReferenceKind.BLOB, [blob]) is blob


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (ReferenceKind.STR, b"ab\xff"),
        (ReferenceKind.LIST, b"\x02\x01"),
        (ReferenceKind.LIST, b""),
        (ReferenceKind.LIST, b"\x04\x01"),
        (ReferenceKind.LIST, b"\x01\x00\x01f"),
        (ReferenceKind.APPLICATION, b"\x04\x00"),
        (ReferenceKind.APPLICATION, b"\x21\x01\x01f\x02\x01"),
        (ReferenceKind.QUOTED, b"\x01\x01\x01f\x02\x01"),
    ],
)
def test_content_of_another_kind_is_refused(kind: ReferenceKind, content: bytes) -> None:
    with pytest.raises(MalformedTermError):
        value_from(kind, [content])


@given(st.sampled_from(ReferenceKind), st.lists(st.binary(max_size=20), max_size=3))
def test_no_content_does_more_than_be_refused(kind: ReferenceKind, pieces: list[bytes]) -> None:
    try:
        value = value_from(kind, pieces)
    except MalformedTermError:
        return
    assert type(value) is kind.type
