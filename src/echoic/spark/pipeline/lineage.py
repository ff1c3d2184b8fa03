"""Whether an output may go on from its checkpoint, though the pipeline was changed.

A checkpoint says how far each source was read, by the order of the sources in the query, and has the windows that are
not over, by their columns. Spark takes for granted that both still mean the same. Much can be changed between two runs:
the code of a derivation, parameters, a query's text, the trigger, limits. What cannot is kept beside the checkpoint as
an output's lineage and compared when the pipeline starts:

    which channels are read, from which journals, in which order
    windows: their length, slide, columns and aggregates
    where the output goes, for a table knows which batches it has

A change that is not seen here, such as a `group by` in a query that has other columns, is refused by Spark when it
finds that the state does not fit.
"""

from pathlib import Path
from typing import Final

import msgspec

from echoic.errors import PipelineError
from echoic.spark.pipeline.checking import upstream
from echoic.spark.pipeline.placing import checkpoint_of, goal_of
from echoic.spark.pipeline.spec import PipelineSpec, WindowStep
from echoic.spark.pipeline.state import StateFolder, write_json

__all__ = ["check_lineage", "keep_lineage", "lineage_of"]

FILE_BYTES_MAX: Final = 1 << 20


def lineage_of(spec: PipelineSpec, output: str) -> dict[str, str]:
    """Return what the checkpoint of an output depends on, by key."""
    sources, steps = upstream(spec, spec.outputs[output].origin)
    found = {"sources": ", ".join(_source(spec, name) for name in sources)}
    windows = [spec.steps[name] for name in steps]
    for at, step in enumerate([step for step in windows if isinstance(step, WindowStep)]):
        named = f"window {at + 1}" if at else "window"
        found |= {
            named: step.window + (f" every {step.slide}" if step.slide else ""),
            f"{named} by": ", ".join(step.by),
            f"{named} aggregates": ", ".join(f"{name} = {text}" for name, text in step.aggregates.items()),
        }
    return found | {"output": " ".join(goal_of(spec.outputs[output]))}


def check_lineage(state: StateFolder, spec: PipelineSpec, folder: Path, output: str) -> None:
    """Refuse to go on from a checkpoint that was made by something else.

    Raises:
        PipelineError: Saying what was changed, and what can be done.
    """
    path, checkpoint = state.spec(output), checkpoint_of(spec, folder, output)
    if not path.exists() or ("://" not in checkpoint and not Path(checkpoint).exists()):
        return
    try:
        with path.open("rb") as file:
            before = msgspec.json.decode(file.read(FILE_BYTES_MAX), type=dict[str, str])
    except (OSError, msgspec.MsgspecError) as error:
        raise PipelineError(f"cannot read {path}: {error}") from error
    current = lineage_of(spec, output)
    for key in [*current, *before]:
        if before.get(key) != current.get(key):
            raise PipelineError(
                f"outputs.{output} cannot go on from its checkpoint: {key} was `{before.get(key, 'nothing')}` and is "
                f"`{current.get(key, 'nothing')}`; undo that, or give the output another name, or remove {checkpoint} "
                "and what was written to begin anew"
            )


def keep_lineage(state: StateFolder, spec: PipelineSpec, output: str) -> None:
    """Write down what the checkpoint of an output depends on, before it is made.

    Raises:
        PipelineError: It cannot be written.
    """
    write_json(state.spec(output), lineage_of(spec, output))


def _source(spec: PipelineSpec, name: str) -> str:
    source = spec.sources[name]
    return f"{source.channel} in {source.journal}" if source.journal else source.channel
