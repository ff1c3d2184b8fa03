"""How connections come to be: made, accepted, and greeted before anything else is said.

Two hubs may dial each other at the same moment; one of the two gives way. A stranger has a few seconds to say who it
is, and there is room for so many strangers at a time (`links.strangers`). A member of a group that may not be one is
told so, whether or not there is such a group here; whoever is refused for another reason is told nothing.

The log of both sides says who was refused and why, within limits (`links.refusals`): that of the one that refuses, and
that of a hub which was let in before and is not any more. Who was never let in is told by the error of what he wanted.
"""

import contextlib
import logging
import secrets
import ssl
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from echoic.channels import Audited, Greeting
from echoic.engines.embedded import GROUP_FEATURE
from echoic.errors import (
    DeniedError,
    EchoicError,
    MalformedFrameError,
    ProtocolVersionError,
    RemoteError,
    UnreachableError,
)
from echoic.groups.messages import Introduction, Turned, decode_introduction, encode_message
from echoic.hub.doorkeeping import check_home, check_member, decide_member, who_of
from echoic.hub.hello import HELLO_SECONDS, first_frames, greet
from echoic.links import NO_TLS, Connection, Identity, Listener, Refusals, Strangers, dial
from echoic.wire import Frame, FrameKind, FrameReader, Hello, decode_hello, encode_frame, encode_hello
from echoic.wire.frames import PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MAX_UNAUTHENTICATED

if TYPE_CHECKING:
    from echoic.hub.switchboard import Switchboard

__all__ = ["Reception"]

SETTLED_NS: Final = 2_000_000_000
CROSSING_SECONDS: Final = (0.02, 0.1, 0.5, 1.0, 0.0)  # the last try is the last
ACCEPT_MILLISECONDS: Final = 200
PARTING_SECONDS: Final = 1.0
HUNG_UP: Final = (ssl.SSLEOFError, ConnectionResetError, BrokenPipeError)
log: Final = logging.getLogger("echoic.hub")


