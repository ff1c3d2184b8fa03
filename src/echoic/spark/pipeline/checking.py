"""Whether a pipeline makes sense, told before anything is started.

Starting Spark takes seconds and its complaints take pages; most mistakes are names that nobody has, and can be told at
once, with the nearest one there is. What is found here:

    a name that is no name, or stands for two things           sources.trades: ...
    `from` with a name that nobody has                         steps.cheap.from: there is no `trade`, did you ...
    steps that read each other in a circle                     steps.a reads b reads a
    a length of time that is none                              steps.per_symbol.window: expected ...
    windows over a source without a watermark                  they would never be over
    two outputs that write to one place

What a query reads is looked for in its text: each word that is the name of a source or step, outside of quotes and
comments, and not called like a function or behind a dot. A column of the same name counts as well, which does no harm
but in a circle; `from` says it exactly then. Reading SQL properly would take Spark's parser, and so Java.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from echoic.channels import check_channel_name
from echoic.errors import AddressError, PipelineError
from echoic.spark.options import SourceOptions
from echoic.spark.pipeline.placing import source_options
from echoic.spark.pipeline.spec import (
    ChannelOutput,
    PipelineSpec,
    SqlStep,
    StepSpec,
    TableOutput,
    WindowStep,
    inputs_of,
)

__all__ = ["check_spec", "flow_of", "inputs_by_step", "nearest", "order", "upstream"]

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
UNIT: Final = r"(?:microseconds?|us|milliseconds?|ms|seconds?|s|minutes?|hours?|days?|weeks?)"
DURATION: Final = re.compile(
    rf"\s*(?:interval\s+)?\d+(?:\.\d+)?\s*{UNIT}(?:\s+\d+(?:\.\d+)?\s*{UNIT})*\s*\Z", re.IGNORECASE
)
NOT_CODE: Final = re.compile(r"'(?:\\.|''|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)
WORD: Final = re.compile(r"(?<![\w.$])`?([A-Za-z_]\w*)`?(?!\s*\()")
PLACES: Final = ("sources", "steps", "outputs")


def check_spec(spec: PipelineSpec) -> None:
    """Refuse a pipeline that cannot work.

    Raises:
        PipelineError: Naming the key, the value and what is expected.
    """
    _check_names(spec)
    if "://" in spec.state:
        raise PipelineError(f"state: expected a folder, got {spec.state}; only `checkpoints` may be elsewhere")
    for key, text in _durations(spec):
        if text and not DURATION.match(text):
            raise PipelineError(f'{key}: expected a length of time such as "10 seconds" or "100 ms", got "{text}"')
    for place, name, read in _readings(spec):
        if read not in spec.sources and read not in spec.steps:
            known = [*spec.sources, *spec.steps]
            raise PipelineError(f"{place}.{name}.from: there is no source or step `{read}`{nearest(read, known)}")
    order(spec)
    _check_sources(spec)
    _check_windows(spec)
    _check_outputs(spec)


def order(spec: PipelineSpec) -> list[str]:
    """Return the names of all steps, each behind those that it reads.

    Raises:
        PipelineError: Steps read each other in a circle, or a query reads nothing.
    """
    reads = inputs_by_step(spec)
    done: list[str] = []

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            circle = " reads ".join([*path[path.index(name) :], name])
            raise PipelineError(f"steps.{name}: steps read each other in a circle: {circle}")
        if name in done or name in spec.sources:
            return
        for each in reads[name]:
            visit(each, (*path, name))
        done.append(name)

    for name in spec.steps:
        visit(name, ())
    return done


def inputs_by_step(spec: PipelineSpec) -> dict[str, tuple[str, ...]]:
    """Return which sources and steps each step reads.

    Raises:
        PipelineError: A query reads nothing of the pipeline.
    """
    return {name: _inputs(name, step, spec) for name, step in spec.steps.items()}


def upstream(spec: PipelineSpec, name: str) -> tuple[list[str], list[str]]:
    """Return the sources and the steps, in order, that a source or step depends on, itself included."""
    reads, found, waiting = inputs_by_step(spec), {name}, [name]
    while waiting:
        for each in reads.get(waiting.pop(), ()):
            if each not in found:
                found.add(each)
                waiting.append(each)
    return [each for each in spec.sources if each in found], [each for each in order(spec) if each in found]


def flow_of(spec: PipelineSpec, output: str) -> list[str]:
    """Return the steps and sources behind an output, the nearest first."""
    sources, steps = upstream(spec, spec.outputs[output].origin)
    return [*reversed(steps), *sources]


def nearest(name: str, known: Iterable[str]) -> str:
    """Return how a message goes on that refuses a name: with the nearest one, or with all there are."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if near:
        return f", did you mean `{near[0]}`?"
    return f"; there is {', '.join(f'`{each}`' for each in known)}" if known else ""


