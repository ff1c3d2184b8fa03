"""Pure. Who may do what with which channel? Rights, patterns of names, the text in which they are granted."""

from echoic.rights.decision import Decision
from echoic.rights.names import ANONYMOUS, check_name
from echoic.rights.pattern import Pattern
from echoic.rights.right import RIGHTS, Right, check_right
from echoic.rights.rights import Rights, Rule
from echoic.rights.text import parse_rights

__all__ = [
    "ANONYMOUS",
    "RIGHTS",
    "Decision",
    "Pattern",
    "Right",
    "Rights",
    "Rule",
    "check_name",
    "check_right",
    "parse_rights",
]
