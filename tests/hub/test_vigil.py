"""The vigil of a hub over its files."""

from pathlib import Path

import pytest

from echoic.hub import vigil
from echoic.hub.vigil import Vigil
from echoic.trust import load_rights


def test_a_file_of_rights_that_is_empty_for_a_moment_takes_no_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vigil, "LOOK_SECONDS", 3600.0)  # the test looks itself
    file = tmp_path / "rights"
    file.touch(0o600)
    file.write_text("allow alice publish *\n")
    counted: list[bool] = []
    watch = Vigil({file: lambda: counted.append(bool(load_rights(file).decide("alice", "publish", "trades")))})

    file.write_text("")  # as it is while it is being written
    watch.look()
    file.write_text("allow alice publish,subscribe *\n")
    for _ in range(3):
        watch.look()
    assert counted == [True]

    file.write_text("")
    watch.look()
    watch.look()
    assert counted == [True, False]
    watch.close()
