"""`echoic keys init, issue, rotate, revoke, token`: from nothing to hubs that know each other."""

import json
import re
import time
from pathlib import Path

import pytest

from echoic.cli.where import Where, surroundings
from echoic.trust import Issuers
from tests.cli.terminals import desk, type_here

pytestmark = pytest.mark.system


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ECHOIC_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("COLUMNS", "200")
    for name in ("ECHOIC_NAMES", "ECHOIC_CONTEXT", "ECHOIC_IDENTITY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"


def keys(*words: str) -> tuple[int, str, str]:
    return type_here("keys", *words)


def test_an_authority_issues_renews_and_revokes(home: Path) -> None:
    code, _, said = keys("issue", "alice")
    assert code == 1
    assert "`echoic keys init` makes one" in said
    assert keys("init")[:2] == (0, f"{home / 'authority'}\n")
    assert keys("init")[0] == 1
    code, out, said = keys("issue", "alice", "--host", "10.0.0.5", "--host", "lab.example", "--days", "30")
    assert (code, out) == (0, f"{home / 'identities' / 'alice.pem'}\n")
    assert "10.0.0.5, lab.example; a hub is it with --identity alice" in said
    assert "`echoic keys rotate alice` renews it" in keys("issue", "alice")[2]
    before = (home / "identities" / "alice.pem").read_bytes()
    first = json.loads(keys("list", "--json")[1])[0]["id"]
    code, _, said = keys("rotate", "alice")
    assert code == 0
    assert f"`echoic keys revoke {first}` ends it" in said
    assert (home / "identities" / "alice.pem").read_bytes() != before
    listed = json.loads(keys("list", "--json")[1])
    assert [(each["name"], each["use"], each["hosts"]) for each in listed] == [
        ("alice", "certificate", ["10.0.0.5", "lab.example"])
    ] * 2
    code, out, said = keys("revoke", listed[0]["id"])
    assert (code, out) == (0, f"certificate {listed[0]['id']} of alice\n")
    assert "copy" in said
    assert [each["use"] for each in json.loads(keys("list", "--json")[1])] == ["revoked certificate", "certificate"]
    line = keys("list")[1].splitlines()[1]
    assert re.fullmatch(
        rf"alice  revoked certificate  {first}  10\.0\.0\.5,lab\.example  from \S+ [\d:]{{8}}  until .*", line
    )
    assert len(json.loads(keys("revoke", "alice", "--json")[1])) == 1


def test_a_certificate_that_has_expired_is_renewed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys("init")
    keys("issue", "alice", "--host", "10.0.0.5", "--days", "1")
    over = time.time() + 86402
    monkeypatch.setattr(time, "time", lambda: over)
    assert "`echoic keys rotate alice` renews it" in keys("issue", "alice")[2]
    assert keys("rotate", "alice")[:2] == (0, f"{home / 'identities' / 'alice.pem'}\n")
    assert [each["hosts"] for each in json.loads(keys("list", "--json")[1])] == [["10.0.0.5"]]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("rotate", "alise"), "did you mean 'alice'?"),
        (("revoke", "alise"), "did you mean 'alice'?"),
        (("issue", "a b"), "name has at most 64 letters"),
        (("issue", "bob", "--host", "x:1"), "expected the name or the number of a host"),
        (("issue", "bob", "--days", "0"), "holds for 1 to 3650 days"),
        (("token", "bob", "--right", "subscibe", "--channel", "x"), "did you mean 'subscribe'?"),
        (("token", "bob", "--right", "publish", "--channel", "x", "--hours", "0"), "more than 0"),
        (
            ("token", "b b", "--right", "publish", "--channel", "x"),
            "cannot sign a token: its name has at most 64 letters, digits, `_`",
        ),
        (("token", "anonymous", "--right", "publish", "--channel", "x"), "its name cannot be `anonymous`"),
        (("issue", "anonymous"), "a certificate's name cannot be `anonymous`, which stands for whoever shows none"),
    ],
)
def test_what_cannot_be_done_is_said_plainly(words: tuple[str, ...], said: str) -> None:
    keys("init")
    keys("issue", "alice")
    code, out, complaint = keys(*words)
    assert (code, out) == (3 if words[0] in ("rotate", "revoke") else 1, "")
    assert said in complaint


def test_a_token_is_signed_read_and_revoked() -> None:
    keys("init")
    code, out, said = keys(
        "token", "panel", "--right", "subscribe", "--right", "steer", "--channel", "p.*", "--hours", "2"
    )
    assert code == 0
    issuers = Issuers()
    claims = issuers.read(out.strip(), time.time())
    assert (claims.who, claims.rights, claims.channels) == ("panel", ("subscribe", "steer"), ("p.*",))
    assert abs(claims.expires - time.time() - 7200) < 60
    assert f"echoic keys revoke {claims.id}" in said
    assert keys("revoke", claims.id)[:2] == (0, f"token {claims.id} of panel\n")
    told = json.loads(keys("token", "panel", "--right", "admin", "--channel", "*", "--json")[1])
    assert issuers.read(told["token"], time.time()).id == told["id"]


def test_hubs_with_an_identity_meet_and_others_are_not_let_in(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys("init")
    keys("issue", "lab")
    keys("issue", "alice")
    with desk() as place:
        up = place.start("up", "trades=Trade{symbol: str, price: float}", "--identity", "lab")
        up.says("up at")
        known = place.run("ls", "--identity", "alice")
        assert "trades" in known.out
        assert "trades" not in place.run("ls").out, "without an identity nobody is told anything"
        monkeypatch.setenv("ECHOIC_IDENTITY", "alice")
        assert "trades" in place.run("ls").out
        assert "trades" not in place.run("ls", "--identity", "").out
        keys("revoke", "alice")
        assert "trades" not in place.run("ls").out, "no restart was needed"
        keys("rotate", "alice")
        assert "trades" in place.run("ls").out


def test_the_identity_is_that_of_the_option_the_context_the_environment_or_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert surroundings(Where()).identity == ""
    assert type_here("context", "add", "lab", "--names", "127.0.0.1:5", "--identity", "carol")[0] == 0
    assert surroundings(Where(context="lab")).identity == "carol"
    assert surroundings(Where()).identity == ""
    settings = tmp_path / "config" / "echoic.toml"
    settings.write_text('identity = "dora"\n' + settings.read_text("utf-8"), "utf-8")
    assert surroundings(Where()).identity == "dora"
    monkeypatch.setenv("ECHOIC_IDENTITY", "eve")
    assert surroundings(Where()).identity == "eve"
    assert surroundings(Where(context="lab")).identity == "carol"
    assert surroundings(Where(identity="frank", context="lab")).identity == "frank"
    assert surroundings(Where(identity="")).identity == ""


def test_an_address_that_others_reach_needs_an_identity_that_is_there() -> None:
    keys("init")
    keys("issue", "alice")
    code, _, said = type_here("info", "x", "--listen", "0.0.0.0:0")
    assert code == 4
    assert "name an --identity (echoic keys), or pass --insecure if meant" in said
    code, _, said = type_here("ls", "--identity", "alise")
    assert code == 3
    assert "there is no identity 'alise'; did you mean 'alice'?" in said
