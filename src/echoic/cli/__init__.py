"""Edge: the command `echoic`. What people type, and what they see."""

from echoic.cli.main import main

__all__ = ["main"]
