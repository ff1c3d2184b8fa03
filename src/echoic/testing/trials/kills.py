"""Trial 1: everybody a channel has is killed under load.

The campaign (`echoic.testing.kill_campaign`) forks its processes, which wants a process without threads; so it runs in
one of its own, and prints a line for each kill and its report at the end.
"""

import subprocess
import sys
import tempfile
from typing import Final

import msgspec

from echoic.testing.kill_campaign import CampaignReport
from echoic.testing.trials.trial import Findings, Tell

__all__ = ["EVENTS_PER_KILL", "findings_of", "run"]

EVENTS_PER_KILL: Final = 50_000
ERROR_CHARACTERS_MAX: Final = 2000


def run(size: int, seed: int, tell: Tell) -> Findings:
    """Kill so many times."""
    command = [sys.executable, "-m", "echoic.testing.kill_campaign", "--quiet", "--count"]
    command += ["--events", str(EVENTS_PER_KILL * size), "--kills", str(size), "--seed", str(seed)]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as campaign:
            report = _follow(campaign, tell)
        if report is None:
            errors.seek(0)
            return Findings((f"the campaign ended without a report: {errors.read()[-ERROR_CHARACTERS_MAX:]}",))
    return findings_of(report, size)


def _follow(campaign: "subprocess.Popen[str]", tell: Tell) -> CampaignReport | None:
    """Tell of each kill, and return the report, None if there is none."""
    try:
        for line in campaign.stdout or ():
            if line.startswith("{"):
                return msgspec.json.decode(line, type=CampaignReport)
            tell(int(line))
    except BaseException:
        campaign.terminate()
        raise
    return None


def findings_of(report: CampaignReport, kills: int) -> Findings:
    """Return what a campaign has found."""
    problems = list(report.problems)
    counts = {"lost": report.lost, "doubled": report.doubled, "disordered": report.disordered}
    problems += [f"{count} of {report.events} events are {what}" for what, count in counts.items() if count]
    done = sum(report.kills.values())
    if done != kills or report.recorded != report.events:
        problems.append(f"{done} of {kills} kills, {report.recorded} of {report.events} events recorded")
    figures = {f"kills_of_{kind}": count for kind, count in sorted(report.kills.items())}
    return Findings(tuple(problems), {"events": report.events, **counts, **figures, "seconds": report.seconds})
