"""Random programs that mean the same in C, in E-Code and in COD: what all three define, over one event type.

Divisors are never zero, shift amounts and indexes are masked by the program itself, and no floating number is made an
integer, because C leaves the rest undefined and COD does not survive it. Programs for COD also leave out what it gets
wrong: comparisons with NaN, the sign of `-0.0`, `x - x`, and operators between two constants.
"""

from random import Random
from typing import Any, Final, TypeAlias

import numpy
from numpy.typing import NDArray

from echoic.formats import NATIVE, Field, Format, Kind

__all__ = ["C_TYPES", "INPUT", "OUTPUT", "ProgramMaker", "Records", "draw_inputs"]

Records: TypeAlias = NDArray[Any]

INPUT: Final = Format.place(
    "Input",
    [
        Field("i", Kind.INT, 4),
        Field("j", Kind.INT, 4),
        Field("l", Kind.INT, 8),
        Field("u", Kind.UINT, 4),
        Field("d", Kind.FLOAT, 8),
        Field("e", Kind.FLOAT, 8),
        Field("a", Kind.INT, 4, dimensions=(8,)),
        Field("x", Kind.FLOAT, 8, dimensions=(8,)),
    ],
    NATIVE,
)
OUTPUT: Final = Format.place(
    "Output",
    [
        Field("i", Kind.INT, 4),
        Field("l", Kind.INT, 8),
        Field("d", Kind.FLOAT, 8),
        Field("a", Kind.INT, 4, dimensions=(4,)),
        Field("x", Kind.FLOAT, 8, dimensions=(4,)),
        Field("verdict", Kind.INT, 4),
    ],
    NATIVE,
)
C_TYPES: Final = """
typedef struct { int i; int j; long l; unsigned int u; double d; double e; int a[8]; double x[8]; } Input;
typedef struct { int i; long l; double d; int a[4]; double x[4]; int verdict; } Output;
"""
LOCALS: Final = ("int m", "int n", "long p", "double q", "double r")
INTEGERS: Final = ("input.i", "input.j", "input.l", "m", "n", "p", "output.i", "output.l")
FLOATS: Final = ("input.d", "input.e", "q", "r", "output.d")
NUMBERS: Final = (0, 1, 2, 3, 5, 7, 10, 31, 100, 255, 1000, 65535, 2147483647)


def draw_inputs(random: Random, count: int) -> Records:
    """Return events with values at borders and between them."""
    inputs = numpy.zeros(count, INPUT.dtype)
    for event in inputs:
        event["i"], event["j"] = draw_int(random, 32), draw_int(random, 32)
        event["l"] = draw_int(random, 64)
        event["u"] = draw_int(random, 32) & 0xFFFFFFFF
        event["d"], event["e"] = draw_float(random), draw_float(random)
        event["a"] = [draw_int(random, 32) for _ in range(8)]
        event["x"] = [draw_float(random) for _ in range(8)]
    return inputs


def draw_int(random: Random, bits: int) -> int:
    """Return a signed integer of so many bits, often one at a border."""
    high = 1 << (bits - 1)
    return random.choice((0, 1, -1, 2, 7, -100, high - 1, -high, random.randrange(-high, high)))


def draw_float(random: Random) -> float:
    """Return a number that is not NaN."""
    return random.choice((0.0, 1.0, -2.5, 1e10, -1e-10, 1e300, random.gauss(0, 100), random.gauss(0, 1)))


