"""A channel, as a program holds it: open sources, subscribe, iterate."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, overload

from echoic.channels import ChannelCounts, ChannelId, Gap, Plain, Steering, Step, Trouble
from echoic.eager import Demodulator, EcodeModulator, Modulator, SharedObject
from echoic.errors import FormatError, LocalError
from echoic.formats import Format, Record
from echoic.hub.context import Context
from echoic.hub.derived import DerivationHandle, Parameters, Terms, derive_steps
from echoic.hub.durable import DurableHandler, DurableSink, DurableWishes
from echoic.hub.eager_sink import EagerSink, Wishes
from echoic.hub.endpoints import Endpoints
from echoic.hub.moving import SourceState
from echoic.hub.naming import named_source
from echoic.hub.notebook_faces import channel_as_html, live_widget
from echoic.hub.offer import Delegate, Offer
from echoic.hub.outbound import Source
from echoic.hub.recent import Ring, recent_events
from echoic.hub.remote_shelf import RemoteShelf
from echoic.hub.sink import Events, Handler, Sink, check_slow
from echoic.hub.steering import Controls, SourceHelm, steer_channel
from echoic.recorder import Hole, Journal, LocalShelf, Missing
from echoic.wire import Batch

if TYPE_CHECKING:
    from echoic.hub.flusher import Flusher
    from echoic.hub.notebook_faces import Live

__all__ = ["Channel"]


class Opener(Protocol):
    """Who makes channels."""

    def derived(self, parent: "Channel", step: Step, terms: Terms) -> "Channel":
        """Return a channel that is derived from another."""

    def modulated(self, parent: "Channel", modulator: Modulator, *, share: bool) -> tuple[Step, bool]:
        """Have the derived channel of a modulator entered, or find that of an equal one; tell whether it is such."""

    def share(self, shared: SharedObject) -> object:
        """Make this hub the place of a shared object's master copy, unless it has one already."""


