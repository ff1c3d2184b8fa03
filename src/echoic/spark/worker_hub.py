"""The hub of a Python worker process of Spark.

Spark runs sources and sinks in Python processes that it reuses: the same process writes part of one batch after the
other, and one and the same commits them all. A hub takes some milliseconds to start and a link some more to connect, so
each process keeps its hubs, one for each set of name servers, until it ends. Who they are, $ECHOIC_IDENTITY says.

Spark's daemon makes its workers by `fork`. A hub does not survive that (`Hub.forsake`), so a child forgets what its
parent had, and makes its own.
"""

import os
import threading
from typing import Final

from echoic.errors import PipelineError
from echoic.hub import Hub
from echoic.links import Identity

__all__ = ["HUBS_MAX", "worker_hub"]

HUBS_MAX: Final = 16
_hubs: Final[dict[tuple[str, ...], Hub]] = {}
_lock = threading.Lock()


def worker_hub(names: tuple[str, ...] = ()) -> Hub:
    """Return this process's hub for some name servers; it is made when it is asked for first, and shared from then on.

    Args:
        names: The addresses of the name servers; none, if channels are given by their ids.

    Raises:
        AddressError: One of them is not an address.
        PipelineError: So many different name servers are in use that this cannot be meant.
        UnreachableError: No port is free to listen at.
    """
    with _lock:
        hub = _hubs.get(names)
        if hub is None or hub.closed:
            if len(_hubs) >= HUBS_MAX and names not in _hubs:
                raise PipelineError(f"this process uses {len(_hubs)} sets of name servers, the limit is {HUBS_MAX}")
            hub = _hubs[names] = Hub(names=names, name="echoic spark", identity=Identity.of_environment())
    return hub


def _forget_all() -> None:
    """Be without hubs, and with a free lock: this is a forked child, whose parent may have held it."""
    global _lock  # noqa: PLW0603 - a lock that is held when a process is forked stays held for ever in the child
    _lock = threading.Lock()
    _hubs.clear()


os.register_at_fork(after_in_child=_forget_all)
