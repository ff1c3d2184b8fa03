"""`echoic group view`: who is in a group, as its members tell it.

A member tells how it stands on the channel `NAME.group` of its hub, once a second (`echoic.hub.group_status`). Members
are found by the addresses of their hubs, or, if none is given, by the channels of such names at the name server.
"""

import sys
import time
from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from cyclopts import Parameter

from echoic.cli.meeting import visit
from echoic.cli.screen import json_text, printable
from echoic.cli.tables import table_lines
from echoic.cli.where import NOWHERE, AsJson, Flag, Where
from echoic.errors import LocalError
from echoic.formats import Format
from echoic.hub import GroupStatus
from echoic.monitor import GroupMembers, bytes_text, group_channels

__all__ = ["view"]

COLUMNS: Final = (
    "MEMBER",
    "VIEW",
    "MEMBERS",
    "LEADER",
    "TERM",
    "DELIVERED",
    "LOG",
    "BACKLOG",
    "PACKING",
    "DEGREE",
    "EVENTS/S",
    "LATENCY",
    "WAITING",
)
FIELDS: Final = tuple(field.name for field in Format.of(GroupStatus).fields)
SILENT_SECONDS: Final = 5.0
SHOW_SECONDS: Final = 1.0


def view(
    name: str,
    /,
    *,
    at: Annotated[list[str] | None, Parameter(negative=(), show_default=False)] = None,
    watch: Flag = False,
    timeout: float = SILENT_SECONDS,
    as_json: AsJson = False,
    where: Where = NOWHERE,
) -> None:
    """Show who is in a group: view, leader, how far each member is, and how it packs and why.

    A member whose VIEW is not a number is in no primary view. DEGREE is how many events a pack has, EVENTS/S what the
    member submits and gets back, LATENCY the time until it is back, WAITING what is not sent yet.

    Try:
        echoic group view ledger
        echoic group view ledger --at 127.0.0.1:7401 --watch
        echoic group view ledger --at 127.0.0.1:7401 --json | jq .members

    Args:
        name: The name of the group.
        at: The address of a member's hub; repeat it for more. [default: all that the name server knows]
        watch: Show it again each second, until Ctrl-C.
        timeout: For how many seconds to wait for members that say nothing.
        as_json: Print a line of JSON for each member.
        where: Where the name server is.
    """
    if not 0 < timeout < float("inf"):
        raise LocalError(f"expected --timeout to be a number of seconds above 0, got {timeout}")
    with visit(where, "group") as hub:
        members = GroupMembers(hub, group_channels(hub, name, at or ()))
        members.wait(timeout)
        try:
            _show(name, members, watch=watch, as_json=as_json)
        except KeyboardInterrupt:
            if not watch:
                raise


def _show(name: str, members: GroupMembers, *, watch: bool, as_json: bool) -> None:
    drawing = watch and not as_json and sys.stdout.isatty()
    while True:
        told = members.told()
        if as_json:
            text = "\n".join(json_text(_as_object(status)) for _, status in told)
        else:
            text = "\n".join(_lines(told))
        head = f"\033[H\033[Jgroup '{printable(name)}'   {time.strftime('%H:%M:%S')}   Ctrl-C ends\n\n"
        print(f"{head if drawing else ''}{text}", flush=True)
        if not watch:
            return
        time.sleep(SHOW_SECONDS)
        if not drawing and not as_json:
            print()


def _as_object(status: GroupStatus) -> dict[str, object]:
    return {name: msgspec.to_builtins(getattr(status, name)) for name in FIELDS}


def _lines(told: Sequence[tuple[float, GroupStatus]]) -> list[str]:
    """Return the table, and below it what does not fit into one."""
    lines = table_lines(COLUMNS, [_row(status) for _, status in told])
    for ago, status in told:
        who = printable(status.member)
        if ago > SILENT_SECONDS:
            lines.append(f"{who} says nothing for {ago:.0f} s")
        if not status.primary:
            lines.append(f"{who} is in no primary view: {printable(status.reason)}")
        if status.packing_reason:
            changed = f"{who} has changed its packing {status.changes} times, last because "
            lines.append(changed + printable(status.packing_reason))
        if status.handler_failures:
            lines.append(f"{who}: handlers have failed {status.handler_failures} times")
    return lines


def _row(status: GroupStatus) -> list[object]:
    return [
        status.member,
        str(status.position) if status.primary else "none",
        ", ".join(status.members),
        status.leader,
        status.term,
        status.delivered,
        f"{status.commit}/{status.last}",
        bytes_text(status.backlog_bytes),
        status.packing,
        round(status.degree, 1),
        round(status.throughput, 1),
        f"{status.latency_ns / 1e6:.2f} ms",
        f"{status.waiting} + {status.under_way} packs",
    ]
