"""Programs that were written to harm whoever runs them: E-Code that loops, hoards, nests and reaches out of bounds.

Each way to harm is a template with numbers in it that chance chooses, so that four hundred programs are ten variations
of each. `Sample` is the event type that all of them are about.
"""

from collections.abc import Callable, Iterator
from random import Random
from typing import Annotated, Any, Final, TypeAlias

import msgspec
import numpy
from numpy.typing import NDArray

from echoic.formats import Array, Format, event, float64, int32, int64

__all__ = [
    "ENDLESS",
    "FLOOD_VALUES",
    "TEMPLATES",
    "Flood",
    "HostileProgram",
    "Numbers",
    "Sample",
    "draw_programs",
    "samples",
]

Numbers: TypeAlias = NDArray[Any]
FLOOD_VALUES: Final = 20_000


@event
class Sample:
    """What the source sends: values that are right, and such as hostile code likes to work with."""

    number: int64
    zero: int32
    smallest: int32
    least: int64
    nan: float64
    infinite: float64
    cells: Annotated[Numbers, Array[float64, 8]]


@event
class Flood:
    """What a small event may become."""

    n: int64
    values: Annotated[Numbers, Array[int64, "n"]]


class HostileProgram(msgspec.Struct, frozen=True):
    """Code, and what kind of harm it is meant to do."""

    name: str
    code: str
    floods: bool = False
    """Whether it makes a `Flood` of each event."""


def samples(count: int) -> Numbers:
    """Return events."""
    made = numpy.zeros(count, Format.of(Sample).dtype)
    made["number"] = range(count)
    made["smallest"], made["least"] = -(2**31), -(2**63)
    made["nan"], made["infinite"] = numpy.nan, numpy.inf
    return made


def _endless(draw: Random) -> str:
    loops = ("while (1) ;", "for (;;) {}", "do {} while (1);", "while (1) while (1) ;", "while (1) { continue; }")
    return f"{{ int x = {draw.randrange(99)}; {draw.choice(loops)} }}"


def _disguised_endless(draw: Random) -> str:
    step = draw.randrange(2, 9)
    loops = (
        f"for (int i = 0; i != {step * 3 + 1}; i += {step}) ;",
        f"for (int i = 0; i < {step}; i++) {{ i--; }}",
        "for (unsigned i = 10; i >= 0; i--) ;",
        "for (char i = 0; i < 200; i++) ;",
        "while (!(input.nan < 0)) ;",
        "for (int i = 0; i < 10; i += input.zero) ;",
        "int b = 1; for (int i = 0; i < b; i++) b++;",
        "double d = 1; while (d != 0) d = sin(d) + 2;",
        "for (float f = 16777216; f < 16777218; f += 1) ;",
    )
    return f"{{ {draw.choice(loops)} return 1; }}"


def _nested_loops(draw: Random) -> str:
    depth, turns = draw.randrange(2, 9), draw.choice((50, 1000, 1_000_000))
    head = "".join(f"for (int i{at} = 0; i{at} < {turns}; i{at}++) " for at in range(depth))
    return f"{{ long s = 0; {head}s++; return s > 0; }}"


def _huge_state(draw: Random) -> str:
    size = draw.choice((65_537, 10**6, 2**27, 2**40, 2**62))
    return f"{{ {draw.choice(('static ', ''))}char huge[{size}]; return huge[0]; }}"


def _cleared_often(draw: Random) -> str:
    turns = draw.randrange(500, 2000)
    return f"{{ int s = 0; for (int i = 0; i < {turns}; i++) {{ char big[60000]; s += big[i]; }} return s; }}"


def _nested_text(draw: Random) -> str:
    before, middle, after = draw.choice(
        (("(", "1", ")"), ("-", "1", ""), ("!", "1", ""), ("(char)", "1", ""), ("input.zero ? 1 : ", "0", ""))
    )
    levels = draw.choice((101, 1000, 9000))
    return f"{{ return {before * levels}{middle}{after * levels}; }}"


def _nested_blocks(draw: Random) -> str:
    levels = draw.choice((101, 1000, 6000))
    opening, closing = draw.choice((("{", "}"), ("if (input.zero) ", ""), ("for (;;) ", ""), ("do ", " while (1);")))
    return f"{{ {opening * levels}return 1;{closing * levels} return 0; }}"


def _index(draw: Random) -> str:
    index = draw.choice(
        ("input.zero - 1", "input.smallest", "input.least", "input.zero + 8", "(int) input.nan - 1",
         "(long) input.infinite", "input.least >> 1", "-(input.least + 1)", str(draw.randrange(8, 10**6)), "-1")
    )  # fmt: skip
    return f"{{ return input.cells[{index}] > 0; }}"


def _write_outside(draw: Random) -> str:
    index = draw.choice(("input.zero - 1", "input.zero + 4", "input.smallest", "4", "-1"))
    return f"{{ {draw.choice(('static ', ''))}int a[4]; a[{index}] = 7; return 1; }}"


