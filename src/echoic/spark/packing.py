"""One file that brings echoic to machines that do not have it: for `spark-submit --py-files`, and for Spark Connect.

    echoic.zip
        echoic/__init__.py  echoic/__init__.pyc  ...    this package as it is installed here
        pyspark_echoic/...                              by which Spark finds format("echoic")

Spark sends the file to every executor and puts it on the path of its Python workers, where Python imports from the zip
as it lies. What cannot travel so are the packages with native code that echoic needs (NumPy, pyarrow, llvmlite,
msgspec, ...): those must be installed on the nodes, or sent as a whole environment (`--archives`).

Beside each source lies its byte code, because Python keeps none for what it finds in a zip: every worker process would
compile some two hundred modules before its first event. It is not compressed: `import echoic` takes 0.4 s so, 0.7 s
from compressed byte code and 1.1 s from sources alone. Byte code belongs to one version of Python; any other ignores it
and compiles the sources, so one file suits all machines. It is marked as not to be compared with the source, since a
zip knows times only to two seconds.
"""

import atexit
import hashlib
import importlib.resources
import os
import py_compile
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from echoic.errors import PipelineError
from echoic.spark.explaining import reason_of
from echoic.spark.registering import register

__all__ = ["pack", "ship"]

PACKAGES: Final = ("echoic", "pyspark_echoic")


def pack(path: str | os.PathLike[str]) -> Path:
    """Write the package into the zip file `path`, replacing what is there, and return its path.

    Raises:
        PipelineError: The name does not end in `.zip`, by which Spark knows what it is, or the file cannot be written.
    """
    place = Path(path)
    if place.suffix != ".zip":
        raise PipelineError(f"expected a file name that ends in .zip, got {str(place)!r}")
    try:
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}.") as folder:
            whole = Path(folder) / place.name
            _write(whole, Path(folder))
            whole.replace(place)
    except OSError as error:
        raise PipelineError(f"cannot write {place}: {error.strerror or error}") from None
    return place


def ship(spark: SparkSession) -> None:
    """Send the package to the executors of a session, and to the server of one that is remote, and register its source.

    It is sent for this session only, so programs with different versions can share a server; what echoic needs must be
    there already. This serves batches: Spark runs the Python of a streaming source without the files of a session, so
    for streams the server must have the package, and its executors as well.

    Raises:
        PipelineError: The file cannot be written here, or not be sent.
    """
    folder = Path(tempfile.mkdtemp(prefix="echoic-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # executors that are started later fetch it from here
    packed = pack(folder / "echoic.zip")
    # A session takes no second file of the same name, unless it is the same.
    named = packed.rename(folder / f"echoic-{hashlib.sha256(packed.read_bytes()).hexdigest()[:16]}.zip")
    try:
        spark.addArtifacts(str(named), pyfile=True)
    except PySparkException as error:
        raise PipelineError(f"cannot send the package to Spark: {reason_of(error)}") from error
    register(spark)


def _write(whole: Path, folder: Path) -> None:
    with zipfile.ZipFile(whole, "w") as archive:
        for name, content in _modules():
            archive.writestr(_entry(name), content, zipfile.ZIP_DEFLATED)
            if name.endswith(".py"):
                archive.writestr(_entry(f"{name}c"), _byte_code(name, content, folder), zipfile.ZIP_STORED)


def _modules() -> Iterator[tuple[str, bytes]]:
    """Give the files of the packages, also if they are imported from a zip themselves."""
    for package in PACKAGES:
        yield from _files(importlib.resources.files(package), package)


def _files(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        inside = f"{name}/{entry.name}"
        if entry.name == "__pycache__" or entry.name.endswith(".pyc"):
            continue  # made anew, in a form that suits a zip
        if entry.is_dir():
            yield from _files(entry, inside)
        else:
            yield inside, entry.read_bytes()


def _byte_code(name: str, source: bytes, folder: Path) -> bytes:
    text, code = folder / "module.py", folder / "module.pyc"
    text.write_bytes(source)
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(text), str(code), name, doraise=True, invalidation_mode=unchecked)
    return code.read_bytes()


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.external_attr = 0o644 << 16
    return entry
