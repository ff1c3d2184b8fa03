"""A source that stays with a channel's name, whoever manages the channel.

The first to publish under a name creates the channel and manages it; later ones open it. When the manager ends, the
name is free, and one of those that still publish creates the channel anew. As long as the manager answers they stay
with it, even while the name server is being replaced. When neither answers they stay too: a channel that nobody can
find is worth less than the sinks that are known.

Events are not confirmed by anybody, so a right that is withdrawn or a certificate that expires would go unnoticed. So
once a second it is looked whether the manager still has this publisher in its book, and what is wrong is said.
"""

import threading
import time
from typing import Final

from echoic.channels import ChannelCounts, ChannelId
from echoic.cli.screen import say
from echoic.errors import (
    ChannelExistsError,
    ChannelNotFoundError,
    DeniedError,
    EchoicError,
    LocalError,
    UnreachableError,
)
from echoic.formats import Format
from echoic.hub import Channel, Hub, Source
from echoic.links import Identity, own_credentials
from echoic.monitor import browse, find

__all__ = ["Publisher"]

PATIENCE_SECONDS: Final = 3.0
POLL_SECONDS: Final = 0.02
CHECK_SECONDS: Final = 1.0


class Publisher:
    """Submits events to whatever channel a name stands for, and creates it when there is none."""

    def __init__(self, hub: Hub, channel: str, declared: object | None, identity: Identity | None = None) -> None:
        """Open or create the channel, and a source; `identity` is the hub's.

        Raises:
            ChannelNotFoundError: There is none, and no type to create it with.
            IncompatibleTypesError: Its events are of another type.
            UnreachableError: The name server or the manager does not answer.
        """
        self._hub = hub
        self._name = channel
        self._declared = declared
        self._identity = identity
        self.trouble = ""
        """Why events may have reached nobody, as was said last; "" if there never was a reason."""
        self._ailing: str | None = None  # "" until it is said
        self._ailing_since = 0.0
        self._source: Source
        self.channel: Channel
        self._attach(self._open_patiently())
        self.created: Final = self._is_mine()
        self._stopped = threading.Event()
        threading.Thread(target=self._keep, name="echoic-publisher", daemon=True).start()

    @property
    def format(self) -> Format:
        """The type of the events."""
        return self._source.format

    def submit(self, event: object) -> None:
        """Give an event to every sink.

        Raises:
            EchoicError: As `Source.submit` does.
        """
        self._source.submit(event)

    def subscribers(self) -> int:
        """Return how many sinks the events reach."""
        try:
            sinks = self._hub.describe(self.channel.id).sinks
        except EchoicError:
            return self.channel.statistics().targets  # the manager is gone; those who listen still do
        derived = sum(counts.targets for counts in self._derived())
        others = [sink for sink in sinks if sink.address != self._hub.address]
        if self.channel.statistics().targets < len(others):
            return derived  # the others have asked, and are being connected
        return derived + sum(max(1, len(sink.sinks)) for sink in sinks)

    def bytes_sent(self) -> int:
        """Return how many bytes have left this process, of events and of what is derived from them."""
        return self.channel.statistics().bytes_out + sum(counts.bytes_out for counts in self._derived())

    def await_subscribers(self, count: int, timeout: float | None = None) -> int:
        """Wait for subscribers, and return how many there are."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (found := self.subscribers()) < count and (deadline is None or time.monotonic() < deadline):
            time.sleep(POLL_SECONDS)
        return found

    def stop(self) -> None:
        """Send what has gathered, and watch the channel no more."""
        self._stopped.set()
        self._source.flush()

    def unconfirmed(self, timeout: float) -> int:
        """Wait until recorders have everything on their disks; return how many bytes they do not have in time."""
        deadline = time.monotonic() + timeout
        while (left := self._source.statistics().unconfirmed_bytes) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        return left

    def _derived(self) -> list[ChannelCounts]:
        """Return what goes through the channels that are derived from this one, directly or not, in this process."""
        report = self._hub.report(self._hub.address)
        found: list[ChannelCounts] = []
        family = [self.channel.name]
        for parent in family:
            groups = {each.name for each in report.derivations if each.parent == parent}
            derived = [each for each in report.channels if each.name in groups or _group(each.name) in groups]
            found += derived
            family += [each.name for each in derived if each.name not in family]
        return found

    def _is_mine(self) -> bool:
        return ChannelId.parse(self.channel.id).address == self._hub.address

    def _attach(self, channel: Channel) -> None:
        self._source = channel.source(self._declared)
        self.channel = channel

    def _open_patiently(self) -> Channel:
        """Open or create the channel; bear with a name server that is being replaced."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return self._open()
            except UnreachableError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(POLL_SECONDS)

    def _open(self) -> Channel:
        try:
            return find(self._hub, self._name)
        except (ChannelNotFoundError, UnreachableError) as error:
            if "://" in self._name:
                raise
            if self._declared is None:
                if isinstance(error, UnreachableError):
                    raise
                raise ChannelNotFoundError(f"{error}; to create it, name its type: {_example(self._name)}") from error
        try:
            return self._hub.create(self._name, self._declared)  # also when the one that is known has died
        except ChannelExistsError:
            return self._hub.open(self._name)

    def _keep(self) -> None:
        """Look once in a while whether events still go where they should."""
        while not self._stopped.wait(CHECK_SECONDS):
            try:
                self._look()
            except EchoicError as error:  # the next look tries again
                self._explain(error)
            else:
                self._recover()

    def _look(self) -> None:
        """See that the channel has a manager, who lets this hub publish; go on with another one if it has none.

        Raises:
            EchoicError: Events may reach nobody.
        """
        if self._identity is not None and own_credentials(self._identity).expired(time.time()):
            raise DeniedError("our certificate has expired, so nobody lets us in (echoic keys rotate)")
        if self._is_mine():
            return
        try:
            known = self._hub.describe(self.channel.id).sources
        except (UnreachableError, LocalError):
            if "://" in self._name:
                raise
            self._move()
            return
        if self._hub.address not in known:
            self._source.confirm()

    def _move(self) -> None:
        """Go on with the channel that the name stands for, or create it.

        Raises:
            EchoicError: No name server answers, or the channel can be neither opened nor created.
        """
        browse(self._hub)
        if self._declared is None:
            self._declared = self._source.format
        former = self._source
        self._attach(self._open())
        former.close()

    def _explain(self, error: EchoicError) -> None:
        """Say once why events may reach nobody: at once if somebody has said no, else if it lasts."""
        now = time.monotonic()
        if self._ailing is None:
            self._ailing, self._ailing_since = "", now
        if self._ailing or self._stopped.is_set():
            return
        if isinstance(error, DeniedError | ChannelNotFoundError) or now - self._ailing_since >= PATIENCE_SECONDS:
            self._ailing = self.trouble = str(error)
            say(f"events of '{self._name}' may reach nobody: {error}")

    def _recover(self) -> None:
        """Say that all is well again, if the contrary was said."""
        if self._ailing:
            say(f"publishing to '{self._name}' goes on")
        self._ailing = None


def _group(name: str) -> str:
    """Return of which router a channel with this name is a port, if it is one."""
    group, _, port = name.rpartition(".")
    return group if port.isdecimal() else name


def _example(name: str) -> str:
    return f"echoic pub {name} 'Trade{{symbol: str, price: float}}' '{{symbol: IBM, price: 75.5}}'"
