"""Pure. What does the text of a T-script say? Preprocessor, grammar, the tree, and the way back to text."""

from echoic.scripts.syntax.loading import load
from echoic.scripts.syntax.nesting import check_nesting, children, walk
from echoic.scripts.syntax.preprocessor import Include
from echoic.scripts.syntax.problems import Problem, render
from echoic.scripts.syntax.writing import write_expression, write_process, write_script, write_type

__all__ = [
    "Include",
    "Problem",
    "check_nesting",
    "children",
    "load",
    "render",
    "walk",
    "write_expression",
    "write_process",
    "write_script",
    "write_type",
]
