"""The tables of `echoic top`: which columns they have, what stands in each, and by what they are sorted.

A column gives a value, which sorts, and a text, which people read: 1.50 MB is more than 900 KB. Tables for pipes and
tables on the screen are made of the same columns.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from echoic.cli.pipelines_shown import PIPELINE_COLUMNS, pipeline_row
from echoic.cli.screen import printable
from echoic.cli.tables import table_lines
from echoic.hub import GroupStatus
from echoic.monitor import ChannelLoad, DerivationLoad, Load, PipelineLoad, bytes_text, percentage

__all__ = [
    "CHANNELS",
    "CHANNELS_LIVE",
    "DERIVATIONS",
    "MEMBERS",
    "PIPELINES",
    "Column",
    "lag_text",
    "load_lines",
    "rows_of",
    "sort_key",
]

T = TypeVar("T")


@dataclass(frozen=True)
class Column(Generic[T]):
    """A column of a table."""

    title: str
    value: Callable[[T], object]
    """What it is sorted by."""
    text: Callable[[T], object] | None = None
    """What is shown, if that is not the value."""

    def shown(self, row: T) -> object:
        """Return what stands in a cell; a number stands to the right."""
        return self.value(row) if self.text is None else self.text(row)


def lag_text(load: ChannelLoad) -> str:
    """Return how far sinks are behind, as people say it."""
    if load.lag_seconds is None:
        return "stands"
    return f"{load.lag_seconds:.1f} s" if load.lag_seconds else ""


def _pipeline_cell(at: int) -> Callable[[PipelineLoad], object]:
    return lambda load: pipeline_row(load)[at]


CHANNELS: Final[tuple[Column[ChannelLoad], ...]] = (
    Column("CHANNEL", lambda load: load.name),
    Column("EVENTS/S", lambda load: round(load.events_per_second, 1)),
    Column("BYTES/S", lambda load: load.bytes_per_second, lambda load: bytes_text(load.bytes_per_second)),
    Column("SOURCES", lambda load: load.sources),
    Column("SINKS", lambda load: load.sinks),
    Column("WAITING", lambda load: load.waiting_bytes, lambda load: bytes_text(load.waiting_bytes)),
    Column("MISSED", lambda load: load.missed),
    Column("DROPPED", lambda load: load.dropped),
)
LAG: Final[Column[ChannelLoad]] = Column(
    "LAG", lambda load: float("inf") if load.lag_seconds is None else load.lag_seconds, lag_text
)
CHANNELS_LIVE: Final = (*CHANNELS[:6], LAG, *CHANNELS[6:])
DERIVATIONS: Final[tuple[Column[DerivationLoad], ...]] = (
    Column("DERIVED", lambda load: load.name),
    Column("FROM", lambda load: load.parent),
    Column("IN/S", lambda load: round(load.in_per_second, 1)),
    Column("OUT/S", lambda load: round(load.out_per_second, 1)),
    Column("PASSED", lambda load: load.passed, lambda load: percentage(load.passed)),
    Column("SAVED/S", lambda load: load.saved_per_second, lambda load: bytes_text(load.saved_per_second)),
    Column("SAVED", lambda load: load.bytes_saved, lambda load: bytes_text(load.bytes_saved)),
    Column("NS/EVENT", lambda load: load.ns_per_event, lambda load: _rounded(load.ns_per_event)),
    Column("FAULTS", lambda load: load.faults),
    Column("RUNS AT", lambda load: "suspended" if load.suspended else load.runs_at),
)
PIPELINES: Final[tuple[Column[PipelineLoad], ...]] = tuple(
    Column(title, _pipeline_cell(at)) for at, title in enumerate(PIPELINE_COLUMNS)
)
MEMBERS: Final[tuple[Column[GroupStatus], ...]] = (
    Column("GROUP", lambda status: status.group),
    Column("MEMBER", lambda status: status.member),
    Column("VIEW", lambda status: status.position, lambda status: status.position if status.primary else "none"),
    Column("LEADER", lambda status: status.leader),
    Column("DELIVERED", lambda status: status.delivered),
    Column("BACKLOG", lambda status: status.backlog_bytes, lambda status: bytes_text(status.backlog_bytes)),
    Column("DEGREE", lambda status: round(status.degree, 1)),
    Column("EVENTS/S", lambda status: round(status.throughput, 1)),
    Column("LATENCY", lambda status: status.latency_ns, lambda status: f"{status.latency_ns / 1e6:.2f} ms"),
    Column("WAITING", lambda status: status.waiting),
    Column("PACKING", lambda status: status.packing),
)


def rows_of(columns: Sequence[Column[T]], loads: Sequence[T]) -> list[list[object]]:
    """Return the lines of a table."""
    return [[column.shown(load) for column in columns] for load in loads]


def sort_key(value: object) -> tuple[int, float, str]:
    """Return what sorts numbers among numbers and texts among texts, and what is unknown before both."""
    if value is None or value == "":
        return 0, 0.0, ""
    if isinstance(value, int | float):
        return 1, float(value), ""
    return 2, 0.0, str(value).casefold()


def load_lines(load: Load) -> list[str]:
    """Return the table of channels, and below it those of derivations and of pipelines, if there are any."""
    lines = _lines(CHANNELS, load.channels)
    if load.derivations:
        lines += ["", *_lines(DERIVATIONS, load.derivations)]
        lines += [
            printable(f"{each.name} is suspended at {hub}: {why}")
            for each in load.derivations
            for hub, why in each.suspended.items()
        ]
    if load.pipelines:
        lines += ["", *_lines(PIPELINES, load.pipelines)]
    return lines


def _lines(columns: Sequence[Column[T]], loads: Sequence[T]) -> list[str]:
    return table_lines([column.title for column in columns], rows_of(columns, loads))


def _rounded(number: float | None) -> object:
    return "" if number is None else round(number)
