"""Who is at a bus, for as long as it is there: the same one who comes back, known names, rights, shares, expiry."""

import datetime
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from echoic.errors import DeniedError, EchoicError, RefusedError
from echoic.hub import Hub
from echoic.links import Credentials, Identity, Visitor
from echoic.rights import parse_rights
from echoic.terms import Term
from echoic.toolbus import Bus, BusLimits
from echoic.toolbus.dialling import Greeted, _greet
from echoic.toolbus.guest import NOBODY, Guest
from echoic.toolbus.house_rules import HouseRules
from echoic.toolbus.protocol import Hello, Message, MessageKind, Resumption
from echoic.toolbus.references.tokens import resumption_token
from echoic.toolbus.sessions import Session
from echoic.toolbus.shares import Shares
from echoic.toolbus.visitors import LOOK_SECONDS, STRANGER
from echoic.trust import Issuers, identity_path, write_private
from echoic.trust.authority import Authority
from echoic.trust.certificates import make_certificate, read_certified
from echoic.trust.folder import ISSUERS
from echoic.trust.issuers import SETTLED_SECONDS
from tests.hub.parties import eventually
from tests.toolbus.conftest import MakeBus
from tests.toolbus.test_strangers import ONE_EVAL
from tests.toolbus.workshop import Calc, script

pytestmark = pytest.mark.system
HOUR = 3600
SECONDS = 60.0
LEASE_SECONDS = 30.0
UNTIL_LOST = script("rec-connect(T?) . rec-disconnect(T) . shutdown(lost)")
Party = Identity | Visitor


@pytest.fixture
def start(make_bus: MakeBus, bus_identity: Identity) -> Callable[..., Bus]:
    """Start a bus that believes certificates and tokens."""

    def start_bus(source: str = UNTIL_LOST, **options: object) -> Bus:
        bus = make_bus(source, identity=bus_identity, issuers=Issuers(), **options)
        bus.start()
        return bus

    return start_bus


def connected(bus: Bus, party: Party, token: str = "") -> Calc:
    tool = Calc()
    tool.connect(bus.address, token=token, identity=party, timeout=SECONDS)
    tool.start()
    return tool


def token_for(authority: Authority, who: str, *, seconds: int = HOUR) -> str:
    return authority.issue_token(who, ["publish"], ["tool:calc"], seconds)


def named(authority: Authority, name: str) -> Identity:
    authority.issue(name, ["127.0.0.1"])
    return Identity.named(name)


def expiring(authority: Authority, name: str, seconds: float, *, again: bool = False) -> Identity:
    """Return an identity whose certificate holds for so many seconds yet."""
    folder = authority.folder
    ours = read_certified((folder / "authority.pem").read_bytes(), (folder / "authority.key").read_bytes(), name)
    begun = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=-1, seconds=seconds)
    made = make_certificate(ours, name, ["127.0.0.1"], begun, days=1)
    write_private(identity_path(name), made.key_pem() + made.certificate_pem(), replace=again)
    return Identity.named(name)


def vanish(bus: Bus, tool: Calc) -> Callable[[Party, str], Greeted]:
    """Break the connection of a tool that will not come back by itself; return what does so with its secret."""
    speaker = tool._service._speaker  # noqa: SLF001 - what a thief has read in its memory
    registration, session = speaker._registration, speaker._session  # noqa: SLF001 - likewise
    speaker._closed = True  # noqa: SLF001 - a process that is gone
    speaker._connection.close()  # noqa: SLF001 - likewise
    eventually(lambda: bus._leases._suspended, "the bus waits for it")  # noqa: SLF001 - nothing else tells
    secret = resumption_token(registration.key, number=speaker.number, epoch=registration.epoch)
    back = Resumption(speaker.number, registration.epoch, session.heard)
    return lambda party, name: _greet(bus.address, Hello(name, token=secret, resumption=back), party, SECONDS)


