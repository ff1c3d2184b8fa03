"""House rules: what an operator's file of rights says of the tools of a bus.

To be the tool `calc` of a bus is the right `publish` on `tool:calc`, as in tokens. So one file says it for both:

    allow adder  publish  tool:calc
    deny  mallory *       *

The file is that of the bus itself, or that of its hub, which tells what was asked and decided on `echoic/audit`; with
both, both must allow it. A bus without a file lets everybody be any tool who has proved what the bus wants proved. Whom
the bus has started is not asked about: whoever wrote the script and its commands could do as he likes anyway.

The file is looked at twice a second while the bus runs, and read again when two looks in a row have seen a change
(`Watched`): one that is empty for a moment while it is being written would lock everybody out. One that cannot be read,
or is none, changes nothing, is complained about and tried again.
"""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

from echoic.errors import DeniedError, EchoicError
from echoic.rights import ANONYMOUS, Rights
from echoic.toolbus.guest import TOOL_PREFIX, TOOL_RIGHT, Guest
from echoic.trust import Watched, load_rights

if TYPE_CHECKING:
    from echoic.hub import Hub

__all__ = ["HouseRules"]

COMES: Final = "Hello"
STAYS: Final = "Stay"
log: Final = logging.getLogger("echoic.toolbus")


class HouseRules:
    """Says who may be which tool. Any thread may ask."""

    def __init__(self, rights: Rights | str | Path | None = None, hub: "Hub | None" = None) -> None:
        """Take rules, or the file of some; and those of a hub, if it has any.

        Raises:
            LocalError: It is no file of rules.
            InsecureError: Others than its owner may write the file.
        """
        self._watched = Watched(Path(rights)) if isinstance(rights, str | Path) else None
        self._rights = load_rights(rights) if isinstance(rights, str | Path) else rights
        self._hub = hub

    def check(self, guest: Guest, tool: str, peer: str, *, again: bool = False) -> None:
        """Refuse somebody who may not be a tool.

        Args:
            guest: Who it is.
            tool: What the script calls the tool.
            peer: Where it comes from, for the audit.
            again: It is there already, so that nobody need be told that it still may be.

        Raises:
            DeniedError: It may not.
        """
        if guest.started or (again and self._allows(guest, tool)):
            return
        if not self._allows(guest, tool, STAYS if again else COMES, peer):
            raise DeniedError(f"`{guest.who or ANONYMOUS}` may not {TOOL_RIGHT} `{TOOL_PREFIX}{tool}`")

    @property
    def counted(self) -> bool:
        """Whether there are rules, or a hub that may be given some."""
        return self._rights is not None or self._hub is not None

    def look(self) -> None:
        """Read the file again if it has changed; called at intervals, by one thread."""
        watched = self._watched
        if watched is None or not watched.changed():
            return
        try:
            self._rights = load_rights(watched.path)
        except EchoicError as error:
            if watched.failed(str(error)):
                log.warning("%s cannot be used, so what it said before still counts: %s", watched.path, error)

    def shows(self, guest: Guest, tool: str) -> bool:
        """Whether somebody may know that there is a tool of a name."""
        return guest.started or (guest.may_be(tool) and self._allows(guest, tool))

    def _allows(self, guest: Guest, tool: str, request: str = "", peer: str = "") -> bool:
        """Whether somebody may be a tool; the hub tells of it where a request is named."""
        name = TOOL_PREFIX + tool
        by_hub = self._hub.decide(guest.who, TOOL_RIGHT, name, request, peer) if self._hub is not None else None
        rights = self._rights
        own = rights.decide(guest.who, TOOL_RIGHT, name) if rights is not None else None
        return all(decision is None or bool(decision) for decision in (by_hub, own))
