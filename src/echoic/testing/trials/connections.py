"""Many connections that open, idle and close: all are answered, and the hub is afterwards what it was before.

    open    every caller greets, asks something, and is answered
    idle    nobody says anything for a while; what an idle connection costs is taken: memory and processor time
    ask     every caller asks again
    close   one half takes leave, the other hangs up without a word
    again   as many others open, and close: they must find room in the memory that the first have left

What has gone may leave memory with the allocator, which is not given back page by page; so memory is not compared with
what it was before anybody came. But it must not grow with those who have gone: a second crowd as large as the first may
leave `LEFT_SHARE` of what the first took, beyond what was there when the first had gone.

A plain hub first, then one that speaks TLS only and goes by rights, by which callers are shown one channel. A link has
a thread of its own that waits for it, which is what its memory is for the most part: `ROOM_BYTES` is the budget.
"""

import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

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
LEFT_SHARE: Final = 0.1
LEFT_BYTES_MIN: Final = 3 * 1024 * 1024
"""What a process may grow by without any connection: caches, the heaps of other threads."""
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
    after_again: VitalSigns
    """When a second crowd has come and gone."""
    idle_share: float
    """Of a processor, while nobody says anything."""
    opened_per_second: float
    faults: tuple[str, ...] = ()

    @property
    def bytes_each(self) -> int:
        """What a connection has taken of the hub's memory."""
        return (self.meanwhile.resident_bytes - self.before.resident_bytes) // max(self.wished, 1)

    @property
    def bytes_left(self) -> int:
        """What the second crowd has left behind of the hub's memory, beyond what the first has."""
        return self.after_again.resident_bytes - self.after.resident_bytes


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
            f"{each.kind}_kib_left_by_the_second_crowd": round(each.bytes_left / 1024),
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
        opened = come(callers, count)
        seconds = time.monotonic() - began
        share = idle_share(host)
        meanwhile = signs_of(host.pid)
        again = callers.ask("ask")
        after = go(callers, host, before)
        others = come(callers, count)
        after_again = go(callers, host, before)
        answered = min(sum(each["answered"] for each in crowd) for crowd in (opened, others))
        faults = tuple(fault for each in (*opened, again, *others) for fault in each["faults"])[:3]
        return Visit(
            kind, count, answered, again["answered"], before, meanwhile, after, after_again, share,
            count / seconds, faults,
        )  # fmt: skip


def come(callers: Worker, count: int) -> list[dict[str, Any]]:
    """Let so many callers open, and return what became of each portion."""
    portions = [min(PORTION, count - first) for first in range(0, count, PORTION)]
    return [callers.ask("open", count=portion) for portion in portions]


def go(callers: Worker, host: Worker, before: VitalSigns) -> VitalSigns:
    """Let all callers close, and return what the hub takes when it has noticed, or has had long enough."""
    callers.ask("close")
    with suppress(LocalError):  # what has not returned is seen by who judges
        wait_until(lambda: returned(before, signs_of(host.pid)), "what they took returns", RETURN_SECONDS_MAX)
    return signs_of(host.pid)


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
    for after in (visit.after, visit.after_again):
        if not returned(visit.before, after):
            problems.append(f"{kind} connections leave something behind: {visit.before} before, {after} after")
    left_max = max(LEFT_BYTES_MIN, int(LEFT_SHARE * visit.bytes_each * visit.wished))
    if visit.bytes_left > left_max:
        problems.append(
            f"{visit.wished} further {kind} connections that have gone leave {visit.bytes_left} bytes behind, "
            f"limit is {left_max}"
        )
    return problems