def test_who_came_by_a_certificate_comes_back_by_that_of_the_same_name_alone(
    start: Callable[..., Bus], authority: Authority
) -> None:
    bus = start(lease_seconds=LEASE_SECONDS)
    honest, other = named(authority, "honest"), named(authority, "other")
    come_back = vanish(bus, connected(bus, honest))

    with pytest.raises(RefusedError, match=STRANGER):
        come_back(Visitor.of_authority(), "calc")
    with pytest.raises(RefusedError, match="comes back as another than it was"):
        come_back(other, "calc")
    with pytest.raises(RefusedError, match="comes back as another than it was"):
        come_back(honest, "clac")
    authority.rotate("honest")
    greeted = come_back(Identity.named("honest"), "calc")
    assert greeted.greeting.number == 1
    greeted.connection.close()
    assert not bus.wait(0.3)


def test_who_came_by_a_token_does_not_come_back_by_a_certificate(
    start: Callable[..., Bus], authority: Authority
) -> None:
    bus = start(lease_seconds=LEASE_SECONDS)
    come_back = vanish(bus, connected(bus, Visitor.of_authority(), token_for(authority, "alice")))
    with pytest.raises(RefusedError, match="comes back as another than it was"):
        come_back(named(authority, "other"), "calc")
    come_back(Visitor.of_authority(), "calc").connection.close()


def test_who_lost_its_token_while_it_was_away_does_not_come_back(
    start: Callable[..., Bus], authority: Authority
) -> None:
    bus = start(lease_seconds=LEASE_SECONDS)
    come_back = vanish(bus, connected(bus, Visitor.of_authority(), token_for(authority, "alice")))
    authority.revoke(authority.issued()[-1].id)
    for _ in range(2):  # the file of what was revoked may just be being written
        with pytest.raises(EchoicError):  # it is told so, unless the bus is faster to end, as its script then does
            come_back(Visitor.of_authority(), "calc")
        time.sleep(2 * SETTLED_SECONDS)
    assert bus.wait(LEASE_SECONDS / 2), "it is lost at once"
    assert any("it came back, and may not go on: the token is refused" in each for each in bus.warnings())


def test_a_list_of_issuers_that_is_empty_while_it_is_copied_takes_no_tool(
    start: Callable[..., Bus], authority: Authority
) -> None:
    bus, path = start(lease_seconds=HOUR), authority.folder / ISSUERS
    connected(bus, Visitor.of_authority(), token_for(authority, "mallory"))
    was = path.read_bytes()
    for contents in (b"", was):
        path.write_bytes(contents)
        assert not bus.wait(4 * LOOK_SECONDS)
    authority.revoke("mallory")
    assert bus.wait(SECONDS), "it is hung up on"


def test_a_tool_that_is_hung_up_on_for_its_certificate_has_no_lease(
    start: Callable[..., Bus], authority: Authority
) -> None:
    bus = start(lease_seconds=10 * SECONDS)
    connected(bus, named(authority, "thief"))
    assert not bus.wait(0.3)
    authority.revoke("thief")
    assert bus.wait(SECONDS)
    assert bus.value is Term("lost")
    assert any("the certificate of `thief` is revoked" in each for each in bus.warnings())


def test_a_certificate_that_expires_ends_the_conversation(start: Callable[..., Bus], authority: Authority) -> None:
    bus = start()
    party = expiring(authority, "brief", 4.0)
    connected(bus, party)
    assert not bus.wait(0.3)
    assert bus.wait(SECONDS)
    assert any("the certificate of `brief` has expired" in each for each in bus.warnings())


def test_who_lets_its_certificate_expire_is_lost_when_its_lease_is_over(
    start: Callable[..., Bus], authority: Authority
) -> None:
    bus = start(lease_seconds=2.0)
    connected(bus, expiring(authority, "brief", 4.0))
    assert bus.wait(SECONDS)
    lost = "the certificate of `brief` has expired, and did not come back within 2 seconds"
    assert any(lost in each for each in bus.warnings())


def test_who_has_renewed_its_certificate_when_the_other_expires_goes_on(
    start: Callable[..., Bus], authority: Authority
) -> None:
    bus = start(lease_seconds=10 * SECONDS)
    connected(bus, expiring(authority, "brief", 4.0))
    later = time.time() + HOUR / 2
    expiring(authority, "brief", HOUR, again=True)

    def shows_the_other() -> bool:
        lines = list(bus.visitors._followed.values())  # noqa: SLF001 - nothing else tells
        return any(each.guest.credentials and each.guest.credentials.expires > later for each in lines)

    assert not shows_the_other()
    eventually(shows_the_other, "it is hung up on, and comes back", SECONDS)
    assert not bus.wait(1.5)
    assert bus.warnings() == ()