class Reception:
    """Where connections begin; the switchboard goes on with those whose greeting is done."""

    def __init__(self, listener: Listener, identity: Identity | None, hello: Hello, switchboard: "Switchboard") -> None:
        self._listener = listener
        self._identity = identity
        self._hello = hello
        self._switchboard = switchboard
        self._dialling: list[str] = []
        self._answering: list[str] = []
        self._strangers: Strangers[Connection] = Strangers()
        self._refusals = Refusals("refused a connection from")
        self._shut_out = Refusals("not let in any more by")
        threading.Thread(target=self._accept_all, name="echoic-accept", daemon=True).start()

    def close(self) -> None:
        """Listen no more."""
        self._listener.close()

    def dial(self, address: str) -> None:
        """Connect to a hub, and tell the concentrator how it went."""
        self._dialling.append(address)
        try:
            self._dial_patiently(address)
        except (EchoicError, OSError) as error:
            refused = isinstance(error.__cause__, ConnectionRefusedError | FileNotFoundError)
            reason = str(error)
            if NO_TLS in reason and self._switchboard.links_at(address):  # which was let in before
                self._tell(self._shut_out.line(address, reason, time.monotonic_ns()))
            self._switchboard.do(lambda core: core.unreachable(address, reason, refused=refused))
        finally:
            self._dialling.remove(address)

    def _accept_all(self) -> None:
        while not self._switchboard.closed:
            connection = self._listener.accept(ACCEPT_MILLISECONDS)
            if connection is None:
                continue
            leaving = self._strangers.admit(connection)
            if leaving is not None:
                leaving.close()
            greeting = threading.Thread(target=self._welcome, args=(connection,), name="echoic-greet", daemon=True)
            try:
                greeting.start()
            except RuntimeError as error:  # the system has no more threads, perhaps for a moment
                log.warning("cannot greet %s: %s", connection.peer, error)
                self._strangers.leave(connection)
                connection.close()

    def _welcome(self, connection: Connection) -> None:
        """Greet a stranger; one that does not know how is sent away."""
        proofs = self._switchboard.proofs.count
        try:
            connection.handshake(HELLO_SECONDS)
            reader = FrameReader(payload_bytes_max=PAYLOAD_BYTES_MAX_UNAUTHENTICATED)
            frames = first_frames(connection, reader, 1)
            if GROUP_FEATURE in decode_first(frames[0]).features:
                self._introduce(connection, reader, frames[1:], proofs)
            else:
                self._meet(connection, reader=reader, frames=frames)
                self._check_proof(connection, proofs)
        except (EchoicError, OSError) as error:
            if isinstance(error, ProtocolVersionError):
                self._part(connection)
            if is_refusal(error):
                self._tell(self._refusals.line(connection.peer, str(error), time.monotonic_ns()))
            else:
                log.info("nothing came of a connection from %s: %s", connection.peer, error)
            connection.close()
        finally:
            self._strangers.leave(connection)

    def _tell(self, line: str) -> None:
        """Log a line, if it is one and this hub goes on."""
        if line and not self._switchboard.closed:
            log.warning("%s", line)

    def _part(self, connection: Connection) -> None:
        """Say hello to a peer of another version, so that it can say as well why nothing comes of it."""
        with contextlib.suppress(EchoicError, OSError):  # it has hung up
            connection.send([b"".join(encode_frame(FrameKind.HELLO, [encode_hello(self._hello)]))])

    def _dial_patiently(self, address: str) -> None:
        """Connect to a hub, which may hang up because it dials this one at the same moment.

        Raises:
            EchoicError: There is no hub that can be spoken with.
            OSError: The connection broke.
        """
        for pause in CROSSING_SECONDS:
            if self._switchboard.closed:
                return
            started, proofs = time.monotonic(), self._switchboard.proofs.count
            connection = dial(address, self._identity)
            try:
                self._meet(connection, dialled=address)
                self._check_proof(connection, proofs)
                return
            except (EchoicError, OSError) as error:
                connection.close()
                hung_up = isinstance(error, UnreachableError | OSError) and time.monotonic() - started < 1
                if not hung_up or not pause:
                    raise
            time.sleep(pause)
            if any(link.connection for link in self._switchboard.links_at(address)):
                return  # the other was faster

    def _check_proof(self, connection: Connection, proofs: int) -> None:
        """End a connection whose handshake was done before all had to prove anew who they are; another is made."""
        if connection.credentials is not None and proofs != self._switchboard.proofs.count:
            connection.close()

    def _introduce(self, connection: Connection, reader: FrameReader, frames: list[Frame], proofs: int) -> None:
        """Hand a connection over to the group whose member has made it.

        Raises:
            EchoicError: There is no such group here, or the stranger may not be a member, or does not say of which.
            OSError: The connection broke.
        """
        frames = frames or first_frames(connection, reader, 1)
        introduction = decode_introduction(frames[0].payload)
        self._admit_member(connection, introduction)
        group = self._switchboard.groups.get(introduction.group)
        if group is None:
            raise UnreachableError(f"no group `{introduction.group}` is joined here")
        reader.payload_bytes_max = PAYLOAD_BYTES_MAX
        group.adopt(introduction, connection, reader, frames[1:])
        if proofs != self._switchboard.proofs.count:
            group.prove_anew()

    def _admit_member(self, connection: Connection, introduction: Introduction) -> None:
        """Let a member of a group in that may be one, and tell any other why not; both are audited.

        Raises:
            DeniedError: It may not be one.
        """
        admission = self._switchboard.core.admission
        decision = decide_member(admission, connection, introduction.group)
        if decision is None:
            return
        audited = Audited(decision, type(introduction).__name__, introduction.address)
        self._switchboard.do(lambda core: core.effects.append(audited))
        try:
            check_member(admission, connection, introduction.group)
        except DeniedError as error:
            word = encode_message(Turned(str(error), final=False, home=introduction.home, term=0))
            _tell_and_part(connection, b"".join(encode_frame(FrameKind.GROUP, [word])))
            raise

    def _meet(
        self,
        connection: Connection,
        dialled: str = "",
        reader: FrameReader | None = None,
        frames: Sequence[Frame] = (),
    ) -> None:
        """Greet a peer, and go on with its link.

        Raises:
            EchoicError: It is not a peer that can be spoken with.
            OSError: The connection broke.
        """
        answering: list[str] = []

        def known(hub: str) -> tuple[int, int]:
            if greeting.peer is not None:
                check_home(self._switchboard.core.admission, connection, greeting.peer)
            if not dialled and not answering:
                self._give_way(greeting.peer)
                answering.append(hub)
                self._answering.append(hub)
            return self._known(hub, who, dialled=bool(dialled))

        who = who_of(connection)
        greeting = Greeting(
            self._hello, known, dialled=bool(dialled), fresh=secrets.randbelow(2**63 - 1) + 1, address=dialled, who=who
        )
        reader = reader or FrameReader(payload_bytes_max=PAYLOAD_BYTES_MAX_UNAUTHENTICATED)
        try:
            early = greet(connection, greeting, reader, frames)
            reader.payload_bytes_max = PAYLOAD_BYTES_MAX
            self._switchboard.adopt(connection, greeting, reader, early)
        except (EchoicError, OSError):
            link = self._switchboard.link_to(greeting.peer.hub) if greeting.peer is not None else None
            if link is not None:
                self._switchboard.broke(link)  # it may have been frozen for this greeting
                self._switchboard.do(
                    lambda core: core.linked(link.neighbour, dialled)
                )  # there may be a better connection
            raise
        finally:
            for hub in answering:
                self._answering.remove(hub)

    def _give_way(self, peer: Hello | None) -> None:
        """Let one of two hubs that dial each other go on, the one with the smaller id, and the other hang up.

        Whoever has answered a dialler does not end a greeting of its own with it (`_known`), so that never both are
        ended, each with another session.

        Raises:
            UnreachableError: This one goes on.
        """
        if peer is not None and peer.address in self._dialling and self._switchboard.core.id < peer.hub:
            raise UnreachableError(f"the hub at {peer.address} is being dialled by this one")

    def _known(self, hub: str, who: str, *, dialled: bool) -> tuple[int, int]:
        """Return the session with a hub and how many frames have arrived in it, after which no more do.

        Raises:
            DeniedError: It is a hub of somebody else, whose link is none of this one's business.
            UnreachableError: There is a better connection, or what has arrived cannot be counted yet.
        """
        board = self._switchboard
        if dialled and hub in self._answering:
            raise UnreachableError("it dials this hub at the same moment")
        with board.lock:
            neighbour, link = board.core.neighbours.get(hub), board.link_to(hub)
        if neighbour is not None and neighbour.who != who:
            raise DeniedError(f"`{who}` says it is a hub of `{neighbour.who}`")
        if neighbour is not None and link is not None:
            lost = not dialled and time.monotonic_ns() - link.attached_ns > SETTLED_NS
            if link.connection is not None and not lost:
                raise UnreachableError(f"the hub at {neighbour.address} is connected already")
            if not link.freeze(HELLO_SECONDS):
                raise UnreachableError(f"a handler of events from {neighbour.address} hangs")
            if lost:
                board.broke(link)  # a peer that dials again some time later has lost the connection
        with board.lock:
            return board.core.known(hub)


def is_refusal(error: Exception) -> bool:
    """Whether a stranger was refused, and did not merely hang up or give way to another connection."""
    if isinstance(error, UnreachableError):
        return NO_TLS in str(error) and not isinstance(error.__cause__, HUNG_UP)
    return isinstance(error, RemoteError)


def decode_first(frame: Frame) -> Hello:
    """Return what the first frame of a stranger says.

    Raises:
        MalformedFrameError: It is not a hello.
    """
    if frame.kind is not FrameKind.HELLO:
        raise MalformedFrameError(f"expected a HELLO frame in a greeting, got {frame.kind.name}")
    return decode_hello(frame.payload)


def _tell_and_part(connection: Connection, word: bytes) -> None:
    """Say a last word, and wait a moment for the other to have heard it: closing at once could take it back."""
    deadline = time.monotonic() + PARTING_SECONDS
    with contextlib.suppress(OSError):  # it has hung up
        connection.send([word])
        connection.finish()
        while time.monotonic() < deadline and connection.readable(100):
            if connection.receive() == b"":
                return
