"""The service of a tool: runs its handlers, one at a time, in the thread that serves.

    the bus --> hear ----> inbox --> serve: handler --> VALUE, VOID --> the bus
                 |                     |
                 |                     +-- a coroutine runs in the loop of the tool, a thread of its own
                 +--> ACK_EVENT, RESPONSE: whoever waits goes on

A bus asks one thing at a time, so one thread is enough; and acknowledgements are heard while a handler runs. A handler
that fails must not leave a script waiting: its value is then `tool-error(name,text)`, which a script can match, and the
bus is told of the trouble besides.
"""

import asyncio
import inspect
import logging
import queue
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from echoic.errors import EchoicError, EncodeError
from echoic.terms import Annotated, Term, TermList, Value
from echoic.toolbus.errands import Errands
from echoic.toolbus.hints import shortened
from echoic.toolbus.protocol import Message, MessageKind

if TYPE_CHECKING:
    from echoic.toolbus.handlers import Handler

__all__ = ["ERROR_NAME", "Served", "Service", "Speaker"]

ERROR_NAME: Final = "tool-error"
"""`tool-error("expr","ZeroDivisionError: division by zero")` is the value of an eval whose handler failed."""
ERROR_CHARACTERS_MAX: Final = 2000
END_SECONDS: Final = 2.0
LEARN_SECONDS: Final = 0.2
log: Final = logging.getLogger("echoic.toolbus")


class Speaker(Protocol):
    """A tool's way to its bus."""

    def say(self, message: Message) -> None:
        """Send a message; may wait while the bus has too much to hear.

        Raises:
            ClosedError: There is no bus any more.
        """

    def close(self) -> None:
        """Hang up."""


class Served(Protocol):
    """A tool, as its service sees it."""

    @property
    def tool_name(self) -> str:
        """What scripts call it."""

    def find_handler(self, kind: str, name: str) -> "Handler | None":
        """Return the handler of a name."""

    def main(self) -> object:
        """Do what the tool does by itself."""

    def on_terminate(self, value: Value) -> object:
        """Learn that the tool must end."""

    def on_cancel(self) -> object:
        """Learn that the value of the running eval is not wanted."""