def test_what_the_bus_has_started_stays_when_the_certificate_of_the_bus_expires(
    make_bus: MakeBus, authority: Authority
) -> None:
    bus = make_bus(
        script("execute(calc, T?) . rec-disconnect(T) . shutdown(lost)"), identity=expiring(authority, "brief", 8.0)
    )
    expires = time.time() + 8.0
    bus.start()
    eventually(lambda: bus.statistics().tools, "its tool is there", SECONDS)
    assert not bus.wait(expires - time.time() + 2.0), bus.warnings()


def test_what_the_bus_has_started_is_hung_up_on_when_its_certificate_is_revoked(
    start: Callable[..., Bus], authority: Authority
) -> None:
    bus = start(script("execute(calc, T?) . rec-disconnect(T) . shutdown(lost)"), lease_seconds=10 * SECONDS)
    eventually(lambda: bus.statistics().tools, "its tool is there", SECONDS)
    authority.revoke("bus")
    assert bus.wait(SECONDS)


def test_a_bus_looks_after_its_visitors_from_its_start_to_its_end(start: Callable[..., Bus], make_bus: MakeBus) -> None:
    def looking() -> set[threading.Thread]:
        return {each for each in threading.enumerate() if each.name == "echoic-bus-visitors"}

    before = looking()
    make_bus(UNTIL_LOST).start()
    assert not looking() - before, "there is nothing to look at"
    bus = start()
    assert len(looking() - before) == 1, "nobody is there yet"
    bus.close()
    eventually(lambda: not looking() - before, "it has ended")


@pytest.mark.parametrize(
    "hello",
    [
        Hello("zzz"),
        Hello("calc"),
        Hello("zzz", instance=5, token="x"),
        Hello("calx", instance=5, token="x"),
        Hello("calc", instance=5, token="x"),
        Hello("calc", token="x", resumption=Resumption(1, 7, 0)),
        Hello("zzz", token="x", resumption=Resumption(1, 7, 0)),
    ],
)
def test_a_stranger_is_told_the_same_whatever_it_says(start: Callable[..., Bus], hello: Hello) -> None:
    bus = start(lease_seconds=LEASE_SECONDS)
    with pytest.raises(RefusedError) as refused:
        _greet(bus.address, hello, Visitor.of_authority(), SECONDS)
    assert str(refused.value) == f"the bus refuses this tool: {STRANGER}"


def test_who_may_be_some_tools_is_told_of_no_others(start: Callable[..., Bus], authority: Authority) -> None:
    bus = start(ONE_EVAL)
    token = authority.issue_token("alice", ["publish"], ["tool:lab.*"], HOUR)
    with pytest.raises(RefusedError, match=r"the script has no tool `lab\.x`: its tools are none"):
        _greet(bus.address, Hello("lab.x", token=token), Visitor.of_authority(), SECONDS)


def test_a_bus_without_proof_helps_whoever_errs(make_bus: MakeBus) -> None:
    bus = make_bus(ONE_EVAL)
    bus.start()
    with pytest.raises(RefusedError, match="did it mean `calc`"):
        _greet(bus.address, Hello("calx"), None, SECONDS)


# Rights


def test_the_file_of_rights_says_who_may_be_which_tool(
    start: Callable[..., Bus], authority: Authority, tmp_path: Path
) -> None:
    rights = tmp_path / "rights"
    rights.touch(0o600)
    rights.write_text("allow * publish tool:calc\ndeny mallory * *\nallow other publish tool:else\n")
    bus = start(ONE_EVAL, rights=rights)
    with pytest.raises(RefusedError, match="`mallory` may not publish `tool:calc`"):
        connected(bus, Visitor.of_authority(), token_for(authority, "mallory"))
    with pytest.raises(RefusedError, match="`mallory` may not publish `tool:zzz`"):
        _greet(bus.address, Hello("zzz"), named(authority, "mallory"), SECONDS)
    connected(bus, Visitor.of_authority(), token_for(authority, "alice"))
    assert bus.wait(SECONDS)
    assert bus.value == 3