class ProgramMaker:
    """Writes the body of one function; `for_cod` leaves out what COD is known to get wrong."""

    def __init__(self, random: Random, *, for_cod: bool) -> None:
        self._random = random
        self._for_cod = for_cod
        self._counters: list[str] = []
        self._loops = 0

    def body(self) -> str:
        """Return the statements, without braces around them."""
        head = [f"{declaration} = 0;" for declaration in LOCALS]
        count = self._random.randint(3, 9)
        statements = [self._statement(2) for _ in range(count)]
        counters = [f"int c{number} = 0;" for number in range(self._loops)]
        verdict = f"output.verdict = {self._integer(2)};"
        return "\n".join([*head, *counters, *statements, verdict, "return 1;"])

    def _statement(self, depth: int) -> str:
        random = self._random
        way = random.random()
        if depth and way < 0.2:
            other = f" else {{ {self._statement(depth - 1)} }}" if random.random() < 0.5 else ""
            return f"if ({self._test()}) {{ {self._statement(depth - 1)} }}{other}"
        if depth and way < 0.4:
            return self._loop(depth)
        if way < 0.7:
            place = random.choice(("m", "n", "p", "output.i", "output.l", f"output.a[{self._index(4)}]"))
            operator = random.choice(("=", "=", "=", "+=", "-=", "*="))
            return self._assigned(place, operator, self._integer(3))
        place = random.choice(("q", "r", "output.d", f"output.x[{self._index(4)}]"))
        return self._assigned(place, random.choice(("=", "=", "+=", "-=", "*=")), self._floating(3))

    def _assigned(self, place: str, operator: str, value: str) -> str:
        operator = "+=" if self._for_cod and operator == "-=" and place == value else operator
        return f"{place} {operator} {value};"

    def _loop(self, depth: int) -> str:
        counter = f"c{self._loops}"
        self._loops += 1
        self._counters.append(counter)
        body = " ".join(self._statement(depth - 1) for _ in range(2))
        self._counters.pop()
        turns = self._random.randint(1, 8)
        if self._random.random() < 0.7:
            return f"for ({counter} = 0; {counter} < {turns}; {counter} = {counter} + 1) {{ {body} }}"
        return f"{counter} = {turns}; while ({counter} > 0) {{ {counter} = {counter} - 1; {body} }}"

    def _index(self, length: int) -> str:
        if self._random.random() < 0.4:
            return str(self._random.randrange(length))
        return f"{self._random.choice((*self._counters, 'input.i', 'm', 'n'))} & {length - 1}"

    def _test(self) -> str:
        operator = self._random.choice(("<", ">", "<=", ">=", "==", "!="))
        if self._random.random() < 0.3:
            joined = self._random.choice(("&&", "||"))
            return f"({self._test()}) {joined} ({self._test()})"
        if self._random.random() < 0.5:
            return f"{self._integer(1)} {operator} {self._integer(1)}"
        if self._for_cod:
            return f"{self._arrived()} {operator} {self._arrived()}"
        return f"{self._floating(1)} {operator} {self._floating(1)}"

    def _arrived(self) -> str:
        return self._random.choice(("input.d", "input.e", f"input.x[{self._index(8)}]", "2.5"))

    def _integer(self, depth: int) -> str:
        random = self._random
        way = random.random()
        if depth <= 0 or way < 0.2:
            names = (*INTEGERS, *self._counters, f"input.a[{self._index(8)}]", f"output.a[{self._index(4)}]")
            return random.choice(names) if random.random() < 0.75 else str(random.choice(NUMBERS))
        if way < 0.3:
            # Not by 1: gcc 12 makes `m + m / -d` of `m - m / d`, which traps for the smallest `m` and a `d` of 1.
            return f"({random.choice(INTEGERS)} {random.choice('/%')} (({self._integer(depth - 1)} & 7) + 2))"
        if way < 0.4:
            return f"({random.choice(INTEGERS)} {random.choice(('<<', '>>'))} ({self._integer(depth - 1)} & 15))"
        if way < 0.48:
            return f"({random.choice('-~')}({random.choice(INTEGERS)}))"
        if way < 0.54:
            return f"({self._test()})"
        # One side is never a constant: COD folds `constant | constant` to 0.
        return self._joined(random.choice(INTEGERS), random.choice("+-*&|^"), self._integer(depth - 1))

    def _floating(self, depth: int) -> str:
        random = self._random
        way = random.random()
        if depth <= 0 or way < 0.2:
            names = (*FLOATS, f"input.x[{self._index(8)}]", f"output.x[{self._index(4)}]")
            return random.choice(names) if random.random() < 0.8 else random.choice(("0.5", "2.0", "1000.25"))
        if way < 0.3:
            return f"((double) {random.choice(INTEGERS)})"
        if way < 0.36 and not self._for_cod:
            return f"(-({random.choice(FLOATS)}))"
        return self._joined(random.choice(FLOATS), random.choice("+-*/"), self._floating(depth - 1))

    def _joined(self, left: str, operator: str, right: str) -> str:
        operator = "+" if self._for_cod and operator == "-" and left == right else operator
        return f"({left} {operator} {right})"
