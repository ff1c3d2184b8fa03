"""Intervals against values that occur, and index checks that are left out against indexes that occur."""

from dataclasses import replace
from random import Random

import numpy
import pytest

from echoic.ecode.analysis import analyse
from echoic.ecode.analysis.intervals import Ranges
from echoic.ecode.analysis.traversal import walk
from echoic.ecode.generated_python import compile_python
from echoic.ecode.kernel import FaultKind
from echoic.ecode.program import Program
from echoic.ecode.typed import Declare, Element, Index
from echoic.formats import Array, event, float32, int8, int16, int32, int64, uint8, uint16, uint32, uint64
from tests.ecode.programs import checked


@event
class Numbers:
    a: int8
    b: uint8
    c: int16
    d: uint16
    e: int32
    f: uint32
    g: int64
    h: uint64
    flag: bool
    table: Array[float32, 40]


@event
class Gathered:
    n: int32
    values: Array[int32, "n"]


LEAVES = ("input.a", "input.b", "input.c", "input.d", "input.e", "input.f", "input.g", "input.h", "input.flag")
CONSTANTS = ("0", "1", "2", "7", "-1", "-3", "15", "255", "1000", "2147483647", "65535u", "4294967295u", "30")
OPERATORS = ("+", "-", "*", "&", "|", "^", "<<", ">>", "<", "==", "&&", "/", "%")
CASTS = ("char", "short", "int", "long", "unsigned char", "unsigned short", "unsigned", "unsigned long")


def random_expression(random: Random, depth: int, leaves: tuple[str, ...]) -> str:
    if depth == 0 or random.random() < 0.15:
        return random.choice(leaves) if random.random() < 0.6 else random.choice(CONSTANTS)
    kind = random.random()
    left = random_expression(random, depth - 1, leaves)
    if kind < 0.12:
        return f"({random.choice(('-', '~', '!'))}({left}))"
    if kind < 0.3:
        return f"(({random.choice(CASTS)}) ({left}))"
    right = random_expression(random, depth - 1, leaves)
    if kind < 0.38:
        return f"({random_expression(random, depth - 1, leaves)} ? {left} : {right})"
    operator = random.choice(OPERATORS)
    if operator in ("/", "%"):
        return f"({left} {operator} {random.choice(('3', '7u', '-2', '100', '(input.b + 1)'))})"
    return f"({left} {operator} {right})"


