"""The bus: runs a T-script with its tools.

    with Bus.from_script("calc.tb") as bus:
        print(bus.run())                        # what `shutdown` said

    script -> checked -> Program -> Machine, in the thread of a BusLoop
                                      |
          printf, read      ----------+---------- tools: RemoteLine (Reception), DirectLine (attach), channels
          processes (Launcher) -------+---------- steps: hooks, the channel `bus.NAME`

The machine decides and the bus acts. Nothing that a tool does or does not do makes the machine wait.
"""

import atexit
import logging
import random
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from echoic.errors import ClosedError, EchoicError, LocalError, RefusedError, UnreachableError
from echoic.links import Identity
from echoic.rights import Rights
from echoic.scripts.checking import require
from echoic.scripts.graph import Program
from echoic.scripts.running import Machine, MachineLimits, MachineState, Wait
from echoic.scripts.running.messages import FromTool, Input, LineRead, Lost, Said, Step
from echoic.scripts.syntax.tree import Script
from echoic.terms import UNDEFINED, Value, value_of
from echoic.toolbus.admission import Admission
from echoic.toolbus.clock import Clock, ClockName, clock_of
from echoic.toolbus.direct import DirectLine
from echoic.toolbus.house_rules import HouseRules
from echoic.toolbus.interfaces import Interfaces
from echoic.toolbus.keyboard import Keyboard, read_standard_input
from echoic.toolbus.launcher import Launcher
from echoic.toolbus.leases import Leases
from echoic.toolbus.limits import DEFAULT_LIMITS, BusLimits
from echoic.toolbus.line import Line
from echoic.toolbus.loop import BusLoop
from echoic.toolbus.options import DEFAULT_MACHINE_LIMITS, BusOptions, BusStatistics, ReferenceState, ToolStatistics
from echoic.toolbus.parting import part
from echoic.toolbus.performing import Performer
from echoic.toolbus.protocol import NO_INSTANCE, Hello
from echoic.toolbus.reception import Reception
from echoic.toolbus.run_file import begin_run
from echoic.toolbus.script_source import NO_DEFINES, executed_tools, load_script
from echoic.toolbus.starting import Starter
from echoic.toolbus.stub import Answers, Stub
from echoic.toolbus.switchboard import Conversation, OnWord
from echoic.toolbus.tool import Tool
from echoic.trust import Issuers

if TYPE_CHECKING:
    from echoic.hub import Hub
    from echoic.toolbus.channel_binding import ChannelBinding

__all__ = ["Bus", "BusStatistics", "ToolStatistics"]

WARNINGS_KEPT: Final = 1000
SEED_BITS: Final = 63
CLOSE_SECONDS: Final = 10.0
CONNECTED_SECONDS: Final = 5.0
POLL_SECONDS: Final = 0.01
log: Final = logging.getLogger("echoic.toolbus")


