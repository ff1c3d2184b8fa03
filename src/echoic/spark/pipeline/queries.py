"""The query of an output: started when it has room to, and started again if Spark was too impatient.

For every source of a query Spark starts a Python of its own, and gives it ten seconds to connect. There is no setting
for that, and on a machine that has much else to do, where it must import Spark and this package, ten seconds may not be
enough: the query fails before it has begun. So two things are done:

    one after the other    the next query starts when this one has its sources, so that their Pythons do not compete
    once more              a query that failed for this very reason, and no other, starts again from its checkpoint

Starting again is safe at any time: each batch is in its output once, however often it is begun.
"""

import logging
import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from echoic.errors import PipelineError
from echoic.spark.explaining import reason_of
from echoic.spark.pipeline.progress import Report, report_of

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

__all__ = ["OutputQuery", "is_impatience"]

log: Final = logging.getLogger("echoic.spark")
STARTS_MAX: Final = 6
IMPATIENT: Final = re.compile(r"Python worker (?:failed )?to connect back")
UNREADY: Final = "Initializing"
"""How Spark's words on a query begin, as long as its sources are not there."""
LOOK_SECONDS: Final = 0.05


def is_impatience(reason: str) -> bool:
    """Tell whether a query failed only because its Python was not there in the time that Spark gives it."""
    return IMPATIENT.search(reason) is not None


class OutputQuery:
    """What fills one output."""

    def __init__(self, output: str, writer: "DataStreamWriter") -> None:
        """Start it.

        Raises:
            PySparkException: Spark refuses the query.
        """
        self.output: Final = output
        self._writer = writer
        self._starts = 1
        self._seen = ("", -1, "")
        self._unsaid: list[Report] = []
        self._query: StreamingQuery = writer.start()

    def look_after(self) -> bool:
        """Tell whether it runs, and start it again if Spark did not wait for its Python.

        Raises:
            PipelineError: It has failed.
        """
        if self._query.isActive:
            return True
        error = self._query.exception()
        if error is None:
            return False
        reason = reason_of(error)
        if not is_impatience(reason):
            raise PipelineError(f"outputs.{self.output}: {reason}") from error
        if self._starts >= STARTS_MAX:
            raise PipelineError(
                f"outputs.{self.output}: Spark gives a Python of its own 10 s to start, which was not enough "
                f"{STARTS_MAX} times; is this machine overloaded?"
            ) from error
        log.warning("output %s is started again: its Python took more than the 10 s that Spark gives it", self.output)
        self._starts += 1
        self._unsaid = self.reports()
        self._query = self._writer.start()
        return True

    def get_ready(self, seconds: float) -> None:
        """Wait until its sources are there or it has ended, but no longer than so many seconds.

        Raises:
            PipelineError: It has failed.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.look_after():
            if not str(self._query.status["message"]).startswith(UNREADY):
                return
            time.sleep(LOOK_SECONDS)

    def reports(self) -> list[Report]:
        """Return what Spark has reported of it and was not returned yet, in order; the last hundred at most.

        Raises:
            PipelineError: A report is not understood.
        """
        fresh: list[Report] = []
        for text in _newest_first(self._query):
            report = report_of(text)
            if report.mark == self._seen:
                break
            fresh.append(report)
        if fresh:
            self._seen = fresh[0].mark
        unsaid, self._unsaid = self._unsaid, []
        return unsaid + fresh[::-1]

    def stop(self) -> None:
        """Stop it, and return when it has."""
        self._query.stop()


def _newest_first(query: "StreamingQuery") -> Iterator[str]:
    """Yield what Spark has reported of a query; in this process one by one, since each of them takes calls to Java."""
    java = getattr(query, "_jsq", None)
    if java is None:  # Spark Connect, which sends all of it at once
        yield from (reported.json for reported in reversed(query.recentProgress))
        return
    kept = java.recentProgress()
    for index in range(len(kept) - 1, -1, -1):
        yield str(kept[index].json())
