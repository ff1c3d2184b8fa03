"""Who may do what in this hub: every request of another hub comes by here before anything is done for it.

Rights are asked for where they matter, not only where they are granted: a manager that was taken over, or keeps other
rules, can make neither a source send to who may not subscribe nor a sink take events from who may not publish.

    at the manager       Join Derive Tune Steer Describe ...   the right of who asks, by the certificate of its link
    at the name server   Register Resolve Browse               who manages a name has `admin`; others see what they may
    at a source          Attach Tune Steer Detach              from the channel's manager alone, which has `admin`; and
                         before the first event                the hub that is to get them may `subscribe`
                         before code is compiled               whoever has derived it may `derive`, or `modulate`
    at a sink            Bind                                  the hub that is to send may `publish`
                         events, Gap                           of its own sources, not of those of another name
    at a recorder        Fetch Mark, Ask                       `subscribe`, `publish`

What this hub's own program does is not asked about: it could do as it likes anyway. Without rules (`rights` is None)
whoever is let in may do everything, which is meant for one machine.

Who is denied learns that, and no more: a channel to which somebody has no right at all is not there for him. What was
asked and decided is left in the effects, for whoever keeps a trail of it (`Audited`).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from echoic.channels.effects import Audited
from echoic.channels.hub_id import check_hub_id
from echoic.channels.identity import ChannelId
from echoic.channels.journal_messages import Ask, Fetch, Mark
from echoic.channels.keeping import keeping_of
from echoic.channels.messages import (
    Attach,
    Browse,
    Derive,
    Describe,
    Described,
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
from echoic.channels.recipe import Step
from echoic.errors import ChannelNotFoundError, DeniedError, EchoicError
from echoic.rights import ANONYMOUS, Right, Rights
from echoic.wire import Hello

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator
    from echoic.channels.greeting import Greeting
    from echoic.channels.member import Member
    from echoic.channels.neighbour import Neighbour

__all__ = [
    "AUDIT_CHANNEL",
    "Admission",
    "admit",
    "ancestors_of",
    "check_code",
    "check_place",
    "denied",
    "may_bring",
    "may_get",
    "may_read",
    "owned",
    "shown",
    "signed",
    "told",
]

AUDIT_CHANNEL: Final = "echoic/audit"
"""The channel on which a hub with rules tells what others wanted of it."""
NOT_HERE: Final = "there is no such channel here, or none that you have a right to"
SHIPPING: Final[dict[str, Right]] = {"modulator": "modulate"}  # any other spelling is derived
NOTED_MAX: Final = 4096
OWN_NAMES: Final = "echoic/"  # channels on which a hub tells of itself, so nobody else publishes there


class Admission:
    """The rules of a hub, and who the hub itself is."""

    def __init__(self, rights: Rights | None = None, who: str = "") -> None:
        self.rights = rights
        """None: whoever is let in may do everything."""
        self.who: Final = who
        """The name in this hub's own certificate."""


def check_place(core: "Concentrator", hello: Hello, greeting: "Greeting") -> None:
    """Refuse a hub that says it is one of another name, or stands where such a one does: much is decided by both.

    Raises:
        DeniedError: It stands there, and was not found there itself.
        MalformedFrameError: Its id belongs to another name.
    """
    check_hub_id(hello.hub, greeting.who)
    if core.admission.rights is None or greeting.dialled:
        return
    for other in core.neighbourhood.at(hello.address):
        if other.id != hello.hub and other.who != greeting.who:
            raise DeniedError(
                f"`{greeting.who or ANONYMOUS}` says it stands at {hello.address}, where a hub of "
                f"`{other.who or ANONYMOUS}` does"
            )


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
                decision = core.admission.rights.decide(neighbour.who, "subscribe", name, _in_book(core, name))
                core.effects.append(Audited(decision, type(message).__name__, neighbour.address))
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
    core: "Concentrator", neighbour: "Neighbour", message: Join | Leave | Derive | Register | Unregister
) -> None:
    """Let pass what is asked of a manager or name server."""
    match message:
        case Join(name):
            _admit_join(core, neighbour, message)
        case Leave(name, _, address):
            _demand_own(neighbour, address)
            if not (_sees(core, neighbour, name) or core.manager.directory.has_part(name, address)):
                raise ChannelNotFoundError(NOT_HERE)
        case Derive(step):
            _demand_code(core, neighbour, step, message)
        case Register(name, id) | Unregister(name, id):
            _demand_own(neighbour, ChannelId.parse(id).address)
            _demand(core, neighbour, "admin", name, message, _in_book(core, name))