def _division(draw: Random) -> str:
    left = draw.choice(("10", "input.least", "input.smallest", str(draw.randrange(10**9))))
    right = draw.choice(("input.zero", "0", "(3 - 3)", "(input.number - input.number)"))
    return f"{{ return {left} {draw.choice('/%')} {right}; }}"


def _least_by_minus_one(draw: Random) -> str:
    left = draw.choice(("input.least", "input.smallest"))
    return f"{{ return {left} {draw.choice('/%')} (input.zero - 1) == 3; }}"


def _numbers(draw: Random) -> str:
    one = draw.choice(
        ("input.nan", "input.infinite", "-input.infinite", "1e308 * 10", "sqrt(-1.0)", "pow(10.0, 400.0)")
    )
    kind = draw.choice(("int", "long", "char", "unsigned long", "float"))
    return f"{{ return ({kind}) ({one}) == {draw.randrange(9)}; }}"


def _shift(draw: Random) -> str:
    amount = draw.choice(("input.smallest", "input.zero - 1", str(draw.randrange(32, 10**6)), "input.number"))
    return f"{{ return ((long) 1 {draw.choice(('<<', '>>'))} ({amount})) == 3; }}"


def _text_bomb(draw: Random) -> str:
    letters = draw.choice((60_000, 65_600, 200_000))
    return draw.choice((f'{{ return "{"a" * letters}" == "b"; }}', f"{{ return {'x' * letters}; }}", "}" * letters))


def _recursion(draw: Random) -> str:
    return draw.choice(
        ("{ return f(input); }", "int f(int x) { return f(x); } { return f(1); }", "{ again: goto again; }",
         "#define F(x) F(F(x))\n{ return F(1); }", "#define A A A\n{ A; return 1; }")
    )  # fmt: skip


def _huge_literal(draw: Random) -> str:
    digits = draw.choice((400, 10_000, 60_000))
    return f"{{ return {draw.choice(('9' * digits, '0x' + 'f' * digits, '1e' + '9' * digits, '1.' + '7' * digits))}; }}"


def _chain(draw: Random) -> str:
    part = draw.choice((" + input.number", " << 1", ", 1", " == 1 || input.zero", " * input.number"))
    return f"{{ return input.number{part * (draw.choice((9_000, 60_000)) // len(part))}; }}"


def _many_names(draw: Random) -> str:
    count = draw.choice((1000, 4500))
    return f"{{ {' '.join(f'int v{number};' for number in range(count))} return 1; }}"


def _exponential_type(draw: Random) -> str:
    sides = "[9]" * draw.randrange(5, 60)
    return f"{{ {draw.choice(('static ', ''))}double a{sides}; return 1; }}"


def _reach(draw: Random) -> str:
    return draw.choice(
        ('{ system("reboot"); return 1; }', "{ exit(1); return 1; }", "{ int *p = 0; *p = 1; return 1; }",
         '{ asm("int3"); return 1; }', "{ return &input.zero != 0; }", "#include </etc/passwd>\n{ return 1; }",
         "__import__('os').system('reboot')", "{ input.zero = 5; return 1; }", "{ return 1; \x00\x01 }")
    )  # fmt: skip


TEMPLATES: Final[dict[str, Callable[[Random], str]]] = {
    "an endless loop": _endless,
    "an endless loop in disguise": _disguised_endless,
    "loops in loops": _nested_loops,
    "huge state": _huge_state,
    "memory that is cleared often": _cleared_often,
    "deep expressions": _nested_text,
    "deep blocks": _nested_blocks,
    "an index": _index,
    "a write": _write_outside,
    "a division by zero": _division,
    "the smallest by -1": _least_by_minus_one,
    "NaN and infinity": _numbers,
    "a shift": _shift,
    "a text bomb": _text_bomb,
    "recursion": _recursion,
    "a huge literal": _huge_literal,
    "a long chain": _chain,
    "many names": _many_names,
    "an exponential type": _exponential_type,
    "reaching out": _reach,
}
ENDLESS: Final = frozenset({"an endless loop", "an endless loop in disguise"})
"""What must be stopped; of other kinds some are harmless."""
FLOODING: Final = f"{{ output.n = {FLOOD_VALUES}; output.values[{FLOOD_VALUES - 1}] = input.number; return 1; }}"


def draw_programs(draw: Random, count: int) -> Iterator[HostileProgram]:
    """Yield so many programs, each kind of harm in its turn."""
    kinds = list(TEMPLATES)
    for number in range(count):
        if number % (len(kinds) + 1) == len(kinds):
            yield HostileProgram("a flood of output", FLOODING, floods=True)
        else:
            name = kinds[number % (len(kinds) + 1)]
            yield HostileProgram(name, TEMPLATES[name](draw))
