"""How a bus runs its script, and what it tells of that."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from echoic.links import Identity, check_exposure, format_address, parse_address
from echoic.rights import Rights
from echoic.scripts.running import MachineLimits, MachineStatistics
from echoic.toolbus.clock import Clock, ClockName
from echoic.toolbus.keyboard import read_standard_input
from echoic.toolbus.limits import DEFAULT_LIMITS, BusLimits
from echoic.trust import Issuers

if TYPE_CHECKING:
    from echoic.hub import Hub

__all__ = ["DEFAULT_MACHINE_LIMITS", "BusOptions", "BusStatistics", "ReferenceState", "ToolStatistics", "ValueOptions"]

DEFAULT_MACHINE_LIMITS: Final = MachineLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueOptions:
    """How large values get to who needs them."""

    threshold_bytes: float | None = None
    """From which size on they go by reference: 0 for all strings, `math.inf` for none; None to have it measured."""
    lease_seconds: float = 0.0
    """How long a tool that was cut off may stay away and come back as if nothing had been."""
    promote: bool = True
    """Whether the values of a tool that leaves in order become values of the bus if they are still referred to."""
    told_bytes_max: int = 64 * 1024 * 1024
    """What is larger is not said to a tool, whatever the threshold: the tool fetches it from the bus, at its pace."""
    listen: str = "127.0.0.1:0"
    """Where tools fetch what the bus has itself."""
    identity: Identity | None = None
    """Makes that TLS."""
    insecure: bool = False
    """Whether the bus fetches from other machines without it."""
    grace_seconds: float = 5.0
    """How long a tool that is to end may be needed by others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BusOptions:
    """How to run a script; `Bus.from_script` says what each is."""

    name: str = "bus"
    seed: int | None = None
    clock: ClockName | Clock = "real"
    listen: str = "127.0.0.1:0"
    identity: Identity | None = None
    issuers: Issuers | None = None
    rights: Rights | str | Path | None = None
    insecure: bool = False
    limits: BusLimits = DEFAULT_LIMITS
    machine_limits: MachineLimits = DEFAULT_MACHINE_LIMITS
    output: Callable[[str], None] | None = None
    read_line: Callable[[str], str | None] = read_standard_input
    traced: bool = False
    hub: "Hub | None" = None
    log: str | Path | None = None
    threshold_bytes: float | None = None
    lease_seconds: float = 0.0
    promote: bool = True

    def check(self) -> None:
        """See that the bus is not open to strangers by mistake.

        Raises:
            AddressError: `listen` is not an address.
            InsecureError: It can be reached from other machines, without TLS.
        """
        check_exposure(self.listen, secure=self.identity is not None, insecure=self.insecure)

    def values(self) -> ValueOptions:
        """Return what is said here about large values."""
        host, _ = parse_address(self.listen)
        return ValueOptions(
            threshold_bytes=self.threshold_bytes,
            lease_seconds=self.lease_seconds,
            promote=self.promote,
            told_bytes_max=self.limits.queue_bytes_max // 2,
            listen=format_address(host, 0),
            identity=self.identity,
            insecure=self.insecure,
            grace_seconds=self.limits.grace_seconds,
        )


@dataclass(frozen=True, slots=True)
class ToolStatistics:
    """A tool that is connected."""

    name: str
    number: int
    busy: bool
    said: int
    told: int


@dataclass(frozen=True, slots=True)
class BusStatistics:
    """What a bus has done so far."""

    name: str
    address: str
    machine: MachineStatistics
    tools: tuple[ToolStatistics, ...]
    processes: tuple[str, ...]
    """Programs of tools that run, as `name(number)`."""
    unheard: int
    """What tools and others have said and the machine has not heard."""
    warnings: int
    references: int
    """Values that are with tools and that the script refers to."""
    fetched: int
    """Values that the bus needed itself: a script has compared, computed with or printed them."""


@dataclass(frozen=True, slots=True)
class ReferenceState:
    """A value that a tool has and the script refers to, for people."""

    owner: str
    """The tool, as `name(number)`; `bus` where the bus has it."""
    variable: int
    signature: str
    bytes: int
    age_seconds: float
    holders: tuple[str, ...]
    """Who refers to it: variables of processes, notes, messages of tools."""
    in_flight: tuple[str, ...]
    """Tools that were told it and have not fetched it."""
