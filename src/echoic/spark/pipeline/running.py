"""A pipeline that runs: its queries, who looks after them, and how they end.

Each output is a query of Spark's with a checkpoint of its own. A thread looks after them a few times a second:

    an output has failed          the others are stopped too: tables that go on beside one that does not are worse;
                                  only if Spark was too impatient with it (`queries`), it is started again
    somebody asks to stop         by `stop()`, by `echoic pipeline stop`, which leaves a file, or by a signal
    all outputs have ended        as with `once`, when everything that was there is done
    nothing of it                 the last progress is published again, and written down

then everything is put away in the order in which it depends on each other: queries, hub, session, lock.
A query that is stopped in the middle of a batch does this batch again when the pipeline is started the next time, and
its output takes it once: stopping and crashing need no difference.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Final, Self

import msgspec

from echoic.errors import EchoicError, PipelineError
from echoic.spark.explaining import SPARK_ERRORS, reason_of
from echoic.spark.pipeline.progress import Tally, Watcher
from echoic.spark.pipeline.queries import OutputQuery
from echoic.spark.pipeline.state import Phase, Run, StateFolder

__all__ = ["Running"]

log: Final = logging.getLogger("echoic.spark")
LOOK_SECONDS: Final = 0.2
REPEAT_SECONDS: Final = 0.5


class Running:
    """A pipeline at work. Leaving its `with` stops it."""

    def __init__(
        self,
        run: Run,
        state: StateFolder,
        queries: Sequence[OutputQuery],
        watcher: Watcher,
        resources: ExitStack,
    ) -> None:
        """Look after queries that were started; `resources` are closed when they have ended."""
        self.run: Run = run
        """Who runs, since when, and at the end how it ended."""
        self._state, self._queries, self._watcher, self._resources = state, tuple(queries), watcher, resources
        self._asking = threading.Lock()
        self._answering = True
        self._stopping = threading.Event()
        self._over = threading.Event()
        self._failure: PipelineError | None = None
        self._cause: BaseException | None = None
        self._thread = threading.Thread(target=self._look_after, name="echoic-pipeline", daemon=True)
        self._thread.start()

    @property
    def over(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self._over.is_set()

    @property
    def cause(self) -> BaseException | None:
        """What Spark raised when it failed, with all its words."""
        return self._cause

    def tallies(self) -> list[Tally]:
        """Return what each output got so far: all of its batches that have ended."""
        self._catch_up()
        return self._watcher.tallies()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it ends, but no longer than so many seconds; tell whether it has.

        Raises:
            PipelineError: It failed.
        """
        self._over.wait(seconds)
        if self._failure is not None:
            raise self._failure from self._cause
        return self.over

    def stop(self) -> None:
        """Stop all outputs, and return when nothing runs any more."""
        self._stopping.set()
        self._thread.join()

    def ask_to_stop(self) -> None:
        """Have it stopped soon, and return at once: for handlers of signals."""
        self._stopping.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _look_after(self) -> None:
        try:
            self._attempt(self._watch)
            self._put_away()
        finally:
            self._over.set()

    def _watch(self) -> None:
        """Return when all queries have ended or shall end.

        Raises:
            PipelineError: One has failed.
        """
        repeated = 0.0
        while not self._stopping.is_set() and not self._state.stop_asked:
            self._stopping.wait(LOOK_SECONDS)
            self._catch_up()
            if time.monotonic() - repeated > REPEAT_SECONDS:
                repeated = time.monotonic()
                self._watcher.repeat()
                self._state.keep_progress(self._watcher.tallies())
            if not self._some_active():
                return
        self._end("stopped")

    def _some_active(self) -> bool:
        """Tell whether a query is active; all of them must end well.

        Raises:
            PipelineError: One has not.
        """
        with self._asking:
            active = [query.look_after() for query in self._queries]
        return any(active)

    def _catch_up(self) -> None:
        """Count the batches that have ended."""
        with self._asking:
            if not self._answering:
                return
            try:
                for query in self._queries:
                    self._watcher.count(query.output, query.reports())
            except (EchoicError, *SPARK_ERRORS) as error:
                log.debug("what a query has done cannot be counted: %s", reason_of(error))

    def _failed(self, error: BaseException) -> None:
        self._cause = self._cause or error.__cause__ or error
        self._failure = error if isinstance(error, PipelineError) else PipelineError(reason_of(error))
        self._end("failed", str(self._failure))

    def _end(self, state: Phase, reason: str = "") -> None:
        self.run = msgspec.structs.replace(self.run, state=state, reason=reason)

    def _put_away(self) -> None:
        """Stop what runs, and close what was opened, though one of them may refuse."""
        for query in self._queries:
            self._attempt(query.stop)
        self._catch_up()
        with self._asking:
            self._answering = False
        self._attempt(self._resources.close)
        if self.run.state in ("starting", "running"):
            self._end("finished")
        self.run = msgspec.structs.replace(self.run, ended=time.time())
        self._attempt(lambda: self._state.keep_progress(self._watcher.tallies()))
        self._attempt(lambda: self._state.keep_run(self.run))
        self._state.__exit__(None, None, None)

    def _attempt(self, action: Callable[[], object]) -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001 - whoever waits is told that it failed, and the rest is put away
            if self._failure is None:
                self._failed(error)
