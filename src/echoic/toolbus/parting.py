"""How a bus parts with the tools that are connected when it ends.

All are told to end before any is waited for, so that the slowest alone takes its time. A program of its own is waited
for by the launcher, which can kill it; a tool that is an object of this process has only its thread, and some seconds.
"""

import time
from collections.abc import Iterable

from echoic.scripts.running.messages import ToTool
from echoic.terms import TermList
from echoic.toolbus.direct import DirectLine
from echoic.toolbus.switchboard import Conversation

__all__ = ["part"]


def part(conversations: Iterable[Conversation], grace_seconds: float) -> None:
    """Tell all tools to end that were not told, close their lines, and wait for those of this process."""
    left = list(conversations)
    for each in left:
        if not each.terminated:
            each.line.tell(ToTool.TERMINATE, 0, (TermList(),))
        each.line.close()
    deadline = time.monotonic() + grace_seconds
    for each in left:
        if isinstance(each.line, DirectLine):
            each.line.settle(deadline - time.monotonic())
