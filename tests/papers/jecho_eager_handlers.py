"""The programs of JECho's eager handlers: the atmosphere, the viewers of appendix A, and the modulators of section 3.

They are beside their tests, as a program and its handlers would be, because all that a modulator names is sent with it.
"""

import random
from collections.abc import Iterator
from typing import Any

from echoic import (
    Channel,
    Demodulator,
    EagerSink,
    Hub,
    Modulator,
    SharedObject,
    SigningKey,
    Source,
    event,
    float64,
    int32,
    int64,
)
from tests.hub.parties import Collector, eventually

LAYERS, LATITUDES, LONGITUDES = 10, 8, 16
CELLS = LAYERS * LATITUDES * LONGITUDES
DIFFERENCE_THRESHOLD = 0.5
LARGE = "x" * 100_000
CLOGGING = 200  # of them, more than a source may have on its way to a sink
GRID = {"layer": (0, 9), "latitude": (0, 7), "longitude": (0, 15)}
VIEWER = SigningKey.generate()
"""Whose code the hubs of the suppliers run."""


@event
class GridData:
    """What the simulation says about one cell, at one time."""

    time: int32
    layer: int32
    latitude: int32
    longitude: int32
    ozone: float64


def atmosphere(times: int, *, seed: int = 1) -> Iterator[GridData]:
    """Run the simulation: all cells at each time; in a step one of thirty changes by much, the others by a little."""
    chance = random.Random(seed)
    ozone = [chance.uniform(20.0, 40.0) for _ in range(CELLS)]
    for time in range(times):
        for cell in range(CELLS):
            ozone[cell] += chance.choice((-2.0, 2.0)) if time and cell % 30 == time % 30 else 0.001
            layer, place = divmod(cell, LATITUDES * LONGITUDES)
            yield GridData(time, layer, *divmod(place, LONGITUDES), ozone[cell])


# Appendix A


class BBox(SharedObject):
    """The view of a consumer: which cells it wants."""

    start_layer: int = 0
    end_layer: int = LAYERS - 1
    start_lat: int = 0
    end_lat: int = LATITUDES - 1
    start_long: int = 0
    end_long: int = LONGITUDES - 1

    def holds(self, cell: GridData) -> bool:
        """Tell whether a cell is inside the view; for the tests, the modulator of the paper compares by itself."""
        return (
            self.start_layer <= cell.layer <= self.end_layer
            and self.start_lat <= cell.latitude <= self.end_lat
            and self.start_long <= cell.longitude <= self.end_long
        )


class FilterModulator(Modulator):
    """The paper's, line by line."""

    consumer_view: BBox

    def enqueue(self, event: Any) -> None:
        """Queue what is inside the consumer's view."""
        view = self.consumer_view
        if event.layer < view.start_layer or event.layer > view.end_layer:
            return
        if event.latitude < view.start_lat or event.latitude > view.end_lat:
            return
        if event.longitude < view.start_long or event.longitude > view.end_long:
            return
        super().enqueue(event)


class DIFFModulator(Modulator):
    """Appendix B's: data is sent only when a cell has changed significantly since it was sent last."""

    threshold: float

    def start(self) -> None:
        """Begin with nothing known."""
        self._sent: dict[tuple[int, int, int], float] = {}

    def enqueue(self, event: Any) -> None:
        """Queue what has changed."""
        cell = (event.layer, event.latitude, event.longitude)
        if cell not in self._sent or abs(event.ozone - self._sent[cell]) > self.threshold:
            self._sent[cell] = event.ozone
            super().enqueue(event)


class GridViewer:
    """The paper's event consumer: a view, a handler, and what the user's actions do."""

    def __init__(self, channel: Channel) -> None:
        self.current_view = BBox()
        self.seen: list[GridData] = []
        self.handle: EagerSink = channel.subscribe(self.push, modulator=FilterModulator(self.current_view))

    def push(self, event: GridData) -> None:
        """Handle an event: show it."""
        self.seen.append(event)

    def view_changed(self, start_layer: int, end_layer: int) -> None:
        """Modify the view locally, then publish it so that the modulator sees the change too."""
        self.current_view.start_layer = start_layer
        self.current_view.end_layer = end_layer
        self.current_view.publish()

    def mode_changed_to_difference(self) -> None:
        """Reset the pair synchronously: a modulator that does differencing, and no demodulator."""
        self.handle.reset(DIFFModulator(DIFFERENCE_THRESHOLD), None, sync=True)


