"""Macros: names that stand for tokens.

    #define LIMIT 10                      LIMIT          10
    #define SEND(x) snd-msg(x) . tau      SEND(f(1))     snd-msg(f(1)) . tau

Macros work on tokens, never inside strings. A macro is not expanded inside of itself, so that every expansion ends,
and all expansions of a script together give a limited number of tokens, so that it ends soon. What a macro brings
stands where the macro is used; what stands in its arguments keeps its own place.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from echoic.scripts.syntax.problems import counted, quoted
from echoic.scripts.syntax.tokens import Token

if TYPE_CHECKING:
    from echoic.scripts.syntax.problems import Problems

__all__ = ["EXPANDED_TOKENS_MAX", "Macro", "Macros"]

EXPANDED_TOKENS_MAX: Final = 200_000
NESTING_MAX: Final = 50
LEAVE: Final = "leave"  # the type of the mark behind what a macro brought


@dataclass(frozen=True, slots=True)
class Macro:
    """What a name stands for; `parameters` is None where it is used without parentheses."""

    name: str
    parameters: tuple[str, ...] | None
    body: tuple[Token, ...]


class Macros:
    """The macros that are defined at a place of a script."""

    def __init__(self, problems: "Problems") -> None:
        self._problems = problems
        self._defined: dict[str, Macro] = {}
        self._produced = 0

    def __contains__(self, name: str) -> bool:
        return name in self._defined

    @property
    def used(self) -> bool:
        """Whether any macro was expanded."""
        return self._produced > 0

    def define(self, macro: Macro) -> None:
        """Let a name stand for tokens, whatever it stood for."""
        self._defined[macro.name] = macro

    def undefine(self, name: str) -> None:
        """Let a name stand for itself."""
        self._defined.pop(name, None)

    def expand(self, tokens: list[Token]) -> list[Token]:
        """Return tokens with what macros stand for."""
        if not self._defined or self._defined.keys().isdisjoint([token.text for token in tokens]):
            return tokens
        return self._expand(tokens, frozenset(), 0)

    def _expand(self, tokens: Sequence[Token], hidden: frozenset[str], depth: int) -> list[Token]:
        done: list[Token] = []
        pending = list(reversed(tokens))
        active: set[str] = set(hidden)
        while pending and not self._problems.full:
            token = pending.pop()
            if token.type == LEAVE:
                active.discard(token.text)
                continue
            macro = self._defined.get(token.text)
            if macro is None or token.kept or token.type == "STRING":
                done.append(token)
                continue
            if token.text in active:
                done.append(token._replace(kept=True))
                continue
            if macro.parameters is None:
                brought = self._placed(macro.body, token, {})
            else:
                if not _next_is(pending, "LPAR"):
                    done.append(token)  # like cpp: without parentheses the name is a name
                    continue
                actuals = self._actuals(token, macro, pending, active)
                if actuals is None:
                    continue
                hiding = frozenset(active)
                if depth >= NESTING_MAX:
                    self._report(token, f"macros are nested deeper than {NESTING_MAX}")
                    return done
                given = {name: self._expand(each, hiding, depth + 1) for name, each in actuals.items()}
                brought = self._placed(macro.body, token, given)
            self._produced += len(brought) + 1
            if self._produced > EXPANDED_TOKENS_MAX:
                self._report(token, f"the macros of this script bring more than {EXPANDED_TOKENS_MAX} words")
                return done
            active.add(macro.name)
            pending.append(token._replace(type=LEAVE, text=macro.name))
            pending += reversed(brought)
        return done

    def _placed(self, body: Sequence[Token], use: Token, given: dict[str, list[Token]]) -> list[Token]:
        """Return the body of a macro as it stands where the macro is used."""
        placed: list[Token] = []
        for token in body:
            if token.text in given and token.type != "STRING":
                placed += given[token.text]
            else:
                placed.append(Token(token.type, token.text, *use[2:7], use.macro or use.text))
            if len(placed) > EXPANDED_TOKENS_MAX:
                break
        return placed

    def _actuals(
        self, use: Token, macro: Macro, pending: list[Token], active: set[str]
    ) -> dict[str, list[Token]] | None:
        """Take what stands in parentheses behind the name of a macro."""
        groups: list[list[Token]] = [[]]
        depth = 0
        while pending:
            token = pending.pop()
            if token.type == LEAVE:
                active.discard(token.text)
                continue
            closing = token.text in (")", "]", "}")
            depth += (token.text in ("(", "[", "{")) - closing
            if depth == 0 and closing:
                break
            if depth == 1 and token.type == "COMMA":
                groups.append([])
            elif depth > 1 or token.type != "LPAR":  # all but the first parenthesis
                groups[-1].append(token)
        else:
            self._report(use, f"the arguments of the macro {quoted(macro.name)} have no end: `)` is missing")
            return None
        parameters = macro.parameters or ()
        if not parameters and groups == [[]]:
            return {}
        if len(groups) != len(parameters):
            wanted = counted(len(parameters), "argument")
            self._report(use, f"the macro {quoted(macro.name)} has {wanted}, got {len(groups)}")
            return None
        return dict(zip(parameters, groups, strict=True))

    def _report(self, token: Token, message: str) -> None:
        self._problems.report(token.file, token.line, token.column, message)


def _next_is(pending: list[Token], kind: str) -> bool:
    """Whether the next token, behind the ends of macros, is of a kind."""
    return next((token.type == kind for token in reversed(pending) if token.type != LEAVE), False)
