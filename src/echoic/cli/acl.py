"""`echoic acl`: who may do what with which channels, and why."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from echoic.cli.screen import json_text, say
from echoic.cli.tables import print_table
from echoic.cli.where import AsJson, rights_there
from echoic.rights import RIGHTS, Decision, Right, Rights, check_right
from echoic.trust import load_rights, rights_path

__all__ = ["check", "list_rules"]

DENIED = 4
RightsFile = Annotated[Path | None, Parameter(name="--file")]


def check(
    who: str,
    what: str,
    where: str,
    /,
    *,
    derived_from: Annotated[list[str] | None, Parameter(negative="")] = None,
    file: RightsFile = None,
    as_json: AsJson = False,
) -> None:
    """Tell whether somebody may do something with a channel, and which rule says so.

    The exit code is 0 if he may and 4 if he may not. Rules that match add up, a `deny` wins wherever it stands, and
    what no rule allows is not allowed. A derived channel has the rights of what it is derived from, beside its own;
    from what that is, no file of rights tells, so say it.

    Try:
        echoic acl check alice publish trades
        echoic acl check desk-7 '*' trades.daily --file rights
        echoic acl check adder publish tool:calc
        echoic acl check desk-1 subscribe trades.cheap --derived-from trades

    Args:
        who: The name in a certificate or token; `anonymous` for whoever shows none.
        what: publish, subscribe, derive, steer, modulate, admin, or `*` for each of them.
        where: The name of a channel or group, or `tool:NAME` for being that tool of a bus, which needs `publish`. What
            is derived from a channel has its rights too.
        derived_from: What the channel is derived from; once for each, if that is derived from another in turn.
        file: The file of rights; `rights` in $ECHOIC_HOME or ~/.config/echoic if nothing is said.
        as_json: Print the answers as JSON.
    """
    rights = load_rights(rights_there(file or rights_path()))
    wanted = RIGHTS if what == "*" else (check_right(what),)
    decisions = [_explained(rights, who, right, where, derived_from or []) for right in wanted]
    if as_json:
        print(json_text(decisions))
    else:
        for decision in decisions:
            print(decision)
    if not all(decisions):
        sys.exit(DENIED)


def _explained(rights: Rights, who: str, right: Right, where: str, ancestors: list[str]) -> Decision:
    """Return what the rules say, and if that is no, whether it were yes for what its name makes it look like."""
    decision = rights.decide(who, right, where, ancestors)
    if decision:
        return decision
    for parent in _parents_by_name(where):
        if parent not in ancestors and rights.decide(who, right, where, [parent]):
            hint = f"if it is derived from `{parent}`, he may: --derived-from {parent}"
            return msgspec.structs.replace(decision, reason=f"{decision.reason}; {hint}")
    return decision


def _parents_by_name(name: str) -> Iterator[str]:
    """Yield what a channel may be derived from, since derived channels are called after their parents."""
    parent, dot, _ = name.rpartition(".")
    while dot:
        yield parent
        parent, dot, _ = parent.rpartition(".")


def list_rules(*, file: RightsFile = None, as_json: AsJson = False) -> None:
    """List the rules, and see that the file has no mistake.

    Try:
        echoic acl list
        echoic acl list --file rights --json

    Args:
        file: The file of rights; `rights` in $ECHOIC_HOME or ~/.config/echoic if nothing is said.
        as_json: Print the rules as JSON.
    """
    rules = load_rights(rights_there(file or rights_path())).rules
    if as_json:
        print(json_text(rules))
        return
    rows = [
        ("allow" if rule.allow else "deny", rule.who.text, ",".join(rule.rights), rule.channels.text, rule.place)
        for rule in rules
    ]
    print_table(["", "WHO", "RIGHTS", "CHANNELS", "PLACE"], rows)
    if not rows:
        say(f"no rules in {file or rights_path()}: nobody may do anything")
