"""Includes, macros and conditions, and where their tokens stand."""

import pytest

from echoic.errors import ScriptError
from echoic.scripts.syntax import load
from echoic.scripts.syntax.preprocessor import preprocess
from tests.scripts.syntax.shapes import body_of, included, refusal, shape


def words(text: str, **defines: str) -> list[str]:
    return [token.text for token in preprocess(text, "a", include=None, defines=defines, sources={})][:-1]


def places(text: str) -> list[tuple[str, int, int]]:
    tokens = preprocess(text, "a", include=None, defines={}, sources={})
    return [(token.text, token.line, token.column) for token in tokens][:-1]


def test_comments_are_layout() -> None:
    assert words('a %% b\nc // d\ne /* f\n g */ h "%% // /*"') == ["a", "c", "e", "h", '"%% // /*"']


def test_a_name_stands_for_tokens_but_not_in_strings() -> None:
    assert words('#define N 1 . 2\nN a-N "N" N') == ["1", ".", "2", "a-N", '"N"', "1", ".", "2"]


def test_a_macro_may_have_parameters_and_lines() -> None:
    text = '#define SEND(x, Y) snd-msg(x) \\\n  . rec-msg(Y, "x") \\\n  . x\nSEND(f(1,2), [a,b])\nSEND'
    assert "".join(words(text)) == 'snd-msg(f(1,2)).rec-msg([a,b],"x").f(1,2)SEND'


def test_a_macro_without_parameters_may_have_parentheses() -> None:
    assert words("#define F() x\n#define G (y)\nF() G F") == ["x", "(", "y", ")", "F"]


def test_macros_expand_in_macros_and_in_arguments_but_not_in_themselves() -> None:
    text = "#define A B c\n#define B A b\n#define F(x) [x]\nA F(F(A))"
    assert "".join(words(text)) == "Abc[[Abc]]"


def test_definitions_end_with_undef_and_change_with_define() -> None:
    assert words("#define N 1\nN\n#define N 2\nN\n#undef N\nN") == ["1", "2", "N"]


@pytest.mark.parametrize(
    ("defines", "expected"), [({}, "b d e g"), ({"X": ""}, "a d e g"), ({"X": "1", "Y": ""}, "a c d f g")]
)
def test_conditions_choose_and_nest(defines: dict[str, str], expected: str) -> None:
    text = """
    #ifdef X
    a
    #  ifdef Y
    c
    #  endif
    #else
    b "no end
    #  ifndef Y
    #  else
    #  endif
    #endif // X
    d
    #ifndef Y
    e
    #else
    f
    #endif
    g
    """
    text = text.replace(' "no end', "") if not defines else text
    assert words(text, **defines) == expected.split()


def test_what_is_passed_over_need_not_be_a_script() -> None:
    assert words("#ifdef X\n' \" @ /* #endif */\n#if 0\n#foo\n#endif\n#endif\na") == ["a"]


def test_a_hash_in_a_comment_or_string_is_no_directive() -> None:
    assert words('/*\n#define a b\n*/ a "\n#undef"') == ["a", '"\n#undef"']


def test_macros_come_from_outside_too() -> None:
    assert words("LIMIT", LIMIT="f(1)") == ["f", "(", "1", ")"]


def test_a_file_is_included_once_by_its_real_name() -> None:
    files = {
        "main.tb": '#include "a.tb"\n#include <a.tb>\n#include "b.tb"\n#include "main.tb"\ntoolbus(A, B)',
        "a.tb": '#include "b.tb"\nprocess A is tau\n',
        "b.tb": '#include "a.tb"\nprocess B is tau\n',
    }
    script = included(files)
    assert [(process.name, process.span.file, process.span.line) for process in script.processes] == [
        ("B", "b.tb", 2),
        ("A", "a.tb", 2),
    ]
    assert script.sources == files


