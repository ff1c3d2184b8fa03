"""Who loses his right or his certificate while a command runs is told so, and a publisher does not say success."""

import json
import logging
import socket
import time
from pathlib import Path

import pytest

from echoic import Hub, Identity
from echoic.channels import neighbour
from echoic.cli.meeting import Meeting, open_hub
from echoic.cli.publishing import Publisher
from echoic.cli.settings import LISTEN_DEFAULT
from echoic.errors import UnreachableError
from echoic.links import dial, parse_address
from echoic.monitor import Following
from echoic.rights import parse_rights
from echoic.testing.samples import Trade
from echoic.testing.trials.tls_expiry import issue_brief
from echoic.trust.authority import Authority
from tests.cli.terminals import desk, free_port, type_here
from tests.conftest import StartHub
from tests.hub.parties import eventually

RULES = """
allow exchange   publish,admin      *
allow reader     subscribe          trades
"""
PUBLISH = "allow writer publish,subscribe trades\n"
LOOK = "allow writer subscribe trades\n"
BRIEF_SECONDS = 6.0
OPTIONAL = {"viewer": "uvicorn", "foxglove": "foxglove"}  # what a verb needs that may not be installed


class Exchange:
    """A hub that serves names and manages `trades`, a reader there, and hubs of others."""

    def __init__(self, home: Path, start_hub: StartHub) -> None:
        self.authority = Authority.create()
        for name in ("exchange", "reader", "writer"):
            self.authority.issue(name, ["127.0.0.1"])
        self._home = home
        self._start = start_hub
        self.hub = start_hub(identity=self.identity("exchange"), rights=parse_rights(RULES + PUBLISH))
        self.trades = self.hub.create("trades", Trade)
        self.got: list[int] = []

    def identity(self, name: str) -> Identity:
        return Identity.named(name, self._home)

    def joined_by(self, identity: Identity) -> Hub:
        return self._start(identity=identity, names=self.hub.address)

    def allow(self, rules: str) -> None:
        self.hub.set_rights(parse_rights(RULES + rules))

    def read(self) -> None:
        opened = self.joined_by(self.identity("reader")).open(self.trades.id, Trade)
        opened.subscribe(lambda trade: self.got.append(trade.volume))


@pytest.fixture
def exchange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start_hub: StartHub) -> Exchange:
    monkeypatch.setenv("ECHOIC_HOME", str(tmp_path))
    return Exchange(tmp_path, start_hub)


