"""What a hub keeps for others: the book of the channels it manages, and a name server's table.

The hub that creates a channel manages it (JECho, section 4: channel managers, channel name servers). Every hub can do
both, so a system has as many managers and name servers as it likes. Events never pass through either.
"""

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Final, TypeAlias

import msgspec

from echoic.channels.directory import Directory
from echoic.channels.identity import ChannelId
from echoic.channels.messages import (
    Attach,
    Browse,
    ChannelEntry,
    Derive,
    DerivedAs,
    Describe,
    Described,
    Done,
    Join,
    Joined,
    Leave,
    Listing,
    Message,
    Refused,
    Register,
    Resolve,
    Resolved,
    Step,
    Tune,
    Turned,
    Unregister,
)
from echoic.channels.name_table import NameTable
from echoic.channels.requests import Answer, ignore
from echoic.errors import ChannelNotFoundError, RefusedError, UnreachableError

__all__ = ["Manager"]

SPREAD_ROUNDS_MAX: Final = 8

Ask: TypeAlias = Callable[[str, Message, Answer], None]


class Manager:
    """The channel manager and name server inside a hub, and what the hub itself has registered elsewhere."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.directory = Directory()
        self.names = NameTable()
        self._registrations: dict[tuple[str, Register], bool] = {}

    def handle(self, message: Message, living: AbstractSet[str]) -> Message:
        """Do what is asked and return the reply. `living` are the addresses of hubs with which there is a connection.

        Raises:
            EchoicError: It cannot be done; the peer is told why.
        """
        match message:
            case Describe(name):
                channel = self.directory.get(name)
                descriptor = channel.format.descriptor if channel.format is not None else b""
                sources, lineage = sorted(self.directory.origins(name)), self.directory.lineage(name)
                return Described(name, descriptor, sources, list(channel.sinks.values()), lineage, channel.context)
            case Join(name, _, hub):
                sinks, heard = self.directory.join_source(name, hub.address), self.directory.heard(name)
                return Joined(sinks, heard, journals=dict(self.directory.get(name).journals))
            case Derive(step, share):
                fresh = msgspec.structs.replace(step, version=0)  # only who restores a book tells how far it was
                return DerivedAs(self.directory.derive(fresh, share=share))
            case Leave(name, _, address):
                self.directory.leave_source(name, address)
                return Done()
            case Register(name, id):
                self.names.register(name, id, living)
                return Done()
            case Unregister(name, id):
                self.names.unregister(name, id)
                return Done()
            case Resolve(name):
                return Resolved(self.names.resolve(name))
            case Browse():
                return Listing(self.entries())
            case _:
                raise RefusedError(f"{type(message).__name__} is not a request")

    def admit(self, join: Join, ask: Ask, answer: Answer) -> None:
        """Let a hub receive: `ask` every source's hub to send to it, and answer when all of them do.

        Raises:
            ChannelNotFoundError: There is no such channel here.
        """
        name, sink, directory = join.name, join.hub, self.directory
        self.adopt(join.lineage, sink.address, ask)
        sources = directory.join_sink(name, sink)
        if join.instead:  # whoever comes from here on has turned before his first event
            directory.note_turn(join.instead, sink.address, join.handle, taken=False)
            directory.note_turn(name, sink.address, join.successor, taken=True)
        sink = directory.get(name).sinks[sink.address]  # with what is known of its turns
        waiting, silent, refusals, turned = set(sources), list[str](), list[str](), list[str]()

        def settled(source: str, reply: Message) -> None:
            waiting.discard(source)
            known = name in directory  # it may have been removed meanwhile
            if isinstance(reply, Refused) and known:
                if reply.kind == ChannelNotFoundError.__name__:
                    directory.strike(name, source)  # another hub stands there, or it has closed the channel
                elif source in directory.origins(name):
                    problems = silent if reply.kind == UnreachableError.__name__ else refusals
                    problems.append(f"{source}: {reply.reason}")
            elif isinstance(reply, Turned):
                turned.append(reply.hub)
            if not waiting and not known:
                answer(Refused(ChannelNotFoundError.__name__, f"channel `{name}` was removed meanwhile"))
            elif not waiting:
                answer(_refusal(silent, refusals) or Joined([], turned=tuple(turned)))

        if not sources:
            answer(Joined([]))
        instead = str(ChannelId(self.address, join.instead)) if join.instead else ""
        lineage, told = directory.lineage(name), (instead, join.handle, join.successor)
        attach = Attach(str(ChannelId(self.address, name)), sink, lineage, *told)
        for source in sources:
            ask(source, attach, partial(settled, source))

    def adopt(self, lineage: Sequence[Step], address: str, ask: Ask) -> None:
        """Enter derived channels as somebody knows them who takes part, and tell whoever has other parameters.

        Raises:
            EchoicError: They cannot be entered.
        """
        changed = self.directory.adopt(lineage)
        if changed:
            self._spread(changed, ask, ignore)
        step = self.directory.get(lineage[-1].name).step if lineage else None
        if step is not None and lineage[-1].version < step.version:  # it was not there when they changed
            ask(address, Tune(str(ChannelId(self.address, step.name)), step.values, step.version), ignore)

    def tune(self, message: Tune, ask: Ask, answer: Answer) -> None:
        """Replace the parameters of a derived channel: tell everybody who runs its code, and answer when all know.

        Raises:
            ChannelNotFoundError: There is no such channel here.
            RefusedError: It has no parameters, or others have changed them meanwhile.
        """
        directory = self.directory
        step = directory.get(message.channel).step
        if step is not None and message.base not in (-1, step.version):
            raise RefusedError(f"the parameters have changed from version {message.base} to {step.version} meanwhile")
        self._spread(directory.tune(message.channel, message.values), ask, answer)

    def _spread(self, steps: Sequence[Step], ask: Ask, answer: Answer, rounds: int = SPREAD_ROUNDS_MAX) -> None:
        """Tell everybody who runs the code of a group its parameters, and answer when all know.

        A hub that has a later version, unknown to a book begun anew, says so: then they get one later still. One that
        says so again and again is not listened to for ever.
        """
        directory = self.directory
        orders: list[tuple[str, Tune]] = []
        for step in steps:
            hubs = directory.origins(step.name)
            if step.recipe.placement != "source":
                hubs |= directory.get(step.name).sinks.keys()
            order = Tune(str(ChannelId(self.address, step.name)), step.values, step.version)
            orders += [(hub, order) for hub in sorted(hubs)]
        waiting, latest = len(orders), -1

        def settled(reply: Message) -> None:  # a hub that is gone, or does not run it, need not know
            nonlocal waiting, latest
            waiting -= 1
            latest = max(latest, reply.version if isinstance(reply, Tune) else -1)
            if not waiting:
                again = directory.outrank(steps[0].name, latest) if rounds and steps[0].name in directory else ()
                if again:
                    self._spread(again, ask, answer, rounds - 1)
                else:
                    answer(Done())

        if not orders:
            answer(Done())
        for hub, order in orders:
            ask(hub, order, settled)

    def forget(self, address: str) -> None:
        """Strike a hub that is gone. It may live and reach others, so nobody is told: they will notice themselves."""
        self.names.forget_hub(address)
        self.directory.forget_hub(address)

    def forget_former(self, address: str, hub: str, heir: str) -> bool:
        """Strike a hub that is gone while another stands at its address; whether it has been heard after that one."""
        return self.directory.forget_former(address, hub, heir)

    def register_again(self, forgetful: Callable[[str], bool]) -> None:
        """Note that name servers at certain addresses may have forgotten everything."""
        for server, message in self._registrations:
            if forgetful(server):
                self._registrations[server, message] = False

    def entries(self) -> list[ChannelEntry]:
        """Return the channels managed here, and those known by name."""
        own = self.directory.entries(self.address)
        named = {entry.id for entry in own}
        return own + [entry for entry in self.names.entries() if entry.id not in named]

    def registration(self, server: str, name: str, id: str) -> Register:
        """Note that a channel is to be known at a name server, and return the request."""
        message = Register(name, id)
        self._registrations.setdefault((server, message), False)
        return message

    def servers_of(self, name: str) -> list[str]:
        """Return the name servers at which a channel is to be known."""
        return [server for server, message in self._registrations if message.name == name]

    def registered(self, server: str, message: Register) -> None:
        """Note that a name server knows a channel."""
        self._registrations[server, message] = True

    def unregister(self, name: str) -> list[tuple[str, Unregister]]:
        """Forget the registrations of a channel; return whom to tell what."""
        mine = [(server, message) for server, message in self._registrations if message.name == name]
        for key in mine:
            del self._registrations[key]
        return [(server, Unregister(message.name, message.id)) for server, message in mine]

    def unregistered(self) -> Iterator[tuple[str, Register]]:
        """Yield the registrations that a name server has yet to confirm."""
        return iter([key for key, confirmed in self._registrations.items() if not confirmed])


def _refusal(silent: list[str], refusals: list[str]) -> Refused | None:
    """Return what a hub is told whose sinks cannot hear every source."""
    if refusals:
        return Refused(RefusedError.__name__, f"not every source sends to this hub: {'; '.join(refusals)}")
    if silent:
        return Refused(UnreachableError.__name__, f"not every source can be told of a sink: {'; '.join(silent)}")
    return None
