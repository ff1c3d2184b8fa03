"""What scripts mean: the grammar of section 2.3, and how tightly operators bind."""

from itertools import combinations

import pytest

from echoic.scripts.syntax import load
from echoic.scripts.syntax.tree import (
    Application,
    Assign,
    Atom,
    Call,
    Choice,
    Conditional,
    Constant,
    Create,
    Let,
    ListOf,
    Merge,
    PlaceholderOf,
    Sequence,
    Span,
    Variable,
)
from echoic.terms import UNDEFINED, Placeholder, Term, TermList
from tests.scripts.syntax.shapes import body_of, shape

A, B, C = "snd-msg(a)", "snd-msg(b)", "snd-msg(c)"
TIGHTEST_FIRST = [">>", "*", ".", "+", "<+", "+>", "||"]
FROM_RIGHT = {".", "+>"}


def same_meaning(one: str, other: str) -> bool:
    return shape(body_of(one)) == shape(body_of(other))


@pytest.mark.parametrize(("strong", "weak"), list(combinations(TIGHTEST_FIRST, 2)))
def test_operators_bind_in_their_order(strong: str, weak: str) -> None:
    assert same_meaning(f"{A} {strong} {B} {weak} {C}", f"({A} {strong} {B}) {weak} {C}")
    assert same_meaning(f"{A} {weak} {B} {strong} {C}", f"{A} {weak} ({B} {strong} {C})")
    assert not same_meaning(f"{A} {strong} {B} {weak} {C}", f"{A} {strong} ({B} {weak} {C})")


@pytest.mark.parametrize("sign", TIGHTEST_FIRST)
def test_operators_group_from_the_left_but_two_from_the_right(sign: str) -> None:
    plain, left, right = f"{A} {sign} {B} {sign} {C}", f"({A} {sign} {B}) {sign} {C}", f"{A} {sign} ({B} {sign} {C})"
    assert same_meaning(plain, right if sign in FROM_RIGHT else left)
    assert not same_meaning(plain, left if sign in FROM_RIGHT else right)


def test_a_script_has_definitions_in_any_order() -> None:
    script = load(
        """
        toolbus(P(1), Q)
        tool calc(X : str) is { command = "calc -x X"; host = "here" }
        note channel "prices" as price(<str>,<real>)
        process P(X : int, Y : list(str) ?) is tau
        tool feed is { kind = "channel" channel = "trades" derive = "return input.price > 3;" }
        process Q is P(1)
        toolbus(Q())
        """
    )
    assert [process.name for process in script.processes] == ["P", "Q"]
    formals = script.processes[0].formals
    assert [(each.name, each.type, each.result) for each in formals] == [
        ("X", Term("int"), False),
        ("Y", Term("list", Term("str")), True),
    ]
    calc, feed = script.tools
    assert calc.features == (("command", "calc -x X"), ("host", "here"))
    assert (calc.formals[0].name, calc.feature("kind")) == ("X", "")
    assert (feed.feature("channel"), feed.feature("derive")) == ("trades", "return input.price > 3;")
    assert [[call.name for call in each.calls] for each in script.configurations] == [["P", "Q"], ["Q"]]
    (note,) = script.channel_notes
    assert note.channel == "prices"
    assert note.pattern is Term("price", Placeholder(Term("str")), Placeholder(Term("real")))


def test_terms_are_numbers_strings_constants_variables_applications_lists_and_places() -> None:
    atom = body_of(
        r'snd-msg(1, -2, 1.5, -1.0e-3, "a\n\t\r\b\f\v\"\\", true, false,'
        r" undefined, X, Y ?, f, f(), f(1), [], [1,X], <int>)"
    )
    assert isinstance(atom, Atom)
    constants = [each.value for each in atom.arguments if isinstance(each, Constant)]
    assert constants == [1, -2, 1.5, -0.001, 'a\n\t\r\b\f\v"\\', True, False, UNDEFINED]
    rest = atom.arguments[8:]
    assert [(each.name, each.result) for each in rest if isinstance(each, Variable)] == [("X", False), ("Y", True)]
    assert [(each.name, len(each.arguments)) for each in rest if isinstance(each, Application)] == [
        ("f", 0),
        ("f", 0),
        ("f", 1),
    ]
    assert [len(each.elements) for each in rest if isinstance(each, ListOf)] == [0, 2]
    assert [each.type for each in rest if isinstance(each, PlaceholderOf)] == [Term("int")]