def test_include_gets_the_name_of_the_file_that_asks() -> None:
    asked = []

    def include(wanted: str, from_file: str) -> tuple[str, str]:
        asked.append((wanted, from_file))
        return f"real/{wanted}", '#include "c.tb"\n' if wanted == "b.tb" else ""

    load('#include "b.tb"', "a.tb", include=include)
    assert asked == [("b.tb", "a.tb"), ("c.tb", "real/b.tb")]


def test_tokens_know_their_place_behind_everything() -> None:
    assert places('/* \n */ a\n"x\ny" b \\\n'.replace(" \\", "")) == [("a", 2, 5), ('"x\ny"', 3, 1), ("b", 4, 4)]


def test_what_a_macro_brings_stands_where_it_is_used() -> None:
    text = "#define F(x) f(x, \\\n g)\n  F(h)"
    assert places(text) == [("f", 3, 3), ("(", 3, 3), ("h", 3, 5), (",", 3, 3), ("g", 3, 3), (")", 3, 3)]


def test_lines_may_end_as_in_windows() -> None:
    assert words("#define N 1 \\\r\n 2\r\nN\r\n") == ["1", "2"]
    assert shape(body_of("tau\r\n.\r\ntau")) == shape(body_of("tau . tau"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('#include "b.tb"', "1:1: there is no file `b.tb`: this script cannot include any"),
        ("#include b", '1:1: expected `#include "file"` or `#include <file>`'),
        (" #ifdeff X", "1:2: there is no directive `#ifdeff` (did you mean `ifdef`?)"),
        ("#define", "1:1: expected the name of a macro behind `#define`"),
        ("#ifdef", "1:1: expected the name of a macro behind `#ifdef`"),
        ("#define F(1) x", "1:1: expected names in the parentheses of the macro `F`"),
        ("#define F(x,x) x", "1:1: two parameters of the macro `F` have one name"),
        ("#define F(x) x\n F(1,2)", "2:2: the macro `F` has 1 argument, got 2"),
        ("#define F(x) x\n F(1", "2:2: the arguments of the macro `F` have no end: `)` is missing"),
        ("#define F @", "1:11: `@` is not part of a T-script"),
        ("#define F(x) \\\n  @", "2:3: `@` is not part of a T-script"),
        ("\n#ifdef X", "2:1: this `#ifdef` has no end: `#endif` is missing"),
        ("#else", "1:1: this `#else` belongs to no `#ifdef`"),
        ("#ifdef X\n#else\n#else\n#endif", "3:1: this `#else` belongs to no `#ifdef`"),
        ("#endif", "1:1: this `#endif` belongs to no `#ifdef`"),
        ("a #define", "1:3: `#` is not part of a T-script: directives begin a line"),
    ],
)
def test_wrong_directives_are_shown(text: str, message: str) -> None:
    assert refusal(text).startswith(f"a.tb:{message}")


def test_a_file_that_is_not_there_is_shown_where_it_is_wanted() -> None:
    with pytest.raises(ScriptError) as caught:
        included({"main.tb": 'process P is tau\n  #include "a.tb"\n'})
    assert str(caught.value) == 'main.tb:2:3: there is no file `a.tb`\n      #include "a.tb"\n      ^'


def test_a_mistake_in_an_included_file_is_shown_there() -> None:
    with pytest.raises(ScriptError) as caught:
        included({"main.tb": '#include "a.tb"', "a.tb": "\nprocess P is tau tau"})
    assert caught.value.problems[0][:3] == ("a.tb", 2, 18)


def test_a_mistake_in_a_macro_names_it() -> None:
    assert refusal("#define TWICE tau tau\nprocess P is TWICE") == (
        "a.tb:2:14: expected a definition (`process`, `tool`, `toolbus`), a delay or timeout or an operator, got `tau`"
        " (in the macro `TWICE`)\n    process P is TWICE\n                 ^"
    )


def test_a_mistake_in_a_macro_from_outside_names_it() -> None:
    with pytest.raises(ScriptError, match=r"-D X:1:1: `@` is not part of a T-script"):
        load("", defines={"X": "@"})
    with pytest.raises(ScriptError, match=r"`1` cannot be the name of a macro"):
        load("", defines={"1": ""})