# Section 3, "eager handlers can be also be used for"


@event
class StockQuote:
    """All that a live feed knows."""

    number: int64
    tag: str
    price: float64
    bid: float64
    ask: float64
    volume: int64
    urgent: int32
    company: str


@event
class Price:
    """All that this consumer wants of it."""

    tag: str
    price: float64


def quote(number: int, *, urgent: bool = False, company: str = "International Business Machines") -> StockQuote:
    return StockQuote(number, f"S{number % 5}", 100.0 + number, 99.0, 101.0, 10 * number, int(urgent), company)


class TagAndPrice(Modulator):
    """Transforms a full quote into one that carries only a tag and a price."""

    output = Price

    def enqueue(self, event: Any) -> None:
        super().enqueue(Price(event.tag, event.price))


class UrgentFirst(Modulator):
    """Traffic control: what is tagged urgent overtakes what waits for the transport."""

    def start(self) -> None:
        self._urgent: list[Any] = []

    def enqueue(self, event: Any) -> None:
        if event.urgent:
            self._urgent.append(event)
        else:
            super().enqueue(event)

    def dequeue(self) -> Any:
        return self._urgent.pop(0) if self._urgent else super().dequeue()

    @property
    def waiting(self) -> int:
        return super().waiting + len(self._urgent)


class Rounded(Modulator):
    """Quality control: a lossy stream, prices in whole numbers and each only when it is another one."""

    step: float

    def start(self) -> None:
        self._last: dict[str, float] = {}

    def enqueue(self, event: Any) -> None:
        event.price = round(event.price / self.step) * self.step
        if self._last.get(event.tag) != event.price:
            self._last[event.tag] = event.price
            super().enqueue(event)


class Named(Modulator):
    """Equal to another with the same `shown`, whatever its `comment`: an `equals()` of its own."""

    shown: int
    comment: str = ""

    def equality(self) -> tuple[object, ...]:
        return (self.shown,)

    def enqueue(self, event: Any) -> None:
        if event.number % self.shown == 0:
            super().enqueue(event)


# Section 4, "Resource Control Interface"


class Archived(Modulator):
    """Asks an archive of the supplier's what to send."""

    requires = ("archive",)

    def enqueue(self, event: Any) -> None:
        if self.services.archive.wants(event.number):
            super().enqueue(event)


class ArchivedByClock(Archived):
    """Needs two services, of which the one may be the environment's and the other the delegate's."""

    requires = ("archive", "clock")

    def enqueue(self, event: Any) -> None:
        event.price = float(self.services.clock.hour())
        super().enqueue(event)


class Archive:
    """Application-level resources of a supplier: every so-many'th quote is in it."""

    def __init__(self, every: int) -> None:
        self._every = every

    def wants(self, number: int) -> bool:
        return number % self._every == 0


class Clock:
    def hour(self) -> int:
        return 12


# Section 4, "Shared Object Interface"


class Quota(SharedObject):
    """State that the replicas of one modulator have in common: how many events are still to be sent by all of them."""

    left: int
    taken: int = 0


class UpTo(Modulator):
    """Sends what the quota allows, and writes at the supplier what it has taken."""

    quota: Quota

    def enqueue(self, event: Any) -> None:
        if self.quota.left > 0:
            self.quota.left = self.quota.left - 1
            self.quota.taken = self.quota.taken + 1
            self.quota.publish()
            super().enqueue(event)


# Section 4, "Intercept Interface"


