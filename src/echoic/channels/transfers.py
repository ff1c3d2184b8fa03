"""Large events between two hubs: those that the neighbour fetches, and those that are fetched from it.

    sender                                  receiver
    LARGE 7, 40 MB, channel 3   ----->      holds what follows on channel 3
                                <-----      MORE 7, up to 2 MB
    CHUNK 7, 0 .. 256 KB        ----->
    EVENTS, channel 5           ----->      taken at once
    CHUNK 7 ...                 ----->
                                <-----      MORE 7, up to 3 MB
    ...                                     it is whole: the frame that it stands for, then what was held
                                <-----      RELEASE 7

*In order.* One event at a time is fetched over a link, in the order in which they were announced. What comes behind one
on its channel is held, be it events or notices about the channel, and taken one by one when it is whole, as if each had
arrived just then. So nobody above sees any difference. Other channels wait for no more than the window.

*Broken connections.* All of these are frames of the session, which counts them and sends them again, so nothing needs
to be begun anew. A neighbour that is given up takes its transfers with it.

*Who does not keep to it.* What is asked for is what may come, byte by byte, and nobody is sent more than it has asked
for, nor may it ask for much at once. What is held has a limit, and what arrives lies in a storage that has one. An
event for which there is no room here is missed, and told to be.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Final

from echoic.channels.arrivals import decline
from echoic.channels.express import encode_reply
from echoic.channels.large import LARGE_HEAD, Assembly, Large
from echoic.channels.member import CALL_HEADER, EVENT_HEADER
from echoic.channels.messages import Bind, Cut, Gap, Placed, Turn, decode_message, encode_message
from echoic.errors import LimitExceededError, MalformedFrameError
from echoic.wire import Frame, FrameKind
from echoic.wire.frames import KINDS

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator
    from echoic.channels.neighbour import Neighbour

__all__ = ["HANDLE", "PART", "TRANSFERS_FROM", "Transfers", "go_on", "receive_transfer"]

TRANSFERS_FROM: Final = FrameKind.LARGE  # the kinds from here on; asked of every frame, so a comparison of numbers
HEADS: Final = {FrameKind.EVENTS: EVENT_HEADER, FrameKind.CALLS: CALL_HEADER}
PART: Final = Struct("<QQ")
HANDLE: Final = Struct("<Q")
ANNOUNCED_MAX: Final = 4096
NONE: Final = -1
HELD_BYTES_MAX: Final = 256 * 1024 * 1024
HELD_FRAMES_MAX: Final = 65_536
MORE_BYTES_MAX: Final = 8 * 1024 * 1024


class Departing:
    """An event that the neighbour fetches, and how much of it was sent."""

    __slots__ = ("large", "sent")

    def __init__(self, large: Large) -> None:
        self.large: Final = large
        self.sent = 0


class Arriving:
    """An event that is fetched from the neighbour, or will be."""

    __slots__ = (
        "_assembly",
        "arrived",
        "asked",
        "begun",
        "channel",
        "events",
        "handle",
        "head",
        "kind",
        "lost",
        "size",
    )

    def __init__(self, frame: Frame) -> None:
        """Take the frame that announces it.

        Raises:
            MalformedFrameError: It does not.
        """
        payload = frame.payload
        if len(payload) < LARGE_HEAD.size:
            raise MalformedFrameError(f"a large event is announced by {len(payload)} bytes, needs {LARGE_HEAD.size}")
        self.handle, self.size, kind, self.events = LARGE_HEAD.unpack_from(payload)
        self.head: Final = bytes(payload[LARGE_HEAD.size :])
        self.kind: Final = KINDS.get(kind, FrameKind.LARGE)
        expected = HEADS.get(self.kind)
        if expected is None or len(self.head) != expected.size or not self.events or not self.size:
            raise MalformedFrameError(
                f"a large event is announced as {self.events} events of kind {kind} in {self.size} bytes, behind a "
                f"head of {len(self.head)}"
            )
        self.channel: Final = frame.channel
        self.asked = self.arrived = 0
        self.begun = False
        self.lost = ""
        """Why it cannot be had."""
        self._assembly: Assembly | None = None

    @property
    def call(self) -> int:
        """The number of a synchronous event, 0 if it is none."""
        return int(CALL_HEADER.unpack(self.head)[2]) if self.kind is FrameKind.CALLS else 0

    def begin(self, core: "Concentrator") -> None:
        """Set room aside for it, or note that there is none."""
        self.begun = True
        try:
            self._assembly = core.storage.receive(len(self.head) + self.size)
            self._assembly.write(self.head)
        except LimitExceededError as error:
            self._lose(error)

    def take(self, piece: memoryview) -> None:
        """Take its next bytes."""
        self.arrived += len(piece)
        try:
            if self._assembly is not None:
                self._assembly.write(piece)
        except LimitExceededError as error:
            self._lose(error)

    def frame(self) -> Frame:
        """Return the frame that it stood for, now that it is whole, or else what tells that its events are missing."""
        try:
            if self._assembly is not None:
                whole, self._assembly = self._assembly.whole(), None
                return Frame(self.kind, self.channel, whole)
        except LimitExceededError as error:
            self._lose(error)
        first, source = EVENT_HEADER.unpack_from(self.head)
        gap = Gap(self.channel, source, first, first + self.events - 1, self.lost)
        return Frame(FrameKind.CONTROL, 0, memoryview(encode_message(0, gap)))

    def abandon(self) -> None:
        """Forget what has arrived."""
        if self._assembly is not None:
            self._assembly.abandon()
            self._assembly = None

    def _lose(self, error: LimitExceededError) -> None:
        self.abandon()
        self.lost = f"there is no room for an event of {self.size} bytes: {error}"


class Transfers:
    """What is fetched over one link, in both directions.

    `ripe` are frames that can be taken: an event that is whole, and what was held behind it. Whoever takes frames must
    take these before the next one that arrives.
    """

    __slots__ = ("_held_bytes", "_held_frames", "announced", "arriving", "departing", "held", "ripe")

    def __init__(self) -> None:
        self.departing: Final[dict[int, Departing]] = {}
        self.arriving: Final[deque[Arriving]] = deque()
        self.announced: Final[set[int]] = set()
        self.held: Final[dict[int, deque[Arriving | Frame]]] = {}
        self.ripe: Final[deque[Arriving | Frame]] = deque()
        self._held_bytes = self._held_frames = 0

    def offer(self, large: Large) -> None:
        """Let the neighbour fetch an event, of which it is about to be told."""
        self.departing[large.handle] = Departing(large)

    def next_ripe(self) -> Callable[[], Frame] | None:
        """Return what gives the next of the frames that can be taken; that may take a while, since it may be large."""
        if not self.ripe:
            return None
        ripened = self.ripe.popleft()
        return ripened.frame if isinstance(ripened, Arriving) else partial(_itself, ripened)

    def keep_back(self, frame: Frame) -> bool:
        """Hold a frame if it is about a channel of which an event is being fetched; tell whether it is.

        Raises:
            LimitExceededError: Too much is held already.
            MalformedFrameError: It cannot be read.
        """
        queue = self.held.get(_channel_of(frame))
        if queue is None:
            return False
        self._held_frames += 1
        self._held_bytes += len(frame.payload)
        if self._held_frames > HELD_FRAMES_MAX or self._held_bytes > HELD_BYTES_MAX:
            raise LimitExceededError(
                f"{self._held_frames} frames of {self._held_bytes} bytes wait for large events of their channels, "
                f"limit is {HELD_FRAMES_MAX} of {HELD_BYTES_MAX}"
            )
        queue.append(Frame(frame.kind, frame.channel, memoryview(bytes(frame.payload))))  # it may lie in a larger piece
        return True

    def let_through(self, arriving: Arriving, *, wanted: bool) -> None:
        """Let an event be taken, and what was held behind it; if it is not wanted, only that."""
        queue = self.held[arriving.channel]
        # Invariant: it is the first in its queue, since all are fetched in the order in which they came.
        queue.popleft()
        if wanted:
            self.ripe.append(arriving)
        else:
            arriving.abandon()
        while queue and isinstance(queue[0], Frame):
            frame = queue.popleft()
            self.ripe.append(frame)
            if isinstance(frame, Frame):
                self._held_frames -= 1
                self._held_bytes -= len(frame.payload)
        if not queue:
            del self.held[arriving.channel]

    def clear(self) -> None:
        """Forget everything: the neighbour is given up."""
        for arriving in (*self.arriving, *(item for item in self.ripe if isinstance(item, Arriving))):
            arriving.abandon()
        for part in (self.departing, self.arriving, self.announced, self.held, self.ripe):
            part.clear()


def _itself(frame: Frame) -> Frame:
    return frame


def receive_transfer(core: "Concentrator", neighbour: "Neighbour", frame: Frame) -> None:
    """Take a frame that is about large events.

    Raises:
        RemoteError: The neighbour broke a rule.
    """
    if frame.kind is FrameKind.LARGE:
        _announced(core, neighbour, Arriving(frame))
    elif frame.kind is FrameKind.CHUNK:
        _arrived(core, neighbour, frame)
    elif frame.kind is FrameKind.MORE:
        _asked(core, neighbour, frame)
    else:
        _released(neighbour, frame)


def _announced(core: "Concentrator", neighbour: "Neighbour", arriving: Arriving) -> None:
    transfers, channel = neighbour.transfers, arriving.channel
    total = len(arriving.head) + arriving.size
    if total > core.rules.event_bytes_max:
        raise LimitExceededError(f"peer announced an event of {total} bytes, limit is {core.rules.event_bytes_max}")
    if len(transfers.arriving) >= ANNOUNCED_MAX:
        raise LimitExceededError(f"peer announced more than {ANNOUNCED_MAX} events that have yet to be fetched")
    if arriving.handle in transfers.announced:
        raise MalformedFrameError(f"peer announced the event {arriving.handle} twice")
    if channel not in transfers.held:
        binding = neighbour.bindings.get(channel)
        if binding is None:
            raise MalformedFrameError(f"the peer sends events of its channel {channel}, which it has not bound")
        neighbour.bindings[channel] = binding.renewed()  # lone events must not overtake it on their short way
    transfers.announced.add(arriving.handle)
    transfers.arriving.append(arriving)
    transfers.held.setdefault(channel, deque()).append(arriving)
    go_on(core, neighbour)


def _arrived(core: "Concentrator", neighbour: "Neighbour", frame: Frame) -> None:
    payload, transfers = frame.payload, neighbour.transfers
    if len(payload) <= PART.size:
        raise MalformedFrameError(f"a part of a large event has {len(payload)} bytes, its header {PART.size}")
    handle, offset = PART.unpack_from(payload)
    arriving = transfers.arriving[0] if transfers.arriving else None
    if arriving is None or arriving.handle != handle:
        raise MalformedFrameError(f"a part of the event {handle} came, which is not being fetched")
    piece = payload[PART.size :]
    if offset != arriving.arrived or offset + len(piece) > arriving.asked:
        raise MalformedFrameError(
            f"bytes {offset} to {offset + len(piece)} of the event {handle} came, expected those from "
            f"{arriving.arrived} to {arriving.asked}"
        )
    arriving.take(piece)
    go_on(core, neighbour)


def go_on(core: "Concentrator", neighbour: "Neighbour") -> None:
    """Ask for more of the event that is being fetched, or let it through and begin with the next.

    The next is not begun before what could be taken was, which needs room and may say who wants what.
    """
    transfers = neighbour.transfers
    while transfers.arriving and not transfers.ripe:
        arriving = transfers.arriving[0]
        if not arriving.begun:
            arriving.begin(core)
        wanted = _is_wanted(neighbour, arriving)
        if arriving.arrived < arriving.size and wanted and not arriving.lost:
            _ask(core, neighbour, arriving)
            return
        if arriving.arrived < arriving.asked:
            return  # what was asked for comes, and nothing more
        transfers.arriving.popleft()
        transfers.announced.discard(arriving.handle)
        core.post(neighbour.id, FrameKind.RELEASE, HANDLE.pack(arriving.handle))
        if arriving.call and (arriving.lost or not wanted):
            failures = _failures(neighbour, arriving) if wanted else {}
            core.send(neighbour.id, encode_reply(arriving.channel, arriving.call, failures))
        transfers.let_through(arriving, wanted=wanted)
        if not wanted:
            decline(core, neighbour, neighbour.bindings[arriving.channel])


def _failures(neighbour: "Neighbour", arriving: Arriving) -> dict[str, str]:
    """Return which sinks here cannot get a synchronous event, and why."""
    binding = neighbour.bindings.get(arriving.channel)
    sink = binding.member.sink if binding is not None and binding.member is not None else None
    return dict.fromkeys((sink.sinks if sink is not None else ()) or ("",), arriving.lost)


def _ask(core: "Concentrator", neighbour: "Neighbour", arriving: Arriving) -> None:
    window = core.rules.window_bytes
    if arriving.asked < arriving.size and arriving.asked - arriving.arrived <= window // 2:
        arriving.asked = min(arriving.size, arriving.arrived + window)
        core.post(neighbour.id, FrameKind.MORE, PART.pack(arriving.handle, arriving.asked))


def _is_wanted(neighbour: "Neighbour", arriving: Arriving) -> bool:
    """Whether there are sinks here for an event; all that was said of its channel before has been taken."""
    binding = neighbour.bindings.get(arriving.channel)
    return binding is None or binding.wanted


def _asked(core: "Concentrator", neighbour: "Neighbour", frame: Frame) -> None:
    if len(frame.payload) != PART.size:
        raise MalformedFrameError(f"a peer asks for more by {len(frame.payload)} bytes, expected {PART.size}")
    handle, end = PART.unpack(frame.payload)
    departing = neighbour.transfers.departing.get(handle)
    if departing is None:
        raise MalformedFrameError(f"the peer asks for the event {handle}, of which it was not told")
    large, sent = departing.large, departing.sent
    if not sent < end <= large.size or end - sent > MORE_BYTES_MAX:
        raise MalformedFrameError(
            f"the peer asks for the event {handle} up to byte {end} of {large.size}, it has {sent}, and may ask for "
            f"{MORE_BYTES_MAX} at once"
        )
    while sent < end:
        stop = min(end, sent + core.rules.chunk_bytes)
        core.post(neighbour.id, FrameKind.CHUNK, PART.pack(handle, sent), *large.read(sent, stop))
        sent = stop
    departing.sent = end


def _released(neighbour: "Neighbour", frame: Frame) -> None:
    if len(frame.payload) != HANDLE.size:
        raise MalformedFrameError(f"a peer releases an event by {len(frame.payload)} bytes, expected {HANDLE.size}")
    handle = HANDLE.unpack(frame.payload)[0]
    if neighbour.transfers.departing.pop(handle, None) is None:
        raise MalformedFrameError(f"the peer releases the event {handle}, of which it was not told, or twice")


def _channel_of(frame: Frame) -> int:
    """Return the number of the channel that a frame is about, -1 if it is about none.

    Raises:
        MalformedFrameError: It cannot be read.
    """
    if frame.kind in HEADS:
        return frame.channel
    if frame.kind is FrameKind.CONTROL:
        envelope = decode_message(frame.payload)
        if not envelope.reply and isinstance(envelope.message, Bind | Cut | Gap | Placed | Turn):
            return envelope.message.number
    return NONE
