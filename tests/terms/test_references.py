"""References: leaves that stand for values that somebody else keeps."""

import gc
import weakref
from collections.abc import Callable, Mapping
from typing import TypeVar

import pytest
from hypothesis import example, given, settings

from echoic.errors import EncodeError, MalformedTermError
from echoic.terms import (
    Annotated,
    Placeholder,
    Reference,
    ReferenceKind,
    Term,
    TermList,
    Value,
    ValueNeeded,
    accepts,
    from_placeholder,
    match,
    parse_text,
    part_of,
    plain,
    present,
    references_in,
    refers,
    same,
    spelled,
    to_placeholder,
    unspelled,
    with_values,
    write_text,
)
from echoic.terms.appendix_b import encode_appendix_b
from echoic.terms.saf import encode_saf
from echoic.terms.taf import write_taf
from tests.terms.cut_values import Owner, cuts
from tests.terms.values import deep, doubled, exactly, uncollected, values

Answer = TypeVar("Answer")
Cut = tuple[Value, Value, Mapping[Reference, Value]]

TEXT = Reference(1, 7, (0, 2), ReferenceKind.STR, 5)
BLOB = Reference(1, 8, (), ReferenceKind.BLOB, 3)
LIST = Reference(2, 1, (0,), ReferenceKind.LIST, 900, count=2)
CALL = Reference(2, 1, (1,), ReferenceKind.APPLICATION, 900, name="f", count=2)
QUOTED = Reference(2, 1, (1,), ReferenceKind.QUOTED, 900, name="f", count=2)


def asked(question: Callable[[], Answer]) -> tuple[Answer | None, Reference | None]:
    """Return the answer to a question, or the reference whose value it takes."""
    try:
        return question(), None
    except ValueNeeded as needed:
        return None, needed.reference


def test_a_reference_is_one_object_and_differs_by_each_field() -> None:
    assert Reference(1, 7, (0, 2), ReferenceKind.STR, 5) is TEXT
    others = [
        Reference(2, 7, (0, 2), ReferenceKind.STR, 5),
        Reference(1, 8, (0, 2), ReferenceKind.STR, 5),
        Reference(1, 7, (0,), ReferenceKind.STR, 5),
        Reference(1, 7, (0, 2), ReferenceKind.BLOB, 5),
        Reference(1, 7, (0, 2), ReferenceKind.STR, 6),
        Reference(1, 7, (0, 2), ReferenceKind.STR, 5, name="f"),
        Reference(1, 7, (0, 2), ReferenceKind.STR, 5, count=1),
    ]
    assert len({TEXT, *others}) == 8
    assert QUOTED is not CALL


@pytest.mark.parametrize("owner", [-1, True, "1"])
def test_a_reference_with_numbers_that_are_none_is_refused(owner: int) -> None:
    with pytest.raises(EncodeError, match="a reference of the numbers"):
        Reference(owner, 1, (), ReferenceKind.STR, 1)
    with pytest.raises(EncodeError, match="a reference of the numbers"):
        Reference(1, 1, (owner,), ReferenceKind.STR, 1)


def test_the_signature_is_all_that_is_known_of_a_value() -> None:
    assert [str(each.signature) for each in (TEXT, BLOB, LIST)] == ["str", "blob", "list"]
    assert (str(CALL.signature), str(QUOTED.signature)) == ("f(<term>,<term>)", '"f"(<term>,<term>)')
    assert str(Reference(1, 1, (), ReferenceKind.APPLICATION, 9, name="f", count=1 << 40).signature) == "f"


def test_a_reference_is_forgotten_when_nobody_holds_it() -> None:
    with uncollected():
        reference = Reference(99, 99, (), ReferenceKind.STR, 1)
        gone = weakref.ref(reference)
        inside = weakref.ref(Term("f", reference))
        with pytest.raises(ValueNeeded):
            same(Term("f", reference), Term("f", "x"))
        with pytest.raises(ValueNeeded):
            accepts(
                parse_text("[f(int),f(str)]"),
                TermList(Term("f", 1), Reference(99, 98, (), CALL.kind, 1, name="f", count=1)),
            )
        del reference
        assert gone() is None
        assert inside() is None


@given(cuts())
def test_references_are_found_and_replaced_at_any_depth(cut: Cut) -> None:
    value, skeleton, kept = cut
    assert refers(skeleton) is bool(kept)
    assert exactly(with_values(skeleton, kept), value)
    assert references_in(value) == ()
    assert with_values(skeleton, {}) is skeleton or not refers(skeleton)


