"""What an intake decides, without files, threads or a clock: what is staged, what is committed, what is stale.

A *query* writes *epochs*, which are numbered upwards. Tasks stage the rows of a partition in portions, each task under
an attempt of its own, since Spark may run a task twice; then the driver commits the epoch, and names for each partition
the attempt that counts.

    stage(q, 7, partition 0, attempt a)   portion 0, portion 1        Taken
    stage(q, 7, partition 0, attempt b)   portion 0                   Taken       a task that Spark ran a second time
    stage(q, 7, partition 0, attempt b)   portion 0                   Repeated    its answer was lost on the way
    commit(q, 7, [(0, a, 2)])                                         Begun       attempt b is stale
       settle(q, 7)                       is on the disk from here on; what is stale of q is dropped
    commit(q, 7, [(0, a, 2)])                                         UnderWay, and Known once it is published
    stage(q, 6, ...), commit(q, 6, ...)                               Refused     nobody repeats what is so far behind

A commit that is *Known* is acknowledged and nothing is done: that is the whole of "exactly once", since a query that is
not sure repeats its last epoch. Therefore only the last epoch of each query has to be remembered. An epoch before the
last is refused: whoever commits it has lost his checkpoint or restored an earlier one, cuts other rows into his epochs
than before, and would hear that all of them are safe while none is taken.

Of queries there may be many over the years: every batch write is one, of a single epoch 0. Those that have not
committed for longest are forgotten, and batch writes before streams, which may come back after any time.

What is staged by queries that have died is bounded too: in bytes, in attempts, and by the time since the last portion.
"""

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import msgspec

__all__ = [
    "AGE_NS_MAX",
    "ATTEMPTS_MAX",
    "QUERIES_MAX",
    "STAGED_BYTES_MAX",
    "Attempt",
    "Begun",
    "Book",
    "Known",
    "Lost",
    "Part",
    "Refused",
    "Repeated",
    "Taken",
    "UnderWay",
]

QUERIES_MAX: Final = 4096
ATTEMPTS_MAX: Final = 65_536
STAGED_BYTES_MAX: Final = 4 * 1024 * 1024 * 1024
AGE_NS_MAX: Final = 3_600_000_000_000
NAME_CHARACTERS_MAX: Final = 200
NUMBER_MAX: Final = 2**63 - 1
SHOWN_MAX: Final = 60


class Attempt(msgspec.Struct, frozen=True, order=True):
    """What one task stages."""

    query: str
    epoch: int
    partition: int
    attempt: int


class Part(msgspec.Struct, frozen=True):
    """What a commit names: the attempt that counts for a partition, and how many portions it has."""

    partition: int
    attempt: int
    portions: int


class Taken(msgspec.Struct, frozen=True):
    """A portion is to be kept."""


class Repeated(msgspec.Struct, frozen=True):
    """A portion is there already."""


class Known(msgspec.Struct, frozen=True):
    """The epoch was committed, and published, before."""


class UnderWay(msgspec.Struct, frozen=True):
    """The epoch was committed before, and is being published."""


class Lost(msgspec.Struct, frozen=True):
    """What a portion or a commit builds upon is not there, such as after the intake was started again."""

    reason: str


class Refused(msgspec.Struct, frozen=True):
    """A rule is broken, or a limit reached."""

    reason: str


class Begun(msgspec.Struct, frozen=True):
    """An epoch is to be made durable: of these attempts, in this order."""

    attempts: tuple[Attempt, ...]


class Staged(msgspec.Struct):
    """What is there of an attempt."""

    portions: int = 0
    size: int = 0
    heard_ns: int = 0


Staging: TypeAlias = Taken | Repeated | Known | Lost | Refused
Committing: TypeAlias = Begun | Known | UnderWay | Lost | Refused


