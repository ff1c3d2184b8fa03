"""Matching and functions with references: as with their values, or they say which value they need."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.scripts.graph import (
    EVALUATION_ERRORS,
    FUNCTIONS,
    Bind,
    Bindings,
    Pattern,
    Slot,
    Template,
    agree,
    consistent,
    fits,
    match,
    match_all,
    unify,
)
from echoic.scripts.graph.atoms import heads_of
from echoic.scripts.graph.expressions import _checked
from echoic.scripts.graph.templates import build, head_of
from echoic.terms import (
    UNDEFINED,
    Annotated,
    Placeholder,
    Reference,
    ReferenceKind,
    Term,
    TermList,
    Value,
    ValueNeeded,
    plain,
    refers,
)
from tests.terms.cut_values import Owner

INT, STR, ANY, LIST, BLOB, F = (Term(name) for name in ("int", "str", "term", "list", "blob", "f"))

leaves = st.sampled_from([0, 1.5, "s", "t", "long", b"s", UNDEFINED, Term("a"), True])
types = st.sampled_from([INT, STR, ANY, LIST, BLOB, F, Term("list", STR), Term("f", INT), TermList(STR, ANY)])


def nested(parts: st.SearchStrategy[Pattern]) -> st.SearchStrategy[Pattern]:
    return st.builds(build, st.sampled_from(["f", "g", None]), st.lists(parts, max_size=3))


values = st.recursive(leaves, nested, max_leaves=6).map(lambda value: value)
noted = values.map(lambda value: Annotated(value, Term("note", "s")))
slots = st.lists(values | noted | st.none(), min_size=4, max_size=4)
patterns = st.recursive(
    leaves | st.builds(Slot, st.integers(0, 3)) | st.builds(Bind, st.integers(0, 3), types) | types.map(Placeholder),
    nested,
    max_leaves=6,
)


class Cutting:
    """One owner for all values of a test, and chance."""

    def __init__(self, data: st.DataObject) -> None:
        self.owner = Owner()
        self._chance = data.draw(st.randoms(use_true_random=False))

    def cut(self, value: Value) -> Value:
        return self.owner.cut(value, lambda: self._chance.random() < 0.35)

    def slots(self, values: list[Value | None]) -> list[Value | None]:
        return [None if value is None else self.cut(value) for value in values]

    def pattern(self, pattern: Pattern) -> Pattern:
        if isinstance(pattern, Template):
            return Template(pattern.name, tuple(self.pattern(part) for part in pattern.arguments))
        return pattern if isinstance(pattern, Slot | Bind) else self.cut(pattern)

    def whole(self, bindings: Bindings) -> list[tuple[int, Value]]:
        return [(index, self.owner.whole(value)) for index, value in bindings]


def like(pattern: Pattern, draw: st.DataObject) -> Pattern:
    """Return something that has a good chance to match."""
    if isinstance(pattern, Template | Term | TermList) and draw.draw(st.integers(0, 3)):
        parts = pattern.arguments if isinstance(pattern, Template) else tuple(getattr(pattern, "args", pattern))
        name = None if isinstance(pattern, TermList) else pattern.name
        return build(name, [like(part, draw) for part in parts])
    return draw.draw(st.just(pattern) | patterns | values | noted)


@settings(max_examples=150, deadline=None)
@given(patterns, slots, slots, st.data())
def test_patterns_match_with_references_as_with_values(
    left: Pattern, left_slots: list[Value | None], right_slots: list[Value | None], data: st.DataObject
) -> None:
    cutting = Cutting(data)
    right = like(left, data)
    lefts: Bindings = []
    rights: Bindings = []
    answer = unify(left, left_slots, right, right_slots, lefts, rights) and consistent(lefts) and consistent(rights)
    mine: Bindings = []
    theirs: Bindings = []
    one, other = cutting.pattern(left), cutting.pattern(right)
    one_slots, other_slots = cutting.slots(left_slots), cutting.slots(right_slots)
    heads = [
        heads_of((pattern, 0), values)
        for pattern, values in ((one, one_slots), (other, other_slots), (left, left_slots), (right, right_slots))
    ]
    if answer:
        # Who matches is found: by one head, or by that of anything, with references on either side or on both.
        for mine_, theirs_ in ((0, 1), (0, 3), (2, 1)):
            for head, another in zip(heads[mine_], heads[theirs_], strict=True):
                assert head is None or another is None or head == another
    try:
        found = unify(one, one_slots, other, other_slots, mine, theirs) and consistent(mine) and consistent(theirs)
    except ValueNeeded:
        return
    assert found is answer
    if answer:
        assert cutting.whole(mine) == lefts
        assert cutting.whole(theirs) == rights


@settings(max_examples=100, deadline=None)
@given(patterns, slots, st.data())
def test_a_value_with_references_is_taken_as_the_value(
    pattern: Pattern, own: list[Value | None], data: st.DataObject
) -> None:
    cutting = Cutting(data)
    value = data.draw(values | noted)
    if isinstance(pattern, Term | TermList) and data.draw(st.booleans()):
        value = plain(pattern)
    bindings: Bindings = []
    answer = match(pattern, own, value, bindings)
    mine: Bindings = []
    try:
        found = match(cutting.pattern(pattern), cutting.slots(own), cutting.cut(value), mine)
    except ValueNeeded:
        return
    assert found is answer
    if answer:
        assert cutting.whole(mine) == bindings


@given(values, values, st.data())
def test_closed_patterns_are_compared_as_with_values(one: Value, other: Value, data: st.DataObject) -> None:
    cutting = Cutting(data)
    for compare in (fits, agree):
        for left, right in ((one, other), (one, one)):
            try:
                assert compare(cutting.cut(left), cutting.cut(right)) is compare(left, right)
            except ValueNeeded:
                continue


def test_nothing_is_needed_where_the_signature_is_enough() -> None:
    owner = Owner()
    text, table = owner.reference("a text"), owner.reference(TermList(1, 2))
    bound: Bindings = []
    assert match(Template("save", (Bind(0, STR), Bind(1, LIST))), (), Term("save", text, table), bound)
    assert bound == [(0, text), (1, table)]
    assert fits(Term("save", Placeholder(STR), Placeholder(ANY)), Term("save", text, table))
    assert not fits(Term("save", Placeholder(INT), "b"), Term("save", text, text))
    assert match(Slot(0), (text,), text, [])


def test_what_differs_elsewhere_decides_without_a_value() -> None:
    owner = Owner()
    text = owner.reference("x")
    assert not match(Template("f", ("x", 1)), (), Term("f", text, 2), [])
    assert not match_all(("x", 1), (), (text, 2), [])
    assert not unify(Template("f", ("x", Bind(0, INT))), (), Template("f", (Slot(0), "no")), (text,), [], [])
    with pytest.raises(ValueNeeded):
        match(Template("f", ("x", 1)), (), Term("f", text, 1), [])
    with pytest.raises(ValueNeeded):
        unify(Template("f", ("x", Bind(0, INT))), (), Template("f", (Slot(0), 1)), (text,), [], [])


def test_a_template_needs_what_it_looks_into() -> None:
    owner = Owner()
    call, elements = owner.reference(Term("f", 1, 2)), owner.reference(TermList(1, 2))
    for template, reference in (
        (Template("f", (Bind(0, INT), 2)), call),
        (Template(None, (Bind(0, INT), 2)), elements),
    ):
        with pytest.raises(ValueNeeded):
            match(template, (), reference, [])
    assert not match(Template("g", (Bind(0, INT), 2)), (), call, [])
    assert not match(Template("f", (Bind(0, INT),)), (), call, [])
    assert not match(Template("f", (Bind(0, INT), 2)), (), owner.reference(Term("f", 1, 2, quoted=True)), [])


def test_heads_of_references_are_those_of_the_values_or_any() -> None:
    owner = Owner()
    for value in (Term("f", 1, 2), TermList(1, 2)):
        reference = owner.reference(value)
        assert head_of(reference, ()) == head_of(value, ())
        assert heads_of((reference,), ()) == (head_of(value, ()), None)
        assert heads_of((Annotated(reference, 1),), ()) == (head_of(value, ()), None)
    assert head_of(owner.reference("text"), ()) is None
    assert heads_of((Term("f", owner.reference("text")),), ()) == (("f", 1), None)


arguments = st.one_of(
    values, noted, st.lists(values, max_size=3).map(lambda parts: TermList(*parts)), st.integers(0, 3)
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(name for name, each in FUNCTIONS.items() if not each.special)), st.data())
def test_functions_give_with_references_what_they_give_with_values(name: str, data: st.DataObject) -> None:
    function = FUNCTIONS[name]
    cutting = Cutting(data)
    given_ = [data.draw(arguments) for _ in function.parameters]
    if len(given_) == 2 and data.draw(st.booleans()):
        given_[1] = given_[0]
    cut = [cutting.cut(value) for value in given_]
    answer: Value | str
    try:
        answer = _checked(function, list(given_))
    except EVALUATION_ERRORS as error:
        answer = type(error).__name__
    try:
        found = cutting.owner.whole(_checked(function, cut))
    except EVALUATION_ERRORS as error:
        found = type(error).__name__
    except ValueNeeded:
        assert any(map(refers, cut))
        return
    assert type(found) is type(answer)
    assert found == answer or found is answer


@pytest.mark.parametrize(
    ("name", "given_", "answer"),
    [
        ("size", ("L",), 2),
        ("is-list", ("L",), True),
        ("is-str", ("S",), True),
        ("is-appl", ("F",), True),
        ("is-int", ("S",), False),
        ("is-empty", ("L",), False),
        ("fun", ("F",), "f"),
        ("fun", ("S",), UNDEFINED),
        ("first", ("P",), "S"),
        ("first", ("L",), None),
        ("args", ("F",), None),
        ("concat", ("S", "S"), None),
        ("join", ("L", "L"), None),
        ("equal", ("S", "S"), True),
        ("member", ("S", "P"), True),
    ],
)
def test_functions_look_into_a_reference_only_where_they_must(
    name: str, given_: tuple[str, ...], answer: Value | None
) -> None:
    text = Reference(1, 1, (), ReferenceKind.STR, 9)
    there: dict[str, Value] = {
        "S": text,
        "L": Reference(1, 2, (), ReferenceKind.LIST, 9, count=2),
        "F": Reference(1, 3, (), ReferenceKind.APPLICATION, 9, name="f", count=2),
        "P": TermList(text, 1),
    }
    values_ = [there[each] for each in given_]
    if answer is None:
        with pytest.raises(ValueNeeded):
            _checked(FUNCTIONS[name], values_)
    else:
        assert _checked(FUNCTIONS[name], values_) == (text if answer == "S" else answer)


def test_tables_are_changed_around_references() -> None:
    text = Reference(1, 1, (), ReferenceKind.STR, 9)
    table = _checked(FUNCTIONS["put"], [TermList(), Term("key"), text])
    assert _checked(FUNCTIONS["get"], [table, Term("key")]) is text
    assert _checked(FUNCTIONS["replace"], [table, 1, text]) is TermList(text)
    assert _checked(FUNCTIONS["join"], [table, text]) is TermList(TermList(Term("key"), text), text)
