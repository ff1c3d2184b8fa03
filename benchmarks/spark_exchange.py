"""The process beside Spark: it publishes, records, takes Spark's results in, and hears them.

    ticks     published here at a steady rate, each with the time it was sent; recorded in a journal, which Spark reads
    answers   what Spark's query makes of them, each exactly once; heard here

It is told what to do in lines of JSON, and answers each with one: `{"rate": 1000, "seconds": 5}` publishes for so long
and tells how late what was heard was, both ticks themselves, without Spark, and answers. An empty line ends it.
"""

import json
import sys
import threading
import time
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # it runs as a file
from echoic import Hub, event
from echoic.formats import int64

PATIENCE_SECONDS: Final = 120.0


@event
class Tick:
    """What goes round."""

    number: int64
    sent_ns: int64


class Ear:
    """Notes how late events are; handlers run one after the other."""

    def __init__(self) -> None:
        self._late: dict[int, float] = {}
        self._doubled = 0
        self._lock = threading.Lock()

    def hear(self, tick: Tick) -> None:
        late = (time.time_ns() - tick.sent_ns) / 1e6
        with self._lock:
            self._doubled += tick.number in self._late
            self._late[tick.number] = late

    def heard(self, first: int, last: int) -> list[float]:
        """Return by how many milliseconds ticks of a range were late, as far as they were heard.

        Raises:
            RuntimeError: Some were heard twice.
        """
        with self._lock:
            if self._doubled:
                raise RuntimeError(f"{self._doubled} events came twice")
            return [self._late[number] for number in range(first, last) if number in self._late]


def main() -> None:
    folder = Path(sys.argv[1])
    with Hub("127.0.0.1:0") as hub:
        ticks = hub.create("ticks", Tick)
        plain, answered = Ear(), Ear()
        hub.record(ticks, folder / "journal")
        intake = hub.intake("answers", folder / "intake", declared=Tick)
        ticks.subscribe(plain.hear)
        intake.channel.subscribe(answered.hear)
        source = ticks.source(name="publisher")
        source.submit(Tick(0, time.time_ns()))
        source.drain()  # so that Spark finds the type of what it reads
        _tell({"channel": intake.channel.id, "journal": str(folder / "journal")})
        number = 1
        for line in sys.stdin:
            if not line.strip():
                break
            wanted = json.loads(line)
            first, number = number, _publish(source, number, wanted["rate"], wanted["seconds"])
            _wait(lambda: len(answered.heard(first, number)) == number - first)  # noqa: B023 - it is called here
            _tell({"plain": plain.heard(first, number), "answered": answered.heard(first, number)})


def _publish(source: object, number: int, rate: float, seconds: float) -> int:
    """Submit ticks at a steady rate; return the number of the next one."""
    begun, first = time.perf_counter(), number
    while (passed := time.perf_counter() - begun) < seconds:
        if number - first <= passed * rate:
            source.submit(Tick(number, time.time_ns()))
            number += 1
        else:
            time.sleep(max(0.0, (number - first) / rate - passed))
    return number


def _wait(condition: object) -> None:
    """Wait until something is so, or for half a minute: who asked sees what is missing."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)


def _tell(answer: dict[str, object]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
