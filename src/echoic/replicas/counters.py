"""The state of the counter service: counters, and which requests are counted already.

    Increment(counter, add, key)  --- the group's order --->  Counters at every replica  --->  Outcome(value, sequence)

Every replica applies the same increments in the same order, so all have the same counters without ever comparing them.
For that, whatever happens to an increment must follow from what came before it and from nothing else: a counter that
would leave 64 bits, one too many, a name too long are refused by every replica alike, and no clock is asked.

A client that got no answer cannot know whether it was counted. So it may give its request a key, and send it again, to
any replica: the table of keys is part of the state, hence the same everywhere, and what is in it is answered as it was
the first time and not counted again. The table has a limit; the oldest key goes first, by the order of the increments.

A replica that was away longer than the group remembers gets all this from another (`save`, `load`), in chunks:

    | [(counter, value), ...], [(key, counter, add, value, sequence), ...] | ...        msgpack, 512 of each at most
"""

import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, Literal, TypeAlias, cast

import msgspec

from echoic.errors import MalformedBatchError
from echoic.formats import event, uint64
from echoic.hub.group_delivery import GroupStamp
from echoic.wire import Batch

__all__ = ["Counters", "CountersStatistics", "Increment", "Outcome", "Refusal"]

COUNTERS_MAX: Final = 1_000_000
KEYS_MAX: Final = 100_000
NAME_CHARACTERS_MAX: Final = 128
KEY_CHARACTERS_MAX: Final = 255
VALUE_MAX: Final = 2**63 - 1
CHUNK_ENTRIES: Final = 512

Refusal: TypeAlias = Literal["", "name", "key", "range", "full"]
"""Why an increment was not counted: a name or key that cannot be, a key that was used for something else, a value that
does not fit, too many counters."""


@event
class Increment:
    """What a replica multicasts."""

    counter: str
    add: int
    key: str
    """Tells repetitions of one request from others; empty for none."""
    request: uint64
    """By which the replica that multicasts it knows it again."""


class Outcome(msgspec.Struct, frozen=True):
    """What came of an increment."""

    value: int
    """Of the counter, after it."""
    sequence: int
    """Its place in the order; of a repetition, that of the first."""
    repeated: bool = False
    refusal: Refusal = ""


class CountersStatistics(msgspec.Struct, frozen=True):
    """What the state of the service is made of."""

    sequence: int
    counters: int
    keys: int
    counted: int
    repeated: int
    refused: int


