"""What tests of the papers share: buses that are closed when a test ends, with a folder for their sockets."""

import shutil
import tempfile
from collections.abc import Iterator

import pytest

from tests.toolbus.conftest import identity, make_bus, printed

__all__ = ["identity", "make_bus", "printed", "runtime_folder"]


@pytest.fixture
def runtime_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give a test a folder of its own for Unix sockets, with a path that is short enough for one."""
    folder = tempfile.mkdtemp(prefix="echoic-test-")
    monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
    yield
    shutil.rmtree(folder)
