"""Trial 8: what a coverage-guided fuzzer finds, and the corpus that it has left."""

import importlib.util
from pathlib import Path
from random import Random

import msgspec
import pytest

from echoic.errors import EchoicError, LocalError
from echoic.testing.parsers import PARSERS, Parser, kept_corpus, kept_inputs, parser_named
from echoic.testing.parsers.repairs import BOMBS
from echoic.testing.trials import coverage
from tests.cli.terminals import type_here
from tests.reliability.trying import try_out

HERE = Path(__file__).parent
CORPUS_BYTES_MAX = 1_000_000
WITH_ATHERIS = pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None, reason="atheris has wheels for Linux on x86_64 only"
)


@WITH_ATHERIS
@pytest.mark.slow
def test_no_parser_gives_anything_but_its_declared_errors(request: pytest.FixtureRequest) -> None:
    figures = try_out(request, "coverage").figures
    assert figures["parsers"] == len(PARSERS)
    assert figures["inputs"] > 1000 * len(PARSERS)
    assert "not_there" not in figures


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_the_kept_inputs_and_the_bombs_are_read_or_refused_as_declared(parser: Parser) -> None:
    target = parser.load()
    for data in [*target.seeds(), *BOMBS, *(path.read_bytes() for path in kept_inputs(parser.name))]:
        try:
            target.feed(data)
        except EchoicError:
            continue


def test_the_corpus_is_small_and_belongs_to_parsers_that_there_are() -> None:
    corpus = kept_corpus()
    assert corpus == HERE / "corpus"
    assert {folder.name for folder in corpus.iterdir()} == {parser.name for parser in PARSERS}
    assert sum(path.stat().st_size for path in corpus.rglob("*")) < CORPUS_BYTES_MAX


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_of_the_seeds_of_every_parser_some_are_right(parser: Parser) -> None:
    target, right = parser.load(), 0
    for seed in target.seeds():
        try:
            target.feed(seed)
            right += 1
        except EchoicError:
            continue
    assert right


PLANTED = """
from echoic.testing.parsers.parser import Target

def feed(data):
    if data[:2] == b"ec" and len(data) > 4 and data[2] >= 200:
        data[data[2] * 9]

TARGET = Target(feed, lambda: [b"ec\\x05hello"])
"""
PLANT = """    from echoic.testing.parsers import host, parser
    host.parser_named = lambda name: parser.Parser(name, "planted_parser:TARGET")
"""


@WITH_ATHERIS
def test_a_parser_that_believes_what_is_written_is_found_with_the_input_that_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = tmp_path / "planted"
    planted.mkdir()
    (planted / "planted_parser.py").write_text(PLANTED)
    row = Parser("frames", "planted_parser:TARGET")
    monkeypatch.setenv("PYTHONPATH", str(planted))
    start = coverage.START.replace('sys.argv[1].split(",")', '["planted_parser"]')  # to watch all of echoic takes long
    monkeypatch.setattr(coverage, "START", start.replace("    serve(", PLANT + "    serve("))
    findings = coverage.fuzz_parsers([row], 20, 1, tmp_path, lambda done: None)
    [problem] = findings.problems
    assert "IndexError" in problem
    assert "crash-exception: 6563" in problem
    assert (tmp_path / "frames" / "crash-exception").read_bytes().startswith(b"ec")


def test_where_there_is_no_atheris_the_trial_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(LocalError, match=r"trial coverage needs atheris.* pip install 'atheris"):
        coverage.run(1, 1, lambda done: None)
    code, _, said = type_here("fuzz", "parsers", "terms")
    assert code == 1
    assert "`echoic fuzz parsers` needs atheris" in said
    assert "`./run test --version` in a checkout" in said


def test_a_parser_is_found_by_its_name() -> None:
    assert parser_named("tokens").name == "tokens"
    with pytest.raises(LocalError, match="expected one of: frames, hello"):
        parser_named("nothing")


def test_a_parcel_that_was_mutated_into_something_else_is_left_to_the_parser() -> None:
    target = parser_named("parcels").load()
    assert target.repair is not None
    other = msgspec.msgpack.encode([{1: 2}, "key", b"signature"])
    assert target.repair(other, Random(1)) == other
    deep = b"\x91" * 5000 + b"\xc0"
    assert target.repair(deep, Random(1)) == deep
