"""Ports for servers that must be told theirs."""

import socket
import time

__all__ = ["free_port", "wait_for_port"]


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def wait_for_port(port: int, seconds_max: float) -> None:
    """Return when somebody listens there."""
    deadline = time.monotonic() + seconds_max
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return