def random_records(random: Random, count: int) -> numpy.ndarray:
    """Return events whose numbers are small, large and at the ends of their types."""
    records = numpy.zeros(count, checked("return 1;", Numbers).signature.input.dtype)
    for name in "abcdefgh":
        limits = numpy.iinfo(records.dtype[name])
        near = (limits.min, limits.max, 0, 1, limits.max // 2)
        values = [min(max(random.choice(near) + random.randint(-3, 3), limits.min), limits.max) for _ in range(count)]
        records[name] = values
    records["flag"] = [random.choice((0, 1, 7)) for _ in range(count)]
    return records


def test_no_value_leaves_its_interval() -> None:
    random = Random(1997)
    tight = 0
    for _ in range(400):
        expression = random_expression(random, 4, (*LEAVES, "i", "j", "i", "j"))
        program = checked(
            f"""
            static long least = 9223372036854775807, most = -9223372036854775807 - 1;
            for (int i = -2; i < 30; i += 3)
                for (unsigned char j = 9; j > 0; j -= 3) {{
                    long x = {expression};
                    if (x < least) least = x;
                    if (x > most) most = x;
                }}
            return 1;
            """,
            Numbers,
        )
        known = analyse(program)
        counters = {counted.counter: counted.inside for counted in known.counted.values() if counted.counter}
        (declared,) = (node for node in walk(program.body) if isinstance(node, Declare) and node.variable.name == "x")
        interval = Ranges(counters).of(declared.values[0])
        assert interval is not None
        tight += interval != (-(1 << 63), (1 << 63) - 1)
        statics = program.initial_statics()
        records = random_records(random, 6)
        outcome = compile_python(program, replace(known, exact=set())).run(records, None, 6, b"", statics)
        assert not outcome.faults
        least, most = numpy.frombuffer(statics, numpy.int64).tolist()
        assert interval[0] <= least, expression
        assert most <= interval[1], expression
    assert tight > 150  # otherwise nothing was claimed


def test_operations_that_are_said_not_to_wrap_do_not() -> None:
    random = Random(1998)
    said = 0
    for _ in range(250):
        expression = random_expression(random, 4, (*LEAVES, "i", "j"))
        program = checked(
            f"""
            static unsigned long mixed;
            for (short i = 0; i < 9; i += 4) for (long j = -4; j < 4; j += 3) mixed = mixed * 31 + ({expression});
            return 1;
            """,
            Numbers,
        )
        known = analyse(program)
        said += len(known.exact)
        records = random_records(random, 4)
        results = []
        for analysis in (known, replace(known, exact=set(), counted={}, trips={})):
            statics = program.initial_statics()
            assert not compile_python(program, analysis).run(records, None, 4, b"", statics).faults
            results.append(bytes(statics))
        assert results[0] == results[1], expression
    assert said > 300


def faulting_places(program: Program, records: numpy.ndarray) -> set[tuple[int, int]]:
    """Return where indexes leave their arrays when all of them are checked."""
    known = replace(analyse(program), safe=set())
    outcome = compile_python(program, known).run(
        records, None, len(records), b"", program.initial_statics(), faults_max=1000
    )
    return {(fault.line, fault.column) for fault in outcome.faults if fault.kind is FaultKind.INDEX}


def test_no_index_whose_check_is_left_out_leaves_its_array() -> None:
    random = Random(1999)
    left_out = faulted = 0
    for _ in range(300):
        inner = random_expression(random, 2, ("i", "j", "i", "j", "input.b", "input.a")) + " + 0 * i"
        program = checked(
            f"""
            int i, j, local[7][50];
            float sum = 0;
            for (i = 0; i < {random.choice((5, 40, 41, 7))}; i++) {{
                for (j = {random.choice((0, 1, -1, 39))}; j >= 0; j--) sum += input.table[{inner}];
                local[i % 7][i] = 1;
            }}
            sum += input.table[i - {random.choice((0, 1))}];
            return 1;
            """,
            Numbers,
        )
        known = analyse(program)
        safe = {index.at for index in known.safe}
        left_out += len(safe)
        places = faulting_places(program, random_records(random, 3))
        faulted += len(places)
        assert not safe & places, inner
    assert left_out > 300
    assert faulted > 100


@pytest.mark.parametrize(
    ("source", "safe"),
    [
        ("for (int i = 0; i < 40; i++) s += input.table[i];", 1),
        ("for (int i = 0; i < 41; i++) s += input.table[i];", 0),
        ("for (int i = 0; i <= 39; i++) s += input.table[i];", 1),
        ("for (int i = 39; i >= 0; i--) s += input.table[39 - i];", 1),
        ("for (int i = 0; i < 13; i++) for (int j = 0; j < 3; j++) s += input.table[i * 3 + j];", 1),
        ("for (int i = 0; i < 14; i++) for (int j = 0; j < 3; j++) s += input.table[i * 3 + j];", 0),
        ("s += input.table[input.b & 31];", 1),
        ("s += input.table[input.b % 40];", 1),
        ("s += input.table[input.a % 40];", 0),
        ("s += input.table[input.b / 7];", 1),
        ("s += input.table[input.flag];", 1),
        ("s += input.table[input.b > 3 ? 39 : 0];", 1),
        ("s += input.table[input.b];", 0),
        ("int i; for (i = 0; i < 39; i++) ; s += input.table[i];", 0),
        ("int i; for (i = 0; i < 40; i++) { int i = input.b; s += input.table[i]; }", 0),
        ("int i; for (i = 0; i < 40; i++) { i += 0; s += input.table[i]; }", 0),
        ("int i; for (i = 0; i < 40; i++) { if (input.b) i = 50; s += input.table[i]; }", 0),
        ("int i; for (i = 0; i < 10; i++) { for (i = 0; i < 50; i++) s += input.table[i]; }", 0),
        ("int i, k = 0; for (i = 0; i < 40; i++) { s += input.table[k]; k = i; }", 0),
        ("for (int i = 0; i < 39; i++, s += input.table[i]) ;", 1),
        ("for (int i = 0; i < 40; i++, s += input.table[i]) ;", 0),
        ("for (unsigned char i = 0; i < 40; i++) s += input.table[(unsigned char) (i + 250)];", 0),
        ("static int k; for (k = 0; k < 40; k++) s += input.table[k];", 1),
        ("static int k; s += input.table[k]; k = 0;", 0),
    ],
)
def test_a_check_is_left_out_only_where_the_interval_holds(source: str, safe: int) -> None:
    program = checked(f"double s = 0; {source} return s > 1;", Numbers)
    assert len(analyse(program).safe) == safe


def test_an_output_array_is_known_by_its_capacity() -> None:
    source = "for (int i = 0; i < 8; i++) output.values[i] = i; output.n = 8; return 1;"
    enough = analyse(checked(source, Numbers, Gathered, capacities={"values": 8}))
    assert any(isinstance(index, Element) for index in enough.safe)
    short = analyse(checked(source, Numbers, Gathered, capacities={"values": 7}))
    assert not short.safe


def test_an_input_array_has_no_length_that_is_known() -> None:
    program = checked("int s = 0; for (int i = 0; i < 8; i++) s += input.values[i]; return s;", Gathered)
    assert not analyse(program).safe


def test_each_index_is_judged_by_itself() -> None:
    source = "int grid[4][5]; for (int i = 0; i < 4; i++) grid[i][input.b] = 1; return 1;"
    (found,) = analyse(checked(source, Numbers)).safe
    assert isinstance(found, Index)
    assert found.length == 4
