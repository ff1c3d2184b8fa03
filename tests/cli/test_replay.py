"""`echoic replay`, beside terminals that echo."""

import json
import os
import pty
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from echoic import event, int64
from tests.cli.terminals import PROGRAM, Desk, desk, poll
from tests.recorder.journals import Scribe

pytestmark = pytest.mark.system


@event
class Tick:
    number: int64
    at: int64 = 0


@pytest.fixture
def place() -> Iterator[Desk]:
    with desk() as made:
        yield made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three batches of two ticks, an hour apart."""
    scribe = Scribe(tmp_path)
    for number in range(3):
        scribe.write([Tick(2 * number), Tick(2 * number + 1)], source=number, at=3600.0 * number)
    return scribe.close()


def numbers(out: str) -> list[int]:
    return [json.loads(line)["number"] for line in out.splitlines()]


def test_a_recording_flows_to_whoever_listens_and_is_summed_up(place: Desk, path: Path) -> None:
    echo = place.start("echo", "ticks", "--json", "-n", "12")
    echo.says("waiting for channel 'ticks'")
    words = ("--rate", "0", "--loop", "2", "-w", "1", "--stamp", "at", "--json")
    replay = place.run("replay", str(path), *words)
    assert replay.process.returncode == 0, replay.err
    assert echo.ends() == 0
    assert numbers(echo.out) == [0, 1, 2, 3, 4, 5] * 2
    assert {json.loads(line)["at"] % 3_600_000_000_000 for line in echo.out.splitlines()} == {
        1_763_000_000_000_000_000 % 3_600_000_000_000
    }
    summary = json.loads(replay.out)
    assert (summary["events"], summary["batches"], summary["sources"], summary["passes"]) == (12, 6, 3, 2)
    assert (summary["state"], summary["positions"]) == ("ended", [6])
    assert f"replayed 12 events to {summary['channel']} in " in replay.err


def test_a_window_is_replayed_into_a_channel_of_another_name(place: Desk, path: Path) -> None:
    echo = place.start("echo", "rehearsal", "--json", "-n", "3")
    echo.says("waiting for channel 'rehearsal'")
    words = ("--channel", "rehearsal", "--start", "1", "--end", "4", "--rate", "inf", "-w", "1")
    assert place.run("replay", str(path), *words).process.returncode == 0
    assert echo.ends() == 0
    assert numbers(echo.out) == [1, 2, 3]


def test_the_path_may_be_that_of_the_journal_itself(place: Desk, path: Path) -> None:
    replay = place.run("replay", str(path / "ticks"), "-r", "0", "--json")
    assert (replay.process.returncode, json.loads(replay.out)["events"]) == (0, 6), replay.err


def test_a_window_of_time_is_given_as_text(place: Desk, path: Path) -> None:
    whole = place.run("replay", str(path), "--since", "2025-11-13T03:00:00Z", "-r", "0", "--json")
    part = place.run("replay", str(path), "--until", "2025-11-13T03:00:00Z", "-r", "0", "--json")
    assert (whole.process.returncode, part.process.returncode) == (0, 0), whole.err + part.err
    assert (json.loads(whole.out)["events"], json.loads(part.out)["events"]) == (4, 2)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["nowhere"], 3, "error: there is no directory nowhere (echoic record --help)"),
        (["PATH", "--recorded", "tocks"], 3, "did you mean 'ticks'?"),
        (["PATH", "--step", "-1"], 1, "error: expected --step to be 0 or more, got -1"),
        (["PATH", "--wait", "-1"], 1, "error: expected --wait to be 0 or more, got -1"),
        (["PATH", "--rate", "-1"], 1, "error: expected a rate of at least 0, got -1.0"),
        (["PATH", "--start", "9"], 1, "error: cannot start at sequence number 9, the journal has 0 to 6"),
        (["PATH", "--stamp", "when"], 1, "has no field `when`"),
        (["PATH", "--paused"], 1, "error: --paused needs somebody to press a key, and stdin is not a terminal"),
        (["PATH", "--no-such-option"], 2, "--no-such-option"),
        ([], 2, "PATH"),
    ],
)
def test_mistakes_are_told(place: Desk, path: Path, words: list[str], code: int, message: str) -> None:
    replay = place.run("replay", *(str(path) if word == "PATH" else word for word in words))
    assert message in replay.err + replay.out
    assert replay.process.returncode == code
    assert "Traceback" not in replay.err


def test_an_interrupted_replay_says_how_far_it_came(place: Desk, path: Path) -> None:
    replay = place.start("replay", str(path), "--loop", "0", "--gap", "0.05")
    place.start("echo", "ticks", "--json").shows('"number":5')
    assert replay.interrupt() == 0
    assert "replayed " in replay.err


class Screen:
    """A command on a terminal of its own, with keys."""

    def __init__(self, names: str, *words: str) -> None:
        self._ours, theirs = pty.openpty()
        environment = {**os.environ, "ECHOIC_NAMES": names, "COLUMNS": "100"}
        self.process = subprocess.Popen([*PROGRAM, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
        os.close(theirs)
        self.text = ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                self.text += os.read(self._ours, 4096).decode()
            except OSError:  # how Linux says that the other side is closed
                return

    def press(self, key: str, until: str) -> None:
        """Press a key, and wait until it shows."""
        seen = len(self.text)
        os.write(self._ours, key.encode())
        poll(lambda: until in self.text[seen:], f"{until!r} after {key!r}: {self.text[-300:]!r}")

    def shows(self, text: str) -> None:
        poll(lambda: text in self.text, f"{text!r}: {self.text[-300:]!r}")

    def ends(self, key: str) -> int:
        os.write(self._ours, key.encode())
        poll(lambda: self.process.poll() is not None, f"the end: {self.text[-300:]!r}")
        self._reader.join(10)
        os.close(self._ours)
        return self.process.wait()


def test_keys_pause_step_change_the_rate_and_quit(place: Desk, path: Path) -> None:
    screen = Screen(place.names, "replay", str(path), "--paused", "--step", "1")
    screen.shows("space pauses, n steps")
    screen.shows("0 events  0%  paused")
    screen.press("n", "1 events  16%")
    screen.press("n", "2 events  33%")
    screen.press("n", "3 events  50%")
    screen.press(" ", "  1x")
    screen.press("+", "  2x")
    screen.press("+", "  4x")
    screen.press("-", "  2x")
    screen.press("1", "  1x")
    screen.press(" ", "paused")
    assert screen.ends("q") == 0
    assert "replayed 4 events" in screen.text


def test_at_full_speed_a_paused_replay_runs_to_its_end(place: Desk, path: Path) -> None:
    screen = Screen(place.names, "replay", str(path), "--paused")
    screen.shows("paused")
    screen.press("0", "paused")
    assert screen.ends(" ") == 0
    assert "replayed 6 events" in screen.text
