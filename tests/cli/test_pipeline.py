"""`echoic pipeline`, as people type it. Few of these start Spark: each takes a Java of its own."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from echoic import Journal, event
from echoic.cli.pipelines_shown import Live, live_line, output_row
from echoic.recorder import Disk
from echoic.spark.pipeline import Run, StateFolder, Tally
from tests.cli.terminals import Desk, Terminal, desk
from tests.recorder.recordings import Scribe
from tests.spark.patience import patiently

MARKET = """
name = "market"

[sources.trades]
journal = "journals"
channel = "trades"
watermark = "5 seconds"

[steps.some]
sql = "select symbol, volume from trades where volume < 100"

[outputs.some]
from = "some"
table = "some"

[outputs.told]
from = "some"
channel = "told"
intake = "journals"
"""


@event
class Deal:
    symbol: str
    volume: int


@pytest.fixture
def system() -> Iterator[Desk]:
    with desk() as made:
        yield made


@pytest.fixture
def market(tmp_path: Path) -> Path:
    path = tmp_path / "market.toml"
    path.write_text(MARKET)
    return path


def says(terminal: Terminal, text: str) -> None:
    patiently(lambda: text in terminal.err or terminal.process.poll() is not None, text)
    assert text in terminal.err


def ends(terminal: Terminal) -> int:
    patiently(lambda: terminal.process.poll() is not None, "the end")
    return terminal.ends()


def write(folder: Path, *volumes: int) -> None:
    scribe = Scribe(Disk(folder / "journals"))
    scribe.write([Deal("IBM", volume) for volume in volumes])
    scribe.close()


def complaint(terminal: Terminal) -> str:
    """The one line that a command failed with."""
    assert terminal.process.returncode == 1, terminal.err
    *_, last = [line for line in terminal.err.splitlines() if line]
    assert last.startswith("error: ")
    assert "Traceback" not in terminal.err
    assert "\tat " not in terminal.err
    return last


def outputs_in_top(system: Desk) -> set[tuple[str, str]]:
    """What is heard of in a second, in which a machine with much else to do may have said nothing."""
    shown = json.loads(system.run("top", "--once", "--json").out)
    return {(each["pipeline"], each["output"]) for each in shown["pipelines"]}


@pytest.mark.system
def test_a_pipeline_is_checked_without_java(
    system: Desk, market: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    checked = system.run("pipeline", "check", str(market))
    assert checked.out.splitlines() == [
        "OUTPUT  FROM            TO             PLACE",
        "some    some <- trades  parquet table  some",
        "told    some <- trades  channel        told",
    ]
    market.write_text(MARKET.replace('from = "some"', 'from = "sum"', 1))
    assert "outputs.some.from: there is no source or step `sum`" in complaint(
        system.run("pipeline", "check", str(market))
    )
    market.write_text(MARKET)
    assert "never run" in system.run("pipeline", "status", str(market)).out


@pytest.mark.system
def test_settings_for_spark_submit_are_words_of_a_shell(system: Desk) -> None:
    printed = system.run("pipeline", "conf", "--master", "spark://host:7077")
    line = f"printf '%s\\n' {printed.out.replace(chr(10), ' ')}"
    lines = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[::2] == ["--conf"] * (len(lines) // 2)
    assert "spark.python.unix.domain.socket.enabled=true" in lines
    assert json.loads(system.run("pipeline", "conf", "--json").out)["spark.sql.session.timeZone"] == "UTC"


@pytest.mark.system
@pytest.mark.slow
def test_a_pipeline_is_run_watched_and_stopped(system: Desk, market: Path, tmp_path: Path) -> None:
    write(tmp_path, *range(10))
    system.start("up", "other=Other{x: int}").says("try: echoic ls")
    once = system.start("pipeline", "run", str(market), "--once", "--master", "local[2]", "--json")
    assert ends(once) == 0, once.err
    some, told = map(json.loads, once.out.splitlines())
    assert (some["output"], some["rows_in"], some["rows_out"]) == ("some", 10, 10)
    assert (told["output"], told["rows_in"], told["rows_out"]) == ("told", 10, 10)
    running = system.start("pipeline", "run", str(market), "--master", "local[2]")
    says(running, "running: some, told")
    write(tmp_path, 11, 12, 1000)
    journal = tmp_path / "journals"
    patiently(lambda: Journal(journal, "told").heads[0] == 12, "what came while it ran")
    patiently(lambda: outputs_in_top(system) == {("market", "some"), ("market", "told")}, "both in top")
    patiently(lambda: "IN WINDOWS" in system.run("top", "--once").out, "the table of pipelines")
    assert "runs already" in complaint(system.run("pipeline", "run", str(market)))
    state = json.loads(system.run("pipeline", "status", str(market), "--json").out)
    assert state["run"]["state"] == "running"
    assert "pipeline 'market' stopped" in system.run("pipeline", "stop", str(market)).out
    assert ends(running) == 0, running.err
    assert running.out.startswith("OUTPUT")
    assert "Traceback" not in running.err
    assert "does not run" in complaint(system.run("pipeline", "stop", str(market)))


@pytest.mark.system
@pytest.mark.slow
def test_it_ends_on_a_signal_and_what_goes_wrong_is_one_line(system: Desk, market: Path, tmp_path: Path) -> None:
    failing = system.start("pipeline", "run", str(market), "--once", "--master", "local[2]")
    ends(failing)
    assert "journals" in complaint(failing)
    status = system.run("pipeline", "status", str(market))
    assert status.process.returncode == 1
    assert "pipeline 'market' failed" in status.out
    write(tmp_path, *range(10))
    running = system.start("pipeline", "run", str(market), "--master", "local[2]")
    says(running, "running: some, told")
    running.process.send_signal(signal.SIGTERM)
    assert ends(running) == 0
    assert "pipeline 'market' stopped" in running.err
    assert "Traceback" not in running.err


@pytest.mark.system
def test_without_java_there_is_one_line(
    system: Desk, market: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, 1)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "java" in complaint(system.run("pipeline", "run", str(market), "--once")).lower()


def test_a_line_is_drawn_about_once_a_second() -> None:
    assert not Live().due


def test_a_line_tells_what_was_read_and_what_was_not() -> None:
    tally = Tally("some", "tables/some", 2, 1500, 1200, 0, 0, 30, 750.0, 80)
    assert live_line([tally], 750.0) == "1,500 rows in  1,200 out  750 rows/s  lag 30 events  batch 80 ms"
    assert live_line([tally, Tally("told", "x", late=3)], 0.0).endswith("  3 late")
    current = time.time()
    shown = str(output_row(Tally("some", "x", watermark=current))[-2])
    assert shown.endswith(time.strftime("%H:%M:%S", time.gmtime(current)))
    assert output_row(tally) == ["some", 1500, 1200, 0, 2, 30, 0, "", "tables/some"]


def test_a_crash_is_told_from_a_run(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    folder.keep_run(Run("market", "running", 1, "host", 1.0))
    run = folder.run()
    assert run is not None
    assert run.state == "crashed"
