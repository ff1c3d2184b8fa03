"""Pure. The public test kit: hostile input for every parser, and hubs over a network that fails, made from a seed."""

from echoic.testing.fuzz import Finding, FrameFuzzer, FuzzReport
from echoic.testing.ledger import Ledger
from echoic.testing.network import Network, VirtualClock
from echoic.testing.simulated_hub import SimulatedHub
from echoic.testing.simulated_system import SimulatedSystem, SimulationReport

__all__ = [
    "Finding",
    "FrameFuzzer",
    "FuzzReport",
    "Ledger",
    "Network",
    "SimulatedHub",
    "SimulatedSystem",
    "SimulationReport",
    "VirtualClock",
]
