"""Edge: runs code that others have written. Which part of a handler goes to the source, how, and where may it run?"""

from echoic.eager.limits import Limits
from echoic.eager.loading import Loaded, explain, load
from echoic.eager.modulator import Demodulator, EcodeModulator, Intercepts, Modulator
from echoic.eager.parcel import Parcel, SharedReference, may_stand_for, pack, unpack
from echoic.eager.services import Grant, Services
from echoic.eager.shared_object import (
    Replica,
    SharedHost,
    SharedObject,
    attach,
    copy_of,
    encode_values,
    notify,
    record_class,
    refresh,
)
from echoic.trust import SigningKey, TrustedKey, read_trust, sandboxed_keys, trusted_keys, verify, write_trust

__all__ = [
    "Demodulator",
    "EcodeModulator",
    "Grant",
    "Intercepts",
    "Limits",
    "Loaded",
    "Modulator",
    "Parcel",
    "Replica",
    "Services",
    "SharedHost",
    "SharedObject",
    "SharedReference",
    "SigningKey",
    "TrustedKey",
    "attach",
    "copy_of",
    "encode_values",
    "explain",
    "load",
    "may_stand_for",
    "notify",
    "pack",
    "read_trust",
    "record_class",
    "refresh",
    "sandboxed_keys",
    "trusted_keys",
    "unpack",
    "verify",
    "write_trust",
]
