"""A viewer that other machines reach: signed tokens over TLS 1.3, and what they do not grant does not exist."""

import http.client
import json
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from echoic import Hub
from echoic.errors import ChannelNotFoundError
from echoic.formats import format_of_text
from echoic.links import Identity, parse_address
from echoic.monitor import Load, browse
from echoic.testing.samples import Trade
from echoic.trust import ALL_RIGHTS
from echoic.trust.authority import Authority
from echoic.viewer import Viewer
from echoic.viewer.editing import Desk
from echoic.viewer.granted_desk import GrantedDesk
from echoic.viewer.grants import EVERYTHING, Grant
from echoic.viewer.messages import Description
from echoic.viewer.visible import visible_load
from tests.system.processes import wait_until
from tests.viewer.test_feed import Tab, chart

pytestmark = pytest.mark.system
HOUR = 3600
SECONDS = 60.0
CODE = "{ return input.price < param.low; }"


class Lab:
    """A viewer by TLS, two channels and one that is derived; and an authority that gives tokens."""

    def __init__(self, stack: ExitStack, rights: Path | None = None) -> None:
        self.authority = Authority.create()
        self.authority.issue("lab", ["127.0.0.1"])
        names = stack.enter_context(Hub(name="names"))
        hub = self.publisher = stack.enter_context(Hub(names=names.address, name="lab"))
        for name in ("trades", "secrets"):
            stack.enter_context(hub.create(name, Trade).source())
        hub.open("trades", Trade).derive(CODE, params={"low": 74.0}, name="trades.cheap")
        hub.open("secrets", Trade).derive(CODE, params={"low": 74.0}, name="trades.hidden_parent")
        self.eyes = stack.enter_context(Hub(names=names.address, name="eyes", rights=rights))
        self.identity = Identity.named("lab")
        self.viewer = stack.enter_context(Viewer(self.eyes, "127.0.0.1:0", identity=self.identity))
        self.context = ssl.create_default_context(cafile=str(self.identity.authority))

    def token(self, *rights: str, channels: tuple[str, ...] = ("trades*",), seconds: int = HOUR) -> str:
        return self.authority.issue_token("alice", rights, channels, seconds)

    @contextmanager
    def tab(self, token: str, max_queue: int = 16) -> Iterator[Tab]:
        headers = {"Authorization": f"Bearer {token}"}
        address = f"wss://{self.viewer.address}/feed"
        options: dict[str, Any] = {"additional_headers": headers, "ssl": self.context, "close_timeout": 1}
        with connect(address, open_timeout=SECONDS, max_queue=max_queue, max_size=None, **options) as opened:
            yield Tab(opened)

    def asked(self, path: str, **headers: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPSConnection(self.viewer.address, timeout=SECONDS, context=self.context)
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        response.body = response.read()  # type: ignore[attr-defined]
        connection.close()
        return response


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("ECHOIC_HOME", str(tmp_path_factory.mktemp("home")))
        yield Lab(stack)


def listed(tab: Tab) -> dict[str, Any]:
    tab.ask("Look", page="channels")
    overview: dict[str, Any] = tab.push("Overview", lambda each: each["load"]["channels"])["load"]
    return overview


def test_a_grant_is_of_rights_and_of_patterns() -> None:
    grant = Grant("alice", frozenset({"subscribe", "steer"}), ("trades*",))
    assert grant.allows("subscribe", "trades.eu")
    assert not grant.allows("derive", "trades.eu")
    assert not grant.allows("subscribe", "secrets")
    assert EVERYTHING.allows("admin", "whatever")


def test_why_the_name_server_is_lost_is_told_without_its_address() -> None:
    load = Load(1.0, [], [], [], "127.0.0.1:7", "nobody serves names at 127.0.0.1:7", 0, 0.0)
    seen = visible_load(load, Grant("alice", frozenset({"subscribe"}), ("*",)))
    assert seen.lost
    assert "127.0.0.1" not in seen.lost + seen.names
    assert visible_load(load, EVERYTHING).lost == load.lost


def test_a_signed_token_opens_the_page_and_becomes_the_cookie(lab: Lab) -> None:
    token = lab.token("subscribe")
    assert lab.viewer.token == ""
    assert lab.asked("/").status == 403
    entered = lab.asked(f"/?token={token}")
    assert entered.status == 303
    cookie = (entered.getheader("set-cookie") or "").partition(";")[0]
    assert cookie.endswith(token)
    assert lab.asked("/", Cookie=cookie).status == 200


def test_tokens_that_do_not_hold_are_refused_and_told_nothing(lab: Lab, tmp_path: Path) -> None:
    good, stranger = lab.token("subscribe"), Authority.create(tmp_path / "elsewhere")
    forged = stranger.issue_token("alice", ["subscribe"], ["*"], HOUR)
    altered = good[:-2] + ("BA" if good.endswith("AA") else "AA")  # of sixteen signatures one ends so
    for token in ("", "x" * 40, altered, forged):
        response = lab.asked("/", Authorization=f"Bearer {token}")
        assert response.status == 403
        assert b"trades" not in response.body  # type: ignore[attr-defined]
        with pytest.raises(InvalidStatus), lab.tab(token):
            pass


def test_what_is_not_granted_is_neither_listed_nor_found(lab: Lab) -> None:
    with lab.tab(lab.token("subscribe")) as tab:
        load = listed(tab)
        assert {each["name"] for each in load["channels"]} == {"trades", "trades.cheap", "trades.hidden_parent"}
        assert "secrets" not in json.dumps(load)
        assert load["names"] == ""
        for kind, more in (("Describe", {}), ("Open", {"watch": 7, "view": chart("price")})):
            hidden = tab.ask(kind, channel="secrets", **more)
            absent = tab.ask(kind, channel="nothing", **more)
            assert hidden["type"] == absent["type"] == "Failed"
            assert hidden["message"].replace("secrets", "nothing") == absent["message"]
        described = tab.ask("Describe", channel="trades.hidden_parent")
        assert (described["parent"], described["code"]) == ("", "")


def test_a_subscriber_watches_and_neither_derives_nor_steers(lab: Lab) -> None:
    with lab.tab(lab.token("subscribe")) as tab:
        assert tab.ask("Open", watch=1, channel="trades", view=chart("price"))["type"] == "Opened"
        described = tab.ask("Describe", channel="trades.cheap")
        assert described["may"] == []
        for refused in (
            tab.ask("Check", channel="trades", code="{ return 1; }", output="", params={}),
            tab.ask("Derive", channel="trades", code="{ return 1; }", output="", params={}, name="trades.mine"),
            tab.ask("Steer", channel="trades.cheap", values={"low": 3.0}),
            tab.ask("Drop", channel="trades.cheap"),
        ):
            assert refused["type"] == "Failed"
            assert "does not grant" in refused["message"]


def test_who_may_steer_steers_and_who_may_derive_derives_what_it_can_see(lab: Lab) -> None:
    with lab.tab(lab.token("subscribe", "steer", "derive")) as tab:
        assert tab.ask("Describe", channel="trades.cheap")["may"] == ["derive", "steer"]
        assert tab.ask("Steer", channel="trades.cheap", values={"low": 3.0})["type"] == "Description"
        wanted = {"channel": "trades", "code": "{ return 1; }", "output": "", "params": {}}
        assert "does not grant `subscribe`" in tab.ask("Derive", name="elsewhere", **wanted)["message"]
        assert tab.ask("Derive", name="trades.mine", **wanted)["type"] == "Description"
        assert tab.ask("Drop", channel="trades.mine")["type"] == "Done"


def test_what_was_derived_can_be_dropped_when_its_manager_is_gone(lab: Lab) -> None:
    with Hub(names=lab.eyes.names[0], name="brief") as brief, lab.tab(lab.token("subscribe", "derive")) as tab:
        brief.create("trades.brief", Trade)
        wanted = {"name": "trades.brief.few", "code": CODE.replace("param.low", "70.0"), "output": "", "params": {}}
        made = tab.ask("Derive", channel="trades.brief", **wanted)
        assert made["type"] == "Description"
        brief.close()
        with lab.tab(lab.token("subscribe", "derive", channels=("secrets*",))) as other:
            assert other.ask("Drop", channel="trades.brief.few")["message"] == "channel 'trades.brief.few' not found"
        with lab.tab(lab.token("subscribe")) as watcher:
            assert "does not grant `derive`" in watcher.ask("Drop", channel="trades.brief.few")["message"]
        assert tab.ask("Drop", channel="trades.brief.few")["type"] == "Done"
        assert tab.ask("Drop", channel=made["id"])["type"] == "Failed"


class Fading(Desk):
    """A desk at which channels are gone as soon as they were found."""

    def describe(self, channel: str, number: int) -> Description:
        """Find no channel that is called like this one."""
        self.find(channel + "x")
        return super().describe(channel, number)


def test_a_channel_that_is_gone_just_then_does_not_have_others_told_that_are_hidden(lab: Lab) -> None:
    grant = Grant("alice", frozenset({"subscribe"}), ("secrets",))
    desk = Fading(lab.eyes)
    with pytest.raises(ChannelNotFoundError, match="did you mean"):
        desk.describe("secrets", 1)
    with pytest.raises(ChannelNotFoundError, match=r"^channel 'secrets' not found$"):
        GrantedDesk(desk, grant).describe("secrets", 1)


@pytest.mark.parametrize(
    ("channels", "name"), [(("nothing.at.all",), "whatever"), (("*",), "whatever"), (("*",), "trades")]
)
def test_a_token_does_not_have_the_viewer_connect_to_where_its_owner_likes(
    lab: Lab, channels: tuple[str, ...], name: str
) -> None:
    with socket.create_server(("127.0.0.2", 0)) as trap, lab.tab(lab.token(*ALL_RIGHTS, channels=channels)) as tab:
        trap.settimeout(0.3)
        id = f"echoic://127.0.0.2:{trap.getsockname()[1]}/{name}"
        wanted = {"channel": id, "code": "{ return 1; }", "output": "", "params": {}}
        for refused in (
            tab.ask("Describe", channel=id),
            tab.ask("Open", watch=1, channel=id, view=chart("price")),
            tab.ask("Check", **wanted),
            tab.ask("Derive", name="trades.mine", **wanted),
            tab.ask("Steer", channel=id, values={"low": 3.0}),
            tab.ask("Drop", channel=id),
        ):
            assert refused["type"] == "Failed"
            assert "not found" in refused["message"]
        with pytest.raises(TimeoutError):
            trap.accept()


def test_what_is_listed_is_found_by_its_id_too(lab: Lab) -> None:
    with lab.tab(lab.token("subscribe")) as tab:
        ids = [each["id"] for each in listed(tab)["channels"]]
        assert [tab.ask("Describe", channel=id)["type"] for id in ids] == ["Description"] * 3
        hidden = ids[0].rpartition("/")[0] + "/secrets"
        assert "not found" in tab.ask("Describe", channel=hidden)["message"]


@pytest.mark.parametrize("page", ["groups", "bus", "pipelines"])
def test_the_other_pages_have_nothing_that_is_not_granted(lab: Lab, page: str) -> None:
    with lab.tab(lab.token("subscribe")) as tab:
        tab.ask("Look", page=page)
        load = tab.push("Overview", lambda each: each["page"] == page)["load"]
        assert load[{"groups": "groups", "bus": "buses", "pipelines": "pipelines"}[page]] == []


@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_a_session_ends_with_its_token(lab: Lab, how: str) -> None:
    token = lab.token("subscribe", seconds=2 if how == "expired" else HOUR)
    with lab.tab(token) as tab:
        tab.ask("Look", page="")
        if how == "revoked":
            lab.authority.revoke(lab.authority.issued()[-1].id)
        begun = time.monotonic()
        with pytest.raises(ConnectionClosed) as closed:
            tab.until(lambda: False)
        assert time.monotonic() - begun < 10
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1008
    with pytest.raises(InvalidStatus), lab.tab(token):
        pass


def test_who_does_not_read_steers_no_more_when_its_token_is_revoked(lab: Lab) -> None:
    wide = format_of_text("Wide{data: float64[9000]}")
    hub = lab.publisher
    steered = hub.open("trades", Trade).derive(CODE, params={"low": 70.0}, name="trades.steered")
    source = hub.create("trades.wide", wide).source()
    events = numpy.zeros(10, wide.dtype)

    def full() -> bool:
        source.submit_batch(events)
        source.flush()
        return lab.viewer.statistics().waiting_bytes > events.nbytes

    with lab.tab(lab.token("subscribe", "steer"), max_queue=1) as tab:
        tab.ask("Open", watch=1, channel="trades.wide", view={"type": "Events", "per_second": 100_000})
        tab.ask("Tune", watch=1, values={"every": 1})
        wait_until(lambda: all(full() for _ in range(20)), "nothing can be written any more")
        lab.authority.revoke(lab.authority.issued()[-1].id)
        wait_until(lambda: lab.viewer.statistics().watches == 0, "it is noticed")
        tab.say("Steer", channel="trades.steered", values={"low": 1.0})
        wait_until(lambda: lab.viewer.statistics().browsers == 0, "it is hung up on")
        assert steered.params.values == {"low": 70.0}


def test_what_a_program_has_derived_is_not_dropped_by_who_derives_the_same(lab: Lab) -> None:
    code = "{ return input.price < 12.5; }"
    made = lab.publisher.open("trades", Trade).derive(code, name="trades.low")
    with lab.tab(lab.token("subscribe", "derive")) as tab:
        equal = tab.ask("Derive", channel="trades", code=code, output="", params={}, name="trades.low")
        assert (equal["id"], equal["derived_here"]) == (made.id, False)
        for channel in ("trades.low", made.id):
            assert "was not derived by this viewer" in tab.ask("Drop", channel=channel)["message"]
    assert "trades.low" in {entry.name for entry in browse(lab.eyes)}


def test_only_tls_1_3_is_spoken(lab: Lab) -> None:
    old = ssl.create_default_context(cafile=str(lab.identity.authority))
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with (
        socket.create_connection(parse_address(lab.viewer.address), SECONDS) as stranger,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        old.wrap_socket(stranger, server_hostname="127.0.0.1")


def test_a_renewed_certificate_is_shown_without_a_restart(lab: Lab) -> None:
    def shown() -> bytes:
        with (
            socket.create_connection(parse_address(lab.viewer.address), SECONDS) as plain,
            lab.context.wrap_socket(plain, server_hostname="127.0.0.1") as made,
        ):
            return made.getpeercert(binary_form=True) or b""

    before = shown()
    lab.authority.rotate("lab")
    assert shown() != before


def test_a_stranger_has_only_so_long_to_shake_hands_and_to_say_what_it_wants(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_connection(parse_address(lab.viewer.address), SECONDS) as silent:
        silent.settimeout(SECONDS)
        begun = time.monotonic()
        assert silent.recv(100) == b""
        assert 2 < time.monotonic() - begun < 15
    with (
        socket.create_connection(parse_address(lab.viewer.address), SECONDS) as plain,
        lab.context.wrap_socket(plain, server_hostname="127.0.0.1") as slow,
    ):
        slow.settimeout(SECONDS)
        slow.sendall(b"GET / HTTP/1.1\r\nHost: ")
        begun = time.monotonic()
        with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
            assert slow.recv(100)
        assert time.monotonic() - begun < 15
