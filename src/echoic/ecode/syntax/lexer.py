"""Text to tokens.

One regular expression finds all of them. Characters that begin none are reported and skipped, so that several mistakes
are found at once; a text with any is not parsed, as what the parser would say of it could only mislead.
"""

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from echoic.ecode.syntax.text import Problems, quoted

if TYPE_CHECKING:
    from echoic.ecode.typed import Position

__all__ = ["SOURCE_BYTES_MAX", "TOKENS_MAX", "Token", "check_size", "tokenize"]

SOURCE_BYTES_MAX: Final = 65536
TOKENS_MAX: Final = 10_000

WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        """
        auto bool break case char const continue default do double else enum extern float for goto if inline int int8_t
        int16_t int32_t int64_t long register return short signed sizeof static string struct switch typedef uint8_t
        uint16_t uint32_t uint64_t union unsigned void volatile while
        """,
    )
)
"""The words that are not names: E-Code's own, and those of C that it refuses."""

TOKEN: Final = re.compile(
    r"""
      (?P<blank> [ \t\r\f\v]+ | //[^\n]* )
    | (?P<newline> \n )
    | (?P<comment> /\*.*?\*/ )
    | (?P<name> [A-Za-z_]\w* )
    | (?P<number> 0[xX]\w* | \.?\d(?:[eE][+-]|[\w.])* )
    | (?P<text> "(?:[^"\\\n]|\\[^\n])*" )
    | (?P<character> '(?:[^'\\\n]|\\[^\n])*' )
    | (?P<operator> <<= | >>= | -> | \+\+ | -- | && | \|\| | << | >> | [<>=!+\-*/%&|^]=
                    | /(?!\*) | [-+*%&|^~!<>=?:;,.(){}[\]] )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
UNKNOWN: Final = re.compile(r"[^\s\x21-\x7e]+|[$@\\`]+|.", re.DOTALL | re.ASCII)


class Token(NamedTuple):
    """A word of the program. `kind` is "name", "number", "text", "character", "end", or else the word itself."""

    kind: str
    text: str
    at: "Position"

    @property
    def after(self) -> "Position":
        """The column behind it."""
        return self.at[0], self.at[1] + len(self.text)

    @property
    def shown(self) -> str:
        """How messages call it."""
        return "the end of the code" if self.kind == "end" else quoted(self.text)


def tokenize(problems: Problems) -> list[Token]:
    """Return the tokens of a text, the last of which is its end.

    Raises:
        ECodeError: Something in it is no token, or it is too long.
    """
    source = problems.text.source
    check_size(problems)
    tokens: list[Token] = []
    line, line_start, position = 1, 0, 0
    match = TOKEN.match
    while position < len(source):
        found = match(source, position)
        if found is None:
            position = _refuse(problems, position, (line, position - line_start + 1))
            if problems.full:
                break
            continue
        kind, text = found.lastgroup, found[0]
        if kind == "newline":
            line, line_start = line + 1, found.end()
        elif kind == "comment":
            line += text.count("\n")
            line_start = position + text.rfind("\n") + 1 if "\n" in text else line_start
        elif kind != "blank":
            own = kind == "operator" or (kind == "name" and text in WORDS)
            tokens.append(Token(text if own else str(kind), text, (line, position - line_start + 1)))
            if len(tokens) > TOKENS_MAX:
                problems.report(tokens[-1].at, f"the code has more than {TOKENS_MAX} words")
                break
        position = found.end()
    problems.conclude()
    tokens.append(Token("end", "", (line, len(source) - line_start + 1)))
    return tokens


def check_size(problems: Problems) -> None:
    """Refuse a text that is too long, or none.

    Raises:
        ECodeError: It has more than `SOURCE_BYTES_MAX` bytes, or cannot be written in UTF-8.
    """
    source = problems.text.source
    try:
        size = len(source.encode())
    except UnicodeEncodeError as error:
        at = source.count("\n", 0, error.start) + 1, error.start - source.rfind("\n", 0, error.start)
        problems.report(at, "this is half of a character (a lone surrogate), the code cannot be written in UTF-8")
    else:
        if size > SOURCE_BYTES_MAX:
            problems.report((1, 1), f"the code has {size} bytes, limit is {SOURCE_BYTES_MAX}")
    problems.conclude()


def _refuse(problems: Problems, position: int, at: "Position") -> int:
    """Report what is no token, and return where to go on."""
    source = problems.text.source
    line_end = source.find("\n", position)
    line_end = len(source) if line_end < 0 else line_end
    match source[position]:
        case "/":
            problems.report(at, "this comment has no end: `*/` is missing")
            return len(source)
        case '"':
            problems.report(at, 'this text has no end: the second `"` is missing on the line')
            return line_end
        case "'":
            problems.report(at, "this character has no end: the second `'` is missing on the line")
            return line_end
        case "#":
            problems.report(at, "directives of the preprocessor are not part of E-Code")
            return line_end
        case _:
            pass
    unknown = UNKNOWN.match(source, position)
    text = unknown[0] if unknown else source[position]
    problems.report(at, f"{quoted(text)} is not part of E-Code{_whence(text)}")
    return position + len(text)


def _whence(text: str) -> str:
    if text.isascii() and text.isprintable():
        return ""
    return f" (character U+{ord(text[0]):04X}; only comments and texts may have others than ASCII)"
