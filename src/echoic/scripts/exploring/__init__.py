"""Pure. ALL THAT A SCRIPT CAN DO: its states, and what is wrong with them before it ever runs."""

from echoic.scripts.exploring.aut import read_aut, write_aut
from echoic.scripts.exploring.domains import DEFAULT_DOMAIN
from echoic.scripts.exploring.dot import write_dot
from echoic.scripts.exploring.environment import Environment
from echoic.scripts.exploring.exploration import Exploration, explore
from echoic.scripts.exploring.findings import Finding, FindingKind
from echoic.scripts.exploring.limits import ExplorationLimits
from echoic.scripts.exploring.steps import Step
from echoic.scripts.exploring.transition_systems import TransitionSystem, minimise

__all__ = [
    "DEFAULT_DOMAIN",
    "Environment",
    "Exploration",
    "ExplorationLimits",
    "Finding",
    "FindingKind",
    "Step",
    "TransitionSystem",
    "explore",
    "minimise",
    "read_aut",
    "write_aut",
    "write_dot",
]
