"""Whether a journal is as it was written: every byte of every segment, and that the segments fit together.

It needs no lock and changes nothing, so a journal can be looked at while it is written; what is under way then may show
as a torn end, which is what it is until it is committed.
"""

from collections.abc import Callable

from echoic.errors import JournalError
from echoic.recorder.catalog import INFO, SEGMENT, Catalog, named_by_sequence, said
from echoic.recorder.examining import Examined, examine, examine_index
from echoic.recorder.recovering import RecoveryReport, identify, recover
from echoic.recorder.scanning import Flaw
from echoic.recorder.storage import Storage

__all__ = ["Flaw", "RecoveryReport", "recover", "verify"]


def verify(storage: Storage, channel: str, progress: Callable[[int, int], None] | None = None) -> list[Flaw]:
    """Return everything that is wrong with a journal: nothing, if it is sound.

    Args:
        storage: Where journals are.
        channel: Which of them.
        progress: Is told how many segments were looked at, and how many there are.

    Raises:
        LocalError: This is not the name of a channel.
        JournalError: There is no such journal, or it cannot be read at all.
    """
    catalog = Catalog(storage, channel)
    with said("verify the journal", catalog.directory):
        return Verification(catalog, progress or _nobody).run()


def _nobody(_done: int, _total: int) -> None:
    return


class Verification:
    """One look at a journal."""

    def __init__(self, catalog: Catalog, progress: Callable[[int, int], None]) -> None:
        self._catalog = catalog
        self._progress = progress
        self._flaws: list[Flaw] = []
        self._done = self._total = 0

    def run(self) -> list[Flaw]:
        """Return what is wrong."""
        catalog = self._catalog
        try:
            info = catalog.info()
            journal, partitions = bytes.fromhex(info.id), info.partitions
        except JournalError as error:
            self._flaws.append(Flaw(f"{catalog.directory}/{INFO}", 0, 0, str(error)))
            found = identify(catalog)
            journal, partitions = bytes.fromhex(found.id), found.partitions
        names = [name for name in catalog.storage.names(catalog.directory) if name.isdecimal()]
        for name in names:
            if int(name) >= partitions:
                what = f"the journal has {partitions} partitions, this is none of them"
                self._flaws.append(Flaw(f"{catalog.directory}/{name}", 0, 0, what))
        self._total = sum(len(catalog.segments(number)) for number in range(partitions) if str(number) in names)
        for number in range(partitions):
            self._look_at_partition(number, journal)
        self._look_at_sinks()
        return self._flaws

    def _look_at_partition(self, number: int, journal: bytes) -> None:
        catalog, directory = self._catalog, self._catalog.partition(number)
        try:
            names = catalog.names(number)
        except JournalError as error:
            self._flaws.append(Flaw(directory, 0, 0, str(error)))
            return
        for name in names:
            if name.endswith(SEGMENT) and not named_by_sequence(name.removesuffix(SEGMENT)):
                self._flaws.append(Flaw(f"{directory}/{name}", 0, 0, "this is not how a segment is called"))
            if name.endswith(".tail"):
                what = "the journal is being opened, or that was interrupted; opening it again finishes it"
                self._flaws.append(Flaw(f"{directory}/{name}", 0, 0, what, "torn"))
        segments = catalog.segments(number)
        if not segments:
            self._flaws.append(Flaw(directory, 0, 0, "the partition has no segments"))
        former: Examined | None = None
        for sequence in segments:
            former = self._look_at_segment(number, sequence, journal, former, last=sequence == segments[-1])

    def _look_at_segment(
        self, number: int, sequence: int, journal: bytes, former: Examined | None, *, last: bool
    ) -> Examined:
        found = examine(self._catalog, number, sequence, journal, last=last, formats={})
        if found.unreadable and sequence < min(self._catalog.segments(number), default=0):
            found.flaws.clear()  # retention removed it meanwhile
        self._flaws += found.flaws
        if former is not None and former.scan is not None and not former.damaged and former.scan.sequence != sequence:
            what = f"the segment begins with sequence {sequence}, the one before it ends before {former.scan.sequence}"
            self._flaws.append(Flaw(found.path, 0, 0, what))
        flaw = examine_index(self._catalog, number, found)
        if flaw is not None:
            self._flaws.append(flaw)
        self._done += 1
        self._progress(self._done, self._total)
        return found

    def _look_at_sinks(self) -> None:
        for path in self._catalog.sink_paths():
            try:
                self._catalog.read_positions(path)
            except JournalError as error:
                self._flaws.append(Flaw(path, 0, 0, str(error)))
