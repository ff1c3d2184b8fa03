"""The operating environment of modulators in this process: for the code of those who are trusted.

It is the nearest place to the events that there is: a call of a method, no copy, no other process. In return nothing
keeps the code from what this process can do. What is guarded against is mistakes: a call that takes too long is stopped
(`watchdog`), an error in one event is told and the others go on (`copies`), and a modulator that has been stopped is
not asked again, since nobody knows in which state that left it.

Calls for different sources may come from different threads at the same time; each has a copy of its own.
"""

from collections.abc import Callable, Mapping

from echoic.channels import Worked
from echoic.eager.copies import Copies, Outcome
from echoic.eager.limits import Limits
from echoic.eager.loading import Loaded, load
from echoic.eager.modulator import Modulator
from echoic.eager.parcel import Parcel
from echoic.eager.services import Services
from echoic.eager.shared_object import SharedHost, SharedObject
from echoic.eager.watchdog import watchdog
from echoic.errors import EchoicError, ModulatorError
from echoic.formats import Format
from echoic.wire import Batch

__all__ = ["Environment"]


class Environment:
    """A modulator that runs in this process; the core knows it as a `Runner`.

    Args:
        parcel: What came, from somebody who may run code in this process.
        key: Who that is.
        events: The type of the events.
        services: Gives the services for a source.
        shared: Has the copies of shared objects.
        limits: How long a call may take.

    Raises:
        ModulatorError: It cannot be loaded.
        RefusedError: A shared object cannot be had.
    """

    def __init__(
        self,
        parcel: Parcel,
        *,
        key: str,
        events: Format,
        services: Callable[[int], Services],
        shared: SharedHost,
        limits: Limits,
    ) -> None:
        self._name = parcel.class_name
        self._seconds = limits.seconds
        self._services = services
        self._granted: dict[int, Services] = {}
        self._stopped = ""
        self._loaded: Loaded = watchdog.guard(lambda: load(parcel, key), limits.load_seconds, f"`{self._name}`")
        self._shared: Mapping[str, SharedObject] = {
            each.attribute: shared.copy(each, self._loaded.shared_classes[each.attribute]) for each in parcel.shared
        }
        self._copies = Copies(name=self._name, make=self._make, events=events, output=self._loaded.output)

    @property
    def output(self) -> Format | None:
        """The type of what comes out; None if that is what went in."""
        return self._loaded.output

    @property
    def period_ns(self) -> int:
        """How often `period` wants to be called, 0 for never."""
        return self._loaded.parcel.period_ns

    @property
    def buffered(self) -> bool:
        """Whether it may hold events back."""
        return self._loaded.parcel.buffered

    def work(self, source: int, batch: Batch | None, *, period: bool = False, ready: bool = True) -> Worked:
        """Do what `Runner.work` says.

        Raises:
            RefusedError: A service that it requires is not granted for a source that has come later.
            ModulatorError: It was stopped, or cannot go on.
        """
        if source not in self._granted:
            self._granted[source] = self._services(source)
        return self._guarded(lambda: self._copies.work(source, batch, period=period, ready=ready))

    def drain(self, source: int) -> Worked:
        """Dequeue everything that waits.

        Raises:
            ModulatorError: As for `work`.
        """
        return self._guarded(lambda: self._copies.drain(source))

    def forget(self, source: int) -> None:
        """End the copy of a source that has ended."""
        self._copies.forget(source)
        self._granted.pop(source, None)

    def close(self) -> None:
        """End all of them."""
        self._stopped = self._stopped or "it was closed"
        for copy in self._shared.values():
            copy.close()

    def _guarded(self, function: Callable[[], Outcome]) -> Worked:
        if self._stopped:
            raise ModulatorError(f"`{self._name}` is not asked again: {self._stopped}")
        try:
            return Worked(*watchdog.guard(function, self._seconds, f"`{self._name}`"))
        except EchoicError as error:
            self._stopped = str(error)
            if isinstance(error, ModulatorError):
                raise
            raise ModulatorError(f"`{self._name}` cannot go on: {error}") from error

    def _make(self, source: int) -> Modulator:
        made = self._loaded.make(self._shared)
        made.services = self._granted[source]
        return made
