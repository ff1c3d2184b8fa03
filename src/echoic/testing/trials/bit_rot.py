"""Trial 15: one bit is flipped, anywhere in what is kept.

Nine of ten are in journals (`echoic.testing.flip_campaign`): the bit is detected, nothing is delivered with it, and
recovery keeps the rest. One of ten is in the log of a group's member, which has no recovery of its own, since the other
members have what it has: it is refused, or the bit was where nothing is said.
"""

import time
from typing import Final

from echoic.testing.group_log_campaign import run_log_lives
from echoic.testing.journal_campaign import run_flips
from echoic.testing.trials.trial import Findings, Tell

__all__ = ["run"]

JOURNAL_SHARE: Final = 0.9
LOG_LIVES: Final = 2
LOG_FLIPS: Final = 50


def run(size: int, seed: int, tell: Tell) -> Findings:
    """Flip so many bits, one at a time."""
    began = time.monotonic()
    journal_flips = int(size * JOURNAL_SHARE)
    refused = harmless = logs = 0
    try:
        report = run_flips(seed, journal_flips, lambda _what, done, _total: tell(done))
        while refused + harmless < size - journal_flips:
            flips = min(LOG_FLIPS, size - journal_flips - refused - harmless)
            found = run_log_lives(seed + logs, LOG_LIVES, flips)
            refused, harmless, logs = refused + found.flips_refused, harmless + found.flips_harmless, logs + 1
            tell(journal_flips + refused + harmless)
    except AssertionError as error:
        return Findings((str(error),))
    places = {f"flips_in_{place}": count for place, count in sorted(report.places.items())}
    figures = {"recovered": report.recovered, "group_logs_refused": refused, "group_logs_unharmed": harmless}
    return Findings((), {**places, **figures, "seconds": round(time.monotonic() - began, 1)})
