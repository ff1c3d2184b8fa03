"""What hubs ask of each other, carried out: by the manager, the hub of a source, or whoever keeps what is wanted."""

from typing import TYPE_CHECKING

from echoic.channels.admission import admit, shown, signed, told
from echoic.channels.attaching import attached, detach
from echoic.channels.consulting import consult
from echoic.channels.identity import ChannelId
from echoic.channels.installing import answer_derivation, install
from echoic.channels.journal_messages import Ask, Fetch, Mark
from echoic.channels.messages import (
    Attach,
    Derive,
    DerivedAs,
    Detach,
    Done,
    Join,
    Leave,
    Message,
    Refused,
    Report,
    Reported,
    Restore,
    Save,
    Steer,
    Trouble,
    Tune,
    Unwatch,
    Update,
    Watch,
    Write,
)
from echoic.channels.registering import register_derived
from echoic.channels.requests import Answer, ignore
from echoic.channels.shares import check_entry, check_tune
from echoic.channels.steering import steer
from echoic.channels.turning import anticipate, turn
from echoic.errors import EchoicError

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator

__all__ = ["carry_out", "let_leave"]


def carry_out(core: "Concentrator", message: Message, answer: Answer, sender: str = "") -> None:
    """Do what is asked, by this hub or another one, and answer."""
    try:
        admit(core, message, sender)
        match message:
            case Join() | Derive():
                _enter(core, signed(core, message, sender), answer)
            case Attach():
                _attach(core, message, answer)
            case Detach(channel):
                detach(core, core.opened(channel), message)
                answer(Done())
            case Tune() | Save() | Restore() | Trouble():
                if isinstance(message, Tune) and not message.version:
                    check_tune(core, sender)
                answer_derivation(core, message, answer)
            case Watch() | Write() | Unwatch() | Update():
                core.sharing.carry_out(message, sender, answer)
            case Steer():
                steer(core, message, answer)
            case Leave(_, "sink"):
                let_leave(core, message)
                answer(Done())
            case Ask() | Fetch() | Mark():
                consult(core, message, answer, sender)
            case Report():
                answer(shown(core, _report(core), sender))
            case _:
                living = {core.address} | {one.address for one in core.neighbours.values() if one.connected}
                answer(shown(core, core.manager.handle(message, living), sender))
    except EchoicError as error:
        answer(Refused(type(error).__name__, told(core, error, sender)))


def _enter(core: "Concentrator", message: Join | Derive, answer: Answer) -> None:
    """Enter a hub, or a derived channel, into the manager's book."""
    if isinstance(message, Join):
        for step in message.lineage:
            if step.name not in core.manager.directory:
                check_entry(core, step.owner)
    match message:
        case Join(_, "sink"):
            core.manager.admit(message, core.ask, answer)
        case Join(_, _, hub, lineage):
            core.manager.adopt(lineage, hub.address, core.ask)
            answer(core.manager.handle(message, frozenset()))
        case Derive(step):
            check_entry(core, step.owner)
            reply = core.manager.handle(message, frozenset())
            for made in reply.steps if isinstance(reply, DerivedAs) and step.group else ():
                register_derived(core, made)
            answer(reply)


def _report(core: "Concentrator") -> Reported:
    counts = [member.counts() for member in core.members.values()]
    derived = [derivation.counts() for derivation in core.derivations.values()]
    return Reported(core.name or core.address, counts, derived)


def let_leave(core: "Concentrator", leave: Leave) -> None:
    """Strike a hub with sinks, and have the sources send no more to it."""
    sources, journal = core.manager.directory.leave_sink(leave.name, leave.address, held=leave.held)
    order = Detach(str(ChannelId(core.address, leave.name)), leave.address, journal=journal)
    for source in sources:
        core.ask(source, order, ignore)


def _attach(core: "Concentrator", message: Attach, answer: Answer) -> None:
    """Send a channel's events to a hub; if it is a derived one, have the derivation at work before."""
    channel, sink = message.channel, message.sink
    manager = ChannelId.parse(channel).address  # before it is noted: `call_back` has to read it
    release = anticipate(core, message) if message.instead else None

    def turned(reply: Message) -> None:
        if release is not None:
            release()
        answer(reply)

    def installed(refused: Refused | None) -> None:
        try:
            if refused is not None:
                turned(refused)
            elif _lingers(core, message):
                turned(Done())
            elif message.instead:
                turn(core, core.opened(channel), message, turned)
            else:
                attached(core, core.opened(channel), sink, answer)
        except EchoicError as error:
            turned(Refused.of(error))

    install(core, manager, message.lineage, installed)


def _lingers(core: "Concentrator", message: Attach) -> bool:
    """Whether there is nothing to derive from here any more, though this hub takes part in what it is derived from.

    Its sources have ended, and a recorder has yet to confirm their events (`keeping.retire`). The manager must go on
    telling it of recorders, so the derived channel, which is not open here, must not be called unknown.
    """
    if not message.lineage or message.channel in core.members:
        return False
    root = ChannelId(ChannelId.parse(message.channel).address, message.lineage[0].recipe.parent)
    member = core.members.get(str(root))
    return member is not None and "source" in member.roles and not member.sources
