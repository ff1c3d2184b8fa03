"""Pure. WHAT A PROCESS CAN DO NEXT: control graphs, the terms and expressions on their edges, and matching."""

from echoic.scripts.graph.atoms import heads_at, heads_of
from echoic.scripts.graph.edges import END, NO_MESSAGE, Creation, Edge, Kind, MessageKey, Node, Timing, keeps_time
from echoic.scripts.graph.expressions import Evaluation, Instance, Options, moment_of
from echoic.scripts.graph.functions import EVALUATION_ERRORS, FUNCTIONS, Function
from echoic.scripts.graph.matching import (
    Bindings,
    agree,
    consistent,
    fits,
    fits_type,
    match,
    match_all,
    may_unify,
    unify,
)
from echoic.scripts.graph.program import Graph, Program, compile  # noqa: A004 - the word for it
from echoic.scripts.graph.templates import Bind, Pattern, Slot, Slots, Template, head_of, read, shown, substitute

__all__ = [
    "END",
    "EVALUATION_ERRORS",
    "FUNCTIONS",
    "NO_MESSAGE",
    "Bind",
    "Bindings",
    "Creation",
    "Edge",
    "Evaluation",
    "Function",
    "Graph",
    "Instance",
    "Kind",
    "MessageKey",
    "Node",
    "Options",
    "Pattern",
    "Program",
    "Slot",
    "Slots",
    "Template",
    "Timing",
    "agree",
    "compile",
    "consistent",
    "fits",
    "fits_type",
    "head_of",
    "heads_at",
    "heads_of",
    "keeps_time",
    "match",
    "match_all",
    "may_unify",
    "moment_of",
    "read",
    "shown",
    "substitute",
    "unify",
]
