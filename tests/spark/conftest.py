"""One Spark session for all tests of a process, and journals to read with it.

A session takes seconds and half a gigabyte, so it starts when the first test asks for it, and all tests that do run in
one process (tests/conftest.py).
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from echoic.recorder import Disk
from echoic.spark import worker_hub
from echoic.spark.session import session
from tests.recorder.recordings import Scribe


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("spark")
    started = session(
        "echoic tests",
        "local[2]",
        {
            "spark.driver.memory": "1g",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.local.dir": str(folder / "local"),
        },
    )
    yield started
    started.stop()


@pytest.fixture
def scribe(tmp_path: Path) -> Scribe:
    """The writer of a journal of channel `trades` in the folder `journals`."""
    return Scribe(Disk(tmp_path / "journals"))


@pytest.fixture(scope="module", autouse=True)
def no_hub_stays() -> Iterator[None]:
    """Close the hubs that a worker process would keep: this one goes on with tests that count threads."""
    yield
    for hub in list(worker_hub._hubs.values()):  # noqa: SLF001 - workers never close them, so there is no function
        hub.close()
