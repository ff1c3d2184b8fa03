"""`echoic record`, beside publishers that come and go."""

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from echoic.cli.quantities import bytes_of, nanoseconds_of
from echoic.cli.record import Recorded, live_line
from echoic.errors import LocalError
from echoic.recorder import Journal
from tests.cli.terminals import PROGRAM, TRADE, Desk, desk, poll

HOUR_NS = 3_600_000_000_000


@pytest.fixture(scope="module")
def system() -> Iterator[Desk]:
    with desk() as made:
        made.start("up", f"trades={TRADE}", f"quotes={TRADE}").says("try: echoic ls")
        yield made


def volumes(path: Path, channel: str = "trades") -> list[int]:
    if channel not in Journal.channels(path):
        return []
    return [event["volume"] for recorded in Journal(path, channel).read() for event in recorded.batch.array]


def publish(system: Desk, *volumes: int, channel: str = "trades") -> None:
    pub = system.start("pub", channel, "--stdin")
    pub.type(*(json.dumps({"symbol": "IBM", "price": 75.5, "volume": volume}) for volume in volumes))
    assert pub.ends() == 0, pub.err


def listed_sinks(system: Desk) -> list[object]:
    info = system.start("info", "trades", "--json")
    assert info.ends() == 0, info.err
    sinks: list[object] = json.loads(info.out)["sinks"]
    return sinks


@pytest.mark.system
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_what_was_published_is_in_the_journal_when_the_recorder_is_told_to_end(
    system: Desk, tmp_path: Path, ending: int
) -> None:
    recorder = system.start("record", "trades", "quotes", "--to", str(tmp_path / "kept"), "--json")
    recorder.says("/quotes to ").says("/trades to ")
    publish(system, 1, 2, 3)
    publish(system, 4, channel="quotes")
    assert recorder.interrupt(ending) == 0
    trades, quotes = json.loads(recorder.out)
    assert (trades["channel"], trades["events"], trades["heads"]) == ("trades", 3, [3])
    assert (quotes["channel"], quotes["events"]) == ("quotes", 1)
    assert trades["bytes"] > 0
    assert "recorded 3 events of 'trades'" in recorder.err
    assert "recorded 1 event of 'quotes'" in recorder.err
    assert volumes(tmp_path / "kept") == [1, 2, 3]
    assert volumes(tmp_path / "kept", "quotes") == [4]


@pytest.mark.system
def test_a_journal_that_is_there_goes_on(system: Desk, tmp_path: Path) -> None:
    for volume in (1, 2):
        recorder = system.start("record", "trades", "--to", str(tmp_path))
        recorder.says("recording echoic://")
        assert ("which has 1 events" in recorder.err) == (volume == 2)
        publish(system, volume)
        assert recorder.interrupt() == 0
    assert volumes(tmp_path) == [1, 2]


@pytest.mark.system
def test_it_ends_by_itself_and_in_silence_when_told_so(system: Desk, tmp_path: Path) -> None:
    recorder = system.start("record", "trades", "--to", str(tmp_path), "--for", "0.5", "--quiet")
    assert (recorder.ends(), recorder.out, recorder.err) == (0, "", "")
    assert Journal.channels(tmp_path) == ["trades"]


@pytest.mark.system
def test_it_waits_for_a_channel_and_follows_it_into_another_hub(tmp_path: Path) -> None:
    with desk() as made:
        recorder = made.start("record", "ticks", "--to", str(tmp_path))
        recorder.says("waiting for channel 'ticks'")
        for volume in (1, 2):
            words = ["ticks", TRADE, f"{{symbol: IBM, price: 1.0, volume: {volume}}}"]
            publisher = made.start("pub", *words, "-r", "100")
            poll(lambda volume=volume: volume in volumes(tmp_path, "ticks"), f"events of publisher {volume}")
            assert publisher.interrupt() == 0
        assert recorder.interrupt() == 0
        found = volumes(tmp_path, "ticks")
        assert found == sorted(found)
        assert f"recorded {len(found)} events of 'ticks'" in recorder.err.replace(",", "")


@pytest.mark.system
def test_a_second_recorder_of_the_same_journal_is_refused(system: Desk, tmp_path: Path) -> None:
    system.start("record", "quotes", "--to", str(tmp_path)).says("recording echoic://")
    second = system.run("record", "quotes", "--to", str(tmp_path))
    assert second.process.returncode == 1
    assert "error: " in second.err
    assert "writ" in second.err, "it says that somebody else writes there"


