"""A campaign of kills: a pipeline and all around it are killed under load, and its tables equal the journal.

    python -m tests.spark.kill_campaign --kills 30 --seed 7 --secured

`tests/reliability/test_25_spark_restart.py` is the trial that runs it.

    exchange    a name server, and a source of numbered ticks; it lives
    recorder    `echoic record ticks`
    intake      `echoic intake copies`
    driver      `echoic pipeline run`: ticks to a table, ticks in windows to another, and each tick back to a channel

The seed decides who is killed when: the driver with its JVM and all its processes, its Python workers alone, the
recorder or the intake. Kills come while batches are under way: when Spark has written down what a batch is to have, and
not yet that it is done. The dead are started again. In the end the exchange stops, the pipeline finishes what there is,
and then the first table and the channel's journal must have each tick of the recorded channel exactly once, and the
windows must add up.

`--secured` gives each of them a certificate, by $ECHOIC_IDENTITY, and just the rights that it needs, by $ECHOIC_RIGHTS.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

import msgspec
import pyarrow

import echoic
from echoic.spark import committed_files
from echoic.testing.charter import Charter, Grants, environment_of
from tests.spark.kill_exchange import TICK

__all__ = ["GRANTS", "CampaignReport", "differences_in", "run_campaign"]

Kind = Literal["driver", "workers", "recorder", "intake"]

KINDS: Final[tuple[Kind, ...]] = ("driver", "workers", "recorder", "intake")
GRANTS: Final[Grants] = {
    "exchange": ["publish,admin ticks"],
    "recorder": ["subscribe ticks"],
    "intake": ["admin copies", "admin,subscribe copies.intake"],
    "driver": ["admin pipeline.kills", "publish copies", "publish copies.intake"],
}
START_SECONDS: Final = 240.0
FINISH_SECONDS: Final = 300.0
POLL_SECONDS: Final = 0.05
ROWS_PER_BATCH: Final = 20_000

PIPELINE: Final = """
name = "kills"
state = "state"
tables = "tables"
names = "{names}"

[sources.ticks]
journal = "journals"
channel = "ticks"
time = "at"
watermark = "1 second"
max_rows_per_batch = {rows}

[steps.sums]
from = "ticks"
window = "1 second"
aggregates = {{ ticks = "count(*)", total = "sum(number)" }}

[steps.again]
sql = "select number, at from ticks"

[outputs.ticks]
from = "ticks"
table = "ticks"

[outputs.sums]
from = "sums"
table = "sums"

