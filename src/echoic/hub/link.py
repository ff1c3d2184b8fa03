"""One link: the connection to a neighbour, written and read.

*Writing.* Frames wait in the session's outbox. Whoever has put some there calls `pump`, and the first to get hold of
the connection writes all of them in one system call, its own and those of others; nobody waits. When the socket takes
no more, the link is *clogged* and the flusher goes on as soon as it can be written again. So a publisher never blocks
in a system call, whatever the peer does.

*Reading.* A thread of its own reads each connection, or, while somebody waits for the answer to a synchronous event,
that caller itself (*express mode*, JECho section 5): a hand-over between threads costs more than the network does. The
reading thread stays away for a moment after the last such call, so that a series of them has the connection to itself.

A connection from which nothing has come for a while is waited for by `poll`, outside of any lock and for ten seconds at
a time: waiting in `recv` lets the thread look at the clock ten times a second, which with 2,000 idle links took two
thirds of a processor.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from echoic.channels import LANE, RECORD_START, REPLY_BYTES, ArrivalLane, Call, Neighbour
from echoic.errors import EchoicError
from echoic.hub.errands import handling
from echoic.links import SHARED_BYTES_MIN, Connection
from echoic.wire import Buffer, Frame, FrameKind, FrameReader
from echoic.wire.frames import with_checksum

if TYPE_CHECKING:
    from echoic.hub.sink import Sink

__all__ = ["Link", "LinkEvents"]

EXPRESS_LEASE_NS: Final = 2_000_000
EXPRESS_NAP_SECONDS: Final = 0.001
TURN_SECONDS: Final = 0.0005
IDLE_MILLISECONDS: Final = 10_000
PIECES_MAX: Final = 256
LANES_MAX: Final = 65_536  # as many as there may be bindings
WRITE_BYTES_MAX: Final = 1024 * 1024
log: Final = logging.getLogger("echoic.hub")

LoneWay: TypeAlias = "tuple[ArrivalLane, Sink, Callable[[bytes], object]]"
"""The short way for lone synchronous events: how they are taken, whose they are, how they are decoded."""


class LinkEvents(Protocol):
    """What a link tells its hub."""

    def arrived(self, link: "Link", frame: Frame) -> None:
        """Take a frame, in order, in the thread that read it."""

    def called(self, link: "Link", way: LoneWay, data: bytes) -> int:
        """Count a lone synchronous event as arrived; return its call, 0 when it is not one."""

    def reply(self, lane: ArrivalLane, call: int, failures: Mapping[str, str] | None) -> None:
        """Answer a lone synchronous event."""

    def answered(self, link: "Link", data: bytes) -> bool:
        """Take a lone answer, if that is what `data` is; tell whether it was."""

    def broke(self, link: "Link") -> None:
        """Learn that the connection broke."""

    def clogged(self, link: "Link") -> None:
        """Learn that the connection takes no more for the moment."""


class Link:
    """The way to one neighbour. `writing` is held by whoever writes, and while the connection is exchanged."""

    def __init__(self, neighbour: Neighbour, events: LinkEvents) -> None:
        self.neighbour: Final = neighbour
        self.hub: Final = neighbour.id
        self.writing: Final = threading.Lock()
        self.is_clogged = False
        self.attached_ns = 0
        self.lanes: Final[dict[bytes, LoneWay]] = {}
        """The short ways of channels whose synchronous events come by this link, by what their frames begin with."""
        self._outbox = neighbour.session.outbox
        self._events = events
        self._connection: Connection | None = None
        self._pending: list[Buffer] = []
        self._reader = FrameReader()
        self._early: tuple[Connection, FrameReader, Sequence[Frame]] | None = None
        self._reading = threading.Lock()
        self._reading_thread = 0
        self._express = False
        self._express_until_ns = 0
        self._idle = False

    @property
    def connection(self) -> Connection | None:
        """The connection, while there is one."""
        return self._connection

    @property
    def reads_here(self) -> bool:
        """Whether the calling thread is inside a handler of this link, so that it cannot wait for an answer on it."""
        return self._reading_thread != 0 and self._reading_thread == threading.get_ident()

    def attach(self, connection: Connection, reader: FrameReader, early: Sequence[Frame]) -> None:
        """Use a fresh connection from now on, beginning with frames that came right behind the greeting.

        `writing` is held. Whoever reads first takes these frames, be it the thread of the link or one that waits for an
        answer.
        """
        self._early = (connection, reader, early)
        self.attached_ns = time.monotonic_ns()
        previous, self._connection = self._connection, connection
        self._pending = []
        self.is_clogged = False
        if previous is not None:
            previous.close()

    def open_lane(self, way: LoneWay) -> None:
        """Take the synchronous events that follow one of a channel the short way."""
        if len(self.lanes) >= LANES_MAX:
            self.lanes.clear()
        self.lanes[way[0].key] = way

    def freeze(self, seconds: float) -> bool:
        """Close the connection and read no more from it, so that arrivals can be counted; False if a handler hangs.

        A peer that greets again has lost the connection, even if this side has not noticed.
        """
        self.close()
        if not self._reading.acquire(timeout=seconds):
            return False
        self._reading.release()
        return True

    def hold(self, seconds: float) -> bool:
        """Keep everybody from reading until `let_go`; False when a handler does not return in time, or calls this."""
        return not self.reads_here and self._reading.acquire(timeout=max(seconds, 0))

    def let_go(self) -> None:
        """Let others read again."""
        self._reading.release()

    def start(self) -> None:
        """Read the connection in a thread of its own."""
        connection = self._connection
        if connection is not None:
            threading.Thread(
                target=self._read_all,
                args=(connection,),
                name=f"echoic-link-{self.neighbour.address}",
                daemon=True,
            ).start()

    def pump(self, *, unclog: bool = False) -> None:
        """Write what waits, unless somebody else does so or the connection takes no more."""
        if unclog:
            self.is_clogged = False
        elif self._write_lone():
            return
        while (self._outbox or self._pending) and not self.is_clogged:
            if not self.writing.acquire(False):
                return  # whoever writes looks again before it leaves
            connection = self._connection
            if connection is None:
                self.writing.release()
                return
            try:
                if not self._write(connection):
                    self.is_clogged = True
            except OSError:
                self.is_clogged = True
                return  # whoever reads takes what has arrived, a farewell perhaps, and then finds it broken too
            except BaseException:
                connection.close()  # nobody knows how much was written: the next connection tells
                raise
            finally:
                self.writing.release()
            if self.is_clogged:
                self._events.clogged(self)

    def answer(self, call: Call, deadline_ns: int) -> bool:
        """Wait for this link's answer to a call, reading in this thread if nobody else does; False when it is late."""
        hub, waiting, reading = self.hub, call.waiting, self._reading
        while hub in waiting:
            if reading.acquire(False) or reading.acquire(timeout=TURN_SECONDS):
                try:
                    connection = self._connection
                    if connection is None:
                        time.sleep(EXPRESS_NAP_SECONDS)
                    elif hub in waiting:
                        self._reading_from(connection, self._receive)
                finally:
                    reading.release()
            if hub in waiting:
                now = time.monotonic_ns()
                self._express_until_ns = now + EXPRESS_LEASE_NS
                if now >= deadline_ns:
                    return False
        return True

    def pump_express(self) -> None:
        """Write what waits, and keep the reading thread away for a moment: an answer is about to be waited for."""
        self._express = True
        self._express_until_ns = time.monotonic_ns() + EXPRESS_LEASE_NS
        self.pump()

    def finish(self) -> None:
        """Say to the peer that no more comes."""
        with self.writing:
            if self._connection is not None:
                self._connection.finish()

    def close(self) -> None:
        """Close the connection."""
        with self.writing:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _write_lone(self) -> bool:
        """Write the only frame that waits, if it is small and nothing is in its way; tell whether that was all."""
        if not self.writing.acquire(False):
            return False
        connection, outbox = self._connection, self._outbox
        try:
            if len(outbox) != 1 or connection is None or self._pending or connection.checked or self.is_clogged:
                return False
            frame = outbox[0]
            size = len(frame)
            if size >= SHARED_BYTES_MIN:
                return False
            sent = connection.send((frame,))
            if sent:
                del outbox[0]
                if sent < size:
                    self._pending = [memoryview(frame)[sent:]]
        except OSError:
            return False  # the long way meets the same error and tells of it
        except BaseException:
            if connection is not None:
                connection.close()  # as in `pump`
            raise
        finally:
            self.writing.release()
        return sent == size and not outbox

    def _write(self, connection: Connection) -> bool:
        """Write what fits into one call; return whether it was all taken. `writing` is held."""
        pieces, outbox = self._pending, self._outbox
        if not pieces:
            size = 0
            while outbox and len(pieces) < PIECES_MAX and size < WRITE_BYTES_MAX:
                piece: Buffer = outbox.popleft()
                if connection.checked:
                    piece = with_checksum(piece)
                elif len(piece) >= SHARED_BYTES_MIN:
                    piece = connection.share([piece], len(piece)) or piece
                pieces.append(piece)
                size += len(piece)
        else:
            size = sum(map(len, pieces))
        sent = connection.send(pieces)
        self._pending = _rest(pieces, sent) if sent < size else []
        return sent == size

    def _read_all(self, connection: Connection) -> None:
        """Read one connection until it breaks."""
        with self._reading:
            self._reading_from(connection, self._take_early)
        while self._connection is connection:
            if self._express and time.monotonic_ns() < self._express_until_ns:
                time.sleep(EXPRESS_NAP_SECONDS)
                continue
            if (self._express or self._idle) and not connection.readable(IDLE_MILLISECONDS):
                continue
            with self._reading:
                if self._express and not connection.readable(0):
                    continue  # whoever waits for an answer was faster
                if self._connection is connection:
                    self._reading_from(connection, self._receive)

    def _reading_from(self, connection: Connection, read: Callable[[Connection], None]) -> None:
        """Read from a connection, and break it if that fails. `_reading` is held."""
        try:
            read(connection)
        except (OSError, EchoicError) as error:
            self._break(connection, str(error))
        except BaseException:
            self._break(connection, "whoever read it was interrupted")  # what was not counted is sent again
            raise

    def _receive(self, connection: Connection) -> None:
        """Receive once and hand the frames over."""
        if self._early is not None:
            self._take_early(connection)
        reader = self._reader
        idle = reader.idle
        room = None if idle or not connection.direct else reader.room
        if room is not None:
            self._receive_large(connection, room)
            return
        data = connection.receive()
        self._idle = data is None
        if data:
            if idle and self._take_express(data):
                return
            self._hand_over(connection, reader.receive(data))
        elif data is not None:
            self._break(connection, "the peer has closed it")
        else:
            self._reader.receive(b"")  # what is wrong behind the last whole frame is told by the next call

    def _take_early(self, connection: Connection) -> None:
        """Hand over what came right behind the greeting of a connection, once."""
        if self._early is not None and self._early[0] is connection:
            _, self._reader, early = self._early
            self._early = None
            self._hand_over(connection, early)

    def _receive_large(self, connection: Connection, room: memoryview) -> None:
        """Receive the rest of a large frame where it belongs."""
        count = connection.receive_into(room)
        if count:
            self._hand_over(connection, self._reader.filled(count))
        elif count is not None:
            self._break(connection, "the peer has closed it")

    def _take_express(self, data: bytes) -> bool:
        """Take a lone synchronous event or answer the short way; False, and nothing done, when it is neither."""
        if len(data) == REPLY_BYTES:
            return self._events.answered(self, data)
        way = self.lanes.get(data[LANE])
        if way is None or len(data) < RECORD_START:
            return False
        call = self._events.called(self, way, data)
        if not call:
            return False
        lane, sink, decode = way
        self._reading_thread = threading.get_ident()
        handling.depth += 1
        try:
            problem = sink.run_lone(data, decode)
        finally:
            handling.depth -= 1
            self._reading_thread = 0
        self._events.reply(lane, call, {sink.name: problem} if problem else None)
        self.pump()
        return True

    def _hand_over(self, connection: Connection, frames: Sequence[Frame]) -> None:
        self._reading_thread = threading.get_ident()
        handling.depth += 1
        try:
            for frame in frames:
                if frame.kind is FrameKind.SHARED:
                    for inner in FrameReader().receive(connection.unshare(frame.payload)):
                        self._events.arrived(self, inner)
                else:
                    self._events.arrived(self, frame)
        finally:
            handling.depth -= 1
            self._reading_thread = 0

    def _break(self, connection: Connection, reason: str) -> None:
        with self.writing:
            lost = self._connection is connection
            if lost:
                self._connection = None
        connection.close()
        if lost:
            log.info("the connection to %s broke: %s", self.neighbour.address, reason)
            self._events.broke(self)


def _rest(pieces: list[Buffer], sent: int) -> list[Buffer]:
    """Return what was not sent yet."""
    for index, piece in enumerate(pieces):
        if sent < len(piece):
            return [memoryview(piece)[sent:], *pieces[index + 1 :]]
        sent -= len(piece)
    return []
