"""The text in which an operator grants rights: a rule on each line.

    # who may do what with which channels
    allow exchange   publish,admin      trades
    allow desk-*     subscribe,derive   trades*
    deny  desk-7     *                  *
    allow *          subscribe          weather
    allow adder      publish            tool:calc

WHO is a name as certificates and tokens have it, `anonymous` for whoever shows none; rights are joined by commas, and
`*` is all of them. CHANNEL is the name of a channel or group, or `tool:NAME`, where `publish` is to be that tool of a
bus. Rules that match add up, and a `deny` wins wherever it stands.
"""

from typing import Final

from echoic.errors import LocalError
from echoic.rights.pattern import Pattern
from echoic.rights.right import RIGHTS, Right, check_right
from echoic.rights.rights import Rights
from echoic.rights.rule import Rule

__all__ = ["parse_rights"]

VERDICTS: Final = {"allow": True, "deny": False}
LINE_CHARACTERS_MAX: Final = 1000


def parse_rights(text: str, name: str = "rights") -> Rights:
    """Return the rules of a text.

    Args:
        text: The lines.
        name: What to call it in messages.

    Raises:
        LocalError: A line is not a rule, naming it.
    """
    rows = [(f"{name}:{number}", line.partition("#")[0].split()) for number, line in enumerate(text.splitlines(), 1)]
    return Rights(_rule(words, place) for place, words in rows if words)


def _rule(words: list[str], place: str) -> Rule:
    line = " ".join(words)
    if len(words) != 4 or words[0] not in VERDICTS or len(line) > LINE_CHARACTERS_MAX:
        raise LocalError(f"expected `allow|deny WHO RIGHT,... CHANNEL`, got {line[:120]!r} - at {place}")
    verdict, who, rights, channels = words
    try:
        rule = Rule(VERDICTS[verdict], Pattern(who), _rights(rights), Pattern(channels), place)
        rule.who.check()
        rule.channels.check()
    except LocalError as error:
        raise LocalError(f"{error} - at {place}") from error
    return rule


def _rights(text: str) -> tuple[Right, ...]:
    return RIGHTS if text == "*" else tuple(dict.fromkeys(check_right(word) for word in text.split(",")))
