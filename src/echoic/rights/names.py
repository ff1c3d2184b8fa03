"""What people and programs are called: in certificates, in tokens, and where rights are granted."""

import re
from typing import Final

from echoic.errors import LocalError

__all__ = ["ANONYMOUS", "NAME_CHARACTERS_MAX", "check_name"]

NAME_CHARACTERS_MAX: Final = 64
NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@\-]*\Z", re.ASCII)
ANONYMOUS: Final = "anonymous"
"""Who has shown no certificate, and no token: whoever comes over a plain connection."""


def check_name(name: str) -> None:
    """Refuse what cannot name anybody.

    Raises:
        LocalError: Naming the rule.
    """
    if len(name) > NAME_CHARACTERS_MAX or not NAME.match(name):
        raise LocalError(
            f"a name has at most {NAME_CHARACTERS_MAX} letters, digits, `_`, `-`, `.` and `@`, got {name[:80]!r}"
        )
