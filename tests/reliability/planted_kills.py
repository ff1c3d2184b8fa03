"""A small campaign of kills in which somebody breaks a promise, run as a process of its own.

python planted_kills.py FAULT KILLS FOLDER

Faults are put into the parts before the campaign forks them. Only those are killed whose death shows the fault.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from echoic.channels import Concentrator
from echoic.channels.messages import Kept
from echoic.hub.recording import Recording
from echoic.hub.sink import Arrival
from echoic.testing import kill_campaign, kill_roles
from echoic.testing.kill_campaign import Kind, run_campaign
from echoic.testing.kill_roles import Memory, Setting, publish, ticks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from echoic.hub import Stamp
    from echoic.wire import Batch

EVENTS: Final = 400_000
SEED: Final = 11
CHANGED_EVERY: Final = 50
HASTE_SECONDS: Final = 0.05
SHORT_SECONDS: Final = 3.0


def forget_bookmarks() -> None:
    """Let sinks write down where they were before the last events, and not where they are."""
    note = Memory.note

    def forgetful(self: Memory, batch: "Batch", stamp: "Stamp") -> str:
        former = self.positions or (0,) * len(stamp.positions)
        return note(self, batch, msgspec.structs.replace(stamp, positions=former))

    Memory.note = forgetful  # type: ignore[method-assign] - the fault


def acknowledge_early() -> None:
    """Let the recorder tell sources that their events are on the disk, and write them then."""
    keep = Recording._keep  # noqa: SLF001 - the fault

    def hasty(self: Recording, arrivals: list[Arrival]) -> None:
        ends = self._ends

        def tell(core: Concentrator) -> None:
            for arrival in arrivals:
                if arrival.hub in core.neighbours:
                    end = arrival.first + arrival.batch.count
                    core.send(arrival.hub, Kept(ends.member.id, self.journal, {arrival.source: end}, ""))

        ends.switchboard.do(tell)
        time.sleep(HASTE_SECONDS)
        keep(self, arrivals)

    Recording._keep = hasty  # type: ignore[method-assign] # noqa: SLF001 - the fault


def change_payloads() -> None:
    """Let a source submit other bytes than it should, in its own process alone."""

    def changed(producer: int, first: int, count: int) -> "NDArray[np.void]":
        made = ticks(producer, first, count)
        made["check"][::CHANGED_EVERY] ^= 1
        return made

    def corrupt(setting: Setting, index: int, seed: int) -> None:
        kill_roles.ticks = changed
        publish(setting, index, seed)

    kill_campaign.publish = corrupt


def withdraw_a_right() -> None:
    """Let sinks have no right; everybody else has his, or nothing would be recorded."""
    kill_campaign.GRANTS = {**kill_roles.GRANTS, "sink": ()}  # type: ignore[misc] - the fault
    kill_roles.PATIENCE_SECONDS = SHORT_SECONDS  # type: ignore[misc] - nobody else is kept waiting


FAULTS: Final[dict[str, tuple[Callable[[], None], Kind]]] = {
    "sinks forget their bookmarks": (forget_bookmarks, "sink"),
    "the recorder acknowledges before it writes": (acknowledge_early, "recorder"),
    "payloads are changed": (change_payloads, "source"),
    "sinks have no right to subscribe": (withdraw_a_right, "sink"),
}


def main() -> None:
    """Run the campaign with the fault that is named."""
    fault, kills, folder = sys.argv[1:]
    plant, victim = FAULTS[fault]
    plant()
    kill_campaign.DECK = (victim,)  # type: ignore[misc] - whoever else is killed shows nothing
    sinks = 2 if victim == "sink" else 0  # they would wait in vain for what is lost
    secured = plant is withdraw_a_right
    report = run_campaign(
        EVENTS, int(kills), SEED, lambda text: None, folder=Path(folder), sinks=sinks, secured=secured
    )
    sys.stdout.write(msgspec.json.encode(report).decode())


if __name__ == "__main__":
    main()