@pytest.mark.system
def test_sources_that_were_held_keep_what_they_publish_until_the_recorder_is_back(tmp_path: Path) -> None:
    with desk() as made:
        made.start("up", f"trades={TRADE}").says("try: echoic ls")
        recorder = made.start("record", "trades", "--to", str(tmp_path), "--hold")
        recorder.says("recording echoic://")
        publisher = made.start("pub", "trades", "--stdin")
        publisher.type(json.dumps({"symbol": "IBM", "price": 1.0, "volume": 1}))
        poll(lambda: volumes(tmp_path) == [1], "the first event")
        assert recorder.interrupt() == 0
        publisher.type(json.dumps({"symbol": "IBM", "price": 1.0, "volume": 2}))
        recorder = made.start("record", "trades", "--to", str(tmp_path))
        poll(lambda: volumes(tmp_path) == [1, 2], "the event that was held")
        assert publisher.ends() == 0
        assert recorder.interrupt() == 0
        assert volumes(tmp_path) == [1, 2]


@pytest.mark.system
def test_a_terminal_shows_a_line_that_lives(system: Desk, tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    words = [*PROGRAM, "record", "trades", "--to", str(tmp_path), "--for", "2", "--names", system.names]
    with subprocess.Popen(words, stderr=follower, stdout=subprocess.PIPE) as process:
        os.close(follower)
        shown = b""
        while True:
            try:
                piece = os.read(leader, 4096)
            except OSError:  # which is how a terminal says that nobody is left
                break
            if not piece:
                break
            shown += piece
        assert process.wait() == 0
    os.close(leader)
    assert b"\r\x1b[K0 events  " in shown
    assert b"events/s  lag 0 B" in shown


@pytest.mark.system
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--for", "0"], "expected --for to be a number of seconds above 0"),
        (["--retain-bytes", "lots"], "expected a number of bytes such as 500MB, 2GB or 1GiB, got `lots`"),
        (["--retain-age", "5 parsecs"], "expected a time such as 15m, 36h or 7d, got `5 parsecs`"),
        (["--partitions", "0"], "expected at least 1 partition, got 0"),
        (["trades"], "a channel is named twice"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_begun(tmp_path: Path, words: list[str], message: str) -> None:
    folder = tmp_path / "kept"
    ran = subprocess.run(
        [*PROGRAM, "record", "trades", *words, "--to", str(folder)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert message in ran.stderr
    assert not folder.exists()


@pytest.mark.system
def test_a_channel_that_did_not_come_in_time_was_not_found(system: Desk, tmp_path: Path) -> None:
    recorder = system.run("record", "nobody", "--to", str(tmp_path), "--for", "0.5", "--json")
    assert recorder.process.returncode == 3
    assert json.loads(recorder.out)[0]["events"] == 0
    assert "error: channel 'nobody' was not found in 0.5 s (echoic ls)" in recorder.err


def test_amounts_are_read_as_people_write_them() -> None:
    assert [bytes_of(text) for text in ("", "4096", "1KB", "2 MiB", "1.5GB")] == [0, 4096, 1000, 2**21, 1_500_000_000]
    assert [nanoseconds_of(text) for text in ("", "1h", "0.5h", "1d")] == [0, HOUR_NS, HOUR_NS // 2, 24 * HOUR_NS]
    for wrong in ("-1", "1XB", "GB", "1e9", "9" * 30):
        with pytest.raises(LocalError, match="expected a number of bytes"):
            bytes_of(wrong)


def test_the_line_tells_of_trouble() -> None:
    told = [Recorded("a", "j", 1_234_567, 9_000_000, waiting_bytes=2000, trouble="the disk is full\x1b[2J")]
    assert live_line(told, 1000.4) == (
        r"1,234,567 events  9.00 MB  1,000 events/s  lag 2.00 KB  TROUBLE: the disk is full\x1b[2J"
    )


@pytest.mark.system
def test_a_publisher_whose_recorder_is_away_says_that_events_may_be_lost(tmp_path: Path) -> None:
    with desk() as system:
        system.start("up", f"trades={TRADE}").says("try: echoic ls")
        recorder = system.start("record", "trades", "--to", str(tmp_path), "--hold")
        recorder.says("recording echoic://")
        assert recorder.interrupt() == 0
        poll(lambda: not listed_sinks(system), "the manager knows that the recorder is away")
        pub = system.start("pub", "trades", "--stdin")
        pub.type('{"symbol": "IBM", "price": 75.5, "volume": 1}')
        assert pub.ends() == 1
        assert "the recorder of 'trades' has not confirmed" in pub.err
