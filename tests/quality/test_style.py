"""The house style, as far as a machine can judge it.

Every check takes the root of a repository and returns what it found, one line per fault. So each one runs twice:
over this repository, where it must find nothing, and over a small sample with a planted fault, which it must find.
A check that cannot fail is worth nothing.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest

from echoic.testing.trials import forbidden_code

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("src", "tests", "benchmarks", "examples")

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
ERROR_CLASSES_MAX = 28  # 25 kinds, and the three above them that tell whose mistake it was
SIGNALS = frozenset({"ValueNeeded"})  # raised between the cores, and never seen by a caller
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}
UNSAFE_MODULES = {"pickle", "marshal", "cloudpickle", "dill", "shelve"}

# Who may run a text; the trial of pickles says whose text that is.
EXECUTING = {f"src/echoic/{path}" for path in forbidden_code.EXECUTING}

# The folders in which a developer's machine keeps a checkout, when they start an absolute path.
MACHINE_PATH = re.compile(r"(?<![\w.)}*>-])/(?:work|farm|root|home/\w+|Users/\w+)/")

# Which requirement file contains which, pin for pin: whoever has the larger one has the smaller one too.
CONTAINED = (("build", "base"), ("base", "spark"), ("spark", "dev"), ("spark", "bench"))

Check = Callable[[Path], list[str]]
Node = TypeVar("Node", bound=ast.stmt | ast.expr | ast.excepthandler)


def run_tool(root: Path, *command: str) -> list[str]:
    """Return what the tool printed if it found fault, and nothing otherwise."""
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    return [] if done.returncode == 0 else [f"{' '.join(command)} exited {done.returncode}", done.stdout, done.stderr]


def run_module(root: Path, module: str, *arguments: str) -> list[str]:
    return run_tool(root, sys.executable, "-m", module, *arguments)


def present_sources(root: Path) -> list[str]:
    return [name for name in SOURCES if (root / name).is_dir()]


def lint_faults(root: Path) -> list[str]:
    return run_module(root, "ruff", "check", *present_sources(root))


def format_faults(root: Path) -> list[str]:
    return run_module(root, "ruff", "format", "--check", *present_sources(root))


def type_faults(root: Path) -> list[str]:
    return run_module(root, "mypy")


def import_faults(root: Path) -> list[str]:
    return run_tool(root, str(Path(sys.executable).with_name("lint-imports")), "--no-cache")


def source_files(root: Path) -> list[Path]:
    return sorted((root / "src").rglob("*.py"))


@cache
def nodes_of(text: str) -> list[ast.AST]:
    """Return what a file consists of; nine checks ask for the same ones."""
    return list(ast.walk(ast.parse(text)))


def source_nodes(root: Path, *kinds: type[Node]) -> Iterator[tuple[str, Node]]:
    """Yield every node of some kinds in every source file with the place to report it at."""
    for path in source_files(root):
        file = path.relative_to(root)
        for node in nodes_of(path.read_text("utf-8")):
            if isinstance(node, kinds):
                yield f"{file}:{node.lineno}", node


def package_inits(root: Path) -> Iterator[tuple[str, bool, ast.Module]]:
    """Yield every `__init__.py` with whether it is the top-level package's."""
    for path in source_files(root):
        if path.name == "__init__.py":
            topmost = path.parent.parent == root / "src"
            yield str(path.relative_to(root)), topmost, ast.parse(path.read_text("utf-8"))


def long_files(root: Path) -> list[str]:
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in source_files(root)}
    return [
        f"{path.relative_to(root)} has {lines} lines, limit is {FILE_LINES_MAX}"
        for path, lines in lengths.items()
        if lines > FILE_LINES_MAX
    ]


def long_functions(root: Path) -> list[str]:
    found = []
    for place, node in source_nodes(root, ast.FunctionDef, ast.AsyncFunctionDef):
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > FUNCTION_LINES_MAX:
            found.append(f"{place} {node.name} has {lines} lines, limit is {FUNCTION_LINES_MAX}")
    return found


