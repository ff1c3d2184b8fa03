"""The script `run`: what it installs, when, and what it leaves alone.

No test here needs the network. The script is copied into a folder of its own (with spaces in its name), and the first
Python on its PATH is a stand-in: a shell script that makes an "environment" out of a copy of itself, writes down every
call of pip, and prints what any other call would have run.
"""

import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("sh", "bash", "cat", "cksum", "cp", "dirname", "env", "mkdir", "mktemp", "rm", "sleep")
PROGRAMS = {
    "gcc": "the C compiler gcc",
    "bwrap": "bubblewrap",
    "ip": "iproute2",
    "nft": "nftables",
    "corosync": "Corosync",
    "pg_ctlcluster": "PostgreSQL",
    "mariadbd": "MariaDB",
    "chromium": "Chromium",
    "node": "Node.js",
    "npm": "npm",
}
"""What the tests need of the machine, and what it is called when it is missing."""
LEVELS = ("base", "spark", "dev", "bench")
ALL_TESTS = "ran python -m pytest -n 3 in"
WAIT_SECONDS_MAX = 60

STAND_IN = """\
#!/bin/sh
case "$*" in
    *"-m venv .venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python && cp "$0" .venv/bin/echoic ;;
    *"-m pip "*) echo "$*" >>"$PIP_CALLS" && sleep "${PIP_SECONDS:-0}" && exit "${PIP_STATUS:-0}" ;;
    *"import sys, sysconfig, venv, ensurepip"*) echo "${PYTHON_BUILD-optimized}" ;;
    *"import sys; print"*) echo "${PYTHON_VERSION:-3.11}" ;;
    --version) echo "Python 3.11.0" ;;
    *) echo "ran ${0##*/} $* in $PWD with PYTHONPATH=${PYTHONPATH-} SPARK_HOME=${SPARK_HOME-}" ;;
esac
"""


