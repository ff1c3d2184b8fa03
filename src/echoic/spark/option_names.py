"""Pure. Names of options: which one is meant, which is none.

Spark gives a mapping that does not mind case, and whose keys, taken out of it, are in lower case; settings of a
pipeline have underscores. So a name is what is left without either. A name that is none is refused with the nearest
one: an option that is silently not there is found out by wrong results.
"""

import difflib
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from echoic.errors import PipelineError

__all__ = ["known_options", "shown"]

SHOWN_MAX: Final = 80
TEXT_MAX: Final = 1 << 20


def known_options(
    options: Mapping[str, str], names: Sequence[str], side: str, ignored: Collection[str] = ()
) -> dict[str, str]:
    """Return options by the names that they have here.

    Args:
        options: What Spark gives.
        names: The names that there are.
        side: What the options are for, `source` or `sink`.
        ignored: Names in lower case that are meant for others.

    Raises:
        PipelineError: One is not known, is given twice or is too long.
    """
    known = {name.lower(): name for name in names}
    given: dict[str, str] = {}
    for key, value in options.items():
        plain = key.lower().replace("_", "")
        if plain in ignored:
            continue
        name = known.get(plain)
        if name is None:
            near = difflib.get_close_matches(plain[:SHOWN_MAX], known, 1, 0.5)
            meant = f"did you mean `{known[near[0]]}`" if near else f"there are {', '.join(names)}"
            raise PipelineError(f"there is no option `{shown(key)}`: {meant} - at a {side} of format `echoic`")
        if name in given:
            raise PipelineError(f"the option `{name}` is given twice - at a {side} of format `echoic`")
        if len(value) > TEXT_MAX:
            raise PipelineError(f"the option `{name}` has {len(value)} characters, limit is {TEXT_MAX}")
        given[name] = value
    return given


def shown(value: str) -> str:
    """Return a value as a message shows it."""
    return value if len(value) <= SHOWN_MAX else f"{value[:SHOWN_MAX]}..."