[outputs.copies]
from = "again"
channel = "copies"
"""


class CampaignReport(msgspec.Struct, frozen=True):
    """What a campaign has found."""

    seed: int
    kills: dict[str, int]
    seconds: float
    recorded: int
    wrong: tuple[str, ...]


class Campaign:
    """The processes, and the folder that all of them work in."""

    def __init__(self, folder: Path, seed: int, *, secured: bool = False) -> None:
        self.folder: Final = folder
        self._charter = Charter.draw_up(folder / "charter", GRANTS) if secured else None
        self.killed: Final[Counter[str]] = Counter()
        self._chance: Final = random.Random(seed)
        self._processes: Final[dict[str, subprocess.Popen[bytes]]] = {}
        self._names = ""

    def run(self, kinds: list[Kind], tell: Callable[[str], None]) -> None:
        """Carry it out."""
        try:
            self._begin()
            for number, kind in enumerate(kinds, 1):
                self._await_progress()
                time.sleep(self._chance.uniform(0.05, 1.0))
                self._wait_for(self._in_batch, "a batch that is under way")
                tell(f"killing the {kind}")
                self._kill(kind)
                if kind != "driver" or number < len(kinds):  # the last one has its successor in the run that finishes
                    self._start_again(kind)
            self._finish(tell)
        finally:
            for name in list(self._processes):
                self._end(name)

    def _begin(self) -> None:
        self._start("exchange", [sys.executable, "-m", "tests.spark.kill_exchange", str(self.folder)])
        self._wait_for((self.folder / "names").exists, "the exchange")
        self._names = (self.folder / "names").read_text("utf-8")
        (self.folder / "pipeline.toml").write_text(PIPELINE.format(names=self._names, rows=ROWS_PER_BATCH), "utf-8")
        self._start_recorder()
        self._start_intake()
        self._wait_for(lambda: any((self.folder / "journals").rglob("*.segment")), "the recorder")
        self._start_driver()

    def _start_recorder(self) -> None:
        self._start("recorder", _echoic("record", "ticks", "--to", "journals", "--names", self._names))

    def _start_intake(self) -> None:
        self._start("intake", _echoic("intake", "copies", TICK, "--folder", "copies", "--names", self._names))

    def _start_driver(self, *options: str) -> None:
        self._start("driver", _echoic("pipeline", "run", "pipeline.toml", *options))

    def _kill(self, kind: Kind) -> None:
        self.killed[kind] += 1
        match kind:
            case "workers":  # which the driver starts again
                for process in _workers_of(self._processes["driver"].pid):
                    _send(process, signal.SIGKILL)
            case "driver" | "recorder" | "intake":
                self._end(kind)

    def _start_again(self, kind: Kind) -> None:
        match kind:
            case "workers":
                pass
            case "driver":
                self._start_driver()
            case "recorder":
                self._start_recorder()
            case "intake":
                self._start_intake()

    def _await_progress(self) -> None:
        """Wait until the driver has finished a further batch, starting it again if it has given up."""
        seen = self._batches()

        def moved() -> bool:
            if self._processes["driver"].poll() is not None:
                self._start_driver()
            return self._batches() > seen

        self._wait_for(moved, "a further batch")

    def _batches(self) -> int:
        """Return up to which batch the outputs have come, added up: by Spark's own commit logs."""
        return sum(
            max((int(path.name) for path in (folder / "commits").glob("[0-9]*")), default=-1) + 1
            for folder in (self.folder / "state" / "checkpoints").glob("*")
        )

    def _in_batch(self) -> bool:
        """Whether some output has begun a batch that it has not finished."""
        begun = {
            folder.name: max((int(path.name) for path in (folder / "offsets").glob("[0-9]*")), default=-1)
            for folder in (self.folder / "state" / "checkpoints").glob("*")
        }
        return any(
            batch >= 0 and not (self.folder / "state" / "checkpoints" / name / "commits" / str(batch)).exists()
            for name, batch in begun.items()
        )

    def _finish(self, tell: Callable[[str], None]) -> None:
        """Let the ticks end, and the pipeline do what is left."""
        tell("finishing")
        if "driver" in self._processes:
            self._await_progress()
        (self.folder / "enough").touch()
        code = self._processes["exchange"].wait(FINISH_SECONDS)
        assert code == 0, f"the exchange ended with {code}"
        if "driver" in self._processes:
            self._processes["driver"].terminate()
            self._processes["driver"].wait(FINISH_SECONDS)
        self._start_driver("--once")
        code = self._processes["driver"].wait(FINISH_SECONDS)
        assert code == 0, f"the last run ended with {code}"
        for name in ("intake", "recorder"):
            self._processes[name].terminate()  # not as Ctrl-C does, which whatever is run in the background ignores
            self._processes[name].wait(FINISH_SECONDS)

    def _start(self, name: str, command: list[str]) -> None:
        paths = filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")])
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**os.environ, **environment_of(self._charter, name), "PYTHONPATH": os.pathsep.join(paths)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _end(self, name: str) -> None:
        process = self._processes.pop(name)
        for each in [process.pid, *_descendants(process.pid)]:
            _send(each, signal.SIGKILL)
        process.wait()

    def _wait_for(self, there: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not there():
            for name in {"exchange", "recorder", "intake"} & self._processes.keys():
                told = (self.folder / f"{name}.log").read_text("utf-8")[-1000:]
                assert self._processes[name].poll() is None, f"the {name} ended: {told}"
            assert time.monotonic() < deadline, f"{what} did not come in {START_SECONDS:.0f} s; see {self.folder}/*.log"
            time.sleep(POLL_SECONDS)


def run_campaign(
    folder: Path, kinds: list[Kind], seed: int, tell: Callable[[str], None] = print, *, secured: bool = False
) -> CampaignReport:
    """Kill what is named, in this order, and return what is wrong afterwards."""
    began = time.monotonic()
    campaign = Campaign(folder, seed, secured=secured)
    campaign.run(kinds, tell)
    recorded = len(_numbers(echoic.Journal(folder / "journals", "ticks")))
    return CampaignReport(seed, dict(campaign.killed), time.monotonic() - began, recorded, differences_in(folder))


def differences_in(folder: Path) -> tuple[str, ...]:
    """Compare the tables and the channel of a pipeline with the journal of its source; return what is wrong."""
    recorded = _numbers(echoic.Journal(folder / "journals", "ticks"))
    wrong = [*_differences("the exchange", range(len(recorded)), "its journal", recorded)]
    wrong += _differences(
        "the journal", recorded, "the table", _table(folder / "tables" / "ticks")["number"].to_pylist()
    )
    wrong += _differences("the journal", recorded, "the copies", _numbers(echoic.Journal(folder / "copies", "copies")))
    wrong += _wrong_sums(echoic.Journal(folder / "journals", "ticks"), _table(folder / "tables" / "sums"))
    return tuple(wrong)


def _echoic(*words: str) -> list[str]:
    return [str(Path(sys.executable).with_name("echoic")), *words]


def _send(process: int, number: signal.Signals) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass  # gone already, as it should be


def _children() -> dict[int, list[int]]:
    """Return who has started whom."""
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text("utf-8").rpartition(")")[2].split()[1])
        except OSError:
            continue  # ended meanwhile
        children.setdefault(parent, []).append(int(status.parent.name))
    return children


