"""Metrics as Prometheus gets them: over HTTP, in its text format, read by its own parser."""

import socket
import ssl
import threading
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit
from wsgiref.util import setup_testing_defaults

import pytest
from prometheus_client.parser import text_string_to_metric_families

from echoic import Hub, event, float64
from echoic.channels import ChannelCounts, DerivationCounts
from echoic.errors import AddressError, InsecureError, UnreachableError
from echoic.interop import metrics
from echoic.interop.metrics import (
    Counted,
    CountsCollector,
    exposition,
    metrics_app,
    serve_metrics,
    start_metrics,
)
from echoic.links import parse_address
from tests.conftest import StartHub
from tests.links.certificates import Authority
from tests.system.processes import wait_until

Samples = dict[tuple[str, str], float]


@event
class Trade:
    price: float64


def scrape(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        return answer.read().decode()


def samples(text: str, label: str = "channel") -> Samples:
    """Return the samples by their name and one of their labels, added up over the others, as Prometheus does it."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, sample.labels.get(label, ""))
            found[key] = found.get(key, 0) + sample.value
    return found


def test_a_scrape_of_a_hub_tells_what_was_submitted(start_hub: StartHub) -> None:
    hub = start_hub()
    source = hub.create("trades", Trade).source()
    with start_metrics(hub, "127.0.0.1:0") as server:
        source.submit_batch([Trade(float(price)) for price in range(100)])
        source.flush()
        found = samples(scrape(server.url))
    assert found["echoic_channel_events_total", "trades"] == 100
    assert found["echoic_channel_sent_bytes_total", "trades"] == 0  # nobody else is there
    assert found["echoic_channel_sources", "trades"] == 1
    assert found["echoic_series_left_out", ""] == 0


def test_every_family_has_help_a_type_and_a_name_with_its_unit(start_hub: StartHub) -> None:
    hub = start_hub()
    hub.create("trades", Trade)
    with start_metrics(hub, "127.0.0.1:0") as server:
        families = list(text_string_to_metric_families(scrape(server.url)))
    assert len(families) >= 15
    for family in families:
        assert family.documentation.endswith("."), family.name
        assert family.type in ("counter", "gauge")
        assert family.name.startswith("echoic_")
        assert all(sample.name.endswith("_total") for sample in family.samples if family.type == "counter")


def test_a_scrape_of_the_system_tells_of_all_hubs_and_of_what_derivations_save(start_hub: StartHub) -> None:
    names = start_hub()
    maker, taker, watcher = (start_hub(names=names.address) for _ in range(3))
    source = maker.create("trades", Trade).source()
    got: list[object] = []
    cheap = taker.open("trades").derive("{ return input.price < 10; }", name="cheap")
    cheap.subscribe(got.append)
    source.submit_batch([Trade(float(price)) for price in range(100)])
    source.flush()
    wait_until(lambda: len(got) == 10, "the cheap ones have come")
    with serve_metrics(watcher, "127.0.0.1:0") as server:
        text = scrape(server.url)
    found, derived, hubs = samples(text), samples(text, "derivation"), samples(text, "hub")
    assert hubs["echoic_hub_up", maker.address] == 1
    assert found["echoic_channel_events_total", "trades"] == 100
    assert found["echoic_channel_sent_bytes_total", "cheap"] >= 10 * 8
    assert found["echoic_channel_received_events_total", "cheap"] == 10
    assert derived["echoic_derivation_input_events_total", "cheap"] == 100
    assert derived["echoic_derivation_output_events_total", "cheap"] == 10
    assert derived["echoic_derivation_saved_bytes", "cheap"] > 0
    assert derived["echoic_derivation_suspended", "cheap"] == 0


def test_a_hub_that_does_not_answer_is_told_as_down(start_hub: StartHub) -> None:
    channel = start_hub().create("trades", Trade)
    counted = Counted({"127.0.0.1:2": None, "127.0.0.1:1": [channel.statistics()]}, {})
    found = samples(exposition(CountsCollector(lambda: counted)), "hub")
    assert found["echoic_hub_up", "127.0.0.1:2"] == 0
    assert found["echoic_hub_up", "127.0.0.1:1"] == 1


def test_names_of_strangers_stay_inside_their_label() -> None:
    hostile = 'a"} 1\nechoic_forged{x="'
    counts = ChannelCounts(hostile, "echoic://127.0.0.1:1/x", "T", 1, 1, 1, 7, 7, 7, 7, 0, 0, 0)
    collector = CountsCollector(lambda: Counted({"127.0.0.1:1": [counts]}, {}))
    found = samples(exposition(collector))
    assert found["echoic_channel_events_total", hostile] == 7
    assert not any(name == "echoic_forged" for name, _ in found)


def test_a_hub_that_tells_rubbish_or_something_twice_spoils_no_scrape() -> None:
    def channel(id: str, events: int) -> ChannelCounts:
        return ChannelCounts("trades", id, "T", 1, 1, 1, events, 7, 7, 7, 0, 0, 0)

    def derivation(id: str, saved: int) -> DerivationCounts:
        return DerivationCounts("cheap", id, "trades", "source", 1, 0, 0, 0, 0, saved, 0, 1, 0, "")

    ours, theirs = "echoic://127.0.0.1:1/trades", "echoic://127.0.0.1:2/trades"
    told = Counted(
        {"127.0.0.1:1": [channel("rubbish", 1), channel(ours, 5), channel(ours, 7), channel(theirs, 100)]},
        {"127.0.0.1:1": [derivation("rubbish", 1), derivation(ours, -5), derivation(theirs, 50)]},
    )
    text = exposition(CountsCollector(lambda: told))
    assert samples(text)["echoic_channel_events_total", "trades"] == 107
    assert samples(text, "derivation")["echoic_derivation_saved_bytes", "cheap"] == 45
    (saved,) = (each for each in text_string_to_metric_families(text) if each.name == "echoic_derivation_saved_bytes")
    assert saved.type == "gauge"  # it may become less
    series = [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    assert len(series) == len(set(series))


def test_the_number_of_series_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "SERIES_MAX", 3)
    many = [ChannelCounts(f"c{n}", f"echoic://127.0.0.1:1/c{n}", "", 0, 0, 0, n, 0, 0, 0, 0, 0, 0) for n in range(10)]
    collector = CountsCollector(lambda: Counted({"127.0.0.1:1": many}, {}))
    found = samples(exposition(collector))
    assert [name for name in found if name[0] == "echoic_channel_events_total"] == [
        ("echoic_channel_events_total", f"c{n}") for n in range(3)
    ]
    assert found["echoic_series_left_out", ""] == 7


def test_scrapes_at_one_time_share_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "KEPT_SECONDS", 3600.0)
    looks: list[int] = []

    def look() -> Counted:
        looks.append(1)
        return Counted({}, {})

    collector = CountsCollector(look)
    threads = [threading.Thread(target=lambda: list(collector.collect())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(looks) == 1


def test_a_program_can_serve_the_metrics_itself(start_hub: StartHub) -> None:
    hub = start_hub()
    hub.create("trades", Trade)
    environment: dict[str, object] = {}
    setup_testing_defaults(environment)
    status: list[str] = []

    def start(line: str, headers: object, error: object = None) -> Callable[[bytes], object]:
        status.append(line)
        return lambda data: None

    body = b"".join(metrics_app(hub)(environment, start))
    assert status == ["200 OK"]
    assert ("echoic_channel_events_total", "trades") in samples(body.decode())


def test_metrics_are_not_served_to_other_machines_by_mistake(start_hub: StartHub) -> None:
    hub: Hub = start_hub()
    with pytest.raises(InsecureError, match="other machines"):
        start_metrics(hub, "0.0.0.0:0")
    with pytest.raises(AddressError, match="no name server"):
        serve_metrics(hub, "127.0.0.1:0")
    with start_metrics(hub, "127.0.0.1:0") as server, pytest.raises(UnreachableError, match="cannot listen"):
        start_metrics(hub, server.url.removeprefix("http://").removesuffix("/metrics"))


def test_the_verb_prints_what_a_scrape_would_get(start_hub: StartHub, capsys: pytest.CaptureFixture[str]) -> None:
    from echoic.cli.metrics import metrics as verb
    from echoic.cli.served import Served

    names = start_hub()
    source = start_hub(names=names.address).create("trades", Trade).source()
    source.submit(Trade(1.0))
    source.flush()
    verb(once=True, served=Served(names=names.address))
    assert samples(capsys.readouterr().out)["echoic_channel_events_total", "trades"] == 1


def test_metrics_are_served_by_tls(start_hub: StartHub, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    identity = authority.issue("scraped")
    pair = (identity.certificate, identity.key)
    context = ssl.create_default_context(cafile=str(authority.path))
    with start_metrics(start_hub(), "127.0.0.1:0", certificate=pair) as server:
        assert server.url.startswith("https://")
        with urllib.request.urlopen(server.url, timeout=30, context=context) as answer:
            assert b"echoic_hub_up" in answer.read()
    with pytest.raises(InsecureError, match=r"none\.pem"):
        start_metrics(start_hub(), "127.0.0.1:0", certificate=(tmp_path / "none.pem", identity.key))
    with pytest.raises(InsecureError, match="cannot use certificate"):
        start_metrics(start_hub(), "127.0.0.1:0", certificate=(authority.path, identity.key))


def test_a_stranger_who_says_nothing_keeps_nobody_from_being_served(tmp_path: Path, start_hub: StartHub) -> None:
    issued = Authority(tmp_path).issue("metrics")
    hub = start_hub()
    with start_metrics(hub, "127.0.0.1:0", certificate=(issued.certificate, issued.key)) as metrics:
        address = parse_address(urlsplit(metrics.url).netloc)
        with socket.create_connection(address), socket.create_connection(address) as slow:
            slow.sendall(b"\x16\x03\x01")
            context = ssl.create_default_context(cafile=str(issued.authority))
            with urllib.request.urlopen(metrics.url, context=context, timeout=10) as response:
                assert b"echoic_hub_up" in response.read()
