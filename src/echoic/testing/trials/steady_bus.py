"""A bus with two tools, as a user starts one: a script and two programs in a folder, run by the command line.

It prints nothing and never ends by itself. The processes are found as the children of the command.
"""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["run_bus"]

SCRIPT: Final = """
tool counter is {{ command = "{python} counter.py" }}
tool shower is {{ command = "{python} shower.py" }}

process Count is
  let C: counter, S: shower, N: int in
    execute(counter, C?) . execute(shower, S?) .
    ( snd-eval(C, next) . rec-value(C, value(N?)) . snd-do(S, show(N)) . tau delay(msec(100)) ) * delta
  endlet

toolbus(Count)
"""
COUNTER: Final = """
from typing import Annotated
from echoic.toolbus import Term, Tool, eval_

class Counter(Tool, name="counter"):
    number = 0

    @eval_
    def next(self) -> Annotated[Term, "value(int)"]:
        self.number += 1
        return Term("value", self.number)

Counter.run()
"""
SHOWER: Final = """
from echoic.toolbus import Tool, do

class Shower(Tool, name="shower"):
    @do
    def show(self, number: int) -> None:
        self.last = number

Shower.run()
"""
COMMAND: Final = "from echoic.cli import main; main()"
END_SECONDS: Final = 10.0


@contextlib.contextmanager
def run_bus(folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run the bus in a folder of its own."""
    folder.mkdir()
    (folder / "count.tb").write_text(SCRIPT.format(python=sys.executable))
    (folder / "counter.py").write_text(COUNTER)
    (folder / "shower.py").write_text(SHOWER)
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "bus", "run", "count.tb"], cwd=folder, stdin=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
