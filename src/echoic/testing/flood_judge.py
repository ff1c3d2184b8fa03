"""What becomes of a flood of frames, and whether that is right.

Each stream gets a reader of its own and arrives in one piece or in several. Right is: every whole frame is read,
whatever was at the end; a frame that was damaged above its checksum is never given out; the only errors are those that
a reader declares, and a stream that has ended by one stays ended. Some streams come a second time, cut elsewhere, and
must give the same frames and the same error. The frames of some streams go on to the parsers of their kind, which take
them or refuse them as declared.

A frame counts when a reader has looked at its header, by the reader's own count. So nothing counts that stood behind
the end of its stream.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from echoic.errors import EchoicError, LimitExceededError, MalformedFrameError
from echoic.testing.frame_flood import Stream
from echoic.wire import Frame, FrameKind, FrameReader

__all__ = ["FloodJudge", "Parse"]

CUT_SHARE: Final = 0.25
PIECES_MAX: Final = 4
AGAIN_EVERY: Final = 32
PARSED_EVERY: Final = 16
PROBLEMS_MAX: Final = 20

Parse = Callable[[memoryview], object]


class FloodJudge:
    """Gives streams to readers and parsers, and keeps what is wrong."""

    def __init__(self, random: Random, parsers: Mapping[FrameKind, Parse]) -> None:
        """Start to judge.

        Args:
            random: Where chance comes from.
            parsers: What reads the payloads of a kind.
        """
        self._random = random
        self._parsers = parsers
        self._streams = 0
        self.frames = 0
        """How many frames readers have looked at."""
        self.parsed = 0
        """How many payloads parsers have looked at."""
        self.refused: Counter[str] = Counter()
        self.problems: list[str] = []

    def judge(self, stream: Stream) -> None:
        """Let a stream arrive."""
        self._streams += 1
        cuts = self._cuts(len(stream.data)) if self._random.random() < CUT_SHARE else []
        reader = FrameReader()
        frames, error, problem = _arrive(reader, stream.data, cuts)
        statistics = reader.statistics()
        self.frames += statistics.frames + (error is not None or statistics.pending_bytes > 0)
        self.refused[error or "none"] += 1
        problem = problem or _wrong(stream, statistics.frames, error)
        if not problem and self._streams % AGAIN_EVERY == 0:
            problem = self._again(stream.data, frames, error)
        if not problem and self._streams % PARSED_EVERY == 0:
            problem = self._parse(frames)
        if problem and len(self.problems) < PROBLEMS_MAX:
            self.problems.append(f"{problem}; the stream, cut at {cuts}: {stream.data.hex()}")

    def _cuts(self, size: int) -> list[int]:
        return sorted(self._random.randrange(size + 1) for _ in range(self._random.randrange(1, PIECES_MAX)))

    def _again(self, data: bytes, frames: list[Frame], error: str | None) -> str:
        """Return in what a stream differs that is cut elsewhere, "" if in nothing."""
        cuts = self._cuts(len(data))
        frames_again, error_again, problem = _arrive(FrameReader(), data, cuts)
        if problem or (frames, error) == (frames_again, error_again):
            return problem
        return (
            f"{len(frames)} frames and then {error or 'no error'}, but cut at {cuts} {len(frames_again)} and then "
            f"{error_again or 'no error'}"
        )

    def _parse(self, frames: list[Frame]) -> str:
        for frame in frames:
            parse = self._parsers.get(frame.kind)
            if parse is None:
                continue
            self.parsed += 1
            try:
                parse(frame.payload)
            except EchoicError as error:
                self.refused[type(error).__name__] += 1
            except Exception as error:  # noqa: BLE001 - what the flood is for
                return f"{error!r} from the parser of {frame.kind.name}, for {frame.payload.hex()}"
        return ""


def _arrive(reader: FrameReader, data: bytes, cuts: list[int]) -> tuple[list[Frame], str | None, str]:
    """Return the frames of a stream, the declared error that ended it, and what else went wrong."""
    frames: list[Frame] = []
    start = 0
    try:
        for end in (*cuts, len(data)):
            frames += reader.receive(data[start:end])
            start = end
        reader.receive(b"")  # an error behind whole frames comes with the next call
    except (MalformedFrameError, LimitExceededError) as error:
        return frames, type(error).__name__, _goes_on(reader)
    except Exception as error:  # noqa: BLE001 - what the flood is for
        return frames, None, f"{error!r} from a reader of frames"
    return frames, None, ""


def _goes_on(reader: FrameReader) -> str:
    """Return that a stream goes on behind its error, "" if it does not."""
    try:
        reader.receive(bytes(16))
    except (MalformedFrameError, LimitExceededError):
        return ""
    return "a stream went on behind its error"


def _wrong(stream: Stream, frames: int, error: str | None) -> str:
    """Return what is wrong with how far a stream was read, "" if nothing."""
    if frames < stream.whole:
        return f"{stream.whole} frames were whole, {frames} were read, and then {error or 'no error'}"
    if stream.cut and error is not None:
        return f"{error} from a frame of which nothing was changed but that its end is missing"
    if stream.cut and frames > stream.whole:
        return "a frame was read whose end is missing"
    if stream.sealed and frames > stream.whole:
        return "a frame was read that was damaged above its checksum"
    return ""
