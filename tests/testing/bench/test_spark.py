"""What the benchmark of Spark makes of numbers, and the journals that it reads; Spark itself is not started here."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.spark_cost import events_of, fit
from benchmarks.spark_data import FIELDS, READINGS, TRADES, record
from benchmarks.spark_deriving import TASKS
from benchmarks.spark_queries import processor_accounts, processor_seconds
from echoic.ecode import Signature, check
from echoic.formats import format_of_text
from echoic.recorder import Journal

WORK_SECONDS = 0.2
PROGRAM = f"""
import sys, time
while time.process_time() < {WORK_SECONDS}:
    pass
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(("series", "fields"), [(READINGS, 12), (TRADES, 4), (FIELDS, 2)])
def test_a_journal_has_as_many_events_as_were_asked_for(series: object, fields: int, tmp_path: Path) -> None:
    made = series()
    kept = record(tmp_path, made, 4 * len(made.batches[0]))
    journal = Journal(tmp_path, made.channel)
    assert sum(journal.heads) == kept.events == 4 * len(made.batches[0])
    assert journal.heads[0] == journal.heads[1]
    assert len(journal.format.fields) == fields
    assert kept.bytes >= kept.events * journal.format.size


def test_a_line_is_found_in_costs() -> None:
    line = fit([1e6, 2e6, 4e6, 8e6], [1.5, 2.0, 3.0, 5.0])
    assert (round(line.fixed_seconds, 6), round(line.event_seconds * 1e9, 3)) == (1.0, 500.0)
    assert line.explained == pytest.approx(1.0)
    assert fit([1, 2, 4, 8], [1, 4, 16, 64]).explained < 0.99
    assert events_of("12,500,000") == 12_500_000


@pytest.mark.parametrize("name", TASKS)
def test_the_code_of_each_task_is_right(name: str) -> None:
    task = TASKS[name]
    output = format_of_text("Worth{at: float, value: float}")
    params = format_of_text("Params{low: float}")
    check(task.code, Signature(task.series().batches[0].format, output, params))


def test_processes_below_this_one_are_counted_and_one_may_be_left_out() -> None:
    before = processor_seconds()
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        counted, accounts = processor_seconds(), processor_accounts()
        without = processor_accounts(process.pid)
        process.kill()
    assert counted - before >= WORK_SECONDS - 0.05
    assert accounts[process.pid][0] >= WORK_SECONDS - 0.05
    assert accounts.keys() - without.keys() == {process.pid}
