"""Encryption from the source to one sink, past whatever lies between.

TLS protects each link. Where events pass hubs, recorders or logs that should not read them, the sink can have them
encrypted inside the source. A secret key must not travel to do so: the parcel of a modulator is signed, not secret, and
the channel's manager sees it. So the sink keeps a private X25519 key and ships the public one; each source makes a key
pair of its own when the modulator starts there, and both sides compute the same ChaCha20-Poly1305 key:

    key     = HKDF-SHA256(X25519(source's private, sink's public), salt = both public keys, info = "echoic encrypt 1")
    nonce   = the number of the event, which never repeats under a key that one modulator object alone has
    bound   = number, count, token of the type, both public keys: changed on the way, it does not decrypt

The numbers of a source must rise, so an event that is sent again, or that comes after a later one, is noticed as well
(of the last 4096 sources; a source that was silent longer is met anew).
What is not given: proof of *which* source wrote an event, since anybody can encrypt for a public key, and secrecy of
sizes, times and the event type's token. RSA or a key per event would give no more and cost a hundred times as much.
"""

import struct
from collections.abc import Sequence
from typing import Final, cast

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from echoic.eager.modulator import Demodulator
from echoic.eager.ready.bundles import Unpacking, pack, token_of
from echoic.eager.ready.gathering import Gathering
from echoic.errors import LocalError, MalformedBatchError
from echoic.formats import bind, event, uint32, uint64

__all__ = ["Decrypt", "Encrypt", "Encrypted"]

KEY_BYTES: Final = 32
INFO: Final = b"echoic encrypt 1"
NONCE: Final = struct.Struct("<Q4x")
BOUND: Final = struct.Struct("<QQI")
SENDERS_MAX: Final = 4096


@event
class Encrypted:
    """Events that only the holder of a private key can read."""

    number: uint64
    token: uint64
    count: uint32
    sender: bytes
    data: bytes


class Encrypt(Gathering):
    """Encrypt events into events of type `Encrypted`; `Decrypt` makes events of them again.

    Args:
        recipient: The X25519 public key of the sink, 32 bytes.
        declared: The event type of the sink; sources that have the same need not describe theirs in every event.
        count: How many events are encrypted together.
        period_ns: How long an event waits for others at most; 0 for as long as it takes.

    Raises:
        LocalError: The key is not one, or an argument is out of range.
    """

    output = Encrypted

    recipient: bytes
    token: uint64

    def __init__(self, recipient: bytes, declared: object | None = None, *, count: int = 1, period_ns: int = 0) -> None:
        self.gather(count, period_ns, recipient=_checked_key(recipient), token=token_of(declared))

    @classmethod
    def pair(cls, declared: object | None = None, *, count: int = 1, period_ns: int = 0) -> "tuple[Encrypt, Decrypt]":
        """Return a modulator that encrypts and a demodulator with a private key of its own, which stays here.

        Raises:
            LocalError: An argument is out of range.
        """
        decrypt = Decrypt(declared)
        return cls(decrypt.public, declared, count=count, period_ns=period_ns), decrypt

    def start(self) -> None:
        """Make the key pair of this source.

        Raises:
            LocalError: The sink's public key is not a point that can be used.
        """
        super().start()
        private = X25519PrivateKey.generate()
        self._sender = private.public_key().public_bytes_raw()
        self._cipher = _cipher(private, self.recipient, self._sender + self.recipient)
        self._number = 0

    def joined(self, events: Sequence[object]) -> object:
        """Return several events as one that is encrypted."""
        self._number += 1
        token = bind(type(events[0])).format.token
        bound = _bound(self._number, token, len(events), self._sender, self.recipient)
        data = self._cipher.encrypt(NONCE.pack(self._number), pack(events, self.token), bound)
        return Encrypted(self._number, token, len(events), self._sender, data)


class Decrypt(Demodulator):
    """Make the events again that `Encrypt` has encrypted.

    Args:
        declared: The event type in which to receive them; without one, as the source has them.
        private: The X25519 private key, 32 bytes; one is made if there is none.

    Raises:
        LocalError: The key is not one.
    """

    def __init__(self, declared: object | None = None, private: bytes | None = None) -> None:
        self._private: Final = (
            X25519PrivateKey.generate()
            if private is None
            else X25519PrivateKey.from_private_bytes(_checked_key(private))
        )
        self.public: Final = self._private.public_key().public_bytes_raw()
        self._unpacking: Final = Unpacking(declared)
        self._senders: Final[dict[bytes, _Sender]] = {}

    def enqueue(self, event: object) -> None:
        """Queue the events of an encrypted one.

        Raises:
            MalformedBatchError: It was changed, repeated or put out of order on its way, or is not for this key.
        """
        sealed = cast("Encrypted", event)
        sender = self._senders.get(sealed.sender) or self._made(sealed.sender)
        bound = _bound(sealed.number, sealed.token, sealed.count, sealed.sender, self.public)
        try:
            data = sender.cipher.decrypt(NONCE.pack(sealed.number), sealed.data, bound)
        except InvalidTag as error:
            raise MalformedBatchError(
                f"encrypted event {sealed.number} was changed on its way, or is not for this key"
            ) from error
        if sealed.number <= sender.number:
            raise MalformedBatchError(f"encrypted event {sealed.number} came after event {sender.number} of its source")
        self._note(sealed.sender, sender, sealed.number)
        for each in self._unpacking.unpack(data, sealed.count):
            super().enqueue(each)

    def _made(self, public: bytes) -> "_Sender":
        if len(public) != KEY_BYTES:
            raise MalformedBatchError(f"an encrypted event has a key of {len(public)} bytes, expected {KEY_BYTES}")
        try:
            return _Sender(_cipher(self._private, public, public + self.public))
        except LocalError as error:
            raise MalformedBatchError(f"an encrypted event has a key that cannot be used: {error}") from error

    def _note(self, public: bytes, sender: "_Sender", number: int) -> None:
        """Remember a source whose event was genuine; the one that was silent longest is forgotten."""
        sender.number = number
        self._senders.pop(public, None)
        self._senders[public] = sender
        if len(self._senders) > SENDERS_MAX:
            del self._senders[next(iter(self._senders))]


class _Sender:
    """What is known of one source: the key that is shared with it, and the number of its last event."""

    __slots__ = ("cipher", "number")

    def __init__(self, cipher: ChaCha20Poly1305) -> None:
        self.cipher = cipher
        self.number = 0


def _cipher(private: X25519PrivateKey, public: bytes, salt: bytes) -> ChaCha20Poly1305:
    try:
        shared = private.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError as error:
        raise LocalError(f"no key can be agreed upon with the public key {public.hex()}: {error}") from error
    return ChaCha20Poly1305(HKDF(SHA256(), KEY_BYTES, salt, INFO).derive(shared))


def _checked_key(key: object) -> bytes:
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        raise LocalError(f"expected {KEY_BYTES} bytes as a key, got {_size(key)}")
    return key


def _bound(number: int, token: int, count: int, sender: bytes, recipient: bytes) -> bytes:
    return BOUND.pack(number, token, count) + sender + recipient


def _size(key: object) -> str:
    """Return what was given for a key, without showing it: it may be a secret."""
    return f"{len(key)}" if isinstance(key, bytes) else type(key).__name__
