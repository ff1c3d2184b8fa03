"""Compiling to native code: how long it takes, what it leaves behind, and many at once."""

import gc
import struct
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest

from echoic.ecode.analysis import analyse
from echoic.ecode.native import compile_native
from echoic.ecode.program import Signature
from echoic.errors import CodegenError
from echoic.formats import NATIVE, Format
from echoic.wire import Batch
from tests.ecode.native_programs import (
    SUMMARY,
    TRADE,
    TRADE_FILTER,
    Length,
    Made,
    Reading,
    bounds_of,
    kernel_of,
    program_of,
    readings,
    run,
    trades,
)

LARGE = {
    "straight": lambda k: "int x = input.volume;" + f"x = x * {k} + (x >> 3);" * (k // 10) + "return x;",
    "loops": lambda k: "int x = input.volume; int i;" + "for (i = 0; i < 9; i++) x += i ^ x;" * (k // 19) + "return x;",
    "whiles": lambda k: (
        "int x = input.volume; int i = 0;" + "while (i < x) { i += 3; if (i == 7) break; }" * (k // 19) + "return x;"
    ),
    "texts": lambda k: (
        "int x = 0;" + "".join(f'if (input.code == "a{n % 99}") x += {n};' for n in range(k // 8)) + "return x;"
    ),
    "divisions": lambda k: "int x = input.volume;" + "x = x / (x + 1) + 7 % (x | 1);" * (k // 17) + "return x;",
}


@pytest.mark.parametrize("tier", ["light", "full"])
@pytest.mark.parametrize("kind", LARGE)
@pytest.mark.parametrize("size", [500, 1000, 2000])
def test_the_largest_programs_compile_in_half_a_second(kind: str, tier: Any, size: int) -> None:
    program = program_of("{" + LARGE[kind](size) + "}", Signature(TRADE))
    assert 0.6 * size < program.nodes <= 2000
    analysis = analyse(program)
    begin = time.process_time()
    kernel = compile_native(program, analysis, tier=tier)
    assert time.process_time() - begin < 0.5
    array = trades(20)
    array["volume"] += 1
    assert kernel.run(array.tobytes(), None, 20, b"", bytearray()).handled == 20


def test_a_known_program_is_only_linked() -> None:
    program = program_of(TRADE_FILTER, Signature(TRADE))
    analysis = analyse(program)
    compile_native(program, analysis)
    times = []
    for _ in range(20):
        begin = time.process_time()
        compile_native(program, analysis)
        times.append(time.process_time() - begin)
    assert min(times) < 0.003


GROWTH = """
import gc, resource, sys
from pathlib import Path
import numpy
from echoic.codegen import library
from echoic.ecode.analysis import analyse
from echoic.ecode.compiling import check
from echoic.ecode.native import compile_native
from echoic.ecode.program import Signature
from echoic.formats import Format

library.OBJECT_BYTES_MAX = 100_000
trade = Format.of(numpy.dtype([("price", "f8"), ("wind", "f4", (30,)), ("code", "S8")]))
output = Format.of(numpy.dtype([("total", "f8")]))
tier, count = sys.argv[1], int(sys.argv[2])

def memory():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

def compile_some(start, end):
    for number in range(start, end):
        source = (
            f"static int n{number}; int i; n{number}++;"
            f"if (input.price < {number}.5 || input.code == \\"c{number}\\") return 0;"
            f"for (i = 0; i < {number % 29 + 1}; i++) output.total += input.wind[i] * {number};"
            f"return n{number} % {number + 2} + 1;"
        )
        program = check(source, Signature(trade, output))
        kernel = compile_native(program, analyse(program), tier=tier)
        kernel.run(bytes(trade.size), None, 1, b"", program.initial_statics())

compile_some(0, 150)
before = memory()
compile_some(150, 150 + count)
print((memory() - before) / count)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="tells its memory elsewhere")
@pytest.mark.parametrize("tier", ["light", "full"])
def test_programs_that_are_dropped_leave_nothing_behind(tier: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", GROWTH, tier, "300"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1500


def test_six_threads_compile_and_run_at_once() -> None:
    array = trades(400)
    array["volume"] = numpy.arange(400)
    problems: list[str] = []
    together = threading.Barrier(6)

    def work(thread: int) -> None:
        together.wait()
        for turn in range(15):
            step = thread * 15 + turn + 2
            code = (
                f"{{ static int total = 0; total += input.volume % {step} == 0; return input.volume % {step} == 0; }}"
            )
            kernel = kernel_of(code, Signature(TRADE))
            statics = kernel.program.initial_statics()
            for release in (False, True):
                outcome = kernel.run(array.tobytes(), None, 400, b"", statics, release=release)
                if outcome.selected.tolist() != list(range(0, 400, step)):
                    problems.append(f"step {step}: {outcome}")
            if struct.unpack_from("=i", statics)[0] != 2 * len(range(0, 400, step)):
                problems.append(f"step {step}: {statics!r}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def test_one_kernel_is_used_by_several_threads() -> None:
    kernel = kernel_of(SUMMARY, Signature(Format.of(Reading), Format.of(Made)))
    batch = Batch.of(readings(300))
    bounds = bounds_of(batch)
    expected = bytes(run(kernel, batch).records or b"")
    results: list[bytes] = []

    def work() -> None:
        for _ in range(20):
            outcome = kernel.run(batch.records, bounds, 300, b"", bytearray(), release=True)
            results.append(bytes(outcome.records or b""))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 80
    assert set(results) == {expected}


def test_code_stays_while_a_builtin_is_bound_to_it() -> None:
    look = kernel_of("input.volume > 3", Signature(TRADE)).bind(b"", bytearray())
    gc.collect()
    for number in range(5):
        kernel_of(f"input.volume > {number + 10}", Signature(TRADE))
    array = trades(1)
    array["volume"] = 4
    assert look(array.tobytes()) == 1


def test_pointers_as_slots_are_refused() -> None:
    pointers = Format.of(Length).on(NATIVE.with_pointers())
    program = program_of("input.total > 1", Signature(Format.of(Length)))
    with pytest.raises(CodegenError, match="pointers"):
        compile_native(replace(program, signature=Signature(pointers)), analyse(program))
