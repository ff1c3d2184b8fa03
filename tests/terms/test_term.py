"""Terms: kept once, told apart by kind, forgotten when they are dropped, by many threads at a time."""

import copy
import enum
import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given

from echoic.errors import EncodeError
from echoic.terms import UNDEFINED, Annotated, Placeholder, Term, TermList, Value, plain, same, value_of
from echoic.terms import term as module
from echoic.terms.term import identity, shared_terms
from tests.terms.values import deep, exactly, reals, uncollected, values


class Colour(str, enum.Enum):  # noqa: UP042 - which is written otherwise than a string enumeration
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


@contextmanager
def nothing_kept() -> Iterator[None]:
    gc.collect()
    before = len(shared_terms())
    yield
    gc.collect()
    assert len(shared_terms()) == before


def rebuilt(value: Value) -> Value:
    match value:
        case Term():
            return Term(value.name, *map(rebuilt, value.args), quoted=value.quoted)
        case TermList():
            return TermList(*map(rebuilt, value.elements))
        case Placeholder():
            return Placeholder(rebuilt(value.type))
        case Annotated():
            return Annotated(rebuilt(value.value), *map(rebuilt, value.annotations))
        case _:
            return value


def without(value: Value) -> Value:
    match value:
        case Term():
            return Term(value.name, *map(without, value.args), quoted=value.quoted)
        case TermList():
            return TermList(*map(without, value.elements))
        case Placeholder():
            return Placeholder(without(value.type))
        case Annotated():
            return without(value.value)
        case _:
            return value


@given(values)
def test_an_equal_value_is_the_same_object(value: Value) -> None:
    assert exactly(rebuilt(value), value)


@given(values, values)
def test_two_values_are_the_same_object_only_if_they_are_equal(one: Value, other: Value) -> None:
    assert (identity(one) == identity(other)) == exactly(one, other)
    assert same(one, other) == exactly(without(one), without(other))


@given(values)
def test_a_value_without_annotations_is_plain_at_any_depth(value: Value) -> None:
    assert exactly(plain(value), without(value))
    assert same(value, plain(value))


def test_one_and_true_and_one_point_nought_are_three_arguments() -> None:
    made = [Term("f", 1), Term("f", True), Term("f", 1.0), Term("f", "1"), Term("f", b"1"), Term("f", [1])]
    assert len(set(map(id, made))) == len(made)
    lists = [TermList(1), TermList(True), TermList(1.0), TermList(0.0), TermList(-0.0), TermList(0), TermList(False)]
    assert len(set(map(id, lists))) == len(lists)
    assert Term("f", True) is made[1]
    assert Term("f", 1.0) is made[2]
    assert [type(each.args[0]) for each in made[:3]] == [int, bool, float]


@given(reals, reals)
def test_reals_are_told_apart_by_their_bits(one: float, other: float) -> None:
    assert (Term("f", one) is Term("f", other)) == exactly(one, other) == same(one, other)


def test_what_belongs_to_different_kinds_is_told_apart() -> None:
    inner = Term("x")
    made = [Term("f", inner), TermList(inner), Placeholder(inner), Annotated(inner, inner), Term("<>", inner)]
    made += [
        Term("[]", inner),
        Term("{}", inner),
        Term("f", inner, quoted=True),
        Term("", inner),
        TermList(inner, inner),
    ]
    assert len(set(map(id, made))) == len(made)


def test_python_lists_become_lists_at_any_depth() -> None:
    assert Term("f", [1, (2, [])]) is Term("f", TermList(1, TermList(2, TermList())))
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    assert value_of(nested) is value_of(nested)


def test_what_is_one_of_pythons_kinds_becomes_that() -> None:
    made = Term("f", Colour.RED, Level.HIGH)
    assert made is Term("f", "red", 3)
    assert [type(each) for each in made.args] == [str, int]
    assert Term(Colour.RED) is Term("red")
    assert type(Term(Colour.RED).name) is str