def _admit_join(core: "Concentrator", neighbour: "Neighbour", message: Join) -> None:
    """Let a hub take part in a channel that is managed here."""
    name, hub, lineage, directory = message.name, message.hub, message.lineage, core.manager.directory
    _demand_own(neighbour, hub.address)
    right: Right = "publish" if message.role == "source" else "subscribe"
    _demand(core, neighbour, right, name, message, _in_book(core, name, lineage))
    for place, step in enumerate(lineage):
        if step.name not in directory:
            _demand_code(core, neighbour, step, message, lineage[:place])
    if message.instead in directory:
        _demand(core, neighbour, "subscribe", message.instead, message, _in_book(core, message.instead))
    if message.role == "source" and name.startswith(OWN_NAMES):
        raise DeniedError(f"only the hub {core.address} itself publishes `{name}`")
    owner = directory.recorder_of(name, hub.journal)
    if owner not in ("", neighbour.who):
        _demand(core, neighbour, "admin", name, message, _in_book(core, name))


def _admit_to_sources(
    core: "Concentrator", neighbour: "Neighbour", message: Attach | Detach | Tune | Steer | Save | Restore | Trouble
) -> None:
    """Let pass what is asked of the hub of a source, or of the manager on the way there."""
    match message:
        case Tune(name) | Steer(name) if "://" not in name:
            if not (isinstance(message, Tune) and owned(core, name, neighbour.who)):  # by whoever has derived it
                _demand(core, neighbour, "steer", name, message, _in_book(core, name))
        case Detach(id, address, journal="") if neighbour.stands_at(address):
            member = core.members.get(id)
            if member is None or not (
                neighbour.id in member.fanout.targets or _sees(core, neighbour, member.name, member)
            ):
                raise ChannelNotFoundError(NOT_HERE)
        case Save(id):
            _demand_here(core, neighbour, "derive", id, message)
        case Restore(id):
            _demand_here(core, neighbour, "steer", id, message)
        case Trouble(id):
            _demand_here(core, neighbour, "publish", id, message)
        case Attach(id) | Detach(id) | Tune(id) | Steer(id):
            former = message.instead if isinstance(message, Attach) else ""
            for each in (id, former) if former else (id,):
                _demand_own(neighbour, ChannelId.parse(each).address)
                _demand_here(core, neighbour, "admin", each, message)


def may_get(core: "Concentrator", neighbour: "Neighbour", member: "Member", journal: str = "") -> bool:
    """Whether a hub may be sent the events of a channel, in a journal's name if one is given.

    What is derived by the sinks themselves is sent to them as it is, so they need the right to that.
    """
    if not _may(core, neighbour, "subscribe", member.name, sources_of(member), "Attach"):
        return False
    origin = member.origin
    if origin is not None and origin.parent is not None and origin.step.recipe.placement != "source":
        return may_get(core, neighbour, origin.parent, journal)
    kept = keeping_of(member, journal)
    if core.admission.rights is None or kept is None or kept.who in ("", neighbour.who):
        return True
    return _may(core, neighbour, "admin", member.name, (), "Attach")


def may_read(core: "Concentrator", neighbour: "Neighbour", member: "Member") -> bool:
    """Whether a hub may read what is recorded here of a channel."""
    return _may(core, neighbour, "subscribe", member.name, ancestors_of(member.lineage), "Fetch")


def may_bring(core: "Concentrator", neighbour: "Neighbour", member: "Member") -> bool:
    """Whether a hub may send events of a channel; what a hub tells of itself, only itself may."""
    names = (member.name, *ancestors_of(member.lineage))
    if core.admission.rights is not None and any(name.startswith(OWN_NAMES) for name in names):
        return neighbour.stands_at(member.manager)
    return _may(core, neighbour, "publish", member.name, ancestors_of(member.lineage), "Bind")


def check_code(core: "Concentrator", step: Step, parent: "Member") -> None:
    """Let code into the sources of a channel here, or do not.

    Only where this hub keeps the book itself it knows that code is its own; other managers may say what they like.

    Raises:
        DeniedError: Whoever has derived it has no right to that, or to the name under which its events would go.
    """
    rights = core.admission.rights
    if rights is None or (step.owner == _own(core) and parent.manager == core.address):
        return
    right, ancestors = SHIPPING.get(step.recipe.spelling, "derive"), sources_of(parent)
    decision = rights.decide(step.owner, right, parent.name, ancestors)
    if not decision:
        core.effects.append(Audited(decision, "Attach", core.address))
        raise DeniedError(f"`{decision.who}` may not {right} `{parent.name}` - at the hub {core.address}")
    _check_derived_name(core, step.owner, step.name, [parent.name, *ancestors])


