"""Trial 7: frames that were changed, cut and spliced, below and above their checksums.

A *frame* is a header and a payload that were made hostile and given to the product. Of a thousand frames

    998  are part of a flood (`frame_flood`) that readers of frames look at, about 13 of them also the parsers of their
         kind: hello, descriptors, batches, messages of hubs and of groups
      1  is taken apart in every way there is (`FrameFuzzer`): both decoders, both conversions, Arrow
      1  is said by a hostile neighbour to a whole hub at work (`ChannelFuzzer`)

and the figures say how many of each there were. Frames of the flood count by the readers' own count. Four million
frames are a slice, each with a generator of its own; a slice is the same again by seed and number. Campaigns of more
than `ALONE_MAX` frames use every processor. One processor makes and tries about 400,000 in a second.

Memory is measured in each process, from when everything has run once (deep frames load Arrow and compile conversions)
to the end of its last slice.
"""

import os
import resource
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import closing
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import msgspec
import numpy

from echoic.channels import messages
from echoic.formats import Registry
from echoic.groups import messages as group_messages
from echoic.testing.channel_fuzzer import ChannelFuzzer
from echoic.testing.flood_judge import FloodJudge, Parse
from echoic.testing.frame_flood import FrameFlood
from echoic.testing.fuzz import FrameFuzzer, Fuzzer
from echoic.testing.trials.pools import pool
from echoic.testing.trials.trial import PROBLEMS_MAX, Findings, Tell
from echoic.wire import FrameKind, decode_formats, decode_hello, parse_batch

__all__ = ["run"]

SLICE_FRAMES: Final = 4_000_000
ALONE_MAX: Final = 50_000_000
DEEP_EVERY: Final = 1000
GROWTH_BYTES_MAX: Final = 20_000_000
WARM_FRAMES: Final = 1000
STEPS: Final = 10


class Slice(msgspec.Struct, frozen=True):
    """What became of the frames of a slice."""

    process: int
    read: int
    parsed: int
    decoded: int
    heard: int
    refused: dict[str, int]
    problems: list[str]
    seconds: float
    warm_bytes: int
    end_bytes: int

    @property
    def frames(self) -> int:
        """How many there were; those that were parsed had been read."""
        return self.read + self.decoded + self.heard


def run(size: int, seed: int, tell: Tell) -> Findings:
    """Try so many frames."""
    began = time.perf_counter()
    slices: list[Slice] = []
    with closing(_results(size, seed)) as results:
        for done in results:
            slices.append(done)
            tell(sum(one.frames for one in slices))
            if done.problems:
                break
    return _judge(slices, time.perf_counter() - began)


def _results(size: int, seed: int) -> Generator[Slice]:
    shares = [min(SLICE_FRAMES, size - start) for start in range(0, size, SLICE_FRAMES)]
    work = partial(_try_slice, seed)
    if size <= ALONE_MAX:
        yield from map(work, range(len(shares)), shares)
        return
    with pool(os.cpu_count() or 1) as workers:
        yield from workers.map(work, range(len(shares)), shares)


def _judge(slices: list[Slice], seconds: float) -> Findings:
    refused: Counter[str] = Counter()
    for one in slices:
        refused.update(one.refused)
    growth = max(_growth([one for one in slices if one.process == process]) for process in {s.process for s in slices})
    problems = [problem for one in slices for problem in one.problems][:PROBLEMS_MAX]
    if growth > GROWTH_BYTES_MAX:
        problems.append(f"memory grew by {growth} bytes, limit is {GROWTH_BYTES_MAX}")
    frames, processor = sum(one.frames for one in slices), sum(one.seconds for one in slices)
    figures: dict[str, int | float | str] = {
        "frames": frames,
        "read_by_readers": sum(one.read for one in slices),
        "then_parsed": sum(one.parsed for one in slices),
        "decoded_by_twins": sum(one.decoded for one in slices),
        "heard_by_a_hub": sum(one.heard for one in slices),
        "frames_per_processor_second": round(frames / processor) if processor else 0,
        "rss_growth_mb": round(growth / 1e6, 1),
        "seconds": round(seconds, 1),
    }
    figures |= {f"refused_by_{name}": count for name, count in sorted(refused.items()) if name != "none"}
    return Findings(tuple(problems), figures)


def _growth(slices: list[Slice]) -> int:
    return max(0, slices[-1].end_bytes - slices[0].warm_bytes)


def _try_slice(seed: int, number: int, size: int) -> Slice:
    """Try the frames of one slice."""
    began = time.process_time()
    random = Random(f"{seed}/{number}")
    deep = max(1, size // DEEP_EVERY)
    decoding, hearing = FrameFuzzer(random), ChannelFuzzer(random)
    flood = FrameFlood(numpy.random.default_rng([seed, number]), [*decoding.samples, *hearing.samples])
    judge = FloodJudge(random, _parsers(decoding.registry))
    warm_bytes = 0
    for step in range(1, STEPS + 1):
        until = max(deep * step // STEPS, min(deep, WARM_FRAMES))
        _fuzz(decoding, until)
        _fuzz(hearing, until)
        _flow(flood, judge, (size - 2 * deep) * step // STEPS)
        warm_bytes = warm_bytes or _resident_bytes()
    reports = [decoding.run(0), hearing.run(0)]
    problems = [f"slice {number}: {problem}" for problem in judge.problems]
    problems += [
        f"slice {number}: {finding.error}, for the {finding.kind} {finding.data.hex()}"
        for report in reports
        for finding in report.findings
    ]
    refused = Counter(judge.refused)
    for report in reports:
        refused.update(report.refused)
    return Slice(
        os.getpid(),
        judge.frames,
        judge.parsed,
        reports[0].frames,
        reports[1].frames,
        dict(refused),
        problems,
        time.process_time() - began,
        warm_bytes,
        _resident_bytes(),
    )


def _fuzz(fuzzer: Fuzzer, until: int) -> None:
    report = fuzzer.run(0)
    if not report.findings:
        fuzzer.run(max(0, until - report.frames))


def _flow(flood: FrameFlood, judge: FloodJudge, until: int) -> None:
    while judge.frames < until and not judge.problems:
        for stream in flood.next_streams():
            if judge.frames >= until:
                break
            judge.judge(stream)


def _parsers(registry: Registry) -> dict[FrameKind, Parse]:
    """Return what reads the payloads of each kind that has a parser of its own."""
    control: Callable[[memoryview], object] = messages.decode_message
    return {
        FrameKind.HELLO: decode_hello,
        FrameKind.FORMATS: lambda payload: decode_formats(payload, Registry()),
        FrameKind.EVENTS: lambda payload: parse_batch(payload, registry),
        FrameKind.CONTROL: control,
        FrameKind.GROUP: group_messages.decode_message,
    }


def _resident_bytes() -> int:
    """Return how much memory this process has, or the most it ever had where the system tells nothing else."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
