"""What code is said to cost: more work is never cheaper, loops multiply, and fuel is burned by what a turn costs."""

import pytest

from echoic.ecode.analysis import analyse
from echoic.ecode.analysis.cost import COST_MAX
from echoic.formats import Array, char, event, float64, int32
from tests.ecode.programs import BACK_ENDS, checked, run


@event
class Sample:
    n: int32
    price: float64
    table: Array[float64, 100]
    code: Array[char, 16]
    name: str
    values: Array[float64, "n"]


@event
class Made:
    n: int32
    price: float64
    name: str
    values: Array[float64, "n"]


def cost(source: str, output: object = None, **options: object) -> int:
    return analyse(checked(source, Sample, output, **options)).cost


@pytest.mark.parametrize(
    ("less", "more"),
    [
        ("return 1;", "return input.n;"),
        ("return input.n + 1;", "return input.n + 1 + input.n;"),
        ("return input.n + 3;", "return input.n / 3;"),
        ("return input.price > 1;", "return sin(input.price) > 1;"),
        ("return input.table[3] > 1;", "return input.table[input.n] > 1;"),
        ("return input.n;", "if (input.n) return 1; return 0;"),
        ("int i; return 1;", "int i[1000]; return 1;"),
        ('return input.code == "a";', "return input.name == input.code;"),
        ("return input.n;", "return strlen(input.name);"),
        ("int i; for (i = 0; i < 10; i++) ; return i;", "int i; for (i = 0; i < 11; i++) ; return i;"),
    ],
)
def test_more_work_costs_more(less: str, more: str) -> None:
    assert cost(less) < cost(more)


def test_a_check_that_is_left_out_costs_nothing() -> None:
    head = "double s = 0; for (int i = 0; i < 100; i++) s +="
    checks = cost(f"{head} input.table[input.n]; return s > 0;") - cost(f"{head} input.table[i]; return s > 0;")
    assert checks == 100 * 2


def test_nested_loops_multiply() -> None:
    one = cost("int s = 0; for (int i = 0; i < 10; i++) s++; return s;")
    ten = cost("int s = 0; for (int k = 0; k < 10; k++) for (int i = 0; i < 10; i++) s++; return s;")
    assert 8 * one < ten < 14 * one


def test_only_the_dearer_branch_counts() -> None:
    loop = "for (int i = 0; i < 1000; i++) s++;"
    both = cost(f"int s = 0; if (input.n) {loop} else {loop} return s;")
    single = cost(f"int s = 0; if (input.n) {loop} return s;")
    assert both == single


def test_a_cost_has_a_ceiling() -> None:
    source = "int i, j, k; for (i = 0; i < 2000000000; i++) for (j = 0; j < 2000000000; j++) "
    source += "for (k = 0; k < 2000000000; k++) ; return 1;"
    assert cost(source) == COST_MAX


def test_arrays_of_the_output_cost_what_they_can_hold() -> None:
    source = "output.n = 1; return 1;"
    small, large = (cost(source, Made, capacities={"values": capacity}) for capacity in (10, 10_000))
    assert large - small > 9_990


def test_a_loop_without_proof_counts_as_one_turn_and_burns_it() -> None:
    known = analyse(checked("int i = 0; while (i < input.n) { i++; } return i;", Sample))
    assert not known.bounded
    (burned,) = known.burns.values()
    assert 3 <= burned <= 12
    assert burned <= known.cost < 3 * burned + 10


def test_a_turn_costs_at_least_something() -> None:
    (burned,) = analyse(checked("while (1) ; ", Sample)).burns.values()
    assert burned >= 1


def test_a_turn_pays_for_the_proved_loops_in_it() -> None:
    source = "int s = 0; while (s < input.n) { for (int i = 0; i < 1000; i++) s++; } return s;"
    (burned,) = analyse(checked(source, Sample)).burns.values()
    assert burned > 3000


@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_fuel_is_burned_to_the_last_drop_and_no_further(back_end: str) -> None:
    source = "int i = 0; while (i < input.n) { i++; } return 1;"
    (burned,) = analyse(checked(source, Sample)).burns.values()
    events = [Sample(n, 0.0, [0.0] * 100, b"", "", [0.0] * n) for n in (0, 9, 10, 11)]
    ran = run(back_end, source, events, fuel=10 * burned)
    assert ran.selected == [0, 1, 2]
    assert ran.fault == (3, "FUEL", 1, 12)
    assert run(back_end, source, events, fuel=10 * burned - 1).selected == [0, 1]


@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_the_loops_of_an_event_share_its_fuel(back_end: str) -> None:
    source = "int i = 0; while (i < 5) i++;\ni = 0; while (i < 5) i++; return 1;"
    first, second = analyse(checked(source, Sample)).burns.values()
    event = Sample(0, 0.0, [0.0] * 100, b"", "", [])
    assert run(back_end, source, [event, event], fuel=5 * first + 5 * second).selected == [0, 1]
    assert run(back_end, source, [event], fuel=5 * first + 5 * second - 1).fault == (0, "FUEL", 2, 8)
