"""`echoic bus record` and `echoic bus replay`: keep a run, and have it again.

    record S.tb FILE            all that was heard, and when: the run can be repeated, step for step, without its tools
    record S.tb FILE --tools    what tools and the bus have said: tools can be imitated, also for a changed script

The kind of a file is seen from its first line.
"""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from echoic.cli.bus_run import MANNER, Manner, Run, show_text
from echoic.cli.bus_scripts import FAILED, PLAIN, Preparation, find_file, say_error
from echoic.cli.bus_tracing import TraceHead, TraceWriter
from echoic.cli.screen import json_text, say
from echoic.cli.where import AsJson, Flag
from echoic.errors import JournalError, LocalError, RefusedError
from echoic.scripts.running.messages import Effect, Halted, Print, Step, Warned
from echoic.toolbus import imitate, read_run, replay_run

__all__ = ["record", "replay"]

FIRST_LINE_MAX: Final = 65_536
OTHERWISE: Final = "in the recording"
"""What a bus warns of with these words was not so when the tool was recorded."""


def record(
    script: Path,
    file: Path,
    /,
    *,
    tools: Flag = False,
    preparation: Preparation = PLAIN,
    manner: Manner = MANNER,
) -> None:
    """Run a script, and keep what it takes to have the run again.

    Try:
        echoic bus record auction.tb auction.run
        echoic bus replay auction.run auction.tb
    or, to play its tools for a script that has been changed since
        echoic bus record calc.tb calc.words --tools
        echoic bus replay calc.words calc.tb

    Args:
        script: The file of the script.
        file: Where the run goes; a file that is there is replaced.
        tools: Keep what tools and the bus say to each other instead.
        preparation: How the text of the script is read.
        manner: How it is run.
    """
    run = Run(script, preparation, manner)
    if tools:
        run.until_it_ends(words_path=file)
    else:
        run.until_it_ends(log_path=file)


def replay(
    file: Path,
    script: Path,
    /,
    *,
    preparation: Preparation = PLAIN,
    trace: Annotated[Path | None, Parameter(show_default=False)] = None,
    tools: Annotated[list[str] | None, Parameter(name="--tool", negative=(), show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """Have a run again: the same steps in the same order, and the same output. No tool is started, no time passes.

    The script must be the one that was run, letter by letter, with the same -D and typed the same way. With what was
    kept by `record --tools` it need not be: the script is run, and its tools say again what they said; the exit code
    is 1 if they are told something else than they were.

    Try:
        echoic bus replay auction.run auction.tb
        echoic bus replay auction.run auction.tb --trace auction.trace
        echoic bus replay calc.words calc.tb --tool calc

    Args:
        file: The file that `echoic bus record` or `echoic bus run --record` has written.
        script: The file of the script.
        preparation: How its text is read.
        trace: Write every step to a file, for `echoic bus trace`.
        tools: Imitate this tool only; repeat it for more. Others are started.
        as_json: Print how it ended as JSON, after what the script prints.
    """
    find_file(file, "recording")
    find_file(script, "script")
    if _has_words(file):
        _imitate(file, script, preparation, trace, tools or [])
        return
    steps, halted = _repeat(file, script, preparation, trace)
    if as_json:
        print(json_text({"steps": steps, "halted": halted}))
    else:
        say(f"{steps} steps were done again" + ("" if halted else "; the run was cut off before its end"))


def _repeat(file: Path, script: Path, preparation: Preparation, trace: Path | None) -> tuple[int, bool]:
    """Do a run again; return how many steps it has, and whether it ended."""
    log = read_run(file)
    steps, halted = 0, False
    with contextlib.ExitStack() as stack:
        writer = None
        if trace is not None:
            head = TraceHead(trace=1, script=str(script), seed=log.seed, began=0.0)
            writer = stack.enter_context(TraceWriter(trace, preparation.load(script), head, log.now_ns))
        for effect in _effects(file, script, preparation):
            match effect:
                case Print(text):
                    show_text(text)
                case Step():
                    steps += 1
                    if writer is not None:
                        writer.add(effect)
                case Warned(text):
                    say(text)
                case Halted():
                    halted = True
                case _:
                    pass  # nobody is told anything, and nothing is started
    return steps, halted


def _effects(file: Path, script: Path, preparation: Preparation) -> Iterator[Effect]:
    """Yield what a run did.

    Raises:
        LocalError: It is the run of another script.
    """
    try:
        for effects in replay_run(file, script, defines=preparation.defines, include=preparation.folders):
            yield from effects
    except RefusedError as error:
        raise LocalError(f"{error}: {script} has changed, or was typed another way, or with other -D") from None


def _has_words(file: Path) -> bool:
    """Whether a file has what tools said rather than a run."""
    try:
        with file.open(encoding="utf-8") as lines:
            first = lines.readline(FIRST_LINE_MAX)
    except (OSError, UnicodeDecodeError) as error:
        raise JournalError(f"{file} cannot be read: {error}") from error
    return '"says"' in first and '"digest"' not in first


def _imitate(file: Path, script: Path, preparation: Preparation, trace: Path | None, names: list[str]) -> None:
    """Run a script whose tools are played."""
    run = Run(script, preparation, Manner(trace=trace))
    with contextlib.ExitStack() as stack:
        bus = run.bus(stack)
        played = imitate(bus, file, *names)
        if not played:
            say_error(f"{file} has nothing of a tool{f' {names[0]}' if names else ''}")
            sys.exit(FAILED)
        run.watch(bus)
        if any(OTHERWISE in text for text in bus.warnings()):
            sys.exit(FAILED)
