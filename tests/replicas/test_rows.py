"""Events of every type that there can be go through a table of each kind of database and come back as they were."""

from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from echoic.errors import JournalError
from echoic.formats import NATIVE, Format, format_of_text
from echoic.replicas import Portion, database_of
from echoic.wire import Batch
from tests.replicas.conftest import KINDS, FindUrl
from tests.replicas.ticks import Tick, query, tick
from tests.strategies import batches, formats

EXAMPLES = {"sqlite": 60, "postgresql": 40, "mariadb": 20}
NAMES = count(1)


def spelled(batch: Batch) -> list[str]:
    """Return events as text, in which all numbers differ that are not the same bits, but for those that are none."""
    return [str(event) for event in batch.events()]


def logged_and_read(url: str, format: Format, events: list[dict[str, object]]) -> tuple[list[str], list[str]]:
    """Write events into a table of their own, in two transactions, and return them as they were and as they are."""
    batch = Batch.of(events, format)
    database = database_of(url)
    try:
        database.prepare(f"rows_{next(NAMES)}", format)
        cut = len(events) // 2
        first, rest = batch.parts((cut, len(events) - cut))
        if cut:
            database.append([Portion(1, (("a", cut),), first)])
        database.append([Portion(cut + 1, (("b", len(events) - cut),), rest)])
        found = database.read(0, len(events), 1000)
        assert found is not None
        assert found.senders == ((("a", cut), ("b", len(events) - cut)) if cut else (("b", len(events)),))
        return spelled(batch), spelled(found.batch)
    finally:
        database.close()


@pytest.mark.parametrize("kind", KINDS)
def test_events_of_every_type_come_back_as_they_were(find_url: FindUrl, kind: str) -> None:
    url = find_url(kind)

    @settings(max_examples=EXAMPLES[kind], suppress_health_check=[HealthCheck.too_slow])
    @given(st.data())
    def check(data: st.DataObject) -> None:
        format = data.draw(formats())
        events = data.draw(batches(format, special=True).filter(bool))
        before, after = logged_and_read(url, format, events)
        assert after == before

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_types_with_many_fields_have_many_columns(find_url: FindUrl, kind: str) -> None:
    fields = ", ".join(f"field_number_{number}: int64" for number in range(500))
    format = format_of_text(f"Wide{{{fields}}}").on(NATIVE)
    event = {f"field_number_{number}": number for number in range(500)}
    before, after = logged_and_read(find_url(kind), format, [event, event])
    assert after == before


def test_rows_that_somebody_changed_by_hand_are_told(file_url: str) -> None:
    database = database_of(file_url)
    database.prepare("ticks", Format.of(Tick))
    database.append([Portion(1, (("n", 2),), Batch.of([tick(1), tick(2)], Tick))])
    query(file_url, "UPDATE ticks SET number = 'many' WHERE sequence = 2")
    with pytest.raises(JournalError, match="the rows 1 to 2 hold what the log did not write"):
        database.read(0, 2, 2)
    query(file_url, "UPDATE ticks SET exact = x'00' WHERE sequence = 2")
    with pytest.raises(JournalError, match="the rows 1 to 2 hold what the log did not write"):
        database.read(0, 2, 2)
    database.close()
