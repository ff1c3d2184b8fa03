"""Pure. HOW MANY messages go into one pack: the paper's policies, and one that finds it out by itself."""

from echoic.groups.policies.nagle import Nagle
from echoic.groups.policies.paper import Paper
from echoic.groups.policies.parse import policy_of
from echoic.groups.policies.policy import Pack, PackingChange, Policy
from echoic.groups.policies.probe import Probe
from echoic.groups.policies.static import Static

__all__ = ["Nagle", "Pack", "PackingChange", "Paper", "Policy", "Probe", "Static", "policy_of"]
