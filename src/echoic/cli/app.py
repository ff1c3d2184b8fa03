"""The verbs, gathered into one application."""

import sys
from typing import Final

import cyclopts
from rich.console import Console
from rich.text import Text

import echoic
from echoic.cli.demo import demo
from echoic.cli.fuzz import fuzz_frames
from echoic.cli.layout import layout
from echoic.errors import EchoicError

__all__ = ["app", "report_error"]

HELP: Final = """
Typed event channels whose consumers run their own code inside the producer.

Start with `echoic demo`.
"""

app: Final = cyclopts.App("echoic", help=HELP, version=echoic.__version__, result_action="return_value")
fuzz: Final = cyclopts.App("fuzz", help="Feed hostile input to the parsers, from a seed.")

app.command(demo)
app.command(layout)
app.command(fuzz)
fuzz.command(fuzz_frames, name="frames")


def report_error(error: EchoicError) -> None:
    """Say on stderr what went wrong."""
    Console(file=sys.stderr).print(Text.assemble(("error: ", "bold red"), str(error)))
