"""Who may do what in this hub: every request of another hub comes by here before anything is done for it.

Rights are asked for where they matter, not only where they are granted: a manager that was taken over, or keeps other
rules, can make neither a source send to who may not subscribe nor a sink take events from who may not publish.

    at the manager       Join Derive Tune Steer Describe ...   the right of who asks, by the certificate of its link
    at the name server   Register Resolve Browse               who manages a name has `admin`; others see what they may
    at a source          Attach Tune Steer Detach              from the channel's manager alone, which has `admin`; and
                         before the first event                the hub that is to get them may `subscribe`
                         before code is compiled               whoever has derived it may `derive`, or `modulate`
    at a sink            Bind                                  the hub that is to send may `publish`
    at a recorder        Fetch Mark, Ask                       `subscribe`, `publish`

What this hub's own program does is not asked about: it could do as it likes anyway. Without rules (`rights` is None)
whoever is let in may do everything, which is meant for one machine.

Who is denied learns that, and no more: a channel to which somebody has no right at all is not there for him. What was
asked and decided is left in the effects, for whoever keeps a trail of it (`Audited`).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from echoic.channels.effects import Audited, Ended
from echoic.channels.identity import ChannelId
from echoic.channels.journal_messages import Ask, Fetch, Mark
from echoic.channels.keeping import let_go
from echoic.channels.messages import (
    Attach,
    Browse,
    Cut,
    Derive,
    Describe,
    Detach,
    Join,
    Leave,
    Listing,
    Message,
    Refused,
    Register,
    Report,
    Reported,
    Resolve,
    Restore,
    Save,
    Steer,
    Trouble,
    Tune,
    Unregister,
    Unwatch,
    Update,
    Watch,
    Write,
)
from echoic.channels.neighbour import Binding, Neighbour
from echoic.channels.recipe import Step
from echoic.errors import ChannelNotFoundError, DeniedError, EchoicError
from echoic.rights import ANONYMOUS, Right, Rights

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator
    from echoic.channels.member import Member

__all__ = [
    "Admission",
    "admit",
    "ancestors_of",
    "check_code",
    "denied",
    "may_bring",
    "may_get",
    "renew",
    "shown",
    "signed",
    "told",
]

NOT_HERE: Final = "there is no such channel here, or none that you have a right to"
SHIPPING: Final[dict[str, Right]] = {"modulator": "modulate"}  # any other spelling is derived


class Admission:
    """The rules of a hub, and who the hub itself is."""

    def __init__(self, rights: Rights | None = None, who: str = "") -> None:
        self.rights = rights
        """None: whoever is let in may do everything."""
        self.who: Final = who
        """The name in this hub's own certificate."""


def admit(core: "Concentrator", message: Message, sender: str) -> None:
    """Let a request of another hub pass, or do not.

    Raises:
        ChannelNotFoundError: It is about a channel to which it has no right at all.
        DeniedError: It has no right to just this.
    """
    neighbour = core.neighbours.get(sender)
    if core.admission.rights is None or neighbour is None:
        return
    match message:
        case Browse() | Report() | Watch() | Unwatch() | Write() | Update():
            return  # each is shown what he may see; who knows the id of a shared object may use it
        case Describe(name) | Resolve(name):
            if not _sees(core, neighbour, name):
                raise ChannelNotFoundError(NOT_HERE)
        case Join() | Leave() | Derive() | Register() | Unregister():
            _admit_to_book(core, neighbour, message)
        case Attach() | Detach() | Tune() | Steer() | Save() | Restore() | Trouble():
            _admit_to_sources(core, neighbour, message)
        case Fetch(id) | Mark(id):
            _demand_here(core, neighbour, "subscribe", id, message)
        case Ask(id):
            _demand_here(core, neighbour, "publish", id, message)
        case _:
            raise DeniedError(f"{type(message).__name__} is not a request")


def _admit_to_book(
    core: "Concentrator", neighbour: Neighbour, message: Join | Leave | Derive | Register | Unregister
) -> None:
    """Let pass what is asked of a manager or name server."""
    match message:
        case Join(name, role, hub, lineage):
            _demand_own(neighbour, hub.address)
            right: Right = "publish" if role == "source" else "subscribe"
            _demand(core, neighbour, right, name, message, _in_book(core, name, lineage))
            for place, step in enumerate(lineage):
                if step.name not in core.manager.directory:
                    _demand_code(core, neighbour, step, message, lineage[:place])
        case Leave(_, _, address):
            _demand_own(neighbour, address)
        case Derive(step):
            _demand_code(core, neighbour, step, message)
        case Register(name, id) | Unregister(name, id):
            _demand_own(neighbour, ChannelId.parse(id).address)
            _demand(core, neighbour, "admin", name, message, _in_book(core, name))


