"""`echoic bus run`: run a script with its tools until it ends.

    script --> checks --> Bus ---- printf, tools' output ----> stdout
                           |  ---- warnings, and how it ended -> stderr
                           +------ --trace, --record ----------> files
                           +------ --channel ------------------> channel bus.NAME
                           +------ ConsoleDesk <---------------- echoic bus console, echoic viewer

A script that nothing can move any more does not hang the terminal: the bus is looked at once a second while it rests,
and where no process can go on and nobody outside could change that, the run has failed and says who waits for what.
"""

import contextlib
import math
import re
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

from echoic.cli.bus_scripts import FAILED, PLAIN, Preparation, say_error, say_findings
from echoic.cli.bus_tracing import TraceHead, TraceWriter
from echoic.cli.ending import told_by
from echoic.cli.meeting import attend, check_open, identity_named
from echoic.cli.quantities import NANOSECONDS, bytes_of, nanoseconds_of
from echoic.cli.screen import printable, say
from echoic.cli.teller import tell_warnings
from echoic.cli.where import ContextName, Flag, IdentityName, RightsPath, Where, chosen, chosen_rights
from echoic.errors import ClosedError, LocalError
from echoic.scripts.checking import require
from echoic.toolbus import Bus, BusOptions, RealClock, Recording, VirtualClock
from echoic.toolbus.desk import ConsoleDesk, check_name
from echoic.toolbus.history import StepHistory
from echoic.toolbus.keyboard import read_standard_input
from echoic.toolbus.state import LISTED_MAX, held_up, references_of, state_of, waiting_lines
from echoic.trust import Issuers

if TYPE_CHECKING:
    from echoic.hub import Hub
    from echoic.links import Identity
    from echoic.toolbus.clock import Clock

__all__ = ["Manner", "Run", "run"]

