"""What the documents show is what happens: every Python block runs, and prints what stands below it."""

import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^]]+\]\(([^)#]+)\)")


def programs() -> list[tuple[str, str, str]]:
    """Return place, source and expected output of each Python block that is followed by a text block."""
    found = []
    for path in DOCUMENTS:
        blocks = BLOCK.findall(path.read_text(encoding="utf-8"))
        for number, ((language, source), (following, output)) in enumerate(itertools.pairwise(blocks)):
            if language == "python" and following == "text":
                found.append((f"{path.name}:{number}", source, output))
    return found


def run(arguments: list[str]) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=ROOT, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("place", "source", "output"), programs(), ids=[place for place, _, _ in programs()])
def test_a_program_in_a_document_prints_what_stands_below_it(
    place: str, source: str, output: str, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(source, encoding="utf-8")
    assert run([str(program)]) == output


def test_the_readme_has_programs_with_output() -> None:
    assert sum(place.startswith("README") for place, _, _ in programs()) >= 3


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_an_example_runs_alone(path: Path) -> None:
    assert run([str(path)])


@pytest.mark.parametrize("path", [*DOCUMENTS, ROOT / "ARCHITECTURE.md"], ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    for target in LINK.findall(path.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"
