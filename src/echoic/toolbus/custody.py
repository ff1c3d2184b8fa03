"""Custody: what the bus does about values that it does not have.

    tool A                     bus                                                tool B
     PUT, VALUE --->  Correspondence: a Reference in the machine's state
                      deliver: PUT with a token for B, DO  ------------------------>
                      streams: words between A and B that cannot reach each other
                      acknowledged: B has it, who sent it may go on    <--- ACK
     <--- FIN         turn: nobody refers to it any more

The machine needs few values itself: those that a script compares, computes with or prints. It asks for them (`Fetch`),
and the reference becomes the value wherever it stands (`Fetched`). Tools that do not understand references are told the
values themselves (`delivery.py`).

A script must not notice where values are. So a tool that leaves in order is let go when nobody needs it any more
(`farewell`): values of it that are still referred to become values of the bus before, and what is on its way from it to
others arrives. One that is lost takes its values with it: `lost-value("...")` is in their place, which a script
can match, and nobody waits for ever.

Counting is what Python does anyway: a `Reference` is one object, however many variables, notes and messages have it,
and when the last of them is gone the registry is told in the same moment. What is on its way is held until it is
acknowledged, so that FIN never comes before ACK.
"""

import dataclasses
import itertools
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from echoic.errors import ClosedError, EncodeError, LimitExceededError, MalformedFrameError
from echoic.scripts.running.messages import Fetched, Input
from echoic.terms import Reference, Value
from echoic.toolbus.holds import Holds
from echoic.toolbus.options import ReferenceState, ValueOptions
from echoic.toolbus.promotion import Promotion
from echoic.toolbus.protocol import LAST, REFERRING, Message, MessageKind
from echoic.toolbus.references.cutting import Cut, lost_value, sign
from echoic.toolbus.references.member import Member, MemberStatistics
from echoic.toolbus.references.registry import BUS, Registry
from echoic.toolbus.references.tokens import KEY_BYTES, resumption_token, token_for
from echoic.toolbus.references.words import (
    PUTS_MAX,
    Put,
    Refusal,
    Registration,
    decode_get,
    encode_finished,
    encode_put,
    encode_refusal,
    encode_registration,
)

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["Correspondent", "Custody"]

EPOCH_BITS: Final = 62
DELIVERIES_MAX: Final = 0x7FFF_FFFF
"""Transactions beyond are those of GETs."""
STREAMS_MAX: Final = 65_536
SETTLE_SECONDS: Final = 0.1
ALARM_SECONDS: Final = 0.01


class Correspondent(Protocol):
    """A tool that understands references, as its bus sees it."""

    @property
    def name(self) -> str:
        """What the script calls it."""

    def say(self, message: Message) -> None:
        """Send a message; does not wait, in any thread."""


@dataclass(slots=True)
class Farewell:
    """A tool that is to end, when its values are not needed from it any more."""

    acts: list[Callable[[], None]]
    deadline: float
    halted: bool

    def do(self) -> None:
        """End it."""
        for act in self.acts:
            act()


