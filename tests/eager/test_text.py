"""The text that travels: what it contains, that it runs elsewhere, and what is refused."""

import ast
import itertools
import math
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

import echoic
from echoic.eager import Modulator, load
from echoic.eager.modulator import declared_state
from echoic.eager.parcel import Parcel, SharedReference
from echoic.eager.shared_object import SharedObject
from echoic.eager.text import TEXT_BYTES_MAX, source_text
from echoic.errors import LocalError
from tests.eager.programs import program

LIMITS = {"low": -1.5, "high": (2, 3.5), "names": ["a", None, True, b"b"], "far": math.inf}
CHOSEN = frozenset({"b", "a", "c"})
HUGE = "x" * (TEXT_BYTES_MAX + 1)
HANDLE = object()
time = 7  # an attribute of the same name is no use of it

signers = itertools.count()


def doubled(function: Any) -> Any:
    @wraps(function)
    def wrapper(self: Any, event: Any) -> None:
        function(self, event)
        function(self, event)

    return wrapper


def shifted(value: float) -> float:
    return value + LIMITS["low"] + square(2)


def square(value: float) -> float:
    return value * value if value < 10 else shifted(value)


@echoic.event
class Point:
    x: float
    y: float = 0.0


class Box(SharedObject):
    start: int = 0


class Base(Modulator):
    scale: float

    def scaled(self, value: float) -> float:
        return value * self.scale


class Rich(Base):
    """Uses about everything."""

    origin: Point
    box: "Box"
    sizes: echoic.Array[echoic.float32, 2] = (1, 2)

    @doubled
    def enqueue(self, event: "Unknown") -> None:
        def inner(value: float) -> str:
            return f"{value:.1f} of {[each * math.pi for each in (1, 2)]} {sorted(CHOSEN)}"

        self.time = inner(shifted(event))
        super().enqueue(self.time)

    @staticmethod
    def helped(value: float) -> float:
        return square(value)

    @property
    def limits(self) -> object:
        return {key: value for key, value in LIMITS.items() if key != "high"}


def loaded(cls: type) -> type[Any]:
    shared = tuple(SharedReference(name, "id", each.__name__, b"", b"", 0) for name, each in shared_of(cls).items())
    signer = f"ed25519:{next(signers)}"  # whose texts are run once each
    return load(Parcel("c", cls.__name__, source_text(cls), shared=shared), signer).cls


def shared_of(cls: type[Any]) -> Mapping[str, type[SharedObject]]:
    return declared_state(cls).shared


def test_a_class_travels_with_all_that_it_names() -> None:
    text = source_text(Rich)
    tree = ast.parse(text)
    defined = [each.name for each in tree.body if isinstance(each, ast.ClassDef | ast.FunctionDef)]
    assert sorted(defined) == ["Base", "Box", "Point", "Rich", "doubled", "shifted", "square"]
    assert text.startswith("from __future__ import annotations\nfrom echoic.eager import Modulator\n")
    assert "import echoic\n" in text
    assert "import math\n" in text
    assert "from functools import wraps\n" in text
    assert "CHOSEN = frozenset(['a', 'b', 'c'])\n" in text
    assert "time = 7" not in text
    assert "HANDLE" not in text


def test_the_text_runs_elsewhere_as_the_class_runs_here() -> None:
    cls, box = loaded(Rich), Box(1)
    assert cls is not Rich
    box_there = declared_state(cls).shared["box"](1)
    there, here = cls(2, Point(1.0, 2.0), box_there), Rich(2, Point(1.0, 2.0), box)
    for modulator in (there, here):
        modulator.enqueue(3.0)
    assert [there.dequeue(), there.dequeue(), there.dequeue()] == [here.dequeue(), here.dequeue(), None]
    assert there.limits == here.limits
    assert there.helped(11) == here.helped(11)
    assert there.scaled(2) == 4.0


def test_a_class_of_echoic_is_imported() -> None:
    assert source_text(Modulator) == "from echoic.eager.modulator import Modulator\n"


def test_a_class_inside_a_function_may_travel() -> None:
    class Inner(Modulator):
        """A text that
        does not keep to the margin."""

        def enqueue(self, event: Any) -> None:
            super().enqueue(square(event) + len(Inner.__name__))

    class Tidy(Modulator):
        """Keeps to the margin."""

        def enqueue(self, event: Any) -> None:
            super().enqueue(event)

    modulator = loaded(Inner)()
    modulator.enqueue(2)
    assert modulator.dequeue() == 9
    assert loaded(Inner).__doc__ == Inner.__doc__
    assert "\nclass Tidy(Modulator):\n" in source_text(Tidy)


