"""How a bus runs its script, and what it tells of that."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from echoic.links import Identity
from echoic.scripts.running import MachineLimits, MachineStatistics
from echoic.toolbus.clock import Clock, ClockName
from echoic.toolbus.keyboard import read_standard_input
from echoic.toolbus.limits import DEFAULT_LIMITS, BusLimits

if TYPE_CHECKING:
    from echoic.hub import Hub

__all__ = ["DEFAULT_MACHINE_LIMITS", "BusOptions", "BusStatistics", "ToolStatistics"]

DEFAULT_MACHINE_LIMITS: Final = MachineLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class BusOptions:
    """How to run a script; `Bus.from_script` says what each is."""

    name: str = "bus"
    seed: int | None = None
    clock: ClockName | Clock = "real"
    listen: str = "127.0.0.1:0"
    identity: Identity | None = None
    insecure: bool = False
    limits: BusLimits = DEFAULT_LIMITS
    machine_limits: MachineLimits = DEFAULT_MACHINE_LIMITS
    output: Callable[[str], None] | None = None
    read_line: Callable[[str], str | None] = read_standard_input
    traced: bool = False
    hub: "Hub | None" = None
    log: str | Path | None = None


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
