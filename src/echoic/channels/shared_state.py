"""What one hub knows of one shared object: the master copy, or a secondary one (JECho, section 4).

The master is where the object was shared. It alone decides: it applies changes in the order in which they come, each
makes the next version, and of two that change the same field the later one holds. A change names its fields, so changes
of different fields do not disturb each other. There is no clock and no vote in it: one place orders all changes, so all
copies that have got the last version are the same, and which of two concurrent changes came last is the same for all.

A secondary shows what it has heard last from the master, and on top of it what was written here and is not confirmed:

    master    version 7   layer=3  scale=2        Write 12: scale=5 ~~~~~~>   (version 8: layer=3 scale=5, 12 done)
    secondary version 7   layer=3  scale=5 (12)   <~~~~~~ Update 8, confirmed 12: what was on top is now below

Writers number their changes. The master remembers the last number of each, so that one that is sent again, because the
link broke before it was confirmed, is applied once. A secondary has at most `WINDOW` changes under way; what is written
beyond that, or while the master cannot be heard, becomes one further change (a field's last value is the one that
counts), so there is nothing that grows while a link is down.

The records are in the master's format throughout. Nothing here knows of links: `sharing` carries the messages.
"""

import re
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias, cast

import msgspec

from echoic.channels.messages import Update, Write
from echoic.errors import LimitExceededError, RefusedError
from echoic.formats import Format, Record
from echoic.wire import Batch, encoder_of

__all__ = [
    "VALUE_BYTES_MAX",
    "WATCHERS_MAX",
    "WINDOW",
    "WRITERS_MAX",
    "Master",
    "Secondary",
    "SharedPolicy",
    "SharedView",
    "address_of",
]

SharedPolicy: TypeAlias = Literal["prompt", "lazy"]
Phase: TypeAlias = Literal["waiting", "asked", "watching", "ended"]

VALUE_BYTES_MAX: Final = 64 * 1024
WATCHERS_MAX: Final = 4096
WRITERS_MAX: Final = 8192  # all watchers, and as many that are gone and may come again
WINDOW: Final = 64
ID: Final = re.compile(r"([^\s/]+:[0-9]{1,5})/shared/[0-9]{1,20}-[0-9a-f]{8,64}\Z", re.ASCII)


class SharedView(msgspec.Struct, frozen=True):
    """What is known of a shared object in one place, at one time."""

    values: bytes
    """One record in the master's format: the master's state, and on top of it what was written here since."""
    version: int
    """The master's version on which they are based."""
    stale: bool = False
    """Whether the master cannot be heard at the moment, or is no more."""


