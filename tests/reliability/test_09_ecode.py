"""Trial 9: random E-Code, three ways."""

import pytest

from echoic.ecode.analysis import Analysis, analyse
from echoic.ecode.program import Program
from echoic.testing import ecode_c_twin
from echoic.testing.ecode_c_twin import c_compiler, compare_with_c
from echoic.testing.trials import ecode
from tests.reliability.trying import try_out


@pytest.mark.slow
def test_random_programs_do_the_same_in_both_back_ends_and_in_c(request: pytest.FixtureRequest) -> None:
    figures = try_out(request, "ecode").figures
    assert figures["programs_by_a_c_compiler_too"] == figures["programs_by_both_back_ends"] / 2
    assert figures["refused"] == 0
    assert figures["passed"] > figures["events"] / 4
    for fault in ("INDEX", "DIVISION", "FUEL", "RECORD", "LENGTH", "TEXT", "PORT"):
        assert fault in figures["faults"]


def test_without_a_c_compiler_all_programs_are_tried_by_both_back_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ecode, "c_compiler", lambda: None)
    findings = ecode.run(4, 1, lambda done: None)
    assert findings.clean
    assert findings.figures["programs_by_both_back_ends"] == 4
    assert "install gcc" in findings.figures["c_compiler"]


@pytest.mark.parametrize("back_end", ["native", "Python"])
def test_a_back_end_that_takes_less_for_at_most_is_found(back_end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest, check = ecode_c_twin.BACK_ENDS[back_end], ecode_c_twin.check

    def miscompiled(program: Program, _: Analysis) -> object:
        other = check(program_texts[program].replace(" <= ", " < "), program.signature)
        return honest(other, analyse(other))

    program_texts: dict[Program, str] = {}

    def remembered(body: str, signature: object) -> Program:
        program = check(body, signature)
        program_texts[program] = body
        return program

    monkeypatch.setattr(ecode_c_twin, "check", remembered)
    monkeypatch.setitem(ecode_c_twin.BACK_ENDS, back_end, miscompiled)
    problems = compare_with_c(c_compiler() or "cc", 1, 60)
    assert problems
    assert all(f", {back_end}: " in problem for problem in problems)
