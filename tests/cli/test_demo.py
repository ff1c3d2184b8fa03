"""`echoic demo`: its parts, and the whole of it as a real process, in a short form."""

import fcntl
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy
import pytest

from echoic.cli.demo import CONTENTS, prepared
from echoic.cli.demo_blocks import heat_map, spark_line
from echoic.cli.demo_events import LAYERS, POINTS, pipeline_text
from echoic.cli.demo_exchange import SYMBOLS, Market
from echoic.cli.demo_plot import Saving
from echoic.cli.demo_results import Check
from echoic.cli.demo_weather import Atmosphere
from echoic.errors import PipelineError
from echoic.recorder import Journal
from echoic.spark.pipeline import load_spec

RUN_SECONDS_MAX = 400


def start(*arguments: str, folder: Path) -> subprocess.Popen[str]:
    """Start the demo with a name server of its own, away from those of other tests.

    Of what Spark is told by its surroundings only how Java runs is kept, which is the same for all tests.
    """
    foreign = [name for name in os.environ if name.startswith(("SPARK", "PYSPARK")) and name != "SPARK_SUBMIT_OPTS"]
    environment = {name: value for name, value in os.environ.items() if name not in foreign}
    return subprocess.Popen(
        [sys.executable, "-c", "from echoic.cli import main; main()", "demo", *arguments],
        cwd=folder,
        env={**environment, "ECHOIC_NAMES": "127.0.0.1:0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def processes_with(text: str) -> list[str]:
    """Return the command lines of this machine that have a text in them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has just ended
        if text in line:
            found.append(line[:200])
    return found


def nobody_is_left(text: str) -> bool:
    """Tell whether all processes with a text in their command lines have ended; some take a moment."""
    deadline = time.monotonic() + 30
    while processes_with(text) and time.monotonic() < deadline:
        time.sleep(0.1)
    return not processes_with(text)


def test_the_pipeline_that_the_demo_leaves_behind_is_one(tmp_path: Path) -> None:
    (tmp_path / "demo.toml").write_text(pipeline_text())

    assert set(load_spec(tmp_path / "demo.toml").outputs) == {"odd_lots", "layer_means", "per_second", "ticker"}


def test_the_wind_blows_for_long_without_becoming_a_storm() -> None:
    atmosphere = Atmosphere(seed=3)

    fields = [atmosphere.step() for _ in range(3000)]

    assert fields[0].shape == (LAYERS, POINTS)
    assert all(field.min() > -60 and field.max() < 100 for field in fields[::50])
    assert numpy.ptp([field.mean(axis=1).argmax() for field in fields]) > 10, "the jet wanders"


def test_the_same_market_has_the_same_trades_and_one_in_fourteen_is_an_odd_lot() -> None:
    trades, again = (Market(seed=7).trades(5.0, 20_000) for _ in range(2))

    assert trades == again
    assert {trade.symbol for trade in trades} == SYMBOLS.keys()
    assert all(trade.volume > 0 and trade.price > 0 for trade in trades)
    assert 0.06 < sum(trade.volume < 100 for trade in trades) / len(trades) < 0.08


def test_numbers_become_bars_and_fields_become_shades() -> None:
    assert spark_line(numpy.arange(8.0), 60) == "▁▂▃▄▅▆▇█"
    assert spark_line(numpy.arange(80.0), 4) == "▁▃▆█"
    assert spark_line(numpy.full(3, 7.0), 60) == "▁▁▁"
    assert spark_line(numpy.zeros(0), 60) == ""
    assert heat_map(numpy.array([[0.0, 1.0], [2.0, 4.0]]), 60, 8) == ["▒█", " ░"]
    assert heat_map(numpy.zeros((LAYERS, 0)), 60, 8) == [""] * 8


def test_a_saving_is_told_in_percent_also_of_nothing() -> None:
    assert Saving("odd_lots", 100, 7, 4000, 3720).percent == 93.0
    assert Saving("odd_lots", 0, 0, 0, 0).percent == 0.0
    assert [Check("", 3, 3).passed, Check("", 3, 4).passed] == [True, False]


def test_what_an_earlier_demo_has_left_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with prepared(folder):
        (folder / "journals").mkdir()
        (folder / "tables").symlink_to(tmp_path)
        (folder / "spark.log").write_text("earlier")
    (folder / "mine.txt").write_text("kept")

    with prepared(folder):
        assert {path.name for path in folder.iterdir()} == {"demo.toml", "mine.txt"}
    assert tmp_path.is_dir()


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "thesis.tex").touch()

    with pytest.raises(PipelineError, match=r"has thesis\.tex in it, which is not of a demo"), prepared(tmp_path):
        pass
    assert (tmp_path / "tables").is_dir()


def test_two_demos_do_not_share_a_folder(tmp_path: Path) -> None:
    with (
        prepared(tmp_path / "demo"),
        pytest.raises(PipelineError, match="another demo runs in"),
        prepared(tmp_path / "demo"),
    ):
        pass
    with pytest.raises(PipelineError, match="as a folder"), prepared(Path("/dev/null")):
        pass


def test_a_time_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    done = start("--seconds", "-1", folder=tmp_path)

    assert done.communicate(timeout=RUN_SECONDS_MAX)[1].startswith(
        "error: the channels go on for more than 0 and at most 3600"
    )
    assert (done.returncode, list(tmp_path.iterdir())) == (1, [])


@pytest.mark.slow
@pytest.mark.system
def test_the_demo_makes_tables_of_channels_and_a_channel_of_results_and_leaves_nobody_running(tmp_path: Path) -> None:
    process = start("--seconds", "3", folder=tmp_path)
    shown, complaints = process.communicate(timeout=RUN_SECONDS_MAX)

    assert (process.returncode, complaints) == (0, "")
    assert re.search(r"odd_lots: 9[234]\.\d % of bytes never left the source", shown)
    assert re.search(r"layer_means: 99\.\d % of bytes never left the source", shown)
    assert shown.count("  ok    ") == 6
    assert "WRONG" not in shown
    assert re.search(r"^ +\d\d:\d\d:\d\d( +\d+\.\d\d){4} +[\d,]+$", shown, re.MULTILINE), "results came back"
    assert "█" in shown
    folder = tmp_path / "echoic-demo"
    assert {path.name for path in folder.iterdir()} == set(CONTENTS)
    assert (folder / "demo.png").read_bytes().startswith(b"\x89PNG")
    recorded = {name: sum(Journal(folder / "journals", name).heads) for name in ("trades", "wind", "ticker")}
    assert f"trades recorded: {recorded['trades'] - 1:,}" in shown
    assert f"results in the table, and by channel: {recorded['ticker']:,}" in shown
    assert nobody_is_left(str(folder))
    (names,) = re.findall(r"a name server at (\S+),", shown)
    assert nobody_is_left(f"demo_exchange {names}")
    assert nobody_is_left(f"demo_weather {names}")

    for line in re.findall(r"^  echoic (journal .*)$", shown, re.MULTILINE):
        command = [sys.executable, "-c", "from echoic.cli import main; main()", *shlex.split(line)]
        assert subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    again = next(line for line in shown.splitlines() if "read_parquet" in line).partition(' -c "')[2].rstrip('"')
    read = subprocess.run([sys.executable, "-c", again], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert re.search(r"^\d+ +20\d\d-.* [A-Z]+ .* \d+\.\d+$", read.stdout, re.MULTILINE), "the table can be read again"
    assert f"[{recorded['ticker']} rows x 7 columns]" in read.stdout, "all of it, though pandas shows only some rows"


@pytest.mark.slow
@pytest.mark.system
def test_a_demo_that_is_interrupted_ends_everything_and_says_no_more(tmp_path: Path) -> None:
    process = start("--folder", "here", folder=tmp_path)
    assert process.stdout is not None
    before = []
    for line in iter(process.stdout.readline, ""):
        before.append(line)
        if "layer_means: derived" in line:
            break
    process.send_signal(signal.SIGINT)
    shown, complaints = process.communicate(timeout=RUN_SECONDS_MAX)

    assert process.returncode == 130
    assert "Traceback" not in shown + complaints
    (names,) = re.findall(r"a name server at (\S+),", "".join(before))
    assert nobody_is_left(f"demo_exchange {names}")
    assert nobody_is_left(str(tmp_path / "here"))
    descriptor = os.open(tmp_path / "here", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # nobody holds it
    os.close(descriptor)