def test_who_loses_the_right_to_be_a_tool_is_hung_up_on(
    start: Callable[..., Bus], authority: Authority, tmp_path: Path
) -> None:
    rights = tmp_path / "rights"
    rights.touch(0o600)
    rights.write_text("allow alice publish tool:calc\n")
    bus = start(rights=rights, lease_seconds=10 * SECONDS)
    connected(bus, Visitor.of_authority(), token_for(authority, "alice"))
    assert not bus.wait(0.3)
    rights.write_text("allow alice publish\n")  # half of a file: what it said before counts
    assert not bus.wait(1.5)
    rights.write_text("allow alice subscribe tool:calc\n")
    assert bus.wait(SECONDS)
    assert bus.value is Term("lost")


def test_a_file_of_rights_that_is_empty_for_a_moment_takes_no_right(tmp_path: Path) -> None:
    rights = tmp_path / "rights"
    rights.touch(0o600)
    rights.write_text("allow anonymous publish tool:calc\n")
    rules = HouseRules(rights)

    rights.write_text("")  # as it is while it is being written
    rules.look()
    rules.check(NOBODY, "calc", "")
    rights.write_text("# the same\nallow anonymous publish tool:calc\n")
    for _ in range(3):
        rules.look()
        rules.check(NOBODY, "calc", "")

    rights.write_text("")
    rules.look()
    rules.look()
    with pytest.raises(DeniedError, match="`anonymous` may not publish `tool:calc`"):
        rules.check(NOBODY, "calc", "")


def test_a_bus_goes_by_the_rights_of_its_hub_and_the_audit_says_what_was_decided(
    start: Callable[..., Bus], authority: Authority
) -> None:
    rules = parse_rights("allow alice publish tool:calc\nallow auditor subscribe echoic/audit")
    heard: list[tuple[str, str, str, bool, str]] = []
    with (
        Hub(identity=named(authority, "lab"), rights=rules) as hub,
        Hub(identity=named(authority, "auditor")) as auditor,
    ):
        trail = auditor.open(f"echoic://{hub.address}/echoic/audit")
        trail.subscribe(lambda each: heard.append((each.who, each.right, each.channel, each.allowed, each.request)))
        bus = start(hub=hub)
        with pytest.raises(RefusedError, match="may not publish"):
            connected(bus, named(authority, "mallory"))
        connected(bus, Visitor.of_authority(), token_for(authority, "alice"))
        wanted = [
            ("mallory", "publish", "tool:calc", False, "Hello"),
            ("alice", "publish", "tool:calc", True, "Hello"),
        ]
        eventually(lambda: [each for each in heard if each[2] == "tool:calc"] == wanted, "both are told, once")
        hub.set_rights(parse_rights("allow auditor subscribe echoic/audit"))
        assert bus.wait(SECONDS)
        eventually(lambda: ("alice", "publish", "tool:calc", False, "Stay") in heard, "so is that it may not stay")


def test_rights_count_on_a_bus_that_asks_for_no_proof_as_well(make_bus: MakeBus) -> None:
    bus = make_bus(ONE_EVAL, rights=parse_rights("deny anonymous * *"))
    bus.start()
    with pytest.raises(RefusedError, match="`anonymous` may not publish `tool:calc`"):
        Calc().connect(bus.address, timeout=SECONDS)


def test_what_the_bus_has_started_is_not_asked_about(make_bus: MakeBus) -> None:
    text = script('execute(calc, T?) . snd-eval(T, expr("1+2")) . rec-value(T, val(V?)) . shutdown(V)')
    assert make_bus(text, rights=parse_rights("deny * * *")).run(SECONDS) == 3


# Shares


