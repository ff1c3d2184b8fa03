"""Lines of text for `read`: asked for one at a time, and kept until somebody takes them."""

from collections import deque

from echoic.errors import LimitExceededError, MalformedTermError
from echoic.scripts.graph import Bindings, Pattern, consistent, match
from echoic.scripts.running.instances import ProcessInstance
from echoic.scripts.running.limits import MachineLimits
from echoic.terms import Value, parse_text

__all__ = ["Lines"]


class Lines:
    """What was typed and not yet read."""

    def __init__(self, limits: MachineLimits) -> None:
        self._limits = limits
        self._lines: deque[tuple[str, tuple[Value, ...]]] = deque()  # each with what it may stand for
        self.asked = False
        self.ended = False
        self.watchers: dict[int, object] = {}  # processes that wait for a line

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, text: str | None) -> bool:
        """Take what was typed, None at the end of it; false where too much was."""
        self.asked = False
        if text is None or self.ended:
            self.ended = True
            return True
        if len(self._lines) >= self._limits.lines_max:
            return False
        self._lines.append((text, _readings(text)))
        return True

    def find(self, process: ProcessInstance, pattern: Pattern) -> Bindings | None:
        """Return what the next line binds; a line that is no term, or not the one that is wanted, may be a string."""
        if not self._lines:
            return None
        for value in self._lines[0][1]:
            bindings: Bindings = []
            if match(pattern, process.slots, value, bindings) and consistent(bindings):
                return bindings
        return None

    def take(self) -> str:
        """Return the next line, which is then forgotten."""
        return self._lines.popleft()[0]


def _readings(text: str) -> tuple[Value, ...]:
    line = text.rstrip("\r\n")
    try:
        return parse_text(line), line
    except (MalformedTermError, LimitExceededError):
        return (line,)
