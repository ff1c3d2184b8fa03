"""Channels for asyncio: the same hubs, channels, sources and sinks, with `await` where the others wait.

    async with aio.Hub() as hub:
        trades = await hub.open("trades", Trade)
        async for trade in trades.events():
            ...

A thin second face: each object here holds one of `echoic.hub`. What may wait for others runs in a thread of the loop's
own pool; what does not is called as it is. Events come by the queue of a sink, and the loop is woken when it fills.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self, Unpack

from echoic import hub as blocking
from echoic.channels import (
    ChannelCounts,
    ChannelEntry,
    DerivationCounts,
    Gap,
    Placement,
    Plain,
    Policy,
    Steering,
    Trouble,
)
from echoic.errors import EchoicError
from echoic.links import Identity
from echoic.recorder import SEGMENT_BYTES_MAX, Hole, Missing, Retention

__all__ = [
    "Channel",
    "Derivation",
    "DurableSink",
    "Events",
    "Group",
    "GroupEvents",
    "Hub",
    "Parameters",
    "Recording",
    "Source",
]

KEEP_ALL: Final = Retention()
TAKE_SECONDS: Final = 0.2


class Hub:
    """A hub. Use it with `async with`."""

    def __init__(
        self,
        listen: str = "127.0.0.1:0",
        *,
        names: str | Sequence[str] = (),
        name: str = "",
        advertise: str = "",
        identity: Identity | None = None,
        insecure: bool = False,
        policy: Policy | None = None,
    ) -> None:
        """Start listening; the arguments and errors are those of `echoic.Hub`."""
        self.blocking: Final = blocking.Hub(
            listen, names=names, name=name, advertise=advertise, identity=identity, insecure=insecure, policy=policy
        )
        self.address: Final = self.blocking.address

    async def create(self, name: str, declared: object | None = None, *, context: object | None = None) -> "Channel":
        """Create a channel, as `echoic.Hub.create` does."""
        return Channel(await asyncio.to_thread(self.blocking.create, name, declared, context=context))

    async def open(self, channel: str, declared: object | None = None) -> "Channel":
        """Open a channel, as `echoic.Hub.open` does."""
        return Channel(await asyncio.to_thread(self.blocking.open, channel, declared))

    async def record(
        self,
        channel: "str | Channel",
        path: str | Path,
        *,
        partitions: int = 1,
        retention: Retention = KEEP_ALL,
        segment_bytes_max: int = SEGMENT_BYTES_MAX,
        durability: Literal["disk", "os"] = "disk",
    ) -> "Recording":
        """Record a channel in a journal, as `echoic.Hub.record` does."""
        recording = await asyncio.to_thread(
            self.blocking.record,
            channel if isinstance(channel, str) else channel.blocking,
            path,
            partitions=partitions,
            retention=retention,
            segment_bytes_max=segment_bytes_max,
            durability=durability,
        )
        return Recording(recording)

    async def join(
        self,
        name: str,
        declared: object,
        *,
        me: str,
        peers: Mapping[str, str],
        **options: Unpack[blocking.JoinKeywords],
    ) -> "Group":
        """Be a member of an ordered group, as `echoic.Hub.join` does."""
        return Group(await asyncio.to_thread(self.blocking.join, name, declared, me=me, peers=peers, **options))

    async def channels(self, address: str | None = None) -> list[ChannelEntry]:
        """Return the channels that a hub manages or a name server knows."""
        return await asyncio.to_thread(self.blocking.channels, address)

    def statistics(self) -> blocking.HubStatistics:
        """Return who is connected, and what goes through the channels."""
        return self.blocking.statistics()

    async def close(self) -> None:
        """Send what has gathered, take leave, and end."""
        await asyncio.to_thread(self.blocking.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Channel:
    """An event channel."""

    def __init__(self, channel: blocking.Channel) -> None:
        self.blocking: Final = channel
        self.id: Final = channel.id
        self.name: Final = channel.name

    async def source(
        self,
        declared: object | None = None,
        *,
        name: str = "",
        context: blocking.Context | None = None,
        controls: blocking.Controls | None = None,
    ) -> "Source":
        """Open a source, as `echoic.Channel.source` does; controls are called in threads, not in the loop."""
        opened = asyncio.to_thread(self.blocking.source, declared, name=name, context=context, controls=controls)
        return Source(await opened)

    async def steer(self, action: str, /, **values: Plain) -> list[Steering]:
        """Ask every source to `start`, `stop` or `tune` the generation of events, as `echoic.Channel.steer` does."""
        return await asyncio.to_thread(self.blocking.steer, action, **values)

    async def derive(
        self,
        code: str | Callable[..., object],
        output: object | None = None,
        *,
        params: object | None = None,
        capacities: Mapping[str, int] | None = None,
        placement: str = "source",
        name: str = "",
        share: bool = True,
        on_trouble: Callable[[Trouble], object] | None = None,
    ) -> "Channel":
        """Return a channel whose events are computed from this one's at every source, as `echoic.Channel.derive` does.

        `on_trouble` is called in the loop.
        """
        derived = await asyncio.to_thread(
            self.blocking.derive,
            code,
            output,
            params=params,
            capacities=capacities,
            placement=placement,
            name=name,
            share=share,
            on_trouble=_in_this_loop(on_trouble),
        )
        return Channel(derived)

    async def route(  # noqa: PLR0913 - every one has a default, and is named by the caller
        self,
        code: str | Callable[..., object],
        ports: int,
        output: object | None = None,
        *,
        params: object | None = None,
        capacities: Mapping[str, int] | None = None,
        placement: str = "source",
        name: str = "",
        share: bool = True,
        on_trouble: Callable[[Trouble], object] | None = None,
    ) -> "tuple[Channel, ...]":
        """Return a channel for each port of a router, as `echoic.Channel.route` does."""
        routed = await asyncio.to_thread(
            self.blocking.route,
            code,
            ports,
            output,
            params=params,
            capacities=capacities,
            placement=placement,
            name=name,
            share=share,
            on_trouble=_in_this_loop(on_trouble),
        )
        return tuple(map(Channel, routed))

    @property
    def derivation(self) -> "Derivation | None":
        """What the channel is derived by, and how that fares; None if it is not derived."""
        handle = self.blocking.derivation
        return Derivation(handle) if handle is not None else None

    @property
    def params(self) -> "Parameters":
        """The parameters of a derived channel.

        Raises:
            LocalError: It has none.
        """
        return Parameters(self.blocking.params)

    async def subscribe(
        self,
        handler: Callable[[Any], Awaitable[object]],
        declared: object | None = None,
        *,
        batch: bool = False,
        slow: str = "block",
        on_gap: Callable[[Gap], object] | None = None,
    ) -> "asyncio.Task[None]":
        """Await a coroutine function for every event, one after the other; cancel the task that is returned to end it.

        An exception of the handler ends the task, and is what awaiting it raises; a synchronous submitter is told too.
        """
        events = await self.events(declared, batch=batch, slow=slow, on_gap=on_gap).__aenter__()

        async def follow() -> None:
            async with events:
                async for event in events:
                    await handler(event)

        return asyncio.create_task(follow(), name=f"echoic-{self.name}")

    async def resume(
        self,
        handler: Callable[[Any, blocking.Stamp], Awaitable[object]],
        *,
        name: str = "",
        positions: Sequence[int] | None = None,
        declared: object | None = None,
        batch: bool = False,
        journal: str = "",
        on_gap: Callable[[Hole | Missing], object] | None = None,
    ) -> "DurableSink":
        """Await a coroutine function for every recorded event, one after the other, as `echoic.Channel.resume` does.

        `on_gap` is called in a thread, not in the loop.
        """
        loop = asyncio.get_running_loop()

        async def handle(event: object, stamp: blocking.Stamp) -> None:
            await handler(event, stamp)

        def wait_for(event: object, stamp: blocking.Stamp) -> None:
            asyncio.run_coroutine_threadsafe(handle(event, stamp), loop).result()

        sink = await asyncio.to_thread(
            self.blocking.resume,
            wait_for,
            name=name,
            positions=positions,
            declared=declared,
            batch=batch,
            journal=journal,
            on_gap=on_gap,
        )
        return DurableSink(sink)

    def events(
        self,
        declared: object | None = None,
        *,
        batch: bool = False,
        slow: str = "block",
        on_gap: Callable[[Gap], object] | None = None,
    ) -> "Events":
        """Iterate over the events with `async for`, from the moment of the first `await`."""
        return Events(lambda: self.blocking.events(declared, batch=batch, slow=slow, timeout=0, on_gap=on_gap))

    def statistics(self) -> ChannelCounts:
        """Return what went through the channel in this hub."""
        return self.blocking.statistics()


class Recording:
    """A channel that is being recorded, until this is closed."""

    def __init__(self, recording: blocking.Recording) -> None:
        self.blocking: Final = recording
        self.journal: Final = recording.journal

    def statistics(self) -> blocking.RecordingStatistics:
        """Return the counts so far, and why nothing can be kept for the moment, if that is so."""
        return self.blocking.statistics()

    async def close(self, *, release: bool = True) -> None:
        """Keep what has arrived, and end, as `echoic.hub.Recording.close` does."""
        await asyncio.to_thread(self.blocking.close, release=release)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class DurableSink:
    """A handler that is awaited for every recorded event."""

    def __init__(self, sink: blocking.DurableSink) -> None:
        self.blocking: Final = sink

    @property
    def trouble(self) -> str:
        """Why no events come: what has ended it, or what it waits for; "" if all is well."""
        return self.blocking.trouble

    def statistics(self) -> blocking.DurableStatistics:
        """Return the counts so far, and where it goes on."""
        return self.blocking.statistics()

    async def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has ended; tell whether it has."""
        return await asyncio.to_thread(self.blocking.wait, timeout)

    async def close(self) -> None:
        """End, and keep its position, if it has a name."""
        await asyncio.to_thread(self.blocking.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Parameters:
    """The parameter block of a derived channel."""

    def __init__(self, parameters: blocking.Parameters) -> None:
        self.blocking: Final = parameters

    @property
    def values(self) -> object:
        """The parameters as they were last set from here."""
        return self.blocking.values

    async def update(self, **changes: object) -> None:
        """Change some parameters at every source, as `echoic.hub.Parameters.update` does."""
        await asyncio.to_thread(self.blocking.update, **changes)


class Derivation:
    """What a derived channel is made of, and how it fares at its sources."""

    def __init__(self, handle: blocking.DerivationHandle) -> None:
        self.blocking: Final = handle
        self.code: Final = handle.code
        self.parent: Final = handle.parent
        self.placement: Final[Placement] = handle.placement

    async def counts(self) -> dict[str, DerivationCounts]:
        """Return what the derivation does in each hub that has sources, by the hubs' addresses."""
        return await asyncio.to_thread(self.blocking.counts)

    async def save(self) -> dict[int, dict[str, Any]]:
        """Return the static variables of every source, by source."""
        return await asyncio.to_thread(self.blocking.save)

    async def restore(self, states: Mapping[int, Mapping[str, Any]]) -> None:
        """Give sources back their static variables."""
        await asyncio.to_thread(self.blocking.restore, states)


def _in_this_loop(callback: Callable[[Trouble], object] | None) -> Callable[[Trouble], object] | None:
    """Return a callback for another thread that has this loop call one."""
    if callback is None:
        return None
    loop = asyncio.get_running_loop()

    def call(trouble: Trouble) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody wants to know any more
            loop.call_soon_threadsafe(callback, trouble)

    return call


class Events:
    """An asynchronous iterator over events. Closing it, or leaving its `async with`, ends the subscription."""

    def __init__(self, subscribe: Callable[[], blocking.Events]) -> None:
        self._subscribe = subscribe
        self._beginning: asyncio.Task[blocking.Events] | None = None
        self._ready = asyncio.Event()

    async def begin(self) -> blocking.Events:
        """Subscribe, unless that has been done. If cancelled, the next call goes on with it, and `close` ends it."""
        if self._beginning is None:
            self._beginning = asyncio.create_task(self._begin())
        return await asyncio.shield(self._beginning)

    async def _begin(self) -> blocking.Events:
        events = await asyncio.to_thread(self._subscribe)
        loop, ready = asyncio.get_running_loop(), self._ready

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                loop.call_soon_threadsafe(ready.set)

        events.sink.on_ready = wake
        return events

    def __aiter__(self) -> "Events":
        return self

    async def __anext__(self) -> Any:  # noqa: ANN401 - an event of any type
        events = await self.begin()
        while True:
            self._ready.clear()
            if events.ready():
                return next(events)
            if events.sink.closed:
                raise StopAsyncIteration
            await self._ready.wait()

    async def close(self) -> None:
        """End the subscription."""
        if self._beginning is not None:
            with contextlib.suppress(EchoicError):  # whoever began has been told that nothing was subscribed
                events = await asyncio.shield(self._beginning)
                await asyncio.to_thread(events.close)

    async def __aenter__(self) -> Self:
        try:
            await self.begin()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            (await self.begin()).fail(error)
        await self.close()


class Source:
    """One producer of a channel's events."""

    def __init__(self, source: blocking.Source) -> None:
        self.blocking: Final = source

    @property
    def context(self) -> blocking.Context:
        """What it lets others see of the program."""
        return self.blocking.context

    @property
    def heard(self) -> bool:
        """Whether anybody listens."""
        return self.blocking.heard

    async def submit(self, event: object) -> None:
        """Give an event to every sink of the channel; waits only while one that wants every event has no room."""
        if self.blocking.would_wait():
            await asyncio.to_thread(self.blocking.submit, event)
        else:
            self.blocking.submit(event)

    async def submit_batch(self, events: object) -> None:
        """Give many events at once."""
        await asyncio.to_thread(self.blocking.submit_batch, events)

    async def submit_sync(self, event: object, timeout: float = 5.0) -> None:
        """Give an event to every sink and return when all their handlers have returned."""
        await asyncio.to_thread(self.blocking.submit_sync, event, timeout)

    async def drain(self, timeout: float = 5.0) -> None:
        """Return when every sink has handled all events so far, as `echoic.Source.drain` does."""
        await asyncio.to_thread(self.blocking.drain, timeout)

    async def flush(self) -> None:
        """Send what has gathered."""
        await asyncio.to_thread(self.blocking.flush)

    async def close(self) -> None:
        """Send what has gathered, and end the source."""
        await asyncio.to_thread(self.blocking.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Group:
    """One member of an ordered group."""

    def __init__(self, group: blocking.Group) -> None:
        self.blocking: Final = group
        self.name: Final = group.name

    @property
    def view(self) -> blocking.View:
        """Who is in the group, as far as this member was told."""
        return self.blocking.view

    async def submit(self, event: object) -> None:
        """Have an event ordered, and do not wait for it, unless too much is under way."""
        if self.blocking.would_wait():
            await asyncio.to_thread(self.blocking.submit, event)
        else:
            self.blocking.submit(event)

    async def submit_sync(self, event: object, timeout: float = 5.0) -> blocking.GroupStamp:
        """Have an event ordered, and return its place when it was delivered here."""
        return await asyncio.to_thread(self.blocking.submit_sync, event, timeout)

    def events(self) -> "GroupEvents":
        """Return the events and their stamps, in the group's order, for `async for`."""
        return GroupEvents(self.blocking.events())

    async def wait_for(self, condition: Callable[[blocking.View], bool], timeout: float = 10.0) -> blocking.View:
        """Return the view when it fulfils a condition."""
        return await asyncio.to_thread(self.blocking.wait_for, condition, timeout)

    def statistics(self) -> blocking.GroupStatistics:
        """Return how this member stands."""
        return self.blocking.statistics()

    async def close(self) -> None:
        """Take leave, and end."""
        await asyncio.to_thread(self.blocking.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class GroupEvents:
    """Events of a group, one after the other."""

    def __init__(self, events: blocking.GroupEvents) -> None:
        self._events = events
        self._taken: deque[tuple[object, blocking.GroupStamp]] = deque()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tuple[object, blocking.GroupStamp]:
        while not self._taken:
            if self._events.closed:
                raise StopAsyncIteration
            self._taken.extend(await asyncio.to_thread(self._events.take, TAKE_SECONDS))
        return self._taken.popleft()

    def close(self) -> None:
        """Take no more events."""
        self._events.close()
