"""How the documents become a site: `./run docs`, which is `python -m sphinx -W -n -b html -c docs . build/site`.

The pages are plain Markdown whose links a git host follows as well, so nothing in them is there for this site alone.
Two things that a site needs are made here while a page is read:

* **The contents.** The tables of docs/README.md are the index for readers on a git host. The same tables, in the same
  order, become the contents at the side of the site, so a page that is not in them is a warning, and a warning ends the
  build.
* **The API reference.** A page below docs/reference/api says in a comment which names it shows,
  `<!-- api: echoic Hub Channel -->`, and their docstrings take the place of the comment.

The root of the sources is the root of the repository: README.md is the first page, and a link from a page to a program
beside it, or to an example, leads to that file. Nothing is fetched while the site is built or read.
"""

import gc
import importlib
import re
from pathlib import Path
from types import FunctionType
from typing import Annotated, get_origin

from docutils import nodes
from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Name, Number, Operator, String, Text
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

import echoic

gc.set_threshold(100_000, 50, 100)  # pages are large and live long: looking through them takes a quarter of the time

ROOT = Path(__file__).resolve().parents[1]

project = "echoic"
author = "the authors of echoic"
version = release = echoic.__version__
copyright = "Apache-2.0"  # noqa: A001  Sphinx's name

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "README"
include_patterns = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "SECURITY.md", "docs/*.md", "docs/**/*.md"]
exclude_patterns = [
    ".*",
    "build",
    "src",
    "tests",
    "benchmarks",
    "examples",
    "requirements",
    "node_modules",
    "echoic-demo",
]

myst_heading_anchors = 4
myst_enable_extensions: list[str] = []
suppress_warnings = ["misc.highlighting_failure"]  # of fragments: `...` in JSON, a message beside C

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
autoclass_content = "both"  # a class says what it is, its constructor how it is made
autodoc_default_options = {"members": True}
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
smartquotes_action = "D"  # dashes only: quotes stay as they were typed
default_role = "py:obj"  # `Hub.join` in a docstring is a link where there is such a name, and code where not
# What Sphinx must not complain about: types of the standard library and of others, which no page here describes.
nitpick_ignore_regex = [("py:.*", ".*")]

html_theme = "furo"
html_title = "echoic"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_permalinks_icon = "#"
html_theme_options = {
    "footer_icons": [],
    "top_of_page_buttons": [],
}


INDEX = ROOT / "docs" / "README.md"
SECTION = re.compile(r"^\| (to [\w, ]+) \|.*?(?=^\| to |\Z)", re.MULTILINE | re.DOTALL)
PAGE = re.compile(r"^\| \[[^]]+\]\(([\w./-]+)\.md\)", re.MULTILINE)
VALUES = {
    "ARCHITECTURES": 'The machines whose layouts are known by name: `ARCHITECTURES["sparc32"]`.',
    "NATIVE": "The machine that this runs on.",
    "Value": "What tools exchange: a number, a text, bytes, a `Term`, `TermList` or `Placeholder`; also annotated.",
    "Durability": "What a commit of a log waits for: `full` or `normal`.",
}
API = re.compile(r"^<!-- api: ([\w.]+)((?: \w+)*) -->$", re.MULTILINE)


def contents() -> str:
    """Return the contents of the site: the tables of docs/README.md, one list of pages for each."""
    tables = SECTION.finditer(INDEX.read_text(encoding="utf-8"))
    lists = [("Start", ["docs/README", "ARCHITECTURE", "CHANGELOG", "SECURITY"])]
    lists += [(table[1].capitalize(), [f"docs/{page}" for page in PAGE.findall(table[0])]) for table in tables]
    return "".join(toctree(pages, caption) for caption, pages in lists)


def toctree(pages: list[str], caption: str = "") -> str:
    """Return a list of pages that is shown at the side only."""
    head = f":caption: {caption}\n" if caption else ""
    return f"\n```{{toctree}}\n:hidden:\n{head}\n" + "\n".join(pages) + "\n```\n"


