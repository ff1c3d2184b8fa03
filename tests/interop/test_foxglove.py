"""The bridge to Foxglove, seen by a client that speaks Foxglove's own protocol over a real WebSocket."""

import base64
import json
import ssl
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from echoic import Format, Hub, event, float64
from echoic.errors import AddressError, ChannelNotFoundError, InsecureError, UnreachableError
from echoic.interop import foxglove as bridge_module
from echoic.interop.foxglove import Bridge
from tests.conftest import StartHub
from tests.links.certificates import Authority
from tests.system.processes import wait_until

pytest.importorskip("foxglove")

PROTOCOL = Subprotocol("foxglove.sdk.v1")
MESSAGE_DATA = 1
PATIENCE_SECONDS = 60.0


@event
class Trade:
    symbol: str
    price: float64


@event
class Quote:
    bid: float64
    ask: float64


@pytest.fixture
def system(start_hub: StartHub) -> tuple[Hub, Hub]:
    """A hub with channels, and one for the bridge."""
    names = start_hub()
    return start_hub(names=names.address), start_hub(names=names.address)


class Looking:
    """A client of Foxglove's protocol."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.texts: list[dict[str, Any]] = []

    def told(self, op: str) -> dict[str, Any]:
        """Return the next text of a kind; others are passed over."""
        while True:
            received = self.connection.recv(timeout=PATIENCE_SECONDS)
            if isinstance(received, str):
                text = json.loads(received)
                if text["op"] == op:
                    return text

    def message(self) -> tuple[int, int, dict[str, Any]]:
        """Return the subscription, the time and the content of the next message."""
        while True:
            received = self.connection.recv(timeout=PATIENCE_SECONDS)
            if isinstance(received, bytes) and received[0] == MESSAGE_DATA:
                subscription, time_ns = struct.unpack_from("<IQ", received, 1)
                return subscription, time_ns, json.loads(received[13:])

    def say(self, op: str, **words: object) -> None:
        self.connection.send(json.dumps({"op": op, **words}))


@pytest.fixture
def looking() -> Iterator[Any]:
    with ExitStack() as stack:

        def look(bridge: Bridge) -> Looking:
            dialled = connect(bridge.url, subprotocols=[PROTOCOL], open_timeout=PATIENCE_SECONDS)
            return Looking(stack.enter_context(dialled))

        yield look


def test_a_client_sees_channels_subscribes_and_gets_the_events(system: tuple[Hub, Hub], looking: Any) -> None:
    maker, viewer = system
    source = maker.create("trades", Trade).source()
    with Bridge(viewer, listen="127.0.0.1:0") as bridge:
        client = looking(bridge)
        assert client.told("serverInfo")["name"] == "echoic"
        (advertised,) = client.told("advertise")["channels"]
        assert (advertised["topic"], advertised["encoding"], advertised["schemaName"]) == ("trades", "json", "Trade")
        schema = json.loads(advertised["schema"])
        assert Format.from_descriptor(base64.b64decode(schema["x-echoic-descriptor"])) == Format.of(Trade)
        client.say("subscribe", subscriptions=[{"id": 7, "channelId": advertised["id"]}])
        wait_until(lambda: bridge.topics == {"trades": True}, "the bridge has subscribed")
        source.submit(Trade("IBM", 75.5))
        source.submit(Trade("SUN", 33.25))
        source.flush()
        first, second = client.message(), client.message()
    assert (first[0], first[2]) == (7, {"symbol": "IBM", "price": 75.5})
    assert second[2] == {"symbol": "SUN", "price": 33.25}
    assert 0 < first[1] <= second[1]


def test_a_channel_is_subscribed_to_only_while_somebody_looks(system: tuple[Hub, Hub], looking: Any) -> None:
    maker, viewer = system
    channel = maker.create("trades", Trade)
    channel.source()
    with Bridge(viewer, ["trades"], "127.0.0.1:0") as bridge:
        assert maker.describe("trades").sinks == []
        one, other = looking(bridge), looking(bridge)
        for client in (one, other):
            (advertised,) = client.told("advertise")["channels"]
            client.say("subscribe", subscriptions=[{"id": 1, "channelId": advertised["id"]}])
        wait_until(lambda: bridge.topics == {"trades": True}, "the bridge has subscribed")
        assert [sink.address for sink in maker.describe("trades").sinks] == [viewer.address]
        one.say("unsubscribe", subscriptionIds=[1])
        other.connection.close()
        wait_until(lambda: bridge.topics == {"trades": False}, "the bridge has unsubscribed")
        wait_until(lambda: maker.describe("trades").sinks == [], "no sink is there")


def test_channels_that_come_and_go_are_advertised_and_withdrawn(
    system: tuple[Hub, Hub], looking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge_module, "LOOK_SECONDS", 0.05)
    maker, viewer = system
    with Bridge(viewer, listen="127.0.0.1:0") as bridge:
        client = looking(bridge)
        maker.create("late", Trade)
        (advertised,) = client.told("advertise")["channels"]
        assert advertised["topic"] == "late"
        maker.remove("late")
        assert client.told("unadvertise")["channelIds"] == [advertised["id"]]
        assert bridge.topics == {}


def test_two_channels_of_one_name_are_two_topics(system: tuple[Hub, Hub], start_hub: StartHub) -> None:
    maker, viewer = system
    ids = [maker.create("trades", Trade).id, start_hub().create("trades", Trade).id]
    with Bridge(viewer, ids, "127.0.0.1:0") as bridge:
        assert sorted(bridge.topics) == sorted(["trades", ids[1]])


def test_a_channel_that_takes_the_place_of_another_is_advertised_anew(
    system: tuple[Hub, Hub], looking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge_module, "LOOK_SECONDS", 0.05)
    maker, viewer = system
    maker.create("trades", Trade)
    with Bridge(viewer, ["trades"], "127.0.0.1:0") as bridge:
        client = looking(bridge)
        assert client.told("advertise")["channels"][0]["schemaName"] == "Trade"
        maker.remove("trades")
        maker.create("trades", Quote)
        assert client.told("advertise")["channels"][0]["schemaName"] == "Quote"


def test_a_channel_that_is_named_must_be_there(system: tuple[Hub, Hub]) -> None:
    _, viewer = system
    with pytest.raises(ChannelNotFoundError, match="trdes"):
        Bridge(viewer, ["trdes"], "127.0.0.1:0")


def test_without_a_name_server_channels_must_be_named(start_hub: StartHub) -> None:
    hub: Hub = start_hub()
    with pytest.raises(AddressError, match="no name server"):
        Bridge(hub, (), "127.0.0.1:0")
    with Bridge(hub, [hub.create("trades", Trade).id], "127.0.0.1:0") as bridge:
        assert bridge.topics == {"trades": False}


def test_the_bridge_is_not_open_to_other_machines_by_mistake(system: tuple[Hub, Hub]) -> None:
    _, viewer = system
    with pytest.raises(InsecureError, match="other machines"):
        Bridge(viewer, (), "0.0.0.0:0")
    with Bridge(viewer, (), "127.0.0.1:0") as bridge, pytest.raises(UnreachableError, match="cannot listen"):
        Bridge(viewer, (), bridge.url.removeprefix("ws://"))


def test_the_bridge_speaks_tls(system: tuple[Hub, Hub], tmp_path: Path) -> None:
    _, viewer = system
    authority = Authority(tmp_path)
    identity = authority.issue("shown")
    context = ssl.create_default_context(cafile=str(authority.path))
    with Bridge(viewer, (), "127.0.0.1:0", certificate=(identity.certificate, identity.key)) as bridge:
        assert bridge.url.startswith("wss://")
        with connect(bridge.url, subprotocols=[PROTOCOL], ssl=context, open_timeout=PATIENCE_SECONDS) as connection:
            assert Looking(connection).told("serverInfo")["name"] == "echoic"
    with pytest.raises(InsecureError, match="cannot use certificate"):
        Bridge(viewer, (), "127.0.0.1:0", certificate=(identity.key, identity.key))


def test_only_pages_that_were_named_may_look(system: tuple[Hub, Hub]) -> None:
    _, viewer = system
    with Bridge(viewer, (), "127.0.0.1:0", origins=["http://localhost:8080"]) as bridge:
        with connect(bridge.url, subprotocols=[PROTOCOL], origin="http://localhost:8080") as connection:
            assert Looking(connection).told("serverInfo")["name"] == "echoic"
        for other in ("https://evil.example", "https://app.foxglove.dev"):
            with (
                pytest.raises(InvalidStatus),
                connect(bridge.url, subprotocols=[PROTOCOL], origin=other),
            ):
                pass