CHECK_SECONDS: Final = 1.0
POLL_SECONDS: Final = 0.2
SHOWN_PROCESSES: Final = 10
REFERENCES_ASKED: Final = re.compile(r"refs( \d{1,9}(\.\d{1,9})?)?")
"""The second word is how many seconds old they must be."""
STATE_ASKED: Final = re.compile(r"state( \d{1,4})?")
"""The second word is how many processes are told of."""
HISTORY_ASKED: Final = re.compile(r"history( \d{1,18})?")
"""The second word is the number of the last step that is known."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Manner:
    """How a script is run."""

    seed: Annotated[
        int | None, Parameter(help="Makes the choices that the script leaves open the same again.", show_default=False)
    ] = None
    listen: Annotated[str, Parameter(help="Where tools connect to, HOST:PORT; port 0 takes a free one.")] = (
        "127.0.0.1:0"
    )
    insecure: Annotated[
        bool,
        Parameter(
            help="Accept that strangers can connect, on addresses other machines reach.",
            negative=(),
            show_default=False,
        ),
    ] = False
    identity: IdentityName = None
    virtual_time: Annotated[
        bool, Parameter(help="Do not wait for delays: time jumps to the next one.", negative=(), show_default=False)
    ] = False
    threshold: Annotated[
        str,
        Parameter(
            help="From which size on values stay with the tool that says them, and others fetch them there: "
            "64KiB, 1MB; 0 for all strings, none for no value, auto to have it measured."
        ),
    ] = "auto"
    lease: Annotated[
        str,
        Parameter(
            help="How long a tool that was cut off may stay away and go on where it was: 30, 5m. "
            "[default: it is lost at once]",
            show_default=False,
        ),
    ] = ""
    trace: Annotated[Path | None, Parameter(help="Write every step to a file, for `echoic bus trace`.")] = None
    name: Annotated[
        str, Parameter(help="What consoles and channels call the bus. [default: that of the file]", show_default=False)
    ] = ""
    channel: Annotated[
        bool,
        Parameter(
            help="Tell every step on the channel bus.NAME, where others listen to it.", negative=(), show_default=False
        ),
    ] = False
    names: Annotated[
        str | None,
        Parameter(help="The name server for channels. [default: $ECHOIC_NAMES, echoic.toml, 127.0.0.1:7400]"),
    ] = None
    context: ContextName = None
    rights: RightsPath = None


MANNER: Final = Manner()


def run(
    script: Path,
    /,
    *,
    preparation: Preparation = PLAIN,
    manner: Manner = MANNER,
    record: Annotated[Path | None, Parameter(show_default=False)] = None,
    quiet: Flag = False,
) -> None:
    r"""Run a script with its tools, until it ends or Ctrl-C.

    What the script and its tools print goes to stdout. The exit code is 0 when the script has ended, by `shutdown` or
    because all its processes have; 1 when it failed, or when nothing can happen in it any more.

    Try, in a file hello.tb:
        process Hello is printf("hello\n") . shutdown("done")
        toolbus(Hello)
    and then
        echoic bus run hello.tb

    Try also:
        echoic bus run auction.tb -D BIDDERS=3 --seed 7 --virtual-time
        echoic bus run calc.tb --trace calc.trace && echoic bus trace calc.trace
        echoic bus run calc.tb --channel     and elsewhere: echoic echo bus.calc
        echoic bus run report.tb --threshold 1MB --lease 30     and elsewhere: echoic bus refs
        echoic bus run calc.tb --listen 0.0.0.0:7450 --identity lab --rights rights

    Args:
        script: The file of the script.
        preparation: How its text is read.
        manner: How it is run.
        record: Write what it takes to repeat the run to a file, for `echoic bus replay`.
        quiet: Do not say what the checks warn of.
    """
    Run(script, preparation, manner, quiet=quiet).until_it_ends(log_path=record)


class Run:
    """A script that is about to run."""

    def __init__(self, path: Path, preparation: Preparation, manner: Manner, *, quiet: bool = False) -> None:
        """Read and check a script.

        Raises:
            ScriptError: It is not in order.
            LocalError: The name is not fit for a bus.
        """
        self.path: Final = path
        self.name: Final = check_name(manner.name) if manner.name else fit_name(path.stem)
        self.script: Final = preparation.load(path)
        self._findings = require(self.script)
        self._manner = manner
        self._started = time.time()
        self._asked_to_end = threading.Event()
        self._typing = True
        self._history: StepHistory | None = None
        if not quiet:
            say_findings(self._findings)
        tell_warnings()

    @property
    def on_channels(self) -> bool:
        """Whether the script, or whoever runs it, wants channels."""
        tools = any(tool.feature("kind") == "channel" for tool in self.script.tools)
        return self._manner.channel or tools or bool(self.script.channel_notes)

    def until_it_ends(self, *, log_path: Path | None = None, words_path: Path | None = None) -> None:
        """Run the script; the verb ends with an exit code where it fails.

        Args:
            log_path: A file for what it takes to repeat the run.
            words_path: A file for what tools and the bus say to each other.

        Raises:
            EchoicError: The bus cannot be started.
        """
        with contextlib.ExitStack() as stack:
            bus = self.bus(stack, log_path)
            if words_path is not None:
                bus.on_word(stack.enter_context(Recording(words_path)).add)
            if any(tool.feature("kind") != "channel" and not tool.feature("command") for tool in self.script.tools):
                say(f"tools connect to {bus.address}, Ctrl-C ends")
            self.watch(bus)

    def bus(self, stack: contextlib.ExitStack, log_path: Path | None = None) -> Bus:
        """Return a bus for the script that has not begun, with all that was asked for.

        Raises:
            EchoicError: It cannot be made.
        """
        manner, identity = self._manner, self._identity()
        check_open(manner.listen, insecure=manner.insecure, identity=identity)
        clock: Clock = VirtualClock() if manner.virtual_time else RealClock()
        now_ns = clock.now_ns()
        options = BusOptions(
            name=self.name,
            seed=manner.seed,
            clock="virtual" if manner.virtual_time and self.on_channels else clock,
            listen=manner.listen,
            identity=identity,
            issuers=Issuers() if identity is not None else None,
            rights=None if self.on_channels else chosen_rights(manner.rights),  # else the hub has them, and tells of it
            insecure=manner.insecure,
            output=show_text,
            read_line=self._read_line,
            traced=manner.trace is not None or manner.channel,
            hub=stack.enter_context(self._hub()) if self.on_channels else None,
            log=log_path,
            threshold_bytes=threshold_of(manner.threshold),
            lease_seconds=nanoseconds_of(manner.lease) / NANOSECONDS,
        )
        bus = stack.enter_context(Bus(self.script, options))
        if manner.trace is not None:
            head = TraceHead(
                trace=1, script=str(self.path), seed=bus.seed, began=self._started, virtual=manner.virtual_time
            )
            bus.on_step(stack.enter_context(TraceWriter(manner.trace, self.script, head, now_ns)).add)
        self._history = StepHistory(bus, now_ns, traced=options.traced or options.hub is not None)
        return bus

    def watch(self, bus: Bus) -> None:
        """Run a bus until it ends, is asked to, or nothing can happen in it any more."""
        with ConsoleDesk(self.name, lambda question: self._answer(bus, question)):
            try:
                bus.start()
                stuck = self._wait(bus)
                if stuck:
                    self._tell_stuck(bus)
                bus.close()
                if not stuck and not self._asked_to_end.is_set():
                    bus.run()  # it is over: tells how
            except KeyboardInterrupt as ending:
                say(f"ended by {told_by(ending)} after {bus.statistics().machine.steps} steps")
                bus.close()
                return
            except ClosedError as error:
                say_error(str(error))
                sys.exit(FAILED)
        if stuck:
            sys.exit(FAILED)
        if self._asked_to_end.is_set():
            say("ended by a console")

    def _wait(self, bus: Bus) -> bool:
        """Wait for the end; return whether nothing can happen any more."""
        before, next_check = -1, time.monotonic() + CHECK_SECONDS
        channels = bool(self.script.channel_notes)
        while not bus.wait(POLL_SECONDS) and not self._asked_to_end.is_set():
            if time.monotonic() < next_check:
                continue
            turns = bus.statistics().machine.turns
            if (
                turns == before
                and not bus.busy
                and held_up(bus.state(), self.script.sources, channels=channels, typing=self._typing)
            ):
                return bus.statistics().machine.turns == turns and not bus.busy
            before, next_check = turns, time.monotonic() + CHECK_SECONDS
        return False

    def _answer(self, bus: Bus, question: str) -> dict[str, Any]:
        """Answer a console."""
        if question == "shutdown":
            self._asked_to_end.set()
            return {"name": self.name, "ends": True}
        if REFERENCES_ASKED.fullmatch(question):
            return references_of(bus, str(self.path), older_seconds=float(question.removeprefix("refs") or 0))
        if HISTORY_ASKED.fullmatch(question) and self._history is not None:
            return self._history.since(int(question.removeprefix("history") or 0))
        if not STATE_ASKED.fullmatch(question):
            return {"error": f"`{question}` is not known; there are `state`, `refs`, `history` and `shutdown`"}
        checks = [f"{each.file}:{each.line}:{each.column}: {each.message}" for each in self._findings.warnings]
        processes_max = int(question.removeprefix("state") or LISTED_MAX)
        return state_of(bus, str(self.path), self._started, checks, processes_max)

    def _read_line(self, prompt: str) -> str | None:
        """Return a line for `read`, and note when there are no more."""
        line = read_standard_input(prompt)
        self._typing = line is not None
        return line

    def _tell_stuck(self, bus: Bus) -> None:
        state = state_of(bus, str(self.path), self._started, [])
        lines = "\n".join(waiting_lines(state, SHOWN_PROCESSES))
        say_error(
            f"nothing can happen in {self.path} any more, after {bus.statistics().machine.steps} steps:\n{lines}\n"
            f"`echoic bus check {self.path}` looks for the shortest way to this; --seed {bus.seed} repeats this one"
        )

    @contextlib.contextmanager
    def _hub(self) -> Iterator["Hub"]:
        with attend(self._where, "bus") as hub:
            yield hub

    @property
    def _where(self) -> Where:
        manner = self._manner
        return Where(names=manner.names, context=manner.context, identity=manner.identity, rights=manner.rights)

    def _identity(self) -> "Identity | None":
        return identity_named(chosen(self._where).identity)


def threshold_of(text: str) -> float | None:
    """Return from how many bytes on values go by reference: infinitely many for `none`, None for `auto`.

    Raises:
        LocalError: It is no number of bytes either.
    """
    match text.lower():
        case "auto":
            return None
        case "none":
            return math.inf
        case "":
            raise LocalError("expected `auto`, `none` or a number of bytes such as 64KiB, got nothing - at --threshold")
        case _:
            return bytes_of(text)


def fit_name(stem: str) -> str:
    """Return the name of a file as that of a bus."""
    try:
        return check_name(re.sub(r"[^A-Za-z0-9_.-]", "-", stem).lstrip("-.")[:40])
    except LocalError:
        return "bus"


def show_text(text: str) -> None:
    """Write what a script or a tool prints, at once."""
    sys.stdout.write(printable(text, keep="\n\t"))
    sys.stdout.flush()
