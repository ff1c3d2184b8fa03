"""The text of a script to its tree."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from echoic.scripts.syntax.nesting import check_nesting
from echoic.scripts.syntax.parser import parse
from echoic.scripts.syntax.preprocessor import Include, preprocess
from echoic.scripts.syntax.problems import Problems
from echoic.scripts.syntax.tree import ChannelNote, Configuration, ProcessDefinition, Script, ToolDefinition

__all__ = ["load"]

NO_DEFINES: Final[Mapping[str, str]] = MappingProxyType({})


def load(
    text: str, name: str = "<script>", *, include: Include | None = None, defines: Mapping[str, str] = NO_DEFINES
) -> Script:
    """Return the tree of a script.

    Args:
        text: The script.
        name: What to call it in messages; a file that includes it again gets nothing.
        include: `include(wanted, from_file)` returns the real name and the text of a file that is included, or raises
            OSError, LookupError or ValueError; without it no file can be.
        defines: Macros from outside, as `-D NAME=text` gives them.

    Raises:
        ScriptError: The text is no script, or too large; the error has every problem that was found.
    """
    sources: dict[str, str] = {}
    tokens = preprocess(text, name, include=include, defines=defines, sources=sources)
    problems = Problems(sources)
    definitions = parse(tokens, problems)
    problems.conclude()
    script = Script(
        tuple(each for each in definitions if isinstance(each, ProcessDefinition)),
        tuple(each for each in definitions if isinstance(each, ToolDefinition)),
        tuple(each for each in definitions if isinstance(each, Configuration)),
        sources,
        tuple(each for each in definitions if isinstance(each, ChannelNote)),
    )
    check_nesting(script)
    return script
