"""What shipped code may use.

The time is that of one call: a batch enqueued, a period passed and everything dequeued that can be sent. It is counted
by the clock on the wall, because the source waits for the call, whatever the code does meanwhile. The memory is what
the code may take beyond what Python itself takes; it is limited in a confined process only, since within one process
nobody can tell whose memory is whose.

The other numbers bound what the product keeps on behalf of the code. They are no settings, because nobody has wanted
another value for them.
"""

from typing import Annotated, Final

import msgspec

__all__ = ["FAULTS_MAX", "FAULT_CHARACTERS_MAX", "OUTPUT_EVENTS_MAX", "SERVICE_CALLS_MAX", "Limits"]

FAULTS_MAX: Final = 256
"""How many faults of one call are told."""
FAULT_CHARACTERS_MAX: Final = 400
"""How long the text of a fault may be."""
OUTPUT_EVENTS_MAX: Final = 262_144
"""How many events may be dequeued in one call."""
SERVICE_CALLS_MAX: Final = 10_000
"""How often a confined modulator may call services in one call."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much one modulator may use."""

    seconds: Annotated[float, msgspec.Meta(gt=0)] = 0.25
    """How long one call may take."""
    memory_bytes: Annotated[int, msgspec.Meta(ge=16 * 1024 * 1024)] = 256 * 1024 * 1024
    """How much memory a confined modulator may take, beyond that of Python itself."""
    start_seconds: Annotated[float, msgspec.Meta(gt=0)] = 10.0
    """How long a confined process may take to start, which is the machine's affair."""
    load_seconds: Annotated[float, msgspec.Meta(gt=0)] = 2.0
    """How long the text may take to be loaded, with all that it imports."""
