"""Trial 9: random E-Code, three ways."""

import os
import signal
from pathlib import Path

import pytest

from echoic.ecode.analysis import Analysis, analyse
from echoic.ecode.program import Program
from echoic.testing import ecode_c_twin
from echoic.testing.ecode_c_twin import c_compiler, compare_with_c
from echoic.testing.ecode_fuzz import CampaignReport
from echoic.testing.ecode_fuzz_programs import draw_case
from echoic.testing.ecode_fuzz_runner import Rig
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


def test_a_program_is_tried_whose_events_have_more_than_a_megabyte() -> None:
    case = draw_case(2026 * ecode.SEEDS + 6273)
    assert [len(batch.records) for batch in case.batches] == [98_976, 1_128_152]
    verdict = Rig().judge(case)
    assert (verdict.difference, verdict.tally.events) == ("", 11)


def planted(folder: str, seed: int, count: int) -> list[str]:
    """Stand in for a comparison whose batches turn for ever, end their process, do that only once, or differ."""
    number, once = seed - ecode.SEEDS, Path(folder, "once")
    while number == 100:
        pass
    if number == 300 or (number == 500 and not once.exists()):
        if number == 500:
            once.touch()
        os.kill(os.getpid(), signal.SIGSEGV)
    return ["program 7 differs"] if number == 800 else []


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_a_batch_in_c_that_does_not_come_back_is_found_and_the_others_are_tried(
    processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: processes)
    monkeypatch.setattr(ecode, "ALONE_MAX", 0)
    monkeypatch.setattr(ecode, "PATIENCE_SECONDS", 1.0)
    monkeypatch.setattr(ecode, "c_compiler", lambda: str(tmp_path))
    monkeypatch.setattr(ecode, "compare_with_c", planted)
    monkeypatch.setattr(ecode, "run_campaign", lambda *_: CampaignReport())
    findings = ecode.run(2000, 1, lambda done: None)
    ended = "ended its process, or took more than 1 s of the processor"
    problems = set(findings.problems)
    for number in (100, 300):
        problems.remove(f"a program of seed {ecode.SEEDS + number} {ended}")
    problems.remove("program 7 differs")
    (once,) = problems
    assert str(ecode.SEEDS + 500) in once
    assert once.endswith(f"{ended}, and did not do so alone")
    assert findings.figures["programs_by_a_c_compiler_too"] == 1000
