"""Writers that stage and commit epochs, and what a journal has of them."""

from collections.abc import Iterable
from pathlib import Path

from echoic import Hub, Journal
from echoic.hub import IntakeClient
from echoic.hub.intake_book import Attempt
from echoic.hub.intake_messages import CarriedPart, bodies_of
from echoic.wire import Batch
from tests.hub.parties import Tick

__all__ = ["Writer", "body", "recorded"]


def body(numbers: Iterable[int], producer: int = 0) -> bytes:
    (made,) = bodies_of(Batch.of([Tick(producer, number) for number in numbers], Tick))
    return made


class Writer:
    """A query, seen from an intake."""

    def __init__(self, hub: Hub, channel: str, query: str = "query", timeout: float = 30.0) -> None:
        self.query = query
        self.client = IntakeClient(hub, channel, timeout=timeout)

    def stage(
        self, epoch: int, numbers: Iterable[int], *, partition: int = 0, attempt: int = 1, index: int = 0
    ) -> None:
        self.client.stage(Attempt(self.query, epoch, partition, attempt), index, body(numbers, partition))

    def commit(self, epoch: int, *parts: tuple[int, int, int]) -> None:
        """Commit parts, each a partition, an attempt and how many portions it has."""
        self.client.commit(self.query, epoch, [CarriedPart(*part) for part in parts or ((0, 1, 1),)])

    def write(self, epoch: int, numbers: Iterable[int], partition: int = 0) -> None:
        """Commit an epoch that carries its rows."""
        part = CarriedPart(partition, 1, 1, (body(numbers, partition),))
        self.client.commit(self.query, epoch, [part])


def recorded(path: Path, channel: str = "ticks", partition: int | None = None) -> list[int]:
    """Return the numbers that a journal has, in its order."""
    return [
        int(number)
        for one in Journal(path, channel).read()
        if partition is None or one.partition == partition
        for number in one.batch.array["number"]
    ]