class Book:
    """Which epochs are staged and which are committed."""

    def __init__(
        self,
        *,
        bytes_max: int = STAGED_BYTES_MAX,
        age_ns_max: int = AGE_NS_MAX,
        queries_max: int = QUERIES_MAX,
        attempts_max: int = ATTEMPTS_MAX,
    ) -> None:
        self._bytes_max, self._age_ns_max = bytes_max, age_ns_max
        self._queries_max, self._attempts_max = queries_max, attempts_max
        self._staged: dict[Attempt, Staged] = {}
        self._last: dict[str, int] = {}
        self._under_way: set[tuple[str, int]] = set()
        self.staged_bytes = 0
        """What all that is staged takes."""

    @property
    def staged(self) -> int:
        """How many attempts there are."""
        return len(self._staged)

    @property
    def under_way(self) -> int:
        """How many epochs are being published."""
        return len(self._under_way)

    @property
    def committed(self) -> tuple[tuple[str, int], ...]:
        """The last committed epoch of each query, of the one that has not committed for longest first."""
        return tuple(self._last.items())

    def stage(self, attempt: Attempt, index: int, size: int, now_ns: int) -> Staging:
        """Decide about a portion of rows.

        Args:
            attempt: Whose it is.
            index: Which of its portions.
            size: How many bytes it has.
            now_ns: The time.
        """
        problem = _problem_of(attempt)
        if problem:
            return Refused(problem)
        if index < 0:
            return Refused(f"portions are counted from 0, got {index} - at {_shown(attempt)}")
        last = self._last.get(attempt.query, -1)
        if attempt.epoch <= last:
            return Known() if attempt.epoch == last else _outdated(attempt, last)
        staged = self._staged.get(attempt)
        portions = staged.portions if staged is not None else 0
        if index < portions:
            return Repeated()
        if index > portions:
            return Lost(f"portion {index} of {_shown(attempt)} has come, but only {portions} are there before it")
        if self.staged_bytes + size > self._bytes_max:
            return Refused(
                f"{self.staged_bytes} bytes of uncommitted epochs are staged and {size} more are too many, the limit "
                f"is {self._bytes_max}: let the query have fewer rows in a batch"
            )
        if staged is None:
            if len(self._staged) >= self._attempts_max:
                return Refused(f"{len(self._staged)} attempts are staged, which is the limit")
            staged = self._staged[attempt] = Staged()
        staged.portions += 1
        staged.size += size
        staged.heard_ns = now_ns
        self.staged_bytes += size
        return Taken()

    def commit(self, query: str, epoch: int, parts: Sequence[Part]) -> Committing:
        """Decide about the commit of an epoch; `settle` follows when what has `Begun` is on the disk."""
        problem = _problem_of(Attempt(query, epoch, 0, 0))
        if problem:
            return Refused(problem)
        if (query, epoch) in self._under_way:
            return UnderWay()
        last = self._last.get(query, -1)
        if epoch <= last:
            return Known() if epoch == last else _outdated(Attempt(query, epoch, 0, 0), last)
        if len({part.partition for part in parts}) != len(parts):
            return Refused(f"a commit names a partition twice - at epoch {epoch} of query `{_short(query)}`")
        named = [
            (Attempt(query, epoch, part.partition, part.attempt), part.portions) for part in parts if part.portions
        ]
        for attempt, portions in named:
            staged = self._staged.get(attempt)
            there = staged.portions if staged is not None else 0
            if there != portions:
                return Lost(f"a commit names {portions} portions of {_shown(attempt)}, {there} are there")
        return Begun(tuple(sorted(attempt for attempt, _ in named)))

    def settle(self, query: str, epoch: int, *, published: bool = False) -> tuple[Attempt, ...]:
        """Note that an epoch is on the disk; return what need not be kept any more of its query, stale or not."""
        self._last[query] = max(epoch, self._last.pop(query, -1))
        if not published:
            self._under_way.add((query, epoch))
        self._forget_queries()
        return self._drop(attempt for attempt in self._staged if attempt.query == query and attempt.epoch <= epoch)

    def publish(self, query: str, epoch: int) -> None:
        """Note that all rows of a committed epoch have been published."""
        self._under_way.discard((query, epoch))

    def abort(self, query: str, epoch: int) -> tuple[Attempt, ...]:
        """Return what is dropped because an epoch will not be committed; one that was committed stays so."""
        return self._drop(attempt for attempt in self._staged if attempt.query == query and attempt.epoch == epoch)

    def discard(self, attempt: Attempt) -> None:
        """Forget an attempt whose last portion could not be kept; it has to begin anew."""
        self._drop([attempt])

    def expire(self, now_ns: int) -> tuple[Attempt, ...]:
        """Return what is dropped because nothing was heard of it for too long."""
        return self._drop(
            attempt for attempt, staged in self._staged.items() if now_ns - staged.heard_ns > self._age_ns_max
        )

    def _drop(self, attempts: Iterable[Attempt]) -> tuple[Attempt, ...]:
        dropped = tuple(attempts)
        for attempt in dropped:
            self.staged_bytes -= self._staged.pop(attempt).size
        return dropped

    def _forget_queries(self) -> None:
        """Forget batch writes, then the queries that have not committed for longest; none that is being published."""
        spare = len(self._last) - self._queries_max
        if spare <= 0:
            return
        busy = {query for query, _ in self._under_way}
        idle = sorted((query for query in self._last if query not in busy), key=lambda query: self._last[query] > 0)
        for query in idle[:spare]:
            del self._last[query]


def _problem_of(attempt: Attempt) -> str:
    """Return what is wrong with the names of a writer, "" for nothing."""
    query = attempt.query
    if not 1 <= len(query) <= NAME_CHARACTERS_MAX or not query.isprintable():
        return f"a query has a name of 1 to {NAME_CHARACTERS_MAX} printable characters, got {_short(query)!r}"
    numbers = (attempt.epoch, attempt.partition, attempt.attempt)
    if not all(0 <= number <= NUMBER_MAX for number in numbers):
        return f"epoch, partition and attempt are 0 or more, got {', '.join(map(str, numbers))}"
    return ""


def _outdated(attempt: Attempt, last: int) -> Refused:
    """Return why an epoch before the last one of its query is not taken."""
    return Refused(
        f"query `{_short(attempt.query)}` has committed epoch {last} and comes with epoch {attempt.epoch}: its "
        "checkpoint was removed, or is an earlier one; let it write as another query (option `query`)"
    )


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "..."


def _shown(attempt: Attempt) -> str:
    return f"partition {attempt.partition}, epoch {attempt.epoch}, query `{_short(attempt.query)}`"