def public_names(module: str, wanted: str) -> list[str]:
    """Return the names that a page shows: those it wants, or all that the module says are public."""
    return wanted.split() or list(importlib.import_module(module).__all__)


def described(name: str, shown: object) -> str:
    """Return what can be said of a value that is neither a class nor a function."""
    if get_origin(shown) is Annotated:
        return f"A field of this type: `{name.rstrip('_')}` as C has it."
    return f"`{shown!r}`" if isinstance(shown, int | str) else "A name for a type that others are made of."


def directive(module: str, name: str) -> str:
    """Return the directive that shows one public name; a value has no docstring of its own, so one is given here."""
    shown = getattr(importlib.import_module(module), name)
    if isinstance(shown, type):
        kind = "exception" if issubclass(shown, BaseException) else "class"
    elif isinstance(shown, FunctionType):
        kind = "function"
    else:
        return f".. py:data:: {module}.{name}\n\n   {VALUES.get(name) or described(name, shown)}\n"
    return f".. auto{kind}:: {module}.{name}\n"


def shown_names(match: re.Match[str]) -> str:
    """Return what takes the place of a comment that names a module, and names of it."""
    module, wanted = match[1], match[2]
    directives = "\n".join(directive(module, name) for name in public_names(module, wanted))
    return f"```{{eval-rst}}\n{directives}```"


def complete(_: Sphinx, page: str, source: list[str]) -> None:
    """Add to a page, while it is read, what only the site has."""
    source[0] = API.sub(shown_names, source[0])
    if page == root_doc:
        source[0] += contents()
    elif page == "docs/reference/api/README":
        source[0] += toctree(PAGE.findall(source[0]))


def qualify(_: Sphinx, doctree: nodes.document) -> None:
    """Let a name in a docstring, `Channel`, lead to the public one: of the page's own module, else of `echoic`."""
    for reference in doctree.findall(pending_xref):
        target = reference.get("reftarget", "")
        head, dot, rest = target.partition(".")
        reference.attributes.pop("refspecific", None)  # else `start` would lead to any of ten methods
        module = reference.get("py:module") or "echoic"
        if reference.get("refdomain") == "py" and head != "echoic" and head.isidentifier():
            home = module if head in getattr(importlib.import_module(module), "__all__", ()) else "echoic"
            if hasattr(importlib.import_module(home), head):
                reference["reftarget"] = f"{home}.{head}{dot}{rest}"


def begin_with_the_readme(app: Sphinx, failed: Exception | None) -> None:
    """Make the folder of the site open with its first page."""
    if failed is None and app.builder.name == "html":
        head = '<meta charset="utf-8"><title>echoic</title><meta http-equiv="refresh" content="0; url=README.html">'
        text = f'<!doctype html><html lang="en">{head}<a href="README.html">echoic</a></html>\n'
        Path(app.outdir, "index.html").write_text(text, encoding="utf-8")


class TScript(RegexLexer):
    """The words of T-scripts, for colours."""

    name = "T-script"
    tokens = {  # noqa: RUF012  as Pygments wants it
        "root": [
            (r"%%.*$", Comment),
            (r'"(\\.|[^"\\])*"', String),
            (
                words(
                    ("process", "is", "let", "in", "endlet", "tool", "toolbus", "if", "then", "else", "fi"),
                    suffix=r"(?![\w-])",
                ),
                Keyword,
            ),
            (
                r"(snd|rec|read|printf|create|execute|shutdown|subscribe|unsubscribe|delay|timeout|abs-\w+)[\w-]*",
                Name.Builtin,
            ),
            (r"\d+(\.\d+)?", Number),
            (r"[A-Za-z][\w-]*", Name),
            (r"[.+*|&!?:=<>]", Operator),
            (r"\s+|.", Text),
        ],
    }


def setup(app: Sphinx) -> None:
    """Tell Sphinx what is done here."""
    app.connect("source-read", complete)
    app.connect("doctree-read", qualify)
    app.connect("build-finished", begin_with_the_readme)
    app.add_lexer("tscript", TScript)
