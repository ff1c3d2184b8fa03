"""The command line: one function per verb, one module per family of verbs.

Data goes to stdout, all else to stderr. `--version` is answered before anything is imported, and so is a shell that
completes a word. Exit codes:

    0  done, also when Ctrl-C ended what would go on for ever, or whoever read the output wants no more
    1  failed
    2  wrong usage, also code that does not compile
    3  not found
    4  denied
    130  interrupted by Ctrl-C or SIGTERM before it was done
"""

import os
import re
import signal
import sys
from collections.abc import Sequence
from typing import Final

import echoic
from echoic.cli.ending import Terminated
from echoic.errors import ChannelNotFoundError, EchoicError, ECodeError, InsecureError, RefusedError, ScriptError

__all__ = ["main"]

FAILED: Final = 1
USAGE: Final = 2
NOT_FOUND: Final = 3
DENIED: Final = 4
INTERRUPTED: Final = 130
STAYING: Final = frozenset(
    {
        *("bw", "delay", "derive", "echo", "foxglove", "hz", "metrics", "names", "pipeline", "pub", "record", "replay"),
        *("top", "up", "viewer"),
    }
)
HELP: Final = frozenset({"--help", "-h"})
WAIT: Final = ("-w", "--wait")


def main() -> None:
    """Run the command line and exit."""
    if sys.argv[1:] == ["--version"]:
        print(echoic.__version__)
        return
    if sys.argv[1:2] == ["--complete-live"]:
        from echoic.cli.completing import complete_live

        complete_live(sys.argv[2:])
        return
    try:
        signal.signal(signal.SIGTERM, _terminate)  # who is told to end takes leave
        from echoic.cli.app import GROUPS, app, load_all

        if not sys.argv[1:] or HELP & set(sys.argv[1:]):
            load_all()
        elif sys.argv[1:] == sys.argv[1:2] and sys.argv[1] in GROUPS:
            GROUPS[sys.argv[1]].resolved_commands()  # it answers with what its verbs do
        app(_complete(sys.argv[1:]))
        sys.stdout.flush()
    except EchoicError as error:
        from echoic.cli.app import report_error

        report_error(error)
        sys.exit(_exit_code(error))
    except BrokenPipeError:
        # Python would try to write the rest when it ends, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        sys.exit(0 if sys.argv[1:2] and sys.argv[1] in STAYING else INTERRUPTED)


def _terminate(*_: object) -> None:
    raise Terminated


def _exit_code(error: EchoicError) -> int:
    match error:
        case ECodeError() | ScriptError():
            return USAGE
        case ChannelNotFoundError():
            return NOT_FOUND
        case InsecureError() | RefusedError():
            return DENIED
        case _:
            return FAILED


def _complete(words: Sequence[str]) -> list[str]:
    """Return the words with the number that `pub -w` may leave out, and with the verb for `--install-completion`."""
    if list(words) == ["--install-completion"]:
        return ["completion", "--install"]
    if words[:1] != ["pub"]:
        return list(words)
    completed: list[str] = []
    for word, following in zip(words, [*words[1:], ""], strict=True):
        completed.append(word)
        if word in WAIT and not re.fullmatch(r"\d+", following):
            completed.append("1")
    return completed
