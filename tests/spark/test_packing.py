"""One file for machines that do not have echoic."""

import subprocess
import zipfile
from pathlib import Path

import pytest

from echoic.errors import PipelineError
from echoic.spark.packing import pack
from tests.spark.standalone import interpreter_without_echoic


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pack(tmp_path_factory.mktemp("packed") / "echoic.zip")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return interpreter_without_echoic(tmp_path_factory.mktemp("elsewhere"))


def said(python: Path, path: Path, program: str) -> str:
    command = [python, "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(path)})
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def sources(path: Path) -> dict[str, bytes | None]:
    with zipfile.ZipFile(path) as whole:
        return {name: None if name.endswith(".pyc") else whole.read(name) for name in whole.namelist()}


def test_a_python_without_echoic_imports_it_from_the_zip_without_compiling(packed: Path, python: Path) -> None:
    program = "import echoic, pyspark_echoic; print(echoic.__cached__ or echoic.__file__, echoic.Hub.__name__)"
    assert said(python, packed, program) == f"{packed}/echoic/__init__.pyc Hub"


def test_code_is_compiled_and_run_from_the_zip(packed: Path, python: Path) -> None:
    program = """
import echoic
@echoic.event
class Trade:
    price: float
with echoic.Hub() as hub:
    trades = hub.create("trades", Trade)
    cheap = trades.derive("input.price < 75.0")
    print(cheap.name is not None)
"""
    assert said(python, packed, program) == "True"


def test_a_python_of_another_version_takes_the_sources(packed: Path, python: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.zip"
    with zipfile.ZipFile(packed) as whole, zipfile.ZipFile(foreign, "w") as written:
        for name in whole.namelist():
            content = whole.read(name)
            written.writestr(name, b"\0\0\r\n" + content[4:] if name.endswith(".pyc") else content)
    assert said(python, foreign, "import echoic; print(echoic.__file__)") == f"{foreign}/echoic/__init__.py"


def test_what_was_packed_can_be_packed_again_where_it_was_sent(packed: Path, python: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.zip"
    said(python, packed, f"from echoic.spark.packing import pack; pack({str(again)!r})")
    assert sources(again) == sources(packed)


def test_a_traceback_shows_the_lines_and_no_path_of_the_machine_that_packed(packed: Path, python: Path) -> None:
    program = """
import echoic, traceback
try:
    echoic.Journal("nowhere")
except echoic.EchoicError:
    print(traceback.format_exc())
"""
    shown = said(python, packed, program)
    assert 'File "echoic/recorder/journal.py"' in shown
    assert "raise JournalError(" in shown
    assert str(Path(__file__).parents[2]) not in shown


def test_a_name_that_spark_would_not_know_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"expected a file name that ends in \.zip, got '.*echoic\.tar'"):
        pack(tmp_path / "echoic.tar")


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"cannot write .*echoic\.zip: No such file or directory"):
        pack(tmp_path / "nowhere" / "echoic.zip")
    assert not list(tmp_path.iterdir())