class Service:
    """Runs the handlers of a tool."""

    def __init__(self, tool: Served, speaker: Speaker) -> None:
        self.errands: Final = Errands(self.say)
        self._tool = tool
        self._speaker = speaker
        self._inbox: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: Future[object] | None = None
        self._starting = threading.Lock()
        self._cancelled = 0
        self._ended = threading.Event()
        self._idle = threading.Event()
        self._server: threading.Thread | None = None
        self._reason = ""
        self._counts: dict[str, tuple[int, int]] = {}

    @property
    def ended(self) -> bool:
        """Whether the conversation is over."""
        return self._ended.is_set()

    @property
    def reason(self) -> str:
        """Why it is over."""
        return self._reason

    def say(self, message: Message) -> None:
        """Send a message.

        Raises:
            ClosedError: There is no bus any more.
        """
        self._speaker.say(message)

    def hear(self, message: Message) -> None:
        """Learn what the bus says; called by one thread, does not wait."""
        match message.kind:
            case MessageKind.ACK_EVENT | MessageKind.RESPONSE:
                self.errands.answered(message)
            case MessageKind.CANCEL:
                self._cancelled = message.transaction
                running = self._running
                if running is not None:
                    running.cancel()
                self._guard("on_cancel", self._tool.on_cancel)
            case _:
                self._inbox.put(message)

    def end(self, reason: str) -> None:
        """Serve no more."""
        if not self._ended.is_set():
            self._reason = reason
            self._ended.set()
            self.errands.close(reason)
            self._inbox.put(None)

    def close(self, reason: str) -> None:
        """Serve no more and hang up; a handler that is running goes on, and is heard if it is who closes."""
        self.end(reason)
        if threading.current_thread() is not self._server:
            self._speaker.close()

    def wait(self, seconds: float | None) -> bool:
        """Wait until the conversation is over; False where it takes longer."""
        return self._ended.wait(seconds)

    def settle(self, seconds: float) -> None:
        """Wait until what was heard has been done, if it is not done by who asks."""
        if self._server is not threading.current_thread():
            self._idle.wait(max(0.0, seconds))

    def serve(self) -> None:
        """Run handlers until the bus has ended the tool, or is gone."""
        self._server = threading.current_thread()
        self._start_main()
        try:
            while (message := self._inbox.get()) is not None:
                self._answer(message)
                del message  # its values may be large, and the next one may take long to come
        except EchoicError as error:  # the bus is gone while it was answered
            self.end(str(error))
        finally:
            self._idle.set()
            self.end("the tool has ended")
            self._speaker.close()
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._loop.stop)

    def _start_main(self) -> None:
        """Start what a tool does by itself, in a thread of its own."""
        name = f"echoic-tool-main-{self._tool.tool_name}"
        threading.Thread(target=self._run_main, name=name, daemon=True).start()

    def _run_main(self) -> None:
        try:
            done = self._tool.main()
            if inspect.iscoroutine(done):
                self._complete(done)
        except Exception as error:  # whatever it is, nobody else would notice
            if self.ended:
                return  # it was waiting for the bus
            log.exception("`main` of tool `%s` has failed", self._tool.tool_name)
            self._tell_trouble("main", error)
            self._guard("main", lambda: self.say(Message(MessageKind.DISCONNECT)))

    def _answer(self, message: Message) -> None:
        match message.kind:
            case MessageKind.EVAL:
                value = self._call("eval", message)
                if message.transaction != self._cancelled or not message.transaction:
                    self.say(Message(MessageKind.VALUE, message.transaction, (value,)))
            case MessageKind.DO:
                self._call("do", message)
                self.say(Message(MessageKind.VOID, message.transaction))
            case MessageKind.TERMINATE:
                value = message.values[0] if message.values else TermList()
                self._guard("on_terminate", lambda: self._tool.on_terminate(value))
                self.end("the bus has ended this tool")
            case MessageKind.GET_STATISTICS:
                self.say(Message(MessageKind.STATISTICS, message.transaction, (self._statistics(),)))
            case _:
                log.debug("tool `%s` does not know what to do about %s", self._tool.tool_name, message.kind.name)

    def _call(self, kind: Literal["eval", "do"], message: Message) -> Value:
        """Return what a handler makes of a message, `tool-error(...)` where it fails."""
        asked = message.values[0] if message.values else None
        if isinstance(asked, Annotated):
            asked = asked.value
        name = asked.name if isinstance(asked, Term) else ""
        begun = time.monotonic_ns()
        try:
            if not isinstance(asked, Term):
                raise EncodeError(f"`snd-{kind}` asks for `{shortened(asked)}`, which names nothing that can be called")
            handler = self._tool.find_handler(kind, name)
            if handler is None:
                raise EncodeError(
                    f"tool `{self._tool.tool_name}` has no `@{kind.replace('eval', 'eval_')}` method `{name}`"
                )
            returned = getattr(self._tool, handler.method)(*handler.arguments(asked.args))
            if inspect.iscoroutine(returned):
                returned = self._complete(returned, cancellable=True)
            result: Value = handler.result(returned) if kind == "eval" else TermList()
        except CancelledError:
            result = Term(ERROR_NAME, name, "it was cancelled")
        except Exception as error:  # whatever it is: the script must not wait for ever
            if not isinstance(error, EncodeError):
                log.exception("`%s` of tool `%s` has failed", name, self._tool.tool_name)
            self._tell_trouble(name, error)
            result = Term(ERROR_NAME, name, _described(error))
        count, total_ns = self._counts.get(name, (0, 0))
        self._counts[name] = (count + 1, total_ns + time.monotonic_ns() - begun)
        return result

    def _complete(self, made: Coroutine[Any, Any, object], *, cancellable: bool = False) -> object:
        """Run a coroutine in the loop of the tool, and wait for it."""
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                name = f"echoic-tool-loop-{self._tool.tool_name}"
                threading.Thread(target=_run_loop, args=(self._loop,), name=name, daemon=True).start()
        running = asyncio.run_coroutine_threadsafe(made, self._loop)
        if cancellable:
            self._running = running
        try:
            return running.result()
        finally:
            if cancellable:
                self._running = None

    def _tell_trouble(self, name: str, error: Exception) -> None:
        self._guard(name, lambda: self.say(Message(MessageKind.TROUBLE, 0, (name, _described(error)))))

    def _guard(self, name: str, act: Any) -> None:  # noqa: ANN401 - any callable without arguments
        """Do something whose failure must not stop the service."""
        try:
            made = act()
            if inspect.iscoroutine(made):
                self._complete(made)
        except Exception as error:  # noqa: BLE001 - it is logged with its reason
            reason = _described(error)
            log.warning("`%s` of tool `%s` has failed: %s", name, self._tool.tool_name, reason)

    def _statistics(self) -> Value:
        """Return what the handlers did: `perf-stats([call(name, times, milliseconds), ...])`."""
        calls = [
            Term("call", name, count, round(total_ns / 1e6, 3)) for name, (count, total_ns) in self._counts.items()
        ]
        return Term("perf-stats", TermList(*calls))


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop of a tool until it is stopped, and then end what still runs in it.

    What waited for the bus learns first that it is gone, and may have something to do about that.
    """
    asyncio.set_event_loop(loop)
    loop.run_forever()
    left = asyncio.all_tasks(loop)
    if left:
        loop.run_until_complete(asyncio.wait(left, timeout=LEARN_SECONDS))
    left = {task for task in left if not task.done()}
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left, timeout=END_SECONDS))
    loop.close()


def _described(error: Exception) -> str:
    """Return in a line what went wrong."""
    try:
        text = str(error)
    except Exception as worse:  # noqa: BLE001 - an error whose text fails has at least a name
        text = type(worse).__name__
    if not isinstance(error, EchoicError):
        text = f"{type(error).__name__}: {text}"
    return text[:ERROR_CHARACTERS_MAX]
