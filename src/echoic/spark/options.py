"""What a reader of `format("echoic")` was asked for: Spark's options, read once and checked before anything is opened.

spark.read.format("echoic").option("journal", "journals").option("channel", "trades").load()

journal, path      the folder of a journal that driver and executors see
channel            whose events: a name in it; alone, echoic://host:port/name or a name that `names` know, which is
                   read from its recorder over a link
names              address of a name server, or several with commas
start, end         earliest, latest, a time in ISO 8601, or positions as JSON: {"0": 17}
columns            the names of columns with commas
where              E-Code that events must pass
derive, output     E-Code or Python that makes events of type `output`; without it, code that events must pass
params             what the code knows as `param`, as JSON
declared           the type that events are read as
metadata           whether there are _sequence, _source, _number, _time and _partition
splits             into how many parts a batch is cut, by and large; as many as there are processors by default
pushdown           whether Spark's own filters run in the reader, which the session must allow
maxRowsPerBatch, maxBytesPerBatch
statics            `batch`: code with static variables begins anew in each batch of a stream
onLoss             `skip`: go on where events cannot be read, rather than fail
onFault            `skip`: leave out events at which the code faults, rather than fail
"""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, TypeAlias

import msgspec

from echoic.errors import FormatError, PipelineError
from echoic.formats import format_of_text
from echoic.spark.option_names import SHOWN_MAX, known_options, shown

__all__ = ["SOURCE_OPTIONS", "Boundary", "SourceOptions"]

Mode: TypeAlias = Literal["fail", "skip"]

SOURCE_OPTIONS: Final = (
    "journal",
    "path",
    "channel",
    "names",
    "start",
    "end",
    "columns",
    "where",
    "derive",
    "output",
    "params",
    "declared",
    "metadata",
    "splits",
    "pushdown",
    "maxRowsPerBatch",
    "maxBytesPerBatch",
    "statics",
    "onLoss",
    "onFault",
)
SPLITS_MAX: Final = 10_000
POSITION_MAX: Final = (1 << 63) - 1
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Boundary(msgspec.Struct, frozen=True):
    """Where reading begins or ends: at the first event, behind the last, at a time, or at positions."""

    kind: Literal["earliest", "latest", "time", "positions"]
    time_ns: int = 0
    positions: tuple[tuple[int, int], ...] = ()
    """Partition and sequence number; partitions that are not named are read from their first event, to their last."""


EARLIEST: Final = Boundary("earliest")
LATEST: Final = Boundary("latest")


class SourceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for."""

    journal: str = ""
    channel: str = ""
    names: tuple[str, ...] = ()
    start: Boundary = EARLIEST
    end: Boundary = LATEST
    columns: tuple[str, ...] = ()
    where: str = ""
    derive: str = ""
    output: str = ""
    params: str = ""
    declared: str = ""
    metadata: bool = True
    splits: int = 0
    """0 for as many as there are processors."""
    pushdown: bool = False
    rows_max: int = 0
    bytes_max: int = 0
    statics: Literal["refuse", "batch"] = "refuse"
    on_loss: Mode = "fail"
    on_fault: Mode = "fail"

    @property
    def parameters(self) -> "dict[str, object] | None":
        """What the code knows as `param`, None for nothing."""
        return json.loads(self.params) if self.params else None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "SourceOptions":
        """Read the options that Spark gives.

        Raises:
            PipelineError: One is not known or has a wrong value, or they contradict each other.
        """
        given = known_options(options, SOURCE_OPTIONS, "source")
        values: dict[str, object] = {}
        for name, (field, read) in READERS.items():
            if name in given:
                values[field] = read(name, given[name])
        asked = msgspec.convert(values, cls)
        _check_place(asked, given)
        _check_code(asked)
        return asked


def _check_place(asked: SourceOptions, given: Mapping[str, str]) -> None:
    if "journal" in given and "path" in given:
        raise PipelineError("the options `journal` and `path` mean the same: give one of them")
    if asked.journal and (asked.names or asked.channel.startswith("echoic:")):
        raise PipelineError(
            f"a journal is read from its folder or from its recorder: give `journal` and the name of a channel, or a "
            f"channel and `names`, got journal `{shown(asked.journal)}` and channel `{shown(asked.channel)}`"
        )
    if asked.journal or asked.channel.startswith("echoic://"):
        return
    if not asked.channel:
        raise PipelineError(
            "a source of format `echoic` needs the option `journal`, the folder of a journal, or `channel`, the id of "
            "a recorded channel"
        )
    if not asked.names:
        raise PipelineError(
            f"nobody is given who knows channel `{shown(asked.channel)}`: set `journal` to the folder in which it is "
            "recorded, or `names` to the address of a name server"
        )


def _check_code(asked: SourceOptions) -> None:
    if asked.output and not asked.derive:
        raise PipelineError("the option `output` is the type of what `derive` makes, which is not given")
    if asked.params and not (asked.derive or asked.where):
        raise PipelineError("the option `params` is what code knows as `param`, give `where` or `derive` as well")


def _wrong(name: str, value: str, allowed: str) -> PipelineError:
    return PipelineError(f"the option `{name}` is {allowed}, got `{shown(value)}`")


def _text(name: str, value: str) -> str:
    if not value.strip() or "\0" in value:
        raise _wrong(name, value, "a text that is not empty")
    return value.strip()


def _words(name: str, value: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in value.split(","))
    if not all(words):
        raise _wrong(name, value, "names with commas between them")
    if len(set(words)) < len(words):
        raise _wrong(name, value, "names with commas between them, none of them twice")
    return words


def _truth(name: str, value: str) -> bool:
    if value.strip().lower() not in ("true", "false"):
        raise _wrong(name, value, "`true` or `false`")
    return value.strip().lower() == "true"


def _count(name: str, value: str) -> int:
    limit = SPLITS_MAX if name == "splits" else POSITION_MAX
    digits = value.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19 and 1 <= int(digits) <= limit):
        raise _wrong(name, value, f"a number from 1 to {limit}")
    return int(digits)


def _mode(name: str, value: str) -> str:
    if value.strip().lower() not in ("fail", "skip"):
        raise _wrong(name, value, "`fail` or `skip`")
    return value.strip().lower()


def _statics(name: str, value: str) -> str:
    if value.strip().lower() not in ("refuse", "batch"):
        raise _wrong(name, value, "`refuse` or `batch`")
    return value.strip().lower()


def _json(name: str, value: str) -> str:
    """Return what was found to be the JSON of an object."""
    try:
        found = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise _wrong(name, value, f"a JSON object ({str(error)[:SHOWN_MAX]})") from error
    if not isinstance(found, dict) or not found:
        raise _wrong(name, value, "a JSON object with a value for each name")
    return value


def _type(name: str, value: str) -> str:
    try:
        format_of_text(value)
    except FormatError as error:
        raise PipelineError(f"the option `{name}` is a type such as `Mean{{at: float}}`: {error}") from error
    return value


def _boundary(name: str, value: str) -> Boundary:
    text = value.strip()
    if text.lower() in ("earliest", "latest"):
        return EARLIEST if text.lower() == "earliest" else LATEST
    if text.startswith("{"):
        return _positions(name, text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise _wrong(name, value, "`earliest`, `latest`, a time in ISO 8601 or positions as JSON") from error
    known = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    nanoseconds = (known - EPOCH) // timedelta(microseconds=1) * 1000
    return Boundary("time", max(-POSITION_MAX, min(nanoseconds, POSITION_MAX)))  # what a journal can tell


def _positions(name: str, text: str) -> Boundary:
    allowed = 'positions as JSON, such as {"0": 17}'
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _wrong(name, text, allowed) from error
    positions = []
    for partition, sequence in found.items():
        right = type(sequence) is int and 0 <= sequence <= POSITION_MAX
        if not (right and partition.isascii() and partition.isdigit() and str(int(partition[:9])) == partition):
            raise _wrong(name, text, f"{allowed}: partitions and sequence numbers from 0 to {POSITION_MAX}")
        positions.append((int(partition), sequence))
    return Boundary("positions", 0, tuple(sorted(positions)))


READERS: Final[dict[str, tuple[str, Callable[[str, str], object]]]] = {
    "journal": ("journal", _text),
    "path": ("journal", _text),
    "channel": ("channel", _text),
    "names": ("names", _words),
    "start": ("start", _boundary),
    "end": ("end", _boundary),
    "columns": ("columns", _words),
    "where": ("where", _text),
    "derive": ("derive", _text),
    "output": ("output", _type),
    "params": ("params", _json),
    "declared": ("declared", _type),
    "metadata": ("metadata", _truth),
    "splits": ("splits", _count),
    "pushdown": ("pushdown", _truth),
    "maxRowsPerBatch": ("rows_max", _count),
    "maxBytesPerBatch": ("bytes_max", _count),
    "statics": ("statics", _statics),
    "onLoss": ("on_loss", _mode),
    "onFault": ("on_fault", _mode),
}
