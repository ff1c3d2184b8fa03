"""The probes that were run on both originals, as far as a script need not run to answer them."""

import pytest

from tests.scripts.checking.checked import errors, in_process, warnings

DECLARED = "X : int, T : term, S : str, B : bool"


@pytest.mark.parametrize(
    ("number", "body", "found"),
    [
        (2, 'printf("%t", X)', []),
        (3, "rec-msg(f(S?)) || snd-msg(f(13))", []),
        (13, "snd-msg(x, add(1, 2)) || rec-msg(x, add(X?, 2))", []),
        (14, "T := f(1)", ["function `f` is not defined: to make a term, write `quote(f(...))`"]),
        (15, "rec-msg(f(X?, X?)) || snd-msg(f(1, 1))", []),
        (20, "X := add(2147483647, 1)", []),
        (20, "X := 9223372036854775808", []),
        (31, "create(P, X?)", []),
        (32, 'S := concat("a", 3)', ["argument 2 of function `concat` should be `str`, got `int`"]),
        (33, "B := equal(1, 1.0)", []),
        (36, 'printf("%%")', []),
        (37, "tau >> delta", []),
        (40, "B := true . if B then tau fi", []),
    ],
)
def test_a_probe_is_answered_before_it_runs(number: int, body: str, found: list[str]) -> None:
    assert [error.split(": ", 1)[1] for error in errors(in_process(body, DECLARED))] == found, number


def test_probe_3_and_17_and_27_are_known_before_they_run() -> None:
    without = ["no `rec-msg` can receive this", "no `snd-msg` sends anything like this"]
    for body in ("snd-msg(f(13)) || rec-msg(f(S?))", "snd-msg(f(X?)) || rec-msg(f(T?))"):
        assert [each.split(": ", 1)[1] for each in warnings(in_process(body, DECLARED))] == without
    assert warnings(in_process("snd-msg(f(1)) || rec-msg(f(<int>))", DECLARED)) == []