class Master:
    """The copy that decides."""

    def __init__(self, id: str, format: Format, values: bytes, policy: SharedPolicy = "prompt") -> None:
        self.id: Final = id
        self.format: Final = format
        self.policy: Final = policy
        _decode(values, format)
        self.view = SharedView(values, 0)
        self.owed: Final[set[str]] = set()  # watchers that have yet to be told of the last version
        self.told_ns = 0
        self._watchers: dict[str, None] = {}
        self._writers: dict[str, int] = {}

    @property
    def watchers(self) -> tuple[str, ...]:
        """The hubs that are told of changes."""
        return tuple(self._watchers)

    def watch(self, hub: str, descriptor: bytes) -> Update:
        """Tell a hub of changes from now on; return how things are.

        Raises:
            LimitExceededError: There are too many already.
            RefusedError: It takes the object for one of another type.
        """
        if descriptor != self.format.descriptor:
            raise RefusedError(f"the shared object is a `{self.format.name}` of another layout - at {self.id}")
        if hub not in self._watchers and len(self._watchers) >= WATCHERS_MAX:
            raise LimitExceededError(f"{WATCHERS_MAX} hubs watch this shared object, which is the limit - at {self.id}")
        self._watchers[hub] = None
        return self.update(hub)

    def forget(self, hub: str) -> None:
        """Tell a hub no more."""
        self._watchers.pop(hub, None)
        self.owed.discard(hub)

    def update(self, hub: str) -> Update:
        """Return what a hub is told of the last version."""
        self.owed.discard(hub)
        return Update(self.id, self.view.version, self.view.values, self._writers.get(hub, 0))

    def receive(self, hub: str, write: Write) -> bool:
        """Apply what a hub has written, unless it is one more copy of what was applied before; tell whether it was.

        Raises:
            LimitExceededError, MalformedBatchError, RefusedError: It is not a change of this object.
        """
        if write.token != self.format.token:
            raise RefusedError(f"what was written is not a `{self.format.name}` of this layout - at {self.id}")
        if write.number <= self._writers.get(hub, 0):
            return False
        self.apply(write.fields, write.values)
        self._writers.pop(hub, None)  # so that the one that has written last stands last
        self._writers[hub] = write.number
        if len(self._writers) > WRITERS_MAX:
            del self._writers[next(writer for writer in self._writers if writer not in self._watchers)]
        return True

    def apply(self, fields: Iterable[str], values: bytes) -> None:
        """Change fields to what a record has in them, which makes the next version; all watchers are to be told.

        Raises:
            LimitExceededError, MalformedBatchError, RefusedError: There are no such fields, or not such values.
        """
        changed = _changes(self.format, fields, values)
        values = _merge(self.format, self.view.values, changed)
        _check_size(values, self.format)
        self.view = SharedView(values, self.view.version + 1)
        self.owed.update(self._watchers)


class Secondary:
    """A copy that follows the master, and shows what was written here on top."""

    def __init__(self, id: str, format: Format, values: bytes, version: int) -> None:
        """Begin with the values that were shipped, until the master has answered.

        Raises:
            LimitExceededError, MalformedBatchError, RefusedError: They contradict their type, or the id is none.
        """
        self.id: Final = id
        self.address: Final = address_of(id)
        self.format: Final = format
        self.phase: Phase = "waiting"
        self.retry_ns = self.retries = 0
        self.reason = "the master has not answered yet"
        _decode(values, format)
        self.view = SharedView(values, version, stale=True)
        self._heard = False
        self._base, self._version = values, version
        self._on_top: dict[str, tuple[int, object]] = {}  # what was written here last, with the number of the change
        self._sent: deque[Write] = deque()
        self._held: dict[str, None] = {}  # fields whose change has yet to be sent, in the order they were written
        self._held_number = 0

    @property
    def unconfirmed(self) -> int:
        """How many changes the master has not confirmed."""
        return len(self._sent) + bool(self._held)

    def write(self, number: int, fields: Iterable[str], values: bytes) -> list[Write]:
        """Change fields here; return what is to be sent to the master at once.

        Args:
            number: Of this change, if it becomes one of its own; higher than all before.
            fields: The fields that change.
            values: A record that has their values.

        Raises:
            LimitExceededError, MalformedBatchError, RefusedError: There are no such fields, or not such values.
        """
        changed = _changes(self.format, fields, values)
        _check_size(_merge(self.format, self.view.values, changed), self.format)
        if not self._held:
            self._held_number = number
        self._held |= dict.fromkeys(changed)
        self._on_top |= {name: (self._held_number, value) for name, value in changed.items()}
        self._show()
        return self._send_held()

    def take(self, update: Update) -> list[Write]:
        """Take what the master has sent; return what is to be sent in turn.

        Raises:
            LimitExceededError, MalformedBatchError: The values contradict their type.
        """
        if update.ended:
            self.end("it is not shared any more")
            return []
        if self._heard and update.version < self._version:
            return []
        _decode(update.values, self.format)
        self._heard = True
        self._base, self._version = update.values, update.version
        while self._sent and self._sent[0].number <= update.confirmed:
            self._sent.popleft()
        self._on_top = {name: top for name, top in self._on_top.items() if top[0] > update.confirmed}
        resumed = self.phase != "watching"
        self.phase, self.reason, self.retries = "watching", "", 0
        self._show()
        again = list(self._sent) if resumed else []
        return again + self._send_held()

    def refuse(self, number: int) -> None:
        """Take a change back that the master did not apply."""
        for write in [write for write in self._sent if write.number == number]:
            self._sent.remove(write)
        self._on_top = {name: top for name, top in self._on_top.items() if top[0] != number}
        self._show()

    def lose(self, reason: str, retry_ns: int) -> None:
        """Learn that the master does not tell this hub of changes; it is to be asked again at a time."""
        if self.phase != "ended":
            self.phase, self.reason, self.retry_ns = "waiting", reason, retry_ns
            self._show()

    def end(self, reason: str) -> None:
        """Learn that the master is no more; the last values stay."""
        self.phase, self.reason = "ended", reason
        self._sent.clear()
        self._held.clear()
        self._show()

    def notice(self, *, connected: bool) -> bool:
        """Note whether there is a connection to the master's hub; return whether that changes anything."""
        stale = not (connected and self.phase == "watching")
        changed = stale != self.view.stale
        if changed:
            self.view = msgspec.structs.replace(self.view, stale=stale)
        return changed

    def flush(self) -> list[Write]:
        """Return what has yet to be sent, since nothing will follow that could be sent with it."""
        return self._send_held(WINDOW + 1)

    def _send_held(self, window: int = WINDOW) -> list[Write]:
        if not self._held or self.phase != "watching" or len(self._sent) >= window:
            return []
        fields = tuple(self._held)
        self._held.clear()
        write = Write(self.id, self._held_number, self.format.token, fields, self.view.values)
        self._sent.append(write)
        return [write]

    def _show(self) -> None:
        on_top = {name: value for name, (_, value) in self._on_top.items()}
        values = _merge(self.format, self._base, on_top) if on_top else self._base
        self.view = SharedView(values, self._version, stale=self.phase != "watching")


