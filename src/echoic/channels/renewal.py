"""Other rules while a hub runs: whoever has lost a right that is in use is cut off, whoever has got one is let in.

    at a source          sends no more to who may not subscribe, removes code of who may not derive
    at a sink            takes no more from who may not publish
    at the manager       strikes both from its book, and tells sources, which may have no rules of their own
    anywhere             asks again where somebody was denied before

Events are not asked about one by one, so this is the only place where a right that was withdrawn takes effect on what
flows already.
"""

from typing import TYPE_CHECKING

from echoic.channels.admission import check_code, may_bring, may_get
from echoic.channels.answering import let_leave
from echoic.channels.arrivals import decline
from echoic.channels.attaching import arrange
from echoic.channels.installing import remove, troubled
from echoic.channels.keeping import let_go
from echoic.channels.messages import Cut, Leave, Trouble
from echoic.channels.neighbour import Binding
from echoic.errors import DeniedError
from echoic.rights import Right, Rights

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator
    from echoic.channels.derivation import Derivation
    from echoic.channels.member import Member

__all__ = ["renew"]


def renew(core: "Concentrator", rights: Rights | None) -> None:
    """Go by other rules from here on, also with those who take part already."""
    core.admission.rights = rights
    denied, core.denied = core.denied, set()
    if rights is not None:
        _strike(core, rights)
        _remove_code(core)
        for member in core.members.values():
            _cut_off(core, member)
        _decline(core)
    for member in denied:
        member.lose(*member.roles)  # the manager will say who is there, and each be asked about again


def _strike(core: "Concentrator", rights: Rights) -> None:
    """Strike from the manager's book who may not take part any more; whoever cannot be asked who he is comes again."""
    directory = core.manager.directory
    names = {one.address: one.who for one in core.neighbours.values()}

    def lost(right: Right, name: str, address: str) -> bool:
        ancestors = [step.recipe.parent for step in directory.lineage(name)]
        return address in names and not rights.decide(names[address], right, name, ancestors)

    for channel in directory.channels():
        for address in [one for one in channel.sinks if lost("subscribe", channel.name, one)]:
            let_leave(core, Leave(channel.name, "sink", address))
    for channel in directory.channels():  # after those have been told who is not to hear them
        for address in [one for one in channel.sources if lost("publish", channel.name, one)]:
            directory.leave_source(channel.name, address)


def _remove_code(core: "Concentrator") -> None:
    """Remove the derivations of those who may not derive any more, and tell whoever listens."""
    for key, derivation in list(core.derivations.items()):
        try:
            if key in core.derivations and derivation.parent is not None:
                check_code(core, derivation.step, derivation.parent)
        except DeniedError as error:
            _end(core, derivation, str(error))
            remove(core, key)


def _end(core: "Concentrator", derivation: "Derivation", reason: str) -> None:
    for outlet in derivation.outlets.values():
        for hub in list(outlet.fanout.targets):
            core.send(hub, Cut(outlet.number, reason))
            outlet.fanout.detach(hub)
        troubled(core, Trouble(outlet.id, core.address, reason, suspended=True))


def _cut_off(core: "Concentrator", member: "Member") -> None:
    """Send no more of a channel to those who may not subscribe any more."""
    for hub, target in list(member.fanout.targets.items()):
        neighbour = core.neighbours.get(hub)
        if neighbour is not None and not may_get(core, neighbour, member, target.sink.journal):
            core.send(hub, Cut(member.number, "the right to subscribe was withdrawn"))
            member.disown(target.sink.address, 0)
            let_go(member, target.sink.journal)
            arrange(member)


def _decline(core: "Concentrator") -> None:
    """Take no more from those who may not publish any more; whoever listens here goes on to hear the others."""
    for neighbour in core.neighbours.values():
        for number, binding in list(neighbour.bindings.items()):
            member = binding.member
            if member is not None and not may_bring(core, neighbour, member):
                core.denied.add(member)
                neighbour.bindings[number] = Binding(binding.channel, None, binding.subscription)
                decline(core, neighbour, neighbour.bindings[number])