def test_of_two_classes_of_one_name_the_right_one_travels() -> None:
    def first() -> type:
        class Twin(Modulator):
            def period(self) -> None:
                raise LocalError("first")

        return Twin

    def second() -> type:
        class Twin(Modulator):
            def period(self) -> None:
                raise LocalError("second")

        return Twin

    assert "first" in source_text(first())
    assert "second" in source_text(second())


def test_local_variables_are_refused() -> None:
    limit, parent = 3, Base

    class Closed(Modulator):
        def enqueue(self, event: Any) -> None:
            if event < limit:
                super().enqueue(event)

    class Derived(parent):  # type: ignore[misc, valid-type]
        pass

    with pytest.raises(LocalError, match="`limit` is a local variable of the function around `Closed`"):
        source_text(Closed)
    with pytest.raises(LocalError, match="`parent` is a local variable of the function around `Derived`"):
        source_text(Derived)


class Handled(Modulator):
    def period(self) -> None:
        print(HANDLE)


class Large(Modulator):
    def period(self) -> None:
        print(HUGE)


class Missing(Modulator):
    def period(self) -> None:
        print(nowhere)


class Hidden(Modulator):
    def period(self) -> None:
        print(__file__)


@pytest.mark.parametrize(
    ("cls", "said"),
    [
        (Handled, r"`HANDLE` of module `.*test_text`, used by `Handled` is a object and cannot travel"),
        (Large, r"has \d+ bytes, limit is 65536"),
        (Missing, r"`Missing` names `nowhere`, which is not defined in module"),
        (type("Made", (Modulator,), {}), r"`Made` is not written in .*; define it with `class` or `def` there"),
    ],
)
def test_what_cannot_travel_is_refused_with_its_name(cls: type, said: str) -> None:
    with pytest.raises(LocalError, match=said):
        source_text(cls)


HEAD = "from echoic.eager import Modulator\n"
PARTS = {
    "shapes": "LIMIT = 3\n\ndef area(side):\n    return side * side + LIMIT\n",
    "folder/__init__": "from folder.inner import deep\n",
    "folder/inner": "from .other import BASE as base\nfrom shapes import area as surface\n\n"
    "def deep(value):\n    return surface(value) + base\n",
    "folder/other": "BASE = 100\n",
}


def test_the_files_of_a_program_become_one_text(tmp_path: Path) -> None:
    main = HEAD + (
        "from folder import deep as under\nfrom shapes import LIMIT\n\n\nclass Window(Modulator):\n"
        "    def enqueue(self, event):\n        super().enqueue(under(event) + LIMIT)\n"
    )
    with program(tmp_path, {"main_part": main, **PARTS}) as module:
        cls = loaded(module.Window)
        text = source_text(module.Window)
    modulator = cls()
    modulator.enqueue(2)
    assert modulator.dequeue() == 2 * 2 + 3 + 100 + 3
    assert "shapes" not in text
    assert "under = deep\n" in text


@pytest.mark.parametrize(
    ("body", "used", "said"),
    [
        ("import shapes\n", "shapes.area(1)", "`shapes` is a part of this program .* `from shapes import"),
        ("from folder import inner\n", "inner.deep(1)", "`folder.inner` is a part of this program"),
        ("from shapes import area\nLIMIT = 4\n", "area(LIMIT)", "`LIMIT` of module `shapes` is another thing"),
        ("f = lambda x: x\n", "f(1)", "`f` .* define it with `class` or `def`|`<lambda>` is not written"),
        ("def f(): ...\nf = print\n", "f()", "`f` is bound in several ways in module `main_part`"),
        ("import threading\nlock = threading.Lock()\n", "lock", "`lock` of .*, used by `Window` is a lock"),
        ("import numpy\ntable = numpy.zeros(3)\n", "table", "`table` of .* is a ndarray and cannot travel"),
        ("import enum\nclass E(enum.IntEnum):\n    A = 1\none = E.A\n", "one", "`one` .* is a E and cannot"),
        ("a = []\na.append(a)\n", "a", "nested more than 64 deep"),
    ],
)
def test_parts_of_a_program_that_cannot_travel_are_refused(tmp_path: Path, body: str, used: str, said: str) -> None:
    main = f"{HEAD}{body}\n\nclass Window(Modulator):\n    def period(self):\n        print({used})\n"
    with program(tmp_path, {"main_part": main, **PARTS}) as module, pytest.raises(LocalError, match=said):
        source_text(module.Window)