def _admit_to_sources(
    core: "Concentrator", neighbour: Neighbour, message: Attach | Detach | Tune | Steer | Save | Restore | Trouble
) -> None:
    """Let pass what is asked of the hub of a source, or of the manager on the way there."""
    match message:
        case Tune(name) | Steer(name) if "://" not in name:
            if not (isinstance(message, Tune) and owned(core, name, neighbour.who)):
                _demand(core, neighbour, "steer", name, message, _in_book(core, name))
        case Detach(_, address) if neighbour.stands_at(address):
            return
        case Save(id):
            _demand_here(core, neighbour, "derive", id, message)
        case Restore(id):
            _demand_here(core, neighbour, "steer", id, message)
        case Trouble(id):
            _demand_here(core, neighbour, "publish", id, message)
        case Attach(id) | Detach(id) | Tune(id) | Steer(id):
            _demand_own(neighbour, ChannelId.parse(id).address)
            _demand_here(core, neighbour, "admin", id, message)


def may_get(core: "Concentrator", neighbour: Neighbour, member: "Member") -> bool:
    """Whether a hub may be sent the events of a channel."""
    return _may(core, neighbour, "subscribe", member, "Attach")


def may_bring(core: "Concentrator", neighbour: Neighbour, member: "Member") -> bool:
    """Whether a hub may send events of a channel."""
    return _may(core, neighbour, "publish", member, "Bind")


def check_code(core: "Concentrator", step: Step, parent: "Member") -> None:
    """Let code into the sources of a channel here, or do not.

    Raises:
        DeniedError: Whoever has derived it has no right to that.
    """
    rights, own = core.admission.rights, core.admission.who
    if rights is None or (own and step.owner == own):
        return
    right = SHIPPING.get(step.recipe.spelling, "derive")
    decision = rights.decide(step.owner or ANONYMOUS, right, parent.name, ancestors_of(parent.lineage))
    if not decision:
        core.effects.append(Audited(decision, "Attach", core.address))
        raise DeniedError(f"`{decision.who}` may not {right} `{parent.name}` - at the hub {core.address}")


def denied(core: "Concentrator", neighbour: Neighbour, member: "Member") -> Refused:
    """Return what a manager is told that wants a hub to be sent what it may not get."""
    who = neighbour.who or ANONYMOUS
    return Refused(DeniedError.__name__, f"`{who}` may not subscribe `{member.name}` - at the hub {core.address}")


def signed(core: "Concentrator", message: Join | Derive, sender: str) -> Join | Derive:
    """Return a request whose derived channels have as their owner who has sent it, whatever it says itself."""
    neighbour = core.neighbours.get(sender)
    who = (neighbour.who if neighbour is not None else core.admission.who) or msgspec.UNSET
    match message:
        case Derive(step):
            return msgspec.structs.replace(message, step=msgspec.structs.replace(step, owned_by=who))
        case Join(lineage=lineage):
            own = tuple(msgspec.structs.replace(step, owned_by=who) for step in lineage)
            return msgspec.structs.replace(message, lineage=own) if own else message


def shown(core: "Concentrator", reply: Message, sender: str) -> Message:
    """Return of a listing or report what a hub may see."""
    neighbour = core.neighbours.get(sender)
    if core.admission.rights is None or neighbour is None:
        return reply
    match reply:
        case Listing(channels):
            return Listing([each for each in channels if _sees(core, neighbour, each.name)])
        case Reported(hub, channels, derivations):
            return Reported(
                hub,
                [each for each in channels if _sees(core, neighbour, each.name)],
                [each for each in derivations if _sees(core, neighbour, each.name)],
            )
        case _:
            return reply


def told(core: "Concentrator", error: EchoicError, sender: str) -> str:
    """Return what a hub is told of an error: not which other names there are."""
    if core.admission.rights is not None and sender and isinstance(error, ChannelNotFoundError):
        return NOT_HERE
    return str(error)