def _descendants(process: int) -> list[int]:
    children = _children()
    found = list(children.get(process, []))
    for each in found:
        found += children.get(each, [])
    return found


def _workers_of(driver: int) -> list[int]:
    """Return the Python processes that tasks run in: children of `pyspark.daemon`."""
    children = _children()
    daemons = [each for each in _descendants(driver) if b"pyspark.daemon" in _command(each)]
    return [worker for daemon in daemons for worker in children.get(daemon, []) if worker not in daemons] or daemons


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def _numbers(journal: echoic.Journal) -> list[int]:
    return [int(number) for recorded in journal.read(columns=["number"]) for number in recorded.array["number"]]


def _table(path: Path) -> pyarrow.Table:
    import pyarrow.parquet

    return pyarrow.concat_tables([pyarrow.parquet.read_table(file) for file in committed_files(str(path))])


def _differences(first: str, wanted: "list[int] | range", second: str, found: list[int]) -> list[str]:
    missing, extra = Counter(wanted) - Counter(found), Counter(found) - Counter(wanted)
    wrong = [f"{second} lacks {sum(missing.values())} of {first}, {sorted(missing)[:5]}"] if missing else []
    return wrong + ([f"{second} has {sum(extra.values())} more than {first}, {sorted(extra)[:5]}"] if extra else [])


def _wrong_sums(journal: echoic.Journal, sums: pyarrow.Table) -> list[str]:
    """Compare the windows that are closed with what the journal has for them."""
    wanted: dict[int, list[int]] = {}
    for recorded in journal.read(columns=["number", "at"]):
        for number, at in zip(recorded.array["number"].tolist(), recorded.array["at"].tolist(), strict=True):
            wanted.setdefault(int(at), []).append(number)
    wrong = []
    seen: Counter[int] = Counter()
    for row in sums.to_pylist():
        second = int(row["start"].timestamp())
        seen[second] += 1
        if (row["ticks"], row["total"]) != (len(wanted[second]), sum(wanted[second])):
            wrong.append(f"the window at {second} has {row['ticks']} ticks of {len(wanted[second])}")
    wrong += [f"the window at {second} is there {count} times" for second, count in seen.items() if count > 1]
    lacking = sorted(set(wanted) - set(seen))
    if not seen or lacking != sorted(wanted)[-len(lacking) :][: len(lacking)] or len(lacking) > 5:
        wrong.append(f"windows are missing that are not the last ones: {lacking[:5]}")
    return wrong


def main() -> None:
    """Run a campaign from the command line; exit with 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--secured", action="store_true", help="with certificates and rights")
    parser.add_argument("--folder", type=Path, help="where to work; temporary if not given")
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    kinds = [KINDS[number % len(KINDS)] for number in range(arguments.kills)]
    chance.shuffle(kinds)
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        report = run_campaign(
            folder.resolve(),
            kinds,
            arguments.seed,
            lambda text: print(text, file=sys.stderr),
            secured=arguments.secured,
        )
    print(json.dumps(msgspec.to_builtins(report)))
    sys.exit(1 if report.wrong else 0)


if __name__ == "__main__":
    main()
