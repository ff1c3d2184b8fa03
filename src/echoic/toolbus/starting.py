"""What `execute` starts: an object of this process that was attached, a channel, or a program.

attached (`Bus.attach`, `Bus.stub`)       the object
kind = "channel"                          the channel plays the tool
kind = "ng"                               the program, which is told the port of the NG adapter
command = "..."                           the program
"""

import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from echoic.errors import EchoicError
from echoic.scripts.running.messages import Start
from echoic.scripts.syntax.tree import Script
from echoic.toolbus.direct import DirectLine
from echoic.toolbus.launcher import Launcher
from echoic.toolbus.line import Audience, Line
from echoic.toolbus.tool import Tool

__all__ = ["Provider", "Starter"]

Provider: TypeAlias = Tool | type[Tool] | Line
MakeLine: TypeAlias = Callable[[Start], Line | None]
"""Returns a line for a tool that is not a program, None where it is one."""


class Starter:
    """Starts tools."""

    def __init__(
        self, script: Script, launcher: Launcher, audience: Audience, on_lost: Callable[[int, str], None]
    ) -> None:
        self.make_line: MakeLine | None = None
        self.addresses: dict[str, str] = {}
        """Where the programs of tools of some kind connect to, by kind; `""` is for all others."""
        self._kinds = {tool.name: tool.feature("kind") for tool in script.tools}
        self._folders = {tool.name: _folder_of(tool.span.file) for tool in script.tools}
        self._launcher = launcher
        self._audience = audience
        self._on_lost = on_lost
        self._providers: dict[str, deque[Provider]] = {}
        self._waiting: set[int] = set()
        self._lock = threading.Lock()

    @property
    def waiting(self) -> bool:
        """Whether a tool was started and is not there."""
        return bool(self._waiting)

    def provide(self, name: str, provider: Provider) -> None:
        """Have something be the tool of a name when it is executed: an object once, a class each time."""
        with self._lock:
            self._providers.setdefault(name, deque()).append(provider)

    def start(self, start: Start) -> None:
        """Start a tool; it arrives, or is lost. Does not wait."""
        with self._lock:
            self._waiting.add(start.tool)
        try:
            line = self._line(start)
        except EchoicError as error:
            self._on_lost(start.tool, str(error))
            return
        if line is not None:
            self._audience.arrived(line, start.tool)
            return
        kind = self._kinds.get(start.name, "")
        address = self.addresses.get(kind) or self.addresses.get("", "")
        if not start.command:
            self._on_lost(start.tool, "it has no command, and nothing was attached for it")
        else:
            self._launcher.start(start, address, self._folders.get(start.name))

    def settled(self, tool: int) -> None:
        """Learn that a tool has arrived, or never will."""
        with self._lock:
            self._waiting.discard(tool)

    def _line(self, start: Start) -> Line | None:
        with self._lock:
            waiting = self._providers.get(start.name)
            provider = waiting[0] if waiting else None
            if waiting and not isinstance(provider, type):
                waiting.popleft()
        if isinstance(provider, type):
            provider = provider()
        if isinstance(provider, Tool):
            return DirectLine(provider, self._audience, start.name)
        if provider is not None:
            return provider
        return self.make_line(start) if self.make_line is not None else None


def _folder_of(file: str) -> Path | None:
    """Return the folder of a file, None for a script that is in none."""
    path = Path(file)
    return path.parent.resolve() if path.is_file() else None
