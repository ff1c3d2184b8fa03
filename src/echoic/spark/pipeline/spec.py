"""What a pipeline is: sources, steps and outputs, as frozen records that both forms of a pipeline make.

    sources.trades ──> steps.cheap ──> steps.per_symbol ──> outputs.per_symbol   a table
                       derive          window           └─> outputs.alerts       a channel

Everything has a name, and names what it reads in `from`; so the records are a graph without cycles (`checking`), which
is turned into streaming frames one by one (`building`). The records know nothing of Spark: a pipeline can be read,
checked and compared with the one that made a checkpoint on a machine without Java.

What kind of step or output a record is, is told by the one key that only this kind has: `derive`, `window`, `sql` and
`apply`; `table` and `channel`. A `kind = "..."` beside it would say the same twice.

Paths stand here as they were written. What they are relative to, the folder of the file or the current one, is the
business of whoever runs the pipeline, so that a spec does not change when its folder is moved.
"""

from typing import Literal, TypeAlias, assert_never

import msgspec

__all__ = [
    "ApplyStep",
    "ChannelOutput",
    "DeriveStep",
    "OutputSpec",
    "PipelineSpec",
    "Scalar",
    "Settings",
    "SourceSpec",
    "SqlStep",
    "StepSpec",
    "TableOutput",
    "WindowStep",
    "inputs_of",
]

Scalar: TypeAlias = bool | int | float | str


class SourceSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A channel to read, and how late its events may come. What is not given is up to `format("echoic")`."""

    channel: str
    journal: str = ""
    names: str = ""
    start: str = ""
    declared: str = ""
    columns: tuple[str, ...] = ()
    where: str = ""
    derive: str = ""
    output: str = ""
    params: dict[str, Scalar] = {}
    statics: str = ""
    max_rows_per_batch: int | None = None
    max_bytes_per_batch: int | None = None
    splits: int | None = None
    on_loss: str = ""
    on_fault: str = ""
    time: str = "_time"
    """The column with the time of an event; numbers are seconds since 1970."""
    watermark: str = ""
    """How late events may come before they are dropped from windows."""


class DeriveStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """E-Code, or Python limited to the same subset: a filter, or with `output` a transform."""

    origin: str = msgspec.field(name="from")
    derive: str
    output: str = ""
    params: dict[str, Scalar] = {}
    how: Literal["auto", "columns", "kernel"] = "auto"
    time: str = ""
    """The column of `output` with the time of events, if it is another one than before."""


class WindowStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Aggregates over windows of event time, for each value of the columns in `by`."""

    origin: str = msgspec.field(name="from")
    window: str
    aggregates: dict[str, str]
    slide: str = ""
    by: tuple[str, ...] = ()


class SqlStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A query over sources and other steps by name. What it reads is looked for in its text, if `from` does not say."""

    sql: str
    origins: tuple[str, ...] = msgspec.field(name="from", default=())


class ApplyStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A Python function from frame to frame, as MODULE:FUNCTION."""

    origin: str = msgspec.field(name="from")
    apply: str


StepSpec: TypeAlias = DeriveStep | WindowStep | SqlStep | ApplyStep


class TableOutput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A folder of files to which every batch is added, exactly once."""

    origin: str = msgspec.field(name="from")
    table: str
    format: Literal["parquet", "delta"] = "parquet"
    partition_by: tuple[str, ...] = ()


class ChannelOutput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A channel to which every row is submitted, exactly once.

    With `intake`, the channel is in the pipeline's own hub and recorded in this folder; without, it is one that has an
    intake already.
    """

    origin: str = msgspec.field(name="from")
    channel: str
    intake: str = ""


OutputSpec: TypeAlias = TableOutput | ChannelOutput


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is said of a pipeline as a whole."""

    name: str
    state: str
    tables: str = "tables"
    names: str = ""
    every: str = ""
    listen: str = ""
    """Where the pipeline's own hub is reached, if that is not only on this machine."""
    insecure: bool = False
    """Accept that strangers can read and write there."""
    identity: str = ""
    """Who the pipeline's own hub is, if $ECHOIC_IDENTITY does not say it, which also the workers of Spark follow."""
    checkpoints: str = ""
    """Where checkpoints are, if not in `state`: on a cluster, a place that executors see as well."""


class PipelineSpec(Settings, frozen=True, kw_only=True):
    """A whole pipeline."""

    sources: dict[str, SourceSpec] = {}
    steps: dict[str, StepSpec] = {}
    outputs: dict[str, OutputSpec] = {}


def inputs_of(step: StepSpec) -> tuple[str, ...]:
    """Return what a step says it reads; nothing for a query that leaves it to its text."""
    match step:
        case SqlStep():
            return step.origins
        case DeriveStep() | WindowStep() | ApplyStep():
            return (step.origin,)
        case _:
            assert_never(step)
