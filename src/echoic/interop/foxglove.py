"""Channels in Foxglove: a WebSocket server that Foxglove's app connects to, with a topic for each channel.

    echoic channel -> sink, only while somebody looks -> JSON -> topic of the same name, schema from the type

The JSON and its schema are those of MCAP files (`recorder.json_events`), so that live and recorded events look alike.
An event carries no time of its own: `log_time` is when it came.

The SDK tells when a client subscribes to a topic and when the last one leaves. Then the bridge subscribes to the echoic
channel, and ends that again: nothing is sent to a bridge at which nobody looks. Calls of the SDK come from threads of
its own, which must not wait for a name server, so they only set a flag; one thread of the bridge does all the rest:

    every LOOK_SECONDS, or at once when a flag was set:
        which channels are there? -> advertise, withdraw, advertise anew if the type is another
        who is looked at?         -> subscribe, unsubscribe

A client that is slow loses the oldest messages (`message_backlog_size`), as does the bridge when it cannot keep up with
a channel. Clients cannot publish. A bridge that other machines reach has TLS, or is asked for by `insecure`: Foxglove's
protocol knows no passwords.

The SDK's server takes as many connections as come, for as long as they like, from pages of anybody. So it listens on
loopback alone, and `doorway` stands before it, with limits. It is not at 127.0.0.1 but, where the system has all of
127.0.0.0/8, at an address of 24 random bits there, so that a page cannot find it by trying ports.
"""

import secrets
import sys
import threading
import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final, Self

from echoic.errors import AddressError, EchoicError, LimitExceededError, LocalError, UnreachableError
from echoic.hub import Channel, Hub, Sink
from echoic.interop.doorway import Doorway
from echoic.interop.exposure import Certificate, exposed
from echoic.monitor import browse, find
from echoic.recorder.json_events import events_as_json, json_schema_of
from echoic.wire import Batch

if TYPE_CHECKING:
    import foxglove
    from foxglove.websocket import ChannelView, Client, WebSocketServer

__all__ = ["LISTEN_DEFAULT", "ORIGINS_DEFAULT", "Bridge"]

LISTEN_DEFAULT: Final = "127.0.0.1:8765"
ORIGINS_DEFAULT: Final = ("https://app.foxglove.dev",)
LOOK_SECONDS: Final = 1.0
TOPICS_MAX: Final = 1000
AGAIN: Final = 8  # how many topics are compared with their channels at each look
BACKLOG_MESSAGES: Final = 1024


class Topic:
    """A channel as Foxglove sees it."""

    def __init__(self, channel: Channel, name: str, context: "foxglove.Context") -> None:
        import foxglove

        self.name: Final = name
        self.id: Final = channel.id
        self.type: Final = channel.format
        self._channel = channel
        self._sink: Sink | None = None
        schema = None
        if channel.format is not None:
            data = json_schema_of(channel.format)
            schema = foxglove.Schema(name=channel.format.name, encoding="jsonschema", data=data)
        self._topic = foxglove.Channel(name, schema=schema, message_encoding="json", context=context)

    @property
    def subscribed(self) -> bool:
        """Whether events are asked for."""
        return self._sink is not None

    def look(self, wanted: bool) -> None:
        """Subscribe to the channel if it is looked at, and only then.

        Raises:
            EchoicError: It cannot be subscribed to.
        """
        if wanted and (self._sink is None or self._sink.closed):
            self._sink = self._channel.subscribe(self._pass_on, batch=True, slow="drop_oldest")
        elif not wanted and self._sink is not None:
            self._sink.close()
            self._sink = None

    def close(self) -> None:
        """Withdraw the topic."""
        if self._sink is not None:
            self._sink.close()
        self._topic.close()

    def _pass_on(self, batch: Batch) -> None:
        now_ns = time.time_ns()
        for text in events_as_json(batch):
            self._topic.log(text, log_time=now_ns)


class Listener:
    """Counts who looks at what, by name of the topic. Called by threads of the SDK."""

    def __init__(self) -> None:
        self.changed: Final = threading.Event()
        self._lock = threading.Lock()
        self._viewers: dict[str, set[int]] = {}

    def wanted(self, topic: str) -> bool:
        """Tell whether somebody looks at a topic."""
        with self._lock:
            return bool(self._viewers.get(topic))

    def on_subscribe(self, client: "Client", channel: "ChannelView") -> None:
        """Note that a client looks at a topic."""
        with self._lock:
            self._viewers.setdefault(channel.topic, set()).add(client.id)
        self.changed.set()

    def on_unsubscribe(self, client: "Client", channel: "ChannelView") -> None:
        """Note that a client looks at a topic no more."""
        with self._lock:
            viewers = self._viewers.get(channel.topic, set())
            viewers.discard(client.id)
            if not viewers:
                self._viewers.pop(channel.topic, None)
        self.changed.set()


