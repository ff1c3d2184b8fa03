"""Admission: who may be a tool of a bus.

One of a name that the script has, with an interface that fits, and, where it says that it was started, with the token
of what was.
"""

from collections.abc import Callable, Mapping
from difflib import get_close_matches

from echoic.errors import RefusedError
from echoic.terms import UNDEFINED, Value
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
        has_room: Callable[[], bool],
        on_refused: Callable[[int, str], None],
    ) -> None:
        """Begin.

        Args:
            interfaces: What the script expects of its tools, by name.
            compare: Compares that with what a tool offers.
            launcher: Knows what was started.
            has_room: Whether there are not too many tools.
            on_refused: Called with the number of a tool that was started and does not fit, and why.
        """
        self._interfaces = interfaces
        self._compare = compare
        self._launcher = launcher
        self._has_room = has_room
        self._on_refused = on_refused

    def admit(self, hello: Hello) -> Value:
        """Return the interface of the script for a tool.

        Raises:
            RefusedError: It is not admitted; the message is for whoever wrote it.
        """
        interface = self._known(hello.name)
        if hello.instance != NO_INSTANCE:
            self._launcher.check(hello.name, hello.instance, hello.token)
        self._fit(hello)
        return interface

    def admit_without_token(self, name: str, instance: int) -> Value:
        """Return the interface for a tool that speaks a protocol without tokens.

        Raises:
            RefusedError: It is not admitted.
        """
        interface = self._known(name)
        if instance != NO_INSTANCE and not self._launcher.expects(name, instance):
            raise RefusedError(f"`{name}({instance})` was not started by this bus, or is connected already")
        return interface

    def compare(self, name: str, offer: Value) -> str:
        """Return how an offered interface differs from that of the script."""
        self._known(name)
        return "" if offer is UNDEFINED else self._compare(name, offer)

    def _known(self, name: str) -> Value:
        interface = self._interfaces.get(name)
        if interface is None:
            close = get_close_matches(name, self._interfaces, 1)
            known = f"did it mean `{close[0]}`?" if close else f"its tools are {', '.join(self._interfaces) or 'none'}"
            raise RefusedError(f"the script has no tool `{name}`: {known}")
        if not self._has_room():
            raise RefusedError("too many tools are connected")
        return interface

    def _fit(self, hello: Hello) -> None:
        difference = self.compare(hello.name, hello.offer)
        if difference:
            if hello.instance != NO_INSTANCE:
                self._on_refused(hello.instance, difference)
            raise RefusedError(difference)
