"""Transactions: which question an answer belongs to. This module is pure.

A machine knows of one open eval or do for each tool, and of its events and requests by what is in them. Messages have
numbers. What is kept here joins the two, for one tool:

    told EVAL, DO          ->  the next number; it is open until it is answered or cancelled
    said VALUE, VOID       ->  is for the machine if its number is open, or 0; else it is late, and dropped
    said EVENT, REQUEST    ->  is open under the number that the tool gave it
    told ACK_EVENT         ->  the oldest open event that is the same, else that begins with it, else of that name
    told RESPONSE          ->  the oldest open request of the same name as the response, else the oldest
"""

from collections import deque
from typing import Final

from echoic.scripts.running.messages import FromTool, ToTool
from echoic.terms import Annotated, Reference, Term, Value, refers, same, with_values

__all__ = ["OPEN_MAX", "Transactions"]

OPEN_MAX: Final = 65_536
"""So many events and requests of a tool may be open; the oldest are forgotten beyond, and acknowledged with 0."""


class Transactions:
    """The open questions between a tool and its bus."""

    def __init__(self) -> None:
        self._last = 0
        self._asked = 0
        self._events: deque[tuple[int, Value | None]] = deque(maxlen=OPEN_MAX)
        self._requests: deque[tuple[int, Value | None]] = deque(maxlen=OPEN_MAX)

    @property
    def busy(self) -> bool:
        """Whether the tool has an eval or do to answer."""
        return self._asked > 0

    def told(self, kind: ToTool, values: tuple[Value, ...]) -> int:
        """Return the number for what a bus is about to say."""
        if kind in (ToTool.EVAL, ToTool.DO):
            self._last = self._last % 0xFFFF_FFFF + 1
            self._asked = self._last
            return self._asked
        if kind is ToTool.CANCEL:
            asked, self._asked = self._asked, 0
            return asked
        if kind is ToTool.ACK_EVENT:
            return _take(self._events, values[0] if values else None, whole=True)
        if kind is ToTool.RESPONSE:
            return _take(self._requests, values[0] if values else None, whole=False)
        return 0

    def said(self, kind: FromTool, transaction: int, values: tuple[Value, ...]) -> bool:
        """Learn what a tool has said; return whether that is for the machine, and not too late."""
        if kind in (FromTool.VALUE, FromTool.VOID):
            if transaction and transaction != self._asked:
                return False
            self._asked = 0
        elif kind is FromTool.EVENT:
            self._events.append((transaction, values[0] if values else None))
        elif kind is FromTool.REQUEST:
            self._requests.append((transaction, values[0] if values else None))
        return True

    def fetched(self, reference: Reference, value: Value) -> None:
        """Learn the value of a reference: what a script says of a question has it from then on."""
        for waiting in (self._events, self._requests):
            for at, (transaction, asked) in enumerate(waiting):
                if asked is not None and refers(asked):
                    waiting[at] = (transaction, with_values(asked, {reference: value}))


def _take(waiting: deque[tuple[int, Value | None]], answer: Value | None, *, whole: bool) -> int:
    """Remove the question that an answer is for, and return its number; 0 where there is none."""
    if not waiting:
        return 0
    fits = (_is_same, _is_beginning, _has_name) if whole else (_has_name,)
    found = next((at for fit in fits for at, (_, asked) in enumerate(waiting) if fit(asked, answer)), None)
    if found is None:
        if whole:
            return 0
        found = 0
    transaction = waiting[found][0]
    del waiting[found]
    return transaction


def _is_same(asked: Value | None, answer: Value | None) -> bool:
    return asked is not None and answer is not None and same(asked, answer)


def _is_beginning(asked: Value | None, answer: Value | None) -> bool:
    """Whether the answer has the name of what was asked, and its first arguments."""
    asked, answer = _bare(asked), _bare(answer)
    if not isinstance(asked, Term) or not isinstance(answer, Term) or asked.name != answer.name:
        return False
    return len(answer.args) <= len(asked.args) and all(map(same, asked.args, answer.args))


def _has_name(asked: Value | None, answer: Value | None) -> bool:
    asked, answer = _bare(asked), _bare(answer)
    return isinstance(asked, Term) and isinstance(answer, Term) and asked.name == answer.name


def _bare(value: Value | None) -> Value | None:
    return value.value if isinstance(value, Annotated) else value
