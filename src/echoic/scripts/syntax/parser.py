"""Tokens to a tree, and what to say about tokens that make none.

lark's tables are made on the first parse, as neither they nor lark are needed to import this. After a mistake the
parser goes on with the next definition, so that one reading finds a mistake in each.
"""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Final, Never, TypeAlias, cast

from echoic.scripts.syntax.building import Builder, Definition
from echoic.scripts.syntax.grammar import GRAMMAR
from echoic.scripts.syntax.problems import Problems, did_you_mean, quoted
from echoic.scripts.syntax.tokens import END, FEATURES, KINDS, TIMINGS, Token
from echoic.scripts.syntax.tree import ATOMS

if TYPE_CHECKING:
    from lark import Lark, Transformer

__all__ = ["parse"]

Feed: TypeAlias = Callable[[Token, bool], object]  # lark reads the `type` of tokens only
BEGINNINGS: Final = frozenset({"PROCESS", "TOOL", "TOOLBUS"})
BRACKETS: Final = {
    "RPAR": "LPAR",
    "RBRACKET": "LBRACKET",
    "RBRACE": "LBRACE",
    "GREATER": "LESS",
    "FI": "IF",
    "ENDLET": "LET",
}

GROUPS: Final[tuple[tuple[str, frozenset[str]], ...]] = (
    ("a process", frozenset({"ATOM", "PLAIN", "CREATE", "IF", "LET"})),
    ("a term", frozenset({"INT", "REAL", "STRING", "CONSTANT", "NAME", "LBRACKET", "LESS", "IDENT"})),
    ("a type", frozenset({"INT", "REAL", "STRING", "CONSTANT", "LBRACKET", "LESS", "IDENT"})),
    ("an operator", frozenset({"DOT", "PLUS", "STAR", "RIGHT", "LEFT", "MERGE", "DISRUPT"})),
    ("a definition (`process`, `tool`, `toolbus`)", frozenset({"PROCESS", "TOOL", "TOOLBUS"})),
)
"""What terminals mean together; where all of a group are possible, its name is said instead."""

ALONE: Final = {
    "ATOM": "an atom",
    "NAME": "a name that begins with a capital",
    "IDENT": "a name that begins with a small letter",
    "INT": "a number",
    "STRING": "a string",
    "TIMING": "a delay or timeout",
    "FEATURE": "a feature (`host`, `command`, `details`, `kind`, `class`, `channel`, `derive`)",
    END: "the end of the script",
}
UNSAID: Final = {"a process": {"NAME", "LPAR"}, "a term": {"FEATURE", "CHANNEL", "NOTE", "AS"}}
UNSAID["a type"] = UNSAID["a term"]
UNSAID["a definition (`process`, `tool`, `toolbus`)"] = {"NOTE", END}
SIGNS: Final = {kind: word for word, kind in KINDS.items() if word not in ATOMS}


@cache
def _lark() -> "Lark":
    """Return the parser, made once."""
    from lark import Lark
    from lark.lexer import Lexer

    class NoLexer(Lexer):
        """The tokens are there already."""

        def __init__(self, configuration: object) -> None:
            pass

        def lex(self, lexer_state: object, parser_state: object) -> Never:
            raise NotImplementedError

    builder = cast("Transformer[Token, object]", Builder())  # it is one by its methods
    return Lark(GRAMMAR, parser="lalr", lexer=NoLexer, transformer=builder, maybe_placeholders=False)


def parse(tokens: list[Token], problems: Problems) -> list[Definition]:
    """Return the definitions that tokens make, and report where they make none."""
    from lark.exceptions import UnexpectedToken

    made: list[Definition] = []
    start = 0
    end = tokens[-1]
    while start < len(tokens) and not problems.full:
        feed = cast("Feed", _lark().parse_interactive().parser_state.feed_token)
        position = start
        try:
            while (token := tokens[position]).type != END:
                feed(token, False)
                position += 1
            made += cast("list[Definition]", feed(end, True))
        except UnexpectedToken:
            problems.report(*_explain(tokens, start, position))
            start = _next_beginning(tokens, position, start)
            continue
        break
    return made


