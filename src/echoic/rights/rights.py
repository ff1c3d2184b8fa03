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
from echoic.rights.holding import NOTHING, Holding, Verdict
from echoic.rights.right import Right
from echoic.rights.rule import Rule

__all__ = ["ANONYMOUS", "Rights"]

ANONYMOUS: Final = "anonymous"
"""Who has shown no certificate, and no token: whoever comes over a plain connection."""
RULES_MAX: Final = 10_000
REMEMBERED_MAX: Final = 65_536
HOLDINGS_MAX: Final = 1024
NAME_CHARACTERS_MAX: Final = 256  # of what is asked about; no channel or group has so long a name


class Rights:
    """Rules, and what they decide. Immutable but for what it remembers of its own answers."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self.rules: Final = tuple(rules)
        if len(self.rules) > RULES_MAX:
            raise LocalError(f"there are {len(self.rules)} rules, limit is {RULES_MAX}")
        self._holdings: dict[str, Holding] = {}
        self._verdicts: dict[tuple[str, str], Verdict] = {}

    def decide(self, who: str, right: Right, channel: str, ancestors: Sequence[str] = ()) -> Decision:
        """Return whether somebody may do something with a channel.

        Args:
            who: The name of who asks; "" for whoever has not shown any.
            right: What he wants to do.
            channel: The name of the channel.
            ancestors: Those it is derived from, in any order.
        """
        who = who or ANONYMOUS
        decision = _decision(who, right, channel, self._verdict(who, channel))
        if decision.explicit:
            return decision
        for ancestor in ancestors:
            inherited = _decision(who, right, ancestor, self._verdict(who, ancestor))
            if inherited.allowed:
                reason = f"it is derived from `{ancestor}`, and {inherited.reason}"
                return msgspec.structs.replace(decision, allowed=True, reason=reason, explicit=True)
        return decision

    def knows(self, who: str, channel: str, ancestors: Sequence[str] = ()) -> bool:
        """Whether somebody has any right to a channel, and so may know that it is there."""
        who = who or ANONYMOUS
        own = self._verdict(who, channel)
        return bool(own.allowed) or any(self._verdict(who, one).allowed - own.denied for one in ancestors)

    def _verdict(self, who: str, channel: str) -> Verdict:
        if len(channel) > NAME_CHARACTERS_MAX:
            return NOTHING  # peers make names up: none of this length is remembered, nor looked for
        known = self._verdicts.get((who, channel))
        if known is None:
            if len(self._verdicts) >= REMEMBERED_MAX:
                self._verdicts.clear()  # and may have ever more of them
            known = self._verdicts[who, channel] = self._holding(who).verdict(channel)
        return known

    def _holding(self, who: str) -> Holding:
        known = self._holdings.get(who)
        if known is None:
            if len(self._holdings) >= HOLDINGS_MAX:
                self._holdings.clear()
            known = self._holdings[who] = Holding(rule for rule in self.rules if rule.who.matches(who))
        return known

    def __len__(self) -> int:
        return len(self.rules)


def _decision(who: str, right: Right, channel: str, verdict: Verdict) -> Decision:
    """Return what the rules about a channel say of one right: a denial first, else the first that allows it."""
    name = channel[:NAME_CHARACTERS_MAX]
    about = [rule for rule in verdict.rules if right in rule.rights]
    for rule in about:
        if not rule.allow:
            return Decision(who, right, name, allowed=False, reason=f"denied by {rule}", explicit=True)
    if about:
        return Decision(who, right, name, allowed=True, reason=f"allowed by {about[0]}", explicit=True)
    return Decision(who, right, name, allowed=False, reason="no rule allows it")
