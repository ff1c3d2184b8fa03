"""The command line: one function per verb, one module per family of verbs.

Data goes to stdout, all else to stderr. Exit codes: 0 done, 1 failed, 2 wrong usage. `--version` is answered before
anything is imported.
"""

import sys

import echoic

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit."""
    if sys.argv[1:] == ["--version"]:
        print(echoic.__version__)
        return
    from echoic.cli.app import app, report_error

    try:
        app()
    except echoic.EchoicError as error:
        report_error(error)
        sys.exit(1)
