"""What goes through channels, for Prometheus: counters that exist anyway, read when somebody scrapes.

    with echoic.Hub() as hub, start_metrics(hub) as metrics:
        print(metrics.url)                                        http://127.0.0.1:9464/metrics

Publishing costs nothing more than without: hubs count all the time (a slot, 70 ns for a batch), and a scrape adds up. A
counter of OpenTelemetry would cost 14 us for each event.

`HubCollector` tells what one hub has counted; `SystemCollector`, which `echoic metrics` serves, asks all hubs that take
part in any channel the name server knows. Both give the same series, so that a dashboard does not care:

    echoic_channel_events_total{hub="127.0.0.1:7401",channel="trades",manager="127.0.0.1:7401"} 12000.0

`hub` is where it was counted, `manager` the hub that manages the channel: names are unique only there. The sum over
`hub` is what all sources of a channel have submitted. A hub that is started again begins at 0, which Prometheus knows.

Names come from other processes, and everybody may derive channels: prometheus-client escapes the values of labels, and
at most `SERIES_MAX` channels and derivations are told, the first by name; `echoic_series_left_out` says how many are
not. Scrapes within `KEPT_SECONDS` share one look, so that many of them cost hubs no more than one.

What serves is the HTTP server of replicated services, and not prometheus-client's own, which has a thread for whoever
connects, waits for ever, and shakes hands by TLS in the thread that accepts: one stranger who says nothing would be the
last one that is served.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, Self, TypeVar
from urllib.parse import urlencode

import msgspec
from prometheus_client import CollectorRegistry, generate_latest, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from echoic.channels import ChannelCounts, DerivationCounts
from echoic.errors import AddressError, UnreachableError
from echoic.hub import Hub
from echoic.interop.exposure import Certificate, exposed
from echoic.links import is_loopback, parse_address, serving_context
from echoic.monitor import ask_all, browse, manager_of
from echoic.replicas.http_server import Answer, HttpServer, Request

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

__all__ = [
    "LISTEN_DEFAULT",
    "Counted",
    "CountsCollector",
    "HubCollector",
    "MetricsServer",
    "SystemCollector",
    "exposition",
    "metrics_app",
    "serve_metrics",
    "start_metrics",
]

Labels = TypeVar("Labels", bound=tuple[str, ...])
Counts = TypeVar("Counts", ChannelCounts, DerivationCounts)

LISTEN_DEFAULT: Final = "127.0.0.1:9464"
SERIES_MAX: Final = 5000
KEPT_SECONDS: Final = 1.0
CONNECTIONS_MAX: Final = 64

CHANNEL_LABELS: Final = ("hub", "channel", "manager")
CHANNEL_COUNTERS: Final = {
    "events_out": ("echoic_channel_events", "Events that sources of this hub have submitted to the channel."),
    "bytes_out": ("echoic_channel_sent_bytes", "Bytes of events that this hub has sent to other hubs."),
    "events_in": ("echoic_channel_received_events", "Events that have come from other hubs for sinks of this hub."),
    "bytes_in": ("echoic_channel_received_bytes", "Bytes of the events that have come from other hubs."),
    "missed": ("echoic_channel_missed_events", "Events that sinks of this hub were told they will not get."),
    "dropped": ("echoic_channel_dropped_events", "Events that this hub has not sent to sinks that were too slow."),
}
CHANNEL_GAUGES: Final = {
    "sources": ("echoic_channel_sources", "Sources of the channel that are open in this hub."),
    "sinks": ("echoic_channel_sinks", "Sinks of the channel that are open in this hub."),
    "waiting_bytes": ("echoic_channel_waiting_bytes", "Bytes that wait in this hub for slow sinks."),
}
DERIVATION_LABELS: Final = ("hub", "derivation", "parent", "manager")
DERIVATION_COUNTERS: Final = {
    "events_in": ("echoic_derivation_input_events", "Events that the code of a derived channel has looked at."),
    "events_out": ("echoic_derivation_output_events", "Events that came out of the code."),
    "busy_ns": ("echoic_derivation_busy_seconds", "Seconds that the code has run."),
    "faults": ("echoic_derivation_faults", "Events at which the code has faulted."),
}
DERIVATION_GAUGES: Final = {  # no counter: code that makes more bytes than it is given saves fewer and fewer
    "bytes_saved": ("echoic_derivation_saved_bytes", "Bytes that were not sent because the code runs at the source."),
}


class Counted(msgspec.Struct, frozen=True):
    """What hubs have counted, by their addresses; None for one that did not answer."""

    channels: Mapping[str, list[ChannelCounts] | None]
    derivations: Mapping[str, list[DerivationCounts]]


class CountsCollector(Collector):
    """Tells what a look finds: it looks at most once in `KEPT_SECONDS`, and lets others wait for that look."""

    def __init__(self, look: Callable[[], Counted]) -> None:
        self._look = look
        self._lock = threading.Lock()
        self._found: Counted | None = None
        self._looked = 0.0
        self._seconds = 0.0

    def describe(self) -> Iterable[Metric]:
        """Return nothing: who registers this collector needs no look."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield what was counted."""
        with self._lock:
            now = time.monotonic()
            if self._found is None or now - self._looked >= KEPT_SECONDS:
                self._found = self._look()
                self._looked = time.monotonic()
                self._seconds = self._looked - now
            found, seconds = self._found, self._seconds
        yield from _families(found)
        took = GaugeMetricFamily("echoic_look_seconds", "How long it took to ask all hubs.")
        took.add_metric((), seconds)
        yield took


