"""Pure. The public test kit: hostile input for every parser, a network and a disk that fail, made from a seed."""

from echoic.testing.channel_fuzzer import ChannelFuzzer
from echoic.testing.fuzz import Finding, FrameFuzzer, Fuzzer, FuzzReport
from echoic.testing.ledger import Ledger
from echoic.testing.network import Network, VirtualClock
from echoic.testing.simulated_disk import DiskStatistics, SimulatedDisk
from echoic.testing.simulated_engine import SimulatedEngine, SimulatedMembers
from echoic.testing.simulated_hub import SimulatedHub
from echoic.testing.simulated_system import SimulatedSystem, SimulationReport

__all__ = [
    "ChannelFuzzer",
    "DiskStatistics",
    "Finding",
    "FrameFuzzer",
    "FuzzReport",
    "Fuzzer",
    "Ledger",
    "Network",
    "SimulatedDisk",
    "SimulatedEngine",
    "SimulatedHub",
    "SimulatedMembers",
    "SimulatedSystem",
    "SimulationReport",
    "VirtualClock",
]
