"""What one peer may use of a hub, and all peers of one name together: links, memory, code, changes of parameters.

The limits of `Policy` for the whole hub keep it alive; these keep one of its users from taking what is for all. Whoever
has shown a certificate is known by its name, so opening more links does not get him more. Others are on this machine,
and each link of theirs counts for itself.
"""

from typing import TYPE_CHECKING, Final, TypeVar

from echoic.channels.messages import Refused
from echoic.channels.recipe import Step
from echoic.channels.workshop import Workshop
from echoic.errors import LimitExceededError, RefusedError

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator
    from echoic.channels.derivation import Derivation
    from echoic.channels.neighbour import Neighbour

__all__ = [
    "TuneRates",
    "check_budget",
    "check_entry",
    "check_link",
    "check_share",
    "check_tune",
    "crowd",
    "crowded_by",
    "resting",
]

SECOND_NS: Final = 1_000_000_000

B = TypeVar("B")


class TuneRates:
    """How often peers have changed parameters lately: each has a bucket that fills again by the second."""

    def __init__(self) -> None:
        self._buckets: dict[str, tuple[float, int]] = {}

    def take(self, peer: str, per_second: float, now_ns: int) -> bool:
        """Whether a peer may change parameters once more, which then counts."""
        burst = max(1.0, per_second)
        left, since_ns = self._buckets.get(peer, (burst, now_ns))
        left = min(burst, left + max(0, now_ns - since_ns) / SECOND_NS * per_second)
        self._buckets[peer] = (max(0.0, left - 1), now_ns)
        return left >= 1

    def forget(self, peer: str) -> None:
        """Forget a peer that is gone; one that comes back at once gains little by that."""
        self._buckets.pop(peer, None)


def _peer(neighbour: "Neighbour") -> str:
    return neighbour.who or neighbour.id


def check_link(core: "Concentrator", who: str) -> None:
    """Refuse a further link.

    Raises:
        LimitExceededError: There are too many, of this name or in all.
    """
    count, limit = len(core.neighbours), core.policy.links_max
    if count >= limit:
        raise LimitExceededError(f"this hub has {count} links, its limit is {limit}")
    mine, limit = core.neighbourhood.count_named(who) if who else 0, core.policy.peer_links_max
    if mine >= limit:
        raise LimitExceededError(f"`{who}` has {mine} links with this hub, the limit is {limit}")


def check_tune(core: "Concentrator", sender: str) -> None:
    """Refuse a change of parameters that comes too soon.

    Raises:
        LimitExceededError: The peer has changed some too often lately.
    """
    neighbour, rate = core.neighbours.get(sender), core.policy.peer_tunes_per_second
    if neighbour is not None and not core.tunes.take(_peer(neighbour), rate, core.now_ns):
        raise LimitExceededError(f"parameters are changed more than {rate:g} times a second, which is the limit")


def check_entry(core: "Concentrator", owner: str) -> None:
    """Refuse to enter a further derived channel of somebody into the book; one that nobody uses makes room for it.

    Raises:
        LimitExceededError: He has too many.
    """
    limit, directory = core.policy.peer_derivations_max, core.manager.directory
    if owner and directory.owned_by(owner) >= limit:
        directory.forget_idle(owner)
    if owner and directory.owned_by(owner) >= limit:
        raise LimitExceededError(f"`{owner}` has derived {limit} channels here already, which is the limit")


def resting(core: "Concentrator", owner: str) -> list[str]:
    """Return the derivations of somebody in the sources here that nobody listens to, the oldest first."""
    found = [(key, one) for key, one in core.derivations.items() if owner and one.step.owner == owner]
    return [key for key, one in found if one.idle]


def crowded_by(core: "Concentrator", owner: str) -> bool:
    """Whether somebody has so many derivations in the sources here that there must not be a further one."""
    limit = core.policy.peer_derivations_max
    return bool(owner) and sum(one.step.owner == owner for one in core.derivations.values()) >= limit


def check_share(core: "Concentrator", step: Step) -> None:
    """Refuse a further derivation of somebody in the sources here.

    Raises:
        RefusedError: He has too many.
    """
    if crowded_by(core, step.owner):
        limit = core.policy.peer_derivations_max
        raise RefusedError(f"{limit} derivations of `{step.owner}` are at work in this hub, which is the limit")


def check_budget(core: "Concentrator", derivation: "Derivation", built: B) -> B | Refused:
    """Return compiled code, if all code of its owner together does not cost more than one may; anything else as is."""
    owner, limit = derivation.step.owner, core.policy.peer_cost_max
    if not owner or not isinstance(built, Workshop):
        return built
    others = [one for one in core.derivations.values() if one is not derivation and one.step.owner == owner]
    cost = sum(one.workshop.units_each(core.policy.fuel) for one in others if one.workshop is not None)
    cost += built.units_each(core.policy.fuel)
    if cost <= limit:
        return built
    reason = f"one event may cost {cost} units in all code of `{owner}`, the limit here is {limit}"
    return Refused(RefusedError.__name__, f"{reason} - at `{derivation.step.name}`")


def crowd(core: "Concentrator") -> None:
    """See how much waits for all links of each name, and let events wait where that is too much."""
    waiting: dict[str, int] = {}
    for neighbour in core.neighbours.values():
        if neighbour.who:
            waiting[neighbour.who] = waiting.get(neighbour.who, 0) + neighbour.session.untold_bytes
    limit = core.policy.peer_waiting_bytes_max
    crowded = [who for who, size in waiting.items() if size > limit] if waiting else ()
    for neighbour in core.neighbours.values():
        neighbour.crowded = neighbour.who in crowded