class HubCollector(CountsCollector):
    """What one hub has counted, for a registry of prometheus-client."""

    def __init__(self, hub: Hub) -> None:
        super().__init__(lambda: _counted_here(hub))


class SystemCollector(CountsCollector):
    """What all hubs have counted that take part in channels of the hub's name server."""

    def __init__(self, hub: Hub) -> None:
        super().__init__(lambda: _counted_everywhere(hub))


class MetricsServer:
    """Serves metrics over HTTP until it is closed."""

    def __init__(
        self, collector: Collector, listen: str, *, certificate: Certificate | None = None, insecure: bool = False
    ) -> None:
        """Listen.

        Args:
            collector: What tells.
            listen: Where; port 0 takes a free one.
            certificate: The PEM files of a certificate and its key, for TLS.
            insecure: Accept that other machines can read it in the clear, instead.

        Raises:
            AddressError: `listen` is not an address.
            InsecureError: It can be reached from other machines, and nobody said that this is meant; or the certificate
                cannot be used.
            UnreachableError: It cannot be listened at.
        """
        place = exposed(listen, certificate, insecure=insecure)
        self._app = make_wsgi_app(_registry(collector))
        self._server = HttpServer(
            listen,
            self._respond,
            context=serving_context(*certificate) if certificate is not None else None,
            insecure=insecure,
            any_host=not is_loopback(place.host),
            connections_max=CONNECTIONS_MAX,
        )
        self.url: Final = f"{place.url('http', parse_address(self._server.address)[1])}/metrics"

    def close(self) -> None:
        """Serve no more."""
        self._server.close()

    def _respond(self, request: Request) -> Answer:
        """Answer a scrape as prometheus-client would."""
        told: list[tuple[str, list[tuple[str, str]]]] = []

        def begin(status: str, headers: list[tuple[str, str]], _error: object = None) -> Callable[[bytes], object]:
            told.append((status, headers))
            return lambda _: None

        names = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in request.headers.items()}
        environment = {
            **names,
            "REQUEST_METHOD": request.method,
            "PATH_INFO": request.path,
            "QUERY_STRING": urlencode(request.query),
        }
        body = b"".join(self._app(environment, begin))
        status, headers = told[0]
        return Answer(int(status.split()[0]), body, dict(headers))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def start_metrics(
    hub: Hub, listen: str = LISTEN_DEFAULT, *, certificate: Certificate | None = None, insecure: bool = False
) -> MetricsServer:
    """Serve what a hub of this process has counted; port 0 takes a free one.

    Raises:
        EchoicError: As `MetricsServer` does.
    """
    return MetricsServer(HubCollector(hub), listen, certificate=certificate, insecure=insecure)


def serve_metrics(
    hub: Hub, listen: str = LISTEN_DEFAULT, *, certificate: Certificate | None = None, insecure: bool = False
) -> MetricsServer:
    """Serve what all hubs have counted that take part in channels of the hub's name server.

    Raises:
        AddressError: The hub has no name server, or `listen` is not an address.
        EchoicError: As `MetricsServer` does.
    """
    if not hub.names:
        raise AddressError("the hub has no name server, so it cannot ask for all channels: use start_metrics")
    return MetricsServer(SystemCollector(hub), listen, certificate=certificate, insecure=insecure)


