"""What a neighbour tells of a channel: which number stands for it, what is missing, that it ends, what was handled."""

from struct import Struct
from typing import TYPE_CHECKING, Final

import msgspec

from echoic.channels.admission import may_bring
from echoic.channels.arrivals import decline
from echoic.channels.bearing import may_speak
from echoic.channels.effects import Ended
from echoic.channels.member import REPLY
from echoic.channels.messages import Bind, Cut, Gap
from echoic.channels.neighbour import Binding, Neighbour
from echoic.errors import LimitExceededError, MalformedFrameError
from echoic.wire import Frame

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator

__all__ = ["BINDINGS_MAX", "CREDIT", "answered", "bind", "cut", "granted", "skip"]

CREDIT: Final = Struct("<II")
BINDINGS_MAX: Final = 65_536


def bind(core: "Concentrator", neighbour: Neighbour, message: Bind) -> None:
    """Learn which channel a number of a neighbour stands for, and how far its sources are.

    Raises:
        LimitExceededError: There are too many.
    """
    if len(neighbour.bindings) >= BINDINGS_MAX:
        raise LimitExceededError(f"the peer binds more than {BINDINGS_MAX} channels")
    member = core.members.get(message.channel)
    if member is not None and not may_bring(core, neighbour, member):
        core.denied.add(member)
        member = None  # so that whatever comes is not for anybody here
    binding = Binding(message.channel, member, message.subscription)
    neighbour.bindings[message.number] = binding
    if member is None or not binding.wanted:
        decline(core, neighbour, binding)
        return
    own = {source: at for source, at in message.positions.items() if may_speak(core, neighbour, member, source)}
    for gap in member.resume(msgspec.structs.replace(message, positions=own)):
        core.miss(member, gap)


def skip(core: "Concentrator", neighbour: Neighbour, message: Gap) -> None:
    """Learn that events were not sent."""
    binding = neighbour.bindings.get(message.number)
    if binding is None or binding.member is None or not binding.wanted:
        return
    if may_speak(core, neighbour, binding.member, message.source):
        gap = binding.member.skip(message)
        if gap is not None:
            core.miss(binding.member, gap)


def cut(core: "Concentrator", neighbour: Neighbour, message: Cut) -> None:
    """Learn that a neighbour sends no more of a channel."""
    binding = neighbour.bindings.pop(message.number, None)
    if binding is None or binding.member is None or not binding.wanted:
        return
    if message.asked:
        binding.member.lose("sink")  # not by the sinks here: ask again
    else:
        core.effects.append(Ended(binding.member, message.reason))


def answered(core: "Concentrator", hub: str, frame: Frame) -> None:
    """Learn what became of a synchronous event.

    Raises:
        MalformedFrameError: That cannot be understood.
    """
    if len(frame.payload) < REPLY.size:
        raise MalformedFrameError(f"a reply has {len(frame.payload)} bytes, expected at least {REPLY.size}")
    number = REPLY.unpack_from(frame.payload)[0]
    call = core.calls.get(number)
    if call is not None:
        neighbour = core.neighbours[hub]
        call.answered(hub, neighbour.name or neighbour.address, frame.payload[REPLY.size :])
        if not call.waiting:
            core.forget_call(number)


def granted(core: "Concentrator", hub: str, frame: Frame) -> None:
    """Learn that events were handled, and send what has waited for that.

    Raises:
        MalformedFrameError: That cannot be understood.
    """
    if len(frame.payload) != CREDIT.size:
        raise MalformedFrameError(f"a credit has {len(frame.payload)} bytes, expected {CREDIT.size}")
    number, size = CREDIT.unpack(frame.payload)
    member = core.by_number.get(number)
    if member is not None:
        for target, item in member.fanout.grant(hub, size):
            core.send(target, item)
