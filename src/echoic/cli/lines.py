"""Lines on which a hub is asked something without being one: a bare socket, or TLS with the certificate of somebody.

A line never waits, and is told by a selector when it can go on. What TLS needs is a twin of `links.identity` and
`links.tls`, since importing these takes longer than Tab may: the same files, TLS 1.3 alone, revoked certificates
refused, and one byte by which a hub says that it accepts ours.

With rights, a hub says where it stands, at a host of its certificate. So does whoever asks here: there, with the port
of its own end, where nobody will look for it.
"""

import socket
import ssl
from typing import Final

import msgspec

from echoic.errors import InsecureError
from echoic.trust.folder import AUTHORITY, REVOKED, authority_folder, identity_path
from echoic.trust.private_files import read_private
from echoic.trust.tls_files import load_authority, load_pair, load_revoked

__all__ = ["Line", "Proof", "SecureLine", "proof_of"]

RECEIVE_BYTES: Final = 65_536
WELCOME: Final = b"\1"


class Proof(msgspec.Struct, frozen=True):
    """Who asks, and by what that is proved."""

    context: ssl.SSLContext
    host: str
    """Where its certificate lets it stand."""


class Line:
    """A socket that is being connected."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.open = False
        """Whether something can be said."""

    @property
    def home(self) -> str:
        """Where this side says it stands."""
        return ""

    def begin(self) -> None:
        """Go on, being connected.

        Raises:
            OSError: It is not.
        """
        if error := self.connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(error, "nobody listens there")
        self.open = True

    def receive(self) -> bytes | None:
        """Return what has come, b"" at the end, None if there is nothing yet.

        Raises:
            OSError: The connection is broken.
        """
        return self.connection.recv(RECEIVE_BYTES)

    def send(self, data: bytes) -> None:
        """Say something: a few hundred bytes, for which a fresh connection has room.

        Raises:
            OSError: The connection is broken.
        """
        self.connection.send(data)

    def close(self) -> None:
        """Hang up."""
        self.connection.close()


class SecureLine(Line):
    """The same by TLS."""

    def __init__(self, connection: socket.socket, host: str, proof: Proof) -> None:
        super().__init__(connection)
        self._host, self._proof = host, proof

    @property
    def home(self) -> str:
        """Where this side says it stands."""
        host = f"[{self._proof.host}]" if ":" in self._proof.host else self._proof.host
        return f"{host}:{self.connection.getsockname()[1]}"

    def begin(self) -> None:
        """Begin the handshake.

        Raises:
            OSError: There is nobody, or somebody else.
        """
        super().begin()
        self.open = False
        self.connection = self._proof.context.wrap_socket(
            self.connection, server_hostname=self._host, do_handshake_on_connect=False
        )
        self._go_on()

    def receive(self) -> bytes | None:
        """Return what has come, b"" at the end, None if there is nothing yet.

        Raises:
            OSError: The connection is broken, or one of us has not proved who he is.
        """
        if not self.open:
            self._go_on()
            return None
        try:
            return self.connection.recv(RECEIVE_BYTES)  # which has room for a record: none of it is left behind
        except ssl.SSLWantReadError:
            return None

    def _go_on(self) -> None:
        """Go on with the handshake, as far as it goes."""
        made = self.connection
        if not isinstance(made, ssl.SSLSocket):
            return
        try:
            made.do_handshake()
            welcome = made.recv(len(WELCOME))
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return
        if welcome != WELCOME:
            raise ConnectionAbortedError("it is not a hub")
        self.open = True


def proof_of(name: str) -> Proof:
    """Return by what an identity of this machine proves who it is.

    Raises:
        LocalError: Nobody can be called this.
        InsecureError: There is no such identity, or its files cannot be used.
    """
    path, folder = identity_path(name), authority_folder()
    own = read_private(path)
    if own is None:
        raise InsecureError(f"there is no identity `{name}`, expected {path}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    load_pair(context, path, None)
    load_authority(context, folder / AUTHORITY)
    load_revoked(context, folder / REVOKED)
    try:
        return Proof(context, _host_in(own))
    except ValueError as error:
        raise InsecureError(f"cannot use identity `{name}`: {error}") from error


def _host_in(pem: bytes) -> str:
    """Return a host of a certificate, "" if it has none."""
    from cryptography import x509

    certificate = x509.load_pem_x509_certificate(pem)
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ""
    numbers = [str(number) for number in names.get_values_for_type(x509.IPAddress)]
    hosts = [host for host in names.get_values_for_type(x509.DNSName) if not host.startswith("*")]
    return (*numbers, *hosts, "")[0]
