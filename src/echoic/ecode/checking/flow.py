"""Whether control can reach the end of a piece of code.

The rule is Java's: it follows the structure and looks at no value, but for loops whose condition is a constant. So
`while (1)` without a `break` is never left, and nobody has to guess what a compiler might prove.
"""

from typing import TYPE_CHECKING

from echoic.ecode.typed import Block, Break, Constant, Continue, If, Loop, Return

if TYPE_CHECKING:
    from echoic.ecode.typed import Statement

__all__ = ["completes"]


def completes(statement: "Statement") -> bool:
    """Tell whether what stands after the statement can be reached."""
    return _ways(statement)[0]


def _ways(statement: "Statement") -> tuple[bool, bool, bool]:
    """Return whether the statement can end normally, by `break` of the loop around it, and by its `continue`."""
    match statement:
        case Return():
            return False, False, False
        case Break():
            return False, True, False
        case Continue():
            return False, False, True
        case Block():
            return _of_block(statement)
        case If():
            yes = _ways(statement.yes)
            no = _ways(statement.no) if statement.no is not None else (True, False, False)
            return yes[0] or no[0], yes[1] or no[1], yes[2] or no[2]
        case Loop():
            return _of_loop(statement), False, False
        case _:
            return True, False, False


def _of_block(block: Block) -> tuple[bool, bool, bool]:
    breaks = continues = False
    for statement in block.statements:
        goes_on, can_break, can_continue = _ways(statement)
        breaks, continues = breaks or can_break, continues or can_continue
        if not goes_on:
            return False, breaks, continues
    return True, breaks, continues


def _of_loop(loop: Loop) -> bool:
    goes_on, breaks, continues = _ways(loop.body)
    endless = loop.test is None or (isinstance(loop.test, Constant) and bool(loop.test.value))
    tested = loop.test_first or goes_on or continues
    return breaks or (tested and not endless)
