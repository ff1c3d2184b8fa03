"""The kept corpus: small inputs that reach much of a parser, found by the fuzzer, kept with the tests.

    tests/reliability/corpus/PARSER/NAME     NAME begins the SHA-1 of the bytes, as the fuzzer names them

They are there where echoic runs from its checkout, and nowhere else.
"""

from pathlib import Path
from typing import Final

__all__ = ["kept_corpus", "kept_inputs"]

FOLDER: Final = "tests/reliability/corpus"


def kept_corpus() -> Path | None:
    """Return the folder of the corpus, None where there is none."""
    folder = Path(__file__).parents[4] / FOLDER
    return folder if folder.is_dir() else None


def kept_inputs(name: str) -> list[Path]:
    """Return the kept inputs of a parser."""
    corpus = kept_corpus()
    return sorted((corpus / name).glob("*")) if corpus is not None else []