class _Kept(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is known of a request that had a key."""

    counter: str
    add: int
    value: int
    sequence: int


class _Chunk(msgspec.Struct, frozen=True, array_like=True):
    counters: list[tuple[str, int]]
    keys: list[tuple[str, _Kept]]


_decoder: Final = msgspec.msgpack.Decoder(_Chunk)


class Counters:
    """Counters, as every replica has them. It is the `state` of a group, and `deliver` is its handler, for batches.

    Args:
        me: The name of this replica, whose own increments `expect` is about.
        counters_max: How many counters there may be; the same at every replica.
        keys_max: How many keys are remembered; the same at every replica.
    """

    durable: bool = False

    def __init__(self, me: str = "", *, counters_max: int = COUNTERS_MAX, keys_max: int = KEYS_MAX) -> None:
        self._me = me
        self._counters_max, self._keys_max = counters_max, keys_max
        self._lock = threading.Lock()
        self._values: dict[str, int] = {}
        self._keys: dict[str, _Kept] = {}
        self._sequence = 0
        self._expected: dict[int, Outcome | None] = {}
        self._counted = self._repeated = self._refused = 0

    def applied(self) -> int:
        """Return the number of the last increment that is in here."""
        return self._sequence

    def value(self, counter: str) -> tuple[int | None, int]:
        """Return a counter's value, None if there is no such counter, and the number of the last increment."""
        with self._lock:
            return self._values.get(counter), self._sequence

    def outcome(self, key: str) -> Outcome | None:
        """Return what came of the request with a key, if it is remembered."""
        with self._lock:
            kept = self._keys.get(key)
        return None if kept is None else Outcome(kept.value, kept.sequence, repeated=True)

    def expect(self, request: int) -> None:
        """Keep what will come of an increment of this replica, until it is taken."""
        self._expected[request] = None

    def take(self, request: int) -> Outcome | None:
        """Return what came of an expected increment, None if that is not known; expect it no more."""
        return self._expected.pop(request, None)

    def deliver(self, batch: Batch, stamp: GroupStamp) -> None:
        """Apply increments at their place in the order."""
        own = stamp.sender == self._me
        expected = self._expected
        with self._lock:
            increments = cast("Sequence[Increment]", batch.events())  # as was subscribed to
            for sequence, increment in enumerate(increments, stamp.sequence):
                outcome = self._apply(increment, sequence)
                if own and increment.request in expected:
                    expected[increment.request] = outcome
            self._sequence = stamp.sequence + batch.count - 1

    def save(self, after: int) -> Sequence[bytes]:  # noqa: ARG002 - a part of it would be of no use
        """Return everything, in chunks, as it is at this moment."""
        with self._lock:
            counters, keys = iter(list(self._values.items())), iter(list(self._keys.items()))
        return list(_chunks(counters, keys))

    def load(self, chunks: Iterable[bytes], upto: int) -> None:
        """Take over what another has saved, in place of everything here.

        Raises:
            MalformedBatchError: This is not what `save` gives.
        """
        values: dict[str, int] = {}
        keys: dict[str, _Kept] = {}
        for chunk in chunks:
            try:
                part = _decoder.decode(chunk)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise MalformedBatchError(f"{len(chunk)} bytes are not of a state of counters: {error}") from error
            values.update(part.counters)
            keys.update(part.keys)
        with self._lock:
            self._values, self._keys, self._sequence = values, keys, upto

    def statistics(self) -> CountersStatistics:
        """Return how many there are, and what came of increments here since the start."""
        with self._lock:
            return CountersStatistics(
                self._sequence, len(self._values), len(self._keys), self._counted, self._repeated, self._refused
            )

    def _apply(self, increment: Increment, sequence: int) -> Outcome:
        kept = self._keys.get(increment.key) if increment.key else None
        if kept is not None and (kept.counter, kept.add) == (increment.counter, increment.add):
            self._repeated += 1
            return Outcome(kept.value, kept.sequence, repeated=True)
        value = self._values.get(increment.counter, 0) + increment.add
        refusal = "key" if kept is not None else self._refusal(increment, value)
        if refusal:
            self._refused += 1
            return Outcome(0, sequence, refusal=refusal)
        self._counted += 1
        if increment.add or increment.counter in self._values:
            self._values[increment.counter] = value
        if increment.key:
            self._keys[increment.key] = _Kept(increment.counter, increment.add, value, sequence)
            if len(self._keys) > self._keys_max:
                del self._keys[next(iter(self._keys))]
        return Outcome(value, sequence)

    def _refusal(self, increment: Increment, value: int) -> Refusal:
        """Return why an increment is not counted; the same at every replica."""
        if not 0 < len(increment.counter) <= NAME_CHARACTERS_MAX or len(increment.key) > KEY_CHARACTERS_MAX:
            return "name"
        if not -VALUE_MAX <= value <= VALUE_MAX:
            return "range"
        if increment.counter not in self._values and len(self._values) >= self._counters_max:
            return "full"
        return ""


def _chunks(counters: Iterator[tuple[str, int]], keys: Iterator[tuple[str, _Kept]]) -> Iterator[bytes]:
    while True:
        chunk = _Chunk(list(islice(counters, CHUNK_ENTRIES)), list(islice(keys, CHUNK_ENTRIES)))
        if not chunk.counters and not chunk.keys:
            return
        yield msgspec.msgpack.encode(chunk)
