"""`echoic delay`: how old events are when they come."""

import json
import threading
import time

import pytest

from echoic import Hub, event
from echoic.cli.delay import Delays, seconds_of
from echoic.errors import FormatError
from echoic.wire import Batch
from tests.cli.terminals import type_here


@event
class Stamp:
    seconds: float
    nanoseconds: int


@event
class Sample:
    at: float
    header: Stamp
    name: str


def sample(age: float) -> Sample:
    made = time.time() - age
    return Sample(made, Stamp(made, int(made * 1e9)), "a")


def delays(field: str, *ages: float) -> Delays:
    found = Delays(field, 100)
    found.note(Batch.of([sample(age) for age in ages]))
    return found


@pytest.mark.parametrize("field", ["at", "header.seconds", "header.nanoseconds"])
def test_ages_are_summed_up(field: str) -> None:
    told = delays(field, 10.0, 20.0).report()
    assert told is not None
    assert 15 <= told["delay"] < 15 + 120
    assert told["max"] - told["min"] == pytest.approx(10, abs=0.1)
    assert told["window"] == 2


@pytest.mark.parametrize(("field", "said"), [("name", "expected a time"), ("att", "did you mean `at`")])
def test_a_field_that_is_no_time_is_told(field: str, said: str) -> None:
    with pytest.raises(FormatError, match=said):
        delays(field, 1.0).report()


def test_whole_numbers_say_their_unit_by_their_size() -> None:
    assert [seconds_of(1_700_000_000 * unit, "at") for unit in (1, 10**3, 10**6, 10**9)] == [1.7e9] * 4
    with pytest.raises(FormatError):
        seconds_of(True, "at")


def test_it_is_reported_once_a_second() -> None:
    with Hub("127.0.0.1:0") as hub:
        source = hub.create("samples", Sample).source()
        over = threading.Event()

        def publish() -> None:
            while not over.wait(0.05):
                source.submit(sample(5.0))
                source.flush()

        publishing = threading.Thread(target=publish)
        publishing.start()
        try:
            code, out, said = type_here("delay", "samples", "-n", "1", "--json", "--names", hub.address)
        finally:
            over.set()
            publishing.join()
        assert code == 0, said
        assert json.loads(out)["delay"] >= 5
