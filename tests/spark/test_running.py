"""How a pipeline ends when something happens that nobody foresaw."""

import os
import stat
from contextlib import ExitStack
from pathlib import Path

import pytest

from echoic.errors import PipelineError
from echoic.spark.pipeline.progress import Watcher
from echoic.spark.pipeline.running import Running
from echoic.spark.pipeline.state import Run, StateFolder


def test_an_error_of_any_kind_ends_it_as_failed_and_whoever_waits_hears_of_it(tmp_path: Path) -> None:
    def breaks() -> None:
        raise ValueError("something that nobody foresaw")

    resources = ExitStack()
    resources.callback(breaks)
    with StateFolder(tmp_path) as state:
        running = Running(Run.by_this_process("odd"), state, [], Watcher("odd", {}, lambda _: None), resources)
        with pytest.raises(PipelineError, match="something that nobody foresaw"):
            running.wait(10)
    assert (running.over, running.run.state) == (True, "failed")
    assert isinstance(running.cause, ValueError)


def test_the_state_of_a_pipeline_is_its_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with StateFolder(tmp_path / "state" / "market") as state:
            state.keep_run(Run.by_this_process("market"))
    finally:
        os.umask(before)
    folders = (tmp_path / "state", tmp_path / "state" / "market")
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in folders] == [0o700, 0o700]
    assert stat.S_IMODE((folders[1] / "lock").stat().st_mode) == 0o600
