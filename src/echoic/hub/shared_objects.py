"""The copies of shared objects that a program, and the modulators in its process, hold in one hub.

`channels.Sharing` decides under the hub's lock what an object is; the copies (`eager.SharedObject`) show it. Between
the two stands one `_Replica` for each object, whatever number of copies there are, so copies in one hub agree at once.

    publish -> Sharing.write -> links          frame -> Sharing -> changed -> refresh every copy -> those who asked
               (in the caller's thread)                            (in the thread that read the link, without the lock)

A copy is brought up to date in the thread that read the frame: it is some ten microseconds, and half a millisecond from
`publish` to a source's modulator leaves no time to wake a thread. Callbacks are another matter. They may wait, or pull,
so they have a thread of their own, in which an object that changes faster than it is told is told once.
"""

import logging
import secrets
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar, get_args

from echoic.channels import Concentrator, Done, Message, Shared, SharedPolicy, SharedView
from echoic.eager import (
    SharedObject,
    attach,
    copy_of,
    encode_values,
    notify,
    record_class,
    refresh,
)
from echoic.errors import ClosedError, EchoicError, LocalError, RefusedError
from echoic.formats import Format

if TYPE_CHECKING:
    from echoic.eager import SharedReference
    from echoic.hub.switchboard import Switchboard

__all__ = ["SharedObjects"]

log: Final = logging.getLogger("echoic.hub")

M = TypeVar("M")
S = TypeVar("S", bound=SharedObject)


class _Replica:
    """One object in one hub, and its copies there."""

    def __init__(self, host: "SharedObjects", state: Shared) -> None:
        self.state: Final = state
        self.id: Final = state.id
        self.format: Final = state.format
        self.copies: tuple[SharedObject, ...] = ()
        self._host = host

    @property
    def view(self) -> SharedView:
        """What is known, and whether the master is heard."""
        view = self.state.view
        return SharedView(view.values, view.version, stale=True) if self._host.closed else view

    def write(self, fields: tuple[str, ...], values: bytes) -> None:
        """Send fields of a record to the master."""
        self._host.do(lambda core: core.sharing.write(self.state, fields, values))

    def pull(self) -> None:
        """Wait for the master's state."""
        self._host.pull(self.state)

    def release(self, copy: SharedObject) -> None:
        """Forget a copy."""
        self._host.release(self, copy)


class SharedObjects:
    """The shared objects of a hub, and where modulators get their copies (`eager.SharedHost`)."""

    def __init__(self, switchboard: "Switchboard") -> None:
        self._switchboard = switchboard
        self._replicas: dict[str, _Replica] = {}  # changed under the hub's lock
        self._bearer = _Bearer()

    @property
    def closed(self) -> bool:
        """Whether the hub was closed."""
        return self._switchboard.closed

    def share(self, shared: SharedObject, policy: SharedPolicy) -> None:
        """Make this hub the place of an object's master copy; one that it is already stays as it is.

        Raises:
            ClosedError: The hub was closed.
            LimitExceededError: There are too many objects, or its values are too large.
            LocalError: It is shared by another hub, or there is no such policy.
        """
        if policy not in get_args(SharedPolicy):
            raise LocalError(f"expected the policy `prompt` or `lazy`, got {policy!r}")
        record, format = shared.snapshot(), record_class(type(shared)).__echoic_binding__.format
        values, random = encode_values(record, format), secrets.token_hex(16)

        def enter(core: Concentrator) -> None:
            known = self._replicas.get(shared.id)
            if known is not None and shared in known.copies:
                return
            if shared.id:
                raise LocalError(f"the `{type(shared).__name__}` is shared by another hub - at {shared.id}")
            replica = _Replica(self, core.sharing.share(format, values, policy, random))
            attach(shared, replica)
            replica.copies = (shared,)
            self._replicas[replica.id] = replica

        self.do(enter)

    def copy(self, reference: "SharedReference", cls: type[S]) -> S:
        """Return a copy of an object that a modulator names, with the values that came with it, without waiting.

        Raises:
            ClosedError: The hub was closed.
            RefusedError: The reference is not one of this class, or there is no room for further objects.
        """
        try:
            format = Format.from_descriptor(reference.format)

            def enter(core: Concentrator) -> S:
                state = core.sharing.copy(reference.id, format, reference.values, reference.version)
                replica = self._replicas.get(state.id) or _Replica(self, state)
                try:
                    made = copy_of(cls, replica)
                except EchoicError:
                    if not replica.copies:
                        core.sharing.release(state)
                    raise
                self._replicas[state.id] = replica
                replica.copies = (*replica.copies, made)
                return made

            return self.do(enter)
        except ClosedError:
            raise
        except EchoicError as error:
            what = f"the shared object `{reference.class_name}`"
            raise RefusedError(f"{what} cannot be had here: {error} - at `{reference.attribute}`") from error

    def pull(self, state: Shared) -> None:
        """Wait until a state is as new as the master's.

        Raises:
            ClosedError: The hub was closed.
            UnreachableError: The master does not answer.
        """

        def ask(core: Concentrator, answer: Callable[[Message], None]) -> None:
            core.sharing.pull(state, answer)

        self._switchboard.wait_for(state.id.partition("/")[0], ask, Done)

    def release(self, replica: _Replica, copy: SharedObject) -> None:
        """Forget a copy, and the object with the last one."""

        def leave(core: Concentrator) -> None:
            replica.copies = tuple(each for each in replica.copies if each is not copy)
            if not replica.copies and self._replicas.get(replica.id) is replica:
                del self._replicas[replica.id]
                core.sharing.release(replica.state)

        if not self.closed:
            self._switchboard.do(leave)

    def do(self, action: Callable[[Concentrator], M]) -> M:
        """Let the concentrator do something, unless the hub was closed.

        Raises:
            ClosedError: It was.
        """
        if self.closed:
            raise ClosedError("the hub was closed")
        return self._switchboard.do(action)

    def take_changed(self) -> Callable[[], None]:
        """Return what brings the copies of the objects that have changed up to date. The hub's lock is held."""
        changed = self._switchboard.core.sharing.changed
        ids = list(changed)
        changed.clear()
        return lambda: self._refresh(ids)

    def close(self) -> None:
        """End the thread of the callbacks."""
        self._bearer.close()

    def _refresh(self, ids: list[str]) -> None:
        for id in ids:
            replica = self._replicas.get(id)
            for copy in replica.copies if replica is not None else ():
                try:
                    told = refresh(copy)
                except EchoicError as error:
                    log.warning("a copy of %s does not follow: %s", id, error)
                else:
                    if told:
                        self._bearer.tell(copy)


class _Bearer:
    """The thread that tells of changes; started when first needed. What waits are copies, each at most once."""

    def __init__(self) -> None:
        self._waiting: dict[int, SharedObject] = {}
        self._room = threading.Condition()
        self._running = self._closed = False

    def tell(self, copy: SharedObject) -> None:
        """Have those called who want to hear of the changes of a copy."""
        with self._room:
            if self._closed:
                return
            self._waiting[id(copy)] = copy
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="echoic-changes", daemon=True).start()
            self._room.notify()

    def close(self) -> None:
        """End the thread."""
        with self._room:
            self._closed = True
            self._waiting.clear()
            self._room.notify()

    def _run(self) -> None:
        while True:
            with self._room:
                self._room.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return
                copy = self._waiting.pop(next(iter(self._waiting)))
            notify(copy)