def address_of(id: str) -> str:
    """Return where the master of an object is.

    Raises:
        RefusedError: This is not the id of a shared object.
    """
    found = ID.match(id)
    if found is None:
        raise RefusedError(f"expected the id of a shared object like 127.0.0.1:7401/shared/1-ab12cd34, got {id[:80]!r}")
    return found[1]


def _check_size(values: bytes, format: Format) -> None:
    if len(values) > VALUE_BYTES_MAX:
        raise LimitExceededError(
            f"the values of a shared object have {len(values)} bytes, limit is {VALUE_BYTES_MAX} - at `{format.name}`"
        )


def _decode(values: bytes, format: Format) -> Record:
    _check_size(values, format)
    return _record(values, format)


def _record(values: bytes, format: Format) -> Record:
    return cast("Record", Batch.of_record(values, format).events()[0])


def _changes(format: Format, fields: Iterable[str], values: bytes) -> dict[str, object]:
    """Return the values of fields in a record; with an array goes the field that tells its length, and the reverse."""
    record, wanted = _decode(values, format), set(fields)
    unknown = wanted - format.by_name.keys()
    if unknown or not wanted:
        raise RefusedError(f"a change names {sorted(unknown)[:3] or 'no field'} of a `{format.name}`")
    pairs = [{field.name, field.sizing} for field in format.fields if field.sizing in format.by_name]
    while any(pair & wanted and not pair <= wanted for pair in pairs):
        wanted = wanted.union(*(pair for pair in pairs if pair & wanted))
    return {field.name: getattr(record, field.name) for field in format.fields if field.name in wanted}


def _merge(format: Format, values: bytes, changed: Mapping[str, object]) -> bytes:
    """Return a record with other values in some fields."""
    record = _record(values, format)
    for name, value in changed.items():
        setattr(record, name, value)
    return b"".join(encoder_of(format).encode((record,))[0])
