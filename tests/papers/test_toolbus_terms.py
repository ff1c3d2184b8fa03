"""Terms of the ToolBus: the data model, the text and binary forms with their golden vectors, and patterns.

The binary form and the shared text are also written here a second time, as short as they can be, and compared.
"""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.errors import EchoicError, EncodeError
from echoic.terms import (
    Annotated,
    Placeholder,
    Term,
    TermList,
    Value,
    make,
    match,
    parse_text,
    plain,
    same,
    write_text,
)
from echoic.terms.appendix_b import decode_appendix_b, encode_appendix_b
from echoic.terms.baf import decode_baf
from echoic.terms.saf import BlockReader, decode_file, decode_saf, encode_blocks, encode_file, encode_saf
from echoic.terms.taf import parse_taf, write_taf

DEPTH = 50_000

names = st.sampled_from(["f", "g", "a-b", "x_1", "snd-do", "test"])
leaves = st.one_of(
    st.integers(-(2**31), 2**31 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(codec="latin-1"), max_size=5),
    st.booleans(),
    names.map(Term),
)


def grown(parts: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    return st.one_of(
        st.builds(lambda name, args: Term(name, *args), names, st.lists(parts, min_size=1, max_size=4)),
        st.builds(lambda args: Term("q", *args, quoted=True), st.lists(parts, min_size=1, max_size=2)),
        st.lists(parts, max_size=4).map(lambda elements: TermList(*elements)),
        parts.map(Placeholder),
        st.builds(
            lambda value, label: value if isinstance(value, Annotated) else Annotated(value, label), parts, parts
        ),
    )


terms = st.recursive(leaves, grown, max_leaves=20)


# Data model


def test_equal_terms_are_the_same_object() -> None:
    assert parse_text("f(a,[1,<int>])") is Term("f", Term("a"), TermList(1, Placeholder(Term("int"))))
    assert parse_text("1{[a,b]}") is Annotated(1, TermList(Term("a"), Term("b")))


def test_kinds_are_told_apart() -> None:
    different = [
        parse_text(text) for text in ("f(1)", "f(1.0)", "f(true)", 'f("1")', "f(1){a}", "f(<1>)", "f([1])", '"f"(1)')
    ]
    assert len({id(each) for each in different}) == len(different)
    assert not same(1, True)
    assert not same(1, 1.0)
    assert not same("a", Term("a"))


def test_annotations_are_part_of_identity_but_not_of_matching() -> None:
    annotated = parse_text("f(1{a}){[label,value]}")
    assert annotated is not parse_text("f(1)")
    assert plain(annotated) is parse_text("f(1)")
    assert same(annotated, parse_text("f(1)"))


def test_booleans_and_strings_are_values_of_their_own() -> None:
    assert parse_text("[true,false]") == TermList(True, False)
    assert parse_text('"a"') == "a"
    for wrong in (lambda: Term("true"), lambda: Term("a", quoted=True), lambda: Term("f", object())):
        with pytest.raises(EncodeError):
            wrong()


# Text


@pytest.mark.parametrize(
    "text",
    [
        'f(a,1,-2,3.14,"q \\" s",[x,y],<int>){[label,value]}',
        "(a,b)",
        "a_b-c+d*e$f",
        "[]",
        "[[],[[]]]",
        "<f(<int>,[<str>])>",
        '"f"(1)',
        "1{[a,b],[c,d]}",
        '"a\\nb\\tc\\\\d"',
        "f(g(h(i)))",
        "true",
        "-1.5",
        "12345678901234567890",
    ],
)
def test_text_is_written_as_it_was_read(text: str) -> None:
    assert write_text(parse_text(text)) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\n\t\r\b\f\\\"\'"', "\n\t\r\b\f\\\"'"),
        (r'"\101\102"', "AB"),
        (" f ( a , 1 ) ", Term("f", Term("a"), 1)),
        ("[ 1 ,\n2 ]", TermList(1, 2)),
        ("1.0e3", 1000.0),
        ("()", Term("")),
    ],
)
def test_other_ways_to_write_text(text: str, value: Value) -> None:
    assert same(parse_text(text), value)


