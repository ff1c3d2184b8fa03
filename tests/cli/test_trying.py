"""`echoic soak` and `echoic fuzz`: what is refused before hours have passed, and what Ctrl-C leaves."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from echoic.cli import soak as verb
from echoic.testing.trials import Findings
from echoic.testing.trials.trial import Trial
from tests.cli.terminals import desk, poll, type_here

pytestmark = pytest.mark.system


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("soak frames --size 100 --record {nowhere}", "x.jsonl: No such file or directory - at --record"),
        ("soak frames --size 100 --record {folder}", "Is a directory - at --record"),
        ("soak frames --size 100 --seed -1", "a seed is at least 0, got -1"),
        ("soak --size 5", "which trial? `echoic soak` lists them"),
        ("soak --release", "which trial?"),
        ("soak frames --release --size 5", "--release is a size of its own"),
        ("soak frmes", "did you mean `frames`?"),
        ("fuzz parsers trms", "did you mean `terms`?"),
        ("fuzz parsers terms --seconds 0", "expected a number of at least 1, got 0 - at --seconds"),
        ("fuzz frames --count 0", "expected a number of at least 1, got 0 - at --count"),
        ("fuzz channels --count -1", "expected a number of at least 1, got -1 - at --count"),
        ("fuzz frames --count 1 --seed -1", "a seed is at least 0, got -1"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_runs(words: str, said: str, tmp_path: Path) -> None:
    filled = words.format(nowhere=tmp_path / "nowhere" / "x.jsonl", folder=tmp_path)
    code, out, complaint = type_here(*filled.split())
    assert (code, out) == (1, "")
    assert said in complaint
    assert "seed " not in complaint.removeprefix("error: a seed"), "nothing has begun"


def trial_of(name: str, run: str) -> Trial:
    return Trial(
        number=99, name=name, fault="none", passes_when="it does", unit="tries", test_size=1, release_size=2, place=run
    )


def passes(size: int, seed: int, tell: object) -> Findings:
    return Findings(figures={"tries": size})


def is_interrupted(size: int, seed: int, tell: object) -> Findings:
    raise KeyboardInterrupt


def loses_its_record(size: int, seed: int, tell: object) -> Findings:
    Path(os.environ["RECORD"]).unlink()
    Path(os.environ["RECORD"]).mkdir()
    return passes(size, seed, tell)


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    trials = {run.__name__: trial_of(run.__name__, f"{__name__}:{run.__name__}") for run in (
        passes, is_interrupted, loses_its_record
    )}  # fmt: skip
    monkeypatch.setattr(verb, "trial_named", trials.__getitem__)


@pytest.mark.usefixtures("planted")
def test_what_was_done_before_ctrl_c_is_printed() -> None:
    code, out, said = type_here("soak", "passes", "is_interrupted", "passes", "--seed", "7")
    assert code == 130
    assert out.startswith("passes: held; 1 tries in ")
    assert out.count("passes: held") == 1
    assert "is_interrupted: interrupted after " in said
    assert "1 tries, seed 7\n" in said
    code, out, _ = type_here("soak", "passes", "is_interrupted", "--json")
    assert (code, [each["trial"] for each in json.loads(out)]) == (130, ["passes"])


@pytest.mark.usefixtures("planted")
def test_an_outcome_that_cannot_be_recorded_is_printed_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = tmp_path / "runs.jsonl"
    monkeypatch.setenv("RECORD", str(record))
    code, out, said = type_here("soak", "loses_its_record", "passes", "--record", str(record))
    assert (code, out.count(": held; ")) == (1, 2)
    assert f"the outcome of loses_its_record is not in {record}: Is a directory" in said


def test_a_fuzzer_says_its_seed_first_and_how_far_it_came() -> None:
    with desk() as place:
        fuzzing = place.start("fuzz", "frames", "--count", "1000000000").says("1,000,000,000 frames, seed ")
        time.sleep(1)
        assert fuzzing.interrupt() == 130
        assert "interrupted after " in fuzzing.err
        assert "Traceback" not in fuzzing.err


def test_kills_that_are_interrupted_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with desk() as place:
        killing = place.start("soak", "kills", "--size", "20")
        poll(lambda: [*tmp_path.glob("echoic-kills-*/*")], "the folder of the campaign")
        assert killing.interrupt() == 130
    assert list(tmp_path.glob("echoic-kills-*")) == []


def test_ctrl_c_ends_random_programs_without_a_traceback() -> None:
    command = [sys.executable, "-m", "echoic.testing.ecode_fuzz", "--count", "1000000", "--processes", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as campaign:
        time.sleep(3)
        os.killpg(campaign.pid, signal.SIGINT)  # as a terminal does
        _, said = campaign.communicate(timeout=60)
    assert campaign.returncode == 130
    assert "of 1000000 from seed 0" in said
    assert "Traceback" not in said
