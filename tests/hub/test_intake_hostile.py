"""What strangers may send to an intake: whatever it is, they are answered, and others are served."""

from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from echoic.errors import DeliveryError, EchoicError, RemoteError
from echoic.formats import format_of_text
from echoic.hub.intake_messages import (
    COMMIT,
    STAGE,
    CarriedPart,
    Portion,
    answer_in,
    batch_of_body,
    bodies_of,
    encode_parts,
    intake_name,
    parts_of,
)
from echoic.wire import Batch
from tests.conftest import StartHub
from tests.hub.intake_parties import Writer, body, recorded
from tests.hub.parties import Tick

SEEDS = range(40)
ROUNDS = 60
WORDS = (0, 1, 7, 8, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF)


def whole_bodies() -> list[bytes]:
    rich = format_of_text("Rich{letter: int8, names: str[], weights: float32[], text: str, data: bytes}")
    events = [
        {"letter": n, "names": ["a" * n, "b"], "weights": [n / 2] * n, "text": "text" * n, "data": b"\0\xff" * n}
        for n in range(5)
    ]
    empty = format_of_text("Nothing{text: str, inner: Inner{a: float, b: char[3]}}")
    return [
        body(range(3)),
        *bodies_of(Batch.of(events, rich)),
        *bodies_of(Batch.of([{"text": "", "inner": {"a": 1.0, "b": b"xyz"}}], empty)),
    ]


def spoiled(random: Random, data: bytes) -> bytes:
    """Return bytes that were right: turned round, cut, doubled, or with another length where one may stand."""
    made = bytearray(data)
    for _ in range(random.randint(1, 4)):
        place = random.randrange(len(made) or 1)
        match random.randrange(5):
            case 0:
                made[place : place + 1] = bytes([random.randrange(256)])
            case 1:
                del made[place:]
            case 2:
                made[place : place + 4] = random.choice(WORDS).to_bytes(4, "little")
            case 3:
                made[place:place] = made[place : place + random.randrange(40)]
            case _:
                del made[place : place + random.randrange(1, 9)]
    return bytes(made)


@pytest.mark.parametrize("seed", SEEDS)
def test_spoiled_bodies_are_told_or_are_batches_that_can_be_read_or_told(seed: int) -> None:
    random = Random(seed)
    for data in whole_bodies() * ROUNDS:
        try:
            batch = batch_of_body(spoiled(random, data))
        except RemoteError:
            continue
        with suppress(EchoicError):
            batch.to(Tick)


@pytest.mark.parametrize("seed", SEEDS)
def test_spoiled_commits_are_told(seed: int) -> None:
    random = Random(seed)
    whole = encode_parts([CarriedPart(0, 1, 1, (body([1]),)), CarriedPart(2**40, 2**60, 70_000)])
    for _ in range(10 * ROUNDS):
        try:
            parts = parts_of(spoiled(random, whole))
        except RemoteError:
            continue
        assert all(isinstance(each, CarriedPart) for each in parts)


def test_an_intake_answers_every_request_in_words_and_goes_on(
    start_hub: StartHub, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    intake = start_hub().intake("ticks", tmp_path, Tick)
    hub, random = start_hub(), Random(7)
    source = hub.open(intake_name(intake.channel.id), Portion).source()
    bodies = [*whole_bodies(), encode_parts([CarriedPart(0, 1, 1, (body([1]),))])]
    for _ in range(400):
        numbers = {name: random.choice((0, 1, -1, 2**31, 2**63 - 1, -(2**63))) for name in ("partition", "attempt")}
        with pytest.raises(DeliveryError) as told:
            source.submit_sync(
                Portion(
                    query=random.choice(("a", "", "x" * 300, "\0", "é" * 200)),
                    epoch=random.choice((0, -1, 2**63 - 1)),
                    kind=random.choice((STAGE, COMMIT, COMMIT, 4, -1)),
                    index=random.choice((0, 0, 1, -1, 2**31 - 1)),
                    body=spoiled(random, random.choice(bodies)) if random.random() < 0.8 else random.choice(bodies),
                    **numbers,
                ),
                30,
            )
        assert answer_in(told.value) is not None
    assert caplog.text == ""
    before = recorded(tmp_path)
    Writer(hub, intake.channel.id, "honest").write(0, [5])
    assert recorded(tmp_path) == [*before, 5]
