"""The text forms: what is read and written, where mistakes are, and what nobody may make us do."""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from echoic.errors import LimitExceededError, MalformedTermError
from echoic.terms import Annotated, Placeholder, Term, TermList, Value, parse_text, write_text
from echoic.terms.taf import parse_taf, write_taf
from echoic.terms.text import SHOWN_MAX
from tests.terms.values import doubled, exactly, uncollected, values

A, B = Term("a"), Term("b")

READ: list[tuple[str, Value]] = [
    ("f(a,1,-2,3.14)", Term("f", A, 1, -2, 3.14)),
    ('"q \\" s"', 'q " s'),
    ("[x,[y],<int>]", TermList(Term("x"), [Term("y")], Placeholder(Term("int")))),
    ("a{[label,b]}", Annotated(A, [Term("label"), B])),
    (" f ( a , b ) { 1 , 2 } ", Annotated(Term("f", A, B), 1, 2)),
    ("(a,b)", Term("", A, B)),
    ("()", Term("")),
    ("f()", Term("f")),
    ("[]", TermList()),
    ("[ ]", TermList()),
    ('"f x"(1)', Term("f x", 1, quoted=True)),
    ('"f x"()', "f x"),
    ("true", True),
    ("true()", True),
    ("true(1)", Term("true", 1)),
    ('"true"', "true"),
    ("undefined", Term("undefined")),
    ("get-text_1+*$", Term("get-text_1+*$")),
    ("<list(<int>)>", Placeholder(Term("list", Placeholder(Term("int"))))),
    ('"\\n\\t\\r\\b\\f\\\\\\"\\\'"', "\n\t\r\b\f\\\"'"),
    ('"\\101\\0\\1778"', "A\0\x7f8"),
    ('"two\nlines"', "two\nlines"),
    ("1e3", 1000.0),
    ("-1.5E-3", -0.0015),
    ("-0.0", -0.0),
    ("-0", 0),
    ('@blob"aGVsbG8="', b"hello"),
    ('@real"fff0000000000000"', float("-inf")),
    ('@int"-ff"', -255),
    ('@name"two words"(1)', Term("two words", 1)),
    ('@name"_x"', Term("_x")),
    ('@name"true"', True),
]


@pytest.mark.parametrize(("text", "value"), READ, ids=[text for text, _ in READ])
def test_a_text_says_a_value(text: str, value: Value) -> None:
    assert exactly(parse_text(text), value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Term("f", 1e22, 1e-7, 0.1, -0.0), "f(1.0e+22,1.0e-07,0.1,-0.0)"),
        (Term("f", float("inf")), 'f(@real"7ff0000000000000")'),
        (Term("two words"), '@name"two words"'),
        (Term("_x", "\x01\x7f€"), '@name"_x"("\\001\\177€")'),
        (Term("Näme-1", quoted=False), "Näme-1"),
        (1 << 20_000, f'@int"1{"0" * 5000}"'),
        (b"\0\xff", '@blob"AP8="'),
        (Annotated(TermList(), TermList()), "[]{[]}"),
    ],
    ids=["reals", "infinity", "two words", "odd", "letters", "large", "blob", "annotated"],
)
def test_a_value_is_written_in_one_way(value: Value, text: str) -> None:
    assert write_text(value) == text
    assert exactly(parse_text(text), value)


@given(values)
def test_every_value_survives_text(value: Value) -> None:
    assert exactly(parse_text(write_text(value)), value)


@given(values)
def test_every_value_survives_shared_text(value: Value) -> None:
    assert exactly(parse_taf(write_taf(value)), value)


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("f(test,test)", "!f(test,#A)"),
        ("f(ab,ab)", "!f(ab,ab)"),
        ("f(abc,abc)", "!f(abc,#A)"),
        ("[g(abc),g(abc),abc]", "![g(abc),#B,#A]"),
        ("[<abc>,<abc>]", "![<abc>,#B]"),
        ("[a{bcd},a{bcd},a,bcd]", "![a{bcd},#B,a,#A]"),
        ('["xy","xy",100,100,2.5,2.5]', '!["xy",#A,100,#B,2.5,#C]'),
        ('[@blob"AA==",@blob"AA=="]', '![@blob"AA==",#A]'),
        ("[[],[],[1],[1]]", "![[],[],[1],#A]"),
    ],
)
def test_a_shared_text_says_each_long_value_once(text: str, shared: str) -> None:
    assert write_taf(parse_text(text)) == shared
    assert parse_taf(shared) is parse_text(text)


