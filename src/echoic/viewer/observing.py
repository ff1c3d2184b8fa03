"""What is told to tabs once a second: what derivations save, how everything gets on, and which channels have ended.

One thread asks for all tabs, and only while there are some. The name server knows the channels, hubs count what goes
through them; `echoic.monitor` adds it up. Groups and pipelines are listened to from the first tab on, so that there is
something to see when somebody looks at them; buses are asked while somebody does.

What derivations had saved that have ended stays in the sum of bytes saved. A derivation may make more bytes than it is
given, as an envelope of single small events does: that counts against the others, and the sum may be below 0.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from echoic.channels import ChannelEntry, DerivationCounts
from echoic.errors import EchoicError
from echoic.hub import Hub
from echoic.monitor import Load, Pipelines, Sample, ask_all, load_between, take_sample
from echoic.viewer.grants import Grant
from echoic.viewer.messages import Overview, Page, Saved, WatchLoad, encode
from echoic.viewer.visible import visible_load, visible_overview

if TYPE_CHECKING:
    from echoic.viewer.watching import Watch

__all__ = ["Observed", "Observer", "Tab"]

PERIOD_SECONDS: Final = 1.0
MISSES_MAX: Final = 2
FOLLOWED: Final[tuple[Page, ...]] = ("groups", "pipelines")
CLOSE_SECONDS: Final = 5.0
SAVED_MAX: Final = 1000  # derivations that have ended, or whose hub was late to report
log: Final = logging.getLogger("echoic.viewer")


class Observed(msgspec.Struct, frozen=True):
    """What a tab is told: texts of `Saved` and `Overview`, and by watch why its channel has ended."""

    saved: str
    overview: str
    ended: dict[int, str]


class Tab(Protocol):
    """Who is told. All of it is called by the observer's thread."""

    @property
    def page(self) -> Page:
        """What it looks at."""

    @property
    def grant(self) -> Grant:
        """What it may see."""

    @property
    def watches(self) -> "Sequence[Watch]":
        """What it has open."""

    def observe(self, observed: Observed) -> None:
        """Take what was observed."""


class Overlook(Protocol):
    """Something that can be looked at as a whole."""

    def look(self) -> object:
        """Return how it gets on, as plain values or Structs."""

    def follow(self, known: Iterable[ChannelEntry]) -> object:
        """Take note of the channels that there are."""

    def close(self) -> object:
        """End it."""


