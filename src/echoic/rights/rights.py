"""The rules of an operator, and what they come to.

Every rule that matches is looked at, and their order does not matter: if one of them denies, the answer is no; if none
denies and one allows, it is yes; if none matches, it is no. So a file can be read in any order, two files can be put
together, and nobody gets more by a rule that somebody has added above (the rules of NATS, and unlike a firewall's).

A derived channel has the rights of what it is derived from, beside its own: who may subscribe to `trades` may subscribe
to whatever is made of `trades`, since he could make it himself; who may subscribe to `trades.daily` alone gets that and
nothing else. A rule that denies the derived channel itself wins over what would be inherited.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from echoic.errors import LocalError
from echoic.rights.decision import Decision
from echoic.rights.pattern import Pattern
from echoic.rights.right import RIGHTS, Right

__all__ = ["ANONYMOUS", "Rights", "Rule"]

ANONYMOUS: Final = "anonymous"
"""Who has shown no certificate, and no token: whoever comes over a plain connection."""
RULES_MAX: Final = 10_000
REMEMBERED_MAX: Final = 4096


class Rule(msgspec.Struct, frozen=True):
    """A line of an operator's file."""

    allow: bool
    who: Pattern
    rights: tuple[Right, ...]
    channels: Pattern
    place: str = ""
    """Where it stands, for people."""

    def __str__(self) -> str:
        word = "allow" if self.allow else "deny"
        rights = "*" if len(self.rights) == len(RIGHTS) else ",".join(self.rights)
        place = f" - at {self.place}" if self.place else ""
        return f"`{word} {self.who.text} {rights} {self.channels.text}`{place}"


class Rights:
    """Rules, and what they decide. Immutable but for what it remembers of its own answers."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self.rules: Final = tuple(rules)
        if len(self.rules) > RULES_MAX:
            raise LocalError(f"there are {len(self.rules)} rules, limit is {RULES_MAX}")
        self._decisions: dict[tuple[str, Right, str], Decision] = {}

    def decide(self, who: str, right: Right, channel: str, ancestors: Sequence[str] = ()) -> Decision:
        """Return whether somebody may do something with a channel.

        Args:
            who: The name of who asks; "" for whoever has not shown any.
            right: What he wants to do.
            channel: The name of the channel.
            ancestors: Those it is derived from, in any order.
        """
        decision = self._of_name(who or ANONYMOUS, right, channel)
        if decision.explicit:
            return decision
        for ancestor in ancestors:
            inherited = self._of_name(who or ANONYMOUS, right, ancestor)
            if inherited.allowed:
                reason = f"it is derived from `{ancestor}`, and {inherited.reason}"
                return msgspec.structs.replace(decision, allowed=True, reason=reason, explicit=True)
        return decision

    def knows(self, who: str, channel: str, ancestors: Sequence[str] = ()) -> bool:
        """Whether somebody has any right to a channel, and so may know that it is there."""
        return any(self.decide(who, right, channel, ancestors).allowed for right in RIGHTS)

    def _of_name(self, who: str, right: Right, channel: str) -> Decision:
        key = (who, right, channel)
        known = self._decisions.get(key)
        if known is None:
            if len(self._decisions) >= REMEMBERED_MAX:
                self._decisions.clear()  # names come from peers, who may have ever more of them
            known = self._decisions[key] = self._look_up(who, right, channel)
        return known

    def _look_up(self, who: str, right: Right, channel: str) -> Decision:
        granting: Rule | None = None
        for rule in self.rules:
            if right in rule.rights and rule.who.matches(who) and rule.channels.matches(channel):
                if not rule.allow:
                    return Decision(who, right, channel, allowed=False, reason=f"denied by {rule}", explicit=True)
                granting = granting or rule
        if granting is None:
            return Decision(who, right, channel, allowed=False, reason="no rule allows it")
        return Decision(who, right, channel, allowed=True, reason=f"allowed by {granting}", explicit=True)

    def __len__(self) -> int:
        return len(self.rules)
