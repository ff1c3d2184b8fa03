"""Edge: touches sockets and files. The engine that needs no daemon: the ordering core, its log and its connections."""

from echoic.engines.embedded.engine import GROUP_FEATURE, Contact, EmbeddedEngine, Membership, draw_life
from echoic.engines.embedded.log_file import LogFile, LogStatistics

__all__ = ["GROUP_FEATURE", "Contact", "EmbeddedEngine", "LogFile", "LogStatistics", "Membership", "draw_life"]
