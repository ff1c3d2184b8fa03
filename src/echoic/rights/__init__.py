"""Pure. Who may do what with which channel? Rights, patterns of names, the text in which they are granted."""

from echoic.rights.decision import Decision
from echoic.rights.pattern import Pattern
from echoic.rights.right import RIGHTS, Right, check_right
from echoic.rights.rights import ANONYMOUS, Rights
from echoic.rights.rule import Rule
from echoic.rights.text import parse_rights

__all__ = [
    "ANONYMOUS",
    "RIGHTS",
    "Decision",
    "Pattern",
    "Right",
    "Rights",
    "Rule",
    "check_right",
    "parse_rights",
]