def test_references_stand_in_the_order_of_the_text() -> None:
    value = Term("f", TermList(LIST, TEXT), Annotated(CALL, Term("n", BLOB)), TEXT, Placeholder(QUOTED))
    assert references_in(value) == (LIST, TEXT, CALL, BLOB, QUOTED)
    assert references_in(plain(value)) == (LIST, TEXT, CALL, QUOTED)
    assert refers(Annotated(1, TEXT))
    assert not refers(plain(Annotated(1, TEXT)))


def test_a_value_with_annotations_takes_the_place_of_one_that_has_some() -> None:
    there = Annotated(TEXT, Term("one"))
    assert with_values(there, {TEXT: Annotated("x", Term("two"))}) is Annotated("x", Term("two"), Term("one"))


def test_what_is_present_is_itself() -> None:
    assert present(Term("f", 1)) is Term("f", 1)
    with pytest.raises(ValueNeeded, match="is needed") as raised:
        present(Term("f", 1, TEXT, BLOB))
    assert raised.value.reference is TEXT


def test_a_path_leads_to_a_part() -> None:
    value = TermList(Term("f", 1, Annotated(TermList("x", "y"), Term("n", 2)), Placeholder(Term("g", 3))))
    assert part_of(value, ()) is value
    assert part_of(value, (0, 0)) == 1
    assert part_of(value, (0, 1, 0, 1)) == "y"
    assert part_of(value, (0, 1, 1, 0)) == 2
    assert part_of(value, (0, 2, 0, 0)) == 3
    for path in [(1,), (0, 3), (0, 0, 0), (-1,), (0, 1, 2)]:
        with pytest.raises(LookupError, match="at step"):
            part_of(value, path)


@pytest.mark.parametrize("reference", [TEXT, BLOB, LIST, CALL, QUOTED])
def test_a_placeholder_says_all_of_a_reference(reference: Reference) -> None:
    assert from_placeholder(to_placeholder(reference)) is reference
    assert parse_text(str(reference)) is to_placeholder(reference)
    assert parse_text(write_text(Term("f", reference))) is Term("f", to_placeholder(reference))


def test_the_placeholder_is_for_people() -> None:
    assert str(TEXT) == '<reference(1,7,[0,2],str,"",0,5)>'
    assert str(CALL) == '<reference(2,1,[1],appl,"f",2,900)>'


@pytest.mark.parametrize(
    "text",
    [
        "<int>",
        "<reference>",
        '<reference(1,7,[0,2],str,"",0)>',
        '<reference(1,7,[0,2],int,"",0,5)>',
        '<reference(1,7,[a],str,"",0,5)>',
        '<reference(-1,7,[],str,"",0,5)>',
        '<reference(1,7,[],str,"",0,true)>',
        '<reference(1,7,[],str,"",0.5,5)>',
        '<"reference"(1,7,[],str,"",0,5)>',
    ],
)
def test_other_placeholders_are_no_references(text: str) -> None:
    placeholder = parse_text(text)
    assert isinstance(placeholder, Placeholder)
    with pytest.raises(MalformedTermError, match="no reference"):
        from_placeholder(placeholder)


@given(cuts())
@example((1, Placeholder(Term("reference", TEXT)), {}))
@example((1, Placeholder(Term("reference", to_placeholder(TEXT))), {}))
@example((1, Term("f", to_placeholder(TEXT), TEXT, Placeholder(Term("reference", Placeholder(Term("reference"))))), {}))
def test_what_is_spelled_has_no_references_and_is_read_back(cut: Cut) -> None:
    _, skeleton, _ = cut
    written = spelled(skeleton)
    assert not refers(written)
    assert exactly(unspelled(written), skeleton)
    encode_saf(written)


def test_a_log_with_a_placeholder_that_was_not_spelled_is_refused() -> None:
    with pytest.raises(MalformedTermError, match="no reference"):
        unspelled(Term("f", Placeholder(Term("reference", 1, 2))))


@pytest.mark.parametrize("reference", [TEXT, LIST])
def test_the_codecs_refuse_a_reference(reference: Reference) -> None:
    for value in (reference, Term("f", TermList(reference)), Annotated(1, reference)):
        for write in (encode_saf, write_taf, encode_appendix_b):
            with pytest.raises(EncodeError):
                write(value)


