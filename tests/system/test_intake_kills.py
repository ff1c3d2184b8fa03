"""SIGKILL of an intake and of the query that writes to it: what was committed is in the journal, each row once."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy
import pytest

from echoic.recorder import Disk, Journal, verify
from tests.system.intake_worker import PARTITIONS, rows_of
from tests.system.processes import Process, Start, processes

pytestmark = pytest.mark.system

WORKER = Path(__file__).with_name("intake_worker.py")
KILLS = 8
SEED = 2


@pytest.fixture
def start() -> Iterator[Start]:
    with processes(WORKER) as start:
        yield start


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def expected(epochs: int, partition: int) -> list[int]:
    """Return the rows that a partition of the journal must have, in its order."""
    parts = [rows_of(epoch, of)["number"] for epoch in range(epochs) for of in range(PARTITIONS) if of % 2 == partition]
    return numpy.concatenate(parts).tolist()


def numbers(path: Path, partition: int) -> list[int]:
    found = [one.batch.array["number"] for one in Journal(path, "ticks").read() if one.partition == partition]
    return numpy.concatenate(found).tolist()


def test_every_row_is_there_once_and_in_order_after_kills_of_the_intake_and_of_the_writer(
    start: Start, tmp_path: Path
) -> None:
    random, journals = Random(SEED), tmp_path / "journals"
    address = free_address()
    writing = {
        "channel": f"echoic://{address}/ticks",
        "noted": str(tmp_path / "noted"),
        "stop": str(tmp_path / "stop"),
    }

    def keep() -> Process:
        return start("keep", listen=address, path=str(journals))

    def write(number: int) -> Process:
        return start("write", seed=number, **writing)

    intake, writer = keep(), write(0)
    assert intake.started["address"] == address
    for number in range(KILLS):
        assert writer.started["epoch"] >= 0
        time.sleep(random.uniform(0.05, 0.5))
        if random.random() < 0.3:
            writer.kill()
            writer = write(number + 1)
        else:
            intake.kill()
            intake = keep()
            if random.random() < 0.8:  # else it is killed again while it recovers
                assert intake.started["address"] == address
    (tmp_path / "stop").touch()
    epochs = writer.ask("tell")["epochs"]
    assert epochs > 0
    intake.end()
    for partition in range(2):
        assert numbers(journals, partition) == expected(epochs, partition)
    assert verify(Disk(journals), "ticks") == []
    assert [path.name for path in (journals / "ticks" / "intake").iterdir()] == ["log"]
