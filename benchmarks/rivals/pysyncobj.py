"""PySyncObj, a Raft for Python: what it is handed by one replica is executed by all, in the same order.

A replica speaks as those of `echoic.testing.bench.groups.replica` do, so it is measured by the same code: `launch`
starts it in their place. A *pack* is one replicated call with several messages, since a call has a price of its own; of
`static:N` N is how many. Its settings are chosen for speed: large batches and buffers, short periods, no compaction of
its log, which is in memory. It has no flow control, so the source waits while more than 16 MB, or 4000 calls, are under
way. The messages are as long as ours and have the time in them; nobody decodes them.

Under this load its followers log, as critical, that they truncate entries they have applied already and may have
diverged, with its default settings too. That is not shown, and what it delivers counts as delivered.
"""

import logging
import struct
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from pysyncobj import SyncObj, SyncObjConf, replicated

from benchmarks.rivals.ports import free_port
from echoic.testing.bench.groups.cases import Case, Result
from echoic.testing.bench.groups.replicas import launch_program

if TYPE_CHECKING:
    import subprocess

__all__ = ["LAUNCHES", "launch"]

JOIN_SECONDS = 30.0
CALLS_MAX, BYTES_MAX = 4000, 16 * 1024 * 1024
TIME = struct.Struct("<d")


def launch(name: str, command: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Start a replica of PySyncObj where one of echoic was wanted."""
    return launch_program(name, [command[0], "-m", "benchmarks.rivals.pysyncobj", *command[3:]])


LAUNCHES = [launch]


class Log(SyncObj):  # type: ignore[misc] # it has no types
    """What is replicated: nothing is kept, deliveries are counted."""

    def __init__(self, mine: str, others: list[str], case: Case) -> None:
        self.size = case.size
        self.counting = False
        self.messages = 0
        self.first = self.last = self.gap = 0.0
        self.latencies: list[float] = []
        self.back = threading.Condition()
        self.under_way = 0
        conf = SyncObjConf(
            autoTickPeriod=0.001,
            appendEntriesPeriod=0.01,
            appendEntriesBatchSizeBytes=1 << 20,
            sendBufferSize=1 << 20,
            recvBufferSize=1 << 20,
            commandsQueueSize=CALLS_MAX * 4,
            logCompactionMinEntries=1 << 40,
            logCompactionMinTime=1 << 30,
            raftMinTimeout=0.4,
            raftMaxTimeout=1.4,
        )
        super().__init__(mine, others, conf)

    @replicated  # type: ignore[untyped-decorator] # it has no types
    def deliver(self, pack: bytes) -> None:
        """Take a pack, at every replica."""
        now = time.perf_counter()
        if self.counting:
            if self.messages:
                self.gap = max(self.gap, now - self.last)
            else:
                self.first = now
            self.last = now
            self.messages += len(pack) // self.size
            self.latencies += [now - TIME.unpack_from(pack, place)[0] for place in range(0, len(pack), self.size)]

    def came_back(self, *_: object) -> None:
        """Learn that one's own pack was executed."""
        with self.back:
            self.under_way -= 1
            self.back.notify()


class Replica:
    """One member."""

    def __init__(self, name: str, case: Case) -> None:
        self.name, self.case = name, case
        self.address = f"127.0.0.1:{free_port()}"

    def join(self, peers: dict[str, str]) -> str:
        """Wait for the others, and return who leads."""
        others = [address for name, address in peers.items() if name != self.name]
        self.log = Log(self.address, others, self.case)
        deadline = time.monotonic() + JOIN_SECONDS
        while time.monotonic() < deadline:
            leader = self.log._getLeader()  # noqa: SLF001 - it is told in no other way
            if leader is not None and self.log.isReady():
                time.sleep(0.3)
                return next(name for name, address in peers.items() if address == str(leader))
            time.sleep(0.02)
        raise RuntimeError(f"no leader after {JOIN_SECONDS:g} s")

    def send(self) -> Result:
        """Be the source, and return what came of it."""
        case, log = self.case, self.log
        degree = int(case.packing.partition(":")[2])
        limit = max(2, min(CALLS_MAX, BYTES_MAX // (degree * case.size)))
        body, clock = bytes(case.size - TIME.size), time.perf_counter
        submitted, begun = 0, clock()
        cpu = time.process_time()
        while (now := clock()) < begun + case.seconds:
            if not log.counting and now >= begun + case.warm_up:
                log.counting, cpu, since = True, time.process_time(), now
            with log.back:
                log.back.wait_for(lambda: log.under_way < limit, 0.1)
                log.under_way += 1
            pack = b"".join(TIME.pack(clock()) + body for _ in range(degree))
            log.deliver(pack, callback=log.came_back)
            submitted += degree
        log.counting = False
        return self._result(submitted, (time.process_time() - cpu) / (clock() - since), degree)

    def _result(self, submitted: int, cpu: float, degree: int) -> Result:
        log = self.log
        ordered = sorted(log.latencies) or [0.0]
        elapsed = log.last - log.first
        return Result(
            replica=self.name,
            messages=log.messages,
            seconds=elapsed,
            throughput=(log.messages - degree) / elapsed if elapsed > 0 else 0.0,
            gap=log.gap,
            cpu=cpu,
            latency=sum(ordered) / len(ordered),
            latency_p50=ordered[len(ordered) // 2],
            latency_p99=ordered[len(ordered) * 99 // 100],
            degree=degree,
            submitted=submitted,
        )

    def tell(self) -> Result:
        """Return what was delivered here."""
        log = self.log
        return Result(replica=self.name, messages=log.messages, seconds=0.0, throughput=0.0, gap=log.gap)


def _main() -> None:
    name, text, _ = sys.argv[1:]
    logging.disable(logging.CRITICAL)
    replica = Replica(name, msgspec.json.decode(text, type=Case))
    _say({"address": replica.address})
    for line in sys.stdin:
        match line.strip():
            case "send":
                _say(replica.send())
            case "tell":
                _say(replica.tell())
            case "measure":
                continue
            case peers:
                _say({"leader": replica.join(msgspec.json.decode(peers, type=dict[str, str]))})
    replica.log.destroy()


def _say(what: object) -> None:
    sys.stdout.write(msgspec.json.encode(what).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    _main()
