"""What somebody may have meant who wrote a name that is not there."""

import difflib
from collections.abc import Iterable
from typing import Final

__all__ = ["did_you_mean"]

LENGTH_MAX: Final = 60
LENGTH_DIFFERENCE_MAX: Final = 3
CANDIDATES_MAX: Final = 200


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean ...?)` with the nearest known name, or nothing if none is near.

    The search is bounded, as a stranger chooses the name and the number of fields.
    """
    if len(name) > LENGTH_MAX:
        return ""
    candidates = [other for other in known if abs(len(other) - len(name)) <= LENGTH_DIFFERENCE_MAX]
    near = difflib.get_close_matches(name, candidates[:CANDIDATES_MAX], n=1)
    return f" (did you mean `{near[0]}`?)" if near else ""
