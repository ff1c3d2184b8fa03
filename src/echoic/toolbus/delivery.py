"""Delivery: how tools are told things that may refer to values elsewhere. Used by the thread of the loop alone.

    a tool that understands references       told at once, with references (`custody.py`), if they are not too many
    any other                                told when the values are there, in order: what comes later waits

The others are tools in C or of the Java ToolBus, channels, stubs, and objects of this process, for which fetching is
what they would have to do themselves. Nobody waits for a value here: the loop looks again when one has arrived.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from echoic.scripts.running.messages import Delivered, Input, ToTool
from echoic.terms import Reference, TermList, Value, references_in, refers, with_values
from echoic.toolbus.custody import Custody
from echoic.toolbus.line import Line
from echoic.toolbus.protocol import TO_TOOL, Message

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["Delivery"]

Found = Mapping[Reference, Value]


@dataclass(frozen=True, slots=True)
class Waiting:
    """Something to do when values are there."""

    fetching: Mapping[Reference, "Future[Value]"]
    act: Callable[[Found], None]


class Delivery:
    """Tells tools things."""

    def __init__(self, custody: Custody, feed: Callable[[Input], None], wake: Callable[[], None]) -> None:
        """Begin.

        Args:
            custody: Knows where values are.
            feed: Gives the machine an input.
            wake: Lets the loop take a turn; called by any thread.
        """
        self._custody = custody
        self._feed = feed
        self._wake = wake
        self._queues: Final[dict[int, deque[Waiting]]] = {}

    def tell(
        self, number: int, line: Line, kind: ToTool, transaction: int, values: tuple[Value, ...], hold: int | None
    ) -> None:
        """Tell a tool something, after everything that it was told before."""
        if number not in self._queues and self._tell_now(number, line, kind, transaction, values, hold):
            return

        def act(found: Found) -> None:
            whole = tuple(with_values(value, found) for value in values)
            self._tell_now(number, line, kind, transaction, whole, None)
            if hold is not None:
                self._feed(Delivered(hold))

        self._add(number, references_in(TermList(*values)), act)

    def _tell_now(
        self, number: int, line: Line, kind: ToTool, transaction: int, values: tuple[Value, ...], hold: int | None
    ) -> bool:
        """Tell a tool something, unless that has to wait for values."""
        if self._custody.understands(number):
            return self._custody.deliver(number, Message(TO_TOOL[kind], transaction, values), hold)
        if any(map(refers, values)):
            return False
        line.tell(kind, transaction, values)
        return True

    def after(self, number: int, act: Callable[[], None]) -> None:
        """Do something after everything that a tool was told before."""
        if number in self._queues:
            self._add(number, (), lambda _: act())
        else:
            act()

    def resolve(self, value: Value, act: Callable[[Value], None]) -> None:
        """Do something with a value when all of it is there; for what is no tool, in order."""
        references = references_in(value)
        if not references and NOBODY not in self._queues:
            act(value)
        else:
            self._add(NOBODY, references, lambda found: act(with_values(value, found)))

    def turn(self) -> None:
        """Do what can be done."""
        for number, queue in list(self._queues.items()):
            while queue and all(future.done() for future in queue[0].fetching.values()):
                waiting = queue.popleft()
                waiting.act({reference: future.result() for reference, future in waiting.fetching.items()})
            if not queue:
                del self._queues[number]

    def forget(self, number: int) -> None:
        """Tell a tool nothing more."""
        self._queues.pop(number, None)

    @property
    def busy(self) -> bool:
        """Whether something waits for values."""
        return bool(self._queues)

    def _add(self, number: int, references: tuple[Reference, ...], act: Callable[[Found], None]) -> None:
        fetching = {reference: self._custody.fetch(reference) for reference in references}
        self._queues.setdefault(number, deque()).append(Waiting(fetching, act))
        for future in fetching.values():
            future.add_done_callback(lambda _: self._wake())
        if not fetching:
            self.turn()


NOBODY: Final = -1
"""In the place of a tool's number: a channel that notes go to."""
