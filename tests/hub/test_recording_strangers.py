"""Peers that break rules do not keep others from being recorded."""

from pathlib import Path

from echoic import Hub
from echoic.formats import event
from echoic.hub import SourceState
from echoic.recorder.blocks import BLOCK_PAYLOAD_BYTES_MAX
from tests.hub.parties import Tick, eventually
from tests.hub.recorded import submit


@event
class Picture:
    pixels: bytes


def test_numbers_that_no_journal_can_have_do_not_end_the_recording(tmp_path: Path) -> None:
    with Hub() as manager, Hub() as hub:
        channel = manager.create("ticks", Tick)
        recording = hub.record(channel.id, tmp_path)
        stranger = channel.source(resume=SourceState(channel.id, 78, 2**64 - 1))
        stranger.submit_batch([Tick(0, number) for number in range(3)])
        stranger.flush()
        with channel.source() as source:
            submit(source, range(10))
            assert recording.heads == (10,)
            eventually(lambda: recording.statistics().waiting_bytes == 0)
            submit(source, range(10, 20))
            assert recording.heads == (20,)


def test_an_event_that_no_journal_can_have_does_not_end_the_recording(tmp_path: Path) -> None:
    with Hub() as hub:
        pictures = hub.create("pictures", Picture)
        recording = hub.record(pictures.id, tmp_path)
        with pictures.source() as huge, pictures.source() as source:
            huge.submit(Picture(bytes(BLOCK_PAYLOAD_BYTES_MAX)))
            source.submit(Picture(b"small"))
            eventually(lambda: recording.heads == (1,))
            assert not recording.trouble