class Bridge:
    """Lets Foxglove look at channels until it is closed."""

    def __init__(
        self,
        hub: Hub,
        channels: Sequence[str] = (),
        listen: str = LISTEN_DEFAULT,
        *,
        certificate: Certificate | None = None,
        insecure: bool = False,
        origins: Collection[str] = ORIGINS_DEFAULT,
    ) -> None:
        """Listen, and advertise channels.

        Args:
            hub: Who subscribes.
            channels: Names or ids; all that the hub's name server knows if there are none, also those to come.
            listen: Where Foxglove connects to; port 0 takes a free one.
            certificate: The PEM files of a certificate and its key (PKCS#8), for TLS.
            insecure: Accept that other machines can read along in the clear, instead.
            origins: Whose pages may look. Programs, such as Foxglove's desktop, may in any case.

        Raises:
            LocalError: foxglove-sdk is not installed; the message says how.
            AddressError: `listen` is not an address, or the hub has no name server and no channel was named.
            InsecureError: It can be reached from other machines, and nobody said that this is meant.
            UnreachableError: It cannot be listened at.
            EchoicError: A channel that was named cannot be opened.
        """
        place = exposed(listen, certificate, insecure=insecure)
        if not channels and not hub.names:
            raise AddressError("the hub has no name server, so it cannot look for channels: name those that are wanted")
        if len(channels) > TOPICS_MAX:
            raise LimitExceededError(f"{len(channels)} channels were named, limit is {TOPICS_MAX}")
        self._hub = hub
        self._named = tuple(channels)
        self._topics: dict[str, Topic] = {}  # by what the channel is asked for: its id, or a name or id that was named
        self._turn = 0
        self._listener = Listener()
        self._stopping = False
        self.troubles: Final[dict[str, str]] = {}
        """Why channels are not shown, by name."""
        self._context = _context()
        self._advertise(must=bool(channels))
        inner = _inner_host()
        self._server = _serve(inner, self._listener, self._context)
        try:
            self._doorway = Doorway(place, (inner, self._server.port), origins)
        except EchoicError:
            self._server.stop()
            raise
        self.url: Final = place.url("ws", self._doorway.port)
        self._thread = threading.Thread(target=self._tend, name="echoic-foxglove", daemon=True)
        self._thread.start()

    @property
    def topics(self) -> dict[str, bool]:
        """The channels that are advertised, and whether each is subscribed to."""
        return {topic.name: topic.subscribed for topic in list(self._topics.values())}

    def close(self) -> None:
        """Hang up."""
        self._stopping = True
        self._listener.changed.set()
        self._thread.join()
        self._doorway.close()
        self._server.stop()
        for topic in self._topics.values():
            topic.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _tend(self) -> None:
        looked = time.monotonic()
        while not self._stopping:
            self._listener.changed.wait(LOOK_SECONDS)
            self._listener.changed.clear()
            if time.monotonic() - looked >= LOOK_SECONDS:
                self._advertise()
                looked = time.monotonic()
            for topic in list(self._topics.values()):
                try:
                    topic.look(self._listener.wanted(topic.name))
                except EchoicError as error:
                    self.troubles[topic.name] = str(error)

    def _advertise(self, *, must: bool = False) -> None:
        """Have a topic for each channel that is there, and none for those that have ended.

        Raises:
            EchoicError: Only if all that were named must be there: one of them cannot be opened.
        """
        try:
            wanted = self._named or tuple(entry.id for entry in browse(self._hub))[:TOPICS_MAX]
        except UnreachableError as error:
            self.troubles[""] = str(error)  # the name server may be back at the next look
            return
        self.troubles.clear()
        for place in self._to_open(wanted):
            try:
                self._open(place)
            except EchoicError as error:
                if must:
                    raise
                self.troubles[place] = str(error)
        for place in self._topics.keys() - set(wanted):
            self._topics.pop(place).close()

    def _to_open(self, wanted: Sequence[str]) -> list[str]:
        """Return what has no topic yet, and in turn a few that have: another channel may have taken their place."""
        known = [place for place in wanted if place in self._topics]
        again = [known[(self._turn + step) % len(known)] for step in range(min(len(known), AGAIN))]
        self._turn += AGAIN
        return [*(place for place in wanted if place not in self._topics), *again]

    def _open(self, place: str) -> None:
        """Advertise a channel, unless it is; anew if another has its place. The topic is its name, or its id."""
        channel = find(self._hub, place)
        topic = self._topics.get(place)
        if topic is not None:
            if (topic.id, topic.type) == (channel.id, channel.format):
                return
            topic.close()
            del self._topics[place]
        taken = {each.name for each in self._topics.values()}
        name = channel.name if channel.name not in taken else channel.id
        self._topics[place] = Topic(channel, name, self._context)


def _context() -> "foxglove.Context":
    """Return topics of our own, apart from those that a program may have itself.

    Raises:
        LocalError: foxglove-sdk is not installed.
    """
    try:
        import foxglove
    except ModuleNotFoundError as error:
        raise LocalError(
            "the bridge needs foxglove-sdk, which is not installed: pip install 'echoic[foxglove]'"
        ) from error
    return foxglove.Context()


def _inner_host() -> str:
    """Return a host of this machine that nobody else knows, where there are so many."""
    if sys.platform != "linux":
        return "127.0.0.1"
    return ".".join(["127", *(str(1 + secrets.randbelow(254)) for _ in range(3))])


def _serve(host: str, listener: Listener, context: "foxglove.Context") -> "WebSocketServer":
    import foxglove

    try:
        return foxglove.start_server(
            name="echoic",
            host=host,
            port=0,
            server_listener=listener,  # type: ignore[arg-type] # has those of its methods that are called
            context=context,
            message_backlog_size=BACKLOG_MESSAGES,
        )
    except (RuntimeError, ValueError) as error:
        raise UnreachableError(f"cannot listen at {host}: {error}") from error