@pytest.mark.parametrize("wrong", [object(), None, {}, {1}, 1j, bytearray(b"x")])
def test_what_is_no_value_is_refused(wrong: object) -> None:
    for build in (
        lambda: Term("f", wrong),
        lambda: TermList(1, wrong),
        lambda: Placeholder(wrong),
        lambda: value_of(wrong),
    ):
        with pytest.raises(EncodeError, match="is not a term"):
            build()


def test_a_value_has_one_spelling() -> None:
    for name, quoted in (("true", False), ("false", False), ("x", True), ("", True)):
        with pytest.raises(EncodeError, match="is written as a Python"):
            Term(name, quoted=quoted)
    assert Term("true", 1).name == "true"
    with pytest.raises(EncodeError, match="the name of a term"):
        Term(3)  # type: ignore[arg-type]
    with pytest.raises(EncodeError, match="annotated once"):
        Annotated(Annotated(1, 2), 3)
    with pytest.raises(EncodeError, match="at least one"):
        Annotated(1)


def test_terms_are_copied_as_themselves_and_not_pickled() -> None:
    term = Term("f", TermList())
    assert copy.copy(term) is term
    assert copy.deepcopy([term]) == [term]
    with pytest.raises(TypeError, match="not pickled"):
        TermList().__reduce_ex__(2)


def test_nothing_is_kept_after_it_is_dropped() -> None:
    with nothing_kept():
        held = [
            Term("dropped", number, [number, float(number)], Annotated(number, Placeholder("x")))
            for number in range(99)
        ]
        assert any(kept is held[0] for kept in shared_terms())
        del held


@pytest.mark.slow
def test_a_million_levels_are_built_and_dropped() -> None:
    with uncollected(), nothing_kept():
        value = deep(1_000_000)
        assert isinstance(plain(value), Placeholder)
        del value


def test_threads_that_build_the_same_terms_at_the_same_time_get_the_same_objects() -> None:
    """Half of the terms are dropped and built again all the time, so that forgetting and sharing meet."""
    rounds, threads = 1_500, 4
    start = threading.Barrier(threads)
    faults: list[str] = []
    published: list[list[Term]] = [[] for _ in range(threads)]

    def build(mine: int) -> None:
        start.wait()
        for number in range(rounds):
            one = Term("shared", number % 7, TermList(number % 5, 0.5))
            if Term("shared", number % 7, TermList(number % 5, 0.5)) is not one:
                faults.append(f"two of {one}")
            published[mine].append(Term("kept", number, one))
            del one

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        running = [threading.Thread(target=build, args=(mine,)) for mine in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not faults
    assert all(len({id(each) for each in column}) == 1 for column in zip(*published, strict=True))


def test_a_term_that_is_built_while_an_equal_one_is_being_forgotten_is_shared() -> None:
    """What the garbage collector finds dead is told one by one: the others are dead and still in the table."""
    built: list[Term] = []

    class Holder:
        def __init__(self, term: Term) -> None:
            self.term, self.me = term, self

        def __del__(self) -> None:
            built.append(Term("reborn", 1))

    gc.collect()
    Holder(Term("reborn", 1))
    gc.collect()
    assert built
    assert built[0] is Term("reborn", 1)


def test_a_dead_entry_that_is_still_in_the_table_is_replaced() -> None:
    term = Term("ghost", 1)
    (key,) = [key for key, reference in module._table.items() if reference() is term]  # noqa: SLF001
    dead = module._Entry(term)  # noqa: SLF001 - nobody is told when it dies
    dead.key = key
    module._table[key] = dead  # noqa: SLF001
    del term
    assert dead() is None
    fresh = Term("ghost", 1)
    assert Term("ghost", 1) is fresh


def test_undefined_is_a_constant() -> None:
    assert UNDEFINED is Term("undefined")
    assert (UNDEFINED.arity, UNDEFINED.args) == (0, ())
    assert Term("f", 1, 2)[1] == 2
    assert list(TermList(1, 2)) == [1, 2]
    assert (len(TermList()), bool(TermList()), TermList(7)[0]) == (0, False, 7)
