"""The program of the page "Run on a cluster", on a master and two workers whose Python does not have echoic.

One cluster serves all of it: it takes longer to start than the pipeline takes to run.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow
import pytest

import echoic
from echoic.recorder import Journal
from echoic.spark import pack, settings
from echoic.spark.tables import table_dataset
from tests.spark.connect_client import PROGRAM
from tests.spark.standalone import PATIENCE_SECONDS, Cluster, interpreter_without_echoic, standalone
from tests.system.processes import wait_until

pytestmark = [pytest.mark.system, pytest.mark.slow]

SOURCES = 8
TRADES = 2000  # of each source
DAY = 86_400.0
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"


@echoic.event
class Trade:
    at: float
    symbol: str
    price: float
    volume: int


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return interpreter_without_echoic(tmp_path_factory.mktemp("python"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, python: Path) -> Iterator[Cluster]:
    with standalone(tmp_path_factory.mktemp("cluster"), python) as started:
        yield started


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pack(tmp_path_factory.mktemp("packed") / "echoic.zip")


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trades of ten minutes, each with a volume of its own; then one a day later, so that their windows are over.

    That one is in the longer partition, whose end is read last: whatever comes after it would come too late.
    """
    folder = tmp_path_factory.mktemp("journals")
    with echoic.Hub() as hub:
        trades = hub.create("trades", Trade)
        recording = hub.record(trades, folder, partitions=2)
        sources = [trades.source() for _ in range(SOURCES)]
        partitions = []
        for number, source in enumerate(sources):
            before = recording.heads
            source.submit_batch(trades_of(number))
            source.drain()
            partitions.append([after > head for after, head in zip(recording.heads, before, strict=True)].index(True))
        last = sources[partitions.index(recording.heads.index(max(recording.heads)))]
        last.submit(Trade(DAY, "END", 100.0, 0))
        last.drain()
    return folder


def trades_of(source: int) -> list[Trade]:
    numbers = range(source * TRADES, (source + 1) * TRADES)
    return [Trade(number % 600, f"S{number % 7}", 70 + number % 10, number) for number in numbers]


class Office:
    """A hub with channels that take rows, and what they got."""

    def __init__(self, hub: echoic.Hub, folder: Path) -> None:
        self._hub, self._folder = hub, folder

    def open(self, name: str) -> str:
        return self._hub.intake(name, self._folder).channel.id

    def got(self, name: str) -> Counter[tuple[object, ...]]:
        return rows(Journal(self._folder, name).arrow().read_all())


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    with echoic.Hub() as hub:
        yield Office(hub, tmp_path / "office")


def rows(table: pyarrow.Table, *columns: str) -> Counter[tuple[object, ...]]:
    chosen = table.select(columns or ("symbol", "price", "volume"))
    return Counter(zip(*(column.to_pylist() for column in chosen.columns), strict=True))


def recorded(journals: Path, where: str) -> Counter[tuple[object, ...]]:
    return rows(Journal(journals, "trades").arrow(where=where).read_all())


def check_results(journals: Path, results: Path) -> None:
    """The tables are what follows from the journal, each event once."""
    cheap = table_dataset(str(results / "tables" / "cheap")).to_table()
    assert rows(cheap) == recorded(journals, "input.price < 72.0")
    volumes: Counter[tuple[object, ...]] = Counter()
    for at, symbol, volume in rows(Journal(journals, "trades").arrow().read_all(), "at", "symbol", "volume"):
        if symbol != "END":
            volumes[at // 60, symbol] += volume
    minutes = table_dataset(str(results / "tables" / "minutes")).to_table()
    found = [(row["start"].timestamp() // 60, row["symbol"], row["volume"]) for row in minutes.to_pylist()]
    assert sorted(found) == sorted((minute, symbol, volume) for (minute, symbol), volume in volumes.items())


def conf(settings: Mapping[str, str]) -> list[str]:
    return [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]


def of_the_driver(python: Path, packed: Path) -> dict[str, str]:
    """The driver's half of a stream runs in Python processes that know these variables, and not what was shipped."""
    return {"PYTHONPATH": str(packed), "PYSPARK_PYTHON": str(python)}


def test_a_program_far_from_the_cluster_reads_derives_and_writes_through_spark_connect(
    cluster: Cluster, journals: Path, office: Office, packed: Path, python: Path, tmp_path: Path
) -> None:
    options = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.executorEnv.PYTHONPATH": packed.name,  # in the folder of each executor, where --files puts it
    }
    serving = ["--master", cluster.address, *conf({**settings(cluster.address), **options}), "--files", str(packed)]
    serving += ["--class", CONNECT, "spark-internal"]
    variables = {**of_the_driver(python, packed), "SPARK_DAEMON_MEMORY": "512m"}
    server = cluster.start("connect", "spark-submit", *serving, **variables)
    try:
        port = server.said(r"Spark Connect server started at: .*:(\d+)")
        channels = [office.open("offers"), office.open("dear")]
        client = cluster.client(
            "client",
            Path(__file__).with_name("connect_client.py"),
            f"sc://127.0.0.1:{port}",
            journals,
            tmp_path,
            *channels,
        )
        assert client.result() == 0, client.end_of_log
        assert f"read {SOURCES * TRADES + 1} rows" in client.text
    finally:
        server.kill()
    check_results(journals, tmp_path)
    assert office.got("offers") == recorded(journals, "input.price < 72.0")
    assert office.got("dear") == recorded(journals, "input.price >= 78.0")


def test_a_submitted_pipeline_loses_and_doubles_nothing_when_a_worker_dies(
    cluster: Cluster, journals: Path, office: Office, packed: Path, python: Path, tmp_path: Path
) -> None:
    arguments = ["--master", cluster.address, *conf(settings(cluster.address)), "--py-files", str(packed), str(PROGRAM)]
    arguments += [str(journals), str(tmp_path), office.open("offers")]
    submitted = cluster.start("submitted", "spark-submit", *arguments, **of_the_driver(python, packed))
    second = tmp_path / "tables" / "cheap" / "_spark_metadata" / "1"
    wait_until(lambda: second.exists() or submitted.ended, "two batches are done", PATIENCE_SECONDS)
    cluster.workers[0].kill()
    assert submitted.result() == 0, submitted.end_of_log
    assert "Lost executor" in submitted.text
    check_results(journals, tmp_path)
    assert office.got("offers") == recorded(journals, "input.price < 72.0")
