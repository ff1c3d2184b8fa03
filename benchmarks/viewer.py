"""What does it cost to look: the page in Chromium, the viewer behind it, and the commands that people wait for?

    python benchmarks/viewer.py [--quick] [--rounds N] [--seconds S] [--only pages|commands] [--json]

pages      a chart of 4 series of 5,000 points a second, of a source in a process of its own, in a window of 15 seconds:
           reduced at the source to about a hundred envelopes a second, as the page does by itself; and each point sent
           and drawn. Beside uPlot alone on a bare page, fed with as many points from memory. CPU is that of all
           processes of Chromium (browser, renderer, GPU, network) and of the viewer's process, in percent of one core,
           as the kernel counts it; draws are counted in the page.
commands   `echoic --version` and `echoic ls` (ten channels, a name server on this machine), beside a Python that does
           nothing, and one that imports echoic; and what `--version` has imported of what is slow to import

All cases run once in each round, in an order that is shuffled anew for every round.
"""

import argparse
import contextlib
import functools
import http.server
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, Page, sync_playwright
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for those who run this file and not the module
from benchmarks.harness import Spread, Target, machine
from benchmarks.viewer_source import CHANNEL, POINTS_A_SECOND, SERIES
from echoic import Hub, event

ROOT: Final = Path(__file__).resolve().parents[1]
UPLOT: Final = ROOT / "src" / "echoic" / "viewer" / "static" / "vendor" / "uplot"
RIVAL: Final = Path(__file__).with_name("viewer_rival.html")
ECHOIC: Final = Path(sys.executable).with_name("echoic")
FLAGS: Final = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
WINDOW_SECONDS: Final = 15
SETTLING_SECONDS: Final = 5.0
SLOW_TO_IMPORT: Final = ("numpy", "pyarrow", "llvmlite", "pyspark")
REDUCED, EACH, BARE = "echoic, reduced at the source", "echoic, each point", "uPlot alone, from memory"
VERSION, LIST, NOTHING, IMPORT = "echoic --version", "echoic ls", "python -c pass", "python -c 'import echoic'"
CPU_MAX, DRAWS_MIN, SERVER_MAX, LIST_MS_MAX, VERSION_MS_MAX = 30.0, 24.0, 5.0, 250.0, 150.0


@event
class Tick:
    """Something for the channels that are listed."""

    at: float


@dataclass(frozen=True, slots=True)
class Sample:
    """What a page cost for some seconds, in percent of a core; what it drew and got in a second."""

    browser: float
    draws: float
    records: float
    server: float


# --- Pages ---


def children_of(pid: int) -> list[int]:
    """Return a process and all that it has started, as far as they live."""
    found, parents = {pid}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found)


def cpu_seconds(pid: int) -> dict[int, float]:
    """Return how long a process and its children have computed."""
    taken = {}
    for each in children_of(pid):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            taken[each] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return taken


def chromium_of(browser: Browser) -> int:
    """Return the process of the browser: the one that was started with this session's folder."""
    session = browser.new_browser_cdp_session()
    return next(
        each["id"] for each in session.send("SystemInfo.getProcessInfo")["processInfo"] if each["type"] == "browser"
    )


@contextlib.contextmanager
def spoken(*command: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a process, and give the first line that it prints."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT
    )
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.terminate()
        process.wait()
        process.stdout.close()


@contextlib.contextmanager
def bare_page(folder: Path) -> Iterator[str]:
    """Serve uPlot and the page that has nothing else."""
    for file in (*UPLOT.iterdir(), RIVAL):
        shutil.copy(file, folder)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/{RIVAL.name}"
    finally:
        server.shutdown()
        server.server_close()


def measured(page: Page, browser: int, server: int, seconds: float, count: Callable[[], tuple[int, int]]) -> Sample:
    """Watch a page for some seconds; `count` tells how often it drew, and how many records it got."""
    page.wait_for_timeout(SETTLING_SECONDS * 1000)
    before, at, counted = (cpu_seconds(browser), cpu_seconds(server)), time.monotonic(), count()
    page.wait_for_timeout(seconds * 1000)
    after, passed, final = (cpu_seconds(browser), cpu_seconds(server)), time.monotonic() - at, count()
    spent = [
        sum(now - then.get(pid, 0.0) for pid, now in later.items()) for then, later in zip(before, after, strict=True)
    ]
    draws, records = ((now - then) / passed for then, now in zip(counted, final, strict=True))
    return Sample(100 * spent[0] / passed, draws, records, 100 * spent[1] / passed)