def test_types_and_results_behind_terms_become_annotations() -> None:
    for text, label in (("x:int", "type"), ("x?", "result")):
        value = parse_text(text, suffixes=True)
        assert isinstance(value, Annotated)
        assert value.value is Term("x")
        assert label in write_text(value)


@pytest.mark.parametrize(
    "text", ["", "f(", "f(1", "f(,)", "[1,]", "<int", '"a', "f)", "1 2", "{a}", "1{", "f(1)g", "#A", "!a"]
)
def test_what_is_no_text_of_a_term(text: str) -> None:
    with pytest.raises(EchoicError):
        parse_text(text)


@given(terms)
def test_text_says_all(value: Value) -> None:
    again = parse_text(write_text(value))
    assert again == value
    assert type(again) is type(value)


# Shared text


def test_shared_text_golden() -> None:
    assert write_taf(parse_text("f(test,test)")) == "!f(test,#A)"
    assert write_taf(parse_text("f(ab,ab)")) == "!f(ab,ab)"
    assert write_taf(parse_text("[abc,g(abc),g(abc)]")) == "![abc,g(#A),#B]"


DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


class NaiveTaf:
    """Shared text from its rule alone."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def abbreviation(self, number: int) -> str:
        digits = DIGITS[number % 64]
        while number := number // 64:
            digits = DIGITS[number % 64] + digits
        return f"#{digits}"

    def write(self, value: Value) -> str:
        whole = write_text(value)
        if whole in self.numbers:
            return self.abbreviation(self.numbers[whole])
        match value:
            case TermList(elements=elements):
                text = f"[{','.join(map(self.write, elements))}]"
            case Term(name=name, args=args, quoted=False) if args:
                text = f"{name}({','.join(map(self.write, args))})"
            case _:
                text = whole
        if len(text) > len(self.abbreviation(len(self.numbers))):
            self.numbers[whole] = len(self.numbers)
        return text


simple = st.recursive(
    st.one_of(st.integers(-999, 99999), st.sampled_from(["abc", "d"]), names.map(Term)),
    lambda parts: st.one_of(
        st.builds(lambda name, args: Term(name, *args), names, st.lists(parts, min_size=1, max_size=5)),
        st.lists(parts, max_size=5).map(lambda elements: TermList(*elements)),
    ),
    max_leaves=150,
)


@settings(max_examples=60, deadline=None)
@given(simple)
def test_shared_text_follows_its_rule(value: Value) -> None:
    assert write_taf(value) == "!" + NaiveTaf().write(value)
    assert parse_taf(write_taf(value)) == value


def test_shared_text_with_more_than_64_numbers() -> None:
    value = TermList(*[Term(f"name{number}") for number in range(70)] * 2)
    assert write_taf(value) == "!" + NaiveTaf().write(value)
    assert "#BF" in write_taf(value)
    assert parse_taf(write_taf(value)) is value


@given(terms)
def test_shared_text_says_all(value: Value) -> None:
    assert parse_taf(write_taf(value)) == value


# The binary form

GOLDEN = {
    "line(box(rect(2),rect(5),square(4,3)),circle(10),circle(10))": """01 03 04 6c696e65 01 03 03 626f78 01 01 04
        72656374 02 02 41 02 02 05 01 02 06 737175617265 02 04 02 03 01 01 06 636972636c65 02 0a 80 09""",
    "f(a,b){[1,2]}": "11 02 01 66 01 00 01 61 01 00 01 62 04 01 04 02 02 01 02 02",
    '[1,-256,2000000000,3.25,"q s",<int>]': """04 06 02 01 02 80feffff0f 02 80a8d6b907 03 0000000000000a40 21 00 03
        712073 05 01 00 03 696e74""",
    "a(1)": "01 01 01 61 02 01",
}


@pytest.mark.parametrize("text", GOLDEN)
def test_binary_form_golden(text: str) -> None:
    data = bytes.fromhex("".join(GOLDEN[text].split()))
    assert encode_saf(parse_text(text)) == data
    assert decode_saf(data) is parse_text(text)
    assert encode_file(parse_text(text)) == b"?" + struct.pack("<H", len(data)) + data


class NaiveSaf:
    """The binary form from its rule alone."""

    def __init__(self) -> None:
        self.terms: dict[str, int] = {}
        self.symbols: dict[tuple[str, int, bool], int] = {}

    def varint(self, number: int) -> bytes:
        number &= 0xFFFFFFFF
        data = b""
        while number >= 0x80:
            data += bytes([number & 0x7F | 0x80])
            number >>= 7
        return data + bytes([number])

    def symbol(self, name: str, args: tuple[Value, ...], quoted: bool, flags: int) -> bytes:
        key = (name, len(args), quoted)
        if key in self.symbols:
            head = bytes([0x41 | flags]) + self.varint(self.symbols[key])
        else:
            self.symbols[key] = len(self.symbols)
            text = name.encode()
            head = (
                bytes([0x01 | flags | (0x20 if quoted else 0)]) + self.varint(len(args)) + self.varint(len(text)) + text
            )
        return head + b"".join(map(self.write, args))

    def write(self, value: Value) -> bytes:
        whole = write_text(value)
        if whole in self.terms:
            return b"\x80" + self.varint(self.terms[whole])
        self.terms[whole] = len(self.terms)
        flags, behind = 0, ()
        if isinstance(value, Annotated):
            flags, behind, value = 0x10, value.annotations, value.value
        match value:
            case bool():
                data = self.symbol("true" if value else "false", (), False, flags)
            case int():
                data = bytes([0x02 | flags]) + self.varint(value)
            case float():
                data = bytes([0x03 | flags]) + struct.pack("<d", value)
            case str():
                data = self.symbol(value, (), True, flags)
            case Term(name=name, args=args, quoted=quoted):
                data = self.symbol(name, args, quoted, flags)
            case TermList(elements=elements):
                data = bytes([0x04 | flags]) + self.varint(len(elements)) + b"".join(map(self.write, elements))
            case Placeholder(type=wanted):
                data = bytes([0x05 | flags]) + self.write(wanted)
        return data + (self.write(TermList(*behind)) if behind else b"")


@settings(max_examples=200, deadline=None)
@given(terms)
def test_binary_form_follows_its_rule(value: Value) -> None:
    data = encode_saf(value)
    assert data == NaiveSaf().write(value)
    again = decode_saf(data)
    assert again == value
    assert type(again) is type(value)


@given(terms, st.lists(st.integers(1, 40), min_size=1))
def test_binary_form_survives_any_cutting_of_the_stream(value: Value, sizes: list[int]) -> None:
    stream = b"".join(encode_blocks(value)) + b"behind"
    reader = BlockReader()
    at = 0
    for number in range(len(stream)):
        if reader.complete:
            break
        size = sizes[number % len(sizes)]
        at += reader.receive(stream[at : at + size])
    assert reader.value == value
    assert stream[at:] == b"behind"


def test_large_names_and_blobs_go_over_the_border_of_a_block() -> None:
    value = Term("f", "n" * 100_000, b"\x00\xff" * 100_000, 1)
    data = b"".join(encode_blocks(value))
    assert data[:2] == b"\x00\x00"  # a whole block of 65,536 bytes
    assert decode_file(b"?" + data) is value


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**62, -(2**63), 2**63, -(2**200), 10**40])
def test_integers_of_any_size(value: int) -> None:
    assert decode_saf(encode_saf(Term("f", value, value))) is Term("f", value, value)
    assert parse_text(write_text(value)) == value
    assert decode_appendix_b(encode_appendix_b(value)) == value


@settings(max_examples=300)
@given(st.binary(max_size=60), st.sampled_from([decode_saf, decode_file, decode_baf, decode_appendix_b]))
def test_what_is_no_binary_form_is_an_error_of_ours(data: bytes, decode: object) -> None:
    for each in (data, b"?" + data, bytes.fromhex("008baf8300") + data):
        try:
            decode(each)  # type: ignore[operator]
        except EchoicError:
            pass


# Read only: BAF


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("a", "01 01  01 61 00 00 01  00"),
        ("f(a,a)", "02 02  01 66 02 00 01  01 01  01 01  01 61 00 00 01  00"),
        ("f(a,-1)", "03 03  01 66 02 00 01  01 01  01 02  01 61 00 00 01  05 3c696e743e 00 00 01  00  ffffffff"),
    ],
)
def test_baf_is_read(text: str, symbols: str) -> None:
    data = bytes.fromhex("008baf8300" + symbols.replace(" ", ""))
    assert same(decode_baf(data), parse_text(text))


# The form of the thesis


def test_appendix_b_golden() -> None:
    value = parse_text('snd-data(data("TestData"),data("TestData"))')

    def counts(*numbers: int) -> bytes:
        return struct.pack(f"<{len(numbers)}I", *numbers)

    data = b"\x00\x08snd-data" + counts(0, 2, 0)
    data += b"\x00\x04data" + counts(1, 0, 0) + counts(8) + b"TestData"
    data += b"\x01" + counts(2)
    assert encode_appendix_b(value) == data
    assert decode_appendix_b(data) is value


@given(terms)
def test_appendix_b_says_all(value: Value) -> None:
    again = decode_appendix_b(encode_appendix_b(value))
    assert again == value
    assert type(again) is type(value)


# Depth


def test_terms_may_be_very_deep() -> None:
    value: Value = TermList()
    for number in range(DEPTH):
        value = Term("f", value, number % 3) if number % 2 else TermList(value)
    assert decode_saf(encode_saf(value)) is value
    assert parse_text(write_text(value)) is value
    assert parse_taf(write_taf(value)) is value
    assert decode_appendix_b(encode_appendix_b(value)) is value
    assert match(value, "<term>") == (value,)
    assert same(value, plain(Annotated(value, Term("a"))))


# Patterns


@pytest.mark.parametrize(
    ("pattern", "arguments", "text"),
    [
        ("f(<int>,<real>,<str>)", (1, 2.5, "a"), 'f(1,2.5,"a")'),
        ("<term>", (Term("x", 1),), "x(1)"),
        ("[<int>,<bool>]", (1, True), "[1,true]"),
        ("f(<appl(<int>,<term>)>)", ("g", 1, Term("a")), "f(g(1,a))"),
        ("<fun>", ("a",), "a"),
        ("<id>", ("a",), "a"),
        ("f(a,<list>)", ([1, 2],), "f(a,1,2)"),
        ("[<list>]", ([1, 2],), "[1,2]"),
        ("f(<list>)", ([],), "f"),
        ("<placeholder>", (Term("int"),), "<int>"),
    ],
)
def test_make_fills_and_match_reads(pattern: str, arguments: tuple[object, ...], text: str) -> None:
    value = make(pattern, *arguments)
    assert same(value, parse_text(text))
    taken = match(parse_text(text), pattern)
    assert taken is not None
    assert all(same(a, TermList(*b) if isinstance(b, list) else b) for a, b in zip(taken, arguments, strict=True))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("f(1.0)", "f(<int>)"),
        ("f(1)", "f(<real>)"),
        ("f(a)", "f(<str>)"),
        ('"a"', "<fun>"),
        ("f(1,2)", "f(<int>)"),
        ("g(1)", "f(<int>)"),
        ("f(1)", "f(<appl>)"),
        ("[1]", "f(<int>)"),
        ("f(true)", "f(<int>)"),
    ],
)
def test_what_does_not_match(text: str, pattern: str) -> None:
    assert match(parse_text(text), pattern) is None


@pytest.mark.parametrize(
    ("pattern", "arguments"),
    [("f(<int>)", ("a",)), ("f(<int>)", ()), ("f(<int>)", (1, 2)), ("<str>", (1,)), ("<real>", (1,))],
)
def test_what_does_not_fill(pattern: str, arguments: tuple[object, ...]) -> None:
    with pytest.raises(EncodeError):
        make(pattern, *arguments)
