"""Source text to a checked program, in either spelling."""

from typing import TYPE_CHECKING

from echoic.ecode.checking import check_signature, check_tree
from echoic.ecode.python_spelling import parse_python
from echoic.ecode.syntax import SourceText, parse

if TYPE_CHECKING:
    from echoic.ecode.program import Program, Signature, Spelling

__all__ = ["check"]


def check(source: str, signature: "Signature", *, file: str = "<ecode>", spelling: "Spelling" = "ecode") -> "Program":
    """Return the program that a text means for the given types.

    Args:
        source: The code.
        signature: The types it works on.
        file: What to call the text in messages.
        spelling: "ecode" for C's spelling, "python" for a Python function.

    Raises:
        ECodeError: The code is wrong; the error has every problem that was found.
        FormatError: No program can work on these types.
    """
    check_signature(signature)
    text = SourceText(source, file)
    tree = parse_python(text) if spelling == "python" else parse(text)
    return check_tree(tree, signature, text, spelling)
