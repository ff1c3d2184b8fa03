"""Arrow's C interface: batches, journals and types are taken by pandas, polars and pyarrow as they are."""

from pathlib import Path

import pandas
import polars
import pyarrow
import pytest

from echoic import Array, Batch, Format, Hub, Journal, event, float32, float64, int32, int64
from tests.conftest import StartHub
from tests.system.processes import wait_until


@event
class Place:
    x: float32
    y: float32


@event
class Trade:
    symbol: str
    note: str | None
    price: float64
    count: int32
    sizes: Array[int64, "count"]
    places: Array[Place, 2]


TRADES = [
    Trade("IBM", None, 75.5, 2, [100, 200], [Place(0, 1), Place(2, 3)]),
    Trade("SUN", "late", 33.25, 0, [], [Place(4, 5), Place(6, 7)]),
]


def test_a_batch_is_taken_by_pyarrow_polars_and_pandas() -> None:
    batch = Batch.of(TRADES)
    table = pyarrow.table(batch)
    assert table.column("sizes").to_pylist() == [[100, 200], []]
    assert table.column("note").to_pylist() == [None, "late"]
    frame = polars.DataFrame(batch)
    assert frame["price"].to_list() == [75.5, 33.25]
    assert frame["places"].to_list()[1] == [{"x": 4.0, "y": 5.0}, {"x": 6.0, "y": 7.0}]
    assert pyarrow.table(batch).to_pandas()["symbol"].tolist() == ["IBM", "SUN"]
    if hasattr(pandas.DataFrame, "from_arrow"):  # pandas 3
        assert pandas.DataFrame.from_arrow(batch)["price"].tolist() == [75.5, 33.25]


def test_recent_events_are_taken_as_they_are(start_hub: StartHub) -> None:
    hub: Hub = start_hub()
    channel = hub.create("trades", Trade)
    channel.recent(1, seconds=0)
    channel.source().submit_sync(TRADES[0])
    channel.source().submit_sync(TRADES[1])
    assert polars.DataFrame(channel.recent(2))["symbol"].to_list() == ["IBM", "SUN"]


def test_a_journal_and_what_is_read_of_it_are_taken_as_they_are(start_hub: StartHub, tmp_path: Path) -> None:
    hub: Hub = start_hub()
    channel = hub.create("trades", Trade)
    with hub.record(channel, tmp_path):
        source = channel.source()
        source.submit_batch(TRADES)
        source.flush()
        wait_until(lambda: channel.journal().heads == (2,), "they are on the disk")
        assert polars.DataFrame(channel.journal())["price"].sum() == 108.75
    journal = Journal(tmp_path, "trades")
    assert pyarrow.table(journal).num_rows == 2
    (recorded,) = journal.read()
    assert pyarrow.table(recorded).column("price").to_pylist() == [75.5, 33.25]


def test_a_type_is_taken_as_a_schema_by_pyarrow_and_polars() -> None:
    format = Format.of(Trade)
    schema = pyarrow.schema(format)
    assert schema == format.arrow_schema
    assert Format.of(schema) == format  # the descriptor goes along
    assert polars.Schema(format)["price"] == polars.Float64


@pytest.mark.parametrize("empty", [Batch.of([], Trade), Batch.of([], Place)], ids=["variable", "fixed"])
def test_a_batch_of_no_events_still_has_columns(empty: Batch) -> None:
    assert pyarrow.table(empty).num_rows == 0
    assert polars.DataFrame(empty).columns == [field.name for field in empty.format.fields]
