"""Journals that only their recorder sees: read over a link, as if they were here."""

from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from echoic import Hub
from echoic.errors import EchoicError
from echoic.spark.source import EchoicSource
from echoic.testing.samples import Mean
from tests.conftest import StartHub


def recorded(hub: Hub, folder: Path, count: int) -> str:
    """Record some events of a channel, and return its id."""
    channel = hub.create("means", Mean)
    hub.record(channel, folder)
    with channel.source() as source:
        for number in range(count):
            source.submit(Mean(float(number), number / 2))
        source.drain()
    return channel.id


def numbers(options: dict[str, str]) -> list[float]:
    source = EchoicSource(options)
    reader = source.reader(source.schema())
    return [row["at"] for part in reader.partitions() for b in reader.read(part) for row in b.to_pylist()]


def test_a_channel_is_read_from_its_recorder(start_hub: StartHub, tmp_path: Path) -> None:
    id = recorded(start_hub(), tmp_path, 100)
    assert numbers({"channel": id}) == [float(number) for number in range(100)]
    assert numbers({"channel": id, "where": "input.at >= 98"}) == [98.0, 99.0]


def test_a_stream_follows_a_recorder(start_hub: StartHub, tmp_path: Path) -> None:
    hub = start_hub()
    id = recorded(hub, tmp_path, 10)
    source = EchoicSource({"channel": id, "maxRowsPerBatch": "7"})
    reader = source.streamReader(source.schema())
    first = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    assert first == {"0": 7}
    assert reader.latestOffset(first, ReadAllAvailable()) == {"0": 10} == reader.reportLatestOffset()
    with hub.open(id).source() as more:
        more.submit(Mean(10.0, 5.0))
        more.drain()
    assert reader.latestOffset({"0": 10}, ReadAllAvailable()) == {"0": 11}


def test_a_channel_that_nobody_records_is_told(start_hub: StartHub) -> None:
    id = start_hub().create("means", Mean).id
    with pytest.raises(EchoicError, match="no recorder of `means` is there: record the channel first"):
        EchoicSource({"channel": id}).schema()


def test_a_hub_that_is_not_there_is_told() -> None:
    with pytest.raises(EchoicError, match=r"127\.0\.0\.1:1"):
        EchoicSource({"channel": "echoic://127.0.0.1:1/means"}).schema()
