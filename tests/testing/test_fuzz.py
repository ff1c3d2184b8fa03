"""The fuzzer of frames, short; trial 7 (`echoic soak frames`) and `echoic fuzz frames --count N` are the campaigns."""

from random import Random

import pytest

from echoic.testing import FrameFuzzer
from echoic.wire import reader


def test_the_mutations_reach_every_parser_below_the_checksum() -> None:
    report = FrameFuzzer(Random(1)).run(5_000)
    assert report.findings == []
    assert report.accepted + sum(report.refused.values()) == report.frames == 5_000
    assert report.accepted > 500
    for error in ("MalformedFormatError", "MalformedBatchError", "MalformedFrameError", "UnknownFormatError"):
        assert report.refused[error] > 50


def test_a_reader_that_forgets_a_check_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "utf8", lambda data, path: data.decode())
    report = FrameFuzzer(Random(3)).run(20_000)
    assert report.findings
    assert "UnicodeDecodeError" in report.findings[0].error
