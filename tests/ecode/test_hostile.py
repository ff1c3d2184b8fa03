"""Programs written to do harm: each is refused at once, or stopped, and none ends or hangs the process.

What may happen to a program is one of four things. It is refused by the compiler; it compiles, but its worst case is
dearer than any hub allows, so that nobody installs it; its event faults; or it is harmless after all and finishes. The
time it may take, in either back end, is processor time, so that a busy machine does not matter.
"""

import struct
import time

import pytest

from echoic.ecode.analysis import analyse
from echoic.ecode.compiling import check
from echoic.ecode.generated_python import compile_python
from echoic.ecode.kernel import FaultKind, Outcome
from echoic.ecode.native import compile_native
from echoic.ecode.program import Signature
from echoic.errors import ECodeError
from echoic.formats import NATIVE, Field, Format, Kind
from tests.ecode.compilers import BACK_ENDS

REFUSAL_SECONDS_MAX = 2.0
RUN_SECONDS_MAX = {"native": 0.05, "python": 3.0}
COST_MAX = 1_000_000  # what a hub allows unless it is told otherwise

INPUT = Format.place(
    "Input",
    [
        Field("n", Kind.INT, 4),
        Field("zero", Kind.INT, 4),
        Field("small", Kind.INT, 4),
        Field("big", Kind.INT, 8),
        Field("infinite", Kind.FLOAT, 8),
        Field("nan", Kind.FLOAT, 8),
        Field("a", Kind.INT, 4, dimensions=(4,)),
        Field("grid", Kind.FLOAT, 8, dimensions=(3, 5)),
        Field("name", Kind.STRING, 8),
        Field("samples", Kind.FLOAT, 4, dimensions=("n",)),
    ],
    NATIVE,
)
OUTPUT = Format.place(
    "Output",
    [
        Field("i", Kind.INT, 4),
        Field("l", Kind.INT, 8),
        Field("n", Kind.INT, 4),
        Field("code", Kind.CHAR, 1, dimensions=(4,)),
        Field("name", Kind.STRING, 8),
        Field("samples", Kind.FLOAT, 4, dimensions=("n",)),
        Field("free", Kind.INT, 8, dimensions=("",)),
    ],
    NATIVE,
)
SIGNATURE = Signature(INPUT, OUTPUT, capacities=(("samples", 8), ("free", 8)))


