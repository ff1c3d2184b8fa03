"""The channel manager's book: who takes part in which channel.

The hub that creates a channel manages it (JECho, section 4: channel managers). The book is all a manager has; events do
not pass through it, so its hub may come and go without stopping traffic. Each method says who must be told.

Channels derived from one stand in the same book. Those who ask for the same recipe with the same parameters share one
channel; when its parameters change, it is found under the changed ones. What has parameters is shared among hubs of one
name alone: whoever has derived it may change them, which would change what others get who may not.
"""

import difflib
import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from echoic.channels.identity import check_channel_name
from echoic.channels.messages import ChannelEntry, Recipe, SinkHub, Step
from echoic.ecode import PORTS_MAX
from echoic.errors import ChannelExistsError, ChannelNotFoundError, FormatError, LimitExceededError, RefusedError
from echoic.formats import Format
from echoic.wire import Batch

__all__ = ["Directory", "ManagedChannel", "nearest"]

JOURNALS_MAX: Final = 16
MEMBERS_MAX: Final = 65_536  # hubs with sources of one channel, and as many with sinks
DERIVED_MAX: Final = 1024  # channels derived from one
DERIVED_BYTES_MAX: Final = 8 * 1024 * 1024  # of all recipes, so that those of a channel fit into one message
CHANNEL_BYTES: Final = 1024  # what a derived channel takes beside its recipe, by and large
LINEAGE_MAX: Final = 8
VERSION_MAX: Final = 2**62  # of parameters; nobody has changed them so often
CODE_CHARACTERS_MAX: Final = 65_536
VALUES_BYTES_MAX: Final = 256 * 1024
PARCEL_BYTES_MAX: Final = 1024 * 1024 + 4096  # with its signature
IDENTITY_BYTES_MAX: Final = 64


@dataclass(slots=True)
class ManagedChannel:
    """One channel: its type and the hubs that hold its ends."""

    name: str
    format: Format | None
    sources: set[str] = field(default_factory=set)
    sinks: dict[str, SinkHub] = field(default_factory=dict)
    step: Step | None = None
    """How its events are made, if it is derived from another channel of the same book."""
    children: dict[str, None] = field(default_factory=dict)
    """The channels derived from it, the oldest first."""
    context: bytes = b""
    """The descriptor of what its sources let others see of themselves; a derived channel's are those of its parent."""

    journals: dict[str, bool] = field(default_factory=dict)
    """Those that record it, even if their recorder is away, and as false those whose recorder has left."""
    former: dict[str, str] = field(default_factory=dict)
    """By address, the hub whose sinks were entered there before those of the hub that is."""

    recorders: dict[str, str] = field(default_factory=dict)
    """Whose these are, by the names in their certificates."""

    @property
    def idle(self) -> bool:
        """Whether nobody takes part, and nothing is derived from it."""
        return not self.sources and not self.sinks and not self.children

    def note_journal(self, journal: str, *, recorded: bool) -> None:
        """Note that a recorder has come, or has left; one that vanishes has not left.

        Raises:
            LimitExceededError: There are too many.
        """
        if not journal:
            return
        if recorded and sum(self.journals.values()) >= JOURNALS_MAX and not self.journals.get(journal):
            raise LimitExceededError(
                f"`{self.name}` is recorded in {JOURNALS_MAX} journals already, which is the limit"
            )
        self.journals.pop(journal, None)
        self.journals[journal] = recorded
        left = [name for name, still in self.journals.items() if not still]
        for name in left[:-JOURNALS_MAX]:
            del self.journals[name]


