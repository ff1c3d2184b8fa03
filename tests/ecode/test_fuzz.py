"""The fuzzer of E-Code: would it notice if back ends differed? Trial 9 (`echoic soak ecode`) is the campaign."""

import os
import signal
import subprocess
import sys
import time

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


class Endless(Rig):
    """A rig in whose process one program turns for ever, another one hangs, and all others are done."""

    def judge(self, case: Case) -> Verdict:
        while case.seed == 3:
            pass
        if case.seed == 5:
            time.sleep(100)
        return Verdict(Tally(1))


def test_a_program_that_turns_for_ever_is_found_and_the_campaign_goes_on_behind_it() -> None:
    report = run_campaign(seed=2, count=3, rig=Endless, patience_seconds=1)
    problem = "did not come back within 1 s of the processor"
    assert report.findings == [Finding(3, problem, draw_case(3).source)]
    assert report.tally.programs == 3


@pytest.mark.slow
def test_a_program_that_hangs_is_found_and_the_campaign_goes_on_behind_it() -> None:
    report = run_campaign(seed=4, count=3, rig=Endless, waiting_seconds_max=15)
    assert report.findings == [Finding(5, "did not come back for 15 s", draw_case(5).source)]
    assert report.tally.programs == 3


class Slow(Rig):
    """A rig whose programs take long by the clock and little of the processor, as if somebody held all of it up."""

    def judge(self, case: Case) -> Verdict:
        for _ in range(20):
            time.sleep(0.1)
        return Verdict(Tally(1))


def test_a_program_may_take_its_time_as_long_as_it_takes_little_of_the_processor() -> None:
    report = run_campaign(seed=0, count=2, rig=Slow, patience_seconds=1)
    assert not report.findings
    assert report.tally.programs == 2


class Wrong(Rig):
    """A rig that finds every program wrong, and takes a while to say so."""

    def judge(self, case: Case) -> Verdict:
        began = time.process_time()
        while time.process_time() - began < 0.2:
            pass
        return Verdict(Tally(1), difference="wrong")


def test_a_wrong_program_has_the_processor_anew_each_time_that_it_is_tried_smaller() -> None:
    report = run_campaign(seed=0, count=1, rig=Wrong, patience_seconds=1)
    assert [finding.problem for finding in report.findings] == ["wrong"]


@pytest.mark.slow
def test_a_campaign_that_is_stopped_for_longer_than_it_waits_goes_on_as_if_nothing_had_been() -> None:
    script = """
from echoic.testing.ecode_fuzz import run_campaign
from tests.ecode.test_fuzz import Slow
if __name__ == "__main__":
    print("begun", flush=True)
    report = run_campaign(seed=0, count=3, rig=Slow, patience_seconds=1, waiting_seconds_max=20)
    print(report.tally.programs, report.findings)
"""
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as campaign:
        assert campaign.stdout.readline() == "begun\n"
        time.sleep(1)
        os.killpg(campaign.pid, signal.SIGSTOP)
        time.sleep(24)
        os.killpg(campaign.pid, signal.SIGCONT)
        assert campaign.stdout.readline() == "3 []\n"
    assert campaign.returncode == 0


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


@pytest.mark.parametrize("bytes_first", [1 << 20, 64])
@pytest.mark.parametrize("at_start", [False, True])
def test_one_byte_outside_of_guarded_memory_is_a_signal(at_start: bool, bytes_first: int) -> None:
    script = f"""
import ctypes
from echoic.testing.guarded_memory import GuardedMemory
memory = GuardedMemory({bytes_first})
kept = memory.place(bytes(60))
data = memory.place(bytes(10_000), at_start={at_start})
first = ctypes.addressof(ctypes.c_char.from_buffer(data))
ctypes.string_at(first, 10_000)
print("inside", flush=True)
ctypes.string_at(first - 1 if {at_start} else first + 10_000, 1)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "inside\n"
    assert done.returncode == -signal.SIGSEGV


def test_guarded_memory_grows_and_leaves_what_was_placed_before_where_it_is() -> None:
    memory = GuardedMemory(4096)
    before = memory.place(b"before")
    assert memory.place(bytes(range(256)) * 40) == bytes(range(256)) * 40
    assert before == b"before"
    assert memory.place(b"x" * 16_384, at_start=True) == b"x" * 16_384


def test_guarded_memory_refuses_what_is_larger_than_it_may_become() -> None:
    with pytest.raises(ValueError, match="do not fit, limit is 8192"):
        GuardedMemory(4096, size_max=8192).place(bytes(9000))