class Custody:
    """Knows where values are, and sees that they get to where they are needed."""

    def __init__(self, feed: Callable[[Input], None], wake: Callable[[], None], options: ValueOptions) -> None:
        """Begin with nothing.

        Args:
            feed: Gives the machine an input.
            wake: Lets the loop take a turn; called at any moment by any thread, also by the garbage collector.
            options: How values get to who needs them.
        """
        self.epoch: Final = secrets.randbits(EPOCH_BITS)
        self.enabled = True
        """Whether tools that come in are asked to exchange values; a recording needs to see them all."""
        self._feed = feed
        self._wake = wake
        self._options = options
        self._registry = Registry(on_dead=self._notice)
        self._noticed = False
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._lines: dict[int, Correspondent] = {}
        self._keys: dict[int, bytes] = {BUS: secrets.token_bytes(KEY_BYTES)}
        self._numbers = itertools.cycle(range(1, DELIVERIES_MAX))
        self._holds = Holds(feed)
        self._streams: OrderedDict[int, tuple[int, int]] = OrderedDict()
        self._farewells: dict[int, Farewell] = {}
        self._fetching = 0
        self._alarm: threading.Timer | None = None
        threshold = options.threshold_bytes
        if threshold is not None:
            threshold = min(threshold, options.told_bytes_max)
        registration = Registration(BUS, self.epoch, 0, threshold, self._keys[BUS])
        self.member: Final = Member(
            registration, self._ask, listen=options.listen, identity=options.identity, insecure=options.insecure
        )
        """The bus, as one that has values itself."""

    # Tools that understand references

    def join(self, number: int, line: Correspondent) -> Message:
        """Return what makes a tool one of those that exchange values; it is said before WELCOME."""
        key = secrets.token_bytes(KEY_BYTES)
        with self._lock:
            self._lines[number] = line
            self._keys[number] = key
        lease_ms = round(self._options.lease_seconds * 1000)
        return encode_registration(Registration(number, self.epoch, lease_ms, self._options.threshold_bytes, key))

    def resumption_token(self, number: int) -> str:
        """Return what a tool shows that comes back."""
        with self._lock:
            key = self._keys.get(number, b"")
        return resumption_token(key, number=number, epoch=self.epoch)

    def understands(self, number: int) -> bool:
        """Whether a tool understands references."""
        return number in self._lines

    def lost(self, number: int, reason: str) -> tuple[Fetched, ...]:
        """Return what the machine has to hear because a tool is gone: its values are, too."""
        with self._lock:
            self._farewells.pop(number, None)
            line = self._lines.pop(number, None)
            self._keys.pop(number, None)
            cancelled = self._registry.cancel(number)
            broken = [(request, pair) for request, pair in self._streams.items() if number in pair]
            for request, _ in broken:
                del self._streams[request]
            self._changed.notify_all()
        if line is None:
            return ()
        for request, (asker, owner) in broken:
            said = encode_refusal(Refusal(request, f"tool `{line.name}({number})` is gone"))
            self._say(owner if asker == number else asker, said)
        self.member.lost(number, reason)
        self._holds.end(number, cancelled)
        gone = lost_value(f"tool `{line.name}({number})`, which had it, is gone: {reason}")
        with self._lock:
            return tuple(Fetched(reference, gone) for reference in self._registry.lost(number))

    def deliver(self, number: int, message: Message, hold: int | None) -> bool:
        """Tell a tool something; what is large goes by reference, and is held until the tool has it.

        Returns:
            False, and nothing was said, where it refers to more values than one message may.
        """
        line = self._lines.get(number)
        if line is None:
            return True
        try:
            cut = self.member.part(message.values)
        except (EncodeError, LimitExceededError):  # it goes as it is, if it goes
            cut = Cut(message.values)
        values, references = sign(cut.values)
        if not references:
            line.say(message)
            return True
        if len(references) > PUTS_MAX:
            self.member.release({reference.variable for reference in cut.references})
            return False
        inline = frozenset(cut.inline)
        with self._lock:
            for reference in cut.references:
                self._registry.arrive(BUS, Put.of(reference), time.monotonic_ns())
            delivery = next(self._numbers)
            self._registry.sent(number, delivery, cut.values)
            self._holds.begin(number, delivery, hold)
        for reference in references:
            put = self._put(reference, number, delivery)
            if reference in inline:
                said = self.member.with_part(put, message.values)
            elif reference.owner == BUS and reference.size < self.member.threshold:
                said = self.member.with_value(put)
            else:
                said = iter((encode_put(put),))
            for each in said:
                line.say(each)
        line.say(dataclasses.replace(message, values=values, flags=REFERRING))
        return True

    def acknowledged(self, number: int, delivery: int) -> None:
        """Learn that a tool has everything that it was told."""
        with self._lock:
            known = self._registry.acked(number, delivery)
        if known:
            self._holds.end(number, (delivery,))
            with self._changed:
                self._changed.notify_all()
            self._wake()

    # Values

    def arrive(self, put: Put) -> Reference:
        """Return the reference to a value that somebody keeps.

        Raises:
            MalformedFrameError: It is of another run of the bus.
            LimitExceededError: There are too many.
        """
        if put.epoch != self.epoch:
            raise MalformedFrameError(f"a value of epoch {put.epoch} was put, expected {self.epoch}")
        with self._lock:
            return self._registry.arrive(put.source, put, time.monotonic_ns())

    def adopt(self, put: Put, handle: int) -> Reference:
        """Return the reference to a value that came with its PUT, and is the bus's from then on."""
        variable = self.member.adopt(handle, put.kind)
        return self.arrive(dataclasses.replace(put, source=BUS, variable=variable, path=(), endpoints=()))

    def fetch(self, reference: Reference) -> "Future[Value]":
        """Get a value for this process; `lost-value(...)` if it cannot be had."""
        return self._fetch(reference, lambda fetched: None)  # noqa: ARG005 - whoever asks looks at the future

    def fetch_for_machine(self, reference: Reference) -> None:
        """Get a value for the machine."""
        self._fetch(reference, self._feed)

    def _fetch(self, reference: Reference, then: Callable[[Fetched], None]) -> "Future[Value]":
        """Get a value and do something with it, before it counts as fetched."""
        with self._lock:
            self._fetching += 1
        fetching = self.member.fetch(self._put(reference, BUS, 0))

        def done(future: "Future[Value]") -> None:
            then(Fetched(reference, future.result()))
            with self._changed:
                self._fetching -= 1
                self._changed.notify_all()
            self._wake()

        fetching.add_done_callback(done)
        return fetching

    # Words between tools

    def get(self, number: int, message: Message) -> None:
        """Hand on that a tool wants a value, to who has it.

        Raises:
            MalformedFrameError: Nobody is asked, or in the name of another.
        """
        get = decode_get(message)
        if get.asker != number:
            raise MalformedFrameError(f"tool {number} asks for a value in the name of {get.asker}")
        if get.source == BUS:
            self.member.hear(message, number)
            return
        if get.source not in self._lines:
            self._say(number, encode_refusal(Refusal(get.request, f"tool {get.source}, which had it, is gone")))
            return
        self._begin_stream(get.request, number, get.source)
        self._say(get.source, message)

    def pass_on(self, number: int, message: Message) -> None:
        """Hand on what one of two tools says about a value that goes through the bus."""
        request = message.transaction
        pair = self._streams.get(request)
        if pair is None or number not in pair:
            return  # too late
        asker, owner = pair
        if message.kind is MessageKind.NAK or message.flags & LAST:
            with self._lock:
                self._streams.pop(request, None)
        other = owner if number == asker else asker
        if other == BUS:
            self.member.hear(message, number)
        else:
            self._say(other, message)

    def _begin_stream(self, request: int, asker: int, owner: int) -> None:
        with self._lock:
            self._streams[request] = (asker, owner)
            while len(self._streams) > STREAMS_MAX:
                self._streams.popitem(last=False)

    def _ask(self, number: int, message: Message) -> None:
        """Say for the bus's own member what it has to say to a tool."""
        if message.kind is MessageKind.GET:
            self._begin_stream(message.transaction, BUS, number)
        line = self._lines.get(number)
        if line is None:
            raise ClosedError(f"tool {number} is gone")
        line.say(message)

    def _say(self, number: int, message: Message) -> None:
        line = self._lines.get(number)
        if line is not None:
            line.say(message)
        elif number == BUS:
            self.member.hear(message, BUS)

    # The end of values, and of tools

    def turn(self, *, halted: bool = False) -> None:
        """Tell owners what nobody refers to any more, and let go who is not needed; by the thread of the loop."""
        self._noticed = False
        with self._lock:
            finished = self._registry.finished()
        for released in finished:
            if released.owner == BUS:
                self.member.release(released.variables)
            else:
                for said in encode_finished(released.variables):
                    self._say(released.owner, said)
        if self._farewells:
            self._let_go(halted)

    def farewell(self, number: int, act: Callable[[], None], *, halted: bool) -> None:
        """End a tool by an act, when its values are not needed from it any more, or after a while.

        Args:
            number: The tool.
            act: Ends it; called by the thread of the loop, perhaps before this returns.
            halted: Whether the machine has ended, so that only what is on its way is needed.
        """
        with self._lock:
            needed = self._registry.of(number)
        if not needed or not self._options.promote:
            act()
            return
        with self._lock:
            if number in self._farewells:
                self._farewells[number].acts.append(act)
                return
            self._farewells[number] = Farewell([act], time.monotonic() + self._options.grace_seconds, halted)
        if not halted:
            Promotion(needed, self.fetch, self._promoted).start()
        self._set_alarm(self._options.grace_seconds)
        if halted:
            self._let_go(halted)

    def _promoted(self, every: list[Fetched]) -> None:
        for fetched in every:
            self._feed(fetched)

    def settle(self, act: Callable[[], None]) -> None:
        """Wait until nothing is on its way and everybody who is to end may, after the machine has halted.

        Args:
            act: Does what waits for values, as far as they are there.
        """
        deadline = time.monotonic() + self._options.grace_seconds
        while True:
            act()
            self.turn(halted=True)
            with self._changed:
                left = deadline - time.monotonic()
                if not self.busy or left <= 0:
                    break
                self._changed.wait(min(left, SETTLE_SECONDS))
        with self._lock:
            left_over = list(self._farewells.values())
            self._farewells.clear()
        for farewell in left_over:
            farewell.do()

    def _let_go(self, halted: bool) -> None:
        with self._lock:
            ready = [number for number, each in self._farewells.items() if self._is_free(number, each, halted)]
            leaving = [self._farewells.pop(number) for number in ready]
            deadlines = [each.deadline for each in self._farewells.values()]
        if deadlines:
            self._set_alarm(max(0.0, min(deadlines) - time.monotonic()) + ALARM_SECONDS)
        for farewell in leaving:
            farewell.do()

    def _set_alarm(self, seconds: float) -> None:
        """Look again after some time, if that is not to be done already."""
        with self._lock:
            if self._alarm is not None:
                return
            self._alarm = threading.Timer(seconds, self._ring)
            self._alarm.daemon = True
            self._alarm.start()

    def _ring(self) -> None:
        with self._lock:
            self._alarm = None
        self._wake()

    def _is_free(self, number: int, farewell: Farewell, halted: bool) -> bool:
        if time.monotonic() >= farewell.deadline:
            return True
        if halted or farewell.halted:
            return not self._registry.in_flight_of(number)
        return not self._registry.of(number)

    def _notice(self) -> None:
        """Learn that a reference is gone, at any moment in any thread: nothing but a sign for the loop."""
        if not self._noticed:
            self._noticed = True
            self._wake()

    # What is known

    @property
    def leased(self) -> bool:
        """Whether tools that were cut off may come back."""
        return self._options.lease_seconds > 0

    @property
    def busy(self) -> bool:
        """Whether values are on their way."""
        return bool(self._holds or self._fetching or self._farewells)

    def states(
        self, holders: Mapping[Reference, tuple[str, ...]], names: Mapping[int, str]
    ) -> tuple[ReferenceState, ...]:
        """Return what is referred to, for people.

        Args:
            holders: Who in the machine refers to it.
            names: Of the tools, by number.
        """
        states = []
        with self._lock:
            entries = self._registry.entries(time.monotonic_ns())
        held: dict[tuple[int, int], list[str]] = {}
        for reference, places in holders.items():
            held.setdefault((reference.owner, reference.variable), []).extend(places)
        for entry in entries:
            owner = "bus" if entry.owner == BUS else names.get(entry.owner, f"tool({entry.owner})")
            asked = tuple(names.get(number, f"tool({number})") for number in entry.in_flight)
            who = tuple(held.get((entry.owner, entry.variable), ()))
            states.append(
                ReferenceState(owner, entry.variable, entry.signature, entry.size, entry.age_ns / 1e9, who, asked)
            )
        return tuple(states)

    @property
    def references(self) -> int:
        """How many values are referred to."""
        with self._lock:
            return self._registry.statistics().variables

    def statistics(self) -> MemberStatistics:
        """Return what the bus itself has fetched and served."""
        return self.member.statistics()

    def close(self) -> None:
        """Forget everything."""
        with self._lock:
            self._lines.clear()
            self._streams.clear()
        self.member.close()

    def _put(self, reference: Reference, asker: int, transaction: int) -> Put:
        """Return what tells a tool where a value is, with the right to fetch it."""
        owner = reference.owner
        key = self._keys.get(owner, b"")
        token = token_for(
            key, owner=owner, variable=reference.variable, path=reference.path, asker=asker, epoch=self.epoch
        )
        return Put.of(reference, transaction, self._endpoints_of(owner, reference.variable), token)

    def _endpoints_of(self, owner: int, variable: int) -> tuple[str, ...]:
        if owner == BUS:
            return self.member.endpoints
        with self._lock:
            return self._registry.endpoints(owner, variable)
