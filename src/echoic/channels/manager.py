"""What a hub keeps for others: the book of the channels it manages, and a name server's table.

The hub that creates a channel manages it (JECho, section 4: channel managers, channel name servers). Every hub can do
both, so a system has as many managers and name servers as it likes. Events never pass through either.
"""

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from functools import partial
from typing import TypeAlias

from echoic.channels.directory import Directory
from echoic.channels.identity import ChannelId
from echoic.channels.messages import (
    Attach,
    Browse,
    ChannelEntry,
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
    SinkHub,
    Unregister,
)
from echoic.channels.name_table import NameTable
from echoic.channels.requests import Answer
from echoic.errors import ChannelNotFoundError, RefusedError, UnreachableError

__all__ = ["Manager"]

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
                return Described(name, descriptor, sorted(channel.sources), list(channel.sinks.values()))
            case Join(name, _, hub):
                return Joined(self.directory.join_source(name, hub.address))
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

    def admit(self, name: str, sink: SinkHub, ask: Ask, answer: Answer) -> None:
        """Let a hub receive: `ask` every source's hub to send to it, and answer when all of them do.

        Raises:
            ChannelNotFoundError: There is no such channel here.
        """
        sources = self.directory.join_sink(name, sink)
        listed = self.directory.get(name).sources
        waiting, silent = set(sources), list[str]()

        def settled(source: str, reply: Message) -> None:
            waiting.discard(source)
            if isinstance(reply, Refused) and reply.kind == ChannelNotFoundError.__name__:
                listed.discard(source)  # another hub stands there, or it has closed the channel
            elif isinstance(reply, Refused) and source in listed:
                silent.append(f"{source}: {reply.reason}")
            if not waiting:
                reason = f"not every source can be told of a sink: {'; '.join(silent)}"
                answer(Refused(UnreachableError.__name__, reason) if silent else Joined([]))

        if not sources:
            answer(Joined([]))
        attach = Attach(str(ChannelId(self.address, name)), sink)
        for source in sources:
            ask(source, attach, partial(settled, source))

    def forget(self, address: str) -> None:
        """Strike a hub that is gone. It may live and reach others, so nobody is told: they will notice themselves."""
        self.names.forget_hub(address)
        self.directory.forget_hub(address)

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
