"""Derivations moved into a hub that has sources: installed, compiled, tuned, reviewed, removed.

The manager of a channel keeps its derived channels in the same book (`directory`). Whoever has sources of the parent
is a source of the derived channel without saying so. It learns of the derivation when somebody listens: with the order
to send to that hub (`Attach`), or, if it comes later, when it joins (`Joined.heard`). Compiling takes milliseconds, so
it is an effect; what has to wait for it goes on in `compiled`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from echoic.channels.admission import check_code
from echoic.channels.derivation import Derivation, Share
from echoic.channels.directory import LINEAGE_MAX
from echoic.channels.effects import Compile, Dismiss, Troubled
from echoic.channels.identity import ChannelId
from echoic.channels.member import Member
from echoic.channels.messages import (
    Describe,
    Described,
    Done,
    Gap,
    Joined,
    Message,
    Refused,
    Restore,
    Save,
    Saved,
    Step,
    Trouble,
    Tune,
)
from echoic.channels.modulation import Modulation
from echoic.channels.portions import MADE_BYTES_FEW, Spent
from echoic.channels.quiet import ancestry
from echoic.channels.requests import Answer, ignore
from echoic.channels.runner import Runner
from echoic.channels.shares import check_budget, check_share, crowded_by, resting
from echoic.channels.workshop import Workshop
from echoic.errors import EchoicError, EncodeError, LimitExceededError, RefusedError
from echoic.formats import Format
from echoic.wire import Batch

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator

__all__ = [
    "answer_derivation",
    "build",
    "compiled",
    "congested",
    "derive",
    "forget_source",
    "install",
    "install_heard",
    "lineage_of",
    "report_trouble",
    "review",
    "send_share",
    "troubled",
]

REVIEW_NS: Final = 250_000_000
TROUBLE_CHARACTERS_MAX: Final = 4000
HUB_CHARACTERS_MAX: Final = 300
RETUNED_MAX: Final = 1000

Then: TypeAlias = Callable[[Refused | None], None]


def install(core: "Concentrator", manager: str, lineage: Sequence[Step], then: Then, place: int = 0) -> None:
    """Have the derivations of a lineage at work here, from the first whose parent has sources; then go on.

    Args:
        core: The hub.
        manager: Where all channels of the lineage are managed.
        lineage: From the first derived channel to the one that is wanted.
        then: Gets None, or why it cannot be.
        place: How far in the lineage it is.
    """
    if len(lineage) > LINEAGE_MAX:
        then(Refused(RefusedError.__name__, f"{len(lineage)} derivations one of the other, limit is {LINEAGE_MAX}"))
        return
    if place == len(lineage):
        then(None)
        return
    parent = core.members.get(str(ChannelId(manager, lineage[place].recipe.parent)))

    def go_on(refused: Refused | None) -> None:
        if refused is None:
            install(core, manager, _retuned(core, manager, lineage, place), then, place + 1)
        else:
            then(refused)

    if parent is None or not (parent.sources or parent.origin):
        go_on(None)
    else:
        try:
            _install_step(core, manager, lineage[: place + 1], parent, go_on)
        except EchoicError as error:
            go_on(Refused.of(error))


def _retuned(core: "Concentrator", manager: str, lineage: Sequence[Step], place: int) -> Sequence[Step]:
    """Return a lineage with the parameters that were told of the rest of it while one step was being prepared."""
    derivation = core.derivations.get(str(ChannelId(manager, lineage[place].group)))
    told = derivation.retuned if derivation is not None else None
    return [later(step, told.get(str(ChannelId(manager, step.name)), step)) for step in lineage] if told else lineage


def _install_step(core: "Concentrator", manager: str, lineage: Sequence[Step], parent: Member, then: Then) -> None:
    step = lineage[-1]
    known = core.members.get(str(ChannelId(manager, step.name)))
    if known is not None and known.lineage:  # sinks here may have been told of later parameters meanwhile
        step = later(step, lineage_of(known)[-1])
        lineage = (*lineage[:-1], step)
    if parent.origin is not None and not parent.origin.at_work:
        raise RefusedError(f"the hub at {core.address} does not run `{parent.name}`, of which `{step.name}` is derived")
    id, format = ChannelId(manager, step.name), Format.from_descriptor(step.recipe.output or step.input)
    opened = str(id) in core.members and str(id) not in core.passing
    if opened and not core.members[str(id)].lineage:
        raise RefusedError(f"channel `{step.name}` is open here, and not derived from any")
    key = str(ChannelId(manager, step.group))
    derivation = core.derivations.get(key)
    stopped = isinstance(derivation, Modulation) and bool(derivation.suspended)
    if derivation is not None and (stopped or derivation.step.recipe != step.recipe):  # it is derived anew
        remove(core, key)
        derivation = None
    _check_place(core.members.get(str(id)), derivation, parent, step)
    if derivation is None:
        check_code(core, step, parent)
        spared = _above(parent)
        idle = [key for key in resting(core, step.owner) if core.derivations[key] not in spared]
        if idle and crowded_by(core, step.owner):
            remove(core, idle[0])
        check_share(core, step)
        _make_room(core, parent)
    outlet = core.open(id, format)
    if not opened:
        core.passing.add(outlet.id)
    if derivation is None:
        kind = Modulation if step.recipe.spelling == "modulator" else Derivation
        derivation = core.derivations[key] = kind(
            core.address, step, parent, core.policy, f"{core.id}/{next(core.births)}"
        )
        core.effects.append(Compile(derivation))
    derivation.outlets[step.port] = outlet
    derivation.tune(step)
    outlet.origin, outlet.lineage = derivation, tuple(lineage)
    if "source" not in outlet.roles:  # else it may have yet to be told whom to send to
        outlet.roles |= {"source"}
        outlet.joined |= {"source"}
    if derivation.ready:
        derivation.arrange()
        then(None)
    else:
        derivation.waiting.append(then)


def _check_place(outlet: Member | None, derivation: Derivation | None, parent: Member, step: Step) -> None:
    """Refuse a step that no manager would enter.

    Raises:
        RefusedError: It has a port that its code has not, comes back to where it began, or takes another one's place.
    """
    if not 0 <= step.port < max(step.recipe.ports, 1):
        raise RefusedError(f"a router with {step.recipe.ports} ports has none with the number {step.port}")
    above: Member | None = parent
    while above is not None:
        if above is outlet:
            raise RefusedError(f"channel `{step.name}` would be derived from itself")
        above = above.origin.parent if above.origin is not None else None
    known = derivation.outlets.get(step.port) if derivation is not None else None
    if (outlet is not None and outlet.origin not in (None, derivation)) or known not in (None, outlet):
        raise RefusedError(f"channel `{step.name}` is derived in another way already")


def _make_room(core: "Concentrator", parent: Member) -> None:
    """Forget a derivation that nobody listens to, if there are too many.

    Raises:
        RefusedError: All of them are needed, or they take too much time already.
    """
    if core.load > core.policy.load_limit:
        core.crowded.add(parent)
        raise RefusedError(
            f"derivations take {core.load:.2f} of a processor here, the hub's limit is {core.policy.load_limit}"
        )
    if len(core.derivations) < core.policy.derivations_max:
        return
    spared = _above(parent)
    for key, derivation in core.derivations.items():
        if derivation.idle and derivation not in spared:
            remove(core, key)
            return
    limit = core.policy.derivations_max
    core.crowded.add(parent)
    raise RefusedError(f"{len(core.derivations)} derivations are at work in this hub, its limit is {limit}")


def _above(parent: Member | None) -> list[Derivation | None]:
    """Return what a channel is derived by, and what that is derived of, which nobody may hear yet."""
    return [member.origin for member in ancestry(parent)] if parent is not None else []


def build(derivation: Derivation) -> Workshop | Refused | None:
    """Compile a derivation's code: return it, or why not, or None if the sinks are to run it.

    This takes milliseconds, and needs nothing of the hub.
    """
    step, policy = derivation.step, derivation.policy
    if derivation.parent is not None and not derivation.outlets:
        return Refused(RefusedError.__name__, f"the derivation was removed meanwhile - at `{step.name}`")
    try:
        if not policy.derive:
            raise RefusedError(f"the hub at {derivation.hub} runs no code of others - at `{step.name}`")
        return Workshop(step, policy, derivation.parent)
    except EchoicError as error:
        if step.recipe.placement != "source" and isinstance(error, RefusedError):
            return None
        return Refused.of(error)
    except Exception as error:  # noqa: BLE001 - the compiler's own mistake: whoever waits must hear of it all the same
        return Refused(RefusedError.__name__, f"the code cannot be compiled here: {error!r} - at `{step.name}`")


def compiled(core: "Concentrator", derivation: Derivation, built: Workshop | Runner | Refused | None) -> None:
    """Go on with a derivation whose code was compiled, or with a modulator that is ready to run."""
    waiting, derivation.waiting = derivation.waiting, []
    budgeted = check_budget(core, derivation, built)
    spared = [derivation, *_above(derivation.parent)]
    for key in resting(core, derivation.step.owner) if budgeted is not built else ():  # it can be compiled again
        if key in core.derivations and core.derivations[key] not in spared:
            remove(core, key)
    built = check_budget(core, derivation, built)
    refused = built if isinstance(built, Refused) else None
    if isinstance(built, Refused):
        for key in [key for key, known in core.derivations.items() if known is derivation]:
            remove(core, key)
    elif isinstance(derivation, Modulation):
        _employ(core, derivation, built)
    elif built is None or isinstance(built, Workshop):
        derivation.equip(built)
    for then in waiting:
        then(refused)
    derivation.retuned.clear()


def _employ(core: "Concentrator", modulation: Modulation, runner: Workshop | Runner | None) -> None:
    """Let a modulator begin, unless it was removed while it was prepared."""
    if runner is None or isinstance(runner, Workshop):
        return
    if modulation.outlets:
        modulation.employ(runner)
    else:
        core.effects.append(Dismiss(runner))


def remove(core: "Concentrator", key: str) -> None:
    """Take a derivation out, and what is derived from its events in turn."""
    derivation = core.derivations.pop(key)
    if isinstance(derivation, Modulation) and derivation.runner is not None:
        core.effects.append(Dismiss(derivation.runner))
    derived = {instance.source for instance in derivation.instances.values()}
    outlets = list(derivation.outlets.values())
    for outlet in outlets:
        outlet.origin = None
        if outlet.sources.keys() - derived:
            core.join(outlet, "source", ignore)  # it has sources of its own, of which the manager may not know
        elif "source" in outlet.roles:
            core.leave(outlet, "source")
    for source in list(derivation.instances):
        _forget(core, derivation, source)
    orphans = [outlet for outlet in derivation.outlets.values() if not outlet.sources]
    for further in [further for further, other in core.derivations.items() if other.parent in orphans]:
        if further in core.derivations:
            remove(core, further)
    derivation.outlets.clear()
    derivation.arrange()
    for outlet in outlets:
        if outlet.id in core.passing and not (outlet.sources or outlet.sink or outlet.fanout.targets or outlet.roles):
            core.close(outlet)


def install_heard(core: "Concentrator", member: Member, heard: Sequence[Step], then: Callable[[bool], None]) -> None:
    """Install the derivations that have sinks in a hub that has just got sources.

    Then go on, with whether the manager has said of each of them who listens; what is refused here needs nobody.
    """
    waiting, complete = len(heard), True
    if not waiting:
        then(True)
        return

    def settled(reply: Message) -> None:
        nonlocal waiting, complete
        waiting, complete = waiting - 1, complete and isinstance(reply, Joined)
        if not waiting:
            then(complete)

    def installed(step: Step, refused: Refused | None) -> None:
        outlet = core.members.get(str(ChannelId(member.manager, step.name)))
        if refused is None and outlet is not None:
            outlet.lose("source")  # until the manager has said who listens, however often it must be asked
            core.join(outlet, "source", settled)
            return
        if refused is not None:
            _tell_refusal(core, member.manager, step, refused)
        settled(Joined([]))

    lineages = {member.name: member.lineage}
    for step in heard:
        lineages[step.name] = (*lineages.get(step.recipe.parent, ())[:LINEAGE_MAX], step)  # longer ones are refused
        install(core, member.manager, lineages[step.name], partial(installed, step))


def _tell_refusal(core: "Concentrator", manager: str, step: Step, refused: Refused) -> None:
    """Tell those who listen to a derived channel that they will not hear the sources of this hub."""
    trouble = Trouble(str(ChannelId(manager, step.name)), core.address, refused.reason, suspended=True)

    def described(reply: Message) -> None:
        for sink in reply.sinks if isinstance(reply, Described) else ():
            core.ask(sink.address, trouble, ignore)

    core.ask(manager, Describe(step.name), described)


def forget_source(core: "Concentrator", member: Member, source: int) -> None:
    """Note that a source has ended; without any, what was derived from it ends too."""
    for key, derivation in list(core.derivations.items()):
        if derivation.parent is member:
            _forget(core, derivation, source)
            if key in core.derivations and not member.sources and member.origin is None:
                remove(core, key)


def _forget(core: "Concentrator", derivation: Derivation, source: int) -> None:
    """Forget the copy for a source, and those of what is derived in turn, whether anybody listens or not."""
    instance = derivation.instances.get(source)
    if instance is not None:
        for outlet in derivation.outlets.values():  # first: what rests there is found by this copy alone
            forget_source(core, outlet, instance.source)
        derivation.forget(source)


def derive(
    member: Member, source: int, batch: Batch, clock: Callable[[], int], spent: Spent | None = None
) -> list[Share]:
    """Return what is derived from the next events of a source, and from that in turn.

    Args:
        member: The channel.
        source: Whose events they are.
        batch: The events.
        clock: Tells nanoseconds.
        spent: What has been spent already on the batch of which these events are made.
    """
    shares: list[Share] = []
    spent = spent or Spent()
    for derivation in member.derivations:
        if derivation.suspended:
            continue
        instance, own = derivation.instance(source), Spent()
        for portion in derivation.portions(batch):
            before, bytes_before, began = instance.events_in, instance.bytes_out, clock()
            made = list(derivation.shares(source, portion))
            if instance.events_in != before:
                elapsed_ns, made_bytes = clock() - began, instance.bytes_out - bytes_before
                instance.busy_ns += elapsed_ns
                own.ns += elapsed_ns
                spent.ns += elapsed_ns
                own.made_bytes += made_bytes
                spent.made_bytes += made_bytes
                if portion is not batch or made_bytes > MADE_BYTES_FEW:
                    derivation.hold(portion, batch, own, spent)
            for share in made:
                shares.append(share)
                if share.local and share.member.derivations:
                    shares += derive(share.member, share.source, share.batch, clock, spent)
    return shares


def send_share(core: "Concentrator", share: Share) -> int:
    """Send derived events to the hubs that have sinks; return the number of the first."""
    member, source = share.member, share.source
    first = member.sources.setdefault(source, 0)
    if share.placed is not None:
        placed = msgspec.structs.replace(share.placed, first=first)  # of several portions it may be in a later one
        for hub in member.fanout.targets:
            core.send(hub, placed)
    if share.remote:
        try:
            core.submit(member, source, share.batch)
        except (EncodeError, LimitExceededError) as error:  # the source is not to blame, so those who listen are told
            _forgo(core, member, source, share.batch.count, str(error))
    return first


def _forgo(core: "Concentrator", member: Member, source: int, count: int, reason: str) -> None:
    """Count derived events that cannot be sent, and tell everybody who misses them."""
    first = member.pass_over(source, count)
    for hub, item in member.fanout.hurry():
        core.send(hub, item)
    for hub in member.fanout.targets:
        core.send(hub, Gap(member.number, source, first, first + count - 1, reason))


def congested(core: "Concentrator", member: Member) -> bool:
    """Whether a source must wait before it submits: for sinks of its channel, or of those derived from it."""
    if core.blocked(member):
        return True
    for derivation in member.derivations:
        for outlet in derivation.outlets.values():
            if not derivation.buffered and congested(core, outlet):
                return True
    return False


def report_trouble(core: "Concentrator", member: Member) -> None:
    """Tell those who listen what is wrong with what is derived from a channel; call it after `derive`."""
    for derivation in member.derivations:
        for outlet, trouble in derivation.tell_trouble(core.now_ns) if derivation.trouble else ():
            for hub in outlet.fanout.targets:
                core.send(hub, trouble)
            troubled(core, trouble)
        for outlet in derivation.outlets.values():
            if outlet.derivations:
                report_trouble(core, outlet)
        if derivation.suspended:
            derivation.arrange()  # from here on it costs the source nothing


def troubled(core: "Concentrator", trouble: Trouble) -> None:
    """Learn that a derivation is in trouble somewhere."""
    member = core.members.get(trouble.channel)
    if member is not None and member.sink is not None:
        text = trouble.text[:TROUBLE_CHARACTERS_MAX]
        told = msgspec.structs.replace(trouble, text=text, hub=trouble.hub[:HUB_CHARACTERS_MAX])
        core.effects.append(Troubled(member, told))


def review(core: "Concentrator", now_ns: int) -> None:
    """See now and then how much time derivations take; suspend or move the busiest until the rest is not too much."""
    if 0 <= now_ns - core.reviewed_ns < REVIEW_NS:
        return
    core.reviewed_ns = now_ns
    if not core.derivations and not core.crowded:
        core.load = 0.0
        return
    for key, derivation in list(core.derivations.items()):
        if key in core.derivations and isinstance(derivation, Modulation) and _is_over(core, derivation):
            remove(core, key)
    loads = {derivation: derivation.review(now_ns) for derivation in core.derivations.values() if derivation.ready}
    loads = {one: load for one, load in loads.items() if one.limited and not one.suspended}  # which take no more time
    total = core.load = sum(loads.values())
    if total <= core.policy.load_limit:
        if len(core.derivations) < core.policy.derivations_max:  # there is room at last for what was refused
            for member in core.crowded:
                member.lose("source")
            core.crowded.clear()
        return
    rest = total
    for derivation in sorted(loads, key=loads.__getitem__, reverse=True):
        if rest > core.policy.load_limit:
            rest -= loads[derivation]
            _relieve(core, derivation, loads[derivation])


def _is_over(core: "Concentrator", modulation: Modulation) -> bool:
    """Whether nobody listens to a modulator any more, nor is on his way or will come back for what he has missed."""
    awaited = {order.channel for order in core.turning.values()}
    outlets = modulation.outlets.values()
    return modulation.rested and modulation.idle and not any(one.owing or one.id in awaited for one in outlets)


def _relieve(core: "Concentrator", derivation: Derivation, load: float) -> None:
    """Let a derivation that takes much time be run by its sinks if it can, else by nobody."""
    if derivation.step.recipe.placement == "auto" and derivation.movable:
        derivation.move(here=False)
    elif not derivation.suspended:
        derivation.suspend(
            f"derivations take {core.load:.2f} of a processor, the hub's limit is {core.policy.load_limit}, "
            f"this one {load:.2f}"
        )
        if derivation.parent is not None:
            report_trouble(core, derivation.parent)


def answer_derivation(core: "Concentrator", message: Tune | Save | Restore | Trouble, answer: Answer) -> None:
    """Do what is asked about a derivation: of the manager, or of a hub in which it is at work.

    Raises:
        EchoicError: It cannot be done.
    """
    match message:
        case Tune(_, _, 0):
            core.manager.tune(message, core.ask, answer)
        case Tune():
            answer(_tune(core, message))
        case Save(channel):
            answer(_saved(_origin(core, channel)))
        case Restore(channel, states):
            origin = _origin(core, channel)
            if origin is not None:
                origin.restore(states)
            answer(Done())
        case Trouble():
            troubled(core, message)
            answer(Done())


def _tune(core: "Concentrator", message: Tune) -> Done | Tune:
    """Take the parameters that the manager has decided on, wherever the code runs; return later ones that are known."""
    if message.channel not in core.members:
        _remember(core, message)
    member = core.opened(message.channel)
    known = lineage_of(member)
    if not known:
        return Done()
    step = known[-1]
    if message.version < step.version or (message.version == step.version and message.values != step.values):
        return Tune(message.channel, step.values, step.version)
    learn(member, (msgspec.structs.replace(step, values=message.values, version=message.version),))
    return Done()


def _remember(core: "Concentrator", message: Tune) -> None:
    """Keep parameters of a channel that is not open here yet, if it may be as soon as something else is compiled."""
    for derivation in core.derivations.values():
        if derivation.waiting and len(derivation.retuned) < RETUNED_MAX:
            derivation.retuned[message.channel] = message


def lineage_of(member: Member) -> tuple[Step, ...]:
    """Return how a channel is derived, with the latest parameters that are known here."""
    steps, origin = list(member.lineage), member.origin
    for place in reversed(range(len(steps))):
        if origin is None:
            break
        steps[place] = later(steps[place], origin.step)
        origin = origin.parent.origin if origin.parent is not None else None
    return tuple(steps)


def learn(member: Member, told: Sequence[Step]) -> None:
    """Take later parameters of a derived channel, and of those that it is derived from."""
    by_name = {step.name: step for step in told}
    member.lineage = tuple(later(step, by_name.get(step.name, step)) for step in member.lineage)
    if member.origin is not None and member.lineage:
        member.origin.tune(member.lineage[-1])
        member.origin.arrange()


def later(known: Step, told: Step | Tune) -> Step:
    """Return a step with the later parameters of two."""
    if told.version <= known.version:
        return known
    return msgspec.structs.replace(known, values=told.values, version=told.version)


def _origin(core: "Concentrator", channel: str) -> Derivation | None:
    """Return the derivation of a channel, None if nobody has listened to it yet."""
    member = core.members.get(channel)
    return member.origin if member is not None else None


def _saved(origin: Derivation | None) -> Saved:
    if origin is None or origin.workshop is None:
        return Saved({})
    format = origin.workshop.program.static_format()
    return Saved(origin.states(), format.descriptor if format is not None else b"")
