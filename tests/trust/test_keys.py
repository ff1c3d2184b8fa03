"""Keys: signing, files that only their owner reads, and the list of those who are trusted."""

import base64
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import InsecureError, LocalError, RefusedError
from echoic.trust import (
    SigningKey,
    TrustedKey,
    check_public,
    home,
    key_path,
    read_trust,
    sandboxed_keys,
    trust_path,
    trusted_keys,
    verify,
    write_trust,
)

# The same keys in every process that collects these tests: some are in their names.
ALICE, BOB = (SigningKey(Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)) for number in (1, 2))
X25519 = X25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECHOIC_HOME", str(tmp_path / "home"))


def test_a_public_key_is_one_word_without_padding() -> None:
    prefix, _, letters = ALICE.public.partition(":")
    assert prefix == "ed25519"
    assert len(base64.b64decode(letters + "=")) == 32
    assert "=" not in letters
    check_public(ALICE.public)


@given(st.binary(max_size=200))
def test_what_was_signed_is_recognised_and_nothing_else(data: bytes) -> None:
    signature = ALICE.sign(data)
    verify(ALICE.public, data, signature)
    for key, signed in ((BOB.public, data), (ALICE.public, data + b"\0")):
        with pytest.raises(RefusedError, match="the signature is not that of ed25519:"):
            verify(key, signed, signature)


@pytest.mark.parametrize("signature", [b"", b"x", bytes(64), bytes(1000)])
def test_what_is_no_signature_is_refused(signature: bytes) -> None:
    with pytest.raises(RefusedError):
        verify(ALICE.public, b"data", signature)


@pytest.mark.parametrize(
    "public",
    [
        "",
        "*",
        "ed25519:",
        "rsa:" + ALICE.public[8:],
        ALICE.public[8:],
        ALICE.public + "=",
        ALICE.public[:-1],
        ALICE.public + "A",
        " " + ALICE.public,
        "ed25519:" + "é" * 43,
        "ed25519:" + "\ud800" * 43,
    ],
)
def test_what_is_no_key_is_refused(public: str) -> None:
    with pytest.raises(RefusedError, match="expected a public key like ed25519:BASE64 of 32 bytes"):
        verify(public, b"data", ALICE.sign(b"data"))
    with pytest.raises(LocalError, match="expected a public key"):
        check_public(public)


def test_a_key_has_one_spelling() -> None:
    last = ALICE.public[-1]
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    twin = ALICE.public[:-1] + letters[letters.index(last) + 1]  # the same bytes for a careless decoder
    with pytest.raises(LocalError):
        check_public(twin)


def test_a_key_survives_its_file_which_only_its_owner_reads() -> None:
    path = key_path("lab")
    ALICE.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert path.read_text("ascii").startswith("-----BEGIN PRIVATE KEY-----\n")
    again = SigningKey.load(path)
    assert again.public == ALICE.public
    verify(ALICE.public, b"data", again.sign(b"data"))
    assert [each.name for each in path.parent.iterdir()] == ["lab.key"]


def test_a_key_is_replaced_only_on_demand() -> None:
    path = key_path()
    ALICE.save(path)
    with pytest.raises(LocalError, match="is there already and would be lost; --force replaces it"):
        BOB.save(path)
    assert SigningKey.load(path).public == ALICE.public
    BOB.save(path, force=True)
    assert SigningKey.load(path).public == BOB.public
    assert [each.name for each in path.parent.iterdir()] == ["default.key"]


def test_a_key_that_others_can_read_is_refused() -> None:
    path = key_path()
    ALICE.save(path)
    path.chmod(0o640)
    with pytest.raises(InsecureError, match=r"others may read .*, its mode is 0640; chmod 0600 mends it"):
        SigningKey.load(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "expected a private key in PEM"), ("secret", "expected a private key in PEM"), (X25519, "Ed25519 key")],
)
def test_a_file_without_a_key_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "some.key"
    path.write_text(text, "ascii")
    path.chmod(0o600)
    with pytest.raises(LocalError, match=said):
        SigningKey.load(path)


def test_a_missing_key_says_how_to_make_one() -> None:
    with pytest.raises(LocalError, match=r"there is no key file .*default.key; `echoic keys new` makes one"):
        SigningKey.load(key_path())


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "../up", "a b", "x" * 65, "-f", "a\n"])
def test_names_of_keys_cannot_leave_the_folder(name: str) -> None:
    with pytest.raises(LocalError, match="a key's name has at most 64 letters"):
        key_path(name)


def test_the_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert home() == tmp_path / "home"
    monkeypatch.delenv("ECHOIC_HOME")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    assert home() == tmp_path / "configuration" / "echoic"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home() == tmp_path / ".config" / "echoic"


def test_nobody_is_trusted_without_a_file() -> None:
    assert (read_trust(), trusted_keys(), sandboxed_keys()) == ((), (), ())


def test_the_trust_file_tells_process_from_sandbox(tmp_path: Path) -> None:
    keys = (TrustedKey(ALICE.public, "alice"), TrustedKey(BOB.public, "", sandbox=True), TrustedKey("*", "all", True))
    write_trust(keys)
    assert read_trust() == keys
    assert (trusted_keys(), sandboxed_keys()) == ((ALICE.public,), (BOB.public, "*"))
    other = tmp_path / "other"
    write_trust(keys[:1], other)
    assert (trusted_keys(other), sandboxed_keys(str(other))) == ((ALICE.public,), ())


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (ALICE.public, r"expected KEY process\|sandbox \[NAME\]"),
        (f"{ALICE.public} everywhere alice", r"expected KEY process\|sandbox \[NAME\]"),
        (f"{ALICE.public} process alice anne", r"expected KEY process\|sandbox \[NAME\]"),
        ("ed25519:AAAA process alice", "expected a public key"),
        ("* process all", r"`\*` stands for everybody's key and is for the sandbox only - at .*trusted:2"),
        (f"{ALICE.public} process a/b", "a key's name has"),
        ("# much\n" * 200_000, "limit is 1048576"),
    ],
)
def test_a_trust_file_that_is_none_trusts_nobody(line: str, said: str) -> None:
    write_trust([])
    with trust_path().open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    with pytest.raises(LocalError, match=said):
        trusted_keys()


def test_a_trust_file_that_others_can_write_trusts_nobody() -> None:
    write_trust([TrustedKey(ALICE.public)])
    trust_path().chmod(0o664)
    with pytest.raises(InsecureError, match="others may write"):
        trusted_keys()


def test_a_trust_file_of_bytes_is_refused() -> None:
    write_trust([])
    trust_path().write_bytes(b"\xff\xfe")
    with pytest.raises(LocalError, match="expected lines of text"):
        read_trust()


def test_entries_that_could_not_be_read_are_not_written() -> None:
    for entry in (TrustedKey("nonsense"), TrustedKey("*"), TrustedKey(ALICE.public, "two words")):
        with pytest.raises(LocalError):
            write_trust([entry])
    assert not trust_path().exists()
