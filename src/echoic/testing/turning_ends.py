"""Sinks that are reset, in a simulation, and the part of a hub that serves them as `Endpoints` and `EagerSink` do.

A *handle* is what `EagerSink` is at the edge. Each of its *stages* is the sink of one modulator, with a name that
nothing else has: the sources' hubs say by name who goes over, and the stage takes of its channel what they leave to it.
"""

from collections.abc import Callable
from typing import Final

from echoic.channels import Concentrator, Member, Message, SinkHub, ignore
from echoic.testing.simulated_hub import SimulatedHub

__all__ = ["Ends", "Handle", "Stage"]


class Handle:
    """A sink that is reset; a number stands for each modulator, 0 for none."""

    def __init__(self, number: int, hub: SimulatedHub) -> None:
        self.number: Final = number
        self.name: Final = f"handle{number}"
        self.hub: Final = hub
        self.stage: Stage | None = None
        self.open = True
        self.busy = False
        """Whether it is being reset, or returns to what it was."""
        self.stranded = False
        """Whether it tries to return to a modulator that a source, which has come meanwhile, refuses."""
        self.stages = self.resets = self.refusals = 0
        self.next: Final[dict[int, int]] = {}
        """By source, the number of the event that is due."""

    @property
    def living(self) -> bool:
        """Whether events can be expected to arrive there."""
        return self.open and self.hub.alive and self.stage is not None


class Stage:
    """One pair of a handle: the channel of its modulator, and the sink there."""

    def __init__(self, handle: Handle, modulator: int, member: Member) -> None:
        handle.stages += 1
        self.handle: Final = handle
        self.modulator: Final = modulator
        self.member: Final = member
        self.name = f"{handle.name}#{handle.stages}"
        self.arrived = False
        """Whether it has taken the place of another, and all sources know."""


class Ends:
    """The sinks of one channel in one hub."""

    def __init__(self, hub: SimulatedHub, member: Member) -> None:
        self.stages: tuple[Stage, ...] = ()
        self._hub = hub
        self._member = member

    def add(self, stage: Stage, former: Stage | None, answer: Callable[[Message], None]) -> None:
        """Take part with a sink, which may come from another channel."""
        member = self._member
        if former is not None:
            member.turns.expect(stage.name)
            member.withheld = not self.stages
        self.stages = (*self.stages, stage)
        member.sink = self._wish()
        self.join(stage, former, answer)

    def join(self, stage: Stage, former: Stage | None, answer: Callable[[Message], None]) -> None:
        """Ask the manager that every source sends to a sink that is here."""
        instead, handle = (former.member.name, former.name) if former is not None else ("", "")

        def join(core: Concentrator) -> None:
            core.join(self._member, "sink", answer, instead=instead, handle=handle, successor=stage.name)

        self._hub.do(join)

    def settle(self, stage: Stage, *, arrived: bool) -> None:
        """Note whether a sink has come from another channel for good; while it is on its way, nothing is claimed."""
        stage.arrived = arrived
        self._member.sink = self._wish() if self.stages else None

    def replace(self, former: Stage, stage: Stage) -> None:
        """Put another sink in the place of one of the same channel; for all others it is the same one."""
        stage.name, stage.arrived = former.name, former.arrived
        self.stages = tuple(stage if other is former else other for other in self.stages)
        self._member.sink = self._wish()

    def remove(self, stage: Stage) -> None:
        """Take no more part with a sink."""
        member = self._member
        if stage not in self.stages:
            return
        self.stages = tuple(other for other in self.stages if other is not stage)

        def leave(core: Concentrator) -> None:
            member.turns.forget(stage.name)
            member.withheld = False
            if self.stages:
                member.sink = self._wish()
                core.join(member, "sink", ignore)
            else:
                core.leave(member, "sink")

        if self._hub.alive:
            self._hub.do(leave)

    def taking(self, hub: str, source: int, first: int) -> tuple[Stage, ...]:
        """Return the sinks that take an event."""
        turns = self._member.turns
        return tuple(stage for stage in self.stages if not turns or turns.takes(stage.name, hub, source, first))

    def _wish(self) -> SinkHub:
        names = tuple(stage.name for stage in self.stages)
        turns = {stage.name: True for stage in self.stages if stage.arrived}
        return SinkHub(self._hub.address, "block", names, turns=turns)
