"""The desk of a recorder: what it answers, whom it lets wait, what it refuses."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from echoic import Hub
from echoic.channels import Fetch, Fetched, Mark, Marked, Message, Refused
from echoic.errors import JournalError, RefusedError
from echoic.hub import Channel
from echoic.hub.desk import ANSWER_BYTES_MAX, SINKS_MAX, WAITING_MAX
from tests.hub.parties import eventually
from tests.hub.recorded import Recorded, submit

M = TypeVar("M")
MEBIBYTE = 1024 * 1024


class Asker:
    """Somebody in another hub, who asks the recorder."""

    def __init__(self, recorded: Recorded, channel: Channel) -> None:
        self.recorded = recorded
        self.channel = channel
        self.board = channel.endpoints.switchboard

    def ask(self, message: Message, expected: type[M]) -> M:
        return self.board.ask(self.recorded.recorder.address, message, expected)

    def post(self, message: Message, answer: Callable[[Message], None]) -> None:
        """Ask, and do not wait."""
        self.board.do(lambda core: core.ask(self.recorded.recorder.address, message, answer))

    def fetch(self, sequence: int, bytes_max: int = MEBIBYTE, partition: int = 0, **more: object) -> Fetched:
        return self.ask(Fetch(self.channel.id, partition, sequence, bytes_max, **more), Fetched)


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Recorded]:
    recorded = Recorded(tmp_path)
    yield recorded
    recorded.close()


@pytest.fixture
def asker(recorded: Recorded) -> Iterator[Asker]:
    with Hub() as hub:
        yield Asker(recorded, recorded.open(hub))


def test_blocks_begin_with_the_one_that_holds_what_is_asked_for(recorded: Recorded, asker: Asker) -> None:
    submit(recorded.source, range(100))
    submit(recorded.source, range(100, 200))
    fetched = asker.fetch(150)
    assert (fetched.sequence, fetched.end, fetched.heads, fetched.firsts) == (100, 200, (200,), (0,))
    assert fetched.journal == recorded.recording.journal
    assert fetched.blocks
    assert fetched.formats


def test_what_is_not_there_yet_is_answered_without_blocks_when_nobody_wants_to_wait(
    recorded: Recorded, asker: Asker
) -> None:
    assert asker.fetch(0).blocks == b""
    submit(recorded.source, range(3))
    fetched = asker.fetch(3)
    assert (fetched.blocks, fetched.end, fetched.heads) == (b"", 0, (3,))


def test_a_commit_answers_whoever_waits_for_it(recorded: Recorded, asker: Asker) -> None:
    answers: list[Message] = []
    for _ in range(20):
        asker.post(Fetch(asker.channel.id, 0, 0, MEBIBYTE, 5_000_000_000), answers.append)
    eventually(lambda: recorded.recording.desk.statistics().waiting == 20)
    assert not answers
    submit(recorded.source, range(7))
    eventually(lambda: len(answers) == 20)
    assert {answer.end for answer in answers if isinstance(answer, Fetched)} == {7}


def test_one_who_waits_long_enough_is_told_that_nothing_has_come(asker: Asker) -> None:
    assert asker.fetch(0, wait_ns=50_000_000).heads == (0,)
    assert asker.fetch(0, bytes_max=0, wait_ns=50_000_000).heads == (0,)


def test_partitions_take_turns_for_one_who_follows_all_of_them(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path, partitions=3)
    with Hub() as hub:
        asker = Asker(recorded, recorded.open(hub))
        sources = [recorded.channel.source() for _ in range(24)]
        for source in sources:
            submit(source, range(10))
        heads = recorded.recording.heads
        assert sum(heads) == 240
        filled = [partition for partition, head in enumerate(heads) if head]
        answers = [asker.fetch(0, partition=start, positions=(0, 0, 0)).partition for start in range(3)]
        assert set(answers) == set(filled)
        assert asker.fetch(0, positions=heads).blocks == b""
    recorded.close()


def test_an_answer_is_bounded_whatever_is_asked_for(recorded: Recorded, asker: Asker) -> None:
    for start in range(0, 400_000, 50_000):
        submit(recorded.source, range(start, start + 50_000))
    fetched = asker.fetch(0, bytes_max=1 << 40)
    assert 0 < len(fetched.blocks) <= ANSWER_BYTES_MAX + MEBIBYTE
    assert 0 < fetched.end < 400_000
    assert asker.fetch(0, bytes_max=1).end > 0, "one block comes even if it is larger than wished"


@pytest.mark.parametrize(
    ("fetch", "words"),
    [
        (("partition", -1), "there is no partition -1"),
        (("partition", 1), "there is no partition 1"),
        (("partition", 1 << 62), "there is no partition"),
        (("sequence", -1), "a position is -1"),
        (("positions", (0, 0)), "got 2 positions, the journal has 1"),
        (("positions", (-5,)), "a position is -5"),
    ],
)
def test_a_place_that_cannot_be_is_refused(
    recorded: Recorded, asker: Asker, fetch: tuple[str, object], words: str
) -> None:
    submit(recorded.source, range(3))
    wanted: dict[str, object] = {"partition": 0, "sequence": 0, "bytes_max": 1000, fetch[0]: fetch[1]}
    with pytest.raises(RefusedError, match=words):
        asker.ask(Fetch(asker.channel.id, **wanted), Fetched)


def test_a_place_that_the_journal_has_not_reached_is_an_error_of_the_journal(recorded: Recorded, asker: Asker) -> None:
    submit(recorded.source, range(3))
    with pytest.raises(JournalError, match="event 4 is not in the journal, which goes on with 3"):
        asker.fetch(4)


def test_too_many_who_wait_are_refused_and_the_others_served(recorded: Recorded, asker: Asker) -> None:
    answers: list[Message] = []
    for _ in range(WAITING_MAX + 10):
        asker.post(Fetch(asker.channel.id, 0, 0, 1000, 5_000_000_000), answers.append)
    eventually(lambda: len(answers) == 10)
    assert all(isinstance(answer, Refused) for answer in answers)
    assert recorded.recording.desk.statistics().waiting == WAITING_MAX
    submit(recorded.source, range(1))
    eventually(lambda: len(answers) == WAITING_MAX + 10)
    assert sum(isinstance(answer, Fetched) for answer in answers) == WAITING_MAX


def test_whoever_waits_is_told_that_the_recording_has_ended(recorded: Recorded, asker: Asker) -> None:
    answers: list[Message] = []
    asker.post(Fetch(asker.channel.id, 0, 0, 1000, 5_000_000_000), answers.append)
    eventually(lambda: recorded.recording.desk.statistics().waiting == 1)
    recorded.recording.close()
    eventually(lambda: answers)
    assert isinstance(answers[0], Refused)
    with pytest.raises(RefusedError, match="not recorded here"):
        asker.fetch(0)


def test_a_mark_is_kept_in_the_journal_and_found_by_the_next_recorder(recorded: Recorded, asker: Asker) -> None:
    submit(recorded.source, range(10))
    assert asker.ask(Mark(asker.channel.id, "billing"), Marked).positions == ()
    assert asker.ask(Mark(asker.channel.id, "billing", (7,)), Marked).positions == (7,)
    recorded.stop()
    recorded.start()
    assert asker.ask(Mark(asker.channel.id, "billing"), Marked).positions == (7,)
    assert asker.ask(Mark(asker.channel.id, "other"), Marked).positions == ()


@pytest.mark.parametrize("positions", [(11,), (-1,), (1, 1)])
def test_a_mark_where_the_journal_is_not_is_refused(
    recorded: Recorded, asker: Asker, positions: tuple[int, ...]
) -> None:
    submit(recorded.source, range(10))
    with pytest.raises((RefusedError, JournalError)):
        asker.ask(Mark(asker.channel.id, "billing", positions), Marked)


@pytest.mark.parametrize("name", ["", "x" * 300, "é" * 100])
def test_a_mark_for_what_cannot_be_a_name_is_refused(recorded: Recorded, asker: Asker, name: str) -> None:
    submit(recorded.source, range(10))
    with pytest.raises(RefusedError, match="name of a sink"):
        asker.ask(Mark(asker.channel.id, name, (1,)), Marked)


def test_a_name_leads_nowhere_else(recorded: Recorded, asker: Asker, tmp_path: Path) -> None:
    submit(recorded.source, range(10))
    for name in ("../../stray", "..", "/stray", "a/b", "\0"):
        asker.ask(Mark(asker.channel.id, name, (3,)), Marked)
        assert asker.ask(Mark(asker.channel.id, name), Marked).positions == (3,)
    assert len(list((tmp_path / "ticks" / "sinks").iterdir())) == 5


def test_nobody_fills_the_journal_with_names(recorded: Recorded, asker: Asker, tmp_path: Path) -> None:
    submit(recorded.source, range(10))
    folder = tmp_path / "ticks" / "sinks"
    folder.mkdir(exist_ok=True)
    for number in range(SINKS_MAX):
        (folder / f"sink-{number}.json").write_bytes(b"")
    with pytest.raises(RefusedError, match="which is the limit"):
        asker.ask(Mark(asker.channel.id, "one-more", (1,)), Marked)


def test_names_that_are_refused_take_no_place_of_others(recorded: Recorded, asker: Asker) -> None:
    submit(recorded.source, range(3))
    for number in range(SINKS_MAX):
        with pytest.raises(RefusedError, match="when quoted, got 200"):
            asker.ask(Mark(asker.channel.id, f"{number:02000}", (1,)), Marked)
    assert asker.ask(Mark(asker.channel.id, "billing", (2,)), Marked) == Marked((2,))


def test_reading_holds_up_neither_the_recorder_nor_the_sources(recorded: Recorded, asker: Asker) -> None:
    submit(recorded.source, range(50_000))
    ended = threading.Event()
    fetched: list[int] = []

    def read() -> None:
        while not ended.is_set():
            fetched.append(asker.fetch(0).end)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for start in range(50_000, 60_000, 100):
        submit(recorded.source, range(start, start + 100))
    ended.set()
    for thread in threads:
        thread.join()
    assert recorded.recording.heads == (60_000,)
    assert fetched
