"""Pipelines over time: a sample for each batch, limits, and what was told that is no number."""

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from echoic.monitor import PipelineLoad
from echoic.monitor.pipeline_history import FORGET_SECONDS, SAMPLES_KEPT, PipelineHistory
from tests.monitor.nothing import holds_null

NOW = 1_800_000_000.0


def batch(number: int, output: str = "trades", **changes: object) -> PipelineLoad:
    fields: dict[str, object] = {
        "rows_in": 10,
        "rows_per_second": 5.0,
        "rows_out": 9,
        "lag": 3,
        "duration_ms": 200,
        "watermark": 0.0,
        "late": 1,
        "state_rows": 4,
        "at": NOW + number,
    }
    return PipelineLoad("market", output, number, **{**fields, **changes})  # type: ignore[arg-type]


def test_each_batch_is_a_sample_once() -> None:
    history = PipelineHistory()
    for number in range(3):
        history.tell([batch(number, lag=number)], NOW + number)
        history.tell([batch(number, lag=number)], NOW + number + 0.5)
    (load,) = history.loads(NOW + 5)
    assert (load.batch, load.silent_seconds) == (2, 3.0)
    assert load.samples.lag == [0, 1, 2]


def test_a_pipeline_that_has_stopped_is_shown_as_silent_and_later_forgotten() -> None:
    history = PipelineHistory()
    history.tell([batch(1)], NOW)
    assert history.loads(NOW + 60)[0].silent_seconds == 60.0
    assert history.loads(NOW + FORGET_SECONDS + 1) == []


def test_a_look_has_a_size_however_many_outputs_there_are() -> None:
    history = PipelineHistory()
    for number in range(SAMPLES_KEPT):
        history.tell([batch(number, f"output{each}") for each in range(200)], NOW + number)
    assert len(msgspec.json.encode(history.loads(NOW + SAMPLES_KEPT))) < 400_000


@given(st.floats(), st.integers(), st.text(max_size=1000))
@example(0.0, 0, "null")
def test_whatever_a_pipeline_tells_becomes_json(number: float, whole: int, text: str) -> None:
    history = PipelineHistory()
    history.tell([batch(1, text, rows_per_second=number, watermark=number, lag=whole)], NOW)
    assert not holds_null(msgspec.json.encode(history.loads(NOW)))