@pytest.mark.parametrize("left", ["", LOOK], ids=["all of it", "what publishes"])
def test_a_publisher_says_that_its_right_was_withdrawn_and_that_it_is_back(
    exchange: Exchange, left: str, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = exchange.identity("writer")
    publisher = Publisher(exchange.joined_by(writer), "trades", None, writer)
    exchange.read()
    publisher.await_subscribers(1)
    publisher.submit(Trade("IBM", 1.0, 1))
    eventually(lambda: exchange.got == [1], "an event has come")
    assert publisher.trouble == ""
    exchange.allow(left)
    eventually(lambda: publisher.trouble, "the publisher knows")
    said = capsys.readouterr().err
    assert f"events of 'trades' may reach nobody: {publisher.trouble}" in said
    assert ("may not publish `trades`" if left else "none that you have a right to") in publisher.trouble
    exchange.allow(PUBLISH)
    eventually(lambda: "publishing to 'trades' goes on" in capsys.readouterr().err, "it goes on")
    publisher.submit(Trade("IBM", 1.0, 2))
    eventually(lambda: exchange.got == [1, 2], "events come again")
    assert publisher.trouble, "some may have been lost meanwhile"
    publisher.stop()


def test_a_publisher_whose_certificate_expires_says_so_and_founds_no_channel_that_nobody_finds(
    exchange: Exchange, capsys: pytest.CaptureFixture[str]
) -> None:
    brief = issue_brief(exchange.authority, "writer", BRIEF_SECONDS)
    publisher = Publisher(exchange.joined_by(brief), "trades", Trade, brief)
    eventually(lambda: publisher.trouble, "the publisher knows")
    assert "our certificate has expired" in capsys.readouterr().err
    assert publisher.channel.id == exchange.trades.id
    publisher.stop()


def test_a_publisher_stays_with_its_channel_while_neither_names_nor_manager_answer(start_hub: StartHub) -> None:
    names = start_hub()
    manager = start_hub(names=names.address)
    id = manager.create("trades", Trade).id
    publisher = Publisher(start_hub(names=names.address), "trades", Trade)
    names.close()
    manager.close()
    eventually(lambda: publisher.trouble, "the publisher knows")
    assert publisher.channel.id == id
    publisher.stop()


def test_a_follower_says_that_its_right_was_withdrawn_and_goes_on_when_it_is_back(exchange: Exchange) -> None:
    said: list[str] = []
    got: list[int] = []
    hub = exchange.joined_by(exchange.identity("writer"))
    following = Following(
        hub,
        "trades",
        lambda channel: channel.subscribe(lambda trade: got.append(trade.volume)),
        said.append,
    )
    source = exchange.trades.source()
    eventually(lambda: source.submit(Trade("IBM", 1.0, 1)) or got, "events come")
    exchange.allow("")
    eventually(lambda: said, "it is said")
    time.sleep(2.5)
    assert [line.startswith("waiting for channel 'trades': ") for line in said] == [True], "once"
    exchange.allow(PUBLISH)
    eventually(lambda: source.submit(Trade("IBM", 1.0, 2)) or 2 in got, "events come again")
    following.stop()


def test_a_follower_whose_certificate_expires_says_so(exchange: Exchange, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbour, "LOST_NS", 2_000_000_000)
    said: list[str] = []
    hub = exchange.joined_by(issue_brief(exchange.authority, "reader", BRIEF_SECONDS))
    following = Following(hub, "trades", lambda channel: channel.subscribe(lambda _: None), said.append)
    assert following.channel is not None
    eventually(lambda: said, "it is said")
    assert "it refuses our certificate, which has expired" in said[0]
    following.stop()


def test_a_follower_keeps_quiet_when_only_the_name_server_is_gone(start_hub: StartHub) -> None:
    names = start_hub()
    manager = start_hub(names=names.address)
    manager.create("trades", Trade)
    said: list[str] = []
    hub = start_hub(names=names.address)
    following = Following(hub, "trades", lambda channel: channel.subscribe(lambda _: None), said.append)
    names.close()
    time.sleep(5)
    assert said == []
    following.stop()


LOOKING = [("ls",), ("names", "ls"), ("info", "trades"), ("top", "--once")]


@pytest.mark.parametrize("verb", LOOKING, ids=" ".join)
@pytest.mark.parametrize(
    ("identity", "reason"),
    [
        ("", "it may want TLS: name an "),
        ("revoked", "it refuses our certificate, which is revoked"),
        ("expired", "it refuses our certificate, which has expired"),
    ],
    ids=["nobody", "revoked", "expired"],
)
def test_who_is_not_let_in_is_told_why_and_not_that_nobody_is_there(
    exchange: Exchange, verb: tuple[str, ...], identity: str, reason: str
) -> None:
    exchange.authority.issue("revoked", ["127.0.0.1"])
    exchange.authority.revoke("revoked")
    issue_brief(exchange.authority, "expired", -1.0)
    code, out, said = type_here(*verb, "--names", exchange.hub.address, "--identity", identity)
    assert (code, out) == (1, "")
    assert f"the name server at {exchange.hub.address} " in said
    assert reason in said
    assert "nobody serves names" not in said


def test_one_table_of_nobody_is_an_error() -> None:
    nobody = f"127.0.0.1:{free_port()}"
    code, out, said = type_here("top", "--once", "--names", nobody)
    assert (code, out) == (1, "")
    assert f"nobody serves names at {nobody}" in said


def test_a_hub_logs_whom_it_refuses_and_why_however_many_they_are(
    exchange: Exchange, caplog: pytest.LogCaptureFixture
) -> None:
    exchange.authority.issue("revoked", ["127.0.0.1"])
    exchange.authority.revoke("revoked")
    expired = issue_brief(exchange.authority, "expired", -1.0)
    for identity in (exchange.identity("revoked"), expired) * 15:
        speak(exchange.hub.address, b"GET / HTTP/1.1\r\n\r\n")
        with pytest.raises(UnreachableError):
            dial(exchange.hub.address, identity)
    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    for reason in ("it speaks HTTP", "certificate has expired", "certificate revoked"):
        assert len([line for line in told if reason in line]) == 1, told
    assert len(told) == 3
    assert all(line.startswith("refused a connection from 127.0.0.1:") for line in told)


def test_who_looks_whether_somebody_listens_is_not_logged(exchange: Exchange, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(5):
        socket.create_connection(parse_address(exchange.hub.address)).close()
    exchange.read()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def speak(address: str, said: bytes) -> None:
    """Say something that is not TLS, and wait for the end."""
    with socket.create_connection(parse_address(address)) as connection:
        connection.sendall(said)
        while connection.recv(4096):
            pass


def test_a_channel_whose_manager_leaves_it_out_is_not_called_unreachable(
    exchange: Exchange, start_hub: StartHub
) -> None:
    names = start_hub(identity=exchange.identity("exchange"))
    rules = parse_rights(RULES + "deny writer * trades")
    manager = start_hub(identity=exchange.identity("exchange"), names=names.address, rights=rules)
    manager.create("trades", Trade)
    told = {}
    for who in ("writer", "reader"):
        words = ("ls", "--names", names.address, "--identity", who)
        told[who] = [type_here(*words)[1].split()[-3:], type_here(*words, "--types")[1]]
        (found,) = json.loads(type_here(*words, "--json")[1])
        told[who] += [found["reachable"], found["shown"]]
    assert told == {
        "writer": [["trades", "not", "shown"], "trades [not shown]\n", True, False],
        "reader": [["Trade", "0", "0"], "trades [Trade]\n", True, True],
    }


@pytest.mark.parametrize(
    ("verb", "listen", "warned"),
    [
        ("up", LISTEN_DEFAULT, True),
        ("echo", "127.0.0.2:0", True),
        ("echo", LISTEN_DEFAULT, False),  # perhaps nobody has to dial it
        ("names", "0.0.0.0:0", False),  # nobody knows by which host it is dialled
    ],
)
def test_who_listens_where_its_certificate_is_not_for_is_told_how_to_mend_that(
    exchange: Exchange, capsys: pytest.CaptureFixture[str], verb: str, listen: str, warned: bool
) -> None:
    exchange.authority.issue("lab", ["10.0.0.5", "lab.example.org"])
    with open_hub(listen, exchange.hub.address, verb, insecure=False, identity="lab") as hub:
        said = capsys.readouterr().err
    if not warned:
        assert said == ""
        return
    host = parse_address(hub.address)[0]
    assert f"who dials {hub.address} does not believe `lab`" in said
    assert f"is for 10.0.0.5, lab.example.org and not for {host}" in said
    assert f"`echoic keys issue lab --host 10.0.0.5 --host lab.example.org --host {host} --force`" in said


def test_who_serves_names_where_its_certificate_is_not_for_is_told(
    exchange: Exchange, capsys: pytest.CaptureFixture[str]
) -> None:
    exchange.authority.issue("lab", ["10.0.0.5"])
    with Meeting(f"127.0.0.1:{free_port()}", exchange.identity("lab")) as meeting:
        assert f"who dials {meeting.address} does not believe `lab`" in capsys.readouterr().err
    with Meeting(f"127.0.0.1:{free_port()}", exchange.identity("reader")):
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize("verb", ["viewer", "metrics", "foxglove"])
def test_who_serves_strangers_in_the_clear_is_told_the_options_that_mend_it(exchange: Exchange, verb: str) -> None:
    pytest.importorskip(OPTIONAL.get(verb, "echoic"))
    code, _, said = type_here(verb, "--listen", "0.0.0.0:0", "--names", exchange.hub.address, "--identity", "")
    assert code == 4
    assert "a --certificate and its --key, or pass --insecure if meant" in said
    assert ("--identity" in said) == (verb == "viewer")
    assert "insecure=True" not in said


@pytest.mark.system
def test_what_a_command_says_to_try_finds_what_it_has_made(exchange: Exchange) -> None:
    with desk() as place:
        typed = ["--names", place.names, "--identity", "writer"]
        options = " " + " ".join(typed)
        up = place.start("up", "trades=Trade{symbol: str, price: float}", *typed)
        up.says(
            f"try: echoic ls{options}; echoic echo trades{options}; echoic pub trades symbol=... price=...{options}"
        )
        assert "trades" in place.run("ls", *typed).out
        derived = place.run("derive", "trades", "input.price < 1", "--name", "trades.cheap", "--leave", *typed)
        assert (
            f"try: echoic echo trades.cheap{options}; echoic info trades.cheap{options}; echoic top{options}"
            in derived.err
        )


@pytest.mark.system
def test_the_page_is_in_the_clear_on_this_machine_and_says_so(exchange: Exchange) -> None:
    pytest.importorskip("uvicorn")
    with desk() as place:
        options = ("--listen", "127.0.0.1:0", "--names", exchange.hub.address)
        page = place.start("viewer", *options, "--identity", "reader").shows("http://")
        page.says("the page is in the clear, as only this machine reaches it")
        page = place.start("viewer", *options, "--identity", "").shows("http://").says("Ctrl-C ends")
        page.interrupt()
        assert "in the clear" not in page.err