class Directory:
    """The channels that one hub manages."""

    def __init__(self) -> None:
        self._channels: dict[str, ManagedChannel] = {}
        self._shared: dict[tuple[Recipe, bytes, str], str] = {}
        self._tuned: set[str] = set()
        self.derived_bytes = 0
        """What all recipes take."""

    def create(self, name: str, format: Format | None, context: bytes = b"") -> ManagedChannel:
        """Enter a channel.

        Raises:
            AddressError: The name cannot be one.
            ChannelExistsError: There is a channel of this name already.
        """
        check_channel_name(name)
        if name in self._channels:
            raise ChannelExistsError(f"a channel named `{name}` exists here already")
        self._channels[name] = ManagedChannel(name, format, context=context)
        return self._channels[name]

    def get(self, name: str) -> ManagedChannel:
        """Return a channel.

        Raises:
            ChannelNotFoundError: There is none of this name; the message names the nearest ones.
        """
        channel = self._channels.get(name)
        if channel is None:
            raise ChannelNotFoundError(f"channel `{name}` not found{nearest(name, self._channels)}")
        return channel

    def __contains__(self, name: str) -> bool:
        return name in self._channels

    def channels(self) -> list[ManagedChannel]:
        """Return all channels."""
        return list(self._channels.values())

    def owned_by(self, owner: str) -> int:
        """Return how many channels somebody has derived."""
        return sum(one.step is not None and one.step.owner == owner for one in self._channels.values())

    def remove(self, name: str) -> ManagedChannel:
        """Forget a channel.

        Raises:
            ChannelNotFoundError: There is none of this name.
        """
        channel = self.get(name)
        for child in list(channel.children):
            self.remove(child)
        del self._channels[name]
        if channel.step is not None:
            self.derived_bytes -= _size_of(channel.step)
            self._channels[channel.step.recipe.parent].children.pop(name, None)
            key = _sharing(channel.step, channel.step.values)
            if self._shared.get(key) == channel.step.group:
                del self._shared[key]
            self._tuned.discard(channel.step.group)
        return channel

    def derive(self, step: Step, *, share: bool = True) -> tuple[Step, ...]:
        """Enter a derived channel, or one for each port, unless there is one that can be shared; return it.

        Raises:
            ChannelNotFoundError: There is no such parent.
            FormatError: The parent has no type, so that no code can be checked against it.
            ChannelExistsError: The name it is to have is taken by another channel.
            LimitExceededError: Too much is derived from this parent already.
            RefusedError: The recipe cannot be one.
        """
        recipe = step.recipe
        parent = self.get(recipe.parent)
        if parent.format is None:
            raise FormatError(f"channel `{parent.name}` has no type, and only typed channels can be derived from")
        _check_recipe(step)
        group = step.group or (self._shared.get(_sharing(step, step.values), "") if share else "")
        known = self._group(parent, group)
        if known:
            if _common(known[0].recipe) != _common(recipe):
                raise ChannelExistsError(f"a channel named `{group}` is derived in another way already")
            return known
        group = group or self._free_name(parent.name, step)
        descriptor = parent.format.descriptor
        made = tuple(
            msgspec.structs.replace(
                step,
                name=f"{group}.{port}" if recipe.ports else group,
                group=group,
                port=port,
                input=descriptor,
                context=parent.context,
            )
            for port in range(recipe.ports or 1)
        )
        format = Format.from_descriptor(recipe.output) if recipe.output else parent.format
        self._check_names(group, [one.name for one in made])
        self._make_room(parent, sum(map(_size_of, made)))
        for one in made:
            self.create(one.name, format, parent.context).step = one
            self.derived_bytes += _size_of(one)
            parent.children[one.name] = None
        if share:
            self._shared[_sharing(step, step.values)] = group
        return made

    def adopt(self, lineage: Sequence[Step]) -> tuple[Step, ...]:
        """Enter derived channels that somebody takes part in, and that this book, begun anew, does not know.

        Return those whose parameters are others than some had who take part. A book begun anew knows the parameters
        from whoever comes first, and takes later ones from whoever comes after; but once they were changed here, that
        is later than all.

        Raises:
            EchoicError: As `derive` does.
        """
        changed: list[Step] = []
        for step in lineage:
            channel = self._channels.get(step.name)
            if channel is None:
                self.derive(step, share=False)
            elif channel.step is not None and channel.step.recipe == step.recipe:
                changed += self._merge(channel.step, step)
        return tuple(changed)

    def outrank(self, name: str, version: int) -> tuple[Step, ...]:
        """Let the parameters of a derived channel have a later version than others that somebody has."""
        step = self.get(name).step
        if step is None or not step.version <= version < VERSION_MAX:
            return ()
        return self._revise(step, step.values, version + 1)

    def _merge(self, known: Step, told: Step) -> tuple[Step, ...]:
        same = told.values == known.values
        if not known.version <= told.version < VERSION_MAX or (same and told.version == known.version):
            return ()
        if told.version > known.version and known.group not in self._tuned:
            _check_recipe(told)
            return self._revise(known, told.values, told.version)
        return self._revise(known, known.values, told.version + 1)

    def _revise(self, step: Step, values: bytes, version: int) -> tuple[Step, ...]:
        """Give a derived channel, and the others of its group, other parameters; return them.

        Raises:
            LimitExceededError: There is no room for them.
        """
        group = self._group(self.get(step.recipe.parent), step.group)
        growth = len(group) * (len(values) - len(step.values))
        if growth > 0 and self.derived_bytes + growth > DERIVED_BYTES_MAX:
            raise LimitExceededError(
                f"recipes here would take {self.derived_bytes + growth} bytes, limit is {DERIVED_BYTES_MAX}"
            )
        if self._shared.get(_sharing(step, step.values)) == step.group:
            del self._shared[_sharing(step, step.values)]
            self._shared.setdefault(_sharing(step, values), step.group)
        revised = tuple(msgspec.structs.replace(one, values=values, version=version) for one in group)
        for one in revised:
            self.get(one.name).step = one
        self.derived_bytes += growth
        return revised

    def tune(self, name: str, values: bytes) -> tuple[Step, ...]:
        """Replace the parameters of a derived channel; return it, and the others of its group, as they are then.

        Raises:
            ChannelNotFoundError: There is no such channel.
            RefusedError: It has no parameters.
            LimitExceededError: They are too many, or there is no room for them.
        """
        step = self.get(name).step
        if step is None or not step.recipe.params:
            raise RefusedError(f"channel `{name}` has no parameters")
        if len(values) > VALUES_BYTES_MAX:
            raise LimitExceededError(f"a parameter block has {len(values)} bytes, limit is {VALUES_BYTES_MAX}")
        self._tuned.add(step.group)
        return self._revise(step, values, step.version + 1)

    def lineage(self, name: str) -> tuple[Step, ...]:
        """Return how a channel is derived, from the first derivation on; nothing for one that is not."""
        found: list[Step] = []
        step = self.get(name).step
        while step is not None:
            found.append(step)
            step = self.get(step.recipe.parent).step
        return tuple(reversed(found))

    def origins(self, name: str) -> set[str]:
        """Return the hubs that have sources of a channel, or of one that it is derived from."""
        channel = self.get(name)
        inherited = self.origins(channel.step.recipe.parent) if channel.step is not None else set[str]()
        return channel.sources | inherited

    def heard(self, name: str) -> tuple[Step, ...]:
        """Return the channels derived from one, directly or not, that have sinks or lead to some; parents first."""
        found: list[Step] = []
        for child in self.get(name).children:
            channel, further = self._channels[child], self.heard(child)
            if channel.step is not None and (channel.sinks or further):
                found += [channel.step, *further]
        return tuple(found)

    def strike(self, name: str, address: str) -> None:
        """Strike a hub that has no sources of a channel, nor of what it is derived from."""
        channel: ManagedChannel | None = self.get(name)
        while channel is not None:
            channel.sources.discard(address)
            channel = self.get(channel.step.recipe.parent) if channel.step is not None else None

    def _group(self, parent: ManagedChannel, group: str) -> tuple[Step, ...]:
        steps = [self._channels[child].step for child in parent.children] if group else []
        return tuple(step for step in steps if step is not None and step.group == group)

    def _group_of(self, channel: ManagedChannel) -> list[ManagedChannel]:
        """Return a derived channel and the others of its group; nothing if it is not there any more."""
        if channel.step is None or self._channels.get(channel.name) is not channel:
            return []
        parent = self._channels[channel.step.recipe.parent]
        return [self._channels[step.name] for step in self._group(parent, channel.step.group)]

    def _free_name(self, parent: str, step: Step) -> str:
        """Return a name for a derived channel: the parent's, and a few letters that tell it from others."""
        text = msgspec.msgpack.encode((step.recipe, step.values))
        name = ""
        while not name or name in self._channels or f"{name}.0" in self._channels:
            text += b"+"  # of what is just the same but not shared, each has a further one
            name = f"{parent}.{hashlib.blake2b(text, digest_size=4).hexdigest()}"
        return name

    def _check_names(self, group: str, names: Sequence[str]) -> None:
        for name in names:
            check_channel_name(name)
            if name in self._channels:
                raise ChannelExistsError(f"a channel named `{name}` exists here already")
        for name in (group, f"{group}.0"):  # of another parent
            known = self._channels.get(name)
            if known is not None and known.step is not None and known.step.group == group:
                raise ChannelExistsError(f"a channel named `{group}` is derived in another way already")

    def _make_room(self, parent: ManagedChannel, size: int) -> None:
        """Forget derived channels in which nobody takes part, as far as room is needed for a further one.

        Raises:
            LimitExceededError: There is none to be had, or the further one has too many ancestors.
        """
        if len(self.lineage(parent.name)) >= LINEAGE_MAX:
            raise LimitExceededError(
                f"`{parent.name}` is derived from {LINEAGE_MAX} others already, which is the limit"
            )
        if self._has_room(parent, size):
            return
        for channel in [channel for channel in self._channels.values() if channel.step is not None]:
            group = self._group_of(channel)
            if parent not in group and all(one.idle for one in group):
                for one in group:
                    self.remove(one.name)
                if self._has_room(parent, size):
                    return
        raise LimitExceededError(
            f"{len(parent.children)} channels are derived from `{parent.name}`, limit is {DERIVED_MAX}; "
            f"recipes here would take {self.derived_bytes + size} bytes, limit is {DERIVED_BYTES_MAX}"
        )

    def forget_idle(self, owner: str) -> None:
        """Forget the oldest of somebody's derived channels in which nobody takes part, if there is one."""
        for channel in self._channels.values():
            group = self._group_of(channel) if channel.step is not None and channel.step.owner == owner else []
            if group and all(one.idle for one in group):
                for one in group:
                    self.remove(one.name)
                return

    def _has_room(self, parent: ManagedChannel, size: int) -> bool:
        return len(parent.children) < DERIVED_MAX and self.derived_bytes + size <= DERIVED_BYTES_MAX

    def join_source(self, name: str, address: str) -> list[SinkHub]:
        """Enter a hub with sources; return the hubs it must send to.

        Raises:
            ChannelNotFoundError: There is no such channel.
            LimitExceededError: It has too many already.
        """
        channel = self.get(name)
        _check_room(name, address, channel.sources)
        channel.sources.add(address)
        return list(channel.sinks.values())

    def join_sink(self, name: str, sink: SinkHub) -> list[str]:
        """Enter a hub with sinks; return the hubs that must send to it.

        Raises:
            ChannelNotFoundError: There is no such channel.
            LimitExceededError: It has too many already.
        """
        channel = self.get(name)
        _check_room(name, sink.address, channel.sinks)
        known = channel.sinks.get(sink.address)
        if known is not None and (known.hub, known.subscription) == (sink.hub, sink.subscription):
            turns = {handle: taken for handle, taken in known.turns.items() if handle in sink.sinks}
            sink = msgspec.structs.replace(sink, turns={**turns, **sink.turns})
        if known is not None and known.journal != sink.journal and not sink.held:
            channel.note_journal(known.journal, recorded=False)
        channel.note_journal(sink.journal, recorded=True)
        channel.sinks[sink.address] = sink
        if known is not None and known.hub != sink.hub:
            channel.former[sink.address] = known.hub
        return sorted(self.origins(name))

    def note_turn(self, name: str, address: str, handle: str, *, taken: bool) -> None:
        """Note for sources that come later that a sink has gone over to a channel, or has left it."""
        channel = self._channels.get(name)
        known = channel.sinks.get(address) if channel is not None else None
        if channel is not None and known is not None and handle in known.sinks:
            channel.sinks[address] = msgspec.structs.replace(known, turns={**known.turns, handle: taken})

    def has_part(self, name: str, address: str) -> bool:
        """Whether a hub takes part in a channel; not in one that is not there."""
        channel = self._channels.get(name)
        return channel is not None and (address in channel.sinks or address in channel.sources)

    def recorder_of(self, name: str, journal: str) -> str:
        """Return whose a journal is, "" if nobody is known to record a channel in it."""
        channel = self._channels.get(name)
        return channel.recorders.get(journal, "") if channel is not None and journal in channel.journals else ""

    def note_recorder(self, name: str, journal: str, who: str) -> None:
        """Note whose a journal is, and forget whose those were that nobody knows any more."""
        channel = self.get(name)
        known = {other: owner for other, owner in channel.recorders.items() if other in channel.journals}
        channel.recorders = {**known, journal: who}

    def leave_source(self, name: str, address: str) -> None:
        """Strike a hub with sources."""
        self.get(name).sources.discard(address)

    def leave_sink(self, name: str, address: str, *, held: bool = False) -> tuple[list[str], str]:
        """Strike a hub with sinks; return the hubs that must stop sending to it, and the journal that it kept.

        When it is `held` its recorder will come back, and nobody need know which it was.
        """
        channel = self.get(name)
        left = channel.sinks.pop(address, None)
        journal = left.journal if left is not None and not held else ""
        channel.note_journal(journal, recorded=False)
        return sorted(self.origins(name)), journal

    def forget_hub(self, address: str) -> None:
        """Strike a hub that has vanished, everywhere."""
        for channel in self._channels.values():
            channel.sources.discard(address)
            channel.sinks.pop(address, None)
            channel.former.pop(address, None)

    def forget_former(self, address: str, hub: str, heir: str) -> bool:
        """Strike the sinks of a hub that is gone while another, its heir, stands at its address.

        Returns:
            Whether sinks of the heir were entered before: a word of the dead has arrived after those of the living.
        """
        late = False
        for channel in self._channels.values():
            known = channel.sinks.get(address)
            if known is not None and known.hub == hub:
                del channel.sinks[address]
                late = channel.former.pop(address, "") == heir or late
        return late

    def entries(self, address: str) -> list[ChannelEntry]:
        """Return the channels as lines of a listing."""
        return [
            ChannelEntry(
                channel.name,
                f"echoic://{address}/{channel.name}",
                channel.format.name if channel.format else "",
                len(self.origins(channel.name)),
                len(channel.sinks),
                channel.step.recipe.parent if channel.step is not None else "",
            )
            for channel in sorted(self._channels.values(), key=lambda channel: channel.name)
        ]


