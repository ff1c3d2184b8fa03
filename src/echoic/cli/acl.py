"""`echoic acl`: who may do what with which channels, and why."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from echoic.cli.screen import json_text, say
from echoic.cli.tables import print_table
from echoic.cli.where import AsJson
from echoic.rights import RIGHTS, check_right
from echoic.trust import load_rights, rights_path

__all__ = ["check", "list_rules"]

DENIED = 4
RightsFile = Annotated[Path | None, Parameter(name="--file")]


def check(who: str, what: str, where: str, /, *, file: RightsFile = None, as_json: AsJson = False) -> None:
    """Tell whether somebody may do something with a channel, and which rule says so.

    The exit code is 0 if he may and 4 if he may not. Rules that match add up, a `deny` wins wherever it stands, and
    what no rule allows is not allowed.

    Try:
        echoic acl check alice publish trades
        echoic acl check desk-7 '*' trades.daily --file rights
        echoic acl check adder publish tool:calc

    Args:
        who: The name in a certificate or token; `anonymous` for whoever shows none.
        what: publish, subscribe, derive, steer, modulate, admin, or `*` for each of them.
        where: The name of a channel or group, or `tool:NAME` for being that tool of a bus, which needs `publish`. What
            is derived from a channel has its rights too.
        file: The file of rights; `rights` in $ECHOIC_HOME or ~/.config/echoic if nothing is said.
        as_json: Print the answers as JSON.
    """
    rights = load_rights(file)
    wanted = RIGHTS if what == "*" else (check_right(what),)
    decisions = [rights.decide(who, right, where) for right in wanted]
    if as_json:
        print(json_text(decisions))
    else:
        for decision in decisions:
            print(decision)
    if not all(decisions):
        sys.exit(DENIED)


def list_rules(*, file: RightsFile = None, as_json: AsJson = False) -> None:
    """List the rules, and see that the file has no mistake.

    Try:
        echoic acl list
        echoic acl list --file rights --json

    Args:
        file: The file of rights; `rights` in $ECHOIC_HOME or ~/.config/echoic if nothing is said.
        as_json: Print the rules as JSON.
    """
    rules = load_rights(file).rules
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
