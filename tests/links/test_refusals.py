"""Which refusals are logged, when strangers decide how many there are."""

from hypothesis import given
from hypothesis import strategies as some

from echoic.links.refusals import LINES_MAX, PERIOD_NS, Refusals


def test_a_reason_is_told_once_a_minute_for_each_place_and_the_rest_is_counted() -> None:
    refusals = Refusals("refused a connection from")
    first = refusals.line("10.0.0.1:1", "no TLS connection with 10.0.0.1:1: no certificate", 0)
    assert first == "refused a connection from 10.0.0.1:1: no TLS connection with 10.0.0.1:1: no certificate"
    assert refusals.line("10.0.0.1:2", "no TLS connection with 10.0.0.1:2: no certificate", 1) == ""
    assert refusals.line("10.0.0.1:3", "it speaks HTTP", 2).endswith("it speaks HTTP (1 more were not told)")
    assert refusals.line("10.0.0.2:1", "it speaks HTTP", 3) == "refused a connection from 10.0.0.2:1: it speaks HTTP"
    assert refusals.line("10.0.0.1:4", "it speaks HTTP", PERIOD_NS - 1) == ""
    assert refusals.line("10.0.0.1:5", "it speaks HTTP", PERIOD_NS).endswith("it speaks HTTP (1 more were not told)")


@given(some.lists(some.tuples(some.integers(0, 255), some.integers(0, 5)), max_size=500))
def test_a_flood_writes_so_many_lines_a_minute_whoever_it_is(strangers: list[tuple[int, int]]) -> None:
    refusals = Refusals("refused a connection from")
    lines = [refusals.line(f"10.0.0.{host}:1", f"reason {kind}", at) for at, (host, kind) in enumerate(strangers)]
    told = [line for line in lines if line]
    assert len(told) == min(LINES_MAX, len(set(strangers)))
