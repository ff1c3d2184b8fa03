"""The tutorial "Let tools work together": its files are those beside it, and its commands print what it says."""

import itertools
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

FOLDER = Path(__file__).parents[2] / "docs" / "tutorial"
PAGE = (FOLDER / "let-tools-work-together.md").read_text(encoding="utf-8")
FILES = FOLDER / "let_tools_work_together"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHOWN_FILE = re.compile(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
PROGRAM = [sys.executable, "-c", "from echoic.cli import main; main()"]
ELISION = "...\n"


def commands() -> list[tuple[list[str], str | None]]:
    """Return the commands of each block of them, and what stands below it."""
    blocks = [*BLOCK.findall(PAGE), ("", "")]
    return [
        (text.splitlines(), following if language == "text" else None)
        for (kind, text), (language, following) in itertools.pairwise(blocks)
        if kind == "sh"
    ]


def run(line: str, folder: Path) -> str:
    program, *words = shlex.split(line)
    assert program == "echoic"
    done = subprocess.run(
        [*PROGRAM, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        timeout=120,
        check=False,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
    )
    assert done.returncode == (1 if "check office.tb" in line else 0), done.stdout
    return done.stdout


def test_the_page_shows_the_files_beside_it() -> None:
    shown = dict(SHOWN_FILE.findall(PAGE))
    assert shown == {path.name: path.read_text(encoding="utf-8") for path in FILES.iterdir() if path.is_file()}


def test_the_commands_print_what_stands_below_them(tmp_path: Path) -> None:
    for path in FILES.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    for lines, expected in commands():
        printed = "".join(run(line, tmp_path) for line in lines)
        if expected is None:
            continue
        begin, elided, end = expected.partition(ELISION)
        if elided:
            assert printed.startswith(begin), lines
            assert printed.endswith(end), lines
        else:
            assert printed == expected, lines
    assert "<svg" in (tmp_path / "office.html").read_text(encoding="utf-8")
