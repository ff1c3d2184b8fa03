"""What the pages about shipped code say is so: commands run, programs are shown whole, numbers hold."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from echoic.channels import Policy
from echoic.channels.modulation import PORTION_EVENTS
from echoic.eager import Limits
from echoic.eager.inside import OPEN_FILES_MAX
from echoic.eager.keeper import RESTLESS_SECONDS
from echoic.eager.limits import OUTPUT_EVENTS_MAX, SERVICE_CALLS_MAX
from echoic.eager.modulator import QUEUE_EVENTS_MAX
from echoic.eager.parcel import PARCEL_BYTES_MAX
from echoic.eager.pipe import BODY_BYTES_MAX, HEAD_BYTES_MAX
from echoic.eager.text import TEXT_BYTES_MAX

DOCS = Path(__file__).parents[2] / "docs"
SHIP = (DOCS / "how-to" / "ship-a-handler.md").read_text(encoding="utf-8")
WHERE = (DOCS / "explanation" / "where-shipped-code-may-run.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
KEY = re.compile(r"ed25519:\S{43}")

BEFORE_THE_README = """
import echoic

@echoic.event
class Trade:
    price: float

class Range(echoic.SharedObject):
    low: float = 0.0

hub = echoic.Hub()
trades = hub.create("trades", Trade)
handler, wanted = lambda trade: print(trade.price), Range(71.0)
"""
BEHIND_THE_README = """
source = trades.source()
source.submit_batch([Trade(70.0), Trade(75.0)])
source.drain()
hub.close()
"""


def run(arguments: list[str], home: Path) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "ECHOIC_HOME": str(home)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("heading", ["2. Have a key", "3. Have the source's operator list it"])
def test_the_commands_and_lines_about_keys_do_what_the_page_says(heading: str, tmp_path: Path) -> None:
    section = SHIP.split(f"## {heading}\n")[1].split("\n## ")[0]
    printed = ""
    for language, text in BLOCK.findall(section):
        match language:
            case "sh":
                commands = [shlex.split(line)[1:] for line in text.splitlines()]
                printed = "".join(
                    run(["-c", "import echoic.cli; echoic.cli.main()", *each], tmp_path) for each in commands
                )
            case "text":
                assert KEY.sub("KEY", printed) == KEY.sub("KEY", text)
            case _:
                program = tmp_path / "program.py"
                program.write_text(text, encoding="utf-8")
                run([str(program)], tmp_path)


def test_the_modulator_in_the_readme_runs(tmp_path: Path) -> None:
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    (shown,) = [text for _, text in BLOCK.findall(readme) if "echoic.Modulator" in text]
    program = tmp_path / "program.py"
    program.write_text(f"{BEFORE_THE_README}\n{shown}\n{BEHIND_THE_README}", encoding="utf-8")
    assert run([str(program)], tmp_path) == "70.0\n"


BESIDE_PAGES = [
    path for path in sorted(DOCS.rglob("*.py")) if path.with_name(path.stem.replace("_", "-") + ".md").exists()
]


@pytest.mark.parametrize("program", BESIDE_PAGES, ids=lambda path: path.name)
def test_a_program_beside_a_page_is_shown_in_it(program: Path) -> None:
    page = program.with_name(program.stem.replace("_", "-") + ".md").read_text(encoding="utf-8")
    shown = program.read_text(encoding="utf-8").split('"""\n\n', 1)[1]
    assert f"```python\n{shown}```" in page


def test_the_numbers_of_the_pages_are_those_of_the_program() -> None:
    policy, limits = Policy(), Limits()
    assert f"modulator_seconds_max={policy.modulator_seconds_max:g}" in WHERE
    assert f"modulator_bytes_max={policy.modulator_bytes_max:_}" in WHERE
    for name in ("cost_max", "fuel", "faults_max", "derivations_max"):
        assert f"{name}={getattr(policy, name):_}" in WHERE
    assert f"at most {PORTION_EVENTS} events enqueued" in WHERE
    assert f"{limits.start_seconds:g} s, {limits.load_seconds:g} s" in WHERE
    assert f"processor time between two calls | {RESTLESS_SECONDS:g} s" in WHERE
    assert f"open files | {OPEN_FILES_MAX} |" in WHERE
    assert f"{HEAD_BYTES_MAX // 1024} KiB of values, {BODY_BYTES_MAX // 1024**2} MiB of events" in WHERE
    for number in (QUEUE_EVENTS_MAX, OUTPUT_EVENTS_MAX, SERVICE_CALLS_MAX):
        assert f"{number:,}" in WHERE
    assert f"{QUEUE_EVENTS_MAX:,} at most" in SHIP
    parcel = f"the whole parcel {PARCEL_BYTES_MAX // 1024**2} MiB"
    assert f"{TEXT_BYTES_MAX // 1024} KiB, and {parcel}" in SHIP.replace("\n", " ")
    assert f"{PARCEL_BYTES_MAX // 1024**2} MiB at most" in WHERE.replace("\n", " ")
