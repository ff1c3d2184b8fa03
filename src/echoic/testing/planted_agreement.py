"""Agreements with a bug each: the test of the tests. A simulation that does not find them proves nothing."""

from collections.abc import Mapping
from typing import Final

import msgspec

from echoic.groups.agreement import Agreement
from echoic.groups.agreement.messages import Caught, Place, Promise, decode_control
from echoic.groups.agreement.order import Order
from echoic.groups.agreement.primary import Decision, decide
from echoic.groups.agreement.round import Round
from echoic.wire import Buffer

__all__ = ["BUGS"]


class NoAckWait(Agreement):
    """Delivers what it has, whoever else has it: the agreed order as it comes."""

    def _stable(self, round_: Round) -> int:  # noqa: ARG002
        return self._order.end


class AcksOfEarlierEpochs(Agreement):
    """Counts what was acknowledged from the beginning of each epoch on, and keeps it when the next one begins."""

    _earlier: dict[Place, int] | None = None

    def _settle(self, round_: Round) -> None:
        super()._settle(round_)
        for place, count in (self._earlier or {}).items():
            round_.uniform.acknowledge(place, round_.decision.position + count)

    def _stable(self, round_: Round) -> int:
        held = round_.uniform._held  # noqa: SLF001 - a bug is planted where nobody should reach
        self._earlier = {place: position - round_.decision.position for place, position in held.items()}
        return super()._stable(round_)


class MinorityDeliversLimbo(Agreement):
    """Delivers what it holds when its side turns out not to be the primary one."""

    def _suspend(self, reason: str) -> None:
        self._deliver_until(self._order.end)
        super()._suspend(reason)


class FreshCounts(Agreement):
    """Counts a member that was just started for the majority."""

    def _rule(self) -> Decision:
        started = {place: msgspec.structs.replace(state, history=True) for place, state in self._states.items()}
        decision = decide(self._members, self._states)
        return decision if decision.primary else decide(self._members, started)


class DuplicatesStay(Agreement):
    """Sends everything again that was not delivered, and takes whatever comes."""

    def _resume_after(self) -> int:
        return 0

    def _fits(self, order: Order, name: str, life: int, number: int) -> bool:  # noqa: ARG002
        return True


class OnePromiseIsEnough(Agreement):
    """Accepts an order with the first promise, though others may never promise its epoch, nor know of it."""

    def _take_control(self, place: Place, data: Buffer) -> None:
        message, round_ = decode_control(data), self._round
        if round_ is None or not isinstance(message, Promise) or message.epoch != round_.epoch:
            super()._take_control(place, data)
        elif not round_.settled:
            self._settle(round_)


class EpochsComeAgain(Agreement):
    """Counts epochs by what was said in a view, whatever its members have promised before."""

    def _rule(self) -> Decision:
        said = sum(state.serial for state in self._states.values())
        return msgspec.structs.replace(super()._rule(), epoch=said)


class LimboDroppedEarly(Agreement):
    """Lets go of what it held before it has what takes its place."""

    def _settle(self, round_: Round) -> None:
        super()._settle(round_)
        if self._gap is not None:
            self._order.rewind(self._delivered)
            self._altered = True


class NewcomersLetThemselvesIn(Agreement):
    """Lets a member take part where it says that it has caught up, as if it held all that others hold there."""

    def _take_control(self, place: Place, data: Buffer) -> None:
        message, round_ = decode_control(data), self._round
        if round_ is None or not isinstance(message, Caught) or message.epoch != round_.epoch:
            super()._take_control(place, data)
        elif round_.lacks(place):
            self._admit(round_, place)
            order = self._order if self._gap is None else self._gap.live
            round_.uniform.acknowledge(place, order.end)


class ForgetsPacks(Agreement):
    """Does not send again what got lost in limbo."""

    def _resume_after(self) -> int:
        return self._number


BUGS: Final[Mapping[str, type[Agreement]]] = {
    "no-ack-wait": NoAckWait,
    "acks-of-earlier-epochs": AcksOfEarlierEpochs,
    "minority-delivers-limbo": MinorityDeliversLimbo,
    "fresh-counts": FreshCounts,
    "duplicates-stay": DuplicatesStay,
    "one-promise-is-enough": OnePromiseIsEnough,
    "epochs-come-again": EpochsComeAgain,
    "limbo-dropped-early": LimboDroppedEarly,
    "newcomers-let-themselves-in": NewcomersLetThemselvesIn,
    "forgets-packs": ForgetsPacks,
}
