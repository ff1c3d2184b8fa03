"""The fuzzer of E-Code: would it notice if back ends differed? Trial 9 (`echoic soak ecode`) is the campaign."""

import os
import signal
import subprocess
import sys

import msgspec
import pytest

from echoic.ecode.compiling import check
from echoic.ecode.kernel import Outcome
from echoic.testing import ecode_fuzz_runner
from echoic.testing.ecode_fuzz import Finding, run_campaign, show
from echoic.testing.ecode_fuzz_programs import Case, draw_case
from echoic.testing.ecode_fuzz_runner import Rig, Tally, Verdict
from echoic.testing.ecode_fuzz_shrinking import shrink
from echoic.testing.guarded_memory import GuardedMemory


def test_the_same_seed_draws_the_same_program() -> None:
    one, other = draw_case(5), draw_case(5)
    assert (one.source, one.batches, one.params) == (other.source, other.batches, other.params)
    assert one.signature == other.signature
    assert draw_case(6).source != one.source


def test_every_construct_of_the_language_is_drawn() -> None:
    sources = "\n".join(draw_case(seed).source for seed in range(400))
    for word in ("for (", "while (", "do {", "if (", "else {", "break;", "continue;", "return ", "static ", "const "):
        assert word in sources
    for word in (
        "strlen(",
        "length(",
        "resize(",
        "param.",
        "output.",
        "context.",
        "context.vent(",
        "isnan(",
        "pow(",
        "'a'",
        '"IBM"',
        "ULL",
        "0x",
    ):
        assert word in sources
    for operator in ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"):
        assert f" {operator} " in sources
        assert f" {operator}= " in sources
    for operator in ("==", "!=", "<", ">", "<=", ">=", "&&", "||", "?", ","):
        assert operator in sources


def test_every_program_compiles() -> None:
    for seed in range(200):
        case = draw_case(seed)
        check(case.source, case.signature)


class Lying:
    """A kernel of generated Python that says of its outcomes what is not so."""

    def __init__(self, kernel: object, what: str) -> None:
        self.kernel, self.what = kernel, what
        self.program = kernel.program
        self.faults = kernel.faults
        self.bind = kernel.bind

    def run(self, *arguments: object) -> Outcome:
        outcome = self.kernel.run(*arguments)
        if self.what == "records" and outcome.records:
            outcome.records = bytes(outcome.records[:-1]) + bytes([outcome.records[-1] ^ 1])
        elif self.what == "selected":
            outcome.selected = outcome.selected[1:]
        elif self.what == "faults" and outcome.faults:
            outcome.faults[0] = msgspec.structs.replace(outcome.faults[0], column=99)
        elif self.what == "statics" and len(arguments[4]):
            arguments[4][0] ^= 1
        return outcome


class Crashing(Rig):
    """A rig in whose process some programs do what no program should be able to do."""

    def judge(self, case: Case) -> Verdict:
        if case.seed == 3:
            os.kill(os.getpid(), signal.SIGSEGV)
        if case.seed == 5:
            raise RecursionError("too deep")
        return Verdict(Tally(1), difference="statics" if case.seed == 8 and "return" in case.source else "")


def test_a_campaign_survives_what_its_programs_do_and_reports_each_with_its_seed() -> None:
    report = run_campaign(seed=0, count=10, rig=Crashing)
    assert [(finding.seed, finding.problem.strip().splitlines()[-1]) for finding in report.findings] == [
        (3, "ended by SIGSEGV"),
        (5, "RecursionError: too deep"),
        (8, "statics"),
    ]
    assert report.tally.programs == 10
    assert report.findings[0].source == draw_case(3).source
    assert report.findings[2].source.count("\n") < 2


@pytest.mark.parametrize("what", ["records", "selected", "faults", "statics"])
def test_a_back_end_that_is_wrong_somewhere_is_found_out(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = ecode_fuzz_runner.compile_python
    monkeypatch.setattr(ecode_fuzz_runner, "compile_python", lambda *given: Lying(honest(*given), what))
    rig = Rig()
    differences = [rig.judge(draw_case(seed)).difference for seed in range(40)]
    assert any(what in difference or "malformed" in difference for difference in differences)


def test_a_program_is_made_smaller_as_long_as_it_still_fails() -> None:
    case = draw_case(3)
    assert len(case.source.split("\n")) > 5
    smaller = shrink(case, lambda one: "return" in one.source)
    assert smaller.source.count("\n") < 2
    assert "return" in smaller.source
    assert "return" in show(Finding(3, "an example", smaller.source))


@pytest.mark.parametrize("at_start", [False, True])
def test_one_byte_outside_of_guarded_memory_is_a_signal(at_start: bool) -> None:
    script = f"""
import ctypes
from echoic.testing.guarded_memory import GuardedMemory
data = GuardedMemory().place(bytes(100), at_start={at_start})
first = ctypes.addressof(ctypes.c_char.from_buffer(data))
ctypes.string_at(first, 100)
print("inside", flush=True)
ctypes.string_at(first - 1 if {at_start} else first + 100, 1)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "inside\n"
    assert done.returncode == -signal.SIGSEGV


def test_guarded_memory_refuses_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        GuardedMemory(4096).place(bytes(5000))
