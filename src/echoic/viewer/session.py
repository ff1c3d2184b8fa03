r"""One tab: the requests it sends, the watches it has open, and what it is sent.

    socket --> requests, one after the other, each in a thread of the crew ----> answers --+
    hub  --on_ready--> (at most every 40 ms) take what has come for all watches -> events --+--> outbox --> socket
    observer, once a second -----------------------------------------------------> pushes --+

Everything but the work on requests happens in the loop that serves all tabs. A tab that does not read is waited for in
one place, where messages are written; meanwhile the outbox drops what is too much. One that asks faster than it may, or
does not read its answers, is read more slowly: that is felt at its end of the connection, and costs nothing here.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar, assert_never

from starlette.websockets import WebSocket, WebSocketDisconnect

from echoic.errors import EchoicError, LimitExceededError, LocalError, MalformedFrameError
from echoic.links import format_address
from echoic.viewer.doorway import visit_of
from echoic.viewer.editing import Desk
from echoic.viewer.granted_desk import GrantedDesk
from echoic.viewer.grants import Grant
from echoic.viewer.guard import Admission, Verdict
from echoic.viewer.messages import (
    Check,
    Close,
    Derive,
    Describe,
    Done,
    Drop,
    Ended,
    Failed,
    Look,
    Mistake,
    Open,
    Opened,
    Page,
    Reply,
    Request,
    Steer,
    Trouble,
    Tune,
    decode_request,
    number_of,
)
from echoic.viewer.outbox import Outbox
from echoic.viewer.watching import Shelf, Watch

if TYPE_CHECKING:
    from echoic.viewer.crew import Crew
    from echoic.viewer.observing import Observed, Observer

__all__ = ["Session"]

WATCHES_MAX: Final = 64
PUSH_SECONDS: Final = 0.04
TEND_SECONDS: Final = 0.25
CROWDED_SECONDS: Final = 0.05
LOOK_AGAIN_SECONDS: Final = 1.0
REQUESTS_PER_SECOND: Final = 60
REQUESTS_AT_ONCE: Final = 120
PARTING_SECONDS: Final = 1.0
RUBBISH_MAX: Final = 16
REASON_CHARACTERS_MAX: Final = 2000
POLICY: Final = 1008
GOING_AWAY: Final = 1001
log: Final = logging.getLogger("echoic.viewer")

Result = TypeVar("Result")


class Session:
    """A tab, for as long as its socket is open."""

    def __init__(
        self,
        websocket: WebSocket,
        desk: Desk,
        shelf: Shelf,
        observer: "Observer",
        crew: "Crew",
        admission: Admission,
    ) -> None:
        self._websocket = websocket
        self._desk = GrantedDesk(desk, admission.grant, _peer_of(websocket))
        self._admission = admission
        self._shelf = shelf
        self._observer = observer
        self._crew = crew
        self._loop = asyncio.get_running_loop()
        self._outbox = Outbox()
        self._page: Page = ""
        self._watches: dict[int, Watch] = {}
        self._outgoing = asyncio.Event()
        self._waking = False
        self._next_push = 0.0
        self._allowance = float(REQUESTS_AT_ONCE)
        self._allowed_at = self._loop.time()
        self._rubbish = 0
        self._gone = False
        self._ended = False

    @property
    def page(self) -> Page:
        """What the tab looks at."""
        return self._page

    @property
    def grant(self) -> Grant:
        """What it may see and do."""
        return self._admission.grant

    @property
    def watches(self) -> Sequence[Watch]:
        """What it has open."""
        return list(self._watches.values())

    @property
    def waiting_bytes(self) -> int:
        """Events that it has yet to read."""
        return self._outbox.events_bytes

    @property
    def crowded(self) -> bool:
        """Whether it does not read its answers, and is not read either until it does."""
        return self._outbox.crowded

    async def run(self) -> None:
        """Serve the tab until its socket closes."""
        await self._websocket.accept()
        self._observer.add(self)
        helpers = [asyncio.create_task(each) for each in (self._send(), self._tend(), self._look_again())]
        try:
            await self._receive()
        except (WebSocketDisconnect, asyncio.CancelledError):
            pass  # the tab has gone, or the viewer ends and does not wait for it
        finally:
            self._observer.remove(self)
            self._close_watches()  # first, since whoever ends the loop may not wait for the rest
            for helper in helpers:
                helper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(*helpers, return_exceptions=True)

    def _close_watches(self) -> None:
        watches, self._watches = list(self._watches.values()), {}
        try:
            self._crew.insist(self.grant.who, lambda: _close_all(watches))
        except RuntimeError:  # the viewer has ended meanwhile, and its pool with it
            _close_all(watches)

    async def part(self) -> None:
        """Tell the tab that the viewer ends."""
        try:
            await self._websocket.close(GOING_AWAY, "the viewer has ended")
        except (RuntimeError, WebSocketDisconnect):
            return  # it is gone already

    def observe(self, observed: "Observed") -> None:
        """Take what was observed, in any thread."""
        self._call(lambda: self._observed(observed))

    def _observed(self, observed: "Observed") -> None:
        self._outbox.push_text("Saved", observed.saved)
        if observed.overview and self._page:
            self._outbox.push_text("Overview", observed.overview)
        for number, reason in observed.ended.items():
            self._end(number, reason)
        self._outgoing.set()

    def _end(self, number: int, reason: str) -> None:
        watch = self._watches.pop(number, None)
        if watch is not None:
            self._outbox.forget(number)
            self._outbox.push(Ended(number, reason), number)
            self._outgoing.set()
            self._crew.insist(self.grant.who, watch.close)

    def _ready(self) -> None:
        """Note that something has come for a watch, in any thread; what comes soon after is pushed with it."""
        if not self._waking:
            self._waking = True
            self._call(self._wait_to_push)

    def _call(self, act: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(act)
        except RuntimeError:
            log.debug("a tab is gone that something has come for")

    def _wait_to_push(self) -> None:
        self._loop.call_later(max(self._next_push - self._loop.time(), 0), self._push)

    def _push(self) -> None:
        self._waking = False  # before anything is taken, so that what comes meanwhile is pushed the next time
        self._next_push = self._loop.time() + PUSH_SECONDS
        outbox = self._outbox
        for number, watch in self._watches.items():
            pieces = watch.take()
            if pieces:
                outbox.put(number, pieces, latest=watch.latest)
            for reason, events in watch.take_lost().items():
                outbox.lose(number, events, reason[:REASON_CHARACTERS_MAX])
            trouble = watch.take_trouble()
            if trouble is not None:
                text = trouble.text[:REASON_CHARACTERS_MAX]
                outbox.push(Trouble(number, text, trouble.suspended), number)
        self._outgoing.set()

    async def _send(self) -> None:
        """Write what waits, whenever something does."""
        websocket, outbox = self._websocket, self._outbox
        try:
            while True:
                await self._outgoing.wait()
                self._outgoing.clear()
                while (message := outbox.next()) is not None:
                    if isinstance(message, str):
                        await websocket.send_text(message)
                    else:
                        await websocket.send_bytes(message)
        except (WebSocketDisconnect, RuntimeError):
            self._gone = True  # whoever receives notices it too, unless it waits until answers are read

    async def _tend(self) -> None:
        """Tell sources how many events are to stand for one, as their channels become faster and slower."""
        while True:
            await asyncio.sleep(TEND_SECONDS)
            now_ns = time.monotonic_ns()
            for watch in self._watches.values():
                every = watch.pace.wanted(now_ns) if not watch.tuning and watch.reduction is not None else None
                if every is not None:
                    watch.tuning = True
                    if self._crew.begin(self.grant.who, partial(_retune, watch, every)) is None:
                        watch.tuning = False  # the next time, perhaps

    async def _look_again(self) -> None:
        """Hang up when whoever looks may look no more, and end what he may see no more."""
        while self._admission.holds():
            for watch in self.watches:
                if not self._desk.may_see(watch.channel):
                    self._end(watch.number, "the right to subscribe was withdrawn")
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
        self._ended = True
        self._close_watches()
        with contextlib.suppress(
            RuntimeError, WebSocketDisconnect, TimeoutError
        ):  # it is gone already, or does not read
            async with asyncio.timeout(PARTING_SECONDS):
                await self._websocket.close(POLICY, Verdict.ENDED.value)
        await asyncio.sleep(PARTING_SECONDS)
        visit = visit_of(self._websocket.scope)
        if visit is not None:
            visit.hang_up()

    async def _receive(self) -> None:
        """Do what the tab asks for, one after the other."""
        while True:
            message = await self._websocket.receive()
            if message["type"] != "websocket.receive":
                return
            await self._wait_for_allowance()
            if self._ended:
                continue  # until it is hung up on
            text = message.get("text")
            try:
                request = decode_request(text if text is not None else "")
            except MalformedFrameError as error:
                self._rubbish += 1
                self._answer(Failed(number_of(text or ""), str(error)[:REASON_CHARACTERS_MAX]))
                if self._rubbish >= RUBBISH_MAX:
                    await self._websocket.close(POLICY, "this is not how the page speaks")
                    return
                continue
            try:
                self._answer(await self._do(request))
            except EchoicError as error:
                self._answer(Failed(request.number, str(error)[:REASON_CHARACTERS_MAX]))

    def _answer(self, reply: Reply) -> None:
        self._outbox.answer(reply)
        self._outgoing.set()

    async def _wait_for_allowance(self) -> None:
        now = self._loop.time()
        self._allowance = min(self._allowance + (now - self._allowed_at) * REQUESTS_PER_SECOND, REQUESTS_AT_ONCE) - 1
        self._allowed_at = now
        if self._allowance < 0:
            await asyncio.sleep(-self._allowance / REQUESTS_PER_SECOND)
        while self._outbox.crowded and not self._gone:
            await asyncio.sleep(CROWDED_SECONDS)

    async def _do(self, request: Request) -> Reply:
        """Do what is asked for.

        Raises:
            EchoicError: It cannot be done.
        """
        match request:
            case Look(number, page):
                self._page = page
                self._observer.hurry()
                return Done(number)
            case Describe(number, channel):
                return await self._elsewhere(lambda: self._desk.describe(channel, number))
            case Open():
                return await self._open(request)
            case Tune(number, watch, values):
                found = self._watch(watch)
                await self._elsewhere(lambda: found.tune(values))
                return Done(number)
            case Close(number, watch):
                closing = self._crew.insist(self.grant.who, self._watch(watch).close)
                del self._watches[watch]
                self._outbox.forget(watch)
                await asyncio.shield(asyncio.wrap_future(closing))  # it is done also if the tab goes meanwhile
                return Done(number)
            case Steer():
                return await self._elsewhere(lambda: self._desk.steer(request))
            case Check():
                return await self._elsewhere(lambda: self._desk.check(request))
            case Derive(number):
                made = await self._elsewhere(lambda: self._desk.derive(request))
                return Failed(number, _summary(made), made) if isinstance(made, list) else made
            case Drop(number, channel):
                id = await self._elsewhere(lambda: self._desk.drop(channel))
                for watch in [number for number, watch in self._watches.items() if watch.channel.id == id]:
                    self._end(watch, "the channel was dropped")
                return Done(number)
            case _:
                assert_never(request)

    async def _open(self, request: Open) -> Opened:
        if request.watch in self._watches:
            raise LocalError(f"watch {request.watch} is open already")
        if len(self._watches) >= WATCHES_MAX:
            raise LimitExceededError(f"{WATCHES_MAX} watches are open, which is the limit of a tab")
        desk, shelf = self._desk, self._shelf
        watch = await self._elsewhere(
            lambda: Watch(request.watch, desk.find(request.channel), request.view, shelf, self._ready),
            lambda late: late.close(),
        )
        self._watches[request.watch] = watch
        self._ready()
        fields = list(watch.reduction.fields) if watch.reduction is not None else []
        return Opened(request.number, request.watch, watch.channel.id, watch.derived.id, watch.code, fields)

    def _watch(self, number: int) -> Watch:
        found = self._watches.get(number)
        if found is None:
            raise LocalError(f"watch {number} is not open")
        return found

    async def _elsewhere(self, work: Callable[[], Result], undo: Callable[[Result], object] | None = None) -> Result:
        """Work in a thread of the crew; `undo` the result if the tab is gone when it is there."""
        while (future := self._crew.begin(self.grant.who, work)) is None:
            await asyncio.sleep(CROWDED_SECONDS)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if undo is not None:
                future.add_done_callback(lambda done: _undone(done, undo))
            raise


def _peer_of(websocket: WebSocket) -> str:
    """Return where a tab is, as an audit has it."""
    client = websocket.client
    return format_address(client.host, client.port) if client is not None else ""


def _undone(done: "Future[Result]", undo: Callable[[Result], object]) -> None:
    try:
        undo(done.result())
    except (EchoicError, CancelledError) as error:
        log.debug("nothing to undo for a tab that is gone: %s", error)


def _close_all(watches: Sequence[Watch]) -> None:
    for watch in watches:
        watch.close()


def _retune(watch: Watch, every: int) -> None:
    try:
        watch.tune({"every": every}, automatic=True)
    except EchoicError as error:
        log.debug("the pace of %s stays as it is: %s", watch.derived.id, error)
    finally:
        watch.tuning = False


def _summary(mistakes: Sequence[Mistake]) -> str:
    first, more = mistakes[0], len(mistakes) - 1
    rest = f" (and {more} more)" if more else ""
    return f"line {first.line}, column {first.column}: {first.message}{rest}"
