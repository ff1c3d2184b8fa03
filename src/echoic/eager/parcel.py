r"""Parcels: what a modulator is on the wire (JECho, section 4).

    Signed                                  encoded with msgpack, at most 1 MiB
    +-- key         ed25519:BASE64          who vouches for it
    +-- signature   64 bytes                of "echoic parcel 1\0" + parcel
    +-- parcel      bytes of a Parcel
        +-- parent, class_name, text        the channel, and the source text with the class in it
        +-- state_format, state             a descriptor and one record of typed state
        +-- output, requires, period_ns, buffered
        +-- shared                          which shared objects its attributes stand for

Java could load classes from the sender's class path and unpickle the object; JECho does that, and whoever can connect
can run anything. A parcel is data: text, which is looked at by whoever likes and run by nobody before the signer was
found in a list, and a record, which has no code. Signature and signer are checked before the inside is parsed
(`admit`), so a stranger reaches one small parser and no more.

The name of the channel is inside of what is signed, so a parcel for one channel is no parcel for another; a peer that
has seen one can install it only where its author wanted it, again.

The *identity* is a digest of what the modulator does and with which state, not of who signed it or where it goes: equal
modulators of different processes have the same one, and share one derived stream (JECho, section 3).
"""

import hashlib
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec

from echoic.eager.text import TEXT_BYTES_MAX, source_text
from echoic.errors import EchoicError, LocalError, MalformedBatchError, MalformedFrameError, RefusedError, RemoteError
from echoic.formats import Format
from echoic.trust import SigningKey, verify
from echoic.wire import Batch

if TYPE_CHECKING:
    from echoic.eager.modulator import Modulator

__all__ = ["Parcel", "SharedReference", "Signed", "may_stand_for", "pack", "unpack"]

DOMAIN: Final = b"echoic parcel 1\0"
PARCEL_BYTES_MAX: Final = 1024 * 1024
STATE_BYTES_MAX: Final = 512 * 1024
NAME_CHARACTERS_MAX: Final = 128
PARENT_CHARACTERS_MAX: Final = 512
REQUIRES_MAX: Final = 16
SHARED_MAX: Final = 16
PERIOD_NS_MAX: Final = 24 * 3600 * 1_000_000_000
VERSION_MAX: Final = 2**63 - 1
SIGNATURE_BYTES: Final = 64
IDENTITY_BYTES: Final = 16
KNOWN_BYTES_MAX: Final = 4096