def _inputs(name: str, step: StepSpec, spec: PipelineSpec) -> tuple[str, ...]:
    if not isinstance(step, SqlStep) or step.origins:
        return inputs_of(step)
    known = {*spec.sources, *spec.steps}
    words = dict.fromkeys(WORD.findall(NOT_CODE.sub(" ", step.sql)))
    read = tuple(word for word in words if word in known and word != name)
    if not read:
        raise PipelineError(f"steps.{name}.sql: reads no source or step of the pipeline{nearest('', known - {name})}")
    return read


def _check_names(spec: PipelineSpec) -> None:
    try:
        check_channel_name(f"pipeline.{spec.name}")
    except AddressError as error:
        raise PipelineError(f"name: {error}") from error
    for place, entries in _entries(spec):
        for name in entries:
            if not NAME.match(name):
                raise PipelineError(
                    f"{place}: expected a name of at most 64 letters, digits and `_` that begins with no digit, "
                    f"got {name[:80]!r}"
                )
    for name in spec.steps:
        if name in spec.sources:
            raise PipelineError(f"steps.{name}: a source has this name already")
    if not spec.sources:
        raise PipelineError("sources: a pipeline needs at least one")
    if not spec.outputs:
        raise PipelineError("outputs: a pipeline needs at least one")


def _entries(spec: PipelineSpec) -> list[tuple[str, Mapping[str, object]]]:
    return [(place, getattr(spec, place)) for place in PLACES]


def _durations(spec: PipelineSpec) -> list[tuple[str, str]]:
    found = [("every", spec.every)]
    found += [(f"sources.{name}.watermark", source.watermark) for name, source in spec.sources.items()]
    for name, step in spec.steps.items():
        if isinstance(step, WindowStep):
            found += [(f"steps.{name}.window", step.window or "nothing"), (f"steps.{name}.slide", step.slide)]
    return found


def _readings(spec: PipelineSpec) -> list[tuple[str, str, str]]:
    found = [("steps", name, read) for name, step in spec.steps.items() for read in inputs_of(step)]
    return found + [("outputs", name, output.origin) for name, output in spec.outputs.items()]


def _check_sources(spec: PipelineSpec) -> None:
    for name, source in spec.sources.items():
        try:
            SourceOptions.of(source_options(source, spec, Path()))
        except PipelineError as error:
            raise PipelineError(f"sources.{name}: {error}") from error


def _check_windows(spec: PipelineSpec) -> None:
    """Refuse windows of which Spark would not know when they are over."""
    for name, step in spec.steps.items():
        if not isinstance(step, WindowStep):
            continue
        if not step.aggregates:
            raise PipelineError(f'steps.{name}.aggregates: expected at least one, such as trades = "count(*)"')
        for column in (*step.by, *step.aggregates):
            if column in ("start", "end") or [*step.by, *step.aggregates].count(column) > 1:
                raise PipelineError(
                    f"steps.{name}: `{column}` stands for two columns, of start, end, by and aggregates"
                )
        sources, steps = upstream(spec, name)
        for source in sources:
            if not spec.sources[source].watermark:
                raise PipelineError(
                    f"steps.{name}.window: windows of `{source}` would never be over; say how late events may come, "
                    f'such as watermark = "10 seconds" in sources.{source}'
                )
        for other in steps:
            if other != name and isinstance(spec.steps[other], WindowStep):
                raise PipelineError(f"steps.{name}.window: `{other}` has windows already")


def _check_outputs(spec: PipelineSpec) -> None:
    places: dict[tuple[str, str], str] = {}
    for name, output in spec.outputs.items():
        place = ("table", output.table) if isinstance(output, TableOutput) else ("channel", output.channel)
        if place in places:
            raise PipelineError(f"outputs.{name}.{place[0]}: `{place[1]}` is what `{places[place]}` writes to already")
        places[place] = name
        if isinstance(output, ChannelOutput):
            _check_channel(name, output, spec)


def _check_channel(name: str, output: ChannelOutput, spec: PipelineSpec) -> None:
    place = f"outputs.{name}"
    if output.intake:
        try:
            check_channel_name(output.channel)
        except AddressError as error:
            raise PipelineError(f"{place}.channel: with an intake of its own, {error}") from error
    elif "://" not in output.channel and not spec.names:
        raise PipelineError(
            f"{place}: channel `{output.channel}` is only a name; give the address of a name server as `names`, an id "
            "echoic://HOST:PORT/NAME, or a folder as `intake` to have the channel in the pipeline's own hub"
        )