def test_abbreviations_get_longer_with_their_number() -> None:
    many = [Term(f"x{number:04}") for number in range(64 * 64 + 3)]
    text = write_taf(TermList(*many, *many))
    first, second = text[2:-1].split(",")[: len(many)], text[2:-1].split(",")[len(many) :]
    assert first == [each.name for each in many]
    assert second[:2] == ["#A", "#B"]
    assert second[62:66] == ["#+", "#/", "#BA", "#BB"]
    assert second[4095:4097] == ["#//", "#BAA"]
    assert parse_taf(text) is TermList(*many, *many)
    short = [Term(f"x{number}") for number in range(10, 100)]
    written = write_taf(TermList(*short, *short))[2:-1].split(",")[90:]
    assert (written[63], written[64]) == ("#/", "x74")  # which is as long as its abbreviation would be
    assert parse_taf(write_taf(TermList(*short, *short))) is TermList(*short, *short)


def test_what_is_shared_is_written_once() -> None:
    assert len(write_taf(doubled(100))) < 100 * len("pair(,#AA)") + 20
    assert parse_taf(write_taf(doubled(100))) is doubled(100)


@pytest.mark.parametrize(
    ("text", "told", "line", "column"),
    [
        ("", "expected a value", 1, 1),
        ("f(", "expected a value", 1, 3),
        ("f(a", "expected `,` or `)`", 1, 4),
        ("f(a]", "expected `,` or `)`", 1, 4),
        ("f(a b)", "expected the end of a term", 1, 5),
        ("f(,)", "expected a value", 1, 3),
        ("[1,]", "expected a value, got `]`", 1, 4),
        ("<a,b>", "expected `>`", 1, 3),
        ("<>", "expected a value", 1, 2),
        ("a{}", "expected a value", 1, 3),
        ("a{b}{c}", "expected the end of a term", 1, 5),
        ("f(a,\n  b,\n  ?)", "expected a value", 3, 3),
        ('"abc', "expected a value", 1, 1),
        ('"\\q"', "there is no escape `\\q`", 1, 1),
        ("a b", "expected the end of a term", 1, 3),
        ("1.5e", "expected the end of a term", 1, 4),
        ("-2e+", "expected the end of a term", 1, 3),
        ("7.x", "expected the end of a term", 1, 2),
        ("a)", "expected the end of the text, got `)`", 1, 2),
        ("X?", "expected the end of a term", 1, 2),
        ("#A", "not of the shared form", 1, 1),
        ('@sound"x"', "there is no `@sound`", 1, 1),
        ('@blob"x"', "cannot be read", 1, 1),
        ('@real"7ff0"', "cannot be read", 1, 1),
        ('@int"0x1"', "cannot be read", 1, 1),
        ('@blob"AA=="(1)', "expected the end of a term", 1, 12),
        ("1.0e999", "beyond 64 bits", 1, 1),
        ("1e", "expected the end of a term", 1, 2),
        ("[-2.5ex]", "expected the end of a term", 1, 6),
        ("1.", "expected the end of a term", 1, 2),
        ("9" * 4301, "use `@int`", 1, 1),
        ("_x", "expected a value", 1, 1),
    ],
)
def test_a_mistake_is_shown_with_its_place(text: str, told: str, line: int, column: int) -> None:
    with pytest.raises(MalformedTermError) as caught:
        parse_text(text)
    message, shown, caret = str(caught.value).split("\n")
    assert told in message
    assert message.endswith(f"at line {line}, column {column}")
    assert caret.endswith("^")
    assert len(shown) <= 130
    if len(text) < 60:
        assert (shown, caret) == ("    " + text.split("\n")[line - 1], " " * (column + 3) + "^")


