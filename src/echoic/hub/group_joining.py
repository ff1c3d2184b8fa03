"""Joining a group: from what a program asks for to an engine, its packing, its loop and its delivery."""

import ssl
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

import msgspec

from echoic.channels import Admission
from echoic.engines.embedded import Contact, EmbeddedEngine, LogFile, Membership, draw_life
from echoic.engines.local import LocalEngine
from echoic.errors import AddressError, DeniedError, LocalError, UnreachableError
from echoic.formats import bind
from echoic.groups.engine import Engine
from echoic.groups.options import Options
from echoic.groups.packer import PACKING_INTERVAL_NS, Packer
from echoic.groups.policies import Policy, policy_of
from echoic.hub.doorkeeping import check_member
from echoic.hub.group import Group
from echoic.hub.group_delivery import KEPT_BYTES, GroupDelivery, GroupState
from echoic.hub.group_loop import GroupLoop
from echoic.links import Connection, dial, parse_address
from echoic.recorder import Disk

if TYPE_CHECKING:
    from echoic.links import Identity

__all__ = ["JoinKeywords", "JoinOptions", "Surroundings", "join_group"]

NAME_CHARACTERS_MAX: Final = 64
SECONDS_MIN: Final = 0.001
SECONDS_MAX: Final = 3600.0
KEPT_BYTES_MIN: Final = 64 * 1024
ENGINES: Final = ("embedded", "corosync", "local")
STABILITIES: Final = ("majority", "all")
DURABILITIES: Final = ("disk", "os", "memory")


class JoinOptions(msgspec.Struct, frozen=True):
    """How a member takes part."""

    me: str
    peers: Mapping[str, str]
    engine: str = "embedded"
    stability: str = "majority"
    durability: str = ""
    path: str | Path | None = None
    packing: str | Policy = "auto"
    packing_interval: float = PACKING_INTERVAL_NS / 1e9
    election_timeout: float = 0.5
    state: GroupState | None = None
    kept_bytes: int = KEPT_BYTES


class JoinKeywords(TypedDict, total=False):
    """The options of `Hub.join` that have a default, for those who pass them on."""

    engine: str
    stability: str
    durability: str
    path: str | Path | None
    packing: str | Policy
    packing_interval: float
    election_timeout: float
    state: GroupState | None
    kept_bytes: int


class Surroundings(msgspec.Struct, frozen=True):
    """What the hub lends a group."""

    address: str
    identity: "Identity | None"
    groups: dict[str, EmbeddedEngine]
    admission: Admission
    on_close: Callable[[], None]


def join_group(name: str, declared: object, options: JoinOptions, surroundings: Surroundings) -> Group:
    """Be a member of a group.

    Raises:
        LocalError: An option is wrong.
        FormatError: `declared` is not an event type.
        JournalError: The log cannot be opened.
        UnreachableError: The engine's daemon does not answer.
    """
    options = _checked(name, options)
    # By Corosync the later of two lives must have the larger number; else no two may have the same.
    life = time.time_ns() if options.engine == "corosync" else draw_life()
    format = bind(declared).format
    loop = GroupLoop(name, life, options.me, format)
    delivery = GroupDelivery(name, options.state, kept_bytes=options.kept_bytes)
    engine = _engine_of(name, options, surroundings, loop, delivery, life)
    try:
        capabilities = engine.capabilities
        packer = Packer(
            policy_of(options.packing, pack_bytes_hint=capabilities.pack_bytes_hint),
            packing_interval_ns=max(1, int(options.packing_interval * 1e9)),
            pack_bytes_max=capabilities.pack_bytes_max - (1 << 16),
            now_ns=time.monotonic_ns(),
        )
        leave = partial(_left, name, engine, surroundings)
        group = Group(name, options.me, declared, engine, packer, loop, delivery, leave)
        if isinstance(engine, EmbeddedEngine):
            surroundings.groups[name] = engine
    except BaseException:
        engine.close()
        raise
    delivery.start(engine, loop, options.me, life)
    loop.start(engine, packer, delivery)
    return group


def _left(name: str, engine: Engine, surroundings: Surroundings) -> None:
    """Let the name be joined again; another engine may have it, too."""
    if surroundings.groups.get(name) is engine:
        del surroundings.groups[name]
    surroundings.on_close()