@dataclass
class Checkout:
    """A copy of what `run` needs, with nothing on the PATH but a few tools and the stand-in for Python."""

    root: Path
    tools: Path
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": str(self.tools), "PIP_CALLS": str(self.tools.parent / "pip_calls"), **self.settings}

    @property
    def pip_calls(self) -> list[str]:
        path = Path(self.environment["PIP_CALLS"])
        return path.read_text("utf-8").splitlines() if path.exists() else []

    @property
    def stamps(self) -> set[str]:
        return {path.name for path in (self.root / ".venv").glob(".*")}

    @property
    def locked(self) -> bool:
        return (self.root / ".venv.lock").exists()

    def start(self, *arguments: str, script: str = "run", folder: Path | None = None) -> subprocess.Popen[str]:
        """Start the script as the leader of a session, so that a signal can reach all that it starts."""
        return subprocess.Popen(
            [str(self.root / script), *arguments],
            cwd=folder or self.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, script: str = "run", folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        return finish(self.start(*arguments, script=script, folder=folder))

    def put(self, tool: str, script: str) -> None:
        (self.tools / tool).write_text(script, "utf-8")
        (self.tools / tool).chmod(0o755)

    def edit(self, name: str) -> None:
        with (self.root / name).open("a", encoding="utf-8") as file:
            file.write("# edited\n")


def finish(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    output, errors = process.communicate(timeout=WAIT_SECONDS_MAX)
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    root, tools = tmp_path / "a folder with spaces", tmp_path / "tools"
    (root / ".ci").mkdir(parents=True)
    (root / "requirements").mkdir()
    for name in ("run", ".ci/run", "pyproject.toml", *(f"requirements/{level}.txt" for level in ("build", *LEVELS))):
        shutil.copy(ROOT / name, root / name)
    (root / "benchmarks").mkdir()
    for name in ("harness", "round_trip", "spark", "spark_reading"):
        (root / "benchmarks" / f"{name}.py").touch()
    tools.mkdir()
    for tool in TOOLS:
        (tools / tool).symlink_to(shutil.which(tool) or tool)
    checkout = Checkout(root, tools)
    checkout.put("python3", STAND_IN)
    for program in PROGRAMS:
        checkout.put(program, "#!/bin/sh\n")
    return checkout


def test_the_scripts_are_valid_shell() -> None:
    for shell, script in (("sh", "run"), ("bash", ".ci/run")):
        subprocess.run([shell, "-n", ROOT / script], check=True)


def test_help_prints_the_usage_and_installs_nothing(checkout: Checkout) -> None:
    for word in ("help", "--help", "-h"):
        done = checkout.run(word)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("usage: ./run")
    assert not checkout.pip_calls


def test_an_unknown_command_is_refused_on_stderr(checkout: Checkout) -> None:
    done = checkout.run("dance")
    assert (done.returncode, done.stdout) == (2, "")
    assert "unknown command 'dance'" in done.stderr
    assert not checkout.pip_calls


def test_the_first_call_installs_what_builds_then_the_pins_by_hash_and_then_echoic(checkout: Checkout) -> None:
    done = checkout.run()
    assert done.stdout.startswith("ran echoic demo")
    builders, pins, package = checkout.pip_calls
    assert "--require-hashes --only-binary :all: -r" in builders
    assert builders.endswith("-r requirements/build.txt")
    assert "--require-hashes --only-binary :all: --no-binary pyspark,pysyncobj --no-build-isolation" in pins
    assert pins.endswith("-r requirements/spark.txt")
    assert package.endswith("--no-deps --no-build-isolation --editable .")
    assert not checkout.locked


@pytest.mark.parametrize(
    ("words", "stamps"),
    [
        (("python",), {".base"}),
        (("echoic",), {".base"}),
        (("echoic", "watch", "pipeline"), {".base"}),
        (("echoic", "pipeline", "run"), {".base", ".spark"}),
        (("echoic", "demo"), {".base", ".spark"}),
        (("demo",), {".base", ".spark"}),
        ((), {".base", ".spark"}),
        (("test",), {".base", ".spark", ".dev"}),
        (("bench", "round_trip"), {".base", ".spark", ".bench"}),
    ],
    ids=lambda words: " ".join(sorted(words) if isinstance(words, set) else words),  # the same in every worker
)
def test_a_command_installs_what_it_needs_and_no_more(
    checkout: Checkout, words: tuple[str, ...], stamps: set[str]
) -> None:
    assert checkout.run(*words).returncode == 0
    assert checkout.stamps == stamps | {".package"}
    calls = checkout.pip_calls
    assert checkout.run(*words).stderr == ""
    assert checkout.pip_calls == calls


def test_spark_comes_to_an_environment_that_has_the_base(checkout: Checkout) -> None:
    checkout.run("python")
    before = len(checkout.pip_calls)
    assert "anew" not in checkout.run("demo").stderr
    builders, pins = checkout.pip_calls[before:]
    assert builders.endswith("-r requirements/build.txt")
    assert pins.endswith("-r requirements/spark.txt")


@pytest.mark.parametrize("level", ["dev", "bench"])
def test_changed_pins_of_spark_reach_an_environment_that_has_more(checkout: Checkout, level: str) -> None:
    checkout.run(*{"dev": ["test"], "bench": ["bench", "spark"]}[level])
    checkout.edit("requirements/spark.txt")
    assert checkout.run("python").stderr == ""
    assert "making .venv anew" in checkout.run("demo").stderr
    assert checkout.stamps == {".base", ".spark", ".package"}


def test_the_benchmarks_are_listed_without_the_parts_they_share(checkout: Checkout) -> None:
    done = checkout.run("bench", "nothing")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "run: name a benchmark, one of: round_trip spark\n"
    assert not checkout.pip_calls


def test_a_second_call_calls_no_pip_and_says_nothing_of_its_own(checkout: Checkout) -> None:
    checkout.run()
    calls = checkout.pip_calls
    for command in ("demo", "echoic", "python"):
        done = checkout.run(command)
        assert (done.returncode, done.stderr) == (0, "")
    assert checkout.pip_calls == calls


def test_arguments_arrive_as_they_were_given(checkout: Checkout) -> None:
    assert checkout.run("echoic", "watch", "--from", "a b").stdout.startswith("ran echoic watch --from a b in")
    assert checkout.run("python", "-c", "1; 2").stdout.startswith("ran python -c 1; 2 in")
    assert checkout.run("test", "-k", "frames").stdout.startswith("ran python -m pytest -k frames in")


def test_the_command_line_stays_in_the_callers_folder_and_the_tests_run_at_the_root(
    checkout: Checkout, tmp_path: Path
) -> None:
    assert f"in {tmp_path} " in checkout.run("echoic", folder=tmp_path).stdout
    assert f"in {tmp_path} " in checkout.run("python", folder=tmp_path).stdout
    assert f"in {checkout.root} " in checkout.run("test", folder=tmp_path).stdout


def test_the_ci_script_runs_the_tests(checkout: Checkout, tmp_path: Path) -> None:
    done = checkout.run(script=".ci/run", folder=tmp_path)
    assert done.stdout.startswith(f"{ALL_TESTS} {checkout.root} ")


def test_all_tests_run_several_at_a_time_and_those_that_are_named_as_they_are_asked_for(checkout: Checkout) -> None:
    assert checkout.run("test").stdout.startswith(ALL_TESTS)
    for words in ("tests/wire", "-n 2 tests/wire", "-x"):
        assert checkout.run("test", *words.split()).stdout.startswith(f"ran python -m pytest {words} in")


def test_tests_add_their_packages_to_an_environment_that_has_the_base(checkout: Checkout) -> None:
    checkout.run()
    before = len(checkout.pip_calls)
    checkout.run("test")
    assert checkout.pip_calls[-1].endswith("-r requirements/dev.txt")
    assert not any("--editable" in call for call in checkout.pip_calls[before:])


def test_an_environment_for_tests_serves_the_demo_too(checkout: Checkout) -> None:
    checkout.run("test")
    calls = checkout.pip_calls
    checkout.run("demo")
    assert checkout.pip_calls == calls


def test_changed_pins_make_the_environment_anew(checkout: Checkout) -> None:
    checkout.run("test")
    leftover = checkout.root / ".venv" / "leftover"
    leftover.touch()
    checkout.edit("requirements/dev.txt")
    checkout.run("demo")
    assert leftover.exists()
    checkout.run("test")
    assert not leftover.exists()


def test_another_python_makes_the_environment_anew(checkout: Checkout) -> None:
    checkout.run()
    leftover = checkout.root / ".venv" / "leftover"
    leftover.touch()
    checkout.settings["PYTHON_VERSION"] = "3.12"
    assert "making .venv anew" in checkout.run().stderr
    assert not leftover.exists()


def test_a_moved_repository_makes_the_environment_anew(checkout: Checkout, tmp_path: Path) -> None:
    checkout.run()
    checkout.root = checkout.root.rename(tmp_path / "elsewhere")
    assert "making .venv anew" in checkout.run().stderr


def test_a_changed_project_file_installs_only_echoic_again(checkout: Checkout) -> None:
    checkout.run()
    before = len(checkout.pip_calls)
    checkout.edit("pyproject.toml")
    checkout.run()
    (package,) = checkout.pip_calls[before:]
    assert package.endswith("--editable .")


def test_a_failed_install_leaves_no_stamp_and_the_next_call_tries_again(checkout: Checkout) -> None:
    checkout.settings["PIP_STATUS"] = "3"
    done = checkout.run()
    assert (done.returncode, done.stdout) == (3, "")
    assert not checkout.stamps
    assert not checkout.locked
    checkout.settings["PIP_STATUS"] = "0"
    assert checkout.run().returncode == 0
    assert checkout.stamps == {".base", ".spark", ".package"}


def test_an_interrupted_install_leaves_neither_stamp_nor_lock(checkout: Checkout) -> None:
    checkout.settings["PIP_SECONDS"] = str(4 * WAIT_SECONDS_MAX)
    process = checkout.start()
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not checkout.pip_calls and time.monotonic() < deadline:
        time.sleep(0.01)
    assert checkout.locked
    os.killpg(process.pid, signal.SIGTERM)
    assert finish(process).returncode != 0
    assert not checkout.stamps
    assert not checkout.locked


def test_two_calls_at_once_install_once(checkout: Checkout) -> None:
    checkout.settings["PIP_SECONDS"] = "0.5"
    both = [finish(process) for process in [checkout.start(), checkout.start()]]
    assert [done.returncode for done in both] == [0, 0]
    assert len(checkout.pip_calls) == len(set(checkout.pip_calls)) == 3
    assert "waiting for another call" in both[0].stderr + both[1].stderr


def test_a_lock_left_behind_is_reported_with_the_way_to_remove_it(checkout: Checkout) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    lock = checkout.root / ".venv.lock"
    lock.mkdir()
    (lock / "pid").write_text(f"{ended.pid}\n", "utf-8")
    done = checkout.run()
    assert done.returncode == 1
    assert f"process {ended.pid} left a lock behind" in done.stderr
    assert f"rm -r '{lock}'" in done.stderr
    assert lock.exists()


def test_a_machine_without_a_fit_python_is_told_what_is_needed(checkout: Checkout) -> None:
    (checkout.tools / "python3").write_text("#!/bin/sh\nexit 1\n", "utf-8")
    done = checkout.run()
    assert (done.returncode, done.stdout) == (1, "")
    assert "needs Python 3.11 or later" in done.stderr
    assert not checkout.locked


@pytest.mark.parametrize(
    ("here", "behind", "taken"),
    [
        ("optimized", "optimized", "tools"),
        ("plain", "optimized", "behind"),
        ("plain", "plain", "tools"),
        ("", "plain", "behind"),
    ],
)
def test_of_the_pythons_on_the_path_the_first_optimized_one_is_taken_or_else_the_first(
    checkout: Checkout, here: str, behind: str, taken: str
) -> None:
    folder = checkout.tools.parent / "behind"
    folder.mkdir()
    checkout.settings["PATH"] = f"{checkout.tools}:{folder}"
    for python, build in ((checkout.tools / "python3", here), (folder / "python3.12", behind)):
        python.write_text(f"#!/bin/sh\nPYTHON_BUILD={build}; place={python.parent.name}\n{STAND_IN}", "utf-8")
        python.chmod(0o755)
    assert checkout.run("python").returncode == 0
    assert f"place={taken}\n" in (checkout.root / ".venv/bin/python").read_text("utf-8")


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_tests_get_a_program_that_is_not_there(checkout: Checkout, program: str) -> None:
    (checkout.tools / program).unlink()
    checkout.put("id", "#!/bin/sh\necho 0\n")
    # As on a machine whose list of packages is empty: the first install fails, after the update it does not.
    checkout.put(
        "apt-get",
        '#!/bin/sh\ncd "${0%/*}"\ncase "$*" in\n*update*) echo 1 >list ;;\n'
        f"*) [ -f list ] && cp apt-get {program} ;;\nesac\n",
    )
    done = checkout.run("test")
    assert done.stdout.startswith("ran python -m pytest")
    assert f"installing {program} by apt-get" in done.stderr
    assert program not in checkout.run("test").stderr


@pytest.mark.parametrize(("program", "name"), PROGRAMS.items())
def test_a_machine_without_a_program_and_apt_is_told_so_by_the_tests_alone(
    checkout: Checkout, program: str, name: str
) -> None:
    (checkout.tools / program).unlink()
    checkout.put("id", "#!/bin/sh\necho 0\n")
    done = checkout.run("test")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"the tests need {name}" in done.stderr
    assert checkout.run("python").returncode == 0


def test_the_callers_python_settings_do_not_reach_the_environment(checkout: Checkout) -> None:
    checkout.settings |= {"PYTHONPATH": "elsewhere", "SPARK_HOME": "elsewhere"}
    assert checkout.run("python").stdout.endswith("with PYTHONPATH= SPARK_HOME=\n")
