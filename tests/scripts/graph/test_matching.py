"""Matching, compared with what the rules say when they are taken literally."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.scripts.graph import Bind, Bindings, Pattern, Slot, Template, agree, consistent, fits, match, unify
from echoic.scripts.graph.atoms import heads_of
from echoic.scripts.graph.templates import build, head_of
from echoic.terms import UNDEFINED, Annotated, Placeholder, Term, TermList, Value, plain

INT, STR, ANY, LIST, BOOL, F = (Term(name) for name in ("int", "str", "term", "list", "bool", "f"))
SLOTS: tuple[Value | None, ...] = (1, "s", Term("f", 1), None)

# The oracle: terms are nested tuples, matching makes a list of equations, and a variable has one value in them.

Tree = tuple[object, ...]


def tree_of(pattern: Pattern, slots: tuple[Value | None, ...], side: str) -> Tree:
    if isinstance(pattern, Slot):
        value = slots[pattern.index]
        return tree_of(UNDEFINED if value is None else value, slots, side)
    if isinstance(pattern, Annotated):
        return tree_of(pattern.value, slots, side)
    if isinstance(pattern, Bind):
        return ("bind", side, pattern.index, pattern.type)
    if isinstance(pattern, Placeholder):
        return ("place", pattern.type)
    if isinstance(pattern, Template | Term):
        parts = pattern.arguments if isinstance(pattern, Template) else pattern.args
        return ("node", pattern.name, *(tree_of(part, slots, side) for part in parts))
    if isinstance(pattern, TermList):
        return ("node", None, *(tree_of(part, slots, side) for part in pattern.elements))
    return ("leaf", type(pattern), repr(pattern))


def is_closed(tree: Tree) -> bool:
    return tree[0] != "bind" and all(is_closed(part) for part in tree[2:] if isinstance(part, tuple))


def takes(type_: Value, tree: Tree) -> bool:
    if tree == ("node", "undefined") or type_ is ANY:
        return True
    kinds = {INT: int, STR: str, BOOL: bool}
    if type_ in kinds:
        return tree[0] == "leaf" and tree[1] is kinds[type_]
    if type_ is LIST:
        return tree[0] == "node" and tree[1] is None
    assert isinstance(type_, Term)
    return tree[0] == "node" and tree[1] == type_.name


def oracle(left: Tree, right: Tree) -> dict[tuple[str, int], Tree] | None:
    bound: dict[tuple[str, int], Tree] = {}

    def solve(one: Tree, other: Tree) -> bool:
        for variable, term in ((one, other), (other, one)):
            if variable[0] == "bind":
                if not is_closed(term) or not takes(variable[3], term):  # type: ignore[arg-type]
                    return False
                key = (variable[1], variable[2])
                return bound.setdefault(key, term) == term  # type: ignore[arg-type]
        if one == other:
            return True
        for place, term in ((one, other), (other, one)):
            if place[0] == "place":
                return is_closed(term) and takes(place[1], term)  # type: ignore[arg-type]
        return (
            one[0] == other[0] == "node"
            and one[1] == other[1]
            and len(one) == len(other)
            and all(solve(a, b) for a, b in zip(one[2:], other[2:], strict=True))  # type: ignore[arg-type]
        )

    return bound if solve(left, right) else None


leaves = st.sampled_from([0, 1, 1.0, True, "s", "t", UNDEFINED, Term("a")])
types = st.sampled_from([INT, STR, ANY, LIST, BOOL, F])


def nested(parts: st.SearchStrategy[Pattern]) -> st.SearchStrategy[Pattern]:
    return st.builds(build, st.sampled_from(["f", "g", None]), st.lists(parts, max_size=3))


values = st.recursive(leaves, nested, max_leaves=6)
noted = values.map(lambda value: Annotated(value, Term("note")) if not isinstance(value, Slot) else value)
binds_ = st.builds(Bind, st.integers(0, 3), types)
patterns = st.recursive(
    leaves | st.builds(Slot, st.integers(0, 3)) | binds_ | types.map(Placeholder), nested, max_leaves=6
)


def like(pattern: Pattern, draw: st.DataObject) -> Pattern:
    """Return something that has a good chance to match."""
    if isinstance(pattern, Template | Term | TermList) and draw.draw(st.integers(0, 3)):
        parts = pattern.arguments if isinstance(pattern, Template) else tuple(getattr(pattern, "args", pattern))
        name = None if isinstance(pattern, TermList) else pattern.name
        return build(name, [like(part, draw) for part in parts])
    return draw.draw(st.just(pattern) | patterns | values | noted)


@settings(max_examples=600)
@given(patterns, st.data())
def test_two_patterns_match_as_the_rules_say(left: Pattern, data: st.DataObject) -> None:
    right = like(left, data)
    other_slots = data.draw(st.permutations(SLOTS).map(tuple))
    lefts: Bindings = []
    rights: Bindings = []
    found = unify(left, SLOTS, right, other_slots, lefts, rights) and consistent(lefts) and consistent(rights)
    wanted = oracle(tree_of(left, SLOTS, "left"), tree_of(right, other_slots, "right"))
    assert found is (wanted is not None)
    if wanted is not None:
        bound = {("left", index): tree_of(value, SLOTS, "") for index, value in lefts}
        bound |= {("right", index): tree_of(value, SLOTS, "") for index, value in rights}
        assert bound == wanted


@settings(max_examples=300)
@given(patterns, st.data())
def test_who_matches_has_heads_by_which_they_are_found(left: Pattern, data: st.DataObject) -> None:
    right = like(left, data)
    if not unify(left, SLOTS, right, SLOTS, [], []):
        return
    (head, inner), (other, other_inner) = heads_of((left,), SLOTS), heads_of((right,), SLOTS)
    assert head is None or other is None or head == other
    assert head is None or other is None or inner is None or other_inner is None or inner == other_inner


@settings(max_examples=300)
@given(patterns, st.data())
def test_one_way_is_two_ways_where_the_value_has_no_placeholder(pattern: Pattern, data: st.DataObject) -> None:
    value = data.draw(values | noted)
    one: Bindings = []
    two: Bindings = []
    assert match(pattern, SLOTS, value, one) == unify(pattern, SLOTS, value, (), two, [])  # type: ignore[arg-type]
    assert sorted(map(str, one)) == sorted(map(str, two)) or not match(pattern, SLOTS, value, [])  # type: ignore[arg-type]


def test_a_placeholder_in_a_value_does_not_match_one_way() -> None:
    assert not match(1, (), Placeholder(INT), [])
    assert not match(build("f", [Bind(0, INT), 1]), (None,), Term("f", 1, Placeholder(INT)), [])
    assert agree(1, Placeholder(INT))
    assert not fits(1, Placeholder(INT))
    assert fits(Placeholder(INT), 1)


def test_what_is_bound_keeps_its_annotations() -> None:
    noted = Annotated(7, Term("label"))
    bindings: Bindings = []
    assert match(build("f", [Bind(0, INT)]), (), Term("f", noted), bindings)
    assert bindings == [(0, noted)]
    assert match(build("f", [Slot(0)]), (7,), Term("f", noted), [])
    assert match(build("f", [Slot(0)]), (noted,), Term("f", 7), [])
    assert consistent([(0, noted), (0, 7)])
    assert head_of(noted, ()) == head_of(7, ())
    assert plain(noted) == 7


def test_a_quoted_name_is_another_name() -> None:
    assert not match(Term("f", 1), (), Term("f", 1, quoted=True), [])
    assert not match(build("f", [Bind(0, INT)]), (), Term("f", 1, quoted=True), [])


@pytest.mark.parametrize("depth", [100_000])
def test_values_may_be_deep(depth: int) -> None:
    one, other = TermList(1), TermList(Placeholder(INT))
    for _ in range(depth):
        one, other = TermList(one), TermList(other)
    assert fits(other, one)
    assert match(Bind(0, ANY), (), one, [])
    assert agree(one, other)
    assert not fits(one, other)


def test_parts_that_are_shared_many_times_are_looked_at_once() -> None:
    pattern: Value = Placeholder(INT)
    value: Value = 1
    for _ in range(100):
        pattern, value = TermList(Term("f", pattern, pattern), pattern), TermList(Term("f", value, value), value)
    assert fits(pattern, value)
    assert not fits(value, pattern)
    assert agree(value, pattern)
