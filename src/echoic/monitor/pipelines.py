"""How pipelines get on, as they tell it.

A pipeline says how it gets on by events on the channel `pipeline.NAME`. `Pipelines` subscribes to every channel of such
a name that has the fields of such events, and keeps the last one of each output; one that was heard nothing of for some
seconds is left out. The events are taken as they come, without their class: that is in `echoic.spark`, and whoever only
looks at channels does not need Spark.
"""

import threading
import time
from collections.abc import Iterable
from itertools import islice
from typing import Final

import msgspec

from echoic.channels import ChannelEntry
from echoic.errors import EchoicError
from echoic.hub import Hub, Sink
from echoic.monitor.bounded import finite, short

__all__ = ["PipelineLoad", "Pipelines"]

PREFIX: Final = "pipeline."
SILENT_SECONDS: Final = 15.0
FOLLOW_SECONDS: Final = 1.0
OUTPUTS_MAX: Final = 1000


class PipelineLoad(msgspec.Struct, frozen=True):
    """The last batch of an output of a pipeline."""

    pipeline: str
    output: str
    batch: int
    rows_in: int
    rows_per_second: float
    rows_out: int
    lag: int
    duration_ms: int
    watermark: float
    late: int
    state_rows: int
    at: float


class Pipelines:
    """Follows the progress of all pipelines that are known to a name server."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._sinks: Final[dict[str, Sink | None]] = {}
        self._last: Final[dict[tuple[str, str], tuple[float, PipelineLoad]]] = {}
        self._lock = threading.Lock()

    def follow(self, known: Iterable[ChannelEntry]) -> None:
        """Subscribe to the channels of pipelines among those that are known, and leave those that are gone.

        Those for which there is no time since others do not answer are subscribed to the next time.
        """
        wanted = set(islice((entry.id for entry in known if entry.name.startswith(PREFIX)), OUTPUTS_MAX))
        deadline = time.monotonic() + FOLLOW_SECONDS
        for id in wanted - set(self._sinks):
            if time.monotonic() > deadline:
                break
            self._sinks[id] = self._subscribed(id)
        for id in set(self._sinks) - wanted:
            sink = self._sinks.pop(id)
            if sink is not None:
                sink.close()

    def loads(self) -> list[PipelineLoad]:
        """Return the last batch of each output that was heard of lately."""
        since = time.monotonic() - SILENT_SECONDS
        with self._lock:
            for key in [key for key, (heard, _) in self._last.items() if heard < since]:
                del self._last[key]
            return [load for _, (_, load) in sorted(self._last.items())]

    def _subscribed(self, id: str) -> Sink | None:
        try:
            return self._hub.open(id).subscribe(self._hear)
        except EchoicError:
            return None  # it has gone meanwhile

    def _hear(self, event: object) -> None:
        """Keep an event if it is the progress of a pipeline; anything may be on a channel of such a name."""
        fields = {name: getattr(event, name, None) for name in PipelineLoad.__struct_fields__}
        try:
            told = msgspec.convert(fields, PipelineLoad)
        except msgspec.ValidationError:
            return
        load = msgspec.structs.replace(
            told,
            pipeline=short(told.pipeline),
            output=short(told.output),
            rows_per_second=finite(told.rows_per_second),
            watermark=finite(told.watermark),
        )
        with self._lock:
            key = (load.pipeline, load.output)
            if key in self._last or len(self._last) < OUTPUTS_MAX:
                self._last[key] = (time.monotonic(), load)
