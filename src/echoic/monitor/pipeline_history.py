"""Pipelines over time: rows a second, lag and duration of each batch of each output, for charts.

`Pipelines` keeps the last batch of an output; here a sample is added whenever there is another one. One that has said
nothing for a while stays, and is shown as silent: a pipeline that has stopped is what people want to see.
"""

import time
from collections import deque
from collections.abc import Iterable
from typing import Final

import msgspec

from echoic.channels import ChannelEntry
from echoic.hub import Hub
from echoic.monitor.bounded import finite, short, whole
from echoic.monitor.pipelines import PipelineLoad, Pipelines

__all__ = ["OutputLoad", "OutputSamples", "PipelineHistory", "PipelinesLoad", "PipelinesOverview"]

OUTPUTS_MAX: Final = 100
SAMPLES_KEPT: Final = 300
NUMBERS_MAX: Final = 24_000
"""How many numbers of samples a look has at most, all outputs together."""
COLUMNS: Final = 5
FORGET_SECONDS: Final = 600.0


class OutputSamples(msgspec.Struct, frozen=True):
    """The batches of an output over time, a list for each quantity; `at` is in seconds since 1970."""

    at: list[float]
    rows_per_second: list[float]
    lag: list[int]
    duration_ms: list[int]
    rows_in: list[int]


class OutputLoad(msgspec.Struct, frozen=True):
    """An output of a pipeline: its last batch, and how it went."""

    pipeline: str
    output: str
    silent_seconds: float
    batch: int
    rows_in: int
    rows_per_second: float
    rows_out: int
    lag: int
    duration_ms: int
    watermark: float
    late: int
    state_rows: int
    samples: OutputSamples


class PipelinesLoad(msgspec.Struct, frozen=True):
    """All outputs of all pipelines, by their names."""

    at: float
    pipelines: list[OutputLoad]


class Output:
    """What is kept of an output."""

    def __init__(self, load: PipelineLoad) -> None:
        self.load = load
        self.heard = 0.0
        self.samples: deque[tuple[float, float, int, int, int]] = deque(maxlen=SAMPLES_KEPT)


class PipelineHistory:
    """Keeps what pipelines have told. The times are given, in seconds since 1970."""

    def __init__(self) -> None:
        self._outputs: dict[tuple[str, str], Output] = {}

    def tell(self, loads: Iterable[PipelineLoad], now: float) -> None:
        """Learn the last batches; one that is known already is no other one."""
        for load in loads:
            key = load.pipeline, load.output
            output = self._outputs.get(key)
            if output is None:
                if len(self._outputs) >= OUTPUTS_MAX:
                    continue
                output = self._outputs[key] = Output(load)
            elif (load.batch, load.at) == (output.load.batch, output.load.at):
                continue
            output.load, output.heard = load, now
            output.samples.append(
                (
                    round(now, 3),
                    finite(load.rows_per_second),
                    whole(load.lag),
                    whole(load.duration_ms),
                    whole(load.rows_in),
                )
            )

    def loads(self, now: float) -> list[OutputLoad]:
        """Return all outputs, and forget those of which nothing was heard for long."""
        for key in [each for each, output in self._outputs.items() if now - output.heard > FORGET_SECONDS]:
            del self._outputs[key]
        kept = max(1, NUMBERS_MAX // (COLUMNS * max(1, len(self._outputs))))
        return [_output_load(output, now, kept) for _, output in sorted(self._outputs.items())]


class PipelinesOverview:
    """Follows all pipelines that are known to a name server.

    Args:
        hub: Who listens.
        pipelines: Who does so already, so that nothing is subscribed to twice.
    """

    def __init__(self, hub: Hub, pipelines: Pipelines | None = None) -> None:
        self._pipelines = pipelines if pipelines is not None else Pipelines(hub)
        self._history = PipelineHistory()

    def follow(self, known: Iterable[ChannelEntry]) -> None:
        """Subscribe to the channels of pipelines among those that are known, and take down what they told."""
        self._pipelines.follow(known)
        self._history.tell(self._pipelines.loads(), time.time())

    def look(self) -> PipelinesLoad:
        """Return all outputs of all pipelines."""
        now = time.time()
        self._history.tell(self._pipelines.loads(), now)
        return PipelinesLoad(now, self._history.loads(now))

    def close(self) -> None:
        """Listen no more."""
        self._pipelines.follow(())


def _output_load(output: Output, now: float, kept: int) -> OutputLoad:
    load = output.load
    samples = list(output.samples)[-kept:]
    at, rate, lag, duration, rows = map(list, zip(*samples, strict=True)) if samples else ([],) * COLUMNS
    return OutputLoad(
        pipeline=short(load.pipeline),
        output=short(load.output),
        silent_seconds=round(max(0.0, now - output.heard), 1),
        batch=whole(load.batch),
        rows_in=whole(load.rows_in),
        rows_per_second=finite(load.rows_per_second),
        rows_out=whole(load.rows_out),
        lag=whole(load.lag),
        duration_ms=whole(load.duration_ms),
        watermark=finite(load.watermark),
        late=whole(load.late),
        state_rows=whole(load.state_rows),
        samples=OutputSamples(at, rate, lag, duration, rows),
    )
