"""Pure. Does a program mean anything, given the types it works on? From the tree that was read to the typed tree."""

from echoic.ecode.checking.checker import LOOPS_MAX, check_tree
from echoic.ecode.checking.signatures import check_context, check_signature

__all__ = ["LOOPS_MAX", "check_context", "check_signature", "check_tree"]