def _next_beginning(tokens: list[Token], position: int, start: int) -> int:
    """Return where the next definition begins behind a mistake, or the end of the tokens."""
    position = max(position, start + 1)
    while position < len(tokens) and tokens[position].type not in BEGINNINGS:
        position += 1
    return position


def _explain(tokens: list[Token], start: int, position: int) -> tuple[str, int, int, str]:
    """Return where the mistake is that the token at a position shows, and what it is."""
    parsing = _lark().parse_interactive()
    for token in tokens[start:position]:
        cast("Feed", parsing.parser_state.feed_token)(token, False)
    accepted: set[str] = parsing.accepts()  # type: ignore[no-untyped-call] # lark has no type for it
    token = tokens[position]
    before = tokens[position - 1] if position > start else token
    message = _message(token, before, accepted) + _open_bracket(tokens[start:position], token, accepted)
    if token.macro:
        message += f" (in the macro {quoted(token.macro)})"
    elif before.type == "STRING" and before.end_line > before.line:
        message += f" (a string goes from line {before.line} to line {before.end_line})"
    if (token.type == END or token.type in BEGINNINGS) and position > start and before.file == token.file:
        return before.file, before.end_line, before.end_column, message
    return token.file, token.line, token.column, message


def _message(token: Token, before: Token, accepted: set[str]) -> str:
    """Return what is wrong with a token where others are accepted."""
    if token.type == "IDENT" and "ATOM" in accepted:
        return f"there is no atom {token.shown}{did_you_mean(token.text, [*ATOMS, 'create', 'if', 'let'])}"
    if token.type == "IDENT" and "FEATURE" in accepted:
        return f"there is no feature {token.shown}{did_you_mean(token.text, FEATURES)}"
    if token.type in ("ATOM", "PLAIN", "TIMING", "CREATE") and "IDENT" in accepted:
        return f"{token.shown} is an atom and cannot be the name of a term"
    if before.type == "ATOM" and accepted == {"LPAR"}:
        return f"the atom {before.shown} has its arguments in parentheses, got {token.shown}"
    advice = ""
    if token.type in ("IDENT", "NAME"):
        words = {word for word, kind in KINDS.items() if kind in accepted and word[0].isalpha()}
        words |= set(TIMINGS) if "TIMING" in accepted else set()
        advice = did_you_mean(token.text.lower(), sorted(words))
    return f"expected {_wanted(accepted)}, got {token.shown}{advice}"


def _wanted(accepted: set[str]) -> str:
    """Return in words what may stand at a place."""
    left = set(accepted)
    phrases: list[str] = []
    for name, group in GROUPS:
        if group <= left:
            left -= group | UNSAID.get(name, set())
            phrases.append(name)
    phrases += [ALONE.get(kind) or f"`{SIGNS.get(kind, kind.lower())}`" for kind in sorted(left)]
    phrases.sort(key=lambda phrase: phrase == "an operator")
    if len(phrases) == 1:
        return phrases[0]
    return f"{', '.join(phrases[:-1])} or {phrases[-1]}"


def _open_bracket(tokens: list[Token], token: Token, accepted: set[str]) -> str:
    """Return which bracket is open where the script, or a definition, ends too early."""
    if token.type != END and token.type not in BEGINNINGS:
        return ""
    waiting: list[Token] = []
    for each in tokens:
        if each.type in BRACKETS.values():
            waiting.append(each)
        elif each.type in BRACKETS and waiting and waiting[-1].type == BRACKETS[each.type]:
            waiting.pop()
    if not waiting or not accepted.intersection(BRACKETS):
        return ""
    return f" (the {waiting[-1].shown} of line {waiting[-1].line} is open)"