def test_a_minus_is_part_of_a_name() -> None:
    atom = body_of("snd-msg(a-1, X-1, a_b)")
    assert isinstance(atom, Atom)
    assert [getattr(each, "name", None) for each in atom.arguments] == ["a-1", "X-1", "a_b"]


def test_types_are_terms_without_variables() -> None:
    let = body_of('let X : [int, list(<f(str)>)], Y : <<int>>, Z : f("a", 1) in tau >> tau endlet')
    assert isinstance(let, Let)
    x, y, z = (each.type for each in let.declarations)
    assert x is TermList(Term("int"), Term("list", Placeholder(Term("f", Term("str")))))
    assert y is Placeholder(Placeholder(Term("int")))
    assert z is Term("f", "a", 1)


def test_actions_have_timing() -> None:
    body = body_of("tau delay(1) timeout(sec(2)) . X := f abs-delay(97,1,2) . create(P(1), X?) timeout(3)")
    assert isinstance(body, Sequence)
    tau, rest = body.first, body.then
    assert isinstance(tau, Atom)
    assert [each.kind for each in tau.timing] == ["delay", "timeout"]
    assert isinstance(rest, Sequence)
    assert isinstance(rest.first, Assign)
    assert [len(each.arguments) for each in rest.first.timing] == [3]
    assert isinstance(rest.then, Create)
    assert rest.then.call.name == "P"
    assert [each.kind for each in rest.then.timing] == ["timeout"]


def test_a_condition_may_have_no_else() -> None:
    with_else, without = body_of("if X then tau else delta fi"), body_of("if X then tau fi")
    assert isinstance(with_else, Conditional)
    assert isinstance(without, Conditional)
    assert with_else.otherwise is not None
    assert without.otherwise is None


def test_a_call_is_a_process() -> None:
    body = body_of("P(1, X?) || Q()")
    assert isinstance(body, Merge)
    assert isinstance(body.left, Call)
    assert isinstance(body.right, Call)
    assert (body.right.name, body.right.arguments) == ("Q", ())


def test_words_of_tools_are_names_in_terms_and_types() -> None:
    words = ["host", "command", "details", "kind", "class", "channel", "derive", "note", "as", "call"]
    for word in words:
        script = load(
            f"process P(X : {word}, Y : {word}(int)) is rec-msg({word}, {word}(1), [{word}]) tool {word} is {{}}"
        )
        assert script.tools[0].name == word


def test_the_text_of_details_may_stand_between_angles() -> None:
    script = load('tool t is { details = << line "one"\nline two >> command = "c" }')
    assert script.tools[0].features == (("details", ' line "one"\nline two '), ("command", "c"))


def test_strings_may_have_several_lines() -> None:
    atom = body_of('printf("one\ntwo\\\nthree")')
    assert isinstance(atom, Atom)
    assert isinstance(atom.arguments[0], Constant)
    assert atom.arguments[0].value == "one\ntwothree"


def test_every_node_knows_where_it_stands() -> None:
    script = load('process P is\n  snd-msg(f(X), "a\nb") .\n  tau\n', "p.tb")
    assert script.processes[0].span == Span("p.tb", 1, 9, 1, 10)
    body = script.processes[0].body
    assert isinstance(body, Sequence)
    assert body.span == Span("p.tb", 2, 3, 4, 6)
    assert isinstance(body.first, Atom)
    assert body.first.span == Span("p.tb", 2, 3, 3, 4)
    assert body.first.arguments[0].span == Span("p.tb", 2, 11, 2, 15)
    assert body.then.span == Span("p.tb", 4, 3, 4, 6)


def test_many_alternatives_make_a_flat_tree() -> None:
    body = body_of(" + ".join(f"snd-msg(a{number})" for number in range(1000)))
    names = []
    waiting = [(body, 1)]
    while waiting:
        node, depth = waiting.pop()
        assert depth < 20
        if isinstance(node, Choice):
            waiting += ((node.right, depth + 1), (node.left, depth + 1))
        elif isinstance(node, Atom) and isinstance(node.arguments[0], Application):
            names.append(node.arguments[0].name)
    assert names == [f"a{number}" for number in range(1000)]


def test_an_empty_text_is_a_script_without_anything() -> None:
    assert shape(load("  %% nothing\n")) == ("Script", (), (), (), ())
