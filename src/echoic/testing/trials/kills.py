"""Trial 1: everybody a channel has is killed under load.

The campaign (`echoic.testing.kill_campaign`) forks its processes, which wants a process without threads; so it runs in
one of its own, and prints a line for each kill and its report at the end. Half of the kills are of processes that are
plain, half of such as have certificates, and the rights of their roles.
"""

import contextlib
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
END_SECONDS: Final = 10.0


def run(size: int, seed: int, tell: Tell) -> Findings:
    """Kill so many times, half of them among those who have certificates and rights."""
    plain, secured = size - size // 2, size // 2
    found = _campaign(plain, seed, [], tell)
    problems, figures = list(found.problems), dict(found.figures)
    if secured:
        found = _campaign(secured, seed, ["--secured"], lambda done: tell(plain + done))
        problems += [f"secured: {problem}" for problem in found.problems]
        figures |= {f"secured_{name}": value for name, value in found.figures.items()}
    return Findings(tuple(problems), figures)


def _campaign(kills: int, seed: int, options: list[str], tell: Tell) -> Findings:
    command = [sys.executable, "-m", "echoic.testing.kill_campaign", "--quiet", "--count", *options]
    command += ["--events", str(EVENTS_PER_KILL * kills), "--kills", str(kills), "--seed", str(seed)]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as campaign:
            report = _follow(campaign, tell)
        if report is None:
            errors.seek(0)
            return Findings((f"the campaign ended without a report: {errors.read()[-ERROR_CHARACTERS_MAX:]}",))
    return findings_of(report, kills)


def _follow(campaign: "subprocess.Popen[str]", tell: Tell) -> CampaignReport | None:
    """Tell of each kill, and return the report, None if there is none."""
    try:
        for line in campaign.stdout or ():
            if line.startswith("{"):
                return msgspec.json.decode(line, type=CampaignReport)
            tell(int(line))
    except BaseException:
        campaign.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            campaign.wait(END_SECONDS)  # it kills its processes and removes its folder
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