def _checked(name: str, options: JoinOptions) -> JoinOptions:
    """Return the options with what follows from them.

    Raises:
        LocalError: One of them is wrong.
    """
    for text in (name, options.me, *options.peers):
        if not text or len(text) > NAME_CHARACTERS_MAX or not text.isprintable():
            raise LocalError(f"a group or member has the name {text!r}, expected 1 to {NAME_CHARACTERS_MAX} characters")
    choices = (
        ("engine", options.engine, ENGINES),
        ("stability", options.stability, STABILITIES),
        ("durability", options.durability or "memory", DURABILITIES),
    )
    for what, value, known in choices:
        if value not in known:
            raise LocalError(f"{what} is {value!r}, expected one of {', '.join(known)}")
    if options.me not in options.peers:
        raise LocalError(f"this member, `{options.me}`, is none of the peers: {', '.join(options.peers)}")
    durability = options.durability or ("disk" if options.path is not None else "memory")
    if options.engine != "embedded" and durability != "memory":
        raise LocalError(f"engine {options.engine} keeps its log in memory; durability {durability} needs `embedded`")
    if (durability == "memory") is (options.path is not None):
        raise LocalError(f"durability {durability} and path {options.path!r} contradict each other")
    for what, seconds in (
        ("election_timeout", options.election_timeout),
        ("packing_interval", options.packing_interval),
    ):
        if not SECONDS_MIN <= seconds <= SECONDS_MAX:
            raise LocalError(f"{what} is {seconds!r}, expected {SECONDS_MIN:g} to {SECONDS_MAX:g} seconds")
    if options.kept_bytes < KEPT_BYTES_MIN:
        raise LocalError(f"kept_bytes is {options.kept_bytes}, expected at least {KEPT_BYTES_MIN}")
    return msgspec.structs.replace(options, durability=durability)


def _engine_of(
    name: str, options: JoinOptions, surroundings: Surroundings, loop: GroupLoop, delivery: GroupDelivery, life: int
) -> Engine:
    if options.engine == "local":
        return LocalEngine(name, options.me, life=life, kept_bytes_max=options.kept_bytes, wake=loop.wake)
    if options.engine == "corosync":
        from echoic.engines.corosync import CorosyncEngine

        return CorosyncEngine(
            name,
            options.me,
            sorted(options.peers),
            life=life,
            applied=delivery.applied,
            kept_bytes_max=options.kept_bytes,
            now_ns=time.monotonic_ns(),
        )
    return _embedded(name, options, surroundings, loop, delivery, life)


def _embedded(
    name: str, options: JoinOptions, surroundings: Surroundings, loop: GroupLoop, delivery: GroupDelivery, life: int
) -> EmbeddedEngine:
    """Return the engine without a daemon.

    Raises:
        LocalError: This hub is a member of the group already.
        AddressError: A peer's address is none.
        JournalError: The log cannot be opened.
    """
    if name in surroundings.groups:
        raise LocalError(f"this hub is a member of group `{name}` already")
    for peer, address in options.peers.items():
        try:
            parse_address(address)
        except AddressError as error:
            raise AddressError(f"{error} - of peer `{peer}`") from error
    peers = dict(options.peers) | {options.me: surroundings.address}
    store = None
    if options.path is not None:
        store = LogFile.open(Disk(options.path), life=draw_life(), durable=options.durability == "disk")
    timeout_ns = int(options.election_timeout * 1e9)
    try:
        return EmbeddedEngine(
            Membership(name, options.me, peers),
            options=Options(stability=options.stability, election_ns=timeout_ns, heartbeat_ns=timeout_ns // 5),
            store=store,
            contact=Contact(
                lambda address: _dial_member(address, surroundings),
                lambda connection: check_member(surroundings.admission, connection, name),
            ),
            wake=loop.wake,
            life=life,
            applied_sequence=delivery.applied,
            beginning=delivery.expect_replay(),
        )
    except BaseException:
        if store is not None:
            store.close()
        raise


def _dial_member(address: str, surroundings: Surroundings) -> Connection:
    """Return a connection to a member of a group.

    Raises:
        DeniedError: One of the two refuses the certificate of the other, which lasts.
        EchoicError: Nobody answers there.
    """
    try:
        return dial(address, surroundings.identity, polled=True)
    except UnreachableError as error:
        cause = error.__cause__
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError):
            raise DeniedError(str(error)) from error
        raise
