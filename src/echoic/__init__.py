"""Typed event channels whose consumers run their own code inside the producer.

Names are imported when first used, so that `import echoic` and `echoic --version` cost nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from echoic.channels import Policy, Steering, Trouble
    from echoic.eager import Demodulator, EcodeModulator, Modulator, SharedObject, SigningKey
    from echoic.errors import EchoicError, ECodeError
    from echoic.formats import (
        ARCHITECTURES,
        NATIVE,
        Architecture,
        Array,
        Compatibility,
        Format,
        Record,
        Registry,
        bool_,
        char,
        compatibility,
        event,
        float32,
        float64,
        int8,
        int16,
        int32,
        int64,
        uint8,
        uint16,
        uint32,
        uint64,
    )
    from echoic.hub import (
        Channel,
        Context,
        Controls,
        DurableSink,
        EagerSink,
        Events,
        Group,
        GroupStamp,
        GroupState,
        Hub,
        Recording,
        Replay,
        Sink,
        Source,
        Stamp,
        View,
    )
    from echoic.links import Identity
    from echoic.recorder import Hole, Journal, Missing, Recorded
    from echoic.rights import Rights, parse_rights
    from echoic.trust import load_rights
    from echoic.wire import Batch

__all__ = [
    "ARCHITECTURES",
    "NATIVE",
    "Architecture",
    "Array",
    "Batch",
    "Channel",
    "Compatibility",
    "Context",
    "Controls",
    "Demodulator",
    "DurableSink",
    "ECodeError",
    "EagerSink",
    "EchoicError",
    "EcodeModulator",
    "Events",
    "Format",
    "Group",
    "GroupStamp",
    "GroupState",
    "Hole",
    "Hub",
    "Identity",
    "Journal",
    "Missing",
    "Modulator",
    "Policy",
    "Record",
    "Recorded",
    "Recording",
    "Registry",
    "Replay",
    "Rights",
    "SharedObject",
    "SigningKey",
    "Sink",
    "Source",
    "Stamp",
    "Steering",
    "Trouble",
    "View",
    "bool_",
    "char",
    "compatibility",
    "event",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "load_rights",
    "parse_rights",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

__version__ = "0.1.0"

_homes = {
    **dict.fromkeys(("Policy", "Steering", "Trouble"), "echoic.channels"),
    **dict.fromkeys(("ECodeError", "EchoicError"), "echoic.errors"),
    "Batch": "echoic.wire",
    **dict.fromkeys(("Demodulator", "EcodeModulator", "Modulator", "SharedObject", "SigningKey"), "echoic.eager"),
    "Identity": "echoic.links",
    **dict.fromkeys(("Rights", "parse_rights"), "echoic.rights"),
    "load_rights": "echoic.trust",
    **dict.fromkeys(("Hole", "Journal", "Missing", "Recorded"), "echoic.recorder"),
    **dict.fromkeys(
        (
            "Channel",
            "Context",
            "Controls",
            "DurableSink",
            "EagerSink",
            "Events",
            "Group",
            "GroupStamp",
            "GroupState",
            "Hub",
            "Recording",
            "Replay",
            "Sink",
            "Source",
            "Stamp",
            "View",
        ),
        "echoic.hub",
    ),
}


def __getattr__(name: str) -> object:
    """Import a public name from the package it lives in."""
    if name not in __all__:
        raise AttributeError(f"module 'echoic' has no attribute {name!r}")
    value = getattr(import_module(_homes.get(name, "echoic.formats")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
