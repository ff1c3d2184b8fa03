"""Every error echoic raises, in one tree.

The first branching tells *whose* mistake it was, because that decides what a program can do about it: a local
error is mended in this program's source, a remote one by refusing or leaving the peer.

    EchoicError
    ├── LocalError                    this program broke a rule
    │   ├── FormatError               this cannot be an event type
    │   ├── EncodeError               this value does not fit its field
    │   ├── IncompatibleTypesError    these two event types do not match
    │   ├── CodegenError              generated code was refused or could not be linked
    │   ├── ECodeError                a derivation's code does not compile
    │   ├── ScriptError               a T-script is not in order
    │   ├── AddressError              this is not an address, channel id or channel name
    │   ├── ChannelExistsError        the name is taken
    │   ├── ChannelNotFoundError      nobody knows this channel
    │   ├── ClosedError               the hub, channel, source or sink was closed
    │   ├── InsecureError             this would listen to strangers in the clear
    │   └── PipelineError             a data pipeline, its tables, or the Spark and Java below it are not in order
    └── RemoteError                   a peer (or a file) broke a rule
        ├── MalformedFrameError       the stream is not made of frames
        ├── MalformedFormatError      a descriptor does not describe a type
        ├── MalformedBatchError       a batch or one of its records contradicts its type
        ├── MalformedTermError        text or bytes are not a term
        ├── UnknownFormatError        a batch names a type that was never described
        ├── LimitExceededError        well formed, but larger than this program accepts
        ├── ProtocolVersionError      the peer speaks another protocol
        ├── UnreachableError          nobody answers at an address, or a peer is gone
        ├── RefusedError              a peer did not do what it was asked
        │   └── DeniedError           since who asked has no right to it
        ├── ModulatorError            shipped code failed, or was stopped at a limit
        ├── JournalError              a journal is damaged, not there, in use by another writer, or cannot be written
        └── DeliveryError             a synchronous event was not handled by every sink

A message is one lower-case sentence with what is wrong, the value, the limit and the place:
``peer announced 16777217 payload bytes, limit is 16777216 - at frame 3``.
"""

__all__ = [
    "AddressError",
    "ChannelExistsError",
    "ChannelNotFoundError",
    "ClosedError",
    "CodegenError",
    "DeliveryError",
    "DeniedError",
    "ECodeError",
    "EchoicError",
    "EncodeError",
    "FormatError",
    "IncompatibleTypesError",
    "InsecureError",
    "JournalError",
    "LimitExceededError",
    "LocalError",
    "MalformedBatchError",
    "MalformedFormatError",
    "MalformedFrameError",
    "MalformedTermError",
    "ModulatorError",
    "PipelineError",
    "ProtocolVersionError",
    "RefusedError",
    "RemoteError",
    "ScriptError",
    "UnknownFormatError",
    "UnreachableError",
]


class EchoicError(Exception):
    """Root of everything echoic raises on purpose."""


class LocalError(EchoicError):
    """This program broke a rule."""


class FormatError(LocalError):
    """A declaration cannot be an event type."""


class EncodeError(LocalError):
    """A value does not fit the field it was given for."""


class IncompatibleTypesError(LocalError):
    """Two event types do not match by the rules of type extension."""


class CodegenError(LocalError):
    """Generated code was refused or could not be linked."""


class ECodeError(LocalError):
    """A derivation's code does not compile.

    `problems` has for each mistake its line, column and message; the text of the error shows the lines with carets.
    """

    def __init__(self, text: str, problems: tuple[tuple[int, int, str], ...] = ()) -> None:
        self.problems = problems
        super().__init__(text)


class ScriptError(LocalError):
    """A T-script is not in order.

    `problems` has for each mistake its file, line, column and message; the text of the error shows lines with carets.
    """

    def __init__(self, text: str, problems: tuple[tuple[str, int, int, str], ...] = ()) -> None:
        self.problems = problems
        super().__init__(text)


class AddressError(LocalError):
    """Something is not an address, channel id or channel name."""


class ChannelExistsError(LocalError):
    """The name of a channel is taken."""


class ChannelNotFoundError(LocalError):
    """Nobody knows a channel of this name."""


class ClosedError(LocalError):
    """A hub, channel, source or sink was closed."""


class InsecureError(LocalError):
    """This would listen to strangers in the clear."""


class PipelineError(LocalError):
    """A data pipeline, its settings, its tables, or the Spark and Java that it runs on are not as they must be."""


class RemoteError(EchoicError):
    """A peer, or a file, broke a rule."""


class MalformedFrameError(RemoteError):
    """A byte stream is not made of frames."""


class MalformedFormatError(RemoteError):
    """A descriptor does not describe an event type."""


class MalformedBatchError(RemoteError):
    """A batch or one of its records contradicts its type."""


class MalformedTermError(RemoteError):
    """Text or bytes are not a term."""


class UnknownFormatError(RemoteError):
    """A batch names a type that was never described."""


class LimitExceededError(RemoteError):
    """Something is well formed but larger than this program accepts."""


class ProtocolVersionError(RemoteError):
    """A peer speaks another protocol, or another version of it."""


class UnreachableError(RemoteError):
    """Nobody answers at an address, or a peer is gone."""


class RefusedError(RemoteError):
    """A peer did not do what it was asked."""


class DeniedError(RefusedError):
    """A peer did not do what it was asked, since who asked has no right to it."""


class ModulatorError(RemoteError):
    """Shipped code failed, or was stopped at a limit."""


class JournalError(RemoteError):
    """A journal is damaged, not there, in use by another writer, or cannot be written."""


class DeliveryError(RemoteError):
    """A synchronous event was not handled by every sink.

    `failures` has, for each sink that failed or did not answer, who it is and what it said.
    """

    def __init__(self, failures: dict[str, str]) -> None:
        self.failures = failures
        super().__init__("; ".join(f"{sink}: {reason}" for sink, reason in failures.items()))
