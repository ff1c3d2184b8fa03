"""The site that is made of the documents: strict, complete, and whole without a network.

It is built once for all tests here, as `./run docs` builds it. A warning of Sphinx ends the build: a link that leads
nowhere, a page that is in no contents, a docstring that cannot be read.
"""

import importlib
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PUBLIC = (
    "echoic",
    "echoic.aio",
    "echoic.eager.ready",
    "echoic.errors",
    "echoic.replicas",
    "echoic.spark",
    "echoic.testing",
    "echoic.toolbus",
    "echoic.viewer",
)
LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}
ELSEWHERE = re.compile(r"^(?:[a-z]+:)?//", re.IGNORECASE)
IN_STYLES = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)


class Loads(HTMLParser):
    """Gathers what a browser would load for a page, and the names that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.names.add(given.get("id") or "")
        if (place := given.get(LOADED.get(tag, ""))) is not None:
            self.loaded.append(place)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-n", "-b", "html", "-c", "docs"]
    done = subprocess.run(
        [*command, "-d", str(folder / "trees"), ".", str(folder / "html")],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Loads]:
    return {str(path.relative_to(site)): Loads(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


def test_every_document_is_a_page_of_the_site(pages: dict[str, Loads]) -> None:
    documents = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").rglob("*.md")]
    assert {str(path.relative_to(ROOT).with_suffix(".html")) for path in documents} <= pages.keys()


def test_the_folder_opens_with_the_readme(site: Path) -> None:
    assert "url=README.html" in (site / "index.html").read_text(encoding="utf-8")


def test_no_page_loads_anything_from_elsewhere(site: Path, pages: dict[str, Loads]) -> None:
    assert not {place: name for name, page in pages.items() for place in page.loaded if ELSEWHERE.match(place)}
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert not IN_STYLES.findall(styles)


def test_what_a_page_loads_is_there(site: Path, pages: dict[str, Loads]) -> None:
    missing = [
        (name, place)
        for name, page in pages.items()
        for place in page.loaded
        if not place.startswith(("#", "data:")) and not ((site / name).parent / re.split(r"[?#]", place)[0]).exists()
    ]
    assert not missing


def test_the_search_needs_no_server(site: Path, pages: dict[str, Loads]) -> None:
    """Browsers let a page that was opened as a file load scripts, and nothing else."""
    assert any(place.startswith("searchindex.js") for place in pages["search.html"].loaded)
    assert (site / "searchindex.js").read_text(encoding="utf-8").startswith("Search.setIndex(")


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_in_the_reference(module: str, pages: dict[str, Loads]) -> None:
    shown = set().union(*(page.names for name, page in pages.items() if name.startswith("docs/reference/api/")))
    names = importlib.import_module(module).__all__
    assert not [name for name in names if f"{module}.{name}" not in shown and f"echoic.{name}" not in shown]