def show_chart(page: Page, url: str, *, each: bool) -> Callable[[], tuple[int, int]]:
    """Show the four series, for as many seconds as the rival does; return who counts for `measured`."""
    page.goto(url)
    page.locator("#state[data-state=live]").wait_for()
    page.evaluate("address => { location.hash = address; }", f"#/channel/{CHANNEL}")
    view = page.locator(".view[data-view=chart]")
    for series in SERIES:
        chip = page.locator(f".legend [data-path={series}]")
        chip.wait_for()
        if chip.get_attribute("aria-pressed") == "false":
            chip.click()
    page.get_by_role("button", name="15 s", exact=True).click()
    page.get_by_role("button", name="every event" if each else "reduced", exact=True).click()
    page.locator(".view[data-view=chart][data-draws]").wait_for()
    return lambda: (int(view.get_attribute("data-draws") or 0), int(view.get_attribute("data-records") or 0))


def pages(rounds: int, seconds: float, chance: random.Random) -> dict[str, list[Sample]]:
    """Return what each page cost, in each round."""
    samples: dict[str, list[Sample]] = {REDUCED: [], EACH: [], BARE: []}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bare = stack.enter_context(bare_page(folder))
        _, names = stack.enter_context(spoken(sys.executable, "-m", "benchmarks.viewer_source"))
        viewer, line = stack.enter_context(
            spoken(str(ECHOIC), "viewer", "--names", names, "--listen", "127.0.0.1:0", "--no-browser")
        )
        url = re.search(r"http://\S+", line).group()
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        stack.callback(browser.close)
        process = chromium_of(browser)
        for _ in range(rounds):
            for case in chance.sample(list(samples), len(samples)):
                context = browser.new_context(viewport={"width": 1280, "height": 800})
                page = context.new_page()
                if case == BARE:
                    page.goto(f"{bare}?seconds={WINDOW_SECONDS}")
                    count = functools.partial(page.evaluate, "[Number(document.body.dataset.draws), 0]")
                else:
                    count = show_chart(page, url, each=case == EACH)
                samples[case].append(measured(page, process, viewer.pid, seconds, count))
                context.close()
    # Whoever does not get each point has not measured it.
    if min(sample.records for sample in samples[EACH]) < 0.8 * POINTS_A_SECOND:
        raise RuntimeError(f"each of {POINTS_A_SECOND} points a second was to be drawn: {samples[EACH]}")
    return samples


# --- Commands ---


