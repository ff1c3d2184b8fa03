"""The head of a request to become a WebSocket: what is asked there, and by the page of whom.

Browsers let every page connect to every address, loopback as well, and say in `Origin` whose page it is, which no page
can change. So a server that knows no passwords is open to all pages that a browser on its machine shows, unless it
looks.

    no Origin                   not a browser: a program, which could say there what it likes
    file://, app:// and such    a program on this machine that is made of a browser, as Foxglove's desktop is
    http://, https://, null     a page: only those that were named
"""

from collections.abc import Collection
from typing import Final

__all__ = ["HEAD_BYTES_MAX", "HEAD_END", "refusal_of"]

HEAD_BYTES_MAX: Final = 8192
HEAD_END: Final = b"\r\n\r\n"
ORIGIN_CHARACTERS_MAX: Final = 100


def refusal_of(head: bytes, origins: Collection[str]) -> str:
    """Return why a request is refused, "" if it is not.

    Args:
        head: From its first line to the empty one.
        origins: Whose pages may ask, as in `https://app.foxglove.dev`.
    """
    request, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    if not request.startswith("GET ") or not request.endswith(" HTTP/1.1"):
        return "there is nothing but a WebSocket here"
    named = [line.partition(":") for line in lines]
    found = [value.strip() for name, _, value in named if name.strip().lower() == "origin"]
    if len(found) > 1:
        return "the header Origin is there twice"
    origin = found[0].lower() if found else ""
    page = origin == "null" or origin.startswith(("http:", "https:"))
    if page and origin not in {each.lower().rstrip("/") for each in origins}:
        shown = "".join(each if each.isprintable() else "?" for each in origin[:ORIGIN_CHARACTERS_MAX])
        return f"a page of {shown} may not look here"
    return ""