class Observer:
    """Asks once a second, while there are tabs.

    Args:
        hub: Who asks.
    """

    def __init__(self, hub: Hub) -> None:
        self.failures = 0
        """How often something went wrong that should not have."""
        self._hub = hub
        self._pipelines = Pipelines(hub)
        self._tabs: tuple[Tab, ...] = ()
        self._overlooks: dict[Page, Overlook] = {}
        self._before: Sample | None = None
        self._ended_bytes = 0
        self._saved: dict[tuple[str, str, str], tuple[int, int]] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="echoic-viewer-observer", daemon=True)
        self._thread.start()

    def add(self, tab: Tab) -> None:
        """Tell a tab, from the next time on."""
        with self._changed:
            self._tabs = (*self._tabs, tab)
            self._changed.notify_all()

    def remove(self, tab: Tab) -> None:
        """Tell a tab no more."""
        with self._changed:
            self._tabs = tuple(other for other in self._tabs if other is not tab)

    def hurry(self) -> None:
        """Do not wait for the second to be over: somebody looks at another page."""
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(CLOSE_SECONDS)
        self._leave()

    def _run(self) -> None:
        while self._wait():
            try:
                self._observe()
            except EchoicError as error:
                if not self._hub.closed:
                    log.warning("the channels could not be surveyed: %s", error)
            except Exception:  # whatever it is, tabs must not be left with what was true a second before
                self.failures += 1
                log.exception("the channels could not be surveyed")

    def _wait(self) -> bool:
        """Wait until it is time to ask; tell whether to go on."""
        with self._changed:
            if self._tabs:
                self._changed.wait(PERIOD_SECONDS)
            else:
                self._before = None
                self._changed.wait_for(lambda: self._closed or self._tabs)
            return not self._closed

    def _observe(self) -> None:
        """Ask everybody, and tell every tab."""
        sample = take_sample(self._hub, self._pipelines, self._before)
        before, self._before = self._before or sample, sample
        load = load_between(before, sample)
        counts: dict[str, list[DerivationCounts]] = {}
        for each in sample.derivations.values():
            counts.setdefault(each.id, []).append(each)
        total = self._total(sample)
        overviews: dict[tuple[Page, Grant], str] = {}
        looks: dict[Page, object] = {}
        tabs = self._tabs
        for page in FOLLOWED:
            self._overlook(page).follow(sample.known)
        for tab in tabs:
            page, grant = tab.page, tab.grant
            if page not in looks and page not in ("", "channels"):
                looks[page] = self._overlook(page).look()
            if page and (page, grant) not in overviews:
                overviews[page, grant] = _overview(page, visible_load(load, grant), looks.get(page), grant)
        present = self._present(sample, [watch for tab in tabs for watch in tab.watches])
        for tab in tabs:
            watches = tab.watches
            loads = {watch.number: _watch_load(counts.get(watch.derived.id, ())) for watch in watches}
            saved = Saved(total, load.saved_per_second, _share(sample), loads)
            if not tab.grant.whole:
                saved = _own_saving(loads)
            ended = {watch.number: reason for watch in watches if (reason := present(watch))}
            tab.observe(Observed(encode(saved), overviews.get((tab.page, tab.grant), ""), ended))

    def _total(self, sample: Sample) -> int:
        """Return what was saved by all derivations, those too that have ended or begun anew."""
        for key, counts in sample.derivations.items():
            saved, events = self._saved.get(key, (0, 0))
            if counts.events_in < events:  # and not by bytes, which may become fewer
                self._ended_bytes += saved
            self._saved[key] = counts.bytes_saved, counts.events_in
        for key in [key for key in self._saved if key not in sample.derivations][:-SAVED_MAX]:
            self._ended_bytes += self._saved.pop(key)[0]
        return self._ended_bytes + sum(saved for saved, _ in self._saved.values())

    def _present(self, sample: Sample, watches: "Sequence[Watch]") -> "Callable[[Watch], str]":
        """Return a function that says why the channel of a watch has ended, "" if it has not."""
        ids = {entry.id for entry in sample.known}
        names = {entry.name: entry.id for entry in sample.known}
        unlisted = {watch.channel.id for watch in watches} - ids
        found = ask_all(sorted(unlisted), self._hub.describe)

        def reason(watch: "Watch") -> str:
            id = watch.channel.id
            if watch.ended:
                return "the sources send no more for it"
            if id in ids or id in found:
                watch.misses = 0
                return ""
            watch.misses += 1
            if names.get(watch.channel.name, id) != id:
                return f"'{watch.channel.name}' is another channel by now"
            return f"nobody knows '{watch.channel.name}' any more" if watch.misses >= MISSES_MAX else ""

        return reason

    def _overlook(self, page: Page) -> Overlook:
        """Return what looks at a page's things, which is made when it is first needed."""
        overlook = self._overlooks.get(page)
        if overlook is None:
            overlook = self._overlooks[page] = _overlook(page, self._hub, self._pipelines)
        return overlook

    def _leave(self) -> None:
        for overlook in list(self._overlooks.values()):
            overlook.close()
        self._pipelines.follow([])


def _overlook(page: Page, hub: Hub, pipelines: Pipelines) -> Overlook:
    """Return what looks at groups, buses or pipelines; imported here, since a program may have nothing of the kind."""
    if page == "groups":
        from echoic.monitor.group_history import GroupsOverview

        return GroupsOverview(hub)
    if page == "bus":
        from echoic.monitor.buses import BusesOverview

        return BusesOverview()
    from echoic.monitor.pipeline_history import PipelinesOverview

    return PipelinesOverview(hub, pipelines)


def _overview(page: Page, load: Load, look: object, grant: Grant) -> str:
    """Return an overview as text, made once for all tabs that may see the same."""
    if page != "channels":
        return encode(Overview(page, visible_overview(look, grant)))
    told = {
        "at": load.time,
        "channels": load.channels,
        "derivations": load.derivations,
        "saved_bytes": load.saved_bytes,
        "saved_per_second": load.saved_per_second,
        "names": load.names,
        "lost": load.lost,
    }
    return encode(Overview(page, told))


def _own_saving(loads: Mapping[int, WatchLoad]) -> Saved:
    """Return what the derivations of a tab save, for one that may not know of others."""
    saved = sum(each.bytes_saved for each in loads.values())
    sent = sum(each.bytes_out for each in loads.values())
    return Saved(saved, 0.0, saved / (saved + sent) if saved + sent else 0.0, dict(loads))


def _share(sample: Sample) -> float:
    """Return what share of the bytes that would have been sent was saved."""
    saved = sum(each.bytes_saved for each in sample.derivations.values())
    sent = sum(each.bytes_out for each in sample.derivations.values())
    return saved / (saved + sent) if saved + sent else 0.0


def _watch_load(hubs: Iterable[DerivationCounts]) -> WatchLoad:
    hubs = list(hubs)
    events = sum(each.events_in for each in hubs)
    return WatchLoad(
        bytes_in=sum(each.bytes_in for each in hubs),
        bytes_out=sum(each.bytes_out for each in hubs),
        bytes_saved=sum(each.bytes_saved for each in hubs),
        events_in=events,
        events_out=sum(each.events_out for each in hubs),
        ns_per_event=sum(each.busy_ns for each in hubs) / events if events else 0.0,
    )
