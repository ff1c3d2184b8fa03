"""Pipelines as TOML: read into the records of `spec`, with the key of every mistake.

The file is parsed by Python, its tables are turned into records by msgspec. Each source, step and output is turned for
itself, because msgspec does not say which entry of a mapping was wrong; and keys that nobody knows are looked for
first, because the nearest one that is known is what helps. So a message always begins with the path of the key:

    market.toml: steps.per_symbol.windw: there is no such key, did you mean `window`?
"""

import datetime
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar, cast

import msgspec

from echoic.errors import PipelineError
from echoic.spark.pipeline.checking import check_spec, nearest
from echoic.spark.pipeline.spec import (
    ApplyStep,
    ChannelOutput,
    DeriveStep,
    OutputSpec,
    PipelineSpec,
    Settings,
    SourceSpec,
    SqlStep,
    StepSpec,
    TableOutput,
    WindowStep,
)

__all__ = ["load_spec", "read_spec", "record_of", "spec_of"]

FILE_BYTES_MAX: Final = 1 << 20
PLACES: Final = ("sources", "steps", "outputs")
STEPS: Final[dict[str, type[StepSpec]]] = {
    "derive": DeriveStep,
    "window": WindowStep,
    "sql": SqlStep,
    "apply": ApplyStep,
}
OUTPUTS: Final[dict[str, type[OutputSpec]]] = {"table": TableOutput, "channel": ChannelOutput}

T = TypeVar("T", bound=msgspec.Struct)


def load_spec(path: str | Path) -> PipelineSpec:
    """Return the pipeline that a file describes.

    Raises:
        PipelineError: It cannot be read, is not TOML, or describes none.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            raw = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise PipelineError(f"cannot read {path}: {error.strerror or error}") from error
    if len(raw) > FILE_BYTES_MAX:
        raise PipelineError(f"{path} has more than {FILE_BYTES_MAX} bytes, which is too much for a pipeline")
    try:
        return read_spec(raw.decode())
    except UnicodeDecodeError as error:
        raise PipelineError(f"{path}: expected UTF-8, got other bytes at {error.start}") from error
    except PipelineError as error:
        raise PipelineError(f"{path}: {error}") from error


def read_spec(text: str) -> PipelineSpec:
    """Return the pipeline that a text in TOML describes.

    Raises:
        PipelineError: It is not TOML, or describes none.
    """
    try:
        described = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        reason = str(error)
        raise PipelineError(f"this is not TOML: {reason[:1].lower()}{reason[1:]}") from error
    return spec_of(described)


def spec_of(described: Mapping[str, object]) -> PipelineSpec:
    """Return the pipeline that plain values describe, as they stand in a file.

    Raises:
        PipelineError: They describe none.
    """
    plain = dict(described)
    sources = {key: record_of(SourceSpec, value, key) for key, value in _entries(plain, "sources")}
    steps = {key: record_of(_kind(STEPS, value, key), value, key) for key, value in _entries(plain, "steps")}
    outputs = {key: record_of(_kind(OUTPUTS, value, key), value, key) for key, value in _entries(plain, "outputs")}
    if "name" not in plain:
        raise PipelineError('name: a pipeline needs one, such as name = "market"')
    head = {"state": f"state/{plain['name']}"} | {key: value for key, value in plain.items() if key not in PLACES}
    settings = record_of(Settings, head, "", PLACES)
    spec = PipelineSpec(
        **msgspec.structs.asdict(settings),
        sources=_without_place(sources),
        steps=_without_place(steps),
        outputs=_without_place(outputs),
    )
    check_spec(spec)
    return spec


def _entries(described: Mapping[str, object], place: str) -> list[tuple[str, object]]:
    """Return the tables below a place, each with its path."""
    found = described.get(place, {})
    if not isinstance(found, Mapping):
        raise PipelineError(f"{place}: expected tables such as [{place}.trades], got {found!r}")
    return [(f"{place}.{name}", value) for name, value in found.items()]


def _without_place(records: Mapping[str, T]) -> dict[str, T]:
    return {key.partition(".")[2]: record for key, record in records.items()}


def _kind(kinds: Mapping[str, type[T]], value: object, key: str) -> type[T]:
    """Return which kind of step or output a table describes, by the one key that only this kind has."""
    given = [name for name in kinds if isinstance(value, Mapping) and name in value]
    if len(given) != 1:
        wanted = ", ".join(f"`{name}`" for name in kinds)
        got = " and ".join(f"`{name}`" for name in given) or "none"
        raise PipelineError(f"{key}: expected exactly one of {wanted}, got {got}")
    return kinds[given[0]]


def record_of(kind: type[T], value: object, key: str, beside: Sequence[str] = ()) -> T:
    """Return plain values as a record.

    Args:
        kind: That of the record.
        value: A mapping, as it stands in a file.
        key: Its path there.
        beside: Keys that may be there as well, but are read elsewhere.

    Raises:
        PipelineError: They do not fit.
    """
    if not isinstance(value, Mapping):
        raise PipelineError(f"{key}: expected a table, got {value!r}")
    known = [field.encode_name for field in msgspec.structs.fields(kind)]
    for name in value:
        if name not in known:
            raise PipelineError(f"{_path(key, name)}: there is no such key{nearest(name, [*known, *beside])}")
    try:
        return msgspec.convert(_plain(value), kind)
    except msgspec.ValidationError as error:
        raise PipelineError(_explained(str(error), key)) from error


def _plain(value: object) -> object:
    """Return a value with times, which TOML has, and paths, which Python has, as text, and one name as several."""
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        plain = {name: _plain(each) for name, each in value.items()}
        for name in ("columns", "by", "partition_by"):
            if isinstance(plain.get(name), str):
                plain[name] = [plain[name]]
        if "sql" in plain and isinstance(plain.get("from"), str):
            plain["from"] = [plain["from"]]
        return plain
    return [_plain(each) for each in cast("Sequence[object]", value)] if isinstance(value, list | tuple) else value


def _explained(message: str, key: str) -> str:
    """Return what msgspec says, with the path of the key in front: its own is that inside one record."""
    said, _, place = message.partition(" - at `$")
    inside = place.rstrip("`").lstrip(".")
    return f"{_path(key, inside)}: {said[:1].lower()}{said[1:]}"


def _path(key: str, name: str) -> str:
    return f"{key}.{name}" if key and name else key or name or "pipeline"
