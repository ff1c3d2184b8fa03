"""Admission: who may be a tool of a bus.

One that has a right to it, of a name that the script has, with an interface that fits, and, where it says that it was
started, with the secret of what was. They are looked at in the order in which they may be told of: whoever has neither
secret nor right hears nothing of the script.
"""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Final

from echoic.errors import RefusedError
from echoic.terms import UNDEFINED, Value
from echoic.toolbus.guest import NOBODY, OURS, Guest
from echoic.toolbus.house_rules import HouseRules
from echoic.toolbus.launcher import Launcher
from echoic.toolbus.protocol import NO_INSTANCE, Hello

__all__ = ["Admission", "Compare"]

Compare = Callable[[str, Value], str]
"""Returns how the interface that a tool offers differs from that of the script, with both; nothing where it fits."""


class Admission:
    """Decides on tools that come in."""

    def __init__(
        self,
        interfaces: Mapping[str, Value],
        compare: Compare,
        launcher: Launcher,
        rules: HouseRules,
        has_room: Callable[[], bool],
        on_refused: Callable[[int, str], None],
    ) -> None:
        """Begin.

        Args:
            interfaces: What the script expects of its tools, by name.
            compare: Compares that with what a tool offers.
            launcher: Knows what was started.
            rules: Who may be which tool.
            has_room: Whether there are not too many tools.
            on_refused: Called with the number of a tool that was started and does not fit, and why.
        """
        self._interfaces = interfaces
        self._compare = compare
        self._launcher = launcher
        self.rules: Final = rules
        self._has_room = has_room
        self._on_refused = on_refused

    def check_started(self, hello: Hello) -> None:
        """See that a tool that says it was started has the secret of what was.

        Raises:
            RefusedError: It has not, or is here already.
        """
        self._launcher.check(hello.name, hello.instance, hello.token)

    def admit(self, hello: Hello, guest: Guest, peer: str) -> Value:
        """Return the interface of the script for a tool that has proved who it is.

        Raises:
            RefusedError: It is not admitted; the message is for whoever wrote it.
        """
        self.rules.check(guest, hello.name, peer)
        try:
            interface = self._known(hello.name, guest)
            self._fit(hello.name, hello.offer)
        except RefusedError as error:
            if hello.instance != NO_INSTANCE:
                self._on_refused(hello.instance, str(error))
            raise
        return interface

    def admit_without_token(self, name: str, instance: int, peer: str, address: str) -> Value:
        """Return the interface for a tool that speaks a protocol without tokens, at an entrance with this address.

        Raises:
            RefusedError: It is not admitted.
        """
        if instance == NO_INSTANCE:
            self.rules.check(NOBODY, name, peer)
            return self._known(name, NOBODY)
        if not self._launcher.expects(name, instance, address):
            raise RefusedError(f"`{name}({instance})` was not started for this entrance, or is connected already")
        try:
            return self._known(name, OURS)
        except RefusedError as error:
            self._on_refused(instance, str(error))
            raise

    def compare(self, name: str, offer: Value) -> str:
        """Return how the interface that a tool of this program offers differs from that of the script.

        Raises:
            RefusedError: The script has no such tool, or there are too many.
        """
        self._known(name, OURS)
        return "" if offer is UNDEFINED else self._compare(name, offer)

    def _fit(self, name: str, offer: Value) -> None:
        difference = "" if offer is UNDEFINED else self._compare(name, offer)
        if difference:
            raise RefusedError(difference)

    def _known(self, name: str, guest: Guest) -> Value:
        """Return the interface of a tool; of other tools a guest is told those that it may be.

        Raises:
            RefusedError: The script has no such tool, or there are too many.
        """
        interface = self._interfaces.get(name)
        if interface is None:
            shown = [each for each in self._interfaces if self.rules.shows(guest, each)]
            close = get_close_matches(name, shown, 1)
            known = f"did it mean `{close[0]}`?" if close else f"its tools are {', '.join(shown) or 'none'}"
            raise RefusedError(f"the script has no tool `{name}`: {known}")
        if not self._has_room():
            raise RefusedError("too many tools are connected")
        return interface
