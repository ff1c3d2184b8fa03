"""What hubs and buses warn of, told to who runs a command."""

import logging
from typing import Final

from echoic.cli.screen import say

__all__ = ["tell_warnings"]

log: Final = logging.getLogger("echoic")


class Teller(logging.Handler):
    """Says on stderr what is warned of: its words may be those of strangers."""

    def emit(self, record: logging.LogRecord) -> None:
        """Say it."""
        say(self.format(record))


def tell_warnings() -> None:
    """Have everything said on stderr that is warned of from now on, once however often this is asked for."""
    if not any(isinstance(handler, Teller) for handler in log.handlers):
        log.addHandler(Teller())
