"""The program of the how-to "Connect machines"."""

import datetime
import ipaddress
import tempfile
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import echoic

DAYS = 365


def certificate(name: str, key: ec.EllipticCurvePrivateKey, issuer: str) -> x509.CertificateBuilder:
    """Return a certificate that is not signed yet."""
    today = datetime.datetime.now(datetime.UTC)
    called = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, each)]) for each in (name, issuer)]
    builder = x509.CertificateBuilder().subject_name(called[0]).issuer_name(called[1]).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(today - datetime.timedelta(days=1))
    return builder.not_valid_after(today + datetime.timedelta(days=DAYS))


def save(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    """Write a private key that only its owner can read."""
    path.touch(mode=0o600)
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(key.private_bytes(*form))


def make_authority(folder: Path) -> ec.EllipticCurvePrivateKey:
    """Make the authority whose certificates our hubs believe; return its key, which stays with you."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = certificate("our hubs", key, "our hubs")
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    made = builder.sign(key, hashes.SHA256())
    Path(folder, "authority.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return key


def make_identity(folder: Path, authority: ec.EllipticCurvePrivateKey, address: str, name: str) -> echoic.Identity:
    """Make the certificate and key of the hub at an address."""
    key = ec.generate_private_key(ec.SECP256R1())
    where = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])  # or x509.DNSName
    made = certificate(name, key, "our hubs").add_extension(where, critical=False).sign(authority, hashes.SHA256())
    Path(folder, f"{name}.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    save(Path(folder, f"{name}.key"), key)
    return echoic.Identity(Path(folder, f"{name}.pem"), Path(folder, f"{name}.key"), Path(folder, "authority.pem"))


@echoic.event
class Trade:
    symbol: str
    price: float


with tempfile.TemporaryDirectory() as temporary:
    folder = Path(temporary)
    authority = make_authority(folder)
    ours = [make_identity(folder, authority, "127.0.0.1", name) for name in ("exchange", "desk")]

    # "127.0.0.1:0" stands for the address of each machine, such as "192.168.1.5:7401".
    with (
        echoic.Hub("127.0.0.1:0", name="exchange", identity=ours[0]) as exchange,
        echoic.Hub("127.0.0.1:0", name="desk", identity=ours[1]) as desk,
    ):
        trades = exchange.create("trades", Trade)
        desk.open(trades.id, Trade).subscribe(print)
        trades.source().submit_sync(Trade("IBM", 75.5))

        with echoic.Hub("127.0.0.1:0", name="stranger") as stranger:  # without a certificate
            try:
                stranger.open(trades.id, Trade)
            except echoic.EchoicError as error:
                print("a stranger:", type(error).__name__)
