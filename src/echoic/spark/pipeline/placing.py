"""Where things of a pipeline are: paths relative to its folder, and sources as `format("echoic")` is told of them."""

import json
from pathlib import Path
from typing import assert_never

from echoic.spark.pipeline.spec import ChannelOutput, OutputSpec, PipelineSpec, SourceSpec, TableOutput

__all__ = ["checkpoint_of", "goal_of", "place_of", "source_options"]


def source_options(source: SourceSpec, spec: PipelineSpec, folder: Path) -> dict[str, str]:
    """Return the options of `format("echoic")` for a source."""
    given: dict[str, object] = {
        "journal": place_of(source.journal, folder),
        "channel": source.channel,
        "names": "" if source.journal else source.names or spec.names,
        "start": source.start,
        "declared": source.declared,
        "columns": ",".join(source.columns),
        "where": source.where,
        "derive": source.derive,
        "output": source.output,
        "params": json.dumps(source.params) if source.params else "",
        "statics": source.statics,
        "maxRowsPerBatch": source.max_rows_per_batch,
        "maxBytesPerBatch": source.max_bytes_per_batch,
        "splits": source.splits,
        "onLoss": source.on_loss,
        "onFault": source.on_fault,
    }
    return {name: str(value) for name, value in given.items() if value not in ("", None)}


def place_of(path: str, folder: Path) -> str:
    """Return a path relative to the folder of a pipeline; addresses such as s3a://bucket/tables stay as they are."""
    return path if not path or "://" in path else str(folder / path)


def checkpoint_of(spec: PipelineSpec, folder: Path, output: str) -> str:
    """Return where Spark keeps how far an output is."""
    return f"{place_of(spec.checkpoints or f'{spec.state}/checkpoints', folder)}/{output}"


def goal_of(output: OutputSpec) -> tuple[str, str]:
    """Return what kind of place an output writes to, and which."""
    match output:
        case TableOutput():
            return f"{output.format} table", output.table
        case ChannelOutput():
            return "channel", output.channel
        case _:
            assert_never(output)
