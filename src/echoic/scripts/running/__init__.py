"""Pure. WHAT HAPPENS NEXT: machines that run scripts, their conversation with the world, and logs that repeat a run."""

from echoic.scripts.running.limits import MachineLimits
from echoic.scripts.running.log import RunLog, digest_of, replay
from echoic.scripts.running.machine import Machine
from echoic.scripts.running.records import (
    LogEntry,
    MachineState,
    MachineStatistics,
    Party,
    Possible,
    ProcessState,
    ToolView,
    Wait,
    Waiting,
)
from echoic.scripts.running.tools import ToolState
from echoic.scripts.running.world import Chance

__all__ = [
    "Chance",
    "LogEntry",
    "Machine",
    "MachineLimits",
    "MachineState",
    "MachineStatistics",
    "Party",
    "Possible",
    "ProcessState",
    "RunLog",
    "ToolState",
    "ToolView",
    "Wait",
    "Waiting",
    "digest_of",
    "replay",
]
