"""Texts of strangers: whatever they are, the answer is an error, and it comes soon."""

import itertools
import subprocess
import sys
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import ScriptError
from echoic.scripts.syntax import load
from echoic.scripts.syntax.problems import PROBLEMS_MAX
from echoic.scripts.syntax.tokens import KINDS

SECONDS_MAX = 8.0  # of the processor, on a busy machine; each of them takes a fraction of it


def bomb(macros: int, width: int) -> str:
    lines = [f"#define A{number} {f'A{number + 1} ' * width}" for number in range(macros)]
    return "\n".join([*lines, "process P is A0"])


def calling_bomb(macros: int) -> str:
    lines = [f"#define F{number}(x) F{number + 1}(x x)" for number in range(macros)]
    return "\n".join([*lines, "process P is F0(tau)"])


def deep_macros(depth: int) -> str:
    return f"#define A {'list(' * depth}\n#define B {')' * depth}\nprocess P(X : A A int B B) is tau"


HOSTILE = {
    "ten megabytes of parentheses": "(" * 10_000_000,
    "seven megabytes of parentheses": "process P is " + "(" * 7_000_000,
    "deep parentheses": "process P is " + "(" * 201 + "tau" + ")" * 201,
    "deep lists": "process P is snd-msg(" + "[" * 100_000 + "]" * 100_000 + ")",
    "deep applications": "process P is snd-msg(" + "f(" * 5_000 + ")" * 5_001,
    "deep types": "process P(X : " + "list(" * 5_000 + "int" + ")" * 5_000 + ") is tau",
    "deep placeholders": "process P(X : " + "<" * 5_000 + "int" + ">" * 5_000 + ") is tau",
    "deep conditions": "process P is " + "if X then " * 5_000 + "tau" + " fi" * 5_000,
    "deep lets": "process P is " + "let X : int in " * 5_000 + "tau" + " endlet" * 5_000,
    "many loops": "process P is " + " * ".join(["tau"] * 5_000),
    "many biased choices": "process P is " + " +> ".join(["tau"] * 5_000),
    "too many words": "process P is " + " . ".join(["tau"] * 700_000),
    "an open string": '"' + "a" * 1_000_000,
    "an open comment": "/*" * 1_000_000,
    "open strings": '"\\' * 100_001,
    "an open condition": "#ifdef X\n" * 50_000,
    "quotes that are passed over": "#ifdef X\n" + '"' * 300_000,
    "a bomb of macros": bomb(40, 10),
    "a bomb of arguments": calling_bomb(60),
    "a long chain of macros": bomb(50_000, 1) + " tau",
    "nested uses of a macro": "#define F(x) x\nprocess P is " + "F(" * 190 + "tau" + ")" * 190,
    "a macro that is deep": "#define A (((((((((\n#define B A A A A A A A A A A A A A A A A\nprocess P is B B B B",
    "zeros": "\0" * 1_000_000,
    "all bytes": bytes(range(256)).decode("latin-1") * 1000,
    "half characters": "process P is printf(\"\ud800\")",
    "a long number": "process P is snd-msg(" + "9" * 1_000_000 + ")",
    "a long name": "process P is " + "a" * 1_000_000,
    "a long line": "process P is tau tau " * 100_000,
    "many backslashes": "#define X " + "\\\n" * 500_000 + "@",
    "comments that are passed over": "#ifdef X\n" + "/* " * 500_000,
    "comments in a directive": "#define X " + "/* " * 500_000,
    "comments in directives": "#undef X /* \n" * 100_000,
    "a long parameter": "#define F(" + "a" * 100_000 + "@) x",
    "parameters": "#define F(" + "a, " * 100_000 + ") x",
    "types that macros make deep": deep_macros(150),
    "many hashes": "#\n" * 100_000,
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_is_refused_soon(name: str) -> None:
    start = time.thread_time()
    with pytest.raises(ScriptError) as caught:
        load(HOSTILE[name])
    assert time.thread_time() - start < SECONDS_MAX
    assert len(caught.value.problems) <= PROBLEMS_MAX
    assert len(str(caught.value)) < 30_000


def test_files_that_include_ever_more_files_are_refused() -> None:
    numbers = itertools.count()
    with pytest.raises(ScriptError, match="files are included deeper than 50"):
        load('#include "x"', include=lambda wanted, _: (f"{wanted}{next(numbers)}", '#include "x"'))


def test_a_file_that_includes_many_files_is_refused() -> None:
    text = "\n".join(f'#include "{number}"' for number in range(2000))
    with pytest.raises(ScriptError, match="more than 1000 files"):
        load(text, include=lambda wanted, _: (wanted, ""))


def test_files_together_are_limited() -> None:
    text = "\n".join(f'#include "{number}"' for number in range(100))
    with pytest.raises(ScriptError, match=r"the script has \d+ bytes, limit is 8388608"):
        load(text, include=lambda wanted, _: (wanted, " " * 1_000_000))


@pytest.mark.parametrize("error", [FileNotFoundError(), PermissionError("no"), KeyError("x"), ValueError("not UTF-8")])
def test_a_file_that_cannot_be_read_is_refused(error: Exception) -> None:
    def include(wanted: str, from_file: str) -> tuple[str, str]:
        raise error

    with pytest.raises(ScriptError, match="1:1: there is no file `x`"):
        load('#include "x"', include=include)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(ScriptError):
        load(text)


@given(st.lists(st.sampled_from([*KINDS, "P", "Q", "a", "b", "1", "1.5", '"s"', "#define", "#ifdef", "#endif", "\n"])))
def test_any_words_are_read_or_refused(words: list[str]) -> None:
    with suppress(ScriptError):
        load(" ".join(words))


def test_lark_and_the_compilers_are_not_imported_before_they_are_needed() -> None:
    code = (
        "import sys, echoic.scripts.syntax as syntax; a = 'lark' in sys.modules;"
        "syntax.load('process P is tau'); print(a, 'lark' in sys.modules, 'echoic.ecode' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "False"]
