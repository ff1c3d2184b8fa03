"""The browser's decoder on frames that somebody has damaged: it takes them or refuses them, as Python's does.

A page has no other guard between the socket and what it draws. So thousands of frames are made from a seed: samples of
every kind that hubs say, of several machines' layouts, damaged below the checksum and now and then above it. Whatever
comes must be taken or refused with a `WireError`, in little memory, and end. On formats and events, which are what a
page is sent, both languages must agree: on what is refused, and on every value of what is not; and what a page reads as
columns must be what it reads as events.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from echoic.errors import EchoicError
from echoic.formats import ARCHITECTURES, Format, Registry
from echoic.testing.mutation import Mutator
from echoic.testing.samples import sample_events
from echoic.wire import Batch, FrameKind, decode_formats, encode_formats, encode_frame, parse_batch
from tests.golden import make

pytestmark = [pytest.mark.system, pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")]

PROGRAM = Path(__file__).with_name("try_decoder.mjs")
FRAMES = 6000
MEMORY_MB = 192
EVENTS_HEADER = bytes(range(16))  # the sequence and the source of a run
COMPARED = {FrameKind.FORMATS, FrameKind.EVENTS}
PATIENCE_SECONDS = 120.0


class Damaged(NamedTuple):
    """A frame, what was damaged in it, and whether the frame itself is whole."""

    kind: FrameKind
    payload: bytes
    data: bytes
    sealed: bool


def sample_batches() -> list[Batch]:
    """Return batches of every kind of field, as several machines lay them out."""
    found = list(make.samples().values())
    for events in sample_events():
        batch = Batch.of(events)
        found += [batch.to(batch.format.on(ARCHITECTURES[name])) for name in ("x86_64", "sparc32", "i386", "packed")]
    return found


def sample_payloads(batches: list[Batch]) -> list[tuple[FrameKind, bytes]]:
    """Return what hubs say, of every kind that the decoder knows; events are as many as all else."""
    vectors = json.loads(make.GOLDEN.read_text(encoding="utf-8"))
    said = [bytes.fromhex(one["bytes"]) for name in ("conversation", "hub_frames") for one in vectors[name]]
    others = {(FrameKind(frame[4]), frame[16 : 16 + int.from_bytes(frame[:4], "little")]) for frame in said}
    others |= {(FrameKind.FORMATS, encode_formats([batch.format])) for batch in batches}
    events = [(FrameKind.EVENTS, b"".join(batch.buffers())) for batch in batches]
    return [*sorted(others), *events * (len(others) // len(events) + 1)]


def damaged_frames(seed: int, batches: list[Batch]) -> Iterator[Damaged]:
    chance = Random(seed)
    samples = sample_payloads(batches)
    mutator = Mutator(chance, [payload for _, payload in samples])
    for _ in range(FRAMES):
        kind, sample = chance.choice(samples)
        payload = bytearray(sample)
        if chance.random() < 0.95:
            mutator.damage_often(payload)
        whole = EVENTS_HEADER + payload if kind is FrameKind.EVENTS else bytes(payload)
        data = bytearray(b"".join(encode_frame(kind, [whole], channel=1, checked=chance.random() < 0.5)))
        sealed = chance.random() < 0.9
        if not sealed:
            mutator.damage(data)
        yield Damaged(kind, bytes(payload), bytes(data), sealed)


def by_python(frame: Damaged, registry: Registry) -> object:
    """Return what a payload says, as the golden vectors spell it; None if it is refused."""
    try:
        match frame.kind:
            case FrameKind.FORMATS:
                return sorted(f"{format.token:016x}" for format in decode_formats(frame.payload, Registry()))
            case _:
                batch = parse_batch(frame.payload, registry)
                return [f"{batch.format.token:016x}", make.events_of(batch)]
    except EchoicError:
        return None


def by_javascript(answer: dict[str, Any]) -> object:
    if "taken" not in answer:
        return None
    ((kind, content),) = ((one["kind"], one["content"]) for one in answer["taken"])
    match FrameKind(kind):
        case FrameKind.FORMATS:
            return sorted(content["tokens"])
        case _:
            return [content["token"], content["events"]]


def tried(frames: list[Damaged], formats: list[Format], folder: Path) -> list[dict[str, Any]]:
    (folder / "frames").write_text("\n".join(frame.data.hex() for frame in frames), encoding="ascii")
    (folder / "formats").write_text(encode_formats(formats).hex(), encoding="ascii")
    command = ["node", f"--max-old-space-size={MEMORY_MB}", str(PROGRAM), folder / "frames", folder / "formats"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    # JavaScript spells a large float without an exponent, which is an integer in JSON.
    return [json.loads(line, parse_int=float) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("seed", [1, 23])
def test_damaged_frames_are_taken_or_refused_and_never_anything_else(seed: int, tmp_path: Path) -> None:
    batches = sample_batches()
    registry = Registry()
    formats = {batch.format.token: batch.format for batch in batches}
    for format in formats.values():
        registry.add(format)
    frames = list(damaged_frames(seed, batches))
    answers = tried(frames, list(formats.values()), tmp_path)
    assert len(answers) == FRAMES
    assert [answer for answer in answers if "broken" in answer] == []
    outcomes = {"taken": 0, "refused": 0}
    for number, (frame, answer) in enumerate(zip(frames, answers, strict=True)):
        if frame.sealed and frame.kind in COMPARED:
            outcomes["taken" if "taken" in answer else "refused"] += 1
            told = f"seed {seed}, frame {number}, {frame.kind.name} {frame.payload.hex()}: {answer.get('refused')}"
            assert by_javascript(answer) == by_python(frame, registry), told
    assert min(outcomes.values()) > FRAMES / 20, outcomes  # so that both ways are tried
