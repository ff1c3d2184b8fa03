"""What tests of the bus share: a folder for sockets, certificates, and a bus that never hangs."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from echoic.links import Identity
from echoic.toolbus import Bus
from echoic.trust.authority import Authority as HomeAuthority
from tests.links.certificates import Authority

MakeBus = Callable[..., Bus]


@pytest.fixture(autouse=True)
def _runtime_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give each test a folder of its own for Unix sockets, with a path that is short enough for one."""
    folder = tempfile.mkdtemp(prefix="echoic-test-")
    monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
    yield
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Identity:
    return Authority(tmp_path_factory.mktemp("authority")).issue("bus")


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HomeAuthority:
    """An authority whose folder is found without being named."""
    monkeypatch.setenv("ECHOIC_HOME", str(tmp_path / "home"))
    return HomeAuthority.create()


@pytest.fixture
def bus_identity(authority: HomeAuthority) -> Identity:
    authority.issue("bus", ["127.0.0.1"])
    return Identity.named("bus")


@pytest.fixture
def printed() -> list[str]:
    return []


@pytest.fixture
def make_bus(printed: list[str]) -> Iterator[MakeBus]:
    """Make buses whose output is kept, and that are closed after the test."""
    made: list[Bus] = []

    def make(source: str | Path, **options: object) -> Bus:
        settings: dict[str, object] = {"seed": 1, "output": printed.append, **options}
        bus = Bus.from_script(source, **settings)  # type: ignore[arg-type]
        made.append(bus)
        return bus

    yield make
    for bus in made:
        bus.close()
