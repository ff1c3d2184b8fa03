"""A durable sink whose recorder is killed: it waits, finds the next one, and gets every event once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from echoic import Hub, Stamp
from echoic.testing.kill_roles import Tick
from tests.system.processes import Start, processes, wait_until

pytestmark = pytest.mark.system

WORKER = Path(__file__).with_name("recording_worker.py")


@pytest.fixture
def start() -> Iterator[Start]:
    with processes(WORKER) as start:
        yield start


def test_a_sink_lives_through_the_deaths_of_its_recorder(start: Start, tmp_path: Path) -> None:
    channel = start("manage").started["id"]
    recorder = start("record", channel=channel, path=str(tmp_path))
    assert recorder.started["journal"]
    source = start("publish", channel=channel, producer=1)
    got: list[int] = []

    def handle(tick: Tick, stamp: Stamp) -> None:
        assert stamp.sequence == len(got)
        got.append(tick.number)

    with Hub() as hub, hub.open(channel, Tick).resume(handle, name="billing") as sink:
        for number in range(3):
            source.ask("submit 1000")
            recorder.kill()
            source.ask("submit 1000")
            if number % 2:
                wait_until(lambda: sink.trouble, "it has missed the recorder")
            recorder = start("record", channel=channel, path=str(tmp_path))
            assert recorder.started["journal"]
        assert source.ask("drain 30")["problem"] == ""
        wait_until(lambda: len(got) >= 6000, "everything has come")
    assert got == list(range(6000))
    assert sink.trouble == ""
    assert sink.statistics().kept == (6000,)
