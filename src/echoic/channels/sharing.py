"""The shared objects of a hub: who has the master, who watches it, and what hubs tell each other about it.

    secondary's hub                              master's hub
    Watch (at first, and to pull)  ------------>
                                   <------------ Update  (how it is; which of your changes are in it)
    Write 1                        ------------>
                                   <------------ Update  (the same, at once; the others get one promptly or lazily)
                                   <------------ Update  (whenever somebody has changed it)

An Update has all values, not the difference: it is one record of at most 64 KiB, and one that was passed over because
the link was full does not have to be made up for. So a watcher that does not keep up is told less often, and nothing
grows. Links resend what a broken connection has lost; if a neighbour is given up, the secondaries ask again (`Watch`)
and send again what was not confirmed.

A hub's id is what its link says, not what a message claims, so nobody writes in another's name. Who knows an object's
id may read and write it; ids have 128 random bits.
"""

import itertools
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from echoic.channels.messages import Done, Message, Refused, Unwatch, Update, Watch, Write
from echoic.channels.neighbour import Neighbour
from echoic.channels.requests import Answer, ignore
from echoic.channels.shared_state import Master, Secondary, SharedPolicy
from echoic.errors import EchoicError, LimitExceededError, RefusedError, UnreachableError
from echoic.formats import Format

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator

__all__ = ["OBJECTS_MAX", "Shared", "Sharing"]

Shared: TypeAlias = Master | Secondary

OBJECTS_MAX: Final = 4096
LAZY_NS: Final = 50_000_000
RETRY_NS: Final = (100_000_000, 1_000_000_000, 2_000_000_000, 5_000_000_000, 10_000_000_000)
OUTBOX_FRAMES_MAX: Final = 64
TEMPORARY: Final = frozenset({"LimitExceededError", "UnreachableError"})


