"""Trial 2: the power is lost, and everything that says "it is on the disk" must have told the truth.

Whatever the product keeps durably takes its turn: journals with the bookmarks of durable sinks (which take half of the
losses), the logs of groups' members, the logs of intakes with the files of their rows. All of it is the real code on a
simulated disk, which drops what was not synced and tears the last writes; many losses come in the middle of an
operation, also of the recovery after the one before. (The store of large values promises nothing beyond its process.)
"""

import time
from collections.abc import Callable
from typing import Final

from echoic.testing.group_log_campaign import run_log_lives
from echoic.testing.intake_log_campaign import run_intake_lives
from echoic.testing.journal_campaign import run_lives
from echoic.testing.trials.trial import Figure, Findings, Tell

__all__ = ["run"]


def _journal(seed: int) -> tuple[int, int]:
    report = run_lives(seed)
    return report.losses, report.acknowledged


def _group_log(seed: int) -> tuple[int, int]:
    report = run_log_lives(seed)
    return report.losses, report.synced


def _intake_log(seed: int) -> tuple[int, int]:
    report = run_intake_lives(seed)
    return report.losses, report.acknowledged


STORES: Final[dict[str, tuple[float, Callable[[int], tuple[int, int]]]]] = {
    "journal": (0.5, _journal),
    "group_log": (0.25, _group_log),
    "intake_log": (0.25, _intake_log),
}
"""The stores, each with its share of the losses, and what lets one live from a seed: losses, what was acknowledged."""


def run(size: int, seed: int, tell: Tell) -> Findings:
    """Lose power so many times."""
    began = time.monotonic()
    figures: dict[str, Figure] = {}
    problems: list[str] = []
    done = 0
    for name, (share, live) in STORES.items():
        losses = acknowledged = lives = 0
        while losses < size * share:
            try:
                more = live(seed + lives)
            except AssertionError as error:
                problems.append(f"{name}: {error}")
                break
            losses, acknowledged, lives = losses + more[0], acknowledged + more[1], lives + 1
            tell(min(done + losses, size))
        done += losses
        figures |= {f"losses_of_{name}": losses, f"acknowledged_by_{name}": acknowledged}
    return Findings(tuple(problems), {**figures, "seconds": round(time.monotonic() - began, 1)})