def called_once(command: list[str]) -> tuple[float, float]:
    """Run a command; return how many milliseconds it took, and for how many it computed."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command} has failed: {process.returncode}")
    return 1000 * (time.perf_counter() - begun), 1000 * (used.ru_utime + used.ru_stime)


def commands(rounds: int, chance: random.Random) -> dict[str, list[tuple[float, float]]]:
    """Return how many milliseconds each command took and computed, in each round."""
    with Hub(name="names") as names, Hub(names=names.address, name="desk") as hub:
        for number in range(10):
            hub.create(f"channel{number}", Tick)
        cases = {
            NOTHING: [sys.executable, "-c", "pass"],
            IMPORT: [sys.executable, "-c", "import echoic"],
            VERSION: [str(ECHOIC), "--version"],
            LIST: [str(ECHOIC), "ls", "--names", names.address],
        }
        samples: dict[str, list[tuple[float, float]]] = {case: [] for case in cases}
        for number in range(rounds + 1):
            for case in chance.sample(list(cases), len(cases)):
                sample = called_once(cases[case])
                if number:  # the first of each has its files read from the disk
                    samples[case].append(sample)
    return samples


def imported() -> list[str]:
    """Return what `echoic --version` imports of what is slow to import."""
    program = (
        "import sys; sys.argv = ['echoic', '--version']; from echoic.cli import main; main();"
        f"print(*sorted({set(SLOW_TO_IMPORT)!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[1].split()


# --- What is printed ---


def page_targets(samples: Mapping[str, list[Sample]]) -> list[Target]:
    def spread(case: str, name: str) -> Spread:
        return Spread.of([getattr(sample, name) for sample in samples[case]])

    return [
        target
        for case in (REDUCED, EACH)
        for target in (
            Target(f"Chromium, {case}", spread(case, "browser"), CPU_MAX, "% of a core"),
            Target(f"draws, {case}", spread(case, "draws"), DRAWS_MIN, "a second", at_least=True),
            Target(f"viewer, {case}", spread(case, "server"), SERVER_MAX, "% of a core"),
        )
    ]


def page_table(samples: Mapping[str, list[Sample]]) -> Table:
    table = Table(
        title=f"4 series of 5,000 points a second, {len(samples[BARE])} rounds; median (quartiles)",
        title_justify="left",
    )
    headings = ("Chromium, % of a core", "draws/s", "records/s", "viewer, % of a core", "Chromium / uPlot alone")
    for heading in ("case", *headings):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    for case, found in samples.items():
        columns = [
            Spread.of([getattr(sample, name) for sample in found]) for name in ("browser", "draws", "records", "server")
        ]
        ratio = Spread.of([mine.browser / other.browser for mine, other in zip(found, samples[BARE], strict=True)])
        own = ["", ""] if case == BARE else [str(columns[2]), str(columns[3])]
        table.add_row(case, str(columns[0]), str(columns[1]), *own, str(ratio))
    return table


def command_table(samples: Mapping[str, list[tuple[float, float]]]) -> Table:
    title = f"one command, {len(samples[NOTHING])} rounds; median (quartiles)"
    table = Table(title=title, title_justify="left")
    for heading in ("command", "ms", f"/ {NOTHING}", "ms of computing"):
        table.add_column(heading, justify="left" if heading == "command" else "right")
    for case, found in samples.items():
        ratio = Spread.of([mine / other for (mine, _), (other, _) in zip(found, samples[NOTHING], strict=True)])
        table.add_row(case, str(taken(found)), str(ratio), str(Spread.of([computed for _, computed in found])))
    return table


def taken(found: list[tuple[float, float]]) -> Spread:
    return Spread.of([passed for passed, _ in found])


def main() -> None:
    parser = argparse.ArgumentParser(description="What does it cost to look?")
    parser.add_argument("--rounds", type=int, default=5, help="samples of each case (default 5)")
    parser.add_argument("--seconds", type=float, default=8.0, help="how long each page is watched (default 8)")
    parser.add_argument("--only", choices=("pages", "commands"), help="only one of the two questions")
    parser.add_argument("--quick", action="store_true", help="short samples: shows that it works, not how fast")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    given = parser.parse_args()
    rounds, seconds = (1, 1.0) if given.quick else (given.rounds, given.seconds)
    chance = random.Random(1)
    looked = pages(rounds, seconds, chance) if given.only != "commands" else {}
    called = commands(4 * rounds, chance) if given.only != "pages" else {}
    slow = imported() if called else []
    targets = page_targets(looked) if looked else []
    if called:
        targets += [
            Target(VERSION, taken(called[VERSION]), VERSION_MS_MAX, "ms"),
            Target(LIST, taken(called[LIST]), LIST_MS_MAX, "ms"),
        ]
    if given.json:
        pages_found = {case: [asdict(sample) for sample in found] for case, found in looked.items()}
        told = {"header": machine(), "pages": pages_found, "commands": called, "imported": slow}
        print(json.dumps({**told, "targets": [target.as_json() for target in targets]}, indent=1))
        return
    console = Console(width=None if sys.stdout.isatty() else 132, highlight=False)
    for name, value in machine().items():
        console.print(f"{name}: {value}", soft_wrap=True)
    for table in ([page_table(looked)] if looked else []) + ([command_table(called)] if called else []):
        console.print(table)
    if called:
        console.print(f"`{VERSION}` imports of {', '.join(SLOW_TO_IMPORT)}: {', '.join(slow) or 'none'}")
    for target in targets:
        console.print(str(target), soft_wrap=True)


if __name__ == "__main__":
    main()