class Channel:
    """An event channel: sources submit, sinks are told. Made by `Hub.create` and `Hub.open`."""

    __slots__ = (
        "_copy",
        "_declared",
        "_flusher",
        "_opener",
        "_params",
        "endpoints",
        "foreign",
        "id",
        "name",
        "ring",
        "sources",
    )

    def __init__(
        self,
        endpoints: Endpoints,
        declared: object | None,
        flusher: "Flusher",
        sources: set[Source],
        opener: "Opener",
    ) -> None:
        self.endpoints: Final = endpoints
        self.id: Final = endpoints.member.id
        self.name: Final = endpoints.member.name
        self._declared = declared
        self._flusher = flusher
        self.sources: Final = sources
        self._opener = opener
        self._params: Parameters | None = None
        self._copy: SharedObject | None = None
        self.foreign = False
        """Whether it is that of an equal modulator, which somebody else may have signed."""
        self.ring: Ring | None = None
        """The last events, kept since `recent` was first asked for them."""

    @property
    def format(self) -> Format | None:
        """The type of the channel's events; None for an untyped channel."""
        return self.endpoints.member.format

    @property
    def context(self) -> Format | None:
        """The type of the context that the channel's sources have; None if they have none."""
        return self.endpoints.member.context

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

    @property
    def own_type(self) -> object | None:
        """The type in which the program has opened the channel, None if it named none."""
        return self._declared

    def source(
        self,
        declared: object | None = None,
        *,
        name: str = "",
        resume: SourceState | None = None,
        delegate: Delegate | None = None,
        context: Context | None = None,
        controls: Controls | None = None,
    ) -> Source:
        """Open a source. Once this returns, every hub that has sinks will be sent its events.

        Args:
            declared: The type of its events, which may have more fields than the channel's.
            name: What it is called, if its channel is recorded: one of the same name goes on where that has stopped,
                with the event after the last one that is on the recorder's disk (`Source.position`).
            resume: A source that was frozen, perhaps in another process; it goes on here.
            delegate: Called with the name of a service that a modulator requires and the hub does not have; returns
                an object whose public methods the modulator may call, or None.
            context: The values and functions that code of others may use inside of it; of the channel's context type.
            controls: What sinks may ask it to do by `steer`, and whom to tell whether anybody listens.

        Raises:
            FormatError: The channel is untyped and no type was given.
            IncompatibleTypesError: Its events cannot be received as the channel's type, or the context has another.
            UnreachableError: The channel's manager, or for a source with a name its recorder, does not answer.
        """
        if name:
            resume = named_source(self.endpoints.switchboard, ChannelId.parse(self.id), name)
        offer = Offer(delegate, context, SourceHelm(controls, self.endpoints.switchboard) if controls else None)
        return Source(self, declared, self._flusher, resume, offer)

    def steer(self, action: str, /, **values: Plain) -> list[Steering]:
        """Ask every source of the channel to `start`, `stop` or `tune` the generation of events; return their answers.

        Of a derived channel, the sources of what it is derived from are asked. Values go to the sources' controls as
        named arguments.

        Raises:
            LocalError: Values are too many, too large, or neither numbers, texts nor truths.
            RefusedError: No source takes it; the message says why.
            UnreachableError: The channel's manager does not answer.
        """
        return steer_channel(self.endpoints.switchboard, ChannelId.parse(self.id), action, values)

    def derive(
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
        """Return a channel whose events are computed from this one's at every source, present and future.

        Nothing runs before somebody subscribes to it. Those who derive the same with the same parameters share it.

        Args:
            code: E-Code, a subset of C, or a Python function limited to the same subset, or the text of one. It sees
                `input`, `output` and `param`; `return 0` rejects an event.
            output: The type of the events that come out; without one the code is a filter, and events pass as they are.
            params: The parameter block: a mapping of values, or an object of an event class.
            capacities: How many steps dynamic arrays of `output` may have, by name; 1024 if nothing is said.
            placement: Where the code runs: at the `source`, at the `sink`, or where it costs less (`auto`).
            name: What the channel is called; a name is made up otherwise.
            share: Whether the channel may be one that others have derived in just the same way.
            on_trouble: Called when the code faults at a source, or is suspended or refused there.

        Raises:
            ECodeError: The code is wrong; the message shows where.
            FormatError: The channel has no type, or the output or the parameters cannot have one.
            ChannelExistsError: The name is taken.
            EchoicError: The channel's manager refuses, or does not answer.
        """
        terms = Terms(output, params, 0, capacities or {}, placement, name, share)
        return self._derive(code, terms, on_trouble)[0]

    def route(  # noqa: PLR0913 - every one has a default, and is named by the caller
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
        """Return a channel for each port of a router: the code's return value picks one, a negative one discards.

        Args and errors are those of `derive`. The code runs once for all ports.
        """
        if ports < 1:
            raise LocalError(f"a router needs at least one port, got {ports}")
        return self._derive(code, Terms(output, params, ports, capacities or {}, placement, name, share), on_trouble)

    def modulate(
        self, modulator: Modulator, *, share: bool = True, on_trouble: Callable[[Trouble], object] | None = None
    ) -> "Channel":
        """Return the channel of what a modulator makes of this one's events, inside every source, present and future.

        Nothing runs before somebody subscribes to it. Those who name equal modulators share it.

        Args:
            modulator: What is sent into the sources, with the state that it has at this moment.
            share: Whether the channel may be that of an equal modulator.
            on_trouble: Called when the modulator fails at a source, or is stopped or refused there.

        Raises:
            LocalError: The modulator cannot be shipped; the message says why.
            FormatError: The channel has no type.
            EchoicError: The channel's manager refuses, or does not answer.
        """
        if isinstance(modulator, EcodeModulator):
            return self._derive_bound(modulator, share, on_trouble)
        step, foreign = self._opener.modulated(self, modulator, share=share)
        made = self._opener.derived(self, step, Terms(modulator.output, share=share))
        made.foreign = foreign
        made.tend(on_trouble=on_trouble)
        return made

    def modulate_for(self, modulator: Modulator | None, *, share: bool = True) -> "Channel":
        """Return the channel that an eager handler subscribes to: this one, if nothing is to run inside the sources."""
        return self if modulator is None else self.modulate(modulator, share=share)

    def _derive_bound(
        self, modulator: EcodeModulator, share: bool, on_trouble: Callable[[Trouble], object] | None
    ) -> "Channel":
        """Derive with the code of a modulator; the fields of a shared object are its parameters from then on."""
        shared = modulator.params if isinstance(modulator.params, SharedObject) else None
        params = shared.snapshot() if shared is not None else modulator.params
        terms = Terms(modulator.output, params, 0, modulator.capacities, "source", "", share and shared is None)
        made = self._derive(modulator.code, terms, on_trouble)[0]
        if shared is not None:
            if not shared.id:
                self._opener.share(shared)
            made.follow(shared)
        return made

    def when_handed_over(self, act: Callable[[], None]) -> None:
        """Act when sources of this hub have handed over what they have submitted so far: at once if there are none."""
        sources = list(self.sources)
        if not sources:
            act()
            return

        def wait() -> None:
            for source in sources:
                source.hand_over_all()
            act()

        threading.Thread(target=wait, name="echoic-turning", daemon=True).start()

    def follow(self, shared: SharedObject) -> None:
        """Let the parameters be the fields of a shared object, whoever changes them, until `unfollow`."""
        copy = self.endpoints.switchboard.shared_objects.copy(shared.reference("params"), type(shared))
        copy.on_change(lambda changed: self.params.update(**_fields_of(changed.snapshot())))
        self._copy = copy

    def unfollow(self) -> None:
        """Let the parameters be what they are."""
        if self._copy is not None:
            self._copy.close()
            self._copy = None

    @property
    def ancestors(self) -> list[str]:
        """The names of the channels that it is derived from, as its manager says; none if it is not derived."""
        return [step.recipe.parent for step in self.endpoints.member.lineage]

    @property
    def derivation(self) -> DerivationHandle | None:
        """What the channel is derived by, and how that fares; None if it is not derived."""
        lineage = self.endpoints.member.lineage
        id = ChannelId.parse(self.id)
        return DerivationHandle(self.endpoints.switchboard, id, lineage) if lineage else None

    @property
    def params(self) -> Parameters:
        """The parameters of a derived channel.

        Raises:
            LocalError: It has none.
        """
        if self._params is None:
            raise LocalError(f"channel `{self.name}` has no parameters")
        return self._params

    @overload
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
        modulator: None = None,
        demodulator: None = None,
        on_gap: Callable[[Gap], object] | None = None,
        on_trouble: Callable[[Trouble], object] | None = None,
    ) -> Sink: ...

    @overload
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
        modulator: Modulator | None = None,
        demodulator: Demodulator | None = None,
        on_gap: Callable[[Gap], object] | None = None,
        on_trouble: Callable[[Trouble], object] | None = None,
    ) -> EagerSink: ...

    def subscribe(  # noqa: PLR0913 - every one has a default, and is named by the caller
        self,
        handler: Handler,
        declared: object | None = None,
        *,
        batch: bool = False,
        slow: str = "block",
        thread: bool = False,
        narrow: bool = False,
        paused: bool = False,
        modulator: Modulator | None = None,
        demodulator: Demodulator | None = None,
        on_gap: Callable[[Gap], object] | None = None,
        on_trouble: Callable[[Trouble], object] | None = None,
    ) -> Sink | EagerSink:
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
            modulator: The half of an eager handler that is sent into every source, and decides what comes of its
                events. The subscription can then be `reset` to another pair. Implies `thread`.
            demodulator: The half that stays here: events pass it before they reach the handler.
            on_gap: Called with each gap: which events of which source will not arrive, and why.
            on_trouble: Called when the modulator fails at a source, or is stopped or refused there.

        Raises:
            IncompatibleTypesError: The channel's events cannot be received as `declared`.
            UnreachableError: The channel's manager does not answer.
        """
        if modulator is not None or demodulator is not None:
            if batch or paused:
                raise LocalError("an eager handler takes events one by one, and cannot be paused: leave `batch` out")
            wishes = Wishes(declared, slow=slow, narrow=narrow, on_gap=on_gap, on_trouble=on_trouble)
            return EagerSink(self, handler, modulator, demodulator, wishes)
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

    def resume(
        self,
        handler: DurableHandler,
        *,
        name: str = "",
        positions: Sequence[int] | None = None,
        declared: object | None = None,
        batch: bool = False,
        journal: str = "",
        on_gap: Callable[[Hole | Missing], object] | None = None,
    ) -> DurableSink:
        """Call a handler for every event that the channel's recorder has, from a position on, and for all that follow.

        A recorder that is not there is waited for, also later: `DurableSink.trouble` tells. Without a name or positions
        the handler gets everything that is still in the journal.

        Args:
            handler: Called with an event and its `Stamp`, in a thread of its own. If it raises, the sink stops there.
            name: What the sink is called: the journal keeps how far it is, after the handler has returned. Another one
                of this name goes on after `close` with the very next event, after a crash a few events earlier.
            positions: Where to begin, for each partition, whatever the journal has kept. A program that keeps
                `stamp.positions` together with what its handler does gets every event exactly once.
            declared: The type in which to receive events, which may have fewer fields than the channel's.
            batch: Call the handler with whole batches; the stamp is that of the first event, but its `positions` are
                those after the last.
            journal: The id of the journal, if the channel is recorded in several.
            on_gap: Called with events that are not in the journal any more (`Hole`), without which these end the sink;
                and with those that never reached it (`Missing`).

        Raises:
            IncompatibleTypesError: The channel's events cannot be received as `declared`.
            LocalError: The name cannot be that of a sink, or there are not as many positions as partitions.
            JournalError: The journal does not reach to a position, or there are several and none was named.
        """
        wanted = declared if declared is not None else self._declared
        start = tuple(positions) if positions is not None else None
        sink = DurableSink(self.endpoints, handler, DurableWishes(name, start, wanted, batch, journal, on_gap))
        sink.start()
        return sink

    def journal(self, id: str = "") -> Journal:
        """Return the journal in which the channel is recorded, by whichever hub, for reading.

        Args:
            id: Which one, if it is recorded in several; that of this hub, if it is one of them and nothing is said.

        Raises:
            UnreachableError: Nobody records the channel for the moment.
            JournalError: It is recorded in other journals, or in several and none was named.
        """
        recording = self.endpoints.recording
        if recording is not None and id in ("", recording.journal):
            return Journal(LocalShelf(recording.storage, self.name))
        return Journal(RemoteShelf(self.endpoints.switchboard, ChannelId.parse(self.id), id))

    def recent(self, n: int = 100, *, seconds: float = 1.0, journal: str = "") -> Batch:
        """Return the last events as one batch, which pandas, polars, DuckDB and pyarrow take as it is.

        If the channel is recorded, by whichever hub, they are the last ones on the recorder's disk. Else they are the
        last ones that came here since the first call of `recent` of this object, which subscribes for the life of the
        hub. Returns as soon as there are `n`, and otherwise after `seconds` with as many as there are, which may be
        none. There are never more than 32 MiB: of larger events, fewer come.

        Args:
            n: How many.
            seconds: How long to wait for as many.
            journal: The id of the journal, if the channel is recorded in several.

        Raises:
            LocalError: An argument is out of its range, or nothing came on a channel without a type.
            UnreachableError: The channel's manager does not answer.
            JournalError: The journal cannot be read, or there are several and none was named.
            IncompatibleTypesError: Events cannot have the type in which the channel was opened.
        """
        return recent_events(self, n, seconds, journal)

    def live(
        self, fields: str | Sequence[str] | None = None, seconds: float = 30.0, points_per_second: float = 50.0
    ) -> "Live":
        """Return a widget that shows events in a notebook while they come: a chart, a heat map, or the last ones.

        It needs anywidget: pip install 'echoic[jupyter]'. What is shown is reduced inside the sources, by a derived
        channel, so that a fast channel costs a slow picture. It ends by `stop`, at the end of a `with`, and with the
        hub.

        Args:
            fields: Numbers to draw (`"price"`, `["bid", "ask"]`, `"wind[3][4]"`), or one array of one or two
                dimensions. Without any: the first array of two dimensions; else all numbers, up to six; else events
                are shown as text.
            seconds: How much time a chart shows.
            points_per_second: How many points a second a line has, at most; each stands for all events since the last.

        Raises:
            LocalError: anywidget is not installed, or a number is out of its range.
            FormatError: A field cannot be shown, or the channel has no type.
            EchoicError: The channel cannot be derived from, or not be subscribed to.
        """
        return live_widget(self, fields, seconds, points_per_second)

    def _derive(
        self, code: str | Callable[..., object], terms: Terms, on_trouble: Callable[[Trouble], object] | None
    ) -> "tuple[Channel, ...]":
        ends = self.endpoints
        steps = derive_steps(ends.switchboard, ChannelId.parse(self.id), self.format, code, terms, ends.member.context)
        made = tuple(self._opener.derived(self, step, terms) for step in steps)
        for channel in made:
            channel.tend(terms.params, on_trouble)
        return made

    def tend(self, params: object | None = None, on_trouble: Callable[[Trouble], object] | None = None) -> None:
        """Know the parameters of a derived channel, and whom to tell of trouble."""
        lineage, ends = self.endpoints.member.lineage, self.endpoints
        if lineage and lineage[-1].recipe.params:
            self._params = Parameters(ends.switchboard, ChannelId.parse(self.id), lineage[-1], params)
        if on_trouble is not None:
            ends.listen(on_trouble)

    def statistics(self) -> ChannelCounts:
        """Return what went through the channel in this hub."""
        return self.endpoints.member.counts()

    def __repr__(self) -> str:
        return f"<Channel {self.id}: {self.format.name if self.format else 'untyped'}>"

    def _repr_html_(self) -> str:
        """Return the channel's type as a table, for notebooks."""
        return channel_as_html(repr(self), self.format)


def _fields_of(record: Record) -> dict[str, object]:
    return {field.name: getattr(record, field.name) for field in Format.of(type(record)).fields}
