"""Words of E-Code, and constants as C writes them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.ecode.numbers import FLOAT32, FLOAT64, INT32, INT64, UINT32, UINT64, Number, convert
from echoic.ecode.syntax.lexer import SOURCE_BYTES_MAX, TOKENS_MAX, Token, tokenize
from echoic.ecode.syntax.literals import read_character, read_number, read_string
from echoic.ecode.syntax.text import Problems, SourceText
from echoic.errors import ECodeError

AT = (1, 1)


def lex(source: str) -> list[Token]:
    return tokenize(Problems(SourceText(source)))


def kinds(source: str) -> list[str]:
    return [token.kind for token in lex(source)]


def refusals(source: str) -> list[tuple[int, int, str]]:
    with pytest.raises(ECodeError) as caught:
        lex(source)
    return list(caught.value.problems)


def test_words_operators_and_constants_are_told_apart() -> None:
    assert kinds("if (a1 <<= 0x1F) b->c.d != 'x' && \"if\";") == [
        *["if", "(", "name", "<<=", "number", ")"],
        *["name", "->", "name", ".", "name", "!=", "character", "&&", "text", ";", "end"],
    ]


def test_the_longest_operator_wins() -> None:
    assert kinds("a+++b---c>>=d>>e>f") == [
        *["name", "++", "+", "name", "--", "-", "name", ">>=", "name", ">>", "name", ">", "name", "end"]
    ]


def test_a_number_that_is_followed_by_a_sign_ends_before_it() -> None:
    assert [token.text for token in lex("0xe+1 1e+1 1+1 .5.")] == ["0xe", "+", "1", "1e+1", "1", "+", "1", ".5.", ""]


def test_positions_count_lines_and_characters_from_one() -> None:
    tokens = lex("a\n  b /* one\n two */ c // rest\n\td")
    assert [token.at for token in tokens] == [(1, 1), (2, 3), (3, 9), (4, 2), (4, 3)]


def test_characters_beyond_ascii_count_as_one_in_comments_and_texts() -> None:
    assert [token.at for token in lex('/* ü€𝄞 */ a "ü€𝄞" b')] == [(1, 11), (1, 13), (1, 19), (1, 20)]


def test_comments_of_both_kinds_are_skipped() -> None:
    assert kinds("/**/ a /* // */ b // /* \n c /***/ / d") == ["name", "name", "name", "/", "name", "end"]


def test_several_characters_that_are_no_words_are_reported_at_once() -> None:
    assert refusals("a @@ b\n#define x\n'") == [
        (1, 3, "`@@` is not part of E-Code"),
        (2, 1, "directives of the preprocessor are not part of E-Code"),
        (3, 1, "this character has no end: the second `'` is missing on the line"),
    ]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("/* a", "this comment has no end: `*/` is missing"),
        ("/*/", "this comment has no end: `*/` is missing"),
        ('"a\n"', 'this text has no end: the second `"` is missing on the line'),
        ('"a\\"', 'this text has no end: the second `"` is missing on the line'),
        ("é", "`é` is not part of E-Code (character U+00E9; only comments and texts may have others than ASCII)"),
        (
            "\x00",
            "`\ufffd` is not part of E-Code (character U+0000; only comments and texts may have others than ASCII)",
        ),
        ("\ud800", "this is half of a character (a lone surrogate), the code cannot be written in UTF-8"),
    ],
)
def test_what_is_no_word_is_named(source: str, message: str) -> None:
    assert refusals(source)[0][2] == message


def test_the_code_may_be_as_long_as_the_limit() -> None:
    assert kinds(" " * (SOURCE_BYTES_MAX - 1) + "a") == ["name", "end"]
    assert refusals(" " * SOURCE_BYTES_MAX + "a") == [(1, 1, "the code has 65537 bytes, limit is 65536")]


def test_the_limit_is_one_of_bytes() -> None:
    assert refusals('"' + "€" * 22000 + '"') == [(1, 1, "the code has 66002 bytes, limit is 65536")]


def test_there_may_be_as_many_words_as_the_limit() -> None:
    assert len(kinds("a;" * (TOKENS_MAX // 2))) == TOKENS_MAX + 1
    assert refusals("a;" * (TOKENS_MAX // 2) + "b")[0][2] == "the code has more than 10000 words"


@pytest.mark.parametrize(
    ("text", "value", "number"),
    [
        ("0", 0, INT32),
        ("2147483647", 2147483647, INT32),
        ("2147483648", 2147483648, INT64),
        ("9223372036854775807", 9223372036854775807, INT64),
        ("0x7fffffff", 0x7FFFFFFF, INT32),
        ("0x80000000", 0x80000000, UINT32),
        ("0xFFFFFFFF", 0xFFFFFFFF, UINT32),
        ("0x100000000", 0x100000000, INT64),
        ("0xffffffffffffffff", 0xFFFFFFFFFFFFFFFF, UINT64),
        ("017", 15, INT32),
        ("0b101", 5, INT32),
        ("0b" + "1" * 64, 0xFFFFFFFFFFFFFFFF, UINT64),
        ("000000000000000000000000000000000000000000000000000000000000000000000001", 1, INT32),
        ("1u", 1, UINT32),
        ("4294967296u", 4294967296, UINT64),
        ("18446744073709551615U", 18446744073709551615, UINT64),
        ("1l", 1, INT64),
        ("1LL", 1, INT64),
        ("1ul", 1, UINT64),
        ("1LLU", 1, UINT64),
        ("0x8000000000000000L", 0x8000000000000000, UINT64),
        ("1.", 1.0, FLOAT64),
        (".5", 0.5, FLOAT64),
        ("1e3", 1000.0, FLOAT64),
        ("1.5e-3", 0.0015, FLOAT64),
        ("08.5", 8.5, FLOAT64),
        ("0.1f", convert(0.1, FLOAT32), FLOAT32),
        ("1e-400", 0.0, FLOAT64),
    ],
)
def test_a_number_has_the_value_and_the_type_that_c_gives_it(text: str, value: float, number: Number) -> None:
    found, its_number = read_number(text, AT)
    assert (found, its_number) == (value, number)
    assert isinstance(found, float) == number.floating


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("9223372036854775808", "does not fit `int64` (write `9223372036854775808u` for `uint64`)"),
        ("18446744073709551616", "does not fit any integer type, the largest is 18446744073709551615"),
        ("0x" + "f" * 17, "does not fit any integer type, the largest is 18446744073709551615"),
        ("9" * 5000, "does not fit any integer type, the largest is 18446744073709551615"),
        ("1e999", "does not fit `float64`"),
        ("1e39f", "does not fit `float32`"),
        ("1.5L", "is a `long double`, which is not part of E-Code"),
        ("089", "is not a number (a leading 0 means octal)"),
        ("1_000", "is not a number (digits cannot be grouped by `_`)"),
        ("12abc", "is not a number"),
        ("0x", "is not a number"),
        ("0x1p3", "is not a number"),
        ("1.2.3", "is not a number"),
        ("1e", "is not a number"),
        ("1lul", "is not a number"),
        ("1f", "is not a number"),
    ],
)
def test_what_is_no_number_is_refused(text: str, message: str) -> None:
    with pytest.raises(ECodeError) as caught:
        read_number(text, AT)
    shown = text if len(text) <= 60 else text[:60] + "..."
    assert caught.value.problems == ((1, 1, f"`{shown}` {message}"),)


@given(st.floats(min_value=0, allow_nan=False, allow_infinity=False))
def test_every_float_can_be_written(value: float) -> None:
    text = repr(value)
    assert read_number(text, AT) == (value, FLOAT64)


@given(st.integers(0, 2**64 - 1))
def test_every_unsigned_integer_can_be_written_in_every_base(value: int) -> None:
    spellings = [f"{value}u", f"{value:#x}u", f"{value:#b}u", f"0{value:o}u"]
    assert {read_number(text, AT) for text in spellings} == {(value, UINT32 if value < 2**32 else UINT64)}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'A'", 65),
        ("'\\n'", 10),
        ("'\\0'", 0),
        ("'\\x41'", 65),
        ("'\\377'", -1),
        ("'\\''", 39),
        ("'\"'", 34),
        ("' '", 32),
    ],
)
def test_a_character_is_a_signed_byte(text: str, value: int) -> None:
    assert read_character(text, AT) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("''", "a character constant is one byte, `''` has 0"),
        ("'ab'", "a character constant is one byte, `'ab'` has 2"),
        ("'é'", "a character constant is one byte, `'é'` has 2"),
        ("'\\q'", "`\\q` is not a character"),
        ("'\\x'", "`\\x` is not a character"),
        ("'\\400'", "`\\400` is not a character"),
        ("'\\x100'", "`\\x100` is not a character"),
    ],
)
def test_what_is_no_character_is_refused(text: str, message: str) -> None:
    with pytest.raises(ECodeError) as caught:
        read_character(text, AT)
    assert caught.value.problems[0][2] == message


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ('""', b""),
        ('"IBM"', b"IBM"),
        ('"a\\tb\\\\c\\"d"', b'a\tb\\c"d'),
        ('"\\1012"', b"A2"),
        ('"\\x41g"', b"Ag"),
        ('"ü\\n€"', "ü\n€".encode()),
    ],
)
def test_a_text_is_its_bytes_in_utf_8(text: str, data: bytes) -> None:
    assert read_string(text, AT) == data


def test_a_bad_escape_is_shown_where_it_stands() -> None:
    with pytest.raises(ECodeError) as caught:
        read_string('"ab\\z"', (3, 5))
    assert caught.value.problems == ((3, 8, "`\\z` is not a character"),)


def test_a_float_of_many_digits_is_rounded_once() -> None:
    assert math.isclose(float(read_number("0." + "3" * 1000, AT)[0]), 1 / 3, rel_tol=0)
