"""What the documents show is what happens: every Python block runs, and prints what stands below it."""

import itertools
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINKED = [*DOCUMENTS, *(ROOT / name for name in ("ARCHITECTURE.md", "CHANGELOG.md", "SECURITY.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
MODULE = re.compile(r"`((\w+)/[\w/]+(?:\.\w+)?)`")
PACKAGE = ROOT / "src" / "echoic"
GLOSSARY = ROOT / "docs" / "glossary.md"
EXPLAINING = [ROOT / "ARCHITECTURE.md", GLOSSARY, *sorted((ROOT / "docs" / "explanation").glob("*.md"))]
STEPS = sorted((ROOT / "docs" / "tutorial").glob("[1-6]-*.md"))


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
        [sys.executable, *arguments], capture_output=True, text=True, cwd=ROOT, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def anchors(path: Path) -> frozenset[str]:
    """Return the anchors that a git host makes of the headings of a document."""
    text = BLOCK.sub("", path.read_text(encoding="utf-8"))
    found: set[str] = set()
    for heading in HEADING.findall(text):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        number = next(number for number in itertools.count() if (f"{slug}-{number}" if number else slug) not in found)
        found.add(f"{slug}-{number}" if number else slug)
    return frozenset(found)


def faults_of(link: str, document: Path) -> str:
    """Return what is wrong with a link within the repository; "" if nothing is."""
    place, _, anchor = link.partition("#")
    target = (document.parent / place).resolve() if place else document
    if not target.exists():
        return f"{document.name} links to {link}, which is not there"
    if ROOT not in (target, *target.parents):
        return f"{document.name} links to {link}, out of the repository"
    if anchor and anchor not in anchors(target):
        return f"{document.name} links to {link}, which has no such heading"
    return ""


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


@pytest.mark.parametrize("path", LINKED, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    links = LINK.findall(CODE.sub("", path.read_text(encoding="utf-8")))
    faults = [faults_of(link, path) for link in links if not link.startswith(("http://", "https://"))]
    assert not [fault for fault in faults if fault]


def test_a_dead_link_and_a_dead_anchor_are_found(tmp_path: Path) -> None:
    assert "not there" in faults_of("no-such.md", ROOT / "README.md")
    assert "no such heading" in faults_of("docs/glossary.md#nonsense", ROOT / "README.md")
    assert not faults_of("docs/glossary.md#our-words", ROOT / "README.md")


def test_the_tutorial_has_six_steps_and_each_leads_to_the_next() -> None:
    assert [step.name[0] for step in STEPS] == list("123456")
    for step, following in itertools.pairwise(STEPS):
        assert f"]({following.name})" in step.read_text(encoding="utf-8")


@pytest.mark.parametrize("step", STEPS, ids=lambda path: path.name)
def test_a_step_of_the_tutorial_has_a_program_beside_it_and_says_what_was_seen(step: Path) -> None:
    text = step.read_text(encoding="utf-8")
    assert step.with_name(step.stem.replace("-", "_") + ".py").exists()
    assert "## What you have seen" in text
    assert text.startswith(f"# {step.name[0]}. ")


def test_a_word_of_the_glossary_leads_to_where_it_lives() -> None:
    rows = [line for line in GLOSSARY.read_text(encoding="utf-8").splitlines() if line.count("|") >= 4]
    words = [row for row in rows if not row.startswith(("| word", "|---"))]
    assert len(words) > 100
    assert not [row for row in words if not LINK.findall(row.rpartition("|")[0].rpartition("|")[2])]


@pytest.mark.parametrize("path", EXPLAINING, ids=lambda path: path.name)
def test_a_module_that_an_explanation_names_is_there(path: Path) -> None:
    """A name without an ending, `hub/outbound`, is a module, a folder of them, or something in a module."""
    named = MODULE.findall(path.read_text(encoding="utf-8"))
    ours = [name for name, package in named if (PACKAGE / package).is_dir()]
    places = {name: [PACKAGE / name, PACKAGE / f"{name}.py", (PACKAGE / name).with_suffix(".py")] for name in ours}
    assert not [name for name, there in places.items() if not any(place.exists() for place in there)]
