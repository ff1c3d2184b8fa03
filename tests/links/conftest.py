"""What every kind of link is tested with: the four kinds, connected, and certificates made for the session."""

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator

import pytest

from echoic.links import Connection, Identity, Listener, dial, listener
from tests.links.certificates import Authority

KINDS = ("tcp", "unix", "tls", "memory")
Connect = Callable[[str], tuple[Connection, Connection]]


@pytest.fixture(autouse=True)
def _runtime_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give each test a folder of its own for Unix sockets, with a path that is short enough for one."""
    folder = tempfile.mkdtemp(prefix="echoic-test-")
    monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
    yield
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def identity(authority: Authority) -> Identity:
    return authority.issue("hub")


@pytest.fixture
def connect(identity: Identity) -> Iterator[Connect]:
    """Connect two ends by a kind of link; everything is closed after the test."""
    opened: list[Listener | Connection] = []

    def connect_by(kind: str) -> tuple[Connection, Connection]:
        used = identity if kind == "tls" else None
        listening = Listener("127.0.0.1:0", used)
        opened.append(listening)
        if kind != "memory" and used is None:
            listener._listeners.remove(listening)  # noqa: SLF001 - as if another process listened
        if kind == "tcp" and listening._path is not None:  # noqa: SLF001 - as if it had no Unix socket
            listening._path.unlink()  # noqa: SLF001
        accepted: list[Connection] = []
        accepting = threading.Thread(target=lambda: accepted.append(accept_one(listening)))
        accepting.start()
        dialled = dial(listening.address, used)
        accepting.join()
        opened.extend([dialled, *accepted])
        return dialled, accepted[0]

    yield connect_by
    for each in opened:
        each.close()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def pair(kind: str, connect: Connect) -> tuple[Connection, Connection]:
    return connect(kind)


def accept_one(listening: Listener) -> Connection:
    """Accept the next connection, with its handshake."""
    for _ in range(50):
        connection = listening.accept(100)
        if connection is not None:
            connection.handshake(5)
            return connection
    raise TimeoutError("nobody connected")
