"""Processor time of other processes: theirs is seen, as long as they live, and nobody else's."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from echoic.testing.bench.processes import children, processor_seconds

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(children() is None, reason="the kernel does not tell"),
]

# Works for a while each time it is told to, and says when it has.
WORKER = """
import sys, time
for line in sys.stdin:
    begun = time.process_time()
    while time.process_time() - begun < float(line):
        pass
    print(flush=True)
"""


@pytest.fixture
def worker() -> Iterator[subprocess.Popen[str]]:
    program = [sys.executable, "-I", "-S", "-c", WORKER]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        yield process
        process.kill()


def work(process: subprocess.Popen[str], seconds: float) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{seconds}\n")
    process.stdout.readline()


def test_a_process_that_was_started_is_a_child_until_it_ends() -> None:
    before = children() or frozenset()
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert (children() or frozenset()) - before == {process.pid}
    assert process.pid not in (children() or frozenset())


def test_the_work_of_a_process_is_counted_if_it_takes_part(worker: subprocess.Popen[str]) -> None:
    with_it, without_it = processor_seconds([worker.pid]), processor_seconds([])
    work(worker, 0.05)
    assert processor_seconds([worker.pid]) - with_it >= 0.05
    assert processor_seconds([]) - without_it < 0.05


def test_the_time_of_a_process_that_has_ended_is_not_known(worker: subprocess.Popen[str]) -> None:
    worker.kill()
    worker.wait()
    with pytest.raises(OSError, match="Invalid argument"):
        processor_seconds([worker.pid])