@settings(max_examples=400)
@given(cuts(), cuts(owner=2))
def test_two_are_the_same_if_their_values_are_or_nobody_can_tell(left: Cut, right: Cut) -> None:
    value, skeleton, _ = left
    other, another, _ = right
    for one, two, answer in (
        (skeleton, another, same(value, other)),
        (skeleton, other, same(value, other)),
        (skeleton, value, True),
        (value, skeleton, True),
        (skeleton, skeleton, True),
    ):
        found, needed = asked(lambda one=one, two=two: same(one, two))
        assert found is answer or needed in references_in(one) + references_in(two)


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        (TEXT, "1234"),
        (TEXT, "äöü"),
        (TEXT, b"12345"),
        (TEXT, 5),
        (TEXT, BLOB),
        (TEXT, Reference(1, 7, (), ReferenceKind.STR, 6)),
        (BLOB, b"12"),
        (LIST, TermList(1)),
        (LIST, CALL),
        (CALL, Term("g", 1, 2)),
        (CALL, Term("f", 1)),
        (CALL, Term("f", 1, 2, quoted=True)),
        (CALL, QUOTED),
        (CALL, Reference(1, 1, (), ReferenceKind.APPLICATION, 1, name="f", count=3)),
        (Term("f", TEXT, 1), Term("f", "12345", 2)),
        (Term("f", 1, TEXT), Term("f", True, "12345")),
        (Term("f", TEXT), Placeholder(Term("f", TEXT))),
    ],
)
def test_what_cannot_be_the_same_needs_no_value(reference: Value, value: Value) -> None:
    assert not same(reference, value)
    assert not same(value, reference)


@pytest.mark.parametrize("value", ["12345", "äö1", Reference(3, 3, (), ReferenceKind.STR, 5), Annotated("12345", 1)])
def test_what_could_be_the_same_needs_the_value(value: Value) -> None:
    for one, other in ((TEXT, value), (value, TEXT), (Term("f", 1, TEXT), Term("f", 1, value))):
        with pytest.raises(ValueNeeded):
            same(one, other)


@pytest.mark.parametrize(
    ("type_", "reference", "answer"),
    [
        ("str", TEXT, True),
        ("term", TEXT, True),
        ("blob", TEXT, False),
        ("bstr", BLOB, True),
        ("list", LIST, True),
        ("list(term)", LIST, True),
        ("list(int)", LIST, None),
        ("list(int)", TEXT, False),
        ("[term,<term>]", LIST, True),
        ("[int,term]", LIST, None),
        ("[int]", LIST, False),
        ("f", CALL, True),
        ("g", CALL, False),
        ("f(term,term)", CALL, True),
        ("f(int,term)", CALL, None),
        ("f(int)", CALL, False),
        ("f", QUOTED, False),
        ('"f"', QUOTED, True),
        ('"f"(term,term)', QUOTED, True),
        ('"12345"', TEXT, None),
        ('"123"', TEXT, False),
        ("int", TEXT, False),
        ("int", CALL, False),
    ],
)
def test_a_reference_is_of_a_type_by_what_it_says_of_itself(
    type_: str, reference: Reference, answer: bool | None
) -> None:
    if answer is None:
        with pytest.raises(ValueNeeded):
            accepts(parse_text(type_), reference)
    else:
        assert accepts(parse_text(type_), reference) is answer
    # What is wrong elsewhere decides without the value.
    assert not accepts(TermList(parse_text(type_), Term("int")), TermList(reference, "no"))


@given(cuts(), values)
def test_a_value_is_of_a_type_with_references_as_without(cut: Cut, type_: Value) -> None:
    value, skeleton, kept = cut
    for wanted in (type_, value, skeleton, Placeholder(skeleton)):
        found, needed = asked(lambda wanted=wanted: accepts(wanted, skeleton))
        assert needed in kept or found is accepts(with_values(wanted, kept), value)


@given(cuts(), values)
def test_patterns_take_references_as_their_values(cut: Cut, pattern: Value) -> None:
    value, skeleton, kept = cut
    value, skeleton = TermList(value), TermList(skeleton)
    for wanted in (TermList(pattern), value, "[f(<str>,<list>)]", "[[<term>,<blob>,<list>]]", "[<appl>]"):
        found, needed = asked(lambda wanted=wanted: match(skeleton, wanted))
        if needed is not None:
            assert needed in kept
            continue
        taken = match(value, wanted)
        assert (found is None) is (taken is None)
        for one, other in zip(found or (), taken or (), strict=True):
            assert exactly(with_values(one, kept), other)


def test_deep_and_shared_values_are_walked_without_end() -> None:
    with uncollected():
        owner = Owner()
        reference = owner.reference("x")
        for value in (deep(20_000), doubled(40)):
            whole = Term("pair", value, "x")
            cut = Term("pair", value, reference)
            assert references_in(cut) == (reference,)
            assert owner.whole(cut) is whole
            assert not same(cut, Term("pair", value, "yy"))
        value, other = reference, "x"
        for _ in range(40):
            value, other = Term("pair", value, value), Term("pair", other, other)
        assert references_in(value) == (reference,)
        assert owner.whole(value) is other
        assert unspelled(spelled(value)) is value
        with pytest.raises(ValueNeeded):
            same(value, other)
    gc.collect()
