"""Many connections that open, idle and close: all are answered, and the hub is afterwards what it was before.

    open    every caller greets, asks something, and is answered
    idle    nobody says anything for a while; what an idle connection costs is taken: memory and processor time
    ask     every caller asks again
    close   one half takes leave, the other hangs up without a word

A plain hub first, then one that speaks TLS only and goes by rights, by which callers are shown one channel. A link has
a thread of its own that waits for it, which is what its memory is for the most part: `ROOM_BYTES` is the budget.
"""

import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from echoic.errors import LocalError
from echoic.testing.charter import Charter, environment_of
from echoic.testing.trials.callers import CALL, GRANTS, HOST, raise_descriptor_limit
from echoic.testing.trials.trial import BY_THE_CLOCK, Figure, Findings, Tell
from echoic.testing.trials.vital_signs import VitalSigns, signs_of
from echoic.testing.trials.workers import Worker, wait_until, workers

__all__ = ["ROOM_BYTES", "Visit", "judge", "run"]

ROOM_BYTES: Final = {"plain": 64 * 1024, "tls": 160 * 1024}
IDLE_SECONDS: Final = 4.0
IDLE_SHARE_EACH_MAX: Final = 0.0001
IDLE_SHARE_MIN: Final = 0.1
RETURN_SECONDS_MAX: Final = 60.0
TLS_PERCENT: Final = (15, 25)
LARGE: Final = 8000
WARM: Final = 20
PORTION: Final = 500
SPARE_DESCRIPTORS: Final = 200


class Visit(msgspec.Struct, frozen=True):
    """What came of the connections of one kind."""

    kind: str
    wished: int
    answered: int
    answered_again: int
    before: VitalSigns
    meanwhile: VitalSigns
    after: VitalSigns
    idle_share: float
    """Of a processor, while nobody says anything."""
    opened_per_second: float
    faults: tuple[str, ...] = ()

    @property
    def bytes_each(self) -> int:
        """What a connection has taken of the hub's memory."""
        return (self.meanwhile.resident_bytes - self.before.resident_bytes) // max(self.wished, 1)


def run(size: int, seed: int, tell: Tell) -> Findings:  # noqa: ARG001 - nothing is left to chance
    """Open `size` plain connections, and after those 15 % as many by TLS, 25 % if there are 8,000."""
    secret = size * TLS_PERCENT[size >= LARGE] // 100
    room = raise_descriptor_limit()
    if size + SPARE_DESCRIPTORS > room:
        return Findings((f"{size} connections need more than the {room} file descriptors that a process may have",))
    with tempfile.TemporaryDirectory(prefix="echoic-connections-") as folder:
        plain = visit("plain", size, None)
        tell(size)
        visits = [plain, visit("tls", max(secret, 1), Charter.draw_up(Path(folder) / "charter", GRANTS))]
    figures: dict[str, Figure] = {}
    for each in visits:
        figures |= {
            f"{each.kind}_connections": each.wished,
            f"{each.kind}_opened_per_second": round(each.opened_per_second),
            f"{each.kind}_kib_each": round(each.bytes_each / 1024, 1),
            f"{each.kind}_idle_processor_percent": round(100 * each.idle_share, 1),
        }
    return Findings(tuple(problem for each in visits for problem in judge(each)), figures)


def visit(kind: str, count: int, charter: Charter | None) -> Visit:
    """Let callers come, idle and go."""
    with workers() as start:
        host = start(HOST, environment_of(charter, "host"))
        address, calling = host.started["address"], {"ECHOIC_LINKS": "tcp", **environment_of(charter, "caller")}
        start(CALL, calling, address=address).ask("open", count=WARM)
        callers = start(CALL, calling, address=address)
        before = signs_of(host.pid)
        began = time.monotonic()
        portions = [min(PORTION, count - first) for first in range(0, count, PORTION)]
        opened = [callers.ask("open", count=portion) for portion in portions]
        seconds = time.monotonic() - began
        share = idle_share(host)
        meanwhile = signs_of(host.pid)
        again = callers.ask("ask")
        callers.ask("close")
        with suppress(LocalError):  # what has not returned is seen below
            wait_until(lambda: returned(before, signs_of(host.pid)), "what they took returns", RETURN_SECONDS_MAX)
        answered = sum(each["answered"] for each in opened)
        faults = tuple(fault for each in (*opened, again) for fault in each["faults"])[:3]
        return Visit(
            kind, count, answered, again["answered"], before, meanwhile, signs_of(host.pid), share,
            count / seconds, faults,
        )  # fmt: skip


def idle_share(host: Worker) -> float:
    """Return how much of a processor a hub takes while nobody says anything."""
    began, before = time.monotonic(), signs_of(host.pid).processor_seconds
    time.sleep(IDLE_SECONDS)
    return (signs_of(host.pid).processor_seconds - before) / (time.monotonic() - began)


def returned(before: VitalSigns, after: VitalSigns) -> bool:
    """Whether file descriptors and threads are as few as before."""
    return after.descriptors <= before.descriptors and after.threads <= before.threads


def judge(visit: Visit) -> list[str]:
    """Return what is wrong."""
    kind, problems = visit.kind, list[str]()
    for when, answered in (("when they came", visit.answered), ("after idling", visit.answered_again)):
        if answered != visit.wished:
            problems.append(f"{answered} of {visit.wished} {kind} connections were answered {when}: {visit.faults}")
    if visit.bytes_each > ROOM_BYTES[kind]:
        problems.append(f"a {kind} connection takes {visit.bytes_each} bytes, limit is {ROOM_BYTES[kind]}")
    idle_max = max(IDLE_SHARE_MIN, IDLE_SHARE_EACH_MAX * visit.wished)
    if visit.idle_share > idle_max:
        problems.append(
            f"{visit.wished} idle {kind} connections take {visit.idle_share:.0%} of a processor, "
            f"limit is {idle_max:.0%}{BY_THE_CLOCK}"
        )
    if not returned(visit.before, visit.after):
        problems.append(f"{kind} connections leave something behind: {visit.before} before, {visit.after} after")
    return problems
