"""A sink in another language, written against the wire protocol: it takes part like any other hub."""

import contextlib
import json
import queue
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from echoic import Batch, Hub, event, float64, int64
from echoic.channels import Concentrator, SourceRun, submit_runs
from echoic.hub import switchboard
from echoic.links import parse_address
from tests.system.processes import wait_until

SINK = Path(__file__).parents[2] / "examples" / "sink.mjs"
PATIENCE_SECONDS = 90.0

pytestmark = [pytest.mark.system, pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")]


@event
class Quote:
    number: int64
    price: float64
    note: str


class ForeignSink:
    """The program, and the lines that it prints."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            ["node", str(SINK), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._lines: queue.Queue[dict[str, Any]] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def line(self) -> dict[str, Any]:
        """Return the next line."""
        return self._lines.get(timeout=PATIENCE_SECONDS)

    def events(self, count: int) -> list[tuple[int, bool, int]]:
        """Return sequence, whether it was synchronous, and the number of each of the next events."""
        lines = [self.line() for _ in range(count)]
        return [(line["sequence"], line["call"], line["event"]["number"]) for line in lines]

    def end(self, number: int = signal.SIGTERM) -> int:
        """Ask the program to end; return its exit code."""
        self._process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        code = self._process.wait(PATIENCE_SECONDS)
        self._reader.join(PATIENCE_SECONDS)
        return code

    def complaint(self) -> str:
        """Return what the program said of its end."""
        return self._process.stderr.read()

    def close(self) -> None:
        self._process.kill()
        self.wait()
        self._process.stdout.close()
        self._process.stderr.close()

    def _read(self) -> None:
        for line in self._process.stdout:
            self._lines.put(json.loads(line))


class Relay:
    """Passes bytes between a hub and whoever connects, until it cuts the connection."""

    def __init__(self, hub: Hub) -> None:
        self._hub = parse_address(hub.address)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self.address = "{}:{}".format(*self._listening.getsockname())
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Break every connection."""
        while self._sockets:
            with contextlib.suppress(OSError):
                self._sockets.pop().shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.cut()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, far = self._listening.accept()[0], socket.create_connection(self._hub)
                self._sockets += [near, far]
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, origin: socket.socket, target: socket.socket) -> None:
        with origin, contextlib.suppress(OSError):
            while data := origin.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub(name="python") as hub:
        yield hub


@pytest.fixture
def start() -> Iterator[Callable[..., ForeignSink]]:
    with contextlib.ExitStack() as stack:

        def begin(*arguments: str) -> ForeignSink:
            sink = ForeignSink(*arguments)
            stack.callback(sink.close)
            return sink

        yield begin


def test_events_reach_a_sink_in_another_language_whichever_way_they_are_submitted(hub: Hub, start: Any) -> None:
    channel = hub.create("lab/quotes", Quote)
    sink = start(channel.id)
    address = sink.line()["listening"]
    assert sink.line() == {"joined": channel.id}
    assert hub.describe(channel.id).sinks[0].address == address
    with channel.source() as source:
        source.submit(Quote(1, 75.5, "Zürich"))
        source.flush()
        first = sink.line()
        assert first["source"] == (source.id if source.id < 2**53 else str(source.id))
        assert first["event"] == {"number": 1, "price": 75.5, "note": "Zürich"}
        source.submit_batch([Quote(number, 0.5, "") for number in range(2, 5)])
        source.submit_sync(Quote(5, 0.5, ""), timeout=PATIENCE_SECONDS)
        source.submit(Quote(6, 0.5, ""))
        source.submit_sync(Quote(7, 0.5, ""), timeout=PATIENCE_SECONDS)
        numbers = [(number - 1, number in (5, 7), number) for number in range(2, 8)]
        assert sink.events(6) == numbers
    assert sink.end() == 0
    wait_until(lambda: not hub.describe(channel.id).sinks, "the sink took leave")
    wait_until(lambda: not hub.statistics().links, "its hub is forgotten")


def test_credit_and_counts_let_more_pass_than_may_be_under_way(hub: Hub, start: Any) -> None:
    channel = hub.create("large", Quote)
    sink = start(channel.id)
    assert [sink.line().popitem()[0] for _ in range(2)] == ["hub", "joined"]
    with channel.source() as source:
        for number in range(90):
            source.submit_batch([Quote(number, 0.5, "x" * 1_000_000)])
        assert sink.events(90) == [(number, False, number) for number in range(90)]
    wait_until(lambda: hub.statistics().links[0].session.untold_bytes == 0, "everything is told")


def test_runs_of_several_sources_that_share_a_batch_are_told_apart(
    hub: Hub, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel, shared = hub.create("runs", Quote), []

    def counted(core: Concentrator, runs: Sequence[SourceRun], batch: Batch) -> bool:
        sent = submit_runs(core, runs, batch)
        shared.extend(runs if sent else ())
        return sent

    monkeypatch.setattr(switchboard, "submit_runs", counted)
    sink = start(channel.id)
    assert [sink.line().popitem()[0] for _ in range(2)] == ["hub", "joined"]
    with contextlib.ExitStack() as stack:
        sources = [stack.enter_context(channel.source()) for _ in range(3)]
        for number in range(300):
            for at, source in enumerate(sources):
                source.submit(Quote(1000 * at + number, 0.5, ""))
        got = sorted(sink.events(900), key=lambda event: event[2])
    assert got == [(number, False, 1000 * at + number) for at in range(3) for number in range(300)]
    assert shared, "no runs shared a frame"


def test_a_source_in_another_hub_dials_the_sink(hub: Hub, start: Any) -> None:
    channel = hub.create("quotes", Quote)
    with Hub(name="elsewhere") as elsewhere, elsewhere.open(channel.id, Quote).source() as source:
        sink = start(channel.id)
        assert [sink.line().popitem()[0] for _ in range(2)] == ["hub", "joined"]
        for number in range(3):
            source.submit_sync(Quote(number, 0.5, ""), timeout=PATIENCE_SECONDS)
        assert sink.events(3) == [(number, True, number) for number in range(3)]
        assert sink.end(signal.SIGINT) == 0


def test_a_connection_that_breaks_loses_and_repeats_nothing(hub: Hub, start: Any) -> None:
    channel = hub.create("quotes", Quote)
    relay = Relay(hub)
    with contextlib.closing(relay), channel.source() as source:
        sink = start(f"echoic://{relay.address}/quotes")
        assert [sink.line().popitem()[0] for _ in range(2)] == ["hub", "joined"]
        for number in range(300):
            source.submit(Quote(number, 0.5, "x" * 1000))
            if number % 100 == 50:
                source.flush()
                relay.cut()
        source.flush()
        assert sink.events(300) == [(number, False, number) for number in range(300)]
        source.submit_sync(Quote(300, 0.5, ""), timeout=PATIENCE_SECONDS)
        assert sink.events(1) == [(300, True, 300)]
        assert sink.end() == 0


def test_a_channel_that_nobody_knows_ends_the_sink_with_the_reason(hub: Hub, start: Any) -> None:
    sink = start(f"echoic://{hub.address}/nothing")
    assert sink.wait() == 1
    assert "not found" in sink.complaint()
