"""Taking part in a channel: what a hub does between its wish and the manager's word that it is so.

The manager's answer names who listens, what is derived from the channel and which journals record it. All of that is
seen to before the wish is settled. Meanwhile the channel awaits a listener, so that what he is about to hear is not
removed for want of any. Whatever fails on the way is an answer as well: these steps are called by whoever arrives
last, a link or a turn of another hub, who is not to blame.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ParamSpec

import msgspec

from echoic.channels.attaching import arrange, attach_all
from echoic.channels.identity import ChannelId
from echoic.channels.installing import install_heard, lineage_of
from echoic.channels.keeping import settle_journals
from echoic.channels.member import Member
from echoic.channels.messages import Join, Joined, Message, Refused, Role, SinkHub
from echoic.channels.requests import Answer
from echoic.channels.turning import when_turned
from echoic.errors import EchoicError

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator

__all__ = ["join"]

Arguments = ParamSpec("Arguments")


def join(
    core: "Concentrator", member: Member, role: Role, answer: Answer, instead: str, handle: str, successor: str
) -> None:
    """Take part in a channel with sources or sinks (`Concentrator.join`)."""
    if role == "sink" and role not in member.roles:
        member.subscription = next(core.subscriptions)
        member.positions.clear()  # events of an earlier one may have come since that was left
    elif role not in member.roles:
        member.told = {}  # an order may have come since the last source ended, and sinks have turned elsewhere
    member.roles |= {role}
    hub = (member.sink if role == "sink" else None) or SinkHub(core.address)
    hub = msgspec.structs.replace(hub, hub=core.id, subscription=member.subscription)
    losses, met = member.losses, member.await_listener()

    def settled(complete: bool) -> None:
        met()
        if role == "sink":
            member.withheld = False
            arrange(member)
        if not complete:
            member.lose(role)
        elif losses == member.losses:
            member.joined |= {role}
        answer(Joined([]))

    def refused(reply: Message) -> None:
        met()
        answer(reply)

    def joined(reply: Joined) -> None:
        settle_journals(member, reply.journals)
        attach = _answering(refused, partial(attach_all, core, member, reply.sinks))
        heard = _answering(refused, partial(install_heard, core, member, reply.heard))
        former = ChannelId(member.manager, instead) if instead else None
        go_on = partial(heard, lambda told: attach(lambda reached: settled(told and reached)))
        when_turned(core, former, handle, reply.turned, go_on)

    def replied(reply: Message) -> None:
        member.asking[role] -= 1
        if isinstance(reply, Joined):
            _answering(refused, joined)(reply)
        else:
            refused(reply)

    member.asking[role] = member.asking.get(role, 0) + 1
    arrange(member)
    wish = Join(member.name, role, hub, lineage_of(member), instead, handle, successor)
    core.ask(member.manager, wish, replied)


def _answering(answer: Answer, step: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Return what does a step, and answers if that fails."""

    def carried_out(*arguments: Arguments.args, **named: Arguments.kwargs) -> None:
        try:
            step(*arguments, **named)
        except EchoicError as error:
            answer(Refused.of(error))

    return carried_out
