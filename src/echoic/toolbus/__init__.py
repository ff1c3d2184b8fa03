"""Edge: touches sockets and processes. Runs T-scripts with their tools.

`Bus` runs a script, `Tool` is what tools in Python are made of, `Term` what they exchange.
"""

from echoic.terms import Placeholder, Term, TermList, Value
from echoic.toolbus.bus import Bus
from echoic.toolbus.clock import RealClock, VirtualClock
from echoic.toolbus.dialling import Exchanging
from echoic.toolbus.errands import Pending
from echoic.toolbus.handlers import do, eval_, event, request
from echoic.toolbus.limits import BusLimits
from echoic.toolbus.ng_adapter import NgEntrance
from echoic.toolbus.options import BusOptions, BusStatistics, ReferenceState, ToolStatistics
from echoic.toolbus.record import Recording, imitate, read_recording
from echoic.toolbus.run_file import read_run, replay_run
from echoic.toolbus.stub import Stub
from echoic.toolbus.tool import Tool

__all__ = [
    "Bus",
    "BusLimits",
    "BusOptions",
    "BusStatistics",
    "Exchanging",
    "NgEntrance",
    "Pending",
    "Placeholder",
    "RealClock",
    "Recording",
    "ReferenceState",
    "Stub",
    "Term",
    "TermList",
    "Tool",
    "ToolStatistics",
    "Value",
    "VirtualClock",
    "do",
    "eval_",
    "event",
    "imitate",
    "read_recording",
    "read_run",
    "replay_run",
    "request",
]
