"""The text of generated Python: made of our own words, whatever a program says."""

import builtins
import re
import threading

import pytest

from echoic.ecode.analysis import analyse
from echoic.ecode.generated_python import PythonKernel, compile_python
from echoic.ecode.generated_python.source import Expression, Source, plain
from echoic.errors import CodegenError
from echoic.wire import Batch
from tests.ecode.orders import Made, Order, order
from tests.ecode.programs import Statics, checked, compiled, run_batch

WORDS = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
OURS = re.compile(r"[abinopqstvxzK]\d+|p[bnq]\d+")
HOSTILE = """
    static int os = 3; int exec = 1, event = 2, make = 3, Stop = 4, data = 5, t1 = 6, v1 = 7; double K0 = 1.5;
    output.name = "__import__('os').system('true')\\n\\"\\"\\"";
    output.symbol = "');'";
    if (input.name == "eval") os += exec + event + make + Stop + data + t1 + v1 + K0;
    output.number = os + 1;
    resize(output.points, 2);
    output.points[input.n - 2].x = sin(input.price);
    return output.name != "\\x00" && input.legs[0].name != "\\xe9x";
"""


def kernel_of(source: str) -> PythonKernel:
    program = checked(source, Order, Made)
    return compile_python(program, analyse(program))


def test_no_word_of_a_program_is_part_of_the_text() -> None:
    text = kernel_of(HOSTILE).text
    known = {
        *(
            "def",
            "return",
            "if",
            "else",
            "for",
            "in",
            "while",
            "break",
            "continue",
            "not",
            "and",
            "or",
            "raise",
            "pass",
        ),
        *(
            "finish",
            "make",
            "event",
            "params",
            "statics",
            "limit",
            "data",
            "at",
            "end",
            "fuel",
            "blocks",
            "out",
            "cast",
        ),
        *("Stop", "stop", "NUL", "EMPTY", "JOIN", "characters", "ljust", "append", "memoryview", "bytes", "bytearray"),
        *("len", "range", "float", "single", "quotient", "remainder", "divided", "saturated", "nearest_single", "sin"),
        *("i", "d", "f", "None", "True", "False"),
    }
    strange = {word for word in WORDS.findall(text) if word not in known and not OURS.fullmatch(word)}
    assert not strange
    assert not set(text) - set("\n '()[]{}:=+-*/%&|^~<>!.,_" + "0123456789") - set(map(chr, range(65, 123)))


def test_hostile_text_is_just_text() -> None:
    ran = run_batch(kernel_of(HOSTILE), Batch.of([order(), order(name="eval")]))
    assert not ran.faults
    assert ran.events[0].name == "__import__('os').system('true')\n\"\"\""
    assert [made.number for made in ran.events] == [4, 33]


def test_generated_code_has_few_builtins() -> None:
    kernel = kernel_of(HOSTILE)
    reachable = set(vars(kernel)["_make"].__globals__["__builtins__"])
    assert reachable < set(dir(builtins))
    assert not reachable & {"__import__", "eval", "exec", "open", "getattr", "compile", "globals"}


def test_a_transform_cannot_be_bound() -> None:
    with pytest.raises(CodegenError):
        kernel_of(HOSTILE).bind(b"", bytearray(64), 1000)


def test_blocks_that_are_too_small_are_refused() -> None:
    kernel = compile_python(program := checked("static long n; n++; return 1;", Order), analyse(program))
    with pytest.raises(CodegenError, match="the statics have 4 bytes, expected 8"):
        kernel.run(b"", b"\0\0\0\0", 0, b"", bytearray(4))
    with pytest.raises(CodegenError, match="1 records of a variable type need 2 bounds"):
        kernel.run(b"", None, 1, b"", bytearray(8))


def test_a_kernel_has_no_state_so_threads_can_share_it() -> None:
    kernel = compiled("python", checked("static int n; n += input.number; return n % 2;", Order))
    batch = Batch.of([order(number=number) for number in range(300)])
    expected = run_batch(kernel, batch)
    found = []

    def work() -> None:
        statics = Statics(kernel.program)
        found.append((run_batch(kernel, batch, statics=statics).selected, statics.values()))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(expected.selected, expected.statics)] * 6


def test_the_block_of_statics_can_be_resized_after_a_run() -> None:
    statics = bytearray(8)
    kernel = compile_python(program := checked("static long n; n = 5; return 1;", Order), analyse(program))
    batch = Batch.of([order()])
    kernel.run(batch.records, bytes(4) + len(batch.records).to_bytes(4, "little"), 1, b"", statics)
    assert statics == (5).to_bytes(8, "little")
    statics += b"more"


def test_what_stands_before_a_part_that_writes_lines_is_evaluated_before_them() -> None:
    source = Source()

    def writing() -> Expression:
        source.line("v2 = 5")
        return Expression("v2")

    parts = source.together(lambda: Expression("v1[0]"), lambda: plain(3), writing, lambda: Expression("v2"))
    assert [part.text for part in parts] == ["t1", "3", "v2", "v2"]
    assert source.lines == ["t1 = v1[0]", "v2 = 5"]