class Storing(Modulator):
    """Discards, transforms and stores, and emits several when it has enough."""

    several: int

    def start(self) -> None:
        self._stored: list[Any] = []

    def enqueue(self, event: Any) -> None:
        if event.number < 0:
            return
        event.volume = -event.volume
        self._stored.append(event)
        if len(self._stored) == self.several:
            for each in self._stored:
                super().enqueue(each)
            self._stored = []


class LastInFirstOut(Modulator):
    """The order is what `dequeue` says."""

    def start(self) -> None:
        self._waiting: list[Any] = []

    def enqueue(self, event: Any) -> None:
        self._waiting.append(event)

    def dequeue(self) -> Any:
        return self._waiting.pop() if self._waiting else None

    @property
    def waiting(self) -> int:
        return len(self._waiting)


class Heartbeat(Modulator):
    """Pushes data at a rate of its own, whether or not the producer does."""

    period_ns = 2_000_000

    def start(self) -> None:
        self._beats = 0

    def enqueue(self, event: Any) -> None:
        """Discard it."""

    def period(self) -> None:
        self._beats += 1
        super().enqueue(StockQuote(self._beats, "beat", 0.0, 0.0, 0.0, 0, 0, ""))


class Pulling(Demodulator):
    """Stores what arrives, and lets the handler have the newest at a rate of its own."""

    period_ns = 2_000_000

    def start(self) -> None:
        self._newest: Any = None
        self.periods = 0

    def enqueue(self, event: Any) -> None:
        self._newest = event

    def period(self) -> None:
        self.periods += 1
        if self._newest is not None:
            super().enqueue(self._newest)
            self._newest = None


class Paired(Modulator):
    """A protocol between the two halves: the modulator sends differences of prices...

    The first one is the price itself, so a session is nobody else's, and no two are equal.
    """

    session: int

    def start(self) -> None:
        self._last = 0.0

    def enqueue(self, event: Any) -> None:
        event.price, self._last = event.price - self._last, event.price
        super().enqueue(event)


class Summed(Demodulator):
    """... and the demodulator adds them up."""

    def start(self) -> None:
        self._sum = 0.0

    def enqueue(self, event: Any) -> None:
        self._sum += event.price
        event.price = self._sum
        super().enqueue(event)


class Accounting(Demodulator):
    def __init__(self, quota: Quota) -> None:
        self._quota = quota
        self.left: list[int] = []

    def enqueue(self, event: object) -> None:
        self.left.append(self._quota.left)
        super().enqueue(event)


class View(SharedObject):
    """A view whose fields are called after those of the events, as the ready-made window wants them."""

    start_layer: int
    end_layer: int
    start_latitude: int
    end_latitude: int


# How suppliers are used, and watched


def publish(source: Source, numbers: range) -> None:
    for number in numbers:
        source.submit(quote(number))
    source.drain(30)


def numbers_of(seen: Collector) -> list[int]:
    return [item.number for item in seen.events]


def traffic(hub: Hub) -> int:
    """Return how many messages a hub has sent to others."""
    return sum(link.session.sent for link in hub.statistics().links)


def clogged(source: Source, seen: Collector) -> None:
    """Submit more than a consumer that does not handle anything can be sent."""
    seen.gate.clear()
    for number in range(CLOGGING):
        source.submit(quote(number, company=LARGE))
    source.flush()


def view_is(source: Source, viewer: GridViewer, *, inside: int, outside: int) -> None:
    """Wait until a supplier has heard of another view, by what it lets pass."""

    def passes(layer: int) -> bool:
        before = len(viewer.seen)
        source.submit_sync(GridData(-1, layer, 0, 0, 0.0), timeout=30)
        return len(viewer.seen) > before

    eventually(lambda: passes(inside) and not passes(outside), "the supplier has the view")


def takes(source: Source, seen: Collector) -> bool:
    """Whether an event of a supplier passes."""
    before = len(seen.events)
    source.submit_sync(quote(1000), timeout=30)
    return len(seen.events) > before


def saving(handle: EagerSink) -> float:
    [counts] = handle.derivations().values()
    assert counts.bytes_saved == counts.bytes_in - counts.bytes_out
    return 1 - counts.bytes_out / counts.bytes_in
