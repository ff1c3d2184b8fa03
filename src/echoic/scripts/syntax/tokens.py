"""Text to tokens, as far as the next directive of the preprocessor.

One regular expression finds all tokens. What begins none is reported and skipped, so that several mistakes are found at
once; a script with any is not parsed, as what the parser would say of it could only mislead.

Every token knows where its author wrote it, whatever includes and macros did to it since: `Token.file`, `line` and
`column` are the source map. A token that a macro brought stands where the macro was used, and knows its name.

Words of the features of tools (`host`, `command` and others), `note`, `as` and `channel` are words only where the
grammar looks for them; inside terms they are names like others.
"""

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from echoic.scripts.syntax.problems import quoted
from echoic.scripts.syntax.tree import ATOMS

if TYPE_CHECKING:
    from echoic.scripts.syntax.problems import Problems

__all__ = [
    "END",
    "FEATURES",
    "KINDS",
    "NESTING_MAX",
    "TIMINGS",
    "TOKENS_MAX",
    "Directive",
    "Scanner",
    "Token",
    "string_value",
]

INTEGER_DIGITS_MAX: Final = 4000
NESTING_MAX: Final = 200  # of brackets, and of the tree
TOKENS_MAX: Final = 1_000_000
END: Final = "$END"  # as lark calls it

FEATURES: Final = ("host", "command", "details", "kind", "class", "channel", "derive")
TIMINGS: Final = ("delay", "timeout", "abs-delay", "abs-timeout")

KINDS: Final[dict[str, str]] = (
    dict.fromkeys(ATOMS, "ATOM")
    | dict.fromkeys(("delta", "tau"), "PLAIN")
    | dict.fromkeys(TIMINGS, "TIMING")
    | dict.fromkeys(FEATURES, "FEATURE")
    | dict.fromkeys(("true", "false", "undefined"), "CONSTANT")
    | {
        word: word.upper()
        for word in re.findall(r"\w+", "process tool toolbus is let in endlet if then else fi create channel note as")
    }
    | {
        ":=": "ASSIGN",
        "||": "MERGE",
        "+>": "RIGHT",
        "<+": "LEFT",
        ">>": "DISRUPT",
        ".": "DOT",
        "+": "PLUS",
        "*": "STAR",
        "?": "QUESTION",
        ":": "COLON",
        ",": "COMMA",
        "(": "LPAR",
        ")": "RPAR",
        "[": "LBRACKET",
        "]": "RBRACKET",
        "{": "LBRACE",
        "}": "RBRACE",
        "<": "LESS",
        ">": "GREATER",
        "=": "EQUAL",
        ";": "SEMICOLON",
    }
)
"""The terminal of the grammar that a word or sign is; other words are `IDENT` or `NAME`."""

TOKEN: Final = re.compile(
    r"""
    [ \t]* (?:
      (?P<word> [A-Za-z_][A-Za-z0-9_-]* )
    | (?P<sign> := | \|\| | \+> | <\+ | [.+*?:,{}=;] )
    | (?P<newline> \n )
    | (?P<real> -?[0-9]+ (?: \.[0-9]+ (?:[eE][+-]?[0-9]+)? | [eE][+-]?[0-9]+ ) )
    | (?P<integer> -?[0-9]+ )
    | (?P<text> "(?:[^"\\]|\\.)*" )
    | (?P<bracket> >> | [()[\]<>] )
    | (?P<comment> /\*.*?\*/ )
    | (?P<blank> [ \t\r\f\v\ufeff]+ | %%[^\n]* | //[^\n]* )
    )
    """,
    re.VERBOSE | re.DOTALL,
)
PASSED_OVER: Final = re.compile(r'/\*.*?(?:\*/|\Z)|%%[^\n]*|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\n|[^\n"/%]+|.', re.DOTALL)
DIRECTIVE: Final = re.compile(
    r"""
    \#[ \t]* (?P<name>[A-Za-z-]*)
    (?P<rest> (?:
        [^\n\\"/%] | \\\r?\n
      | /\*.*?(?:\*/|(?P<open>\Z)) | //[^\n]* | %%[^\n]*
      | "(?:[^"\\\n]|\\.)*"
      | [\\"/%]
    )* )
    """,
    re.VERBOSE | re.DOTALL,
)
"""A directive with the lines it goes on in. What may be open ends with the text, so that nothing is looked at twice."""
UNKNOWN: Final = re.compile(r"[^\s\x21-\x7e]+|[$@\\`'^&!~]+|.", re.DOTALL)
ESCAPE: Final = re.compile(r"\\(\r?\n|.)", re.DOTALL)
ESCAPES: Final = {
    "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", '"': '"', "\\": "\\", "\n": "", "\r\n": ""
}  # fmt: skip


