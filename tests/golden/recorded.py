"""Write the golden journal: `python -m tests.golden.recorded`.

Its files are committed, in the folder `journal` beside it: two types, one of them with strings, two sources, events
that never arrived, a segment that is sealed and one that is not. A test compares them with what the program writes
today, and reads them; `docs/reference/journal-format.md` has a reader that knows nothing of this program.
"""

import shutil
from pathlib import Path
from typing import Final
from urllib.parse import quote

from echoic.formats import event, float32, int32, uint16
from echoic.recorder import Disk, JournalOptions, JournalWriter
from echoic.wire import Batch

GOLDEN: Final = Path(__file__).with_name("journal")
CHANNEL: Final = "lab/weather"
ID: Final = bytes(range(16, 32))
BEGUN_NS: Final = 1_800_000_000_000_000_000
SECOND_NS: Final = 1_000_000_000
STATION, SHIP = 0x11, 0xFEDC_BA98_7654_3210


@event
class Weather:
    station: uint16
    pressure: float
    temperature: float32
    wind: int32


@event
class Remark:
    station: uint16
    text: str
    author: str | None = None


def weather(first: int, count: int) -> list[Weather]:
    """Return so many measurements, as a source with this number does them."""
    return [Weather(7, 1000.0 + number, number / 4, -number) for number in range(first, first + count)]


def remarks() -> list[Remark]:
    """Return texts that are easily read wrongly."""
    return [Remark(7, "calm"), Remark(8, "Föhn in Zürich", "Ada"), Remark(9, "", "")]


def write(root: Path) -> None:
    """Write the journal, the same bytes each time."""
    options = JournalOptions(segment_bytes_max=1024)
    writer = JournalWriter.open(Disk(root), CHANNEL, options, id=ID, now_ns=BEGUN_NS)
    clock = iter(range(BEGUN_NS + SECOND_NS, BEGUN_NS + 100 * SECOND_NS, SECOND_NS))
    writer.append(Batch.of(weather(0, 3)), STATION, 0, next(clock))
    writer.append(Batch.of(remarks()), SHIP, 5, next(clock))
    writer.commit(next(clock))
    writer.append(Batch.of(weather(1, 4)), STATION, 1, next(clock))  # 1 and 2 are there already
    writer.miss(SHIP, 8, 9, "the sink did not keep up", next(clock))
    writer.append(Batch.of(remarks()), SHIP, 10, next(clock))
    writer.commit(next(clock))
    writer.append(Batch.of(weather(20, 3)), STATION, 20, BEGUN_NS)  # the clock was set back
    writer.commit(next(clock))
    writer.mark("billing", writer.heads)
    writer.close(next(clock))


def files(root: Path) -> dict[str, bytes]:
    """Return the files of a journal that tell anything, by their place."""
    found = sorted(path for path in root.rglob("*") if path.is_file() and path.name != "lock")
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


if __name__ == "__main__":
    shutil.rmtree(GOLDEN, ignore_errors=True)
    write(GOLDEN)
    (GOLDEN / quote(CHANNEL, safe="") / "lock").unlink()  # who reads does without
    for name, data in files(GOLDEN).items():
        print(f"{len(data):6} {name}")