@pytest.mark.parametrize(
    "text", ["f(a)", "!", "!#A", "!f(test,#B)", "!f(test,#AAAAAAAAAAAAAAAAAAAA)", "!f(test,#A{x})", "!f(#A,test)"]
)
def test_a_shared_text_with_a_mistake_is_refused(text: str) -> None:
    with pytest.raises(MalformedTermError):
        parse_taf(text)


def test_suffixes_are_read_as_annotations() -> None:
    for text, plain_text in (
        ("f(X:int,Y?)", "f(X{[type,int]},Y{[result,true]})"),
        ("X:list(int)?", "X{[type,list(int)],[result,true]}"),
        ("X{a}:b", "X{a,[type,b]}"),
        ("X : [ int , str ] ?", "X{[type,[int,str]],[result,true]}"),
        ("X:b{c}", "X{[type,b{c}]}"),
    ):
        assert parse_text(text, suffixes=True) is parse_text(plain_text)
    for text in ("X:", "X::a", ":a", "X?{a}", "?"):
        with pytest.raises(MalformedTermError):
            parse_text(text, suffixes=True)


@given(values, st.data())
def test_a_text_that_is_cut_or_changed_anywhere_is_read_or_refused(value: Value, data: st.DataObject) -> None:
    for text, parse in ((write_text(value), parse_text), (write_taf(value), parse_taf)):
        cut = data.draw(st.integers(0, len(text)))
        put = data.draw(st.sampled_from(["", *'()[]<>{},:?#@"\\ a1.-\n', "#B", '@int"']))
        for changed in (text[:cut], text[:cut] + put + text[cut:], text[:cut] + put + text[cut + 1 :]):
            try:
                parse(changed)
            except MalformedTermError:
                pass


@given(st.text(alphabet="()[]<>{},:?#@\"\\ a1.-\n'é", max_size=30))
@example('@name""(')
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (parse_text, lambda each: parse_text(each, suffixes=True), lambda each: parse_taf("!" + each)):
        try:
            value = read(text)
        except MalformedTermError:
            continue
        assert exactly(parse_text(write_text(value)), value)


def test_a_text_that_is_too_long_is_neither_read_nor_written() -> None:
    for parse in (parse_text, parse_taf):
        with pytest.raises(LimitExceededError, match="limit is 10"):
            parse("!" + "a" * 20, characters_max=10)
    for write in (write_text, write_taf):
        with pytest.raises(LimitExceededError, match="more than 10 characters"):
            write(Term("f", "x" * 20), characters_max=10)


def test_a_term_that_is_small_in_memory_and_endless_as_text_is_refused_and_shown_in_part() -> None:
    bomb = doubled(200)
    with pytest.raises(LimitExceededError):
        write_text(bomb, characters_max=1_000_000)
    shown = str(bomb)
    assert len(shown) == SHOWN_MAX + 3
    assert shown.startswith("pair(pair(")
    assert shown.endswith("...")
    assert repr(Term("f", "x")) == 'f("x")'


@pytest.mark.slow
@pytest.mark.parametrize(("write", "parse"), [(write_text, parse_text), (write_taf, parse_taf)])
def test_a_million_levels_survive_text(
    million: Value, write: Callable[[Value], str], parse: Callable[[str], Value]
) -> None:
    with uncollected():
        assert parse(write(million)) is million


@pytest.mark.parametrize(
    "hostile",
    ["[" * 300_000, "f(" * 200_000, "<" * 300_000, "a{" * 200_000, '"' + "\\n" * 500_000],
    ids=["lists", "terms", "placeholders", "annotations", "a string"],
)
def test_a_deep_text_that_ends_too_early_is_refused(hostile: str) -> None:
    with pytest.raises(MalformedTermError):
        parse_text(hostile)
