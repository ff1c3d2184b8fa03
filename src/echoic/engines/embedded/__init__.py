"""Edge: touches sockets and files. The engine that needs no daemon: the ordering core, its log and its connections."""

from echoic.engines.embedded.engine import GROUP_FEATURE, EmbeddedEngine, Membership, draw_life
from echoic.engines.embedded.log_file import LogFile, LogStatistics

__all__ = ["GROUP_FEATURE", "EmbeddedEngine", "LogFile", "LogStatistics", "Membership", "draw_life"]
