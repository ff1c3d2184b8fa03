"""What the pages about T-scripts show is what happens: every script is run, and prints what stands below it."""

import itertools
import re
from pathlib import Path

import pytest

from echoic.errors import ScriptError
from echoic.scripts.checking import SIGNATURES
from echoic.scripts.syntax.tree import ATOMS
from echoic.toolbus import Bus

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = DOCS / "reference" / "t-script.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PATIENCE_SECONDS = 60.0


def scripts() -> list[tuple[str, str, str]]:
    """Return place, script and expected output of each script that is followed by a text block."""
    found = []
    for path in sorted(DOCS.rglob("*.md")):
        blocks = BLOCK.findall(path.read_text(encoding="utf-8"))
        for number, ((language, script), (following, output)) in enumerate(itertools.pairwise(blocks)):
            if language == "tscript" and following == "text":
                found.append((f"{path.name}:{number}", script, output))
    return found


@pytest.mark.parametrize(("place", "script", "output"), scripts(), ids=[place for place, _, _ in scripts()])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_script_in_a_document_prints_what_stands_below_it(
    place: str, script: str, output: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("script.tb").write_text(script, encoding="utf-8")
    printed: list[str] = []
    try:
        with Bus.from_script("script.tb", seed=seed, clock="virtual", output=printed.append) as bus:
            bus.run(timeout=PATIENCE_SECONDS)
    except ScriptError as error:
        printed.append(f"{error}\n")
    assert "".join(printed) == output


@pytest.mark.parametrize("name", [*SIGNATURES, *ATOMS])
def test_the_reference_names_every_function_and_every_atom(name: str) -> None:
    assert re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", REFERENCE.read_text(encoding="utf-8")), name
