"""Finding channels: by name or id, now or as soon as they appear, and again when they move.

A channel lives in the hub that created it. When that ends and another creates a channel of the same name, people think
of it as the same channel, as they are used to from topics. `Following` does so too: it opens a channel by name, looks
once in a while whether the name stands for another one, and subscribes there.
"""

import difflib
import threading
import time
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from echoic.channels import ChannelEntry, ChannelId, check_channel_name
from echoic.errors import AddressError, ChannelNotFoundError, EchoicError, UnreachableError
from echoic.hub import Channel, Hub
from echoic.links import MAY_WANT_TLS, NO_TLS

__all__ = ["Followed", "Following", "browse", "find", "manager_of", "names_of", "nearest"]

SEEK_SECONDS: Final = 0.2
CHECK_SECONDS: Final = 1.0
LOST_SECONDS: Final = 3.0


def browse(hub: Hub) -> list[ChannelEntry]:
    """Return what the name server knows; of a hub that has none, its own channels. What has no id is left out.

    Raises:
        UnreachableError: It does not answer; the message says what to do.
    """
    if not hub.names:
        return hub.channels()
    names = hub.names[0]
    try:
        return [entry for entry in hub.channels(names) if manager_of(entry.id)]
    except UnreachableError as error:
        if NO_TLS in str(error) or MAY_WANT_TLS in str(error):
            raise UnreachableError(f"the name server at {names} does not let us in: {error}") from error
        raise UnreachableError(
            f"nobody serves names at {names}; start `echoic up`, or pass --names HOST:PORT or a channel id ({error})"
        ) from error


def manager_of(id: str) -> str:
    """Return the address of the hub that manages a channel; "" for what is no id, which strangers may send."""
    try:
        return ChannelId.parse(id).address
    except AddressError:
        return ""


def names_of(hub: Hub) -> str:
    """Return the address of the name server that a hub asks; "" if it has none."""
    return hub.names[0] if hub.names else ""


def find(hub: Hub, channel: str) -> Channel:
    """Open a channel by name or id.

    Raises:
        AddressError: It is neither.
        ChannelNotFoundError: Nobody knows it; the message has the nearest names.
        UnreachableError: The name server or the manager does not answer.
    """
    if "://" in channel:
        id = ChannelId.parse(channel)
        try:
            return hub.open(channel)
        except ChannelNotFoundError as error:
            raise _not_found(id.name, id.address, hub.channels(id.address)) from error
    check_channel_name(channel)
    known = browse(hub)
    entry = next((each for each in known if each.name == channel), None)
    if entry is None:
        raise _not_found(channel, names_of(hub) or hub.address, known)
    return hub.open(entry.id)


class Followed(Protocol):
    """A sink, or a recording."""

    @property
    def closed(self) -> bool:
        """Whether it has ended."""

    def close(self) -> None:
        """End it."""


class Following:
    """Keeps a subscription to whatever channel a name stands for."""

    def __init__(
        self, hub: Hub, channel: str, subscribe: Callable[[Channel], Followed], say: Callable[[str], None]
    ) -> None:
        """Begin to look for a channel; `subscribe` is called for each that is found, `say` is told why none is."""
        self.channel: Channel | None = None
        self.failure: EchoicError | None = None
        self._hub = hub
        self._name = channel
        self._subscribe = subscribe
        self._say = say
        self._sink: Followed | None = None
        self._said = ""
        self._lost_since = 0.0
        self._stopped = threading.Event()
        self._look()
        threading.Thread(target=self._keep_looking, name="echoic-following", daemon=True).start()

    def stop(self) -> None:
        """Look no more."""
        self._stopped.set()

    def missing(self) -> EchoicError:
        """Return the error that says why there is no channel."""
        try:
            find(self._hub, self._name)
        except EchoicError as error:
            return error
        return ChannelNotFoundError(f"channel '{self._name}' was not found in time")

    def _keep_looking(self) -> None:
        while not self._stopped.wait(SEEK_SECONDS if self.channel is None else CHECK_SECONDS):
            self._look()

    def _look(self) -> None:
        """Subscribe to the channel, unless it is the one already subscribed to."""
        if self.failure is not None:
            return
        try:
            found = find(self._hub, self._name)
            if self.channel is not None and self.channel.id == found.id and self._sink and not self._sink.closed:
                return
            former, self._sink = self._sink, self._subscribe(found)
            self.channel = found
        except (ChannelNotFoundError, UnreachableError) as error:
            if self.channel is None or self._lost(self.channel):
                self._explain(error)
        except EchoicError as error:
            if not self._stopped.is_set():
                self.failure = error
        else:
            self._said = ""
            if former is not None:
                former.close()

    def _lost(self, channel: Channel) -> bool:
        """Whether the manager of the channel that was found says nothing of it any more, for long enough to be said.

        It need not: events come as long as sources know of the subscription, whoever serves names. And a manager that
        is gone may be another's successor in a moment.
        """
        now = time.monotonic()
        try:
            self._hub.describe(channel.id)
        except ChannelNotFoundError:
            return True
        except EchoicError:
            self._lost_since = self._lost_since or now
            return now - self._lost_since >= LOST_SECONDS
        self._lost_since = 0.0
        return False

    def _explain(self, error: EchoicError) -> None:
        """Say, once for each reason, why nothing comes."""
        reason = str(error).removeprefix(f"channel '{self._name}' ")
        message = f"waiting for channel '{self._name}': {reason}"
        if message != self._said and not self._stopped.is_set():
            self._said = message
            self._say(message)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence that says which of the known names may have been meant; "" if none is near."""
    near = difflib.get_close_matches(name, list(known), n=2, cutoff=0.7)
    return f"; did you mean {' or '.join(repr(other) for other in near)}?" if near else ""


def _not_found(name: str, address: str, known: list[ChannelEntry]) -> ChannelNotFoundError:
    hint = nearest(name, [entry.name for entry in known])
    return ChannelNotFoundError(f"channel '{name}' not found at {address}{hint} (echoic ls)")
