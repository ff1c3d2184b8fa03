"""What a campaign of kills has left behind, looked at event by event."""

from typing import Final

from echoic.recorder import Disk, Journal, verify
from echoic.testing.kill_roles import CHANNEL, Memory, Setting, ticks, wrong_ticks

__all__ = ["Audit"]


class Audit:
    """Looks at every event in a journal, and at what sinks have seen."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self.events = self.lost = self.doubled = self.disordered = 0
        self.problems: Final[list[str]] = []

    def read_journal(self) -> None:
        """Count what is not there once, in order, as it was submitted."""
        setting = self._setting
        self.problems.extend(f"the journal has a flaw: {flaw}" for flaw in verify(Disk(setting.journal), CHANNEL))
        following = dict.fromkeys(range(setting.sources), 0)
        for found in Journal(setting.journal, CHANNEL).read():
            batch = found.batch
            producer, first = int(batch.array["producer"][0]), int(batch.array["number"][0])
            expected = following.get(producer, 0)
            self.doubled += min(max(expected - first, 0), batch.count)
            self.disordered += first > expected
            following[producer] = max(expected, first + batch.count)
            self.events += batch.count
            if first != found.first:
                self.problems.append(f"event {first} of {producer} is recorded under the number {found.first}")
            wrong = wrong_ticks(batch, first)
            if wrong:
                self.problems.append(f"{found.sequence} of partition {found.partition}: {wrong}")
        distinct = self.events - self.doubled
        self.lost = setting.events_each * setting.sources - distinct

    def ask_sinks(self) -> None:
        """Compare what each sink has seen with what was submitted."""
        setting = self._setting
        expected = sum(
            int(ticks(index, 0, setting.events_each)["check"].sum(dtype="u8")) for index in range(setting.sources)
        )
        for index in range(setting.sinks):
            seen = Memory(setting.database(index)).seen
            numbers = dict.fromkeys(range(setting.sources), setting.events_each)
            if (seen.numbers, seen.checksum) != (numbers, expected % 2**53):
                self.problems.append(f"sink {index} has seen {seen}, expected {numbers}")