class Sharing:
    """The shared objects that one hub has a copy of."""

    def __init__(self, core: "Concentrator") -> None:
        self._core = core
        self._masters: dict[str, Master] = {}
        self._secondaries: dict[str, Secondary] = {}
        self._owing: dict[str, Master] = {}
        self._write_numbers = itertools.count(1)  # of the hub, so that a copy that is made again goes on with them
        self._object_numbers = itertools.count(1)
        self.changed: Final[dict[str, Shared]] = {}
        """Objects that show something else than before; whoever keeps copies takes them out."""

    def __len__(self) -> int:
        return len(self._masters) + len(self._secondaries)

    def get(self, id: str) -> Shared | None:
        """Return what this hub knows of an object."""
        return self._masters.get(id) or self._secondaries.get(id)

    def share(self, format: Format, values: bytes, policy: SharedPolicy, random: str) -> Master:
        """Make this hub the place of an object's master copy; `random` makes its id hard to guess.

        Raises:
            LimitExceededError: There are too many objects, or the values are too large.
            MalformedBatchError: The values contradict their type.
        """
        self._check_room()
        id = f"{self._core.address}/shared/{next(self._object_numbers)}-{random}"
        master = self._masters[id] = Master(id, format, values, policy)
        return master

    def copy(self, id: str, format: Format, values: bytes, version: int) -> Shared:
        """Return what this hub knows of an object; if that is nothing, begin with these values and ask the master.

        Raises:
            LimitExceededError, MalformedBatchError: There are too many objects, or these are not such values.
            RefusedError: This is not the id of an object, or it is known here with another type.
        """
        known = self.get(id)
        if known is None:
            self._check_room()
            known = self._secondaries[id] = Secondary(id, format, values, version)
            self._watch(known)
        elif known.format.token != format.token:
            raise RefusedError(f"the shared object is a `{known.format.name}` of another layout - at {id}")
        elif isinstance(known, Secondary) and known.view.version < version:
            self._watch(known)
        return known

    def write(self, shared: Shared, fields: Iterable[str], values: bytes) -> None:
        """Change fields of an object to what a record has in them.

        Raises:
            LimitExceededError, MalformedBatchError, RefusedError: There are no such fields, or not such values.
            UnreachableError: The master is no more.
        """
        if self.get(shared.id) is not shared:
            raise UnreachableError(f"it is not shared any more - at {shared.id}")
        if isinstance(shared, Master):
            shared.apply(fields, values)
            self._spread(shared)
        elif shared.phase == "ended":
            raise UnreachableError(f"{shared.reason} - at {shared.id}")
        else:
            self._send(shared, shared.write(next(self._write_numbers), fields, values))
        self.changed[shared.id] = shared

    def pull(self, shared: Shared, answer: Answer) -> None:
        """Bring a copy up to date, with what was written here before; `answer` gets Done or Refused."""
        if self.get(shared.id) is not shared or (isinstance(shared, Secondary) and shared.phase == "ended"):
            reason = shared.reason if isinstance(shared, Secondary) else "it is not shared any more"
            answer(Refused("UnreachableError", f"{reason} - at {shared.id}"))
        elif isinstance(shared, Master):
            answer(Done())
        else:

            def asked(reply: Message) -> None:
                if isinstance(reply, Done) and shared.unconfirmed:
                    self._ask(shared, answer)  # behind what could be sent only now
                else:
                    answer(reply)

            self._ask(shared, asked)

    def release(self, shared: Shared) -> None:
        """Forget an object of which there is no copy here any more; if the master was here, that is its end."""
        if self.get(shared.id) is not shared:
            return
        if isinstance(shared, Master):
            del self._masters[shared.id]
            self._owing.pop(shared.id, None)
            for hub in shared.watchers:
                if hub in self._core.neighbours:
                    self._core.send(hub, Update(shared.id, shared.view.version, b"", ended=True))
            return
        self._send(shared, shared.flush())
        del self._secondaries[shared.id]
        if shared.phase in ("asked", "watching"):
            self._core.ask(shared.address, Unwatch(shared.id), ignore)

    def carry_out(self, message: Watch | Write | Unwatch | Update, hub: str, answer: Answer) -> None:
        """Do what a neighbour asks; "" stands for this hub.

        Raises:
            LimitExceededError, MalformedBatchError, RefusedError: It cannot be done.
        """
        if isinstance(message, Update):
            self._updated(message, hub)
            return
        master = self._masters.get(message.object)
        if master is None:
            raise RefusedError(f"no such object is shared here - at {message.object}")
        match message:
            case Watch():
                answer(master.watch(hub, message.format))
            case Write():
                applied = master.receive(hub, message)
                answer(master.update(hub))
                if applied:
                    self._spread(master)
                    self.changed[master.id] = master
            case Unwatch():
                master.forget(hub)
                answer(Done())

    def gone(self, neighbour: Neighbour) -> None:
        """Learn that a neighbour was given up."""
        for master in self._masters.values():
            master.forget(neighbour.id)
        for secondary in self._secondaries.values():
            if secondary.phase != "ended" and neighbour.stands_at(secondary.address):
                if neighbour.leaving:
                    secondary.end(f"the hub at {secondary.address} took leave")
                else:
                    secondary.lose(f"the hub at {secondary.address} is gone", self._core.now_ns)
                self.changed[secondary.id] = secondary

    @property
    def idle(self) -> bool:
        """Whether there is nobody to be told, and nothing of other hubs is watched."""
        return not self._owing and not self._secondaries

    def tick(self, now_ns: int) -> None:
        """Tell watchers that have waited, and ask masters that have not answered again."""
        for master in list(self._owing.values()) if self._owing else ():
            if master.policy == "prompt" or now_ns - master.told_ns >= LAZY_NS:
                self._tell(master)
        if not self._secondaries:
            return
        there = self._core.neighbourhood.at
        for secondary in list(self._secondaries.values()):
            if secondary.phase == "waiting" and now_ns >= secondary.retry_ns:
                self._watch(secondary)
            elif secondary.notice(connected=any(one.connected for one in there(secondary.address))):
                self.changed[secondary.id] = secondary

    def _check_room(self) -> None:
        if len(self) >= OBJECTS_MAX:
            raise LimitExceededError(f"this hub has {len(self)} shared objects, limit is {OBJECTS_MAX}")

    def _spread(self, master: Master) -> None:
        """Tell the watchers of a change, at once or later."""
        if master.owed:
            self._owing[master.id] = master
            if master.policy == "prompt":
                self._tell(master)

    def _tell(self, master: Master) -> None:
        """Tell those who have yet to hear of the last version; one whose link has no room waits for the next tick."""
        core = self._core
        master.told_ns = core.now_ns
        for hub in sorted(master.owed):
            neighbour = core.neighbours.get(hub)
            if neighbour is None:
                master.forget(hub)
            elif _has_room(neighbour):
                core.send(hub, master.update(hub))
        if not master.owed:
            self._owing.pop(master.id, None)

    def _updated(self, update: Update, hub: str) -> None:
        """Take what a master tells by itself, if it is one that was asked to."""
        secondary, neighbour = self._secondaries.get(update.object), self._core.neighbours.get(hub)
        if secondary is None or neighbour is None or not neighbour.stands_at(secondary.address):
            return
        if secondary.phase == "watching":
            self._take(secondary, update)

    def _take(self, secondary: Secondary, update: Update) -> None:
        self._send(secondary, secondary.take(update))
        self.changed[secondary.id] = secondary

    def _watch(self, secondary: Secondary) -> None:
        """Ask the master to tell of changes."""
        if secondary.phase == "waiting":
            secondary.phase = "asked"
        self._ask(secondary, ignore)

    def _ask(self, secondary: Secondary, answer: Answer) -> None:
        def answered(reply: Message) -> None:
            if self._secondaries.get(secondary.id) is secondary and secondary.phase != "ended":
                match reply:
                    case Update(object=secondary.id):
                        try:
                            self._take(secondary, reply)
                        except EchoicError as error:
                            answer(Refused.of(error))
                            raise
                    case Refused(kind, reason):
                        self._refused(secondary, kind, reason)
                    case _:
                        self._refused(secondary, "RefusedError", f"its hub answered with {type(reply).__name__}")
            answer(Done() if isinstance(reply, Update) else reply)

        self._core.ask(secondary.address, Watch(secondary.id, secondary.format.descriptor), answered)

    def _refused(self, secondary: Secondary, kind: str, reason: str) -> None:
        """Ask again later, if there is hope."""
        if kind in TEMPORARY:
            pause_ns = RETRY_NS[min(secondary.retries, len(RETRY_NS) - 1)]
            secondary.retries += 1
            secondary.lose(reason, self._core.now_ns + pause_ns)
        else:
            secondary.end(reason)
        self.changed[secondary.id] = secondary

    def _send(self, secondary: Secondary, writes: Iterable[Write]) -> None:
        for write in writes:
            self._core.ask(secondary.address, write, partial(self._written, secondary, write.number))

    def _written(self, secondary: Secondary, number: int, reply: Message) -> None:
        """Take the answer to a change."""
        if self._secondaries.get(secondary.id) is not secondary or secondary.phase == "ended":
            return
        match reply:
            case Update(object=secondary.id):
                if secondary.phase == "watching":
                    self._take(secondary, reply)
            case Refused("UnreachableError", reason):
                if secondary.phase == "watching":
                    secondary.lose(reason, self._core.now_ns)
            case _:
                secondary.refuse(number)
        self.changed[secondary.id] = secondary


def _has_room(neighbour: Neighbour) -> bool:
    """Whether what is posted goes out soon; else it is better to wait and tell a later version."""
    session = neighbour.session
    return neighbour.connected and not session.full and len(session.outbox) < OUTBOX_FRAMES_MAX
