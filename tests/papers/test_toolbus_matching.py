"""Types and matching of the ToolBus, against an oracle that says the rules once more, as plainly as it can.

The oracle knows patterns as tuples: ("value", v), ("variable", i), ("result", i), ("placeholder", t), ("list", parts)
and ("application", name, quoted, parts). Both are asked about random pairs that often match, since they are made from
one value; the real thing is asked by a script, whose variables come in by a note and go out by one.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.scripts.running.messages import Announce, Note
from echoic.terms import (
    UNDEFINED,
    Annotated,
    Placeholder,
    Term,
    TermList,
    Value,
    accepts,
    may_hold,
    parse_text,
    same,
    write_text,
)
from tests.papers.toolbus_driver import Bus, printed

Tuple: TypeAlias = tuple[object, ...]


# Types


def naive_accepts(wanted: Value, value: Value) -> bool:
    """Whether a value is of a type, rule by rule."""
    value = value.value if isinstance(value, Annotated) else value
    if isinstance(wanted, Placeholder):
        return naive_accepts(wanted.type, value)
    if value is UNDEFINED or wanted == Term("term"):
        return True
    if isinstance(wanted, TermList):
        return (
            isinstance(value, TermList)
            and len(value) == len(wanted)
            and all(naive_accepts(t, v) for t, v in zip(wanted, value, strict=True))
        )
    assert isinstance(wanted, Term)
    bases = {"bool": bool, "int": int, "real": float, "str": str, "list": TermList, "blob": bytes, "bstr": bytes}
    if wanted.name in bases and not wanted.args:
        return type(value) is bases[wanted.name]
    if wanted.name == "list":
        return isinstance(value, TermList) and all(naive_accepts(wanted.args[0], each) for each in value)
    if not isinstance(value, Term) or value.quoted or value.name != wanted.name:
        return False
    return not wanted.args or (
        len(wanted.args) == len(value.args)
        and all(naive_accepts(t, v) for t, v in zip(wanted.args, value.args, strict=True))
    )


TYPES = (
    "int str bool real term list list(int) list(term) list(list(int)) [] [int] [int,str] f f(int) f(term,int) g <int> "
)
TYPES += "f(<int>) [<str>,term] f(f(int)) list(f) blob"
ALL_TYPES = [parse_text(text) for text in TYPES.split()]

scalars = st.sampled_from([0, 1, -5, 1.0, -2.5, True, False, "", "a", "f", Term("f"), Term("g"), UNDEFINED, TermList()])
label = TermList(Term("label"), 1)


def compound(parts: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    several = st.lists(parts, min_size=1, max_size=3)
    return st.one_of(
        st.builds(lambda name, args: Term(name, *args), st.sampled_from(["f", "g"]), several),
        st.builds(lambda elements: TermList(*elements), several),
        st.builds(lambda args: Term("f", *args, quoted=True), several),
        st.builds(lambda value: value if isinstance(value, Annotated) else Annotated(value, label), parts),
    )


values = st.recursive(scalars, compound, max_leaves=6)


@settings(max_examples=400)
@given(st.sampled_from(ALL_TYPES), values)
def test_types_accept_what_the_rules_say(wanted: Value, value: Value) -> None:
    assert accepts(wanted, value) == naive_accepts(wanted, value)


@settings(max_examples=200)
@given(st.sampled_from(ALL_TYPES), st.sampled_from(ALL_TYPES), values)
def test_types_that_have_a_value_in_common_may_hold_each_other(one: Value, other: Value, value: Value) -> None:
    text = write_text(value)  # an empty list is of all types of lists, which nevertheless do not go together
    if "undefined" not in text and "[]" not in text and accepts(one, value) and accepts(other, value):
        assert may_hold(one, other)


@pytest.mark.parametrize(
    ("one", "other", "can"),
    [
        ("int", "int", True),
        ("int", "str", False),
        ("term", "f(int)", True),
        ("f", "f(int)", True),
        ("f", "g", False),
        ("f(int,str)", "f(int,str)", True),
        ("f(int,str)", "f(int,int)", False),
        ("f(str,int)", "f(int,int)", False),
        ("f(int)", "f(int,int)", False),
        ("[int,str]", "[int,int]", False),
        ("[int,int]", "list(int)", True),
        ("[int,str]", "list(int)", False),
        ("list", "list(int)", True),
        ("<int>", "int", True),
        ("bool", "int", False),
    ],
)
def test_types_are_compared_in_all_their_arguments(one: str, other: str, can: bool) -> None:
    assert may_hold(parse_text(one), parse_text(other)) is can
    assert may_hold(parse_text(other), parse_text(one)) is can


# The oracle


@dataclass
class Side:
    """One side of a meeting: what it says, and its variables."""

    pattern: list[Tuple] = field(default_factory=list)
    types: list[Value] = field(default_factory=list)
    held: list[Value] = field(default_factory=list)

    def text(self, part: Tuple, letter: str) -> str:
        """Return a pattern as it is written in a script."""
        match part:
            case ("value", value):
                return write_text(value)  # type: ignore[arg-type]
            case ("variable", index):
                return f"{letter}{index}"
            case ("result", index):
                return f"{letter}{index}?"
            case ("placeholder", wanted):
                return f"<{write_text(wanted)}>"  # type: ignore[arg-type]
            case ("list", parts):
                return f"[{','.join(self.text(each, letter) for each in parts)}]"  # type: ignore[attr-defined]
            case ("application", name, _, parts):
                return f"{name}({','.join(self.text(each, letter) for each in parts)})"  # type: ignore[attr-defined]
        raise AssertionError(part)


def closed(part: Tuple, side: Side) -> Value | None:
    """Return what a pattern is if nothing in it is to be bound, None otherwise."""
    match part:
        case ("value", value):
            return value  # type: ignore[return-value]
        case ("variable", index):
            return side.held[index]  # type: ignore[index]
        case ("list", parts) | ("application", _, _, parts):
            made = [closed(each, side) for each in parts]  # type: ignore[attr-defined]
            if any(each is None for each in made):
                return None
            return TermList(*made) if part[0] == "list" else Term(str(part[1]), *made)
    return None


def opened(value: Value) -> Tuple | None:
    """Return a value as a pattern of its parts, None if it has none."""
    value = value.value if isinstance(value, Annotated) else value
    match value:
        case Term(name=name, args=args, quoted=quoted) if args:
            return ("application", name, quoted, [("value", each) for each in args])
        case TermList(elements=elements):
            return ("list", [("value", each) for each in elements])
    return None


class UndecidedError(Exception):
    """A placeholder meets another, or a variable: the rules do not say what happens."""


Bound: TypeAlias = list[tuple[int, int, Value]]  # side, variable, value


def naive_match(one: Tuple, first: Side, other: Tuple, second: Side, bound: Bound, turned: int = 0) -> bool:
    """Whether two patterns match; `bound` gets what is bound, on which side."""
    if other[0] in ("result", "placeholder") and one[0] not in ("result", "placeholder"):
        return naive_match(other, second, one, first, bound, 1 - turned)
    if one[0] in ("result", "placeholder") and "<" in second.text(other, "A"):
        raise UndecidedError
    if one[0] == "placeholder" and other[0] == "result":
        raise UndecidedError
    theirs = closed(other, second)
    if one[0] == "result":
        if theirs is None or not naive_accepts(first.types[one[1]], theirs):  # type: ignore[index]
            return False
        bound.append((turned, one[1], theirs))  # type: ignore[arg-type]
        return True
    if one[0] == "placeholder":
        return theirs is not None and naive_accepts(one[1], theirs)  # type: ignore[arg-type]
    ours = closed(one, first)
    if ours is not None and theirs is not None:
        return same(ours, theirs)
    mine = one if ours is None else opened(ours)
    yours = other if theirs is None else opened(theirs)
    if mine is None or yours is None or mine[:-1] != yours[:-1] or len(mine[-1]) != len(yours[-1]):  # type: ignore[arg-type]
        return False
    pairs = zip(mine[-1], yours[-1], strict=True)  # type: ignore[call-overload]
    return all(naive_match(a, first, b, second, bound, turned) for a, b in pairs)


def consistent(bound: Bound) -> bool:
    """Whether whatever is bound twice is bound to the same."""
    return all(same(v, w) for s, i, v in bound for t, j, w in bound if (s, i) == (t, j))


# Random meetings


@st.composite
def sides(draw: st.DrawFn, value: Value) -> Side:
    """A side that says this value, more or less."""
    side = Side(
        types=[draw(st.sampled_from([*ALL_TYPES, *[Term("term")] * 20])) for _ in range(3)], held=[UNDEFINED] * 3
    )
    given_to: set[int] = set()

    def bind(value: Value) -> Tuple:
        fitting = [i for i in range(3) if naive_accepts(side.types[i], value)]
        return ("result", draw(st.sampled_from(fitting * 9 + [0, 1, 2])))

    def hold(value: Value) -> Tuple:
        index = draw(st.integers(0, 2))
        if index not in given_to:
            given_to.add(index)
            if not naive_accepts(side.types[index], value):
                side.types[index] = Term("term")
            side.held[index] = value
        return ("variable", index)

    def blur(value: Value) -> Tuple:
        parts = opened(value)
        chosen = draw(st.integers(0, 15))
        if chosen < 3:
            return bind(value)
        if chosen == 3:
            fitting = [wanted for wanted in ALL_TYPES if naive_accepts(wanted, value)]
            return ("placeholder", draw(st.sampled_from(fitting * 2 + ALL_TYPES[:3])))
        if chosen == 4 and draw(st.booleans()):
            return ("value", draw(st.sampled_from([1, "a", Term("f"), True])))
        if chosen < 7 or isinstance(value, Annotated) or (parts is not None and parts[2:3] == (True,)):
            return hold(value)
        if parts is None:
            return ("value", value)
        inner = [blur(each[1]) for each in parts[-1]]  # type: ignore[attr-defined]
        return ("list", inner) if parts[0] == "list" else ("application", parts[1], False, inner)

    side.pattern = [blur(each) for each in (value.args if isinstance(value, Term) else (value,))]
    return side


def setting(side: Side, name: str) -> Note:
    return Note(Term(name, *side.held))


def declared(side: Side, letter: str) -> str:
    return ", ".join(f"{letter}{index}:{write_text(wanted)}" for index, wanted in enumerate(side.types))


def announced(bus: Bus, name: str) -> tuple[Value, ...] | None:
    found = [effect.value for effect in bus.effects if isinstance(effect, Announce)]
    return next((each.args for each in found if isinstance(each, Term) and each.name == name), None)


def expect(bus: Bus, side: Side, name: str, number: int, bound: Bound | None) -> None:
    """Look at the variables of a side after a meeting, or after none."""
    after = announced(bus, name if bound is not None else f"no-{name}")
    assert after is not None
    for index, value in enumerate(after):
        given_to = [v for s, i, v in bound or () if (s, i) == (number, index)]
        if given_to:
            assert any(value == each and type(value) is type(each) for each in given_to)
        else:
            assert same(value, side.held[index])


PARTY = """process {upper} is let {declared} in subscribe({name}(<term>,<term>,<term>)) . rec-note({name}({results})) .
({atom}({pattern}) . snd-note({name}-yes({all})) + snd-note(no-{name}-yes({all})) delay(sec(1))) endlet
"""


def party(side: Side, name: str, letter: str, atom: str) -> str:
    pattern = ",".join(side.text(part, letter) for part in side.pattern)
    names = [f"{letter}{index}" for index in range(3)]
    results, values = (",".join(f"{name}{mark}" for name in names) for mark in ("?", ""))
    form = PARTY.format(upper=name.upper(), name=name, atom="ATOM", declared=declared(side, letter), results=results,
                        all=values, pattern="PATTERN")  # fmt: skip
    return form.replace("ATOM", atom).replace("PATTERN", pattern)


messages = st.lists(values, min_size=1, max_size=3).map(lambda parts: Term("message", *parts))


@settings(max_examples=300, deadline=None)
@given(st.data(), messages, st.integers(0, 99))
def test_messages_match_as_the_oracle_says(data: st.DataObject, value: Term, seed: int) -> None:
    first, second = data.draw(sides(value)), data.draw(sides(value))
    if data.draw(st.integers(0, 9)) == 0:
        second.pattern = second.pattern[1:] or [("value", 1)]
    bound: Bound = []
    parts = list(zip(first.pattern, second.pattern, strict=False))
    try:
        matches = len(first.pattern) == len(second.pattern) and all(
            naive_match(one, first, other, second, bound) for one, other in parts
        )
    except UndecidedError:
        return
    matches = matches and consistent(bound)
    script = party(first, "p", "A", "snd-msg") + party(second, "q", "B", "rec-msg") + "toolbus(P, Q)"
    bus = Bus(script, seed).hear(setting(first, "p"), setting(second, "q")).wait(1)
    expect(bus, first, "p-yes", 0, bound if matches else None)
    expect(bus, second, "q-yes", 1, bound if matches else None)


@settings(max_examples=200, deadline=None)
@given(st.data(), values, values)
def test_notes_match_as_the_oracle_says(data: st.DataObject, value: Value, another: Value) -> None:
    side = data.draw(sides(Term("m", value)))
    said = data.draw(st.sampled_from([value, value, another]))
    bound: Bound = []
    matches = naive_match(side.pattern[0], side, ("value", said), Side(), bound) and consistent(bound)
    side.pattern = [("application", "m", False, side.pattern)]
    script = party(side, "p", "A", "rec-note").replace("in subscribe", "in subscribe(m(<term>)) . subscribe")
    bus = Bus(script + "toolbus(P)").hear(setting(side, "p"), Note(Term("m", said))).wait(1)
    expect(bus, side, "p-yes", 0, bound if matches else None)


# The rules, one by one

PAIRS = """
f(1)            | f(1)           | yes
f(1)            | f(1.0)         | no
f(true)         | f(1)           | no
f("a")          | f(a)           | no
f               | f(1)           | no
f(1,2)          | f(1)           | no
[1,2]           | [1,2]          | yes
[1,2]           | [1]            | no
[]              | []             | yes
f(X?)           | f(1)           | yes X=1
f(X?)           | f("a")         | no
f(T?)           | f(g([1,"a"]))  | yes T=g([1,"a"])
f(X?,X?)        | f(1,1)         | yes X=1
f(X?,X?)        | f(1,2)         | no
f(T?,T?)        | f(1,1.0)       | no
f(X?)           | f(Y?)          | no
f(T?)           | f(g(Y?))       | no
f(V)            | f(4)           | yes
f(V)            | f(5)           | no
f(V)            | f(Y?)          | yes Y=4
f(123,X?)       | f(Y?,666)      | yes X=666 Y=123
f(U)            | f(undefined)   | yes
f(U)            | f(1)           | no
f(X?)           | f(undefined)   | yes X=undefined
f(<int>)        | f(3)           | yes
f(<int>)        | f("a")         | no
f(<str>,X?)     | f("a",1)       | yes X=1
f(<g>)          | f(g(1,2))      | yes
f(<list(int)>)  | f([1,2])       | yes
f(<list(int)>)  | f([1,"a"])     | no
X?              | 1              | yes X=1
1,X?            | Y?,2           | yes X=2 Y=1
f(V,V)          | f(4,Y?)        | yes Y=4
f(X?,V)         | f(W,Y?)        | yes X=6 Y=4
[X?,[T?]]       | [1,[[2]]]      | yes X=1 T=[2]
f(V,Y?)         | f(Y?,9)        | yes Y=4
"""


@pytest.mark.parametrize("line", PAIRS.strip().split("\n"))
@pytest.mark.parametrize("turned", [False, True])
def test_two_way_matching(line: str, turned: bool) -> None:
    one, other, result = (part.strip() for part in line.split("|"))
    word, *expected = result.split()
    variables = "let X:int, Y:int, T:term, U:int, V:int, W:int in V := 4 . W := 6 . {}({}) . {} endlet"
    shown = 'printf("%t %t %t;", [X], [Y], [T])'
    senders = ("rec-msg", "snd-msg") if turned else ("snd-msg", "rec-msg")
    script = "\n".join(
        f"process {name} is {variables.format(atom, pattern, shown)}"
        for name, atom, pattern in zip("PQ", senders, (one, other), strict=True)
    )
    text = printed_unordered(script + " toolbus(P, Q)")
    if word == "no":
        assert text == []
        return
    assert len(text) == 2
    for each in expected:
        name, _, value = each.partition("=")
        place = "XYT".index(name)
        assert f"[{value}]" in [part.split()[place] for part in text]


def printed_unordered(script: str) -> list[str]:
    return sorted(part for part in Bus(script).text.split(";") if part)


def test_annotations_are_not_looked_at_but_carried_along() -> None:
    script = """process P is let T:term in subscribe(n(<int>)) . rec-note(n(T?)) . snd-note(out(T)) . rec-note(n(1)) .
    snd-note(matched) endlet toolbus(P)"""
    annotated = parse_text("n(1{[label,x]}){[more,y]}")
    bus = Bus(script).hear(Note(annotated), Note(annotated))
    assert announced(bus, "out") == (parse_text("1{[label,x]}"),)
    assert announced(bus, "matched") == ()


def test_variables_are_bound_only_if_all_matches() -> None:
    script = """process P is let X:int in X := 0 . (rec-msg(f(X?,1)) + printf("%d", X) delay(sec(1))) endlet
    process Q is snd-msg(f(9,2)) toolbus(P, Q)"""
    assert printed(script, 1) == "0"
