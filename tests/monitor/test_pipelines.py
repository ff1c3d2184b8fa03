"""How pipelines get on, as they tell it."""

import pytest

from echoic import Hub, event
from echoic.cli.pipelines_shown import pipeline_row
from echoic.monitor import PipelineLoad, Pipelines, pipelines
from echoic.spark.pipeline import Progress


@event
class Deal:
    symbol: str
    volume: int


def test_progress_is_followed_on_any_channel_that_has_it() -> None:
    progress = Progress("market", "some", 3, 10, 2.5, 9, 4, 120, 1_760_000_000.0, 1, 2, 1.0)
    with Hub() as hub:
        pipelines = Pipelines(hub)
        channel, other = hub.create("pipeline.market", Progress), hub.create("pipeline.other", Deal)
        hub.create("trades", Deal)
        pipelines.follow(hub.channels())
        other.source().submit_sync(Deal("IBM", 1))
        channel.source().submit_sync(progress)
        (load,) = pipelines.loads()
        assert load == PipelineLoad("market", "some", 3, 10, 2.5, 9, 4, 120, 1_760_000_000.0, 1, 2, 1.0)
        assert pipeline_row(load)[-1] == "2025-10-09 08:53:20"
        pipelines.follow([])


def test_for_whom_there_was_no_time_is_followed_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with Hub() as hub:
        channel = hub.create("pipeline.market", Progress)
        followed = Pipelines(hub)
        with monkeypatch.context() as hurried:
            hurried.setattr(pipelines, "FOLLOW_SECONDS", -1.0)
            followed.follow(hub.channels())
        assert hub.describe(channel.id).sinks == []
        followed.follow(hub.channels())
        assert len(hub.describe(channel.id).sinks) == 1
        followed.follow([])


def test_numbers_that_are_none_can_still_be_shown() -> None:
    nothing = float("nan")
    progress = Progress("m" * 1000, "some", 3, 10, nothing, 9, 4, 120, float("inf"), 1, 2, 1.0)
    with Hub() as hub:
        followed = Pipelines(hub)
        channel = hub.create("pipeline.market", Progress)
        followed.follow(hub.channels())
        channel.source().submit_sync(progress)
        (load,) = followed.loads()
        assert (load.rows_per_second, load.watermark, len(load.pipeline)) == (0.0, 0.0, 300)
        assert pipeline_row(load)[3] == 0
        followed.follow([])
