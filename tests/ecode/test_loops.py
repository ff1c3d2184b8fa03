"""The loop prover against loops that are run: what it predicts must happen, since nothing else stops a proved loop.

Each random loop is run with fuel, as if nothing were proved, and counts its own turns.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.ecode.analysis import Analysis, analyse
from echoic.ecode.generated_python import compile_python
from echoic.ecode.numbers import NUMBERS, Number
from echoic.ecode.program import Program
from echoic.formats import event, int32, uint8
from tests.ecode.programs import BACK_ENDS, checked, compiled, run

TURNS_MAX = 1500
COUNTERS = {
    "char": NUMBERS["int8"],
    "short": NUMBERS["int16"],
    "int": NUMBERS["int32"],
    "long": NUMBERS["int64"],
    "unsigned char": NUMBERS["uint8"],
    "unsigned short": NUMBERS["uint16"],
    "unsigned": NUMBERS["uint32"],
    "unsigned long": NUMBERS["uint64"],
}
STEPS = (1, 1, 1, 2, 3, 7, 63, 100, 127, 255, 256, 1 << 15, 1 << 31, (1 << 31) - 1)
DISTANCES = (*range(-12, 13), 100, 254, 255, 256, 257, 1000, -255, -256, -1000)

Choose = Callable[[Sequence[Any]], Any]


def spelled(value: int) -> str:
    """Return a constant as C has it: the smallest number is not one word."""
    if value == -(1 << 63):
        return f"({value + 1} - 1)"
    return f"({value})" if value < 0 else f"{value}u" if value >= 1 << 63 else str(value)


def random_value(choose: Choose, number: Number) -> int:
    """Return a value of a type, mostly near something where counters break."""
    near = choose((number.smallest, number.largest, 0, 0, 127, 128, 255, 1 << 15, (1 << 31) - 1, 1 << 31, 1 << 32))
    value = near + choose(DISTANCES)
    return min(max(value, number.smallest), number.largest)


def random_test(choose: Choose, limit: int) -> str:
    operator = choose(("<", "<", "<=", ">", ">=", "!="))
    counter = choose(("i", "i", "i", "i", "(unsigned) i", "(long) i", "(char) i", "(unsigned char) i", "(i)"))
    shown = spelled(limit) + choose(("", "", "", "u" if 0 <= limit < 1 << 63 else ""))
    if choose((True, True, False)):
        return f"{counter} {operator} {shown}"
    mirrored = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}[operator]
    return f"{shown} {mirrored} {counter}"


def random_step(choose: Choose) -> str:
    by = choose(STEPS)
    return choose(
        (
            "i++",
            "++i",
            "i--",
            "--i",
            f"i += {by}",
            f"i -= {by}",
            f"i += -{by}",
            f"i += {by}u",
            f"i = i + {by}",
            f"i = {by} + i",
            f"i = i - {by}",
            f"i = (char) (i + {by})",
            f"j++, i += {by}",
            f"i -= {by}, j = i",
            "i += 0",
        )
    )


def random_loop(choose: Choose) -> str:
    """Return a program with one loop, which counts its turns in the static `turns`."""
    name = choose(tuple(COUNTERS))
    number = COUNTERS[name]
    start = random_value(choose, number)
    limit = choose((start + choose(DISTANCES), random_value(choose, number), random_value(choose, NUMBERS["int64"])))
    limit = min(max(limit, -(1 << 63)), (1 << 64) - 1)
    body = choose(
        (
            "turns++;",
            "turns++;",
            "turns++; if (i & 1) continue; j++;",
            "turns++; if (turns == 5) break;",
            "turns++; i += j;",
            "turns++; j = (i = i) + 1;",
            "{ char i = 3; turns++; i++; }",
        )
    )
    head = f"{name} i = {spelled(start)}"
    if choose((True, False)):
        return (
            f"static long turns; long j = 0; for ({head}; {random_test(choose, limit)}; {random_step(choose)}) "
            f"{{ {body} }} return 1;"
        )
    before = choose((f"i = {spelled(start)}", f"j = 3, i = {spelled(start)}", f"i = {spelled(start)}, j = 0"))
    return (
        f"static long turns; long j = 0; {name} i; i = 1; for ({before}; {random_test(choose, limit)}; "
        f"{random_step(choose)}) {{ {body} }} return 1;"
    )


@event
class Small:
    small: uint8
    number: int32


def turns_of(program: Program, *events: Small) -> list[int | None]:
    """Return how often the loops of a program turn for each event, None if that is more than `TURNS_MAX`."""
    known = analyse(program)
    loops = [*known.trips, *known.burns]
    kernel = compile_python(program, Analysis({}, dict.fromkeys(loops, 1), set(), 0))
    found: list[int | None] = []
    for one in events:
        statics = program.initial_statics()
        record = numpy.zeros(1, program.signature.input.dtype)
        record["small"], record["number"] = one.small, one.number
        outcome = kernel.run(record.tobytes(), None, 1, b"", statics, TURNS_MAX)
        found.append(None if outcome.faults else int.from_bytes(statics[:8], "little"))
    return found


def examine(source: str) -> str:
    """Check one loop; return what it was."""
    program = checked(source, Small)
    known = analyse(program)
    (turned,) = turns_of(program, Small(0, 0))
    if known.burns:
        return "unproved, endless" if turned is None else "unproved, ends"
    (predicted,) = known.trips.values()
    if "break" in source:
        assert turned is not None, source
        assert turned <= predicted, source
    elif turned is None:
        assert predicted > TURNS_MAX, source
    else:
        assert predicted == turned, source
    return "proved"


def test_thousands_of_random_loops_turn_as_often_as_predicted() -> None:
    random = Random(20010402)
    met: dict[str, int] = {}
    for _ in range(4000):
        what = examine(random_loop(random.choice))
        met[what] = met.get(what, 0) + 1
    assert met["proved"] > 1000, met
    assert met["unproved, endless"] > 400, met  # so the traps are there to be stepped into


@settings(max_examples=150)
@given(st.data())
def test_any_loop_turns_as_often_as_predicted(data: st.DataObject) -> None:
    examine(random_loop(lambda values: data.draw(st.sampled_from(values))))


@pytest.mark.parametrize(
    ("head", "turns"),
    [
        ("int i = 0; i < 10; i++", 10),
        ("int i = 0; i <= 10; i += 3", 4),
        ("int i = 10; i > 0; i--", 10),
        ("int i = 10; i >= 0; i -= 5", 3),
        ("int i = 0; i != 12; i += 4", 3),
        ("int i = 10; i; i--", 10),
        ("int i = 5; 10 > i; i = i + 1", 5),
        ("int i = 5; i < 5; i++", 0),
        ("int i = 5; i > 9; i++", 0),
        ("char i = 0; i < 127; i++", 127),
        ("char i = 1; i < 127; i += 2", 63),
        ("unsigned char i = 0; i < 255; i++", 255),
        ("unsigned i = 9; i > 0; i--", 9),
        ("int i = 2147483640; i < 2147483647; i++", 7),
        ("int i = -2147483647; i >= -2147483647; i--", 1),
        ("long i = 0; i < 10000000000; i += 5000000000", 2),
        ("unsigned long i = 0; i < 18446744073709551615u; i += 6148914691236517205u", 3),
        ("int i = 0, j = 9; i < 10; i++, j--", 10),
        ("int i; i < 10; i++", 10),
    ],
)
def test_a_counting_loop_is_proved(head: str, turns: int) -> None:
    program = checked(f"static long turns; for ({head}) turns++; return 1;", Small)
    known = analyse(program)
    assert known.bounded
    assert list(known.trips.values()) == [turns]
    assert turns_of(program, Small(0, 0)) == [turns]


@pytest.mark.parametrize(
    "loop",
    [
        "for (char i = 0; i < 128; i++) ;",
        "for (char i = 0; i <= 127; i++) ;",
        "for (char i = 0; i < 127; i += 2) ;",
        "for (unsigned char i = 0; i < 256; i++) ;",
        "for (unsigned char i = 9; i >= 0; i--) ;",
        "for (unsigned i = 9; i >= 0; i--) ;",
        "for (short i = 0; i < 40000; i++) ;",
        "for (int i = 0; i <= 2147483647; i++) ;",
        "for (int i = -5; i < 10u; i++) ;",
        "for (int i = 0; (char) i < 127; i += 2) ;",
        "for (int i = 0; i != 5; i += 2) ;",
        "for (int i = 0; i != 5; i--) ;",
        "for (int i = 0; i < 10; i += 0) ;",
        "for (int i = 0; i < 10; i--) ;",
        "for (int i = 0; i < 10; i++) i--;",
        "for (int i = 0; i < 10; i++) { int j = i = 3; }",
        "for (int i = 0; i < 10; i++) for (i = 0; i < 5; i++) ;",
        "for (int i = 0; (i = i) < 10; i++) ;",
        "for (int i = 0; i < i + 1; i++) ;",
        "for (int i = 0; i < 10; i *= 2) ;",
        "for (int i = 0; i < 10; i++, i--) ;",
        "for (int i = 0; i < 10; i = i + i) ;",
        "for (int i = 0; i < input.number; i++) ;",
        "for (int i = input.number; i < 10; i++) ;",
        "for (float i = 0; i < 10; i++) ;",
        "for (int i = 0; i < 10; ) i++;",
        "for (int i = 0; ; i++) if (i > 3) break;",
        "int i = 0; while (i < 10) i++;",
        "int i = 0; do i++; while (i < 10);",
        "int i = 0; i = 3; if (input.small) i = 100; for (; i < 10; i++) ;",
        "int n = 10; for (int i = 0; i < n; i++) n++;",
    ],
)
def test_a_loop_that_may_turn_otherwise_is_not_proved(loop: str) -> None:
    assert not analyse(checked(f"{loop} return 1;", Small)).bounded


def test_an_inner_counter_that_is_the_outer_one_is_proved_by_itself_only() -> None:
    program = checked("int i; for (i = 0; i < 10; i++) for (i = 0; i < 5; i++) ; return 1;", Small)
    known = analyse(program)
    assert list(known.trips.values()) == [5]
    assert len(known.burns) == 1


@pytest.mark.parametrize(
    ("loop", "most"),
    [
        ("for (int i = 0; i < input.small; i++) turns++;", 255),
        ("for (int i = 0; i <= input.small; i += 2) turns++;", 128),
        ("for (int i = input.small; i > 0; i--) turns++;", 255),
        ("for (int i = input.small; i < 300; i++) turns++;", 300),
        ("for (int i = 0; i < (input.number & 15); i++) turns++;", 15),
        ("for (int i = 0; i < 10; i++) for (int j = 0; j < i; j++) turns++;", 90),
        ("for (int i = 0; i < 10; i++) for (int j = i; j < 10; j++) turns++;", 100),
    ],
)
def test_a_limit_in_a_known_interval_bounds_the_turns(loop: str, most: int) -> None:
    program = checked(f"static long turns; {loop} return 1;", Small)
    known = analyse(program)
    assert known.bounded
    inner = 1
    for trips in known.trips.values():
        inner *= trips
    assert inner == most
    for turned in turns_of(program, *(Small(small, small * 77 - 5000) for small in (0, 1, 2, 100, 254, 255))):
        assert turned is not None
        assert turned <= most


def test_a_limit_that_only_its_type_bounds_is_left_to_fuel() -> None:
    assert not analyse(checked("for (int i = 0; i < input.number; i++) ; return 1;", Small)).bounded


@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_the_counter_of_a_proved_loop_has_its_last_value_afterwards(back_end: str) -> None:
    source = """
    static int after, left, none, down;
    int i;
    for (i = 0; i < 10; i += 3) ;
    after = i;
    for (i = 0; i < 10; i++) if (i == 4) break;
    left = i;
    for (i = 7; i < 3; i++) ;
    none = i;
    for (i = 9; i >= 0; i -= 4) continue;
    down = i;
    return 1;
    """
    assert run(back_end, source, [Small(0, 0)]).statics == {"after": 12, "left": 4, "none": 7, "down": -3}


@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_a_limit_with_an_effect_has_it_in_each_turn(back_end: str) -> None:
    source = "static int asked; int i; for (i = 0; i < (asked++, 3); i++) ; return i;"
    program = checked(source, Small)
    assert list(analyse(program).trips.values()) == [3]
    assert compiled(back_end, program).program is program
    assert run(back_end, source, [Small(0, 0)]).statics == {"asked": 4}


@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_a_step_of_several_parts_does_all_of_them(back_end: str) -> None:
    source = "static int other; int i; for (i = 0, other = 10; i < 4; i++, other -= 2) continue; return 1;"
    assert run(back_end, source, [Small(0, 0)]).statics == {"other": 2}


def test_a_loop_that_never_turns_again_costs_no_fuel() -> None:
    known = analyse(checked("do { if (input.small) break; } while (0); while (0) ; return 1;", Small))
    assert sorted(known.trips.values()) == [0, 1]