def denied(core: "Concentrator", neighbour: "Neighbour", member: "Member") -> Refused:
    """Return what a manager is told that wants a hub to be sent what it may not get."""
    who, rights, place = neighbour.who or ANONYMOUS, core.admission.rights, f" - at the hub {core.address}"
    origin = member.origin
    if rights is None or not rights.decide(who, "subscribe", member.name, sources_of(member)):
        return Refused(DeniedError.__name__, f"`{who}` may not subscribe `{member.name}`{place}")
    if origin is not None and origin.parent is not None and origin.step.recipe.placement != "source":
        return denied(core, neighbour, origin.parent)
    return Refused(DeniedError.__name__, f"`{who}` may not record `{member.name}` in the journal of another{place}")


def signed(core: "Concentrator", message: Join | Derive, sender: str) -> Join | Derive:
    """Return a request whose derived channels have as their owner who has sent it, whatever it says itself."""
    neighbour = core.neighbours.get(sender)
    who = (neighbour.who if neighbour is not None else _own(core)) or msgspec.UNSET
    match message:
        case Derive(step):
            return msgspec.structs.replace(message, step=msgspec.structs.replace(step, owned_by=who))
        case Join(lineage=lineage):
            _note_recorder(core, message, neighbour)
            own = tuple(
                msgspec.structs.replace(_settled(core, message, step, neighbour), owned_by=who) for step in lineage
            )
            return msgspec.structs.replace(message, lineage=own) if own else message


def _settled(core: "Concentrator", join: Join, step: Step, neighbour: "Neighbour | None") -> Step:
    """Return a step with the parameters that the book has, if a hub tells later ones and may not change them.

    A hub with sources runs the code, and may be all who knows when a book is begun anew.
    """
    rights, directory = core.admission.rights, core.manager.directory
    known = directory.get(step.name).step if step.name in directory else None
    if rights is None or neighbour is None or known is None or join.role == "source" or step.version < known.version:
        return step
    if owned(core, step.name, neighbour.who):
        return step
    if rights.decide(neighbour.who, "steer", step.name, _in_book(core, step.name)):
        return step
    return msgspec.structs.replace(step, values=known.values, version=known.version)


def _note_recorder(core: "Concentrator", join: Join, neighbour: "Neighbour | None") -> None:
    """Note whose a journal is, so that nobody else records under its name."""
    if join.role == "sink" and join.hub.journal and join.name in core.manager.directory:
        core.manager.directory.note_recorder(
            join.name, join.hub.journal, neighbour.who if neighbour is not None else ""
        )


def shown(core: "Concentrator", reply: Message, sender: str) -> Message:
    """Return of a listing, report or description what a hub may see."""
    neighbour = core.neighbours.get(sender)
    if core.admission.rights is None or neighbour is None:
        return reply
    match reply:
        case Described(lineage=lineage):
            seen = tuple(_without_secrets(core, neighbour, step) for step in lineage)
            return msgspec.structs.replace(reply, lineage=seen)
        case Listing(channels):
            return Listing([each for each in channels if _sees(core, neighbour, each.name)])
        case Reported(hub, channels, derivations):
            return Reported(
                hub,
                [each for each in channels if _sees(core, neighbour, each.name, core.members.get(each.id))],
                [each for each in derivations if _sees(core, neighbour, each.name, core.members.get(each.id))],
            )
        case _:
            return reply


def _without_secrets(core: "Concentrator", neighbour: "Neighbour", step: Step) -> Step:
    """Return a step as somebody may see it: a modulator names shared objects, and who knows their ids may use them."""
    rights, parent = core.admission.rights, step.recipe.parent
    if rights is None or not step.recipe.parcel or (neighbour.who and step.owner == neighbour.who):
        return step
    if rights.decide(neighbour.who, "modulate", parent, _in_book(core, parent)):
        return step
    return msgspec.structs.replace(step, recipe=msgspec.structs.replace(step.recipe, parcel=b""))


def told(core: "Concentrator", error: EchoicError, sender: str) -> str:
    """Return what a hub is told of an error: not which other names there are."""
    if core.admission.rights is not None and sender and isinstance(error, ChannelNotFoundError):
        return NOT_HERE
    return str(error)


def _sees(core: "Concentrator", neighbour: "Neighbour", name: str, member: "Member | None" = None) -> bool:
    """Whether a hub may know that there is a channel of a name; `member` is this hub's own part in it."""
    rights = core.admission.rights
    return rights is None or rights.knows(neighbour.who, name, _in_book(core, name, member.lineage if member else ()))


