"""The limits of a bus towards its tools: on every size, queue and waiting."""

from dataclasses import dataclass
from typing import Final

from echoic.toolbus.protocol import MESSAGE_BYTES_MAX

__all__ = ["DEFAULT_LIMITS", "BusLimits"]


@dataclass(frozen=True, slots=True)
class BusLimits:
    """What a bus accepts, keeps and waits for. The machine's own limits, on notes and processes, are with it."""

    message_bytes_max: int = MESSAGE_BYTES_MAX
    """Of one message, either way."""
    queue_bytes_max: int = 2 * MESSAGE_BYTES_MAX
    """What may wait to be written to one tool; a tool that takes less than it is told is lost."""
    heard_max: int = 1024
    """Messages of one tool that wait for the machine; the tool is not read from until there is room."""
    tools_max: int = 4096
    """Tools that are connected at the same time."""
    tools_per_name_max: int = 1024
    """Of them, those that one name in a certificate or token may have."""
    kept_bytes_max: int = 1024 * 1024 * 1024
    """What is kept for all tools with a lease until they have heard it; beyond, who is cut off is lost."""
    kept_bytes_per_name_max: int = 256 * 1024 * 1024
    """Of that, what is kept for the tools of one name."""
    strangers_max: int = 64
    """Connections that have not said who they are; beyond, who came first of the address with most is sent away."""
    hello_seconds: float = 5.0
    """For a stranger to say who it is."""
    start_seconds: float = 60.0
    """For a tool that was started to connect."""
    grace_seconds: float = 5.0
    """For tools to end when the bus has, before they are killed."""


DEFAULT_LIMITS: Final = BusLimits()
