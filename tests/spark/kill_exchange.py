"""The exchange of a campaign of kills: a name server, and numbered ticks until it is told that it is enough.

The source has a name and waits for its recorder, so the journal has all ticks from 0 on, whatever happens to recorders.
"""

import sys
import time
from pathlib import Path
from typing import Final

import echoic
from echoic.errors import UnreachableError
from echoic.testing.charter import party_of_environment

__all__ = ["TICK", "Tick", "main"]

TICK: Final = "Tick{number: int, at: float}"
TICKS_PER_BEAT: Final = 50
BEAT_SECONDS: Final = 0.05
PATIENCE_SECONDS: Final = 120.0


@echoic.event
class Tick:
    """A number, and when it was submitted."""

    number: int
    at: float


def main() -> None:
    """Publish ticks in the folder's channel until the file `enough` is there and all is recorded."""
    folder = Path(sys.argv[1])
    party = party_of_environment()
    with (
        echoic.Hub(name="exchange", **party) as names,
        echoic.Hub(names=names.address, name="market", **party) as hub,
    ):
        ticks = hub.create("ticks", Tick)
        (folder / "names.part").write_text(names.address, "utf-8")
        (folder / "names.part").rename(folder / "names")
        source = _named_source(ticks)
        number = 0
        while not (folder / "enough").exists():
            now = time.time()
            source.submit_batch([Tick(number + each, now) for each in range(TICKS_PER_BEAT)])
            number += TICKS_PER_BEAT
            time.sleep(BEAT_SECONDS)
        source.drain(PATIENCE_SECONDS)


def _named_source(channel: echoic.Channel) -> echoic.Source:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return channel.source(name="ticks")
        except UnreachableError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


if __name__ == "__main__":
    main()
