"""Tools in Python: a class whose methods a script can call.

    class Calc(Tool, name="calc"):
        @eval_
        def expr(self, text: str) -> Annotated[Term, "val(int)"]:
            return Term("val", eval_arithmetic(text))

    if __name__ == "__main__":
        Calc.run()

A bus that starts the program tells it where it is (`-TB_HOST`, `-TB_PORT` and so on, on the command line and in the
environment). The same class can be attached to a bus in the same process (`Bus.attach`), where values are handed over
as they are. Handlers may be `async`; `main`, if there is one, is what the tool does by itself.

    async def main(self):
        await self.event("button", "ok")           # goes on at snd-ack-event
        price = await self.request("price", "IBM")  # goes on at snd-response
        self.event("button", "ok", wait=True)      # the same without `await`
"""

import math
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Final, Literal, Self, overload

from echoic.errors import ClosedError, EncodeError, LocalError
from echoic.links import Identity, Visitor, format_address
from echoic.terms import Term, Value
from echoic.toolbus.dialling import Exchanging, dial_bus
from echoic.toolbus.errands import ErrandKind, Pending
from echoic.toolbus.handlers import Handler, handlers_of, offer_of, script_name
from echoic.toolbus.protocol import NO_INSTANCE, REFERENCES, Hello, Message, MessageKind
from echoic.toolbus.service import Service, Speaker

__all__ = ["Tool", "Whereabouts"]

CONNECT_SECONDS: Final = 10.0
DONE_SECONDS: Final = 5.0


