"""A channel, as a program holds it: open sources, subscribe, iterate."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from echoic.channels import ChannelCounts, Gap
from echoic.errors import FormatError
from echoic.formats import Format
from echoic.hub.endpoints import Endpoints
from echoic.hub.outbound import Source, SourceState
from echoic.hub.sink import Events, Handler, Sink, check_slow

if TYPE_CHECKING:
    from echoic.hub.flusher import Flusher

__all__ = ["Channel"]


class Channel:
    """An event channel: sources submit, sinks are told. Made by `Hub.create` and `Hub.open`."""

    __slots__ = ("_declared", "_flusher", "endpoints", "id", "name", "sources")

    def __init__(self, endpoints: Endpoints, declared: object | None, flusher: "Flusher", sources: set[Source]) -> None:
        self.endpoints: Final = endpoints
        self.id: Final = endpoints.member.id
        self.name: Final = endpoints.member.name
        self._declared = declared
        self._flusher = flusher
        self.sources: Final = sources

    @property
    def format(self) -> Format | None:
        """The type of the channel's events; None for an untyped channel."""
        return self.endpoints.member.format

    @property
    def declared(self) -> object:
        """The type that sources have unless they declare their own.

        Raises:
            FormatError: The channel is untyped.
        """
        declared = self._declared if self._declared is not None else self.format
        if declared is None:
            raise FormatError(f"channel `{self.name}` has no type, so its sources must declare theirs")
        return declared

    def source(self, declared: object | None = None, *, resume: SourceState | None = None) -> Source:
        """Open a source. Once this returns, every hub that has sinks will be sent its events.

        Args:
            declared: The type of its events, which may have more fields than the channel's.
            resume: A source that was frozen, perhaps in another process; it goes on here.

        Raises:
            FormatError: The channel is untyped and no type was given.
            IncompatibleTypesError: Its events cannot be received as the channel's type.
            UnreachableError: The channel's manager does not answer.
        """
        return Source(self, declared, self._flusher, resume)

    def subscribe(
        self,
        handler: Handler,
        declared: object | None = None,
        *,
        batch: bool = False,
        slow: str = "block",
        thread: bool = False,
        narrow: bool = False,
        paused: bool = False,
        on_gap: Callable[[Gap], object] | None = None,
    ) -> Sink:
        """Call a handler for every event, from now on. Once this returns, every source sends to it.

        Args:
            handler: Called with an event, or with a batch of them, in the thread that reads the link. That may be any
                thread that waits in `submit_sync`, so a handler must not take locks that are held around such a call.
            declared: The type in which to receive them, which may have fewer fields than the channel's.
            batch: Call the handler with whole batches (`batch.array`, `batch.arrow`, iteration).
            slow: What happens when the handler does not keep up: `block` the sources, `drop_oldest`, keep the `latest`
                batch only, or `disconnect`. All but `block` imply `thread`.
            thread: Run the handler in a thread of its own.
            narrow: Accept narrower numbers than are sent; they saturate.
            paused: Gather events until `Sink.resume` tells where a sink that moves here has stopped. Implies `thread`.
            on_gap: Called with each gap: which events of which source will not arrive, and why.

        Raises:
            IncompatibleTypesError: The channel's events cannot be received as `declared`.
            UnreachableError: The channel's manager does not answer.
        """
        rule = check_slow(slow)
        sink = Sink(
            self.endpoints,
            handler,
            declared if declared is not None else self._declared,
            batch=batch,
            slow=rule,
            queued=thread or paused or rule != "block",
            narrow=narrow,
            on_gap=on_gap,
        )
        self.endpoints.add_sink(sink)
        if not paused:
            sink.start()
        return sink

    def events(
        self,
        declared: object | None = None,
        *,
        batch: bool = False,
        slow: str = "block",
        timeout: float | None = None,
        on_gap: Callable[[Gap], object] | None = None,
    ) -> Events:
        """Iterate over the events from now on.

        Args:
            declared: The type in which to receive them.
            batch: Iterate over batches.
            slow: What happens when the loop does not keep up, as for `subscribe`.
            timeout: End when nothing came for so many seconds.
            on_gap: Called with each gap.

        Raises:
            IncompatibleTypesError: The channel's events cannot be received as `declared`.
            UnreachableError: The channel's manager does not answer.
        """
        wanted = declared if declared is not None else self._declared
        rule = check_slow(slow)
        sink = Sink(self.endpoints, None, wanted, batch=batch, slow=rule, queued=True, narrow=False, on_gap=on_gap)
        self.endpoints.add_sink(sink)
        return Events(sink, timeout)

    def statistics(self) -> ChannelCounts:
        """Return what went through the channel in this hub."""
        return self.endpoints.member.counts()

    def __repr__(self) -> str:
        return f"<Channel {self.id}: {self.format.name if self.format else 'untyped'}>"