def _check_recipe(step: Step) -> None:
    """Refuse what no code should have to be compiled for."""
    recipe = step.recipe
    if not 0 <= recipe.ports <= PORTS_MAX:
        raise RefusedError(f"a router has {recipe.ports} ports, limit is {PORTS_MAX}")
    if len(recipe.parcel) > PARCEL_BYTES_MAX or len(recipe.identity) > IDENTITY_BYTES_MAX:
        raise RefusedError(f"a modulator has {len(recipe.parcel)} bytes, limit is {PARCEL_BYTES_MAX}")
    if bool(recipe.parcel) != (recipe.spelling == "modulator") or (recipe.parcel and (recipe.ports or recipe.code)):
        raise RefusedError("a modulator is nothing but a parcel, and nothing else has one")
    if len(recipe.code) > CODE_CHARACTERS_MAX:
        raise RefusedError(f"the code has {len(recipe.code)} characters, limit is {CODE_CHARACTERS_MAX}")
    if len(step.values) > VALUES_BYTES_MAX:
        raise RefusedError(f"a parameter block has {len(step.values)} bytes, limit is {VALUES_BYTES_MAX}")
    if not 0 <= step.version < VERSION_MAX:
        raise RefusedError(f"parameters have the version {step.version}, limit is {VERSION_MAX}")
    _check_block(recipe, step.values)


