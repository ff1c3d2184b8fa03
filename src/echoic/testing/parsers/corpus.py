"""The kept corpus: small inputs that reach much of a parser, found by the fuzzer, kept with the tests.

    tests/reliability/corpus/PARSER/NAME     NAME begins the SHA-1 of the bytes, as the fuzzer names them

They are there where echoic runs from its checkout, and nowhere else. Of what the fuzzer leaves, thousands of inputs,
few are needed: the shortest that together reach all that any of them reaches.
"""

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any, Final

from echoic.errors import EchoicError
from echoic.testing.parsers.parser import Target

__all__ = ["choose", "keep", "kept_corpus", "kept_inputs"]

FOLDER: Final = "tests/reliability/corpus"
NAME_LETTERS: Final = 12
KEPT_BYTES_MAX: Final = 30_000  # of one parser
WATCHED: Final = "/echoic/"


def kept_corpus() -> Path | None:
    """Return the folder of the corpus, None where there is none."""
    folder = Path(__file__).parents[4] / FOLDER
    return folder if folder.is_dir() else None


def kept_inputs(name: str) -> list[Path]:
    """Return the kept inputs of a parser."""
    corpus = kept_corpus()
    return sorted((corpus / name).glob("*")) if corpus is not None else []


def choose(target: Target, inputs: Iterable[bytes], bytes_max: int = KEPT_BYTES_MAX) -> list[bytes]:
    """Return the shortest inputs that reach something which no shorter one reaches, as many as there is room for."""
    reached: set[tuple[object, int, int]] = set()
    chosen, size = [], 0
    for data in sorted(set(inputs), key=lambda one: (len(one), one)):
        found = _reached_by(target, data)
        if found - reached and size + len(data) <= bytes_max:
            reached |= found
            size += len(data)
            chosen.append(data)
    return chosen


def _reached_by(target: Target, data: bytes) -> set[tuple[object, int, int]]:
    """Return the steps from line to line that an input makes in echoic."""
    steps: set[tuple[object, int, int]] = set()

    def watch(frame: FrameType, happened: str, _: Any) -> Any:  # noqa: ANN401 - as Python calls it
        code = frame.f_code
        if happened != "call" or WATCHED not in code.co_filename:
            return None
        last = frame.f_lineno

        def step(inner: FrameType, event: str, _: Any) -> Any:  # noqa: ANN401 - as above
            nonlocal last
            if event == "line":
                steps.add((code, last, inner.f_lineno))
                last = inner.f_lineno
            return step

        return step

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        target.feed(data)
    except EchoicError:
        pass
    finally:
        sys.settrace(before)
    return steps


def keep(folder: Path, inputs: Iterable[bytes]) -> None:
    """Make a folder hold these inputs, and no others."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for data in inputs:
        (folder / hashlib.sha1(data, usedforsecurity=False).hexdigest()[:NAME_LETTERS]).write_bytes(data)