class SharedReference(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A shared object as an attribute of a modulator that travels."""

    attribute: str
    """What the modulator calls it."""
    id: str
    """What hubs call it, which says where its master is."""
    class_name: str
    format: bytes
    """The descriptor of its values."""
    values: bytes
    """One record: what they were when the parcel was made."""
    version: int
    """Which update that was."""


class Parcel(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a modulator is on the wire."""

    parent: str
    """The name of the channel whose sources it is for."""
    class_name: str
    text: str
    state_format: bytes = b""
    """The descriptor of its state; empty if it has none."""
    state: bytes = b""
    """One record."""
    output: bytes = b""
    """The descriptor of what comes out; empty if that is what goes in."""
    requires: tuple[str, ...] = ()
    period_ns: int = 0
    buffered: bool = False
    """Whether it overrides `dequeue`, so that events may wait in it."""
    shared: tuple[SharedReference, ...] = ()


class Signed(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A parcel, and who vouches for it."""

    parcel: bytes
    key: str
    signature: bytes


_known_format: Final = lru_cache(maxsize=256)(Format.from_descriptor)
_encoder: Final = msgspec.msgpack.Encoder()
_signed_decoder: Final = msgspec.msgpack.Decoder(Signed)
_parcel_decoder: Final = msgspec.msgpack.Decoder(Parcel)


def pack(modulator: "Modulator", parent: str, parent_format: Format, key: SigningKey) -> tuple[bytes, bytes]:
    """Return a modulator as it travels, signed, and its identity.

    Args:
        modulator: What is to run in the sources. Its shared objects have their ids already.
        parent: The name of their channel.
        parent_format: The type of their events.
        key: Whose modulator it is.

    Raises:
        LocalError: It cannot be shipped; the message says what it names, and what to do.
    """
    if isinstance(modulator, type):
        raise LocalError(
            f"expected a modulator, got the class `{modulator.__name__}`; write `{modulator.__name__}(...)`"
        )
    kind, snapshot = type(modulator), modulator.snapshot()
    state = snapshot.state
    parcel = Parcel(
        parent=parent,
        class_name=kind.__name__,
        text=source_text(kind),
        state_format=state.format.descriptor if state is not None else b"",
        state=bytes(state.records) if state is not None else b"",
        output=_output(modulator.output, parent_format),
        requires=tuple(modulator.requires),
        period_ns=modulator.period_ns,
        buffered=modulator.buffered,
        shared=tuple(each.reference(name) for name, each in snapshot.shared.items()),
    )
    _check_own(parcel)
    return sign(parcel, key), identity(parcel, snapshot.equality)


def may_stand_for(found: bytes, own: bytes) -> bool:
    """Tell whether a parcel may run in the place of one's own: the same person signed both, or nothing else differs.

    Whoever has entered a parcel first claims what it is equal to, and the manager cannot know better.
    """
    try:
        (theirs, their_key), (ours, our_key) = unpack(found), unpack(own)
    except EchoicError:
        return False
    return their_key == our_key or theirs == ours


def sign(parcel: Parcel, key: SigningKey) -> bytes:
    """Return a parcel as it travels."""
    data = _encoder.encode(parcel)
    return _encoder.encode(Signed(data, key.public, key.sign(DOMAIN + data)))


def identity(parcel: Parcel, equality: bytes) -> bytes:
    """Return what equal modulators have in common, whoever signed them and for whichever channel."""
    parts = (parcel.class_name, parcel.text, parcel.output, parcel.requires, parcel.period_ns, equality)
    return hashlib.blake2b(_encoder.encode(parts), digest_size=IDENTITY_BYTES, person=b"echoic identity").digest()


def unpack(data: bytes, *, admit: Callable[[str], object] | None = None) -> tuple[Parcel, str]:
    """Return the parcel in bytes that arrived, and the public key of who signed it.

    Args:
        data: What arrived.
        admit: Called with the signer before anything inside is looked at; it raises what says that a key may not run
            anything here. Without it, that remains to be asked.

    Raises:
        MalformedFrameError: The bytes are not a parcel, or break a limit.
        RefusedError: The signature is wrong.
    """
    if len(data) > PARCEL_BYTES_MAX:
        raise MalformedFrameError(f"a parcel has {len(data)} bytes, limit is {PARCEL_BYTES_MAX}")
    try:
        signed = _signed_decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedFrameError(f"expected a signed parcel: {error}") from error
    if len(signed.signature) != SIGNATURE_BYTES:
        raise RefusedError(f"a signature has {len(signed.signature)} bytes, expected {SIGNATURE_BYTES}")
    verify(signed.key, DOMAIN + signed.parcel, signed.signature)
    if admit is not None:
        admit(signed.key)
    try:
        parcel = _parcel_decoder.decode(signed.parcel)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedFrameError(f"expected a parcel: {error}") from error
    _check(parcel)
    return parcel, signed.key


def _output(declared: object | None, parent_format: Format) -> bytes:
    """Return the descriptor of what comes out; one that is the parent's says as much as none."""
    if declared is None:
        return b""
    format = Format.of(declared)
    return b"" if format == parent_format else format.descriptor


def _check_own(parcel: Parcel) -> None:
    try:
        _check(parcel)
    except MalformedFrameError as error:
        raise LocalError(f"{error} - at `{parcel.class_name}`") from error


def _check(parcel: Parcel) -> None:
    """Refuse what breaks a limit, or contradicts itself.

    Raises:
        MalformedFrameError: Naming the part.
    """
    _check_size("characters in the name of a channel", len(parcel.parent), PARENT_CHARACTERS_MAX)
    _check_size("bytes of text", len(parcel.text.encode("utf-8", "surrogatepass")), TEXT_BYTES_MAX)
    _check_size("required services", len(parcel.requires), REQUIRES_MAX)
    _check_size("shared objects", len(parcel.shared), SHARED_MAX)
    for name in (parcel.class_name, *parcel.requires):
        _check_name(name)
    if not 0 <= parcel.period_ns <= PERIOD_NS_MAX:
        raise MalformedFrameError(f"a period has {parcel.period_ns} ns, expected 0 to {PERIOD_NS_MAX}")
    _check_record("state", parcel.state_format, parcel.state)
    if parcel.output:
        _format("output", parcel.output)
    for each in parcel.shared:
        _check_shared(each)
    if len({each.attribute for each in parcel.shared}) != len(parcel.shared):
        raise MalformedFrameError("two shared objects are the same attribute")


def _check_shared(reference: SharedReference) -> None:
    _check_name(reference.attribute)
    _check_name(reference.class_name)
    _check_size("characters in the id of a shared object", len(reference.id), PARENT_CHARACTERS_MAX)
    if not reference.id or not 0 <= reference.version <= VERSION_MAX:
        raise MalformedFrameError(f"a shared object has the id {reference.id!r} and version {reference.version}")
    _check_record(reference.attribute, reference.format, reference.values)


def _check_record(what: str, format: bytes, record: bytes) -> None:
    """Refuse a record that is not one of the type it is said to be of."""
    _check_size(f"bytes of `{what}`", len(record), STATE_BYTES_MAX)
    if not format:
        if record:
            raise MalformedFrameError(f"`{what}` has {len(record)} bytes and no type")
        return
    described = _format(what, format)
    try:
        Batch.of_record(record, described).events()
    except MalformedBatchError as error:
        raise MalformedFrameError(f"{error} - at `{what}`") from error


def _format(what: str, descriptor: bytes) -> Format:
    try:
        return _known_format(descriptor) if len(descriptor) <= KNOWN_BYTES_MAX else Format.from_descriptor(descriptor)
    except RemoteError as error:
        raise MalformedFrameError(f"{error} - at the type of `{what}`") from error


def _check_name(name: str) -> None:
    if not name.isidentifier() or len(name) > NAME_CHARACTERS_MAX:
        raise MalformedFrameError(f"expected a name of at most {NAME_CHARACTERS_MAX} characters, got {name[:160]!r}")


def _check_size(what: str, size: int, size_max: int) -> None:
    if size > size_max:
        raise MalformedFrameError(f"a parcel has {size} {what}, limit is {size_max}")
