"""Edge: touches processes and sockets. What do derived channels cost, and what do they save?"""

from echoic.testing.bench.derive.calls import Call
from echoic.testing.bench.derive.compilers import Compiler, Ready, memory_of
from echoic.testing.bench.derive.figures import EVENTS, FIGURE_4, FIGURE_5, FIGURE_6, HIGH, LOW, Figure, Trade
from echoic.testing.bench.derive.question import PARTS, measure

__all__ = [
    "EVENTS",
    "FIGURE_4",
    "FIGURE_5",
    "FIGURE_6",
    "HIGH",
    "LOW",
    "PARTS",
    "Call",
    "Compiler",
    "Figure",
    "Ready",
    "Trade",
    "measure",
    "memory_of",
]