def record(
    *, name_slot: tuple[int, int] | None = None, samples_slot: tuple[int, int] | None = None, n: int = 3
) -> bytes:
    """Return a record; slots that are given lie about where things are."""
    start = (INPUT.size + 7) // 8 * 8
    fields = INPUT.by_name
    data = bytearray(start)
    struct.pack_into("=iii", data, fields["n"].offset, n, 0, -(2**31))
    struct.pack_into("=qdd", data, fields["big"].offset, -(2**63), float("inf"), float("nan"))
    struct.pack_into("=4i", data, fields["a"].offset, 1, 2, 3, 4)
    struct.pack_into("=II", data, fields["name"].offset, *(name_slot or (start, 3)))
    struct.pack_into("=II", data, fields["samples"].offset, *(samples_slot or (start + 8, 3)))
    data += b"IBM\0".ljust(8, b"\0") + struct.pack("=3f", 1.0, 2.0, 3.0)
    return bytes(data.ljust((len(data) + 7) // 8 * 8, b"\0"))


REFUSED = {
    "constant index of -1": "{ return input.a[-1]; }",
    "constant index of the smallest int": "{ return input.a[-2147483647 - 1]; }",
    "constant index behind the end": "{ return input.a[4]; }",
    "constant index that wraps around": "{ return input.a[4611686018427387904]; }",
    "constant index behind the end of an inner dimension": "{ return input.grid[1][5] > 0; }",
    "division by the constant zero": "{ return 1 / 0; }",
    "remainder of the constant zero": "{ return input.n % (3 - 3); }",
    "a pointer": "{ int *p = 0; *p = 1; return 1; }",
    "the address of a field": "{ return &input.n != 0; }",
    "a cast to a pointer": "{ return *(int *) 0; }",
    "a call of system": '{ system("reboot"); return 1; }',
    "a call of exit": "{ exit(1); return 1; }",
    "a call of printf": '{ printf("%n", input.n); return 1; }',
    "a call of itself": "{ return f(input); }",
    "a function of its own": "int f(int x) { return f(x); } { return f(1); }",
    "goto": "{ again: goto again; }",
    "inline assembly": '{ asm("int3"); return 1; }',
    "a macro": "#define A A A\n{ A; return 1; }",
    "an include": "#include </etc/passwd>\n{ return 1; }",
    "macros that would unfold without end": "#define F(x) F(F(x))\n{ return F(1); }",
    "a write to the input": "{ input.n = 5; return 1; }",
    "a static of a gigabyte": "{ static double huge[134217728]; return huge[0] > 0; }",
    "a static whose size wraps": "{ static char huge[4294967296][4294967296]; return huge[0][0]; }",
    "statics of 64 KB and a little": "{ static char a[65000]; static char b[1000]; return a[0] + b[0]; }",
    "a local of a gigabyte": "{ double huge[134217728]; return huge[0] > 0; }",
    "an array of no length": "{ int a[0]; return 1; }",
    "an array of negative length": "{ int a[-5]; return 1; }",
    "an array of a length that nobody knows": "{ int a[input.n]; return 1; }",
    "nested parentheses": "{ return " + "(" * 5000 + "1" + ")" * 5000 + "; }",
    "nested blocks": "{" * 5000 + "return 1;" + "}" * 5000,
    "nested ifs": "{ " + "if (input.n) " * 5000 + "return 1; return 0; }",
    "nested elses": "{ " + "if (input.n) return 1; else " * 3000 + "return 0; }",
    "nested signs": "{ return " + "-" * 1 + "- " * 20000 + "1; }",
    "nested nots": "{ return " + "!" * 30000 + "1; }",
    "nested casts": "{ return " + "(char)" * 9000 + "1; }",
    "nested choices": "{ return " + "input.n ? 1 : " * 4000 + "0; }",
    "nested indexes": "{ return " + "input.a[" * 6000 + "0" + "]" * 6000 + "; }",
    "nested assignments": "{ int x; return " + "x = " * 15000 + "1; }",
    "nested loops": "{ " + "for (;;) " * 6000 + "; }",
    "a chain of additions of 64 KB": "{ return input.n" + " + input.n" * 6500 + "; }",
    "a chain of shifts of 64 KB": "{ return input.n" + " << 1" * 13000 + "; }",
    "a chain of commas of 64 KB": "{ return " + "1," * 32000 + "1; }",
    "a chain of choices between texts": "{ return " + "input.name == input.name && " * 2300 + "1; }",
    "thousands of statements": "{ int x; " + "x++; " * 13000 + "return 1; }",
    "thousands of variables": "{ " + " ".join(f"int v{number};" for number in range(4500)) + " return 1; }",
    "more than 64 KB": "{ return 1; } //" + "x" * 70000,
    "a constant of ten thousand digits": "{ return " + "9" * 10000 + "; }",
    "a floating constant of a huge exponent": "{ double d = 1e" + "9" * 5000 + "; return 1; }",
    "a hexadecimal constant without end": "{ return 0x" + "f" * 60000 + "; }",
    "a name of 64 KB": "{ return " + "x" * 65000 + "; }",
    "a text that does not end": '{ return input.name == "' + "a" * 60000 + "; }",
    "a comment that does not end": "{ return 1; /*" + "*" * 60000,
    "bytes that are no text": "{ return 1; \x00\x01\x7f }",
    "letters that only look right": "{ r\u0435turn 1; }",
    "nothing": "",
    "an opening brace": "{",
    "thousands of closing braces": "}" * 60000,
    "control that falls off the end": "{ if (input.n) return 1; }",
    "an int that is a text": '{ output.i = "x"; return 1; }',
    "Python": "__import__('os').system('reboot')",
}

TOO_DEAR = {
    "loops of a million in loops of a million": (
        "{ long s = 0; for (int i = 0; i < 1000000; i++) for (int j = 0; j < 1000000; j++) s += j; return s; }"
    ),
    "a loop that counts to the largest int": "{ int s; for (int i = 0; i < 2147483647; i++) s += i; return s; }",
    "a loop that counts to the largest long": (
        "{ long s; for (long i = 0; i < 9223372036854775807; i++) s += i; return s; }"
    ),
    "eight loops of a hundred inside of each other": (
        "{ long s = 0; " + "".join(f"for (int i{d} = 0; i{d} < 100; i{d}++) " for d in range(8)) + "s++; return s; }"
    ),
    "a large array that is cleared a thousand times": (
        "{ int s = 0; for (int i = 0; i < 1000; i++) { char big[60000]; s += big[i]; } return s; }"
    ),
}

FAULTING = {
    "while (1)": ("{ while (1) ; }", FaultKind.FUEL),
    "for (;;)": ("{ for (;;) {} }", FaultKind.FUEL),
    "do while (1)": ("{ int x; do { x++; } while (1 == 1); return 1; }", FaultKind.FUEL),
    "a loop that continues for ever": ("{ while (1) { continue; } }", FaultKind.FUEL),
    "a loop whose body undoes its step": (
        "{ for (int i = 0; i < 10; i++) { i--; } return 1; }",
        FaultKind.FUEL,
    ),
    "a counter that wraps before the bound": ("{ for (char i = 0; i < 200; i++) ; return 1; }", FaultKind.FUEL),
    "an unsigned counter that never gets below zero": (
        "{ for (unsigned i = 10; i >= 0; i--) ; return 1; }",
        FaultKind.FUEL,
    ),
    "a counter that steps over its bound": ("{ for (int i = 0; i != 7; i += 2) ; return 1; }", FaultKind.FUEL),
    "a floating counter that stands still": (
        "{ for (float f = 16777216; f < 16777218; f += 1) ; return 1; }",
        FaultKind.FUEL,
    ),
    "a comparison with NaN that is never true": ("{ while (!(input.nan < 0)) ; return 1; }", FaultKind.FUEL),
    "a step of zero": ("{ for (int i = 0; i < 10; i += input.zero) ; return 1; }", FaultKind.FUEL),
    "a bound that runs away": ("{ int b = 1; for (int i = 0; i < b; i++) b++; return 1; }", FaultKind.FUEL),
    "endless loops inside of each other": ("{ while (1) while (1) while (1) ; }", FaultKind.FUEL),
    "an endless loop in the second branch": ("{ if (input.n == 99) return 1; else while (1) ; }", FaultKind.FUEL),
    "a long loop over nothing": ("{ for (long i = 0; i < input.big ^ -1; i++) ; while (1) ; }", FaultKind.FUEL),
    "a loop over texts": ('{ while (input.name == "IBM") ; return 1; }', FaultKind.FUEL),
    "a loop of mathematics": ("{ double d = 1; while (d != 0) d = sin(d) + 2; return 1; }", FaultKind.FUEL),
    "an endless loop of text assignments": ("{ while (1) output.name = input.name; }", FaultKind.FUEL),
    "an index of -1": ("{ return input.a[input.zero - 1]; }", FaultKind.INDEX),
    "an index of the smallest int": ("{ return input.a[input.small]; }", FaultKind.INDEX),
    "an index of the smallest long": ("{ return input.a[input.big]; }", FaultKind.INDEX),
    "an index whose product with the size wraps": ("{ return input.a[input.big >> 1]; }", FaultKind.INDEX),
    "an index one behind the end": (
        "{ int i; for (i = 0; i <= 4; i++) output.i += input.a[i]; return 1; }",
        FaultKind.INDEX,
    ),
    "an inner index that reaches the next row": ("{ return input.grid[0][input.n + 2] > 0; }", FaultKind.INDEX),
    "an index made of NaN's sign": ("{ return input.a[(int) (input.nan) - 1]; }", FaultKind.INDEX),
    "an index made of infinity": ("{ return input.a[(long) input.infinite]; }", FaultKind.INDEX),
    "a write before a local array": ("{ int a[4]; a[input.zero - 1] = 7; return 1; }", FaultKind.INDEX),
    "a write behind a local array": ("{ int a[4]; a[input.n + 1] = 7; return 1; }", FaultKind.INDEX),
    "a write behind a static array": ("{ static int a[4]; a[input.n + 1] = 7; return 1; }", FaultKind.INDEX),
    "a dynamic array beyond its end": ("{ return input.samples[input.n] > 0; }", FaultKind.INDEX),
    "a dynamic array before its start": ("{ return input.samples[input.small] > 0; }", FaultKind.INDEX),
    "a dynamic array at a huge index": ("{ return input.samples[-(input.big + 1)] > 0; }", FaultKind.INDEX),
    "a byte behind a text": ("{ return input.name[3]; }", FaultKind.INDEX),
    "a byte before a text": ("{ return input.name[input.small]; }", FaultKind.INDEX),
    "an output array beyond its capacity": ("{ output.samples[input.n + 5] = 1; return 1; }", FaultKind.INDEX),
    "an output length beyond its capacity": ("{ output.n = 9; return 1; }", FaultKind.LENGTH),
    "a negative output length": ("{ output.n = input.small; return 1; }", FaultKind.LENGTH),
    "a resize to a huge length": ("{ resize(output.free, input.big); return 1; }", FaultKind.LENGTH),
    "a text longer than its char array": (
        "{ output.code = output.name; output.name = input.name; return 1 / input.zero; }",
        FaultKind.DIVISION,
    ),
    "a division by zero": ("{ return 10 / input.zero; }", FaultKind.DIVISION),
    "a remainder of zero": ("{ return 10 % input.zero; }", FaultKind.DIVISION),
    "a long division by zero": ("{ return input.big / input.zero; }", FaultKind.DIVISION),
    "a division by zero in an assignment": ("{ int x = 1; x /= input.zero; return 1; }", FaultKind.DIVISION),
    "the smallest long by zero": ("{ return input.big % (long) input.zero; }", FaultKind.DIVISION),
}

FINISHING = {
    "the smallest int by -1": "{ output.i = input.small / (input.zero - 1); return output.i == input.small; }",
    "the smallest long by -1": "{ output.l = input.big / (input.zero - 1); return output.l == input.big; }",
    "the remainder of the smallest by -1": "{ return input.small % (input.zero - 1) == 0; }",
    "a shift by a thousand": "{ return (1 << (input.n + 997)) == (1 << (1000 & 31)); }",
    "a shift by a negative amount": "{ return (1 << (input.zero - 1)) == input.small; }",
    "a long shift by the smallest int": "{ return ((long) 1 << input.small) == 1; }",
    "a signed shift of everything": "{ return (input.small >> 31) == -1 && (input.big >> 63) == -1; }",
    "NaN to int": "{ return (int) input.nan == 0 && (unsigned char) input.nan == 0; }",
    "infinity to int": "{ return (int) input.infinite == 2147483647 && (char) -input.infinite == -128; }",
    "infinity to unsigned long": "{ return (unsigned long) input.infinite == 18446744073709551615u; }",
    "overflow": "{ return 2147483647 + input.n < 0 && -input.small == input.small; }",
    "negation of the smallest long": "{ return -input.big == input.big; }",
    "a float beyond float32": "{ float f = 1e300 * input.n; return isinf(f); }",
    "a double division by zero": "{ return isinf(1.0 / input.zero) && isnan(0.0 / input.zero); }",
    "mathematics outside of its domain": "{ return isnan(sqrt(-1.0)) && isnan(log(-1.0)) && isinf(log(0.0)); }",
    "powers that overflow": "{ return isinf(pow(10.0, 400.0)) && isinf(exp(1000.0)) && isnan(fmod(1.0, 0.0)); }",
    "a loop that does nothing a hundred thousand times": "{ for (int i = 0; i < 100000; i++) ; return 1; }",
    "locals of 64 KB": "{ char a[65536]; a[input.n] = 1; return a[input.n]; }",
    "statics of 64 KB": "{ static char a[65536]; a[input.n] = 1; return a[input.n]; }",
}

LYING = {
    "a name behind the record": {"name_slot": (1 << 20, 3)},
    "a name that reaches out of the record": {"name_slot": (INPUT.size + 8, 4000)},
    "a name of 4 GB": {"name_slot": (INPUT.size + 8, 0xFFFFFFFF)},
    "a name whose end wraps": {"name_slot": (0xFFFFFFF8, 0x10)},
    "a name inside the fixed part": {"name_slot": (4, 4)},
    "a null slot with a length": {"name_slot": (0, 9)},
    "samples behind the record": {"samples_slot": (1 << 20, 3)},
    "samples that reach out of the record": {"samples_slot": (INPUT.size + 8, 3000), "n": 3000},
    "samples whose size wraps": {"samples_slot": (INPUT.size + 8, 0x40000000), "n": 0x40000000},
    "samples that are not aligned": {"samples_slot": (INPUT.size + 9, 3)},
    "samples of another length than the record says": {"n": 2},
    "samples of a negative length": {"n": -1},
}


def run(back_end: str, source: str, data: bytes) -> Outcome:
    """Compile and run over one record, in no more time than is allowed."""
    program = check(source, SIGNATURE)
    analysis = analyse(program)
    assert analysis.cost <= COST_MAX
    kernel = (compile_native if back_end == "native" else compile_python)(program, analysis)
    bounds = struct.pack("=2I", 0, len(data))
    began = time.thread_time()
    outcome = kernel.run(data, bounds, 1, b"", program.initial_statics())
    assert time.thread_time() - began < RUN_SECONDS_MAX[back_end]
    return outcome


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused_at_once(name: str) -> None:
    began = time.thread_time()
    with pytest.raises(ECodeError) as caught:
        check(REFUSED[name], SIGNATURE)
    assert time.thread_time() - began < REFUSAL_SECONDS_MAX
    assert len(str(caught.value)) < 20_000


@pytest.mark.parametrize("name", TOO_DEAR)
def test_costs_more_than_any_hub_allows(name: str) -> None:
    began = time.thread_time()
    analysis = analyse(check(TOO_DEAR[name], SIGNATURE))
    assert time.thread_time() - began < REFUSAL_SECONDS_MAX
    assert analysis.cost > COST_MAX


@pytest.mark.parametrize("back_end", BACK_ENDS)
@pytest.mark.parametrize("name", FAULTING)
def test_faults_and_is_stopped(back_end: str, name: str) -> None:
    source, kind = FAULTING[name]
    outcome = run(back_end, source, record())
    assert [fault.kind for fault in outcome.faults] == [kind]
    assert len(outcome.selected) == 0


@pytest.mark.parametrize("back_end", BACK_ENDS)
@pytest.mark.parametrize("name", FINISHING)
def test_finishes_with_the_defined_result(back_end: str, name: str) -> None:
    outcome = run(back_end, FINISHING[name], record())
    assert outcome.faults == []
    assert outcome.selected.tolist() == [0]


@pytest.mark.parametrize("back_end", BACK_ENDS)
@pytest.mark.parametrize("name", LYING)
def test_a_record_that_lies_is_found_out(back_end: str, name: str) -> None:
    source = '{ return input.name == "IBM" && length(input.samples) == 3 && input.samples[2] == 3; }'
    assert run(back_end, source, record()).selected.tolist() == [0]
    outcome = run(back_end, source, record(**LYING[name]))
    assert [fault.kind for fault in outcome.faults] == [FaultKind.RECORD]
    assert len(outcome.selected) == 0


@pytest.mark.parametrize("back_end", BACK_ENDS)
@pytest.mark.parametrize(
    "loop",
    [
        "while (input.name == input.name) ;",
        'while (input.name != "IBM") ;',
        "while (input.name != output.code) ;",
        "while (1) output.name = input.name;",
        "while (1) { output.name = input.name; if (output.name != input.name) return 0; }",
        "while (strlen(input.name) > 3) ;",
    ],
)
def test_a_large_text_is_no_way_around_the_fuel(back_end: str, loop: str) -> None:
    size = 4 << 20
    data = bytearray(record(name_slot=(INPUT.size + 24, size)))
    data[INPUT.size + 24 :] = b"x" * size + bytes(8)
    outcome = run(back_end, f"{{ {loop} return 1; }}" if "while (1)" not in loop else f"{{ {loop} }}", bytes(data))
    assert [fault.kind for fault in outcome.faults] == [FaultKind.FUEL]


def test_there_are_enough_of_them() -> None:
    assert len(REFUSED) + len(TOO_DEAR) + len(FAULTING) + len(FINISHING) + len(LYING) >= 100