def metrics_app(hub: Hub) -> "WSGIApplication":
    """Return a WSGI application that tells what a hub has counted, for programs that serve HTTP themselves."""
    return make_wsgi_app(_registry(HubCollector(hub)))


def exposition(collector: Collector) -> str:
    """Return what one scrape would get, as text."""
    return generate_latest(_registry(collector)).decode()


def _registry(collector: Collector) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(collector)
    return registry


def _counted_here(hub: Hub) -> Counted:
    report = hub.report(hub.address)
    return Counted({hub.address: report.channels}, {hub.address: report.derivations})


def _counted_everywhere(hub: Hub) -> Counted:
    try:
        known = browse(hub)
    except UnreachableError:
        known = []  # no hub is told of, and `echoic_hubs` says so
    described = ask_all([entry.id for entry in known], hub.describe)
    addresses = {manager_of(entry.id) for entry in known}
    for each in described.values():
        addresses.update(each.sources, (sink.address for sink in each.sinks))
    asked = sorted(addresses - {hub.address})
    reports = ask_all(asked, hub.report)
    return Counted(
        {address: reports[address].channels if address in reports else None for address in asked},
        {address: report.derivations for address, report in reports.items()},
    )


def _families(counted: Counted) -> Iterator[Metric]:
    channels = [
        ((address, each.name, manager), each)
        for address, found in sorted(counted.channels.items())
        for each in found or ()
        if (manager := manager_of(each.id))  # what a hub tells of something without an id is no channel
    ]
    derivations = [
        ((address, each.name, each.parent, manager), each)
        for address, found in sorted(counted.derivations.items())
        for each in found
        if (manager := manager_of(each.id))
    ]
    channels, derivations = _once(channels), _once(derivations)
    left_out = max(len(channels) - SERIES_MAX, 0) + max(len(derivations) - SERIES_MAX, 0)
    channels = sorted(channels, key=lambda row: row[0][1])[:SERIES_MAX]
    derivations = sorted(derivations, key=lambda row: row[0][1])[:SERIES_MAX]
    yield _hubs(counted)
    yield from _tell(CHANNEL_COUNTERS, CounterMetricFamily, CHANNEL_LABELS, channels)
    yield from _tell(CHANNEL_GAUGES, GaugeMetricFamily, CHANNEL_LABELS, channels)
    yield from _tell(DERIVATION_COUNTERS, CounterMetricFamily, DERIVATION_LABELS, derivations)
    yield from _tell(DERIVATION_GAUGES, GaugeMetricFamily, DERIVATION_LABELS, derivations)
    suspended = GaugeMetricFamily(
        "echoic_derivation_suspended", "Whether the code was stopped because it failed.", labels=DERIVATION_LABELS
    )
    for labels, each in derivations:
        suspended.add_metric(labels, bool(each.suspended))
    yield suspended
    omitted = GaugeMetricFamily("echoic_series_left_out", f"Channels and derivations beyond {SERIES_MAX} of each.")
    omitted.add_metric((), left_out)
    yield omitted


def _once(rows: list[tuple[Labels, Counts]]) -> list[tuple[Labels, Counts]]:
    """Return the last row of each labels: Prometheus takes a series once, and hubs are strangers."""
    return list(dict(rows).items())


def _hubs(counted: Counted) -> Metric:
    up = GaugeMetricFamily("echoic_hub_up", "Whether the hub has answered.", labels=("hub",))
    for address, found in sorted(counted.channels.items()):
        up.add_metric((address,), found is not None)
    return up


def _tell(
    wanted: Mapping[str, tuple[str, str]],
    family: type[CounterMetricFamily | GaugeMetricFamily],
    labels: tuple[str, ...],
    rows: Iterable[tuple[tuple[str, ...], ChannelCounts | DerivationCounts]],
) -> Iterator[Metric]:
    """Yield a family for each count, with a series for each row."""
    for attribute, (name, told) in wanted.items():
        made = family(name, told, labels=labels)
        scale = 1e-9 if attribute.endswith("_ns") else 1
        for values, counts in rows:
            made.add_metric(values, getattr(counts, attribute) * scale)
        yield made