def crowded_inits(root: Path) -> list[str]:
    return [
        f"{place}:{statement.lineno} does more than re-export: {ast.unparse(statement)}"
        for place, topmost, module in package_inits(root)
        for position, statement in enumerate(module.body)
        if not (position == 0 and is_docstring(statement))
        and not is_re_export(statement)
        and not (topmost and is_lazy_re_export(statement))
    ]


def is_docstring(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(ast.Constant(str())):
            return True
    return False


def is_re_export(statement: ast.stmt) -> bool:
    match statement:
        case ast.Import() | ast.ImportFrom():
            return True
        case ast.Assign([ast.Name("__all__")]) | ast.AnnAssign(ast.Name("__all__")):
            return True
    return False


def is_lazy_re_export(statement: ast.stmt) -> bool:
    """Tell whether the statement serves to import on first use: a private table and the hooks that read it."""
    match statement:
        case ast.Assign([ast.Name(name)]) | ast.AnnAssign(ast.Name(name)):
            return name.startswith("_")
        case ast.FunctionDef(name="__getattr__" | "__dir__"):
            return True
        case ast.If(ast.Name("TYPE_CHECKING"), body, []):
            return all(is_re_export(each) for each in body)
    return False


def undeclared_packages(root: Path) -> list[str]:
    return [
        f"{place} has a docstring that starts neither with `Pure.` nor with `Edge:`"
        for place, topmost, module in package_inits(root)
        if not topmost and not (ast.get_docstring(module) or "").startswith(("Pure.", "Edge:"))
    ]


def vague_names(root: Path) -> list[str]:
    found = sorted(path for path in (root / "src").rglob("*") if path.stem.strip("_") in VAGUE_NAMES)
    return [f"{path.relative_to(root)} names no concept" for path in found]


def unsafe_imports(root: Path) -> list[str]:
    found = []
    for place, node in source_nodes(root, ast.Import, ast.ImportFrom):
        match node:
            case ast.Import(names):
                modules = [alias.name for alias in names]
            case ast.ImportFrom(str(module)):
                modules = [module]
            case _:
                continue
        found += [f"{place} imports {name}" for name in modules if name.partition(".")[0] in UNSAFE_MODULES]
    return found


def calls_of_eval(root: Path) -> list[str]:
    found = []
    for place, node in source_nodes(root, ast.Call):
        match node:
            case ast.Call(ast.Name("eval") | ast.Attribute(ast.Name("builtins"), "eval")):
                found.append(f"{place} calls eval")
    return found


def calls_of_exec(root: Path) -> list[str]:
    found = []
    for place, node in source_nodes(root, ast.Call):
        match node:
            case ast.Call(ast.Name("exec") | ast.Attribute(ast.Name("builtins"), "exec")):
                if place.partition(":")[0] not in EXECUTING:
                    found.append(f"{place} calls exec; only `eager/loading.py` runs the text of others")
    return found


def swallowed_errors(root: Path) -> list[str]:
    found = []
    for place, node in source_nodes(root, ast.ExceptHandler):
        match node:
            case ast.ExceptHandler(None | ast.Name("Exception" | "BaseException"), body=[ast.Pass() | ast.Expr()]):
                found.append(f"{place} swallows every error")
    return found


def error_tree_faults(root: Path) -> list[str]:
    """Check that the errors are few, drawn in the docstring of errors.py, and defined nowhere else."""
    found = []
    for path in source_files(root):
        module = ast.parse(path.read_text("utf-8"))
        classes = [node for node in ast.walk(module) if isinstance(node, ast.ClassDef)]
        if path.name != "errors.py":
            found += [f"{path.relative_to(root)}:{each.lineno} {each.name}" for each in classes if is_error(each)]
            continue
        drawing = re.findall(r"\w+", ast.get_docstring(module) or "")
        found += [
            f"{each.name} is not drawn in the docstring of errors.py" for each in classes if each.name not in drawing
        ]
        if len(classes) > ERROR_CLASSES_MAX:
            found.append(f"errors.py has {len(classes)} classes, limit is {ERROR_CLASSES_MAX}")
    return found


def is_error(node: ast.ClassDef) -> bool:
    return node.name not in SIGNALS and any(ast.unparse(base).endswith(("Error", "Exception")) for base in node.bases)


def repository_files(root: Path) -> list[Path]:
    """Return every file that is committed or could be: all that git does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    return [path for name in listed.split("\0") if name and (path := root / name).is_file()]


def machine_paths(root: Path) -> list[str]:
    return [
        f"{path.relative_to(root)}:{number} names a path of one machine: {line.strip()}"
        for path in repository_files(root)
        for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]


def pins(path: Path) -> dict[str, str]:
    """Return each pin of a compiled requirement file (`name==version ; marker`) with its hashes."""
    text = path.read_text("utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    return {pin.strip(): hashes for pin, _, hashes in (line.partition("--hash=") for line in lines)}


def pin_faults(root: Path) -> list[str]:
    folder = root / "requirements"
    found = [f"{path.name} names an address" for path in sorted(folder.iterdir()) if "http" in path.read_text("utf-8")]
    for path in sorted(folder.glob("*.txt")):
        for pin, hashes in pins(path).items():
            if "==" not in pin or not hashes:
                found.append(f"`{pin}` of {path.name} has no version or no hash")
    for part, whole in CONTAINED:
        missing = versions(folder / f"{part}.txt") - versions(folder / f"{whole}.txt")
        found += [f"`{version}` is in {part}.txt but not in {whole}.txt" for version in sorted(missing)]
    return found


def versions(path: Path) -> set[str]:
    """Return the pins of a compiled requirement file as `name==version`; what else is in a file may widen a marker."""
    return {pin.partition(";")[0].strip() for pin in pins(path)}


@pytest.mark.parametrize("check", [lint_faults, format_faults, import_faults])
def test_the_tools_find_no_fault(check: Check) -> None:
    assert not (faults := check(ROOT)), "\n".join(faults)


@pytest.mark.slow
def test_the_types_are_strict_and_sound() -> None:
    assert not (faults := type_faults(ROOT)), "\n".join(faults)


@pytest.mark.parametrize(
    "check",
    [
        long_files,
        long_functions,
        crowded_inits,
        undeclared_packages,
        vague_names,
        unsafe_imports,
        calls_of_eval,
        calls_of_exec,
        swallowed_errors,
        error_tree_faults,
    ],
)
def test_the_source_keeps_the_house_style(check: Check) -> None:
    assert not (faults := check(ROOT)), "\n".join(faults)


def test_no_file_names_a_path_of_a_developers_machine() -> None:
    assert not (faults := machine_paths(ROOT)), "\n".join(faults)


def test_every_requirement_is_pinned_by_hash_and_by_no_address() -> None:
    assert not (faults := pin_faults(ROOT)), "\n".join(faults)


BUILD = "hatchling==1.33.0 --hash=sha256:00\n"
NUMPY = "numpy==2.0.0 \\\n    --hash=sha256:00\n    # via echoic\n"
CLEAN = {
    "pyproject.toml": (ROOT / "pyproject.toml").read_text("utf-8"),
    "src/echoic/__init__.py": '"""A sample."""\n\n__all__: list[str] = []\n',
    "src/echoic/errors.py": '"""One EchoicError."""\n\n\nclass EchoicError(Exception):\n    """The root."""\n',
    "src/echoic/formats/__init__.py": '"""Pure. What is it?"""\n',
    "src/echoic/trust/__init__.py": '"""Edge: touches files."""\n',
    "src/echoic/viewer/__init__.py": '"""Edge: touches sockets."""\n',
    "src/echoic/notebook/__init__.py": '"""Edge: touches sockets."""\n',
    "src/echoic/interop/__init__.py": '"""Edge: touches sockets."""\n',
    "src/echoic/monitor/__init__.py": '"""Edge: touches sockets."""\n',
    "src/echoic/rights/__init__.py": '"""Pure. What is it?"""\n',
    "src/echoic/terms/__init__.py": '"""Pure. What is it?"""\n',
    "src/echoic/codegen/__init__.py": '"""Pure. What is it?"""\n',
    "src/echoic/ecode/__init__.py": '"""Pure. What is it?"""\n',
    "src/echoic/wire/__init__.py": '"""Pure. What is it?"""\n',
    "src/echoic/wire/frames.py": '"""Frames."""\n',
    "src/echoic/channels/__init__.py": '"""Pure. What is it?"""\n',
    "src/echoic/groups/__init__.py": '"""Pure. What is it?"""\n',
    "src/echoic/scripts/__init__.py": '"""Pure. What is it?"""\n',
    "src/echoic/links/__init__.py": '"""Edge: touches sockets."""\n',
    "src/echoic/engines/__init__.py": '"""Edge: touches sockets."""\n',
    "src/echoic/eager/__init__.py": '"""Edge: runs code."""\n',
    "src/echoic/recorder/__init__.py": '"""Edge: touches files."""\n',
    "src/echoic/values/__init__.py": '"""Edge: touches files."""\n',
    "src/echoic/hub/__init__.py": '"""Edge: touches sockets."""\n',
    "src/echoic/aio.py": '"""For asyncio."""\n',
    "src/echoic/spark/__init__.py": '"""Edge: touches Spark."""\n',
    "src/echoic/replicas/__init__.py": '"""Edge: touches databases."""\n',
    "src/echoic/toolbus/__init__.py": '"""Edge: touches sockets."""\n',
    "src/echoic/testing/__init__.py": '"""Edge: touches nothing."""\n',
    "src/echoic/cli/__init__.py": '"""Edge: touches the terminal."""\n',
    "requirements/build.txt": BUILD,
    "requirements/base.txt": BUILD + NUMPY,
    "requirements/spark.txt": BUILD + NUMPY + "pyspark==4.3.0 \\\n    --hash=sha256:00\n",
    "requirements/dev.txt": BUILD + NUMPY + "pyspark==4.3.0 --hash=sha256:00\nruff==1.0 \\\n    --hash=sha256:00\n",
    "requirements/bench.txt": BUILD + NUMPY + "pyspark==4.3.0 ; python_version > '3' --hash=sha256:00\n",
}

FRAMES, INIT, WIRE = "src/echoic/wire/frames.py", "src/echoic/__init__.py", "src/echoic/wire/__init__.py"

FAULTS: list[tuple[Check, str, str]] = [
    (lint_faults, FRAMES, '"""Frames."""\n\nimport os\n'),
    (lint_faults, FRAMES, '"""Frames."""\n\nfrom pickle import loads\n\n__all__ = ["loads"]\n'),
    (lint_faults, FRAMES, '"""Frames."""\n\n\ndef send() -> None:\n    pass\n'),
    (format_faults, FRAMES, '"""Frames."""\nmagic=1\n'),
    (type_faults, FRAMES, '"""Frames."""\n\n\ndef send(frame):\n    return frame\n'),
    (import_faults, "src/echoic/formats/fields.py", "import echoic.wire\n"),
    (import_faults, "src/echoic/spelling.py", ""),
    (import_faults, "src/echoic/cli/pipeline.py", "import pyspark\n"),
    (import_faults, FRAMES, "import socket\n"),
    (import_faults, FRAMES, "import time\n"),
    (import_faults, "src/echoic/testing/clock.py", "import echoic.cli\n"),
    (long_files, FRAMES, "# more\n" * (FILE_LINES_MAX + 1)),
    (long_functions, FRAMES, "def send():\n" + "    pass\n" * FUNCTION_LINES_MAX),
    (long_functions, FRAMES, "class Frame:\n    async def send():\n" + "        pass\n" * FUNCTION_LINES_MAX),
    (crowded_inits, WIRE, '"""Pure."""\n\nMAGIC = 7\n'),
    (crowded_inits, WIRE, '"""Pure."""\n\ndef __getattr__(name):\n    return name\n'),
    (crowded_inits, INIT, '"""A sample."""\n\ndef send():\n    pass\n'),
    (crowded_inits, INIT, '"""A sample."""\n\nif TYPE_CHECKING:\n    print()\n'),
    (undeclared_packages, WIRE, '"""Bytes."""\n'),
    (undeclared_packages, WIRE, ""),
    (vague_names, "src/echoic/wire/utils.py", ""),
    (vague_names, "src/echoic/wire/_common/frames.py", ""),
    (unsafe_imports, FRAMES, "import marshal\n"),
    (unsafe_imports, FRAMES, "def load():\n    from cloudpickle.compat import pickle\n"),
    (calls_of_eval, FRAMES, "def load(text):\n    return eval(text)\n"),
    (calls_of_exec, FRAMES, "def load(text):\n    exec(text, {})\n"),
    (calls_of_exec, "src/echoic/eager/parcel.py", "import builtins\nbuiltins.exec('1')\n"),
    (swallowed_errors, FRAMES, "try:\n    send()\nexcept Exception:\n    pass\n"),
    (swallowed_errors, FRAMES, "try:\n    send()\nexcept:\n    ...\n"),
    (error_tree_faults, FRAMES, "class FrameError(ValueError):\n    pass\n"),
    (error_tree_faults, "src/echoic/errors.py", '"""The tree."""\n\nclass EchoicError(Exception):\n    pass\n'),
    (error_tree_faults, "src/echoic/errors.py", '"""E"""\n' + "class E(Exception): pass\n" * (ERROR_CLASSES_MAX + 1)),
    (machine_paths, "README.md", "See `" + "/".join(["", "work", "main"]) + "`.\n"),
    (machine_paths, "run", "cd " + "/".join(["", "home", "ada", "echoic"]) + "\n"),
    (pin_faults, "requirements/base.txt", BUILD + "numpy==2.0.0\n"),
    (pin_faults, "requirements/base.txt", BUILD + "numpy>=2.0.0 --hash=sha256:00\n"),
    (pin_faults, "requirements/base.txt", BUILD + "numpy==2.0.1 --hash=sha256:00\n"),
    (pin_faults, "requirements/base.txt", NUMPY),
    (pin_faults, "requirements/build.txt", "hatchling==1.34.0 --hash=sha256:00\n"),
    (pin_faults, "requirements/spark.txt", BUILD + NUMPY + "pyspark==4.3.1 --hash=sha256:00\n"),
    (pin_faults, "requirements/spark.txt", BUILD + NUMPY + "pyspark==4.3.0\n"),
    (pin_faults, "requirements/dev.txt", BUILD + NUMPY),
    (pin_faults, "requirements/bench.txt", BUILD + NUMPY),
    (pin_faults, "requirements/bench.txt", CLEAN["requirements/bench.txt"] + "--index-url https://example.test\n"),
]


def plant(root: Path, *faults: tuple[str, str]) -> Path:
    """Write the clean sample to `root`, with some of its files replaced, and return `root`."""
    for name, text in (CLEAN | dict(faults)).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    return root


@pytest.mark.parametrize(
    ("check", "name", "text"), FAULTS, ids=[f"{check.__name__}-{number}" for number, (check, *_) in enumerate(FAULTS)]
)
def test_a_planted_fault_is_found(check: Check, name: str, text: str, tmp_path: Path) -> None:
    assert check(plant(tmp_path, (name, text)))


@pytest.mark.parametrize("check", list(dict.fromkeys(check for check, _, _ in FAULTS)))
def test_a_clean_sample_has_no_fault(check: Check, tmp_path: Path) -> None:
    assert not (faults := check(plant(tmp_path))), "\n".join(faults)


def test_the_top_level_package_may_re_export_on_first_use(tmp_path: Path) -> None:
    lazy = (
        '"""A sample."""\n\nfrom typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from echoic.wire import frames\n'
        '__version__ = "1"\n_HOME = {"frames": "echoic.wire"}\n\n\ndef __getattr__(name):\n    return name\n'
    )
    assert not crowded_inits(plant(tmp_path, (INIT, lazy)))


def test_import_cycles_are_found(tmp_path: Path) -> None:
    cycle = plant(
        tmp_path, (FRAMES, "import echoic.wire.batch\n"), ("src/echoic/wire/batch.py", "import echoic.wire.frames\n")
    )
    assert "No two parts import each other BROKEN" in "\n".join(import_faults(cycle))


def test_the_scripts_are_executable() -> None:
    assert all(shutil.which(str(ROOT / name)) for name in ("run", ".ci/run"))
