"""Work that looks cheap: what it costs is counted, and what it takes to compile is bounded."""

import time

import pytest

from echoic.ecode import Signature, analyse, check, compile_kernel
from echoic.formats import NATIVE, Field, Format, Kind

INPUT = Format.place(
    "Input",
    [
        Field("n", Kind.INT, 4),
        Field("x", Kind.FLOAT, 8),
        Field("s", Kind.STRING, 8),
        Field("t", Kind.STRING, 8),
        Field("k", Kind.CHAR, 1, dimensions=(64,)),
    ],
    NATIVE,
)
COMPILE_SECONDS_MAX = 1.0


def cost(code: str, output: Format | None = None) -> int:
    return analyse(check(code, Signature(INPUT, output))).cost


def test_a_char_array_that_is_filled_costs_what_it_takes_to_clear_it() -> None:
    def filled(width: int) -> int:
        format = Format.place("Wide", [Field("c", Kind.CHAR, 1, dimensions=(width,))], NATIVE)
        loop = '{ int i; for (i = 0; i < 1000; i++) output.c = ""; return 1; }'
        return cost(loop, format) - cost("{ return 1; }", format)

    assert filled(80_000) - filled(8) >= 1000 * 9_900


def test_a_function_that_takes_microseconds_costs_more_than_others() -> None:
    assert cost("fmod(input.x, 3.0) > 1.0") > 2 * cost("sin(input.x) > 1.0")


@pytest.mark.parametrize("tier", ["light", "full"])
@pytest.mark.parametrize(
    "part",
    [
        "input.s == input.t || ",
        "input.k == input.s || ",
        "input.k == input.k || ",
        'input.s == "' + "x" * 60 + '" || ',
        "(input.n > 3 && input.x / input.n < 7.0) || ",
        "fmod(input.x, input.n) > pow(input.x, 2.0) || ",
    ],
)
@pytest.mark.parametrize("nodes_max", [499, 999, 2000])
def test_the_largest_programs_of_their_kind_compile_in_time(part: str, nodes_max: int, tier: str) -> None:
    def of(count: int) -> str:
        return "{ int r = 0; " + f"r += {part}0; " * count + "return r; }"

    one, two = (check(of(count), Signature(INPUT)).nodes for count in (1, 2))
    program = check(of((nodes_max - one) // (two - one)), Signature(INPUT))
    began = time.process_time()
    compile_kernel(program, analyse(program), tier=tier)  # type: ignore[arg-type] # it is one of them
    assert time.process_time() - began < COMPILE_SECONDS_MAX
