"""What was promised and what came: the book in which a simulation checks every event.

For each source and each subscription the book has one number: the event that is next. Whatever arrives, or is reported
missing, must begin there or behind, and moves it; so nothing comes twice, nothing is out of order, and no event is both
delivered and reported missing. From the moment a subscription counts for a source (`promised`), it must begin exactly
there: nothing may be passed over in silence.
"""

from typing import Final

__all__ = ["Ledger", "Line", "check"]


def check(fact: bool, problem: str, *details: object) -> None:
    """Raise AssertionError with the problem, if something is not a fact.

    Args:
        fact: What must be true.
        problem: What is wrong otherwise, with `{}` for each detail if there are any.
        details: Put into words only then: most checks are made thousands of times for every one that fails.
    """
    if not fact:
        raise AssertionError(problem.format(*details) if details else problem)


class Line:
    """How far a source has been heard by a subscription, and from where on nothing may be lost in silence."""

    __slots__ = ("events", "gaps", "missing", "next", "promised")

    def __init__(self) -> None:
        self.next = -1
        self.promised = -1
        self.events = self.missing = self.gaps = 0


class Ledger:
    """The book of all sources and subscriptions. Sources and subscriptions are numbers unique in the simulation."""

    def __init__(self) -> None:
        self.submitted: Final[dict[int, int]] = {}
        self.lines: Final[dict[tuple[int, int], Line]] = {}

    def submit(self, source: int, count: int) -> None:
        """Note that a source has submitted events."""
        self.submitted[source] = self.submitted.get(source, 0) + count

    def promise(self, source: int, subscription: int) -> None:
        """Note that a subscription counts for the events that a source submits from here on."""
        line = self._line(source, subscription)
        if line.promised < 0:
            line.promised = self.submitted.get(source, 0)

    def deliver(self, source: int, subscription: int, first: int, count: int) -> None:
        """Note that events have arrived.

        Raises:
            AssertionError: They came before, or in disorder, or others were passed over in silence.
        """
        line = self._move(source, subscription, first, first + count, "delivered")
        line.events += count

    def miss(self, source: int, subscription: int, first: int, last: int) -> None:
        """Note that events were reported missing.

        Raises:
            AssertionError: They were delivered or reported before, or were never submitted.
        """
        line = self._move(source, subscription, first, last + 1, "reported missing")
        line.missing += last - first + 1
        line.gaps += 1

    def is_settled(self, source: int, subscription: int) -> bool:
        """Whether all that was promised has been delivered or reported missing."""
        line = self.lines.get((source, subscription))
        submitted = self.submitted.get(source, 0)
        return line is None or line.promised < 0 or submitted <= line.promised or line.next >= submitted

    def has_handled(self, source: int, subscription: int, number: int) -> bool:
        """Whether an event was delivered or reported missing, if it was promised."""
        line = self.lines.get((source, subscription))
        return line is None or not 0 <= line.promised <= number or line.next > number

    def _move(self, source: int, subscription: int, first: int, end: int, what: str) -> Line:
        line = self._line(source, subscription)
        submitted, due = self.submitted.get(source, 0), max(line.next, line.promised)
        if not (line.next <= first < end <= submitted) or (line.promised >= 0 and first > due):
            events = f"events {first} to {end - 1} of source {source} were {what} to subscription {subscription}"
            check(first < end, f"{events}, which are none")
            check(end <= submitted, f"{events}, {submitted} were submitted")
            check(first >= line.next, f"{events}, where {line.next} is due: twice or in disorder")
            raise AssertionError(f"{events}, where {due} is due: a gap that nobody reported")
        line.next = end
        return line

    def _line(self, source: int, subscription: int) -> Line:
        line = self.lines.get((source, subscription))
        if line is None:
            line = self.lines[source, subscription] = Line()
        return line
