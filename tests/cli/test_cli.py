"""The command line as people use it: a process, its two streams and its exit code."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


def echoic(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from echoic.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=cwd)


def test_version_is_answered_without_importing_the_product() -> None:
    program = (
        "import sys; sys.argv = ['echoic', '--version']; from echoic.cli import main; main();"
        "print(sorted({'numpy', 'llvmlite', 'pyarrow', 'cyclopts', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["0.1.0", "[]"]


def test_help_names_the_verbs() -> None:
    shown = echoic("--help").stdout
    assert all(verb in shown for verb in ("demo", "layout", "fuzz"))


def test_layout_shows_a_type_on_another_machine() -> None:
    shown = echoic("layout", "echoic.testing.samples:Trade", "--on", "sparc32", "--pointers").stdout
    assert shown.startswith("Trade  big-endian, 40 bytes, aligned to 8")


def test_layout_finds_modules_in_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import echoic\n@echoic.event\nclass Ping:\n    at: float\n", encoding="utf-8")
    assert "Ping  little-endian, 8 bytes" in echoic("layout", "mine:Ping", cwd=tmp_path).stdout


def test_layout_speaks_json() -> None:
    shown = json.loads(echoic("layout", "echoic.testing.samples:Station", "--json").stdout)
    assert shown["fields"][1] == {"field": "latitude", "type": "float64", "offset": 8}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["layout", "nothing.here:Trade"], "cannot import `nothing.here`"),
        (["layout", "echoic.testing.samples:Trad"], "has no `Trad`"),
        (["layout", "echoic.testing.samples"], "expected MODULE:CLASS"),
        (["layout", "echoic.testing.samples:Trade", "--on", "vax"], "no machine is called `vax`"),
        (["layout", "pathlib:Path"], "expected an event class"),
    ],
)
def test_bad_input_gives_one_sentence_on_stderr_and_exit_code_1(arguments: list[str], said: str) -> None:
    done = echoic(*arguments)
    assert done.returncode == 1
    assert said in " ".join(done.stderr.split())
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_an_unknown_verb_is_a_usage_error() -> None:
    done = echoic("dmeo")
    assert done.returncode == 2
    assert "demo" in done.stderr + done.stdout


def test_fuzzing_is_repeated_by_its_seed() -> None:
    first, second = (
        json.loads(echoic("fuzz", "frames", "--count", "500", "--seed", "7", "--json").stdout) for _ in "12"
    )
    assert first["frames"] == 500
    assert first["findings"] == []
    assert {key: first[key] for key in ("accepted", "refused")} == {key: second[key] for key in ("accepted", "refused")}
