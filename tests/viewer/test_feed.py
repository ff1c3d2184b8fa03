"""The feed of a tab, by a real hub, a real viewer and a real socket."""

import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

import echoic
from echoic import Hub
from echoic.channels import DerivationCounts
from echoic.formats import Registry, format_of_text
from echoic.links import gate, parse_address
from echoic.testing.samples import Trade
from echoic.viewer import Viewer, server
from echoic.viewer.outbox import BYTES_MAX
from echoic.viewer.session import RUBBISH_MAX, WATCHES_MAX
from echoic.wire import Batch, FrameKind, FrameReader, decode_formats, parse_batch

WIND = format_of_text("Wind{at: float64, wind: float64[37][253]}")
WIDE = format_of_text("Wide{" + ", ".join(f"a_rather_long_name_{n}: float64" for n in range(900)) + "}")
SECONDS = 60.0


class Tab:
    """A browser's tab: asks, and keeps what it is told."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.told: list[dict[str, Any]] = []
        self.batches: dict[int, list[Batch]] = {}
        self.announced: list[int] = []
        self._registry = Registry()
        self._number = 0

    def say(self, kind: str, **fields: object) -> int:
        """Ask, and do not wait for the answer, which has the number that is returned."""
        self._number += 1
        self.socket.send(json.dumps({"type": kind, "number": self._number, **fields}))
        return self._number

    def ask(self, kind: str, **fields: object) -> dict[str, Any]:
        number = self.say(kind, **fields)
        return self.until(lambda: next((each for each in self.told if each.get("number") == number), None))

    def until(self, found: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + SECONDS
        while not (result := found()):
            self._hear(self.socket.recv(timeout=max(deadline - time.monotonic(), 0.01)))
        return result

    def push(self, kind: str, test: Callable[[dict[str, Any]], bool] = lambda _: True) -> dict[str, Any]:
        """Wait for a push that comes from here on."""
        seen = len(self.told)
        return self.until(lambda: next((e for e in self.told[seen:] if e["type"] == kind and test(e)), None))

    def events(self, watch: int, test: Callable[[Any], bool] = lambda _: True) -> Any:
        """Wait for an event that comes from here on."""
        self.batches[watch] = []
        return self.until(lambda: next((e for b in self.batches[watch] for e in b.events() if test(e)), None))

    def _hear(self, message: str | bytes) -> None:
        if isinstance(message, str):
            self.told.append(json.loads(message))
            return
        watch, zero = struct.unpack_from("<II", message)
        assert zero == 0
        for frame in FrameReader().receive(message[8:]):
            if frame.kind is FrameKind.FORMATS:
                self.announced += [format.token for format in decode_formats(frame.payload, self._registry)]
            else:
                assert frame.kind is FrameKind.EVENTS
                self.batches.setdefault(watch, []).append(parse_batch(frame.payload[16:], self._registry))


class Stage:
    """A publisher with two channels and a viewer, each with a hub of its own."""

    def __init__(self, names: Hub, publisher: Hub, viewer: Viewer) -> None:
        self.names = names
        self.publisher = publisher
        self.viewer = viewer
        self.trades = publisher.create("trades", Trade).source()
        self.wind = publisher.create("wind", WIND).source()
        self.ended = threading.Event()
        self._thread = threading.Thread(target=self._publish, daemon=True)
        self._thread.start()

    def tab(self, max_queue: int | None = 16) -> Any:
        headers = {"Authorization": f"Bearer {self.viewer.token}"}
        address = f"ws://{self.viewer.address}/feed"
        return connect(address, additional_headers=headers, max_size=None, max_queue=max_queue, close_timeout=1)

    def end(self) -> None:
        self.ended.set()
        self._thread.join()

    def _publish(self) -> None:
        number, field = 0, numpy.zeros(1, WIND.dtype)
        while not self.ended.wait(0.004):
            for _ in range(4):
                self.trades.submit(Trade("IBM", 70.0 + number % 10, number))
                number += 1
            if number % 40 == 0:
                field["wind"] = numpy.arange(37 * 253.0).reshape(37, 253)
                self.wind.submit_batch(field)


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with (
        Hub(name="names") as names,
        Hub(names=names.address) as publisher,
        Hub(names=names.address) as hub,
        Viewer(hub, "127.0.0.1:0") as viewer,
    ):
        made = Stage(names, publisher, viewer)
        yield made
        made.end()
        assert viewer.statistics().failures == 0


@pytest.fixture
def tab(stage: Stage) -> Iterator[Tab]:
    with stage.tab() as socket:
        yield Tab(socket)
    assert waited(lambda: stage.viewer.statistics().browsers == 0)


def sent_by(stage: Stage, derived: str) -> DerivationCounts:
    """Return what the source itself has counted for a derived channel."""
    counts = stage.publisher.report(stage.publisher.address).derivations
    return next(each for each in counts if each.id == derived)


def waited(test: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + SECONDS
    while not test() and time.monotonic() < deadline:
        time.sleep(0.02)
    return test()


def chart(*fields: str, **more: object) -> dict[str, object]:
    return {"type": "Chart", "fields": list(fields), **more}


def test_values_arrive_as_charts_fields_and_events_and_each_type_is_described_once(stage: Stage, tab: Tab) -> None:
    opened = tab.ask("Open", watch=1, channel="trades", view=chart("price", "volume"))
    assert opened["type"] == "Opened"
    assert opened["fields"] == ["price", "volume"]
    assert "param.every" in opened["code"]
    tab.ask("Open", watch=2, channel="wind", view={"type": "Field", "field": "wind"})
    tab.ask("Open", watch=3, channel="trades", view={"type": "Events"})
    envelope = tab.events(1)
    assert 70 <= envelope.f0_min <= envelope.f0_last <= envelope.f0_max <= 79
    field = tab.events(2)
    assert (field.rows, field.columns, field.low, field.high) == (37, 253, 0, 9360)
    numpy.testing.assert_array_equal(field.cells, numpy.arange(9361.0))
    assert tab.events(3).symbol == "IBM"
    assert len(tab.announced) == len(set(tab.announced)) == 3


def test_tuning_changes_what_the_source_sends(stage: Stage, tab: Tab) -> None:
    derived = tab.ask("Open", watch=1, channel="wind", view={"type": "Field", "field": "wind"})["derived"]
    whole = tab.events(1, lambda event: event.columns == 253)
    assert tab.ask("Tune", watch=1, values={"top": 3, "left": 10, "height": 5, "width": 20})["type"] == "Done"
    event = tab.events(1, lambda event: event.columns == 20)
    expected = numpy.arange(9361.0).reshape(37, 253)[3:8, 10:30]
    numpy.testing.assert_array_equal(event.cells.reshape(5, 20), expected)
    before, sent = sent_by(stage, derived), 0
    assert waited(lambda: sent_by(stage, derived).events_out >= before.events_out + 3)
    after = sent_by(stage, derived)
    sent = (after.bytes_out - before.bytes_out) / (after.events_out - before.events_out)
    assert sent < 1000 < whole.cells.nbytes  # it is the source that sends less


def test_the_viewer_finds_how_many_events_stand_for_one_and_a_person_may_say_it(stage: Stage, tab: Tab) -> None:
    tab.ask("Open", watch=1, channel="trades", view=chart("price", points_per_second=10))
    tab.events(1, lambda event: event.count > 10)
    assert tab.ask("Tune", watch=1, values={"every": 7})["type"] == "Done"
    tab.events(1, lambda event: event.count == 7)
    assert tab.ask("Tune", watch=1, values={"nothing": 7})["type"] == "Failed"
    assert tab.ask("Tune", watch=1, values={"every": -1})["type"] == "Failed"


def test_a_channel_is_described_with_what_can_be_shown_of_it(stage: Stage, tab: Tab) -> None:
    trades = tab.ask("Describe", channel="trades")
    assert (trades["channel_type"], trades["views"], trades["sources"]) == ("Trade", ["Chart", "Events"], 1)
    assert {each["path"]: each["series"] for each in trades["fields"]}["price"]
    assert tab.ask("Describe", channel="wind")["views"] == ["Chart", "Field", "Events"]
    missing = tab.ask("Describe", channel="trdes")
    assert missing["type"] == "Failed"
    assert "trades" in missing["message"]


def test_checking_tells_line_and_column_of_every_mistake(stage: Stage, tab: Tab) -> None:
    fine = tab.ask("Check", channel="trades", code="return input.price < param.low;", params={"low": 75.5})
    assert fine["mistakes"] == []
    assert 0 < fine["cost"] <= fine["cost_max"]
    checked = tab.ask("Check", channel="trades", code="int x = 1;\nreturn input.prize < x;")
    (mistake,) = checked["mistakes"]
    assert (mistake["line"], mistake["part"]) == (2, "code")
    assert 8 <= mistake["column"] <= 14
    assert "price" in mistake["message"]
    assert tab.ask("Check", channel="trades", code="1", output="Mean{")["mistakes"][0]["part"] == "output"
    assert tab.ask("Check", channel="trades", code="1", params="low=")["mistakes"][0]["part"] == "params"


def test_a_channel_is_derived_steered_and_dropped(stage: Stage, tab: Tab) -> None:
    made = tab.ask("Derive", channel="trades", code="return input.price < param.low;", params="low=72.0", name="cheap")
    assert (made["type"], made["name"], made["derived_here"]) == ("Description", "cheap", True)
    assert made["params"] == [{"name": "low", "kind": "number", "value": 72.0, "shape": []}]
    tab.ask("Open", watch=1, channel="cheap", view={"type": "Events", "per_second": 1000})
    assert tab.events(1).price < 72
    steered = tab.ask("Steer", channel="cheap", values={"low": 79})
    assert steered["params"][0]["value"] == 79.0
    assert tab.events(1, lambda event: event.price > 76).price < 79
    assert tab.ask("Steer", channel="cheap", values={"low": "high"})["type"] == "Failed"
    assert tab.ask("Steer", channel="trades", values={"low": 1})["type"] == "Failed"
    assert tab.ask("Drop", channel="cheap")["type"] == "Done"
    tab.until(lambda: [each for each in tab.told if each["type"] == "Ended" and each["watch"] == 1])
    assert tab.ask("Drop", channel="trades")["type"] == "Failed"


def test_code_that_is_wrong_is_not_derived_and_its_places_are_told(stage: Stage, tab: Tab) -> None:
    failed = tab.ask("Derive", channel="trades", code="return input.prize;", name="wrong")
    assert (failed["type"], failed["mistakes"][0]["line"]) == ("Failed", 1)
    assert tab.ask("Describe", channel="wrong")["type"] == "Failed"


def test_what_is_saved_is_told_also_when_an_envelope_is_larger_than_its_event(stage: Stage, tab: Tab) -> None:
    """An envelope of each single event costs bytes; once that ended the thread that tells everybody."""
    tab.ask("Look", page="channels")
    tab.ask("Open", watch=1, channel="trades", view=chart("price", "volume", "venue"))
    tab.ask("Tune", watch=1, values={"every": 1})
    tab.push("Saved", lambda saved: saved["watches"].get("1", {}).get("bytes_saved", 0) < 0)
    tab.ask("Tune", watch=1, values={"every": 500})
    tab.push("Saved", lambda saved: saved["per_second"] > 0)
    overview = tab.push("Overview")
    assert {each["name"] for each in overview["load"]["channels"]} >= {"trades", "wind"}


@pytest.mark.parametrize("page", ["groups", "bus", "pipelines"])
def test_other_pages_are_told_about_too(stage: Stage, tab: Tab, page: str) -> None:
    assert tab.ask("Look", page=page)["type"] == "Done"
    assert tab.push("Overview")["page"] == page


def test_what_cannot_be_shown_is_refused_with_a_sentence(stage: Stage, tab: Tab) -> None:
    stage.publisher.create("untyped")
    for channel, view, reason in (
        ("trades", chart("symbol"), "expected a number"),
        ("trades", chart("price", "nope"), "no field"),
        ("trades", {"type": "Field", "field": "price"}, "expected an array"),
        ("untyped", chart("price"), "has no type"),
        ("nothing", chart("price"), "not found"),
    ):
        failed = tab.ask("Open", watch=1, channel=channel, view=view)
        assert failed["type"] == "Failed"
        assert reason in failed["message"]
    assert tab.ask("Tune", watch=1, values={})["type"] == "Failed"
    assert tab.ask("Close", watch=1)["type"] == "Failed"


def test_events_of_an_untyped_channel_are_shown_as_they_are(stage: Stage, tab: Tab) -> None:
    source = stage.publisher.create("raw").source(Trade)
    assert tab.ask("Open", watch=1, channel="raw", view={"type": "Events"})["code"] == ""
    source.submit(Trade("ECHO", 1.5, 3))
    source.flush()
    assert tab.events(1).symbol == "ECHO"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        '{"type":"Open","number":901}',
        '{"type":"Nothing","number":902}',
        '{"type":"Look","number":-1,"page":"channels"}',
        '{"type":"Look","number":903,"page":"elsewhere"}',
        '{"type":"Tune","number":904,"watch":4294967296,"values":{}}',
        "[" * 5000,
    ],
)
def test_rubbish_is_answered_and_does_no_harm(stage: Stage, tab: Tab, text: str) -> None:
    tab.socket.send(text)
    failed = tab.until(lambda: next((each for each in tab.told if each["type"] == "Failed"), None))
    assert failed["number"] == int((re.findall(r'"number":(9\d+)', text) or ["0"])[0])
    assert tab.ask("Look", page="")["type"] == "Done"


def test_who_sends_nothing_but_rubbish_or_too_much_is_hung_up(stage: Stage, tab: Tab) -> None:
    for _ in range(RUBBISH_MAX):
        tab.socket.send(b"\0")
    with pytest.raises(ConnectionClosed) as caught:
        tab.until(lambda: None)
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 1008
    with stage.tab() as other:
        other.send("x" * 70_000)
        with pytest.raises(ConnectionClosed) as large:
            Tab(other).until(lambda: None)
    assert large.value.rcvd is not None
    assert large.value.rcvd.code == 1009


def test_a_tab_has_only_so_many_watches(stage: Stage, tab: Tab) -> None:
    source = stage.publisher.create("quiet").source(Trade)
    for watch in range(WATCHES_MAX):
        assert tab.ask("Open", watch=watch, channel="quiet", view={"type": "Events"})["type"] == "Opened"
    assert "limit" in tab.ask("Open", watch=WATCHES_MAX, channel="quiet", view={"type": "Events"})["message"]
    assert "open already" in tab.ask("Open", watch=0, channel="quiet", view={"type": "Events"})["message"]
    source.close()


def test_two_tabs_have_watches_of_their_own(stage: Stage, tab: Tab) -> None:
    with stage.tab() as socket:
        other = Tab(socket)
        first = tab.ask("Open", watch=1, channel="trades", view=chart("price"))
        second = other.ask("Open", watch=1, channel="trades", view=chart("price"))
        assert first["derived"] != second["derived"]
        tab.ask("Tune", watch=1, values={"every": 5})
        other.ask("Tune", watch=1, values={"every": 9})
        tab.events(1, lambda event: event.count == 5)
        other.events(1, lambda event: event.count == 9)
        assert stage.viewer.statistics().browsers == 2


def test_everything_closes_with_the_socket_and_the_next_tab_uses_the_same_channels(stage: Stage) -> None:
    used: list[str] = []
    for _ in range(4):
        with stage.tab() as socket:
            tab = Tab(socket)
            used.append(tab.ask("Open", watch=1, channel="trades", view=chart("price", "venue"))["derived"])
            tab.events(1)
        assert waited(lambda: stage.viewer.statistics().browsers == 0)
        assert waited(lambda: not stage.publisher.describe(used[0]).sinks)
    assert len(set(used)) == 1
    pool = [thread for thread in threading.enumerate() if thread.name.startswith("echoic-viewer")]
    assert len(pool) <= 2 + 36  # those of the loop and the observer, and the pool's, however many tabs there were
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("echoic-sink")]


def test_a_tab_that_does_not_read_holds_nobody_up_and_is_told_what_it_missed(stage: Stage, tab: Tab) -> None:
    large = format_of_text("Large{n: int64, data: float64[4000]}")
    source = stage.publisher.create("large", large).source()
    events, waiting = numpy.zeros(10, large.dtype), list[int]()

    def submit() -> bool:
        """Submit a third of a megabyte; tell whether the viewer has dropped some of what waits."""
        source.submit_batch(events)
        source.flush()
        waiting.append(stage.viewer.statistics().waiting_bytes)
        return waiting[-1] > BYTES_MAX - 2 * events.nbytes and len(waiting) > 100

    with stage.tab(max_queue=1) as socket:  # whose library reads one message ahead, and no more
        slow = Tab(socket)
        slow.ask("Open", watch=1, channel="large", view={"type": "Events", "per_second": 100_000})
        slow.ask("Tune", watch=1, values={"every": 1})
        assert waited(submit)
        for _ in range(50):
            submit()
        assert max(waiting) <= BYTES_MAX
        tab.ask("Open", watch=1, channel="trades", view=chart("price"))
        tab.events(1)
        lost = slow.until(lambda: next((each for each in slow.told if each["type"] == "Lost"), None))
        assert lost["watch"] == 1
        assert lost["events"] > 0


def test_a_channel_that_ends_is_told_and_can_be_opened_again_when_it_is_back(stage: Stage, tab: Tab) -> None:
    with Hub(names=stage.names.address) as former:
        former.create("fleeting", Trade).source()
        tab.ask("Open", watch=1, channel="fleeting", view={"type": "Events"})
    ended = tab.until(lambda: next((each for each in tab.told if each["type"] == "Ended"), None))
    assert "fleeting" in ended["reason"] or "send no more" in ended["reason"]
    with Hub(names=stage.names.address) as later:
        source = later.create("fleeting", Trade).source()
        assert tab.ask("Open", watch=1, channel="fleeting", view={"type": "Events"})["type"] == "Opened"
        source.submit(Trade("BACK", 1.0, 1))
        source.flush()
        assert tab.events(1).symbol == "BACK"


def test_a_tab_that_comes_back_says_again_what_it_wants_and_types_are_described_anew(stage: Stage) -> None:
    for _ in range(2):
        with stage.tab() as socket:
            tab = Tab(socket)
            tab.ask("Open", watch=1, channel="trades", view=chart("price"))
            tab.events(1)
            assert len(tab.announced) == 1


def observers() -> int:
    return sum(thread.name == "echoic-viewer-observer" for thread in threading.enumerate())


def mute_tab(viewer: Viewer) -> socket.socket:
    """Return a tab that asks more than it may without reading, and has asked for a watch first."""
    host, port = parse_address(viewer.address)
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.connect((host, port))
    made.sendall(
        f"GET /feed HTTP/1.1\r\nHost: {viewer.address}\r\nAuthorization: Bearer {viewer.token}\r\n"
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
    )
    assert made.recv(4096).startswith(b"HTTP/1.1 101")
    opening = {"type": "Open", "number": 1, "watch": 1, "channel": "wide", "view": {"type": "Events"}}
    for request in [opening] + [{"type": "Describe", "number": 1, "channel": "wide"}] * 300:
        text = json.dumps(request).encode()
        head = bytes([0x81, 0x80 | len(text)]) if len(text) < 126 else b"\x81\xfe" + struct.pack(">H", len(text))
        made.sendall(head + bytes(4) + text)  # a mask of zeros leaves the text as it is
    return made


def sinks_of(hub: Hub) -> int:
    return sum(each.sinks for each in hub.report(hub.address).channels)


@pytest.fixture
def mute() -> Iterator[tuple[Hub, Viewer, socket.socket]]:
    """A viewer that waits for a tab to read its answers."""
    with Hub() as hub, Viewer(hub, "127.0.0.1:0") as viewer:
        hub.create("wide", WIDE)
        with mute_tab(viewer) as tab:
            assert waited(lambda: viewer.statistics().crowded == 1)
            assert (viewer.statistics().watches, sinks_of(hub)) == (1, 1)
            yield hub, viewer, tab


def test_a_tab_that_answers_no_ping_is_hung_up_on_whatever_it_has_yet_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PING_SECONDS", 0.5)
    monkeypatch.setattr(gate, "VANISHED_SECONDS", 1000)  # the kernel does nothing about it
    with Hub() as hub, Viewer(hub, "127.0.0.1:0") as viewer:
        hub.create("wide", WIDE)
        with mute_tab(viewer):
            assert waited(lambda: viewer.statistics().browsers == 0)
            assert waited(lambda: sinks_of(hub) == 0)


def test_a_tab_that_never_read_its_answers_is_forgotten_when_it_is_gone(
    mute: tuple[Hub, Viewer, socket.socket],
) -> None:
    hub, viewer, tab = mute
    tab.close()
    assert waited(lambda: viewer.statistics().browsers == 0)
    assert waited(lambda: sinks_of(hub) == 0)


def test_a_viewer_that_ends_closes_the_watches_of_a_tab_that_does_not_read(
    mute: tuple[Hub, Viewer, socket.socket], caplog: pytest.LogCaptureFixture
) -> None:
    hub, viewer, _ = mute
    viewer.close()
    assert waited(lambda: sinks_of(hub) == 0)
    assert not [record for record in caplog.records if record.exc_info]


def test_a_tab_is_told_when_the_viewer_ends() -> None:
    before = observers()
    with Hub() as hub:
        viewer = Viewer(hub, "127.0.0.1:0")
        headers = {"Authorization": f"Bearer {viewer.token}"}
        with connect(f"ws://{viewer.address}/feed", additional_headers=headers) as socket:
            assert waited(lambda: viewer.statistics().browsers == 1)
            viewer.close()
            with pytest.raises(ConnectionClosed) as caught:
                Tab(socket).until(lambda: None)
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1001
        assert observers() == before


def test_a_viewer_in_the_program_that_publishes_needs_no_name_server() -> None:
    with echoic.Hub() as hub, Viewer(hub, "127.0.0.1:0") as viewer:
        source = hub.create("own", Trade).source()
        headers = {"Authorization": f"Bearer {viewer.token}"}
        with connect(f"ws://{viewer.address}/feed", additional_headers=headers) as socket:
            tab = Tab(socket)
            tab.ask("Look", page="channels")
            tab.ask("Open", watch=1, channel="own", view={"type": "Events"})
            source.submit(Trade("OWN", 1.0, 1))
            source.flush()
            assert tab.events(1).symbol == "OWN"
            known = tab.push("Overview")["load"]["channels"]
            assert [each["name"] for each in known if each["name"] == "own"] == ["own"]
        assert viewer.statistics().failures == 0