def renew(core: "Concentrator", rights: Rights | None) -> None:
    """Go by other rules from here on, also with those who take part already."""
    core.admission.rights = rights
    for member in core.members.values():
        for hub in list(member.fanout.targets):
            neighbour = core.neighbours.get(hub)
            if neighbour is not None and not may_get(core, neighbour, member):
                target = member.fanout.targets[hub]
                core.send(hub, Cut(member.number, "the right to subscribe was withdrawn"))
                member.disown(target.sink.address, 0)
                let_go(member, target.sink.journal)
                if member.origin is not None:
                    member.origin.arrange()
    for neighbour in core.neighbours.values():
        for number, binding in list(neighbour.bindings.items()):
            if binding.member is not None and not may_bring(core, neighbour, binding.member):
                member = binding.member
                neighbour.bindings[number] = Binding(binding.channel, None, binding.subscription)
                core.send(neighbour.id, Detach(binding.channel, core.address, binding.subscription))
                core.effects.append(Ended(member, f"`{neighbour.who or ANONYMOUS}` may not publish any more"))


def _sees(core: "Concentrator", neighbour: Neighbour, name: str) -> bool:
    """Whether a hub may know that there is a channel of a name."""
    rights = core.admission.rights
    return rights is None or rights.knows(neighbour.who, name, _in_book(core, name))


def owned(core: "Concentrator", name: str, who: str) -> bool:
    """Whether somebody has derived a channel that is managed here."""
    directory = core.manager.directory
    step = directory.get(name).step if name in directory else None
    return step is not None and bool(who) and step.owner == who


def ancestors_of(lineage: Sequence[Step]) -> list[str]:
    """Return the names of the channels that one is derived from."""
    return [step.recipe.parent for step in lineage]


def _may(core: "Concentrator", neighbour: Neighbour, right: Right, member: "Member", request: str) -> bool:
    rights = core.admission.rights
    if rights is None:
        return True
    decision = rights.decide(neighbour.who, right, member.name, ancestors_of(member.lineage))
    if not decision:
        core.effects.append(Audited(decision, request, neighbour.address))
    return decision.allowed


def _demand_code(
    core: "Concentrator", neighbour: Neighbour, step: Step, message: Message, lineage: Sequence[Step] = ()
) -> None:
    """Demand that a hub may have code run in the sources of a channel."""
    parent = step.recipe.parent
    ancestors = _in_book(core, parent, lineage)
    _demand(core, neighbour, "subscribe", parent, message, ancestors)
    _demand(core, neighbour, SHIPPING.get(step.recipe.spelling, "derive"), parent, message, ancestors)


def _demand_here(core: "Concentrator", neighbour: Neighbour, right: Right, id: str, message: Message) -> None:
    """Demand a right to a channel that is perhaps open here, named by its id."""
    member = core.members.get(id)
    ancestors = ancestors_of(member.lineage) if member is not None else []
    _demand(core, neighbour, right, ChannelId.parse(id).name, message, ancestors)


def _demand(
    core: "Concentrator",
    neighbour: Neighbour,
    right: Right,
    name: str,
    message: Message,
    ancestors: Sequence[str],
) -> None:
    """Demand a right of whoever is at the other end of a link, and leave word of it.

    Raises:
        ChannelNotFoundError: He has none at all to this channel.
        DeniedError: He has not this one.
    """
    rights = core.admission.rights
    if rights is None:
        return
    decision = rights.decide(neighbour.who, right, name, ancestors)
    core.effects.append(Audited(decision, type(message).__name__, neighbour.address))
    if decision:
        return
    if not rights.knows(neighbour.who, name, ancestors):
        raise ChannelNotFoundError(NOT_HERE)
    raise DeniedError(f"`{decision.who}` may not {right} `{name}` - at the hub {core.address}")


def _demand_own(neighbour: Neighbour, address: str) -> None:
    """Demand that a hub speaks of itself."""
    if not neighbour.stands_at(address):
        raise DeniedError(f"`{neighbour.who or ANONYMOUS}` is not the hub at {address}, and cannot speak for it")


def _in_book(core: "Concentrator", name: str, told: Sequence[Step] = ()) -> list[str]:
    """Return what a channel is derived from, as this hub's book has it.

    Only of one that is not in the book is believed what is told: nobody may pass off a channel as derived from another.
    """
    directory = core.manager.directory
    return ancestors_of(directory.lineage(name) if name in directory else told)
