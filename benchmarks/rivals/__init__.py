"""Others who move events between Python processes, each used the way its own documentation recommends for speed.

Each takes a Python object, packs it with msgspec (`codec`), and decodes it into an object before the callback. What is
not installed does not take part.
"""

from importlib import import_module
from importlib.util import find_spec

from echoic.testing.bench import Contender

__all__ = ["RIVALS", "installed_rivals", "missing_rivals"]

# The module that must be there, and the one here that uses it.
RIVALS = {"zmq": "zeromq", "zenoh": "zenoh", "nats": "nats", "grpc": "grpc"}


def installed_rivals() -> list[Contender]:
    """Return all contenders whose packages are installed."""
    found: list[Contender] = []
    for needed, module in RIVALS.items():
        if find_spec(needed) is not None:
            found += import_module(f"benchmarks.rivals.{module}").CONTENDERS
    return found


def missing_rivals() -> list[str]:
    """Return the modules that are not installed."""
    return [needed for needed in RIVALS if find_spec(needed) is None]
