"""How a verb is told to end: by Ctrl-C or by SIGTERM, which are handled alike and told apart where that is said."""

__all__ = ["Terminated", "told_by"]


class Terminated(KeyboardInterrupt):
    """SIGTERM has come."""


def told_by(ending: KeyboardInterrupt) -> str:
    """Return who has told a verb to end, for people."""
    return "SIGTERM" if isinstance(ending, Terminated) else "Ctrl-C"
