"""Cuts and kills under load, on real processes, for as long as one likes: 0 contradictions is the only good result.

    python -m tests.engines.fault_campaign --engine embedded --cuts 12
    python -m tests.engines.fault_campaign --engine corosync --cuts 12
    python -m tests.engines.fault_campaign --engine embedded --kills 20 --stability all --kept-bytes 100000

With `--bug` all members have a planted mistake, which shows what a campaign is worth. Of five that were tried, three
were found: no-ack-wait (8 cuts), minority-delivers-limbo (18 cuts, with relays, and not in 12 without) and
keep-duplicates (1 cut). Not found, in 12 cuts and in 22 with relays, were vote-for-outdated-log and cut-what-is-there:
for those there is the simulation.

All three members submit all the time. What each life of each member was given is compared as a whole after every fault:
one order, without gaps, each sender's events in order and once, the same views between the same events; and in the end
everything that anybody was given is everywhere, and everything that a living member has submitted.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.engines.corosync_cluster import why_not
from tests.engines.stories import problems_of
from tests.engines.trios import NAMES, ProcessTrio, Trio, corosync_nodes, namespaces, why_no_namespaces

__all__ = ["Campaign", "Figures"]

HEAL_SECONDS_MAX = 40.0
GO_ON_SECONDS_MAX = 10.0


@dataclass
class Figures:
    """What came of a campaign."""

    cuts: int = 0
    kills: int = 0
    events: int = 0
    views: int = 0
    restored: int = 0
    outside: int = 0
    """How often a member was told that it is not in the primary partition, or is told of views it was not in."""
    measured: int = 0
    """How many faults lasted long enough to see the others go on."""
    gap_seconds_max: float = 0.0
    """How long that took at the most."""
    violations: int = 0

    def __str__(self) -> str:
        return (
            f"{self.cuts} cuts, {self.kills} kills: {self.events} events, {self.views} views, {self.outside} times"
            f" outside of the primary one, {self.restored} states taken, others went on within"
            f" {self.gap_seconds_max:.2f} s in {self.measured} measured faults, {self.violations} violations"
        )


class Campaign:
    """Faults of three members under load."""

    def __init__(self, trio: Trio, seed: int = 0, pause: float = 0.0005) -> None:
        self.trio, self.random, self.pause = trio, random.Random(seed), pause
        self.figures = Figures()
        self.options: dict[str, object] = {}

    def begin(self, **options: object) -> None:
        """Let all join and submit."""
        self.options = options
        self.trio.join(**options)
        self.trio.ask_all("load", pause=self.pause)
        self.trio.advance(0.2)

    def cut(self, name: str, seconds: float) -> None:
        """Part a member from the others for a while, and see that all come together again."""
        self.figures.cuts += 1
        others = [other for other in self.trio.present if other != name]
        self.trio.cut(name)
        self._go_on(others, seconds)
        self.trio.heal(name)
        self._come_together()

    def relay(self) -> None:
        """Let a member fall behind, and cut off the leader at the moment when it is back: will it lead with less?"""
        self.figures.cuts += 2
        leader = self.trio.leader()
        behind = self.random.choice([name for name in self.trio.present if name != leader])
        self.trio.cut(behind)
        self._go_on([name for name in self.trio.present if name != behind], self.random.choice([0.5, 1.5]))
        leader = self._leader_without(behind)
        self.trio.heal(behind)
        self.trio.cut(leader)
        self._go_on([name for name in self.trio.present if name != leader], self.random.choice([1.0, 2.5]))
        self.trio.heal(leader)
        self._come_together()

    def kill(self, name: str) -> None:
        """End a member, and let it come back."""
        self.figures.kills += 1
        self.trio.kill(name)
        self._go_on(list(self.trio.present), GO_ON_SECONDS_MAX, leave=True)
        self.trio.join(name, wait=False, **self.options)
        self._come_together()
        self.trio.ask(name, "load", pause=self.pause)

    def check(self) -> None:
        """See that nothing contradicts.

        Raises:
            AssertionError: Something does.
        """
        found = problems_of(self.trio.stories.read())
        self.figures.violations += len(found)
        assert not found, f"{len(found)} violations after {self.figures}: {found[:5]}"

    def finish(self) -> Figures:
        """Let all come to rest, and return what came of it."""
        self.trio.ask_all("unload")
        history = self.trio.settle(HEAL_SECONDS_MAX)
        self.check()
        stories = self.trio.stories.read()
        self.figures.events = len(history)
        self.figures.views = len({view[0] for story in stories for view in story.views if view[2]})
        self.figures.restored = sum(len(story.restored) for story in stories)
        self.figures.outside = sum(not view[1] for story in stories for view in story.views)
        return self.figures

    def _go_on(self, others: list[str], seconds: float, *, leave: bool = False) -> None:
        """Let those who are left go on for a while, or only until they do, and note how long they took to."""
        began = time.monotonic()
        before = self._last(others)
        self.trio.advance(min(seconds, 0.1))
        settled = self._last(others)
        while time.monotonic() - began < seconds:
            self.trio.advance(0.05)
            if self._last(others) > max(before, settled) + 20:
                self.figures.gap_seconds_max = max(self.figures.gap_seconds_max, time.monotonic() - began)
                self.figures.measured += 1
                self.trio.advance(0.0 if leave else max(0.0, seconds - (time.monotonic() - began)))
                break

    def _leader_without(self, behind: str) -> str:
        """Return who leads those who are not behind; somebody of them, where nobody does."""
        others = [name for name in self.trio.present if name != behind]
        leaders = [self.trio.ask(name, "statistics")["engine"].get("leader") for name in others]
        return next((name for name in leaders if name in others), min(others))

    def _last(self, names: list[str]) -> int:
        latest = self.trio.stories.latest()
        return max(latest[name].last for name in names if name in latest)

    def _come_together(self) -> None:
        self.trio.wait_for_view(HEAL_SECONDS_MAX)
        self.trio.advance(self.random.uniform(0.1, 0.3))
        self.check()


@contextmanager
def place_of(engine: str, folder: Path, durability: str) -> Iterator[ProcessTrio]:
    """Make what an engine needs."""
    if engine == "corosync":
        with corosync_nodes(folder / "nodes") as nodes:
            yield ProcessTrio(engine, folder, nodes, engine=engine)
    else:
        options = {"durability": "disk"} if durability == "disk" else {}
        with namespaces(folder / "nodes") as nodes:
            yield ProcessTrio(engine, folder, nodes, **options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=["embedded", "corosync"], default="embedded")
    parser.add_argument("--cuts", type=int, default=12)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--relays", type=int, default=0, help="cut one, and the leader when the first is back")
    parser.add_argument("--seconds", type=float, default=600.0, help="no further fault after that")
    parser.add_argument("--durability", choices=["disk", "memory"], default="disk")
    parser.add_argument("--stability", choices=["majority", "all"], default="majority")
    parser.add_argument("--kept-bytes", type=int, default=0, help="keep so little that members are given state")
    parser.add_argument("--bug", default="", help="a planted mistake that should be found, as no-ack-wait")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    reason = why_not() if chosen.engine == "corosync" else why_no_namespaces()
    if reason:
        sys.exit(reason)
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        place_of(chosen.engine, Path(folder), chosen.durability) as trio,
    ):
        trio.bug = chosen.bug
        try:
            run(Campaign(trio, chosen.seed), chosen)
        finally:
            trio.close()


def run(campaign: Campaign, chosen: argparse.Namespace) -> None:
    began = time.monotonic()
    options: dict[str, object] = {"stability": chosen.stability} if chosen.engine == "embedded" else {}
    if chosen.kept_bytes:
        options |= {"state": "notebook", "kept_bytes": chosen.kept_bytes}
    campaign.begin(**options)
    faults = ["cut"] * chosen.cuts + ["kill"] * chosen.kills + ["relay"] * chosen.relays
    campaign.random.shuffle(faults)
    for number, fault in enumerate(faults):
        if time.monotonic() - began > chosen.seconds:
            break
        name = campaign.trio.leader() if number % 2 else campaign.random.choice(NAMES)
        if fault == "cut":
            campaign.cut(name, campaign.random.choice([0.3, 1.0, 2.0, 3.0]))
        elif fault == "relay":
            campaign.relay()
        else:
            campaign.kill(name)
        print(f"{number + 1:3} {fault} {name}: {campaign.figures.violations} violations", flush=True)
    print(f"{chosen.engine}, seed {chosen.seed}: {campaign.finish()}, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
