"""Trial 7: frames that were changed, cut and spliced."""

import numpy
import pytest

from echoic.channels import messages
from echoic.testing.frame_flood import BATCH_FRAMES, FrameFlood
from echoic.testing.trials import frames
from echoic.wire import FrameReader
from tests.reliability.trying import try_out


@pytest.mark.slow
def test_hostile_frames_are_read_or_refused_as_declared(request: pytest.FixtureRequest) -> None:
    figures = try_out(request, "frames").figures
    assert figures["then_parsed"] > figures["frames"] / 200
    for error in ("MalformedFrame", "LimitExceeded", "MalformedFormat", "MalformedBatch", "UnknownFormat"):
        assert figures[f"refused_by_{error}Error"] > figures["frames"] / 10_000


def found(size: int = 100_000) -> str:
    return "\n".join(frames.run(size, 1, lambda done: None).problems)


def test_a_reader_that_does_not_compare_checksums_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FrameReader, "_check", lambda *given: None)
    assert "damaged above its checksum" in found()


def test_a_reader_that_loses_a_frame_at_a_cut_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def set_aside(reader: FrameReader) -> None:
        if len(reader._held) == 24:  # noqa: SLF001 - a reader that is wrong
            reader._held.clear()  # noqa: SLF001

    monkeypatch.setattr(FrameReader, "_set_aside", set_aside)
    assert "frames" in found()


def test_a_parser_that_forgets_an_error_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "decode_message", lambda payload: bytes(payload).decode())
    assert "UnicodeDecodeError" in found()


def test_memory_that_grows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[bytes] = []
    monkeypatch.setattr(messages, "decode_message", lambda payload: kept.append(b"x" * 2**18))
    assert "memory grew" in found(200_000)


def test_all_frames_of_a_stream_but_the_last_are_whole_and_the_same_seed_makes_the_same() -> None:
    one, other = (FrameFlood(numpy.random.default_rng(5), [b"abc" * 9, b"1234"]).next_streams() for _ in range(2))
    assert one == other
    assert sum(stream.whole + 1 for stream in one) == BATCH_FRAMES
    assert any(stream.cut for stream in one)
    assert any(stream.sealed for stream in one)