def owned(core: "Concentrator", name: str, who: str) -> bool:
    """Whether somebody has derived a channel that is managed here, and might do so again."""
    directory, rights = core.manager.directory, core.admission.rights
    step = directory.get(name).step if name in directory else None
    if step is None or not who or step.owner != who:
        return False
    parent = step.recipe.parent
    right = SHIPPING.get(step.recipe.spelling, "derive")
    return rights is None or rights.decide(who, right, parent, _in_book(core, parent)).allowed


def ancestors_of(lineage: Sequence[Step]) -> list[str]:
    """Return the names of the channels that one is derived from."""
    return [step.recipe.parent for step in lineage]


def sources_of(member: "Member") -> list[str]:
    """Return the names of the channels of which the events of one are made here, whatever a manager says."""
    found: list[str] = []
    while member.origin is not None and member.origin.parent is not None:
        member = member.origin.parent
        found.append(member.name)
    return found


def _own(core: "Concentrator") -> str:
    """Return as whose this hub's own code is known: without a certificate and with rules, by a name nobody else has."""
    return core.admission.who or (core.id if core.admission.rights is not None else "")


def _may(
    core: "Concentrator", neighbour: "Neighbour", right: Right, name: str, ancestors: Sequence[str], request: str
) -> bool:
    rights = core.admission.rights
    if rights is None:
        return True
    decision = rights.decide(neighbour.who, right, name, ancestors)
    if not decision:
        core.effects.append(Audited(decision, request, neighbour.address))
    return decision.allowed


def _demand_code(
    core: "Concentrator", neighbour: "Neighbour", step: Step, message: Message, lineage: Sequence[Step] = ()
) -> None:
    """Demand that a hub may have code run in the sources of a channel, and call what it makes as it likes."""
    parent, name = step.recipe.parent, step.group
    ancestors = _in_book(core, parent, lineage)
    _demand(core, neighbour, "subscribe", parent, message, ancestors)
    _demand(core, neighbour, SHIPPING.get(step.recipe.spelling, "derive"), parent, message, ancestors)
    if name and not (name in core.manager.directory and _sees(core, neighbour, name)):  # else it is there already
        _check_derived_name(core, neighbour.who, name, [parent, *ancestors])


def _check_derived_name(core: "Concentrator", who: str, name: str, ancestors: Sequence[str]) -> None:
    """Demand that a derived channel is called after one that it is derived from, unless its owner may manage the name.

    By another name its events would go to whoever has a right to that.

    Raises:
        DeniedError: It is called otherwise; also if there is a channel of this name, which is not told.
    """
    rights = core.admission.rights
    if rights is None or any(name.startswith(f"{ancestor}.") for ancestor in ancestors):
        return
    if not rights.decide(who, "admin", name):
        raise DeniedError(
            f"`{who or ANONYMOUS}` may not admin `{name[:80]}`, so what is derived from `{ancestors[0]}` is to be "
            f"called `{ancestors[0]}.` and something - at the hub {core.address}"
        )


def _demand_here(core: "Concentrator", neighbour: "Neighbour", right: Right, id: str, message: Message) -> None:
    """Demand a right to a channel that is perhaps open here, named by its id."""
    member = core.members.get(id)
    ancestors = ancestors_of(member.lineage) if member is not None else []
    _demand(core, neighbour, right, ChannelId.parse(id).name, message, ancestors)


def _demand(
    core: "Concentrator",
    neighbour: "Neighbour",
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
    if not (decision and isinstance(message, Ask | Fetch | Mark) and _is_noted(neighbour, right, name)):
        core.effects.append(Audited(decision, type(message).__name__, neighbour.address))
    if decision:
        return
    if not rights.knows(neighbour.who, name, ancestors):
        raise ChannelNotFoundError(NOT_HERE)
    raise DeniedError(f"`{decision.who}` may not {right} `{decision.channel}` - at the hub {core.address}")


def _is_noted(neighbour: "Neighbour", right: Right, name: str) -> bool:
    """Whether it was noted before that a hub may do something that it does again and again; from here on it was."""
    if (right, name) in neighbour.noted:
        return True
    if len(neighbour.noted) >= NOTED_MAX:
        neighbour.noted.clear()
    neighbour.noted.add((right, name))
    return False


def _demand_own(neighbour: "Neighbour", address: str) -> None:
    """Demand that a hub speaks of itself."""
    if not neighbour.stands_at(address):
        raise DeniedError(f"`{neighbour.who or ANONYMOUS}` is not the hub at {address}, and cannot speak for it")


def _in_book(core: "Concentrator", name: str, told: Sequence[Step] = ()) -> list[str]:
    """Return what a channel is derived from, as this hub's book has it.

    Only of one that is not in the book is believed what is told: nobody may pass off a channel as derived from another.
    """
    directory = core.manager.directory
    return ancestors_of(directory.lineage(name) if name in directory else told)