class Bus:
    """Runs a script. It begins with `start`, `run` or `step`, and ends with its script, or with `close`."""

    def __init__(self, script: Script, options: BusOptions | None = None) -> None:
        """Check and compile a script, and listen for its tools.

        Raises:
            ScriptError: The script is not in order.
            AddressError: `listen` is not an address.
            InsecureError: It can be reached from other machines, without TLS.
            UnreachableError: It cannot be listened at.
            LocalError: `rights` is no file of rules.
        """
        self.options: Final = options or BusOptions()
        self.script: Final = script
        self.name: Final = self.options.name
        self.seed: Final = secrets.randbits(SEED_BITS) if self.options.seed is None else self.options.seed
        """With it and the same inputs a run is the same again."""
        self.options.check()
        limits = self.options.limits
        require(script)
        interfaces = Interfaces(script)
        rules = HouseRules(self.options.rights, self.options.hub)
        self._warnings: deque[str] = deque(maxlen=WARNINGS_KEPT)
        self._warned = 0
        self._failure: BaseException | None = None
        self._ended = threading.Event()
        self._closing = threading.Lock()
        self._opened = self._running = self._wound_up = False
        self._executed = executed_tools(script)
        clock = clock_of(self.options.clock)
        now_ns = clock.now_ns()
        self._log = begin_run(self.options, script, self.seed, now_ns, clock.epoch_ns)
        machine = Machine(
            Program(script),
            chance=random.Random(self.seed),  # noqa: S311 - it guards nothing, and must be the same again
            now_ns=now_ns,
            epoch_ns=clock.epoch_ns,
            limits=self.options.machine_limits,
            traced=self.options.traced or self.options.hub is not None,
            log=self._log,
        )
        self._loop = BusLoop(machine, clock, limits.heard_max, self._late, self._is_busy, self.options.values())
        self._launcher = Launcher(limits, self.lost_start, identity=self.options.identity, output=self.options.output)
        self._keyboard = Keyboard(self.options.read_line, lambda line: self._loop.feed(LineRead(line)))
        self._leases = Leases(self.options.lease_seconds)
        self._starter = Starter(script, self._launcher, self, self.lost_start)
        self.admission: Final = Admission(
            interfaces.terms, interfaces.difference, self._launcher, rules, self._has_room, self.lost_start
        )
        custody, leases = self._loop.custody, self._leases
        try:
            self._reception = Reception(self.options, self.admission, self, self._refused, custody, leases)
        except EchoicError:
            self._close_log()
            raise
        self.visitors: Final = self._reception.visitors
        self.address: Final = self._reception.address
        """Where tools connect to."""
        self._channels = self._bind_channels()
        self._performer = Performer(self._loop, self._starter, self._launcher, self._keyboard, self._warn)
        self._performer.channels = self._channels
        if self.options.output is not None:
            self._performer.output = self.options.output
        self._loop.perform = self._performer.perform

    @classmethod
    def from_script(  # noqa: PLR0913 - every one has a default, and is named by the caller
        cls,
        source: str | Path,
        *,
        defines: Mapping[str, str] = NO_DEFINES,
        include: Sequence[str | Path] = (),
        name: str = "bus",
        seed: int | None = None,
        clock: ClockName | Clock = "real",
        listen: str = "127.0.0.1:0",
        identity: Identity | None = None,
        issuers: Issuers | None = None,
        rights: Rights | str | Path | None = None,
        insecure: bool = False,
        limits: BusLimits = DEFAULT_LIMITS,
        machine_limits: MachineLimits = DEFAULT_MACHINE_LIMITS,
        output: Callable[[str], None] | None = None,
        read_line: Callable[[str], str | None] = read_standard_input,
        traced: bool = False,
        hub: "Hub | None" = None,
        log: str | Path | None = None,
        threshold_bytes: float | None = None,
        lease_seconds: float = 0.0,
        promote: bool = True,
    ) -> Self:
        """Return a bus for a script.

        Args:
            source: The path of the script, or its text, which has several lines or a `toolbus(...)` in it.
            defines: Macros from outside, by name.
            include: Folders for included files.
            name: Of the bus; its steps are on the channel `bus.NAME`.
            seed: Of the choices that the script leaves open; one is drawn otherwise.
            clock: `real`, or `virtual`, which does not wait for delays.
            listen: Where tools connect to; port 0 takes a free one.
            identity: Certificate, key and authority for TLS, which addresses that other machines can reach need.
            issuers: Reads the tokens of tools that have no certificate; without it, all of them need one.
            rights: Who may be which tool (`publish` on `tool:NAME`), or the file of it; those of `hub` count as well.
            insecure: Accept that strangers can connect, instead.
            limits: On messages, queues and waiting.
            machine_limits: On processes, notes and events.
            output: Takes what `printf` and tools print, instead of standard output.
            read_line: Returns a line for `read`, given a prompt, instead of standard input.
            traced: Tell every step to the hooks of `on_step`.
            hub: Where channels are that the script names; steps are told on a channel there.
            log: A file for what it takes to repeat the run (`replay_run`).
            threshold_bytes: From which size on values go by reference (`ValueOptions`); measured without it.
            lease_seconds: How long a tool that was cut off may stay away and go on where it was.
            promote: Whether the bus keeps values of a tool that leaves in order, while they are referred to.

        Raises:
            EchoicError: The script is not in order, and the message shows where; or it cannot listen, as `Bus` says.
        """
        options = BusOptions(
            name=name,
            seed=seed,
            clock=clock,
            limits=limits,
            machine_limits=machine_limits,
            output=output,
            read_line=read_line,
            traced=traced,
            hub=hub,
            log=log,
            threshold_bytes=threshold_bytes,
            lease_seconds=lease_seconds,
            promote=promote,
        )
        options = replace(options, listen=listen, identity=identity, issuers=issuers, rights=rights, insecure=insecure)
        return cls(load_script(source, defines=defines, include=include), options)

    # Running

    def start(self) -> None:
        """Run the script in a thread of its own.

        Raises:
            ClosedError: The bus was closed.
            LocalError: It runs already.
        """
        self._open()
        with self._closing:
            if self._running:
                raise LocalError(f"bus `{self.name}` runs already")
            self._running = True
        self._loop.run(f"echoic-bus-{self.name}", self._conclude)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the bus has halted and its tools are gone; False where it takes longer."""
        return self._ended.wait(timeout)

    def run(self, timeout: float | None = None) -> Value | None:
        """Run the script until it ends, and return what `shutdown` said, None where it ended without.

        Args:
            timeout: Give up after so many seconds.

        Raises:
            ClosedError: The bus was closed, before or meanwhile.
            UnreachableError: It did not end in time; it is closed then.
        """
        if not self._running:
            self.start()
        try:
            ended = self.wait(timeout)
        except BaseException:
            self.close()
            raise
        if not ended:
            self.close()
            raise UnreachableError(f"bus `{self.name}` did not halt within {timeout:g} seconds")
        if self._failure is not None:
            raise self._failure
        return self._performer.value

    def step(self, timeout: float = 0.0) -> bool:
        """Do one step of the script in this thread, hearing first what tools have said; for tests and debuggers.

        Args:
            timeout: Wait so many seconds for tools and timers where nothing can be done.

        Returns:
            Whether a step was done.

        Raises:
            ClosedError: The bus was closed.
            LocalError: It runs by itself.
        """
        self._open()
        if self._running:
            raise LocalError(f"bus `{self.name}` runs by itself")
        loop = self._loop
        loop.begin()
        deadline = time.monotonic() + timeout
        before = loop.machine.statistics().steps
        while not self.halted:
            more = loop.turn(1)
            if loop.machine.statistics().steps > before:
                return True
            left = deadline - time.monotonic()
            if not more and not loop.wait_for_news(max(0.0, left)) and left <= 0:
                break
        return False

    def close(self) -> None:
        """End the bus: its tools are told to end, and killed if they do not."""
        self._loop.stop()
        if self._running:
            self._loop.join(self.options.limits.grace_seconds + CLOSE_SECONDS)
        self._wind_up()

    @property
    def busy(self) -> bool:
        """Whether a tool has something to answer, or values are on their way to somebody."""
        return self._loop.busy

    @property
    def halted(self) -> bool:
        """Whether the script has ended."""
        return self._loop.machine.halted

    @property
    def value(self) -> Value | None:
        """What `shutdown` said, once the script has ended by it."""
        return self._performer.value

    @property
    def machine(self) -> Machine:
        """What decides; to be looked at only while the bus does not run."""
        return self._loop.machine

    # Tools

    def attach(self, tool: Tool | type[Tool], *, name: str = "", executed: bool | None = None) -> None:
        """Let an object of this process be a tool; nothing it says or is told is encoded.

        Args:
            tool: The tool, or a class of them, of which one is made for each `execute`.
            name: What the script calls it, if that is not its own name.
            executed: Wait for `execute`, else connect at once, for `rec-connect`. Found out from the script otherwise.

        Raises:
            RefusedError: The script has no tool of this name, or the tool is not what the script expects; the message
                has both interfaces.
        """
        called = name or tool.tool_name
        difference = self.admission.compare(called, tool.interface(called))
        if difference:
            raise RefusedError(difference)
        if executed is None:
            executed = isinstance(tool, type) or called in self._executed
        if executed:
            self._starter.provide(called, tool)
        else:
            made = tool() if isinstance(tool, type) else tool
            self.arrived(DirectLine(made, self, called), None)

    def stub(self, name: str, answers: Answers | None = None, *, executed: bool | None = None) -> Stub:
        """Let there be a tool that says only what a test makes it say.

        Args:
            name: What the script calls it.
            answers: The values of evals by their names: values, or what makes them of the arguments.
            executed: As for `attach`.

        Raises:
            RefusedError: The script has no tool of this name.
        """
        stub = Stub(name, self, answers or {})
        self.provide(name, stub, executed=executed)
        return stub

    def provide(self, name: str, line: Line, *, executed: bool | None = None) -> None:
        """Let a line be a tool, whatever is at its other end; recordings are played this way.

        Args:
            name: What the script calls it.
            line: The conversation; it says what the tool says to this bus (`Audience`).
            executed: As for `attach`.

        Raises:
            RefusedError: The script has no tool of this name.
        """
        self.admission.compare(name, UNDEFINED)
        if name in self._executed if executed is None else executed:
            self._starter.provide(name, line)
        else:
            self.arrived(line, None)

    def inject_event(self, tool: str | int, *values: object) -> None:
        """Let a tool that is connected have said an event, for unit tests.

        Args:
            tool: Its number, or its name, which stands for the one that connected last. A bus that runs is given some
                seconds until it is there.
            values: What stands behind the tool in `rec-event`.

        Raises:
            LocalError: No such tool is connected.
        """
        if not self._running:
            self._open()
            self._loop.begin()
            self._loop.hear_now()
        deadline = time.monotonic() + CONNECTED_SECONDS
        while not (found := self._numbers_of(tool)):
            if not self._running or time.monotonic() > deadline:
                raise LocalError(f"no tool `{tool}` is connected")
            time.sleep(POLL_SECONDS)
        self._loop.feed(Said(found[-1], FromTool.EVENT, tuple(map(value_of, values))))

    def _numbers_of(self, tool: str | int) -> list[int]:
        with self._loop.lock:
            known = list(self._loop.switchboard.conversations.values())
        return [each.number for each in known if tool in (each.number, each.line.name)]

    def on_step(self, hook: Callable[[Step], None]) -> None:
        """Call a function for every step from now on, in the thread of the bus; it must not wait. Needs `traced`."""
        self._performer.hooks.append(hook)

    def trace(self, *, on: bool) -> None:
        """Tell steps to the hooks of `on_step`, or no more, whatever the options said; in any thread."""
        with self._loop.lock:
            self._loop.machine.traced = on

    def on_word(self, hook: OnWord | None) -> None:
        """Call a function for every word between the bus and its tools, for recordings.

        Tools that come in meanwhile say their values to the bus, whatever their size: a word with a reference in it
        would be worth nothing in a recording.
        """
        self._loop.switchboard.on_word = hook
        self._loop.custody.enabled = hook is None

    def warnings(self) -> tuple[str, ...]:
        """Return the last things that were not as they should be."""
        return tuple(self._warnings)

    def statistics(self) -> BusStatistics:
        """Return what was done so far."""
        with self._loop.lock:
            machine = self._loop.machine.statistics()
            conversations = list(self._loop.switchboard.conversations.values())
        tools = tuple(
            ToolStatistics(each.line.name, each.number, each.transactions.busy, each.said, each.told)
            for each in conversations
        )
        return BusStatistics(
            self.name,
            self.address,
            machine,
            tools,
            tuple(self._launcher.running()),
            self._loop.unheard,
            self._warned,
            self._loop.custody.references,
            self._loop.custody.statistics().fetched,
        )

    def references(self) -> tuple[ReferenceState, ...]:
        """Return the values that are with tools and that the script refers to."""
        loop = self._loop
        with loop.lock:
            holders = loop.machine.holders()
            names = {
                each.number: f"{each.line.name}({each.number})" for each in loop.switchboard.conversations.values()
            }
        return loop.custody.states(holders, names)

    def state(self, processes_max: int | None = None) -> MachineState:
        """Return all processes and tools as they are, or so many processes; the bus waits meanwhile."""
        with self._loop.lock:
            return self._loop.machine.state(processes_max)

    def waits(self, processes_max: int = 200) -> tuple[Wait, ...]:
        """Return who waits for whom, among so many processes; the bus waits meanwhile."""
        with self._loop.lock:
            return self._loop.machine.waits(processes_max)

    # What lines say (`Audience`)

    def arrived(self, line: Line, instance: int | None) -> None:
        """Take in a tool that has greeted."""
        self._loop.arrived(line, instance)
        if instance is not None:
            self._starter.settled(instance)

    def heard(self, line: Line, kind: FromTool, transaction: int, values: tuple[Value, ...]) -> None:
        """Learn what a tool says; waits while too much of it is unheard."""
        self._loop.heard(line, kind, transaction, values)

    def trouble(self, line: Line, text: str) -> None:
        """Learn that something is wrong with a tool."""
        self._warn(f"tool `{line.name}`: {text}")

    def gone(self, line: Line, reason: str) -> None:
        """Learn that a tool is gone."""
        instance = self._loop.instance_of(line)
        if instance is not None and not self._loop.is_here:
            fate = self._launcher.fate(instance)
            reason = f"{reason}, {fate}" if fate else reason
        self._loop.gone(line, reason)

    def leaving(self, line: Line, act: Callable[[], None]) -> None:
        """Learn that a tool has said its last word."""
        self._loop.leaving(line, act)

    def cut_off(self, line: Line) -> None:
        """Learn that the connection of a tool broke, which may come back; if its program has failed it is run again."""
        instance = self._loop.instance_of(line)
        while instance is not None and self._leases.waits_for(line) and not self._launcher.restart(instance):
            time.sleep(POLL_SECONDS)

    def returned(self, line: Line) -> None:
        """Learn that a tool that was cut off was started again."""
        self._loop.returned(line)

    def lost_start(self, tool: int, reason: str) -> None:
        """Learn that a tool that was started will not come."""
        self._starter.settled(tool)
        self._loop.feed(Lost(tool, reason))

    @property
    def entrances(self) -> dict[str, str]:
        """Where the programs of tools of some kind connect to, by kind (`kind = "ng"`)."""
        return self._starter.addresses

    def feed(self, input: Input) -> None:  # noqa: A002 - it is one
        """Give the machine an input, as channels do."""
        self._loop.feed(input)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _bind_channels(self) -> "ChannelBinding | None":
        hub = self.options.hub
        if hub is None:
            return None
        from echoic.toolbus.channel_binding import ChannelBinding

        binding = ChannelBinding(hub, self.name, self.script, self, virtual=self.options.clock == "virtual")
        self._starter.make_line = binding.make_line
        return binding

    def _close_log(self) -> None:
        if self._log is not None:
            self._log.close()

    def _open(self) -> None:
        """Let tools come in, once."""
        with self._closing:
            if self._wound_up:
                raise ClosedError(f"bus `{self.name}` was closed")
            if self._opened:
                return
            self._opened = True
        atexit.register(self.close)  # tools must not outlive a program that forgets to
        self._starter.addresses.setdefault("", self.address)
        self._reception.start()
        if self._channels is not None:
            self._channels.start(self._executed)

    def _conclude(self, failure: BaseException | None) -> None:
        """End in the thread of the loop, after the last step."""
        self._failure = failure
        self._wind_up()

    def _wind_up(self) -> None:
        """Send everybody away, once."""
        with self._closing:
            if self._wound_up:
                return
            self._wound_up = True
        atexit.unregister(self.close)
        if not self.halted and self._failure is None and self._running:
            self._failure = ClosedError(f"bus `{self.name}` was closed")
        self._reception.close()
        self._leases.close()
        self._keyboard.close()
        self._loop.settle()
        with self._loop.lock:
            conversations = list(self._loop.switchboard.conversations.values())
        part(conversations, self.options.limits.grace_seconds)
        self._launcher.close()
        if self._channels is not None:
            self._channels.close()
        self._loop.custody.close()
        self._close_log()
        self._ended.set()

    def _is_busy(self) -> bool:
        """Whether somebody is at work who will be heard."""
        return self._loop.busy or self._starter.waiting or self._keyboard.asked

    def _has_room(self) -> bool:
        return len(self._loop.switchboard.conversations) < self.options.limits.tools_max

    def _refused(self, hello: Hello, reason: str) -> None:
        """Learn that a greeting failed after the tool was admitted."""
        if hello.instance != NO_INSTANCE:
            self.lost_start(hello.instance, reason)

    def _late(self, conversation: Conversation, kind: str) -> None:
        self._warn(f"tool `{conversation.line.name}({conversation.number})` said `{kind}` to what nobody asks any more")

    def _warn(self, text: str) -> None:
        self._warned += 1
        self._warnings.append(text)
        log.warning("%s: %s", self.name, text)
