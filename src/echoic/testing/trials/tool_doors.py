"""The doors of a bus: where tools connect, in either protocol, where they fetch values, and where a terminal asks.

The bus is asked for by name, as `doors` says. Its parts are known here by what they do, so their types are `Any`.
"""

import dataclasses
from contextlib import ExitStack
from importlib import import_module
from typing import Any, Final

from echoic.testing.trials.knocking import HOST, SECONDS, Door, require

__all__ = ["tool_doors"]

EPOCH: Final = 1
KEY: Final = bytes(range(32))
LARGE: Final = "x" * 100_000
SCRIPT: Final = """
tool parrot is { }
process P is let T: parrot, V: str in
    ( rec-connect(T?) . snd-eval(T, say) . rec-value(T, said(V?)) . snd-terminate(T, V) ) * delta
endlet
toolbus(P)
"""


def tool_doors(stack: ExitStack) -> list[Door]:
    """Open a bus with all its doors.

    Raises:
        EchoicError: One cannot be opened.
    """
    toolbus, desk = import_module("echoic.toolbus"), import_module("echoic.toolbus.desk")
    bus = stack.enter_context(toolbus.Bus.from_script(SCRIPT, listen=HOST, output=_say_nothing))
    bus.start()
    java = stack.enter_context(toolbus.NgEntrance(bus, HOST))
    transfer = _Transfer()
    stack.callback(transfer.close)
    doors = [
        Door("bus", bus.address, lambda: _be_a_tool(toolbus, bus.address)),
        Door("java", java.address, lambda: _be_a_tool(toolbus, bus.address)),
        Door("transfer", transfer.address, transfer.fetch),
    ]
    console = stack.enter_context(desk.ConsoleDesk("doors", lambda question: {"asked": question}))
    if console.path is not None:
        path = console.path
        doors.append(
            Door("console", str(path), lambda: require(desk.ask(path, "state") == {"asked": "state"}, "no answer"))
        )
    return doors


def _say_nothing(_: str) -> None:
    """Take what the script prints."""


def _be_a_tool(toolbus: Any, address: str) -> None:  # noqa: ANN401 - asked for by name
    """Connect, be asked, answer, and be told to end."""

    class Parrot(toolbus.Tool, name="parrot"):  # type: ignore[call-arg, misc] # asked for by name
        @toolbus.eval_(returns="said(str)")  # type: ignore[untyped-decorator] # asked for by name
        def say(self) -> Any:  # noqa: ANN401 - a term
            return toolbus.Term("said", "hello")

    tool = Parrot()
    tool.connect(address, timeout=SECONDS)
    tool.start()
    require(tool.wait(SECONDS), "the tool was not told to end")


class _Transfer:
    """Two members of an exchange of values; the second fetches from the first over a connection between them."""

    def __init__(self) -> None:
        self._protocol = import_module("echoic.toolbus.protocol")
        self._words = import_module("echoic.toolbus.references.words")
        self._tokens = import_module("echoic.toolbus.references.tokens")
        self._owner, self._asker = self._join(1), self._join(2)
        (self.address,) = self._owner.endpoints

    def fetch(self) -> None:
        """Have a value fetched.

        Raises:
            UnreachableError: It is not what was said.
        """
        kinds = self._protocol.MessageKind
        said = self._owner.outgoing(self._protocol.Message(kinds.VALUE, 1, (LARGE,)))
        put = next(self._words.decode_put(each) for each in said if each.kind is kinds.PUT)
        token = self._tokens.token_for(KEY, owner=1, variable=put.variable, path=put.path, asker=2, epoch=EPOCH)
        value = self._asker.fetch(dataclasses.replace(put, token=token)).result(SECONDS)
        require(value == LARGE, f"the value is {value!r:.100}")

    def close(self) -> None:
        """Hang up."""
        self._asker.close()
        self._owner.close()

    def _join(self, number: int) -> Any:  # noqa: ANN401 - a member, asked for by name
        exchange = import_module("echoic.toolbus.references.exchange").Exchange()
        registration = self._words.Registration(number, EPOCH, 0, 1000, KEY)
        member = import_module("echoic.toolbus.references.member").Member
        return member(registration, lambda _, __: None, exchange=exchange, listen=HOST)
