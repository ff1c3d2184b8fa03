"""Trial 15: one flipped bit, anywhere; and readers that do not look at checksums, who are found out."""

import pytest

from echoic.recorder import reader, segment_reader
from echoic.recorder.blocks import BLOCK_HEAD_BYTES, HEAD, KINDS, BlockHead
from echoic.recorder.scanning import peek
from echoic.testing.trials.bit_rot import run
from echoic.wire import Buffer
from tests.reliability.trying import try_out

pytestmark = pytest.mark.slow


def test_every_flipped_bit_is_detected_never_delivered_and_the_rest_is_recovered(
    request: pytest.FixtureRequest,
) -> None:
    figures = try_out(request, "bit_rot").figures
    places = {"header", "FORMAT", "BATCH", "GAP", "POSITIONS", "COMMIT", "SEAL", "json"}
    assert {f"flips_in_{place}" for place in places} <= figures.keys()
    assert int(figures["recovered"]) > 100


def test_an_event_that_is_delivered_with_a_flipped_bit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_reader, "parse_block", believing)
    monkeypatch.setattr(reader, "parse_block", believing)
    (problem,) = run(500, 1, lambda done: None).problems
    assert "seed 1" in problem
    assert " bit " in problem


def believing(data: Buffer, offset: int, seed: int) -> BlockHead | None:
    """A parser that does not look at checksums."""
    if len(data) - offset < BLOCK_HEAD_BYTES:
        return None
    size, kind, *_ = HEAD.unpack_from(data, offset)
    if kind not in KINDS or size > len(data) - offset - BLOCK_HEAD_BYTES:
        return None
    return peek(memoryview(data), offset)