class Token(NamedTuple):
    """A word or sign of a script, and where it was written. `type` is a terminal of the grammar."""

    type: str
    text: str
    file: str
    line: int
    column: int
    end_line: int
    end_column: int  # behind the last character
    macro: str = ""  # the macro that brought it
    kept: bool = False  # whether it is the name of a macro inside of itself, and stays what it is

    @property
    def shown(self) -> str:
        """How messages call it."""
        return "the end of the script" if self.type == END else quoted(self.text)


class Directive(NamedTuple):
    """A line for the preprocessor: `#name rest`, continued lines among it."""

    name: str
    rest: str
    line: int
    column: int
    rest_column: int


class Scanner:
    """Reads one file."""

    def __init__(self, text: str, file: str, problems: "Problems", *, line: int = 1, column: int = 1) -> None:
        self.file = file
        self._text = text
        self._problems = problems
        self._position = 0
        self._line = line
        self._line_start = 1 - column  # so that columns are right in a text that is part of a line
        self._depth = 0
        self._long_string: tuple[int, int] | None = None  # the lines of the last string over several
        self._angles = 0  # how many `<` are open: inside `<<int>>` there is no operator `>>`

    @property
    def place(self) -> tuple[int, int]:
        """The line and column that were reached."""
        return self._line, self._position - self._line_start + 1

    def read(self, tokens: list[Token]) -> Directive | None:
        """Add the tokens before the next directive, and return it, or None at the end of the file."""
        match, add, file, kinds = TOKEN.match, tokens.append, self.file, KINDS
        fresh = True  # nothing but layout stands before this on its line
        while self._position < len(self._text) and not self._stopped(tokens):
            found = match(self._text, self._position)
            if found is None:
                if self._text[self._position] == "#" and fresh:
                    return self._directive()
                self._refuse()
                continue
            kind = found.lastgroup
            if kind == "word" or kind == "sign":  # noqa: PLR1714 - most tokens go this way, and it is the fastest
                word, begin, end = found[kind], found.start(kind), found.end()
                known = kinds.get(word) or ("IDENT" if word[0].islower() else "NAME")
                line, start = self._line, self._line_start - 1
                add(Token(known, word, file, line, begin - start, line, end - start))
                self._position = end
                fresh = False
            elif kind == "newline":
                self._position = self._line_start = found.end()
                self._line += 1
                fresh = True
            elif kind in ("blank", "comment"):
                self._advance(found.end())
            else:
                self._advance(found.start(str(kind)))
                add(self._token(str(kind), found[str(kind)], tokens))
                fresh = False
        return None

    def _stopped(self, tokens: list[Token]) -> bool:
        return len(tokens) > TOKENS_MAX or self._problems.full

    def _token(self, kind: str, word: str, tokens: list[Token]) -> Token:
        """Return the token that begins here, and go behind it."""
        if kind == "bracket":
            word = self._bracket(word, tokens)
        line, column = self.place
        self._advance(self._position + len(word))
        return Token(self._type(kind, word), word, self.file, line, column, self._line, self.place[1])

    def skip(self) -> Directive | None:
        """Return the next directive, whatever stands before it, or None at the end of the file."""
        text, end, fresh = self._text, len(self._text), True
        while self._position < end:
            rest = text[self._position : self._position + 1]
            found = PASSED_OVER.match(text, self._position)
            if found is None:  # cannot be: the last alternative is any character
                break
            if fresh and (blanks := len(found[0]) - len(found[0].lstrip(" \t\r\f\v"))) < len(found[0]):
                if found[0][blanks] == "#":
                    self._advance(self._position + blanks)
                    return self._directive()
                fresh = False
            self._advance(found.end())
            fresh = fresh or rest == "\n"
        return None

    def _advance(self, position: int) -> None:
        lines = self._text.count("\n", self._position, position)
        if lines:
            self._line += lines
            self._line_start = self._text.rfind("\n", self._position, position) + 1
        self._position = position

    def _directive(self) -> Directive | None:
        found = DIRECTIVE.match(self._text, self._position)
        if found is None:  # cannot be: it needs a `#` only
            return None
        line, column = self.place
        if found["open"] is not None:
            self._problems.report(self.file, line, column, "a comment of this directive has no end: `*/` is missing")
        made = Directive(found["name"], found["rest"], line, column, found.start("rest") - self._line_start + 1)
        self._advance(found.end())
        return made

    def _bracket(self, sign: str, tokens: list[Token]) -> str:
        """Return the sign that begins here, for what its neighbours make of it."""
        if sign == "<" and tokens and tokens[-1].type == "EQUAL" and self._text.startswith("<<", self._position):
            end = self._text.find(">>", self._position + 2)
            if end < 0:
                self._report("this text has no end: `>>` is missing")
                end = len(self._text)
            return self._text[self._position : end + 2]
        if sign == ">>" and self._angles:
            sign = ">"
        self._angles += (sign == "<") - (sign == ">" and self._angles > 0)
        self._depth += (sign in ("(", "[", "<")) - (sign in (")", "]", ">"))
        if self._depth > NESTING_MAX:
            self._report(f"this is nested deeper than {NESTING_MAX}")
            self._text = self._text[: self._position + len(sign)]
        return sign

    def _type(self, kind: str, word: str) -> str:
        """Return the terminal that a word is."""
        if kind == "bracket":
            return KINDS.get(word) or "STRING"
        if kind == "integer":
            if len(word) > INTEGER_DIGITS_MAX:
                self._report(f"this number has {len(word)} digits, limit is {INTEGER_DIGITS_MAX}", back=len(word))
            return "INT"
        if kind == "text" and "\n" in word:
            self._long_string = (self._line - word.count("\n"), self._line)
        if kind == "text" and "\\" in word:
            self._check_escapes(word)
        return "STRING" if kind == "text" else "REAL"

    def _check_escapes(self, word: str) -> None:
        for escape in ESCAPE.finditer(word):
            if escape[1] not in ESCAPES:
                known = r"\n \t \r \b \f \v \" \\"
                self._report(
                    f"there is no escape {quoted(escape[0])}, there are {known}", back=len(word) - escape.start()
                )
                return

    def _report(self, message: str, *, back: int = 0) -> None:
        """Keep a problem with what begins so many characters before the place that was reached."""
        position = self._position - back
        line = self._line - self._text.count("\n", position, self._position)
        start = self._line_start if line == self._line else self._text.rfind("\n", 0, position) + 1
        self._problems.report(self.file, line, position - start + 1, message)

    def _refuse(self) -> None:
        """Report what is no token, and go on behind it."""
        text, position = self._text, self._position
        if text[position] == '"':
            advice = ""
            if self._long_string is not None:
                advice = " (or the one from line {} to line {} should have ended before)".format(*self._long_string)
            self._report(f'this string has no end: the second `"` is missing{advice}')
            self._advance(len(text))
        elif text.startswith("/*", position):
            self._report("this comment has no end: `*/` is missing")
            self._advance(len(text))
        else:
            unknown = UNKNOWN.match(text, position)
            word = unknown[0] if unknown else text[position]
            self._report(f"{quoted(word)} is not part of a T-script{_whence(word)}")
            self._advance(position + len(word))


def _whence(word: str) -> str:
    if word == "#":
        return ": directives begin a line"
    if word.isascii() and word.isprintable():
        return ""
    return f" (character U+{ord(word[0]):04X}; only comments and strings may have others than ASCII)"


def string_value(text: str) -> str:
    """Return the string that a token of type `STRING` is."""
    if text.startswith("<<"):
        return text[2:-2]
    return ESCAPE.sub(lambda escape: ESCAPES.get(escape[1], escape[1]), text[1:-1])
