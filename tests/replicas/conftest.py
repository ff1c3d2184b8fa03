"""Databases for the tests of replicated logs: a file, and real servers that are started once and shared."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.replicas.servers import Server, ServerMissingError, mariadb_server, postgresql_server

KINDS = ("sqlite", "postgresql", "mariadb")
NAMES = count(1)

FindUrl = Callable[[str], str]


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    try:
        with postgresql_server() as server:
            yield server
    except ServerMissingError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def mariadb() -> Iterator[Server]:
    try:
        with mariadb_server() as server:
            yield server
    except ServerMissingError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def find_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> FindUrl:
    """Give the URL of a database of a kind; the server is started when it is first asked for."""

    def find(kind: str) -> str:
        if kind == "sqlite":
            return f"sqlite:{tmp_path_factory.mktemp('sqlite')}/logs.db"
        server: Server = request.getfixturevalue(kind)
        return server.url

    return find


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, find_url: FindUrl) -> str:
    """Let each kind of database stand the test."""
    return find_url(request.param)


@pytest.fixture
def name() -> str:
    """Name a log, or a table, that no other test has."""
    return f"log_{next(NAMES)}"


@pytest.fixture
def file_url(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path}/logs.db"
