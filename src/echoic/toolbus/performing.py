"""Doing what a machine says, in the thread of the loop. Nothing here waits."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, assert_never

from echoic.scripts.running.messages import (
    Announce,
    AskLine,
    Dismiss,
    Effect,
    Fetch,
    Halted,
    Kill,
    Print,
    Start,
    Step,
    Tell,
    Warned,
)
from echoic.toolbus.keyboard import Keyboard
from echoic.toolbus.launcher import Launcher
from echoic.toolbus.loop import BusLoop
from echoic.toolbus.starting import Starter

if TYPE_CHECKING:
    from echoic.terms import Value
    from echoic.toolbus.channel_binding import ChannelBinding

__all__ = ["Performer"]


class Performer:
    """Does effects."""

    def __init__(
        self, loop: BusLoop, starter: Starter, launcher: Launcher, keyboard: Keyboard, warn: Callable[[str], None]
    ) -> None:
        self.hooks: Final[list[Callable[[Step], None]]] = []
        """Called with every step."""
        self.output: Callable[[str], None] = print_text
        self.channels: ChannelBinding | None = None
        self.value: Value | None = None
        """What `shutdown` said."""
        self._loop = loop
        self._starter = starter
        self._launcher = launcher
        self._keyboard = keyboard
        self._warn = warn

    def perform(self, effect: Effect) -> None:
        """Do what the machine says."""
        match effect:
            case Tell():
                self._loop.switchboard.tell(effect)
            case Step():
                self._tell_step(effect)
            case Print(text):
                self.output(text)
            case Start():
                self._starter.start(effect)
            case Fetch(reference):
                self._loop.custody.fetch_for_machine(reference)
            case Dismiss(tool):
                self._loop.switchboard.dismiss(effect)
                self._launcher.forget(tool)
            case Kill(tool):
                self._launcher.kill(tool)
            case AskLine(prompt):
                self._keyboard.ask(prompt)
            case Announce(value):
                self._announce(value)
            case Warned(text):
                self._warn(text)
            case Halted(value):
                self.value = value
            case _:
                assert_never(effect)

    def _announce(self, value: "Value") -> None:
        if self.channels is not None:
            self._loop.delivery.resolve(value, self.channels.announce)

    def _tell_step(self, step: Step) -> None:
        for hook in self.hooks:
            hook(step)
        if self.channels is not None:
            self.channels.tell_step(step)


def print_text(text: str) -> None:
    """Write to standard output, at once."""
    sys.stdout.write(text)
    sys.stdout.flush()