class Whereabouts:
    """What a launcher tells a tool: who it is, and where its bus is."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        """Read a command line and an environment; the former counts."""
        told = {key: environment.get(key, "") for key in ("TB_TOOL_NAME", "TB_TOOL_ID", "TB_HOST", "TB_PORT")}
        for flag, value in pairwise(arguments):
            if flag.startswith("-") and flag[1:] in told:
                told[flag[1:]] = value
        self.name: Final = told["TB_TOOL_NAME"]
        self.token: Final = environment.get("TB_TOKEN", "")
        self._told = told
        self._environment = environment

    @property
    def instance(self) -> int:
        """The number that the launcher gave, `NO_INSTANCE` where there was none."""
        text = self._told["TB_TOOL_ID"]
        try:
            return int(text) if text else NO_INSTANCE
        except ValueError:
            raise LocalError(f"expected a number, got `{text}` - at -TB_TOOL_ID") from None

    @property
    def address(self) -> str:
        """Where the bus is.

        Raises:
            LocalError: Nobody has told.
        """
        port = self._told["TB_PORT"]
        if not port.isdigit():
            raise LocalError("where is the bus? Pass -TB_HOST and -TB_PORT, as a bus does, or `address=`")
        return format_address(self._told["TB_HOST"] or "127.0.0.1", int(port))

    @property
    def threshold(self) -> float | None:
        """From how many bytes on values go by reference (TB_THRESHOLD); None where nobody says so.

        Raises:
            LocalError: It is not a number of bytes, nor `inf`.
        """
        text = self._environment.get("TB_THRESHOLD", "")
        try:
            bytes_min = float(text) if text else None
        except ValueError:
            bytes_min = math.nan
        if bytes_min is not None and not bytes_min >= 0:
            raise LocalError(f"expected a number of bytes or `inf`, got `{text}` - at TB_THRESHOLD")
        return bytes_min

    @property
    def data_listen(self) -> str | None:
        """Where others fetch large values (TB_DATA_LISTEN): `` where they cannot, None where nobody says so."""
        return self._environment.get("TB_DATA_LISTEN")

    @property
    def identity(self) -> Identity | Visitor | None:
        """The files for TLS, where somebody has named them; without a certificate, only those to check the bus by."""
        certificate, key, authority, revoked = (
            Path(text) if (text := self._environment.get(name, "")) else None
            for name in ("TB_CERTIFICATE", "TB_KEY", "TB_AUTHORITY", "TB_REVOKED")
        )
        if authority is None:
            return None
        if certificate is None or key is None:
            return Visitor(authority, revoked)
        return Identity(certificate, key, authority, revoked)

    @property
    def insecure(self) -> bool:
        """Whether somebody accepts that values go to other machines in the clear (TB_INSECURE)."""
        return bool(self._environment.get("TB_INSECURE"))


class Tool:
    """A tool; write a subclass of it, with its name in scripts: `class Calc(Tool, name="calc")`."""

    tool_name: ClassVar[str] = ""
    handlers: ClassVar[dict[tuple[str, str], Handler]] = {}
    _service: Service | None = None
    number: int = 0
    """The tool's number at its bus, once it is connected: `calc(3)`."""

    def __init_subclass__(cls, *, name: str = "", **keywords: object) -> None:
        """Look at the methods of a subclass.

        Raises:
            FormatError: A hint stands for no type of terms, or two methods have one name.
        """
        super().__init_subclass__(**keywords)
        cls.tool_name = name or cls.__dict__.get("tool_name", "") or script_name(cls.__name__.lower())
        cls.handlers = handlers_of(cls)

    def main(self) -> object:
        """Do what the tool does by itself; override it, also with `async def`."""
        return None

    def on_terminate(self, value: Value) -> object:  # noqa: ARG002 - for subclasses
        """Learn that the tool must end, and what the script says with that; override it."""
        return None

    def on_cancel(self) -> object:
        """Learn that the script does not wait any more for the value of the running eval; override it."""
        return None

    @classmethod
    def find_handler(cls, kind: str, name: str) -> Handler | None:
        """Return the handler of a name in a script."""
        return cls.handlers.get((kind, name)) or cls.handlers.get((kind, script_name(name)))

    @classmethod
    def interface(cls, name: str = "") -> Term:
        """Return what the tool offers, as a term `signature([in],[out],[other])`."""
        return offer_of(name or cls.tool_name, cls.handlers)

    @overload
    def event(self, name: str, *arguments: object, wait: Literal[False] = False) -> Pending: ...
    @overload
    def event(
        self, name: str, *arguments: object, wait: Literal[True], timeout: float | None = None
    ) -> Value | None: ...
    def event(
        self, name: str, *arguments: object, wait: bool = False, timeout: float | None = None
    ) -> Pending | Value | None:
        """Send an event, for `rec-event`.

        Args:
            name: Its name in the script.
            arguments: Its arguments.
            wait: Wait until the script acknowledges it, and return what it says with that.
            timeout: For so many seconds.

        Returns:
            What can be awaited, or, with `wait`, the second argument of `snd-ack-event`, None where there is none.

        Raises:
            ClosedError: The tool is not connected.
            EncodeError: An argument is no term, or is not what the declaration of the event says.
            LimitExceededError: Too many of these wait to be acknowledged.
            UnreachableError: It was not acknowledged in time.
        """
        pending = self._send(MessageKind.EVENT, "event", name, arguments)
        return pending.wait(timeout) if wait else pending

    @overload
    def request(self, name: str, *arguments: object, wait: Literal[False] = False) -> Pending: ...
    @overload
    def request(
        self, name: str, *arguments: object, wait: Literal[True], timeout: float | None = None
    ) -> Value | None: ...
    def request(
        self, name: str, *arguments: object, wait: bool = False, timeout: float | None = None
    ) -> Pending | Value | None:
        """Ask the script something, for `rec-request`; the answer is that of `snd-response`.

        Args and errors are those of `event`.
        """
        pending = self._send(MessageKind.REQUEST, "request", name, arguments)
        return pending.wait(timeout) if wait else pending

    def disconnect(self) -> None:
        """Tell the bus that the tool leaves, for `rec-disconnect`; the bus then hangs up."""
        self._require().say(Message(MessageKind.DISCONNECT))

    def connect(
        self,
        address: str,
        *,
        name: str = "",
        instance: int = NO_INSTANCE,
        token: str = "",
        identity: Identity | Visitor | None = None,
        timeout: float = CONNECT_SECONDS,
        exchanging: Exchanging | None = None,
    ) -> None:
        """Connect to a bus in another process; `serve` or `start` comes next.

        Args:
            address: Where it listens.
            name: What the script calls this tool, if that is not the name of the class.
            instance: What the launcher gave, with its `token`.
            token: What proves that this is the instance that was started; for a visitor, what `echoic keys token` gave.
            identity: Where the bus speaks TLS: certificate, key and authority, or a `Visitor`, who has a token instead.
            timeout: For connecting and greeting, in seconds.
            exchanging: From which size on values go by reference, and where others fetch them; what TB_THRESHOLD and
                TB_DATA_LISTEN say by default.

        Raises:
            InsecureError: The token is a signed one, and nothing says by which authority to know the bus.
            UnreachableError: Nobody answers there.
            RefusedError: The bus does not want this tool; where the interfaces differ the message has both.
            RemoteError: It is not a bus.
        """
        called = name or self.tool_name
        hello = Hello(called, instance, token, (REFERENCES,), self.interface(called))
        if exchanging is None:
            told = Whereabouts((), os.environ)
            exchanging = Exchanging(told.threshold, told.data_listen, insecure=told.insecure)
        speaker = dial_bus(address, hello, identity, timeout, exchanging)
        service = self.bind(speaker)
        self.number = speaker.number
        speaker.listen(service.hear, service.end)

    def bind(self, speaker: Speaker) -> Service:
        """Make this the tool at the end of a line.

        Raises:
            LocalError: It is connected already.
        """
        if self._service is not None and not self._service.ended:
            raise LocalError(f"tool `{self.tool_name}` is connected already")
        self._service = Service(self, speaker)
        return self._service

    def serve(self) -> None:
        """Run handlers in this thread until the bus ends the tool, or is gone.

        Raises:
            ClosedError: The tool is not connected.
        """
        self._require().serve()

    def start(self) -> None:
        """Run handlers in a thread of their own.

        Raises:
            ClosedError: The tool is not connected.
        """
        name = f"echoic-tool-{self.tool_name}"
        threading.Thread(target=self._require().serve, name=name, daemon=True).start()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the conversation with the bus is over; False where it takes longer."""
        return self._service is None or self._service.wait(timeout)

    def close(self) -> None:
        """End the conversation, without a word to the script.

        Where the tool has values that others may still need, this waits until the bus has them, some seconds at most.
        """
        if self._service is not None:
            self._service.close("the tool was closed")

    @classmethod
    def run(cls, arguments: Sequence[str] | None = None) -> None:
        """Be the tool that a bus has started: make one, connect, and serve until the bus ends it.

        Args:
            arguments: The command line, that of the program by default.

        Raises:
            LocalError: Nobody has told where the bus is.
            EchoicError: As `connect` does.
        """
        told = Whereabouts(sys.argv[1:] if arguments is None else arguments, os.environ)
        tool = cls()
        tool.connect(told.address, name=told.name, instance=told.instance, token=told.token, identity=told.identity)
        tool.serve()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, kind: ErrandKind, word: str, name: str, arguments: tuple[object, ...]) -> Pending:
        declared = self.handlers.get((word, script_name(name))) or self.handlers.get((word, name))
        if declared is not None:
            term = Term(declared.name, *declared.values(arguments))
        elif any(kind == word for kind, _ in self.handlers):
            known = ", ".join(f"`{each}`" for kind, each in self.handlers if kind == word)
            raise EncodeError(f"tool `{self.tool_name}` declares no {word} `{name}`, only {known}")
        else:
            term = Term(script_name(name), *arguments)
        return self._require().errands.send(kind, term.name, (term,))

    def _require(self) -> Service:
        if self._service is None:
            raise ClosedError(f"tool `{self.tool_name}` is not connected to a bus")
        return self._service
