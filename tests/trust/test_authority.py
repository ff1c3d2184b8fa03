"""The authority: what it issues holds, what it renews belongs together, what it revokes holds no more."""

import datetime
import ssl
import stat
import threading
import time
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from msgspec import structs

from echoic.errors import InsecureError, LocalError, RefusedError
from echoic.links import Identity
from echoic.trust import Issuers, SigningKey, home, identity_names, identity_path, write_private
from echoic.trust import issuers as issuers_module
from echoic.trust.authority import LEDGER, Authority
from echoic.trust.certificates import check_host
from echoic.trust.folder import ISSUERS, REVOKED, REVOKED_TOKENS
from echoic.trust.ledger import Issued, Ledger, read_ledger, write_ledger


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECHOIC_HOME", str(tmp_path / "home"))


@pytest.fixture
def authority() -> Authority:
    return Authority.create()


def certificate_in(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def revoked_serials(authority: Authority) -> set[int]:
    crl = x509.load_pem_x509_crl((authority.folder / REVOKED).read_bytes())
    issuer = certificate_in(authority.folder / "authority.pem")
    assert crl.is_signature_valid(issuer.public_key())  # type: ignore[arg-type]
    return {each.serial_number for each in crl}


def test_every_file_is_its_owners_alone(authority: Authority) -> None:
    authority.issue("alice")
    for path in home().rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_certificate_says_who_and_where_and_can_certify_nobody(authority: Authority) -> None:
    made = certificate_in(authority.issue("alice", ["lab.example.org", "10.0.0.5", "fd00::1"]))
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == ["echoic:alice"]
    assert names.get_values_for_type(x509.DNSName) == ["lab.example.org"]
    assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.5", "fd00::1"]
    assert not made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    usage = made.extensions.get_extension_for_class(x509.KeyUsage).value
    assert (usage.digital_signature, usage.key_cert_sign, usage.crl_sign) == (True, False, False)
    assert set(made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == {
        ExtendedKeyUsageOID.SERVER_AUTH,
        ExtendedKeyUsageOID.CLIENT_AUTH,
    }
    issuer = certificate_in(authority.folder / "authority.pem")
    made.verify_directly_issued_by(issuer)
    above = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    assert made.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier == above
    constraints = issuer.extensions.get_extension_for_class(x509.BasicConstraints)
    assert constraints.critical
    assert (constraints.value.ca, constraints.value.path_length) == (True, 0)


def test_certificates_hold_for_ninety_days_and_the_authority_for_ten_years(authority: Authority) -> None:
    now = datetime.datetime.now(datetime.UTC)
    made, issuer = certificate_in(authority.issue("alice")), certificate_in(authority.folder / "authority.pem")
    assert abs((made.not_valid_after_utc - now).days - 90) <= 1
    assert abs((issuer.not_valid_after_utc - now).days - 3650) <= 1
    assert made.not_valid_before_utc < now - datetime.timedelta(minutes=4)
    longest = certificate_in(authority.issue("bob", days=3650))
    assert longest.not_valid_after_utc <= issuer.not_valid_after_utc


@pytest.mark.parametrize(
    ("host", "good"),
    [
        ("a", True), ("a.b", True), ("10.0.0.5", True), ("::1", True), ("x-1.example", True),
        ("", False), ("a:1", False), ("*.a", False), ("a..b", False), ("-a", False), ("10.0.0", False), ("é", False),
        ("a/b", False), ("a" * 64, False), ("a b", False), ("a\n", False),
    ],
)  # fmt: skip
def test_hosts_are_names_and_numbers(host: str, good: bool) -> None:
    if good:
        check_host(host)
    else:
        with pytest.raises(LocalError, match="expected the name or the number of a host"):
            check_host(host)


def test_a_second_authority_does_not_replace_the_first(authority: Authority) -> None:
    with pytest.raises(LocalError, match="there is an authority in"):
        Authority.create()
    assert Authority.load().issuer == authority.issuer


def test_without_an_authority_nothing_is_issued() -> None:
    with pytest.raises(LocalError, match="`echoic keys init` makes one"):
        Authority.load()


def test_what_is_there_is_not_replaced_by_issuing_again(authority: Authority) -> None:
    path = authority.issue("alice")
    before = path.read_bytes()
    with pytest.raises(LocalError, match="`echoic keys rotate alice` renews it"):
        authority.issue("alice")
    assert path.read_bytes() == before
    authority.issue("alice", replace=True)
    assert path.read_bytes() != before


@pytest.mark.parametrize("days", [0, -1, 3651])
def test_a_certificate_holds_for_a_time_that_makes_sense(authority: Authority, days: int) -> None:
    with pytest.raises(LocalError, match=r"1 to 3650 days"):
        authority.issue("alice", days=days)


def test_rotating_keeps_hosts_and_days_and_changes_the_key(authority: Authority) -> None:
    before = certificate_in(authority.issue("alice", ["10.0.0.5"], 30))
    after = certificate_in(authority.rotate("alice"))
    names = [each.extensions.get_extension_for_class(x509.SubjectAlternativeName).value for each in (before, after)]
    assert names[0] == names[1]
    assert before.public_key() != after.public_key()
    assert abs(after.not_valid_after_utc - before.not_valid_after_utc) < datetime.timedelta(hours=1)
    with pytest.raises(LocalError, match="no certificate of `bob` is known"):
        authority.rotate("bob")


@pytest.mark.parametrize("seconds", [2, 10 * 86400])
def test_what_has_expired_is_renewed_for_the_same_hosts_and_days(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    hosts = ["10.0.0.5", "fd00::1", "lab.example.org"]
    before = certificate_in(authority.issue("alice", hosts, 30))
    over = before.not_valid_after_utc.timestamp() + seconds
    monkeypatch.setattr(time, "time", lambda: over)
    authority.issue("bob")  # the ledger drops what expired more than a day ago
    assert [each.name for each in authority.issued()] == ["bob"]
    assert authority.renewable() == {"alice", "bob"}
    after = certificate_in(authority.rotate("alice"))
    names = [each.extensions.get_extension_for_class(x509.SubjectAlternativeName).value for each in (before, after)]
    assert names[0] == names[1]
    assert abs(after.not_valid_after_utc.timestamp() - over - 30 * 86400) < 60


def test_a_file_that_is_not_from_here_is_not_renewed(authority: Authority, tmp_path: Path) -> None:
    other = Authority.create(tmp_path / "other" / "authority")
    write_private(identity_path("alice"), other.issue("alice").read_bytes(), replace=True)
    with pytest.raises(LocalError, match="is not of this authority"):
        authority.rotate("alice")
    write_private(identity_path("carol"), authority.issue("bob").read_bytes(), replace=True)
    with pytest.raises(LocalError, match="is not for `carol`"):
        authority.rotate("carol")
    write_private(identity_path("carol"), b"garbage", replace=True)
    with pytest.raises(LocalError, match="expected a certificate of `carol` in PEM"):
        authority.rotate("carol")


def test_a_pair_that_is_read_while_it_is_rotated_belongs_together(authority: Authority) -> None:
    authority.issue("alice")
    identity = Identity.named("alice")
    until = time.monotonic() + 1.5
    rotated, made = [0], set()

    def rotate() -> None:
        while time.monotonic() < until:
            authority.rotate("alice")
            rotated[0] += 1

    rotating = threading.Thread(target=rotate)
    rotating.start()
    while time.monotonic() < until:
        made.add(identity.listening_context())  # raises if the key is not that of the certificate
    rotating.join()
    assert rotated[0] > 10
    assert len(made) > 5


def test_a_name_a_number_and_a_token_are_revoked(authority: Authority) -> None:
    serials = {name: certificate_in(authority.issue(name)).serial_number for name in ("alice", "bob", "carol")}
    assert revoked_serials(authority) == set()
    assert [each.name for each in authority.revoke("alice")] == ["alice"]
    assert [each.name for each in authority.revoke(f"{serials['bob']:x}")] == ["bob"]
    assert revoked_serials(authority) == {serials["alice"], serials["bob"]}
    again = certificate_in(authority.rotate("alice")).serial_number
    assert again not in revoked_serials(authority)
    for unknown in ("alice2", "", f"{serials['bob']:x}"):
        with pytest.raises(LocalError, match="no certificate or token of the name or id"):
            authority.revoke(unknown)


def test_revoking_somebody_revokes_the_tokens_too(authority: Authority) -> None:
    issuers = Issuers()
    token = authority.issue_token("alice", ["subscribe"], ["trades"], 60)
    other = authority.issue_token("bob", ["subscribe"], ["trades"], 60)
    now = time.time()
    assert issuers.read(token, now).who == "alice"
    authority.revoke("alice")
    with pytest.raises(RefusedError, match="it is revoked"):
        issuers.read(token, now)
    authority.revoke(issuers.read(other, now).id)
    with pytest.raises(RefusedError, match="it is revoked"):
        issuers.read(other, now)


def tokens(count: int, patterns: int, *, expires: int) -> tuple[Issued, ...]:
    """Return what a ledger has of tokens for many channels."""
    channels = tuple(f"lab/instrument-{number:02d}/wind*" for number in range(patterns))
    return tuple(
        Issued("token", f"browser-{number}", f"{number:024x}", channels, 1, expires) for number in range(count)
    )


def fill(authority: Authority, entries: tuple[Issued, ...]) -> None:
    write_private(authority.folder / LEDGER, write_ledger(Ledger(entries)), replace=True)


def test_what_was_issued_is_revoked_however_much_it_is_and_no_more_is_issued_than_a_ledger_holds(
    authority: Authority,
) -> None:
    later = int(time.time()) + 86400
    fill(authority, tokens(1900, 16, expires=later))
    assert (authority.folder / LEDGER).stat().st_size > 1024 * 1024
    authority.issue("alice")
    assert [each.name for each in authority.revoke("browser-3")] == ["browser-3"]
    fill(authority, tokens(2100, 64, expires=later))
    assert (authority.folder / LEDGER).stat().st_size > 4 * 1024 * 1024
    for attempt in (lambda: authority.issue("bob"), lambda: authority.issue_token("bob", ["subscribe"], ["*"], 60)):
        with pytest.raises(LocalError, match=r"would take \d+ bytes together with that of `bob`, limit is 4194304"):
            attempt()
    assert not identity_path("bob").exists()
    assert [each.name for each in authority.revoke("browser-3")] == ["browser-3"]
    assert sum(each.revoked > 0 for each in authority.issued()) == 1
    fill(authority, tuple(structs.replace(each, name="crowd") for each in tokens(2100, 64, expires=later)))
    assert len(authority.revoke("crowd")) == 2100
    assert len((authority.folder / REVOKED_TOKENS).read_text("ascii").split()) == 2100


def test_what_has_expired_is_dropped_by_revoking_too(authority: Authority) -> None:
    authority.issue("alice")
    authority.issue_token("bob", ["subscribe"], ["trades"], 60)
    ledger = read_ledger((authority.folder / LEDGER).read_bytes(), "here")
    fill(authority, tokens(1900, 64, expires=int(time.time()) - 2 * 86400) + ledger.entries)
    authority.revoke("alice")
    assert (authority.folder / LEDGER).stat().st_size < 2000
    assert [each.name for each in authority.issued()] == ["alice", "bob"]


@pytest.mark.parametrize("missing", [ISSUERS, REVOKED_TOKENS])
def test_when_nobody_can_say_what_is_revoked_no_token_holds(authority: Authority, missing: str) -> None:
    token, issuers = authority.issue_token("alice", ["admin"], ["*"], 60), Issuers()
    (authority.folder / missing).unlink()
    with pytest.raises(RefusedError, match="cannot be told"):
        issuers.read(token, time.time())
    with pytest.raises(InsecureError, match="cannot tell which tokens hold"):
        Issuers()


@pytest.mark.parametrize("changed", [ISSUERS, REVOKED_TOKENS])
@pytest.mark.parametrize("contents", [None, b"", b"half of a k", b"\xff"])
def test_who_is_there_by_a_token_stays_while_a_file_is_being_written(
    authority: Authority, changed: str, contents: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, issuers = authority.issue_token("alice", ["admin"], ["*"], 60), Issuers()
    later = authority.issue_token("bob", ["admin"], ["*"], 60)
    authority.revoke("bob")
    monkeypatch.setattr(issuers_module, "SETTLED_SECONDS", 0.0)
    with pytest.raises(RefusedError, match="it is revoked"):
        issuers.read_again(later, time.time())
    path = authority.folder / changed
    was = path.read_bytes()
    path.unlink()
    if contents is not None:
        path.write_bytes(contents)
    assert issuers.read_again(token, time.time()).who == "alice"
    with pytest.raises(RefusedError, match="it has expired"):
        issuers.read_again(token, time.time() + 60)
    path.unlink(missing_ok=True)
    path.write_bytes(was)
    assert issuers.read_again(token, time.time()).who == "alice"
    with pytest.raises(RefusedError, match="it is revoked"):
        issuers.read_again(later, time.time())


def test_a_change_counts_for_who_is_there_when_it_was_seen_for_a_while(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuers_module, "SETTLED_SECONDS", 3600.0)
    token, issuers = authority.issue_token("alice", ["admin"], ["*"], 60), Issuers()
    authority.revoke("alice")
    assert issuers.read_again(token, time.time()).who == "alice"
    monkeypatch.setattr(issuers_module, "SETTLED_SECONDS", 0.0)
    with pytest.raises(RefusedError, match="it is revoked"):
        issuers.read_again(token, time.time())


def test_who_came_by_files_that_have_just_changed_stays_when_they_change_again(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuers_module, "SETTLED_SECONDS", 3600.0)
    path = authority.folder / ISSUERS
    ours = path.read_text("ascii")
    path.write_text(SigningKey.generate().public + "\n", "ascii")
    issuers, token = Issuers(), authority.issue_token("alice", ["admin"], ["*"], 60)
    path.write_text(ours, "ascii")
    assert issuers.read(token, time.time()).who == "alice"
    path.write_text("", "ascii")
    assert issuers.read_again(token, time.time()).who == "alice"


def test_two_programs_that_issue_at_once_lose_nothing(authority: Authority) -> None:
    threads = [
        threading.Thread(target=lambda part=part: [Authority.load().issue(f"n{part}-{i}") for i in range(5)])
        for part in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(authority.issued()) == len(identity_names()) == 20


def test_a_key_that_others_can_read_is_refused(authority: Authority) -> None:
    path = authority.issue("alice")
    path.chmod(0o644)
    with pytest.raises(InsecureError, match="others may read"):
        Identity.named("alice")
    (authority.folder / "authority.key").chmod(0o640)
    with pytest.raises(InsecureError, match="others may read"):
        Authority.load()


def test_an_identity_that_is_not_there_is_named(authority: Authority) -> None:
    with pytest.raises(InsecureError, match="there is no identity `nobody`"):
        Identity.named("nobody")
    with pytest.raises(LocalError, match="name has at most"):
        Identity.named("../alice")


@pytest.mark.parametrize("content", [None, b"", b"garbage", "certificate", "half"])
def test_an_identity_whose_list_of_revoked_ones_cannot_be_read_refuses(
    authority: Authority, content: bytes | str | None
) -> None:
    authority.issue("alice")
    identity = Identity.named("alice")
    identity.listening_context()
    revoked = authority.folder / REVOKED
    match content:
        case None:
            revoked.unlink()
        case "certificate":  # a certificate in its place would be one more authority
            revoked.write_bytes((authority.folder / "authority.pem").read_bytes())
        case "half":
            revoked.write_bytes(revoked.read_bytes()[:100])
        case bytes():
            revoked.write_bytes(content)
    for make in (identity.listening_context, identity.dialling_context):
        with pytest.raises(
            InsecureError, match=r"^(cannot read|expected a list of revoked certificates.*) .*revoked\.pem"
        ):
            make()


def test_contexts_are_made_anew_only_when_a_file_is_another(authority: Authority) -> None:
    authority.issue("alice")
    identity = Identity.named("alice")
    first = identity.listening_context()
    assert identity.listening_context() is first
    assert Identity.named("alice").listening_context() is first
    authority.rotate("alice")
    second = identity.listening_context()
    assert second is not first
    authority.revoke("alice")
    assert identity.listening_context() is not second
    assert second.verify_flags & ssl.VERIFY_CRL_CHECK_LEAF
    assert identity_path("alice").exists()
