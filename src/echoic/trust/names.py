"""Names: how people, machines and programs are called wherever rights are given to them.

One rule for keys, certificates, tokens and lists of rights, so that whoever has a name in one has it in all. A name is
also the name of a file, and a word in a URI and on a command line: so it has no slash, no blank and no colon, and does
not begin with a dot or a dash.
"""

import re
from typing import Final

from echoic.errors import LocalError
from echoic.rights import ANONYMOUS

__all__ = ["NAME_LETTERS_MAX", "URI_SCHEME", "check_bearer", "check_name", "is_name"]

NAME_LETTERS_MAX: Final = 64
URI_SCHEME: Final = "echoic:"
"""Begins the URI in a certificate that says whose it is."""
NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@\-]{0,63}\Z", re.ASCII)


def is_name(text: str) -> bool:
    """Return whether somebody can be called this."""
    return NAME.match(text) is not None


def check_name(name: str, whose: str = "a") -> None:
    """Refuse what cannot name anybody; `whose` begins the message, such as "a key's".

    Raises:
        LocalError: Naming the rule.
    """
    if not is_name(name):
        raise LocalError(
            f"{whose} name has at most {NAME_LETTERS_MAX} letters, digits, `_`, `-`, `.` and `@`, got {name[:80]!r}"
        )


def check_bearer(name: str, whose: str) -> None:
    """Refuse to certify what cannot name anybody, or who has shown nothing; `whose` is as for `check_name`.

    Raises:
        LocalError: Naming the rule.
    """
    check_name(name, whose)
    if name == ANONYMOUS:
        raise LocalError(f"{whose} name cannot be `{ANONYMOUS}`, which stands for whoever shows none (rights)")