@pytest.mark.parametrize(
    ("body", "used", "result"),
    [
        ("from math import pi, floor as down\n", "down(pi)", 3),
        ("import os.path\n", "os.path.basename('a/b')", "b"),
        ("import os.path as p\n", "p.basename('a/b')", "b"),
        ("try:\n    import json as j\nexcept ImportError:\n    import pickle as j\n", "j.loads('3')", 3),
        ("def first(): return second()\ndef second(): return 4\n", "first()", 4),
        ("def make(n=8):\n    return [n + k for k in range(2)]\n", "make()", [8, 9]),
        ("if True:\n    def f(): return 1\nelse:\n    def f(): return 2\n", "f()", 1),
        ("import functools\n@functools.lru_cache\ndef f(n): return n + 1\n", "f(1)", 2),
        ("import enum\nclass Kind(enum.IntEnum):\n    A = 5\n", "int(Kind.A)", 5),
        ("A = 3\nclass Table:\n    rows = [A for _ in range(2)]\n    key = max([1, 2], key=lambda n: n * A)\n",
         "Table.rows + [Table.key]", [3, 3, 2]),
        ("from dataclasses import dataclass\n@dataclass\nclass D:\n    n: int = 6\n", "D().n", 6),
        ("count = 0\ndef bump():\n    global count\n    count += 1\n    return count\n", "bump() + bump()", 3),
        ("def outer():\n    x = 2\n    def inner():\n        return x\n    return inner\n", "outer()()", 2),
        ("pair = (1,)\nnothing = ()\nunique = {2}\n", "[pair, nothing, unique]", [(1,), (), {2}]),
        ("from typing import NamedTuple\nclass P(NamedTuple):\n    n: int\n", "P(3).n", 3),
        ("def at(n): return [n, __name__ != 'main_part']\n", "at(1)", [1, True]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"])
def test_ordinary_python_travels(tmp_path: Path, future: str, body: str, used: str, result: object) -> None:
    main = f"{future}{HEAD}{body}\n\nclass Window(Modulator):\n    def dequeue(self):\n        return {used}\n"
    with program(tmp_path, {"main_part": main}) as module:
        cls = loaded(module.Window)
    assert "main_part" not in sys.modules
    assert cls().dequeue() == result


def test_constants_travel_as_they_were_when_the_class_first_did(tmp_path: Path) -> None:
    main = f"{HEAD}LIMIT = 1\n\nclass Window(Modulator):\n    def dequeue(self):\n        return LIMIT\n"
    with program(tmp_path, {"main_part": main}) as module:
        module.LIMIT = 2
        text = source_text(module.Window)
        module.LIMIT = 3
        assert source_text(module.Window) == text
    assert "LIMIT = 2\n" in text


SCRIPT = (
    HEAD
    + """
import sys
from echoic.eager.text import source_text

STEPS = {3, 1, 2}

class Script(Modulator):
    step: int = 1
    def enqueue(self, event):
        if event in STEPS:
            super().enqueue(event)

sys.stdout.write(source_text(Script))
"""
)


@pytest.mark.parametrize("seed", ["0", "1"])
def test_a_class_of_a_script_gives_the_same_text_in_every_process(tmp_path: Path, seed: str) -> None:
    script = tmp_path / f"script_{seed}.py"
    script.write_text(SCRIPT, "utf-8")
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, env=environment)
    head, script_class = done.stdout.split("class Script", 1)
    assert head == "from __future__ import annotations\nfrom echoic.eager import Modulator\n\n\n"
    assert script_class.endswith("STEPS = set([1, 2, 3])\n")


def test_a_class_without_a_file_is_refused() -> None:
    typed = HEAD + "from echoic.eager.text import source_text\nclass Typed(Modulator): pass\nsource_text(Typed)"
    done = subprocess.run([sys.executable, "-c", typed], capture_output=True, text=True, check=False)
    assert "LocalError: the source of `Typed` cannot be found" in done.stderr