def _check_block(recipe: Recipe, values: bytes) -> None:
    """Refuse a parameter block that is no record of its type, before every source has to.

    Raises:
        RemoteError: It is none, or its type is none.
    """
    if not recipe.params:
        if values:
            raise RefusedError(f"a derivation without parameters has a block of {len(values)} bytes")
        return
    format = Format.from_descriptor(recipe.params)
    if not format.variable and len(values) != format.size:
        raise RefusedError(f"a parameter block has {len(values)} bytes, its type has {format.size}")
    Batch.of_record(values, format).events()


def _sharing(step: Step, values: bytes) -> tuple[Recipe, bytes, str]:
    """Return what those have in common who share a channel."""
    return _common(step.recipe), values, step.owner if step.recipe.params else ""


def _common(recipe: Recipe) -> Recipe:
    """Return a recipe without what may differ: equal modulators may be signed by different people."""
    return msgspec.structs.replace(recipe, parcel=b"") if recipe.identity else recipe


def _size_of(step: Step) -> int:
    recipe = step.recipe
    return CHANNEL_BYTES + sum(
        map(len, (recipe.code, recipe.output, recipe.params, recipe.parcel, step.values, step.input, step.context))
    )


def _check_room(name: str, address: str, known: Collection[str]) -> None:
    if len(known) >= MEMBERS_MAX and address not in known:
        raise LimitExceededError(f"{len(known)} hubs take part in `{name}` already, which is the limit")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint at names like the one that was not found."""
    near = difflib.get_close_matches(name, list(known), n=2)
    return f"; did you mean {' or '.join(f'`{other}`' for other in near)}?" if near else ""