def test_one_name_has_so_many_tools_and_no_more(start: Callable[..., Bus], authority: Authority) -> None:
    body = "rec-connect(T?) . rec-connect(T?) . rec-connect(T?) . rec-connect(T?) . shutdown(all)"
    bus = start(script(f"{body}"), limits=BusLimits(tools_per_name_max=2))
    visitor, token = Visitor.of_authority(), token_for(authority, "alice")
    first = connected(bus, visitor, token)
    connected(bus, visitor, token)
    with pytest.raises(RefusedError, match="`alice` has 2 tools at this bus, limit is 2 for one name"):
        connected(bus, visitor, token)
    connected(bus, named(authority, "bob"))
    assert not bus.wait(0.2)
    first._service._speaker._connection.close()  # noqa: SLF001 - it is gone, and its seat is free
    deadline = time.monotonic() + SECONDS
    while not bus.halted and time.monotonic() < deadline:
        try:
            connected(bus, visitor, token)
        except RefusedError:
            time.sleep(0.05)
        else:
            break
    assert bus.wait(SECONDS)


def test_a_tool_that_is_ended_while_it_is_away_leaves_its_seat(start: Callable[..., Bus], authority: Authority) -> None:
    bus = start(lease_seconds=LEASE_SECONDS, limits=BusLimits(grace_seconds=0.1))
    vanish(bus, connected(bus, Visitor.of_authority(), token_for(authority, "alice")))
    shares = bus._reception._shares  # noqa: SLF001 - nothing else tells
    assert shares.tools_of("alice") == 1
    bus._leases._suspended[1][0].close()  # type: ignore[attr-defined] # noqa: SLF001 - as `snd-terminate` does
    assert (shares.tools_of("alice"), shares.kept_of("alice")) == (0, 0)


def test_a_tool_that_is_ended_while_it_is_away_is_not_lost_besides(
    start: Callable[..., Bus], authority: Authority
) -> None:
    bus = start(lease_seconds=LEASE_SECONDS, limits=BusLimits(grace_seconds=0.1))
    vanish(bus, connected(bus, Visitor.of_authority(), token_for(authority, "alice")))
    line = bus._leases._suspended[1][0]  # noqa: SLF001 - nothing else tells
    half_said = line._correspondence._puts  # type: ignore[attr-defined] # noqa: SLF001 - likewise
    half_said.append(1)
    line.close()  # type: ignore[attr-defined]
    assert half_said == []
    line.expire("it did not come back")
    assert not bus.wait(0.5)


def test_what_is_kept_for_all_tools_of_one_name_counts_together() -> None:
    shares = Shares(BusLimits(kept_bytes_per_name_max=100, kept_bytes_max=250))
    seats = [shares.take("alice"), shares.take("alice"), shares.take("bob"), shares.take("")]
    assert seats[0].keep(60)
    assert not seats[1].keep(60)
    assert seats[1].keep(40)
    assert seats[2].keep(100)
    assert not seats[3].keep(60), "no more than the bus has altogether, whoever it is"
    seats[0].leave()
    seats[0].leave()
    assert (shares.tools_of("alice"), shares.kept_of("alice")) == (1, 40)
    assert seats[3].keep(60)


def test_a_session_that_finds_no_room_cannot_be_resumed_and_gives_back_what_it_had() -> None:
    shares = Shares(BusLimits(kept_bytes_per_name_max=100))
    session, other = (Session(purse=shares.take("alice")) for _ in range(2))
    said = Message(MessageKind.DO, 1, ("x",))
    session.say(said, 50)
    other.say(said, 30)
    session.seen(1)
    assert shares.kept_of("alice") == 30
    session.say(said, 80)
    assert not session.resumable
    assert other.resumable
    assert shares.kept_of("alice") == 30


@pytest.mark.parametrize(
    ("known", "shown", "same"),
    [
        (None, None, True),
        (None, Credentials("a", frozenset(), 0.0, 1), False),
        (Credentials("a", frozenset(), 0.0, 1), None, False),
        (Credentials("a", frozenset(), 0.0, 1), Credentials("a", frozenset(), 9.0, 2), True),
        (Credentials("a", frozenset(), 0.0, 1), Credentials("b", frozenset(), 0.0, 1), False),
        (Credentials("", frozenset(), 0.0, 1), Credentials("", frozenset(), 0.0, 1), True),
        (Credentials("", frozenset(), 0.0, 1), Credentials("", frozenset(), 0.0, 2), False),
    ],
)
def test_a_proof_is_the_same_if_it_is_of_the_same_name(
    known: Credentials | None, shown: Credentials | None, *, same: bool
) -> None:
    assert Guest("who", known).is_proved_by(shown) is same
