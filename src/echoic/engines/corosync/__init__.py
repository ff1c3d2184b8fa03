"""Edge: talks to the Corosync daemon of this machine. A group over an engine that a cluster may run already."""

from echoic.engines.corosync.cpg import ClosedGroup, Happening, Message, NodesChanged, ProcessesChanged
from echoic.engines.corosync.engine import CorosyncEngine

__all__ = ["ClosedGroup", "CorosyncEngine", "Happening", "Message", "NodesChanged", "ProcessesChanged"]
