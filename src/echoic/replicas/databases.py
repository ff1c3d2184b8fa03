"""What a replicated log asks of a database.

The one thing that everything rests upon: rows and the number of the last of them are written in one transaction. So
after whatever happened the number tells what is there, a log goes on from it, and each event is in the table once.
"""

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

from echoic.formats import Format
from echoic.replicas.portions import Portion

__all__ = ["Database", "Durability"]

Durability: TypeAlias = Literal["full", "normal"]
"""What a commit waits for, see `urls`."""


class Database(Protocol):
    """Where the rows of one log are. `append` and `applied` are for one thread at a time, `read` for one beside it."""

    def prepare(self, log: str, format: Format) -> None:
        """Make what the log needs and does not have, and be open for it.

        Raises:
            AddressError: The log's name cannot be that of a table.
            IncompatibleTypesError: A column has another type.
            JournalError: The database refuses, or the table belongs to somebody else.
            UnreachableError: Nobody answers.
        """

    def applied(self) -> int:
        """Return the sequence number of the last event in the table, 0 for none.

        Raises:
            JournalError: The database refuses.
            UnreachableError: It is gone; the next call tries to reach it again.
        """

    def append(self, portions: Sequence[Portion]) -> None:
        """Add portions that follow one another and what is there, all of them in one transaction.

        Raises:
            JournalError: The database refuses, such as for a full disk; or another writer was here.
            UnreachableError: It is gone. Whether this was committed, `applied` tells when it is back.
        """

    def read(self, after: int, upto: int, limit: int) -> Portion | None:
        """Return the first events after a sequence number and up to another, None if there are none.

        Raises:
            JournalError: The database refuses, or rows are missing.
            UnreachableError: It is gone.
        """

    def close(self) -> None:
        """Let go of it; calls after that raise ClosedError."""
