"""What `echoic demo` says: what happens, since when, what came of it, and what to try next."""

import shlex
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.text import Text

from echoic.cli.demo_blocks import heat_map, spark_line
from echoic.cli.demo_channels import LiveChannels
from echoic.cli.demo_events import LAYERS, POINTS, Tick
from echoic.cli.demo_exchange import SYMBOLS, TRADES_A_SECOND
from echoic.cli.demo_plot import Saving, draw
from echoic.cli.demo_results import Check, Tables
from echoic.cli.demo_stage import Report
from echoic.cli.demo_weather import FIELDS_A_SECOND
from echoic.cli.progress import clear_line, show_line

if TYPE_CHECKING:
    from echoic.spark.pipeline import Running

__all__ = ["Teller"]

PLOT_COLUMNS: Final = 60
PLOT_LINES: Final = 8
SECONDS_AT_ONCE: Final = 5


class Teller:
    """Tells people what the demo does; a line of progress goes to stderr if that is a terminal."""

    def __init__(self) -> None:
        self._screen = Console(highlight=False)
        self._begun = time.monotonic()
        self._told = 0
        self._seconds: dict[int, dict[str, Tick]] = defaultdict(dict)

    def begin(self, folder: Path) -> None:
        """Say what will happen."""
        self._say(f"echoic demo: channels, derivations, recorder, pipeline on Spark; everything goes to {folder}/\n")

    def channels(self, channels: LiveChannels) -> None:
        """Say which channels there are."""
        self._step(f"a name server at {channels.names}, a recorder, a desk that listens")
        self._step(f"trades: an exchange, a process of its own, publishes {TRADES_A_SECOND:,} a second")
        self._step(
            f"wind: an atmosphere model, a process of its own, publishes {FIELDS_A_SECOND} fields of {LAYERS}"
            f" x {POINTS} a second"
        )
        self._step("odd_lots, layer_means: derived by code of the desk, compiled inside these two processes")

    def page(self, url: str) -> None:
        """Say where the page is."""
        self._step(f"look at it in the browser while it runs: {url}")

    def pipeline(self, running: "Running", description: str) -> None:
        """Say that the pipeline runs, and what is shown of it."""
        clear_line()
        self._step(description)
        self._step(f"pipeline demo: {', '.join(running.run.outputs)}")
        self._title("The result channel `ticker`, read back live: the mean price of each second, by Spark")
        self._say("".join(f"{name:>10}" for name in ("", *SYMBOLS, "trades")))

    def ticks(self, ticks: Sequence[Tick], *, all_of_them: bool = False) -> None:
        """Show the seconds of which all results are here: in their order, so not while more of them come in."""
        fresh = ticks[self._told :]
        self._told += len(fresh)
        for tick in fresh:
            self._seconds[int(tick.at)][tick.symbol] = tick
        complete = sorted(at for at, second in self._seconds.items() if second.keys() == SYMBOLS.keys())
        if fresh and not all_of_them:
            return
        if len(complete) > SECONDS_AT_ONCE:
            clear_line()
            self._say(f"{'...':>10}  {len(complete) - SECONDS_AT_ONCE} seconds before these")
        for at in complete:
            second = self._seconds.pop(at)
            if at in complete[-SECONDS_AT_ONCE:]:
                self._second(at, second)

    def progress(self, doing: str, recorded: Mapping[str, int]) -> None:
        """Draw a line that is drawn over again."""
        show_line(f"{doing}; {recorded['trades']:,} trades and {recorded['wind']:,} wind fields recorded")

    def quiet(self) -> None:
        """Take back the line of progress."""
        clear_line()

    def savings(self, savings: Sequence[Saving]) -> None:
        """Say what the derivations have saved."""
        self._title("What the derivations saved")
        for saving in savings:
            self._say(
                f"  {saving.name}: {saving.percent:.1f} % of bytes never left the source; {saving.events_out:,} events"
                f" of {saving.events_in:,} were sent, {_megabytes(saving.bytes_in - saving.bytes_saved)} of"
                f" {_megabytes(saving.bytes_in)}"
            )

    def checks(self, compared: Sequence[Check]) -> None:
        """Say what was compared."""
        self._title("Tables and channels, compared")
        for check in compared:
            outcome = f"{check.found:,}" if check.passed else f"{check.found:,} against {check.expected:,}"
            mark = Text("  ok    " if check.passed else "  WRONG ", style="green" if check.passed else "bold red")
            self._screen.print(mark.append(f"{check.what}: {outcome}", style="default"), soft_wrap=True)

    def rates(self, reports: Sequence[Report], tables: Tables) -> None:
        """Say how fast it went, and what there is of it."""
        trades, wind = (report.events / report.seconds for report in reports)
        rows = ", ".join(f"{name} {count:,}" for name, count in tables.rows.items())
        self._say(f"\n  {trades:,.0f} trades and {wind:.1f} wind fields a second; rows of the tables: {rows}")

    def plot(self, tables: Tables, savings: Sequence[Saving], picture: Path) -> None:
        """Draw the tables, here and into a file."""
        self._title("Table per_second: mean price, second by second")
        for symbol, series in tables.series().items():
            low, high = series.mean.min(), series.mean.max()
            self._say(f"  {symbol:<5} {spark_line(series.mean, PLOT_COLUMNS)}  {low:.2f} to {high:.2f}")
        _, means = tables.layer_means()
        self._title(f"Table layer_means: the jet stream, {LAYERS} layers from the ground up, time to the right")
        for line in heat_map(means.T, PLOT_COLUMNS, PLOT_LINES):
            self._say(f"        {line}")
        try:
            draw(tables, savings, picture)
        except ImportError as error:
            self._say(f"\n  no picture was drawn: {error}")

    def next(self, folder: Path) -> None:
        """Say what is left, and what can be done with it."""
        echoic, python = _commands()
        place = shlex.quote(str(folder))
        table = f"import pandas; print(pandas.read_parquet('{folder / 'tables' / 'per_second'}'))"
        self._title(f"All of it is in {folder}/: journals, tables, demo.toml, demo.png. Try next")
        for line in (
            f"{echoic} journal info {place}/journals",
            f"{echoic} journal cat {place}/journals --channel trades -n 3 --where 'input.volume < 5'",
            f"{echoic} pipeline run {place}/demo.toml --once",
            f'{python} -c "{table}"',
            f"{echoic} viewer --demo     the channels and the page alone, for as long as you like: move its sliders",
            f"{echoic} demo --stay     and meanwhile, in another terminal, {echoic} top",
        ):
            self._say(f"  {line}")
        self._say(f"\ndone in {time.monotonic() - self._begun:.0f} seconds")

    def _second(self, at: int, ticks: Mapping[str, Tick]) -> None:
        clear_line()
        prices = "".join(f"{ticks[symbol].mean:10.2f}" for symbol in SYMBOLS if symbol in ticks)
        clock = time.strftime("%H:%M:%S", time.localtime(at))
        self._say(f"{clock:>10}{prices}{sum(tick.trades for tick in ticks.values()):10,}")

    def _step(self, text: str) -> None:
        self._say(f"{time.monotonic() - self._begun:6.1f} s  {text}")

    def _title(self, text: str) -> None:
        self._screen.print(Text(f"\n{text}", style="bold"), soft_wrap=True)

    def _say(self, text: str) -> None:
        self._screen.print(Text(text), soft_wrap=True)
        sys.stdout.flush()


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.2f} MB"


def _commands() -> tuple[str, str]:
    """Return how echoic and its Python are called: by ./run where that was done, by their names otherwise."""
    if Path(sys.prefix) == Path.cwd() / ".venv" and Path("run").is_file():
        return "./run echoic", "./run python"
    return "echoic", "python"
