"""`echoic group`: members in terminals, who is in the group, what it has ordered, and what packing does for it."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from echoic.cli.typed_lines import event_of_line
from echoic.errors import EchoicError
from echoic.formats import format_of_text
from echoic.replicas import ReplicatedLog
from echoic.testing.bench.groups import Result
from tests.cli.terminals import Desk, Terminal, desk, free_port, type_here
from tests.replicas.ticks import Tick, deliver

pytestmark = pytest.mark.system

TRANSFER = "Transfer{account: str, amount: int}"


@pytest.fixture
def system() -> Iterator[Desk]:
    with desk() as made:
        yield made


class Peers:
    """The members of a group, each in a terminal."""

    def __init__(self, system: Desk, *names: str) -> None:
        self.system = system
        self.addresses = {name: f"127.0.0.1:{free_port()}" for name in names}

    def words(self, me: str) -> list[str]:
        peers = [word for name, address in self.addresses.items() for word in ("--peer", f"{name}={address}")]
        return ["group", "join", "ledger", TRANSFER, "--me", me, *peers]

    def join(self, me: str, *words: str) -> Terminal:
        return self.system.start(*self.words(me), *words)


def test_members_in_terminals_print_the_same_events_in_the_same_order(system: Desk, tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/ledger.db"
    peers = Peers(system, "n1", "n2", "n3")
    one = peers.join("n1", "--csv", "--metadata")
    two = peers.join("n2", "--json", "--metadata", "--state-in", url)
    three = peers.join("n3")
    for terminal in (one, two, three):
        terminal.says("view ").says("n1, n2, n3")
    one.type("account=A amount=1", '{"account": "B", "amount": 2}', "", "amount=many")
    one.says("not submitted: expected `int64`, got").shows("2,n1,B,2\n")
    two.type("{account: C D, amount: 3}")
    for terminal, text in ((one, "3,n2,C D,3\n"), (two, '"account":"C D","amount":3}\n'), (three, "amount: 3\n---\n")):
        terminal.shows(text)
    assert one.out == "_sequence,_sender,account,amount\n1,n1,A,1\n2,n1,B,2\n3,n2,C D,3\n"
    assert [json.loads(line)["_sequence"] for line in two.out.splitlines()] == [1, 2, 3]
    assert three.out == "account: A\namount: 1\n---\naccount: B\namount: 2\n---\naccount: C D\namount: 3\n---\n"

    view_of(system, peers)

    three.kill()
    one.says("view ").says(": n1, n2\n")
    assert two.interrupt() == 0
    one.says("not in a primary view: ")
    assert one.interrupt(signal.SIGTERM) == 0
    assert type_here("group", "log", url, "ledger", "--csv") == (0, one.out, "")


def view_of(system: Desk, peers: Peers) -> None:
    """Look at the group, by the address of a member and by its name."""
    at_two = system.run("group", "view", "ledger", "--at", peers.addresses["n2"], "--json")
    told = json.loads(at_two.out)
    assert (told["member"], told["members"], told["primary"]) == ("n2", ["n1", "n2", "n3"], True)
    assert (told["delivered"], told["submitted"], told["packing"]) == (3, 1, "probe")
    every = system.run("group", "view", "ledger")
    head, *rows = every.out.splitlines()
    assert head.split()[:4] == ["MEMBER", "VIEW", "MEMBERS", "LEADER"]
    assert [row.split()[0] for row in rows] == ["n1", "n2", "n3"]
    missing = system.run("group", "view", "nothing", "--at", peers.addresses["n1"])
    assert (missing.process.returncode, missing.err) == (
        3,
        f"error: no member of group 'nothing' at {peers.addresses['n1']}; there is ledger\n",
    )
    watching = system.start("group", "view", "ledger", "--at", peers.addresses["n1"], "--watch")
    watching.shows("MEMBER").shows("\n\nMEMBER")
    assert watching.interrupt() == 0


def test_what_is_piped_is_ordered_and_then_the_member_leaves(system: Desk, tmp_path: Path) -> None:
    peers = Peers(system, "n1")
    words = ["--path", str(tmp_path / "n1"), "--leave", "--csv", "--packing", "static:5"]
    piped = peers.join("n1", *words)
    piped.type(*(json.dumps({"account": "A", "amount": number}) for number in range(100)))
    assert piped.ends() == 0
    assert piped.out == "account,amount\n" + "".join(f"A,{number}\n" for number in range(100))
    again = peers.join("n1", *words, "--metadata")
    again.type("account=B amount=1", "nonsense")
    assert again.ends() == 1  # a line was no event
    assert "not submitted: expected {field: value, ...} or field=value" in again.err
    assert again.out.splitlines()[-1] == "101,n1,B,1"
    assert len(again.out.splitlines()) == 102


def test_a_member_alone_says_whom_it_waits_for_and_ends_after_so_many_events(system: Desk) -> None:
    peers = Peers(system, "n1", "n2")
    one = peers.join("n1", "-n", "2")
    one.says("waiting for n2: all peers must be there when a group is first started")
    one.type("account=A amount=1")
    two = peers.join("n2", "--leave")
    two.type("account=B amount=2")
    assert (one.ends(), one.out.count("---")) == (0, 2)
    assert two.ends() == 0


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--me", "n1", "--peer", "n2=127.0.0.1:7401"], 1, "this member, `n1`, is none of the peers: n2"),
        (["--me", "n1", "--peer", "n1"], 1, "expected NAME=HOST:PORT, each name once, got `n1` - at --peer"),
        (["--me", "n1", "--peer", "n1=a:1", "--peer", "n1=b:1"], 1, "each name once, got `n1=b:1`"),
        (["--me", "n1", "--peer", "n1=nowhere"], 1, "nowhere"),
        (["--me", "n1", "--peer", "n1=0.0.0.0:7401"], 4, "pass --insecure if meant"),
        (["--me", "n1", "--peer", "n1=127.0.0.1:7401", "-n", "0"], 1, "expected --count to be a number of events"),
        (["--me", "n1", "--peer", "n1=127.0.0.1:7401", "--json", "--field", "a", "--metadata"], 1, "--metadata stands"),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_begun(words: list[str], code: int, message: str) -> None:
    found, out, told = type_here("group", "join", "ledger", TRANSFER, *words)
    assert (found, out) == (code, "")
    assert message in told


def test_a_packing_or_a_type_that_is_none_is_told(system: Desk) -> None:
    peers = Peers(system, "n1")
    wrong = system.run(*peers.words("n1"), "--packing", "tight")
    assert (wrong.process.returncode, wrong.err) == (
        1,
        "error: expected auto, probe, static:N, nagle:BYTES, paper or paper-simple, got `tight`\n",
    )
    code, _, told = type_here("group", "join", "ledger", "Transfer{a: nonsense}", "--me", "n1", "--peer", "n1=a:1")
    assert (code, "nonsense" in told) == (1, True)


def test_nobody_at_an_address_is_told(system: Desk) -> None:
    address = f"127.0.0.1:{free_port()}"
    nobody = system.run("group", "view", "ledger", "--at", address)
    assert nobody.process.returncode == 1
    assert f"no hub answers at {address}" in nobody.err


@pytest.fixture
def ticks(tmp_path: Path) -> str:
    url = f"sqlite:{tmp_path}/logs.db"
    with ReplicatedLog("ticks", Tick, url) as log:
        deliver(log, 1, 30)
        log.flush()
    return url


def test_a_log_is_read_without_its_type(ticks: str) -> None:
    code, out, err = type_here("group", "log", ticks, "ticks", "--after", "10", "--limit", "2")
    assert (code, err) == (0, "")
    head, first, second = out.splitlines()
    assert head.split() == ["SEQUENCE", "SENDER", "NUMBER", "PRICE", "SYMBOL", "NOTE", "PAYLOAD", "UP"]
    assert first.split()[:3] == ["11", "member-1", "11"]
    assert second.split()[:3] == ["12", "member-1", "12"]
    code, out, _ = type_here("group", "log", ticks, "ticks", "--json")
    events = [json.loads(line) for line in out.splitlines()]
    assert [event["_sequence"] for event in events] == list(range(1, 31))
    assert events[2]["note"] == "note 'of' \"3\" \\ %s ?"
    assert events[3]["note"] is None


def test_a_log_that_is_written_is_followed(system: Desk, ticks: str) -> None:
    following = system.start("group", "log", ticks, "ticks", "--follow", "--csv", "--after", "29")
    following.shows("30,member-0,30")
    with ReplicatedLog("ticks", Tick, ticks) as log:
        deliver(log, 31, 33)
        log.flush()
        following.shows("33,member-0,33")
    assert following.interrupt() == 0
    assert [line.split(",")[0] for line in following.out.splitlines()] == ["_sequence", "30", "31", "32", "33"]


def test_a_log_that_is_not_there_is_told_and_not_made(ticks: str, tmp_path: Path) -> None:
    code, _, told = type_here("group", "log", ticks, "tocks")
    assert (code, "there is no log `tocks`, known: ticks" in told) == (1, True)
    code, _, told = type_here("group", "log", f"sqlite:{tmp_path}/none.db", "ticks")
    assert (code, "there is no file" in told) == (1, True)
    assert not (tmp_path / "none.db").exists()
    assert type_here("group", "log", ticks, "tocks")[0] == 1
    assert type_here("group", "log", ticks, "ticks", "--after", "-1")[0] == 1


def test_packings_are_measured_beside_no_packing() -> None:
    words = ["--packing", "static:1,static:8", "--seconds", "0.4", "--rounds", "1", "--replicas", "2", "--size", "100"]
    code, out, _ = type_here("group", "bench", *words, "--json")
    one, eight = json.loads(out)
    assert code == 0
    assert (one["packing"], one["ratio"], eight["packing"]) == ("static:1", 1.0, "static:8")
    assert one["degree"] == 1
    assert eight["degree"] > 1
    assert eight["ratio"] == pytest.approx(eight["throughput"] / one["throughput"])
    assert {"latency", "cpu", "degree"} <= set(Result.__struct_fields__)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--source", "drip"], "expected continuous, burst:COUNT:MILLISECONDS or sizes:BYTES:BYTES, got `drip`"),
        (["--source", "burst:1.5:20"], "expected continuous"),
        (["--source", "sizes:1000:x"], "expected continuous"),
        (["--packing", "static:0"], "a pack has at least 1 message, got 0"),
        (["--packing", "auto,auto"], "named twice"),
        (["--rounds", "0"], "expected 1 to 100 rounds, got 0"),
        (["--size", "1"], "messages have"),
        (["--replicas", "99"], "replicas, got 99"),
    ],
)
def test_what_cannot_be_measured_is_told(words: list[str], message: str) -> None:
    code, _, told = type_here("group", "bench", *words)
    assert code == 1
    assert message in told


@pytest.mark.parametrize(
    "line", ["account=A amount=1", "  account='A' amount=1 ", '{"account":"A","amount":1}', "{account: A, amount: 1}"]
)
def test_a_line_spells_an_event_in_three_ways(line: str) -> None:
    assert event_of_line(line, format_of_text(TRANSFER)) == {"account": "A", "amount": 1}


@pytest.mark.parametrize(
    "line", ["account='A amount=1", "account=A", "[1]", "{", "account=A amount=99999999999999999999"]
)
def test_a_line_that_spells_no_event_is_refused(line: str) -> None:
    with pytest.raises(EchoicError):
        event_of_line(line, format_of_text(TRANSFER))
