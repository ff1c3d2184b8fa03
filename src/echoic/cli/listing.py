"""`echoic ls`: which channels there are.

People type it all day, so it is answered within a quarter of a second: it makes no hub, and what a hub needs is not
imported (`echoic.cli.asking`). It only looks: a name server that does not run is not started, since it would know
nothing. Whoever has an identity waits for a hub, which speaks TLS.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import compress
from typing import Annotated, Final, TypeAlias

import msgspec
from cyclopts import Parameter

from echoic.cli.asking import Entry, ask_names, browse_all, is_address
from echoic.cli.screen import json_text, printable, say
from echoic.cli.tables import print_table
from echoic.cli.where import NOWHERE, AsJson, Where, chosen, names_address

__all__ = ["list_names", "ls", "names_quickly"]

UNTYPED: Final = "(untyped)"
SILENT: Final = "unreachable"
HIDDEN: Final = "not shown"

Browse: TypeAlias = Callable[[Iterable[str]], Mapping[str, list[Entry]]]
"""Returns which channels hubs manage, by their addresses."""
Known: TypeAlias = Callable[[], list[Entry]]
"""Returns what the name server knows; raises UnreachableError, which says what to do, if it does not answer."""


class Found(msgspec.Struct, frozen=True):
    """A channel that the name server knows."""

    entry: Entry
    detail: Entry | None
    """What its manager says of it; None when it says nothing."""
    answered: bool
    """Whether the manager has answered at all: if so, there is no such channel, or none that we have a right to."""

    @property
    def type(self) -> str:
        """The name of its type, or why there is none."""
        if self.detail is None:
            return HIDDEN if self.answered else SILENT
        return self.detail.type or UNTYPED

    def cells(self) -> list[object]:
        """Return what a table has of it beside its name and id."""
        one = self.detail
        return [self.type, *((one.sources, one.sinks, one.parent) if one is not None else ("", "", ""))]

    def plain(self) -> dict[str, object]:
        """Return what is printed as JSON."""
        fields = msgspec.to_builtins(self.detail or self.entry)
        return {**fields, "reachable": self.answered, "shown": self.detail is not None}


def ls(
    *,
    types: Annotated[bool, Parameter(name=["--types", "-t"], negative=(), show_default=False)] = False,
    everything: Annotated[bool, Parameter(name=["--all", "-a"], negative=(), show_default=False)] = False,
    verbose: Annotated[bool, Parameter(name=["--verbose", "-v"], negative=(), show_default=False)] = False,
    as_json: AsJson = False,
    where: Where = NOWHERE,
) -> None:
    """List the channels that the name server knows.

    Each channel's manager is asked for its type, and for the hubs that hold sources and sinks.

    Try:
        echoic ls
        echoic ls --json | jq -r .[].name

    Args:
        types: Print only names and types, one channel a line.
        everything: List derived channels that were given no name as well; they are known by their ids.
        verbose: Show ids as well.
        as_json: Print a list of objects as JSON.
        where: Where the name server is.
    """
    names = names_quickly(where)
    with _asked_by(where) as (known, browse):
        found = _survey(known, browse, unnamed=everything)
    if as_json:
        print(json_text([each.plain() for each in found]))
        return
    if types:
        for each in found:
            print(f"{printable(each.entry.name)} [{printable(each.type)}]")
        return
    columns = {"CHANNEL": True, "TYPE": True, "SOURCES": True, "SINKS": True, "DERIVED FROM": False, "ID": verbose}
    columns["DERIVED FROM"] = any(each.detail is not None and each.detail.parent for each in found)
    rows = [[each.entry.name, *each.cells(), each.entry.id] for each in found]
    print_table(list(compress(columns, columns.values())), [list(compress(row, columns.values())) for row in rows])
    if not found:
        say(f"no channels at {names} (echoic pub --help)")


def list_names(*, as_json: AsJson = False, where: Where = NOWHERE) -> None:
    """List what the name server knows: names, and the ids they stand for.

    No manager is asked; `echoic ls` asks them.

    Try:
        echoic names ls

    Args:
        as_json: Print a list of objects as JSON.
        where: Where the name server is.
    """
    with _asked_by(where) as (known, _):
        entries = known()
    if as_json:
        print(json_text([{"name": entry.name, "id": entry.id} for entry in entries]))
    else:
        print_table(["CHANNEL", "ID"], [[entry.name, entry.id] for entry in entries])


def names_quickly(where: Where) -> str:
    """Return the address of the name server, without importing what says in detail what is wrong with it.

    Raises:
        AddressError: What was set is not an address, or the file cannot be read.
        ChannelNotFoundError: There is no such context.
    """
    names = chosen(where).names
    return names if is_address(names) else names_address(where)


@contextmanager
def _asked_by(where: Where) -> Iterator[tuple[Known, Browse]]:
    """Give what asks the name server, and hubs which channels they manage: a bare socket, or a hub with an identity.

    Raises:
        AddressError: What was set is not an address.
        InsecureError: There is no such identity.
    """
    if not chosen(where).identity:
        yield lambda: ask_names(names_quickly(where)), browse_all
        return
    from echoic.cli.meeting import visit
    from echoic.monitor import ask_all
    from echoic.monitor import browse as browse_names

    with visit(where, "ls") as hub:

        def browse(addresses: Iterable[str]) -> Mapping[str, list[Entry]]:
            answers = ask_all(addresses, hub.channels)
            return {at: msgspec.convert(each, list[Entry], from_attributes=True) for at, each in answers.items()}

        yield lambda: msgspec.convert(browse_names(hub), list[Entry], from_attributes=True), browse


def _survey(ask_known: Known, browse: Browse, *, unnamed: bool = False) -> list[Found]:
    """Return all channels that a name server knows, with what their managers say.

    Args:
        ask_known: Asks the name server.
        browse: Asks hubs.
        unnamed: Return also what is derived from these channels and has no name there.

    Raises:
        UnreachableError: It does not answer.
    """
    known = ask_known()
    answers = browse(sorted({entry.manager for entry in known}))
    details = {entry.id: entry for entries in answers.values() for entry in entries}
    if unnamed:
        named = {entry.id for entry in known}
        known = known + [entry for entry in details.values() if entry.parent and entry.id not in named]
    ordered = sorted(known, key=lambda entry: entry.name)
    return [Found(entry, details.get(entry.id), entry.manager in answers) for entry in ordered]
