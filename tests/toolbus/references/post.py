"""A post office in the place of a bus: passes on what members say to each other, and counts it. Also who uses it."""

import functools
import threading
from collections import Counter
from dataclasses import replace

from echoic.errors import ClosedError
from echoic.links import Identity
from echoic.terms import Value
from echoic.toolbus.protocol import Message, MessageKind
from echoic.toolbus.references.exchange import Exchange
from echoic.toolbus.references.member import Member
from echoic.toolbus.references.tokens import token_for
from echoic.toolbus.references.words import (
    Put,
    Refusal,
    Registration,
    decode_get,
    decode_put,
    encode_get,
    encode_refusal,
)

EPOCH = 7


def key_of(number: int) -> bytes:
    return bytes([number]) * 32


class Post:
    """Knows members by their numbers, and passes messages on as a bus does."""

    def __init__(self) -> None:
        self.members: dict[int, Member] = {}
        self.said: Counter[str] = Counter()
        self.outstanding = Counter[int]()
        self.outstanding_max = 0
        self.misdirected = ""
        """Where owners are told to dial who asks, if it is not where that is."""
        self._requests: dict[int, tuple[int, int]] = {}
        self._lock = threading.Lock()

    def join(
        self,
        number: int,
        exchange: Exchange,
        *,
        threshold: float = 1000,
        listen: str = "127.0.0.1:0",
        identity: Identity | None = None,
    ) -> Member:
        registration = Registration(number, EPOCH, 0, threshold, key_of(number))
        relay = functools.partial(self._pass_on, number)
        member = Member(registration, relay, exchange=exchange, listen=listen, identity=identity)
        self.members[number] = member
        return member

    def _pass_on(self, sender: int, _: int, message: Message) -> None:
        request = message.transaction
        with self._lock:
            self.said[message.kind.name] += 1
            if message.kind is MessageKind.GET:
                get = decode_get(message)
                self._requests[request] = (get.source, sender)
                if self.misdirected:
                    message = encode_get(replace(get, endpoints=(self.misdirected,)))
            owner, asker = self._requests.get(request, (0, 0))
            if message.kind is MessageKind.CHUNK:
                self.outstanding[request] += 1
                self.outstanding_max = max(self.outstanding_max, self.outstanding[request])
            elif message.kind is MessageKind.MORE:
                self.outstanding[request] -= message.values[1]
        receiver = self.members.get(owner if sender == asker else asker)
        if self.members.get(sender) is None:
            raise ClosedError("the post office does not know you")
        if receiver is not None:
            assert receiver.hear(message, sender)
        elif message.kind is MessageKind.GET:
            self.members[asker].hear(encode_refusal(Refusal(request, f"tool {owner} is gone")))

    def leave(self, number: int) -> None:
        self.members.pop(number).close()

    def close(self) -> None:
        for number in list(self.members):
            self.leave(number)


def told(put: Put, asker: int) -> Put:
    """Return a PUT as a bus tells it to a tool: with the token for it."""
    token = token_for(
        key_of(put.source), owner=put.source, variable=put.variable, path=put.path, asker=asker, epoch=put.epoch
    )
    return replace(put, token=token)


def puts_of(member: Member, asker: int, *values: Value) -> list[Put]:
    """Have a member say values; return the PUTs for somebody."""
    said = member.outgoing(Message(MessageKind.VALUE, 1, values))
    return [told(decode_put(message), asker) for message in said if message.kind is MessageKind.PUT]
