r"""The files of a script to one row of tokens: `#include`, `#define`, and what depends on them.

    #include "parts.tb"          every file once, by the name under which it was found
    #include <parts.tb>
    #define LIMIT 10
    #define SEND(x) snd-msg(x) \
                    . tau
    #undef LIMIT
    #ifdef LIMIT   #ifndef LIMIT   #else   #endif

This is the union of what the two originals understand: one ran the preprocessor of C, the other had its own. Tokens
keep the place where they were written, which is all that messages, traces and breakpoints need. The text of an
included file comes from the caller, so that nothing here opens files.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from echoic.scripts.syntax.macros import Macro, Macros
from echoic.scripts.syntax.problems import Problems, did_you_mean, quoted
from echoic.scripts.syntax.tokens import END, NESTING_MAX, TOKENS_MAX, Directive, Scanner, Token

__all__ = ["INCLUDE_DEPTH_MAX", "SOURCE_BYTES_MAX", "Include", "preprocess"]

SOURCE_BYTES_MAX: Final = 8 << 20  # of all files together
INCLUDE_DEPTH_MAX: Final = 50
FILES_MAX: Final = 1000

DIRECTIVES: Final = ("include", "define", "undef", "ifdef", "ifndef", "else", "endif")
WANTED_FILE: Final = re.compile(r'\s*(?:"([^"\n]*)"|<([^>\n]*)>)')
WANTED_NAME: Final = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_-]*)")
PARAMETERS: Final = re.compile(r"\(\s*((?:[A-Za-z_][A-Za-z0-9_-]*\s*(?:,\s*[A-Za-z_][A-Za-z0-9_-]*\s*)*)?)\)")
DEPTH: Final = {"LPAR": 1, "LBRACKET": 1, "LESS": 1, "RPAR": -1, "RBRACKET": -1, "GREATER": -1}

Include: TypeAlias = Callable[[str, str], tuple[str, str]]
"""`include(wanted, from_file)` returns the real name and the text of a file; OSError, LookupError, ValueError: none."""


def preprocess(
    text: str, name: str, *, include: Include | None, defines: Mapping[str, str], sources: dict[str, str]
) -> list[Token]:
    """Return the tokens of a script, the last of which is its end; `sources` gets the text of every file.

    Raises:
        ScriptError: A directive is wrong, something is no token, or the script is too large.
    """
    made = Preprocessor(include, sources)
    for macro, body in defines.items():
        made.define(macro, body)
    made.read_file(text, name, None)
    made.check_depth()
    made.problems.conclude()
    last = made.tokens[-1] if made.tokens else Token(END, "", name, 1, 1, 1, 1)
    end_line, end_column = (last.end_line, last.end_column) if made.tokens else (1, 1)
    made.tokens.append(Token(END, "", last.file, end_line, end_column, end_line, end_column))
    return made.tokens


class Preprocessor:
    """The state of one reading: macros, files that were included, tokens so far."""

    def __init__(self, include: Include | None, sources: dict[str, str]) -> None:
        self.problems = Problems(sources)
        self.tokens: list[Token] = []
        self._sources = sources
        self._include = include
        self._macros = Macros(self.problems)
        self._size = 0
        self._depth = 0

    def define(self, name: str, body: str) -> None:
        """Define a macro from outside of the script."""
        origin = f"-D {name}"
        self._sources[origin] = body
        if not WANTED_NAME.fullmatch(name):
            self.problems.report(origin, 1, 1, f"{quoted(name)} cannot be the name of a macro")
            return
        tokens: list[Token] = []
        if Scanner(body, origin, self.problems).read(tokens) is not None:
            self.problems.report(origin, 1, 1, "a macro stands for no directive")
        self._macros.define(Macro(name, None, tuple(tokens)))

    def read_file(self, text: str, name: str, origin: tuple[str, Directive] | None) -> None:
        """Add the tokens of a file."""
        self._sources[name] = text
        file, line, column = (name, 1, 1) if origin is None else (origin[0], origin[1].line, origin[1].column)
        try:
            self._size += len(text.encode())
        except UnicodeEncodeError as error:
            line = text.count("\n", 0, error.start) + 1
            column = error.start - text.rfind("\n", 0, error.start)
            self.problems.report(name, line, column, "this is half of a character (a lone surrogate)")
            return
        if self._size > SOURCE_BYTES_MAX:
            self.problems.report(file, line, column, f"the script has {self._size} bytes, limit is {SOURCE_BYTES_MAX}")
        elif len(self._sources) > FILES_MAX:
            self.problems.report(file, line, column, f"the script has more than {FILES_MAX} files")
        elif self._depth > INCLUDE_DEPTH_MAX:
            self.problems.report(file, line, column, f"files are included deeper than {INCLUDE_DEPTH_MAX}")
        else:
            self._depth += 1
            self._read(Scanner(text, name, self.problems))
            self._depth -= 1

    def check_depth(self) -> None:
        """Refuse brackets that are nested too deeply only because macros brought them; files were looked at before."""
        if not self._macros.used:
            return
        depth = 0
        for token in self.tokens:
            depth += DEPTH.get(token.type, 0)
            if depth > NESTING_MAX:
                self.problems.report(token.file, token.line, token.column, f"this is nested deeper than {NESTING_MAX}")
                return

    def _read(self, scanner: Scanner) -> None:
        """Read a file to its end. A condition that is open has its `#ifdef` and whether its `#else` was seen."""
        conditions: list[tuple[Directive, bool]] = []
        taken = True
        while not self.problems.full:
            if taken:
                tokens: list[Token] = []
                directive = scanner.read(tokens)
                self._add(tokens)
            else:
                directive = scanner.skip()
            if directive is None:
                break
            if directive.name in ("ifdef", "ifndef", "else", "endif") or (directive.name == "if" and not taken):
                taken = self._condition(directive, scanner, conditions, taken)
            elif taken:
                self._obey(directive, scanner)
        for opening, _ in conditions:
            self._report(scanner, opening, f"this `#{opening.name}` has no end: `#endif` is missing")

    def _add(self, tokens: list[Token]) -> None:
        self.tokens += self._macros.expand(tokens)
        if len(self.tokens) > TOKENS_MAX:
            last = self.tokens[TOKENS_MAX]
            self.problems.report(last.file, last.line, last.column, f"the script has more than {TOKENS_MAX} words")
            del self.tokens[TOKENS_MAX:]

    def _condition(
        self, directive: Directive, scanner: Scanner, conditions: list[tuple[Directive, bool]], taken: bool
    ) -> bool:
        """Return whether what stands behind a directive is read."""
        match directive.name:
            case "else":
                if not conditions or conditions[-1][1]:
                    self._report(scanner, directive, "this `#else` belongs to no `#ifdef`")
                    return taken
                opening, _ = conditions.pop()
                conditions.append((opening, True))
                return not taken
            case "endif":
                if not conditions:
                    self._report(scanner, directive, "this `#endif` belongs to no `#ifdef`")
                    return taken
                conditions.pop()
                return True
            case _ if not taken:
                self._pass_over(directive, scanner)
                return False
            case _:
                conditions.append((directive, False))
                name = self._name(directive, scanner)
                return (name in self._macros) == (directive.name == "ifdef")

    def _pass_over(self, opening: Directive, scanner: Scanner) -> None:
        """Go behind the `#endif` of a condition inside of what is not read."""
        depth = 1
        while depth:
            directive = scanner.skip()
            if directive is None:
                self._report(scanner, opening, f"this `#{opening.name}` has no end: `#endif` is missing")
                return
            depth += (directive.name in ("if", "ifdef", "ifndef")) - (directive.name == "endif")

    def _obey(self, directive: Directive, scanner: Scanner) -> None:
        match directive.name:
            case "include":
                self._include_file(directive, scanner)
            case "define":
                self._define(directive, scanner)
            case "undef":
                self._macros.undefine(self._name(directive, scanner))
            case _:
                advice = did_you_mean(directive.name, DIRECTIVES)
                known = ", ".join(f"`#{name}`" for name in DIRECTIVES)
                self._report(
                    scanner, directive, f"there is no directive `#{directive.name}`{advice}, there are {known}"
                )

    def _include_file(self, directive: Directive, scanner: Scanner) -> None:
        wanted = WANTED_FILE.match(directive.rest)
        if wanted is None:
            self._report(scanner, directive, 'expected `#include "file"` or `#include <file>`')
            return
        name = wanted[1] or wanted[2] or ""
        if self._include is None:
            self._report(scanner, directive, f"there is no file {quoted(name)}: this script cannot include any")
            return
        try:
            real, text = self._include(name, scanner.file)
        except (OSError, LookupError, ValueError) as error:
            self._report(scanner, directive, f"there is no file {quoted(name)}{_because(error)}")
            return
        if real not in self._sources:
            self.read_file(text, real, (scanner.file, directive))

    def _define(self, directive: Directive, scanner: Scanner) -> None:
        name = WANTED_NAME.match(directive.rest)
        if name is None:
            self._report(scanner, directive, "expected the name of a macro behind `#define`")
            return
        start, parameters = name.end(), None
        if directive.rest.startswith("(", start):
            listed = PARAMETERS.match(directive.rest, start)
            if listed is None:
                self._report(scanner, directive, f"expected names in the parentheses of the macro {quoted(name[1])}")
                return
            start = listed.end()
            parameters = tuple(each.strip() for each in listed[1].split(",") if each.strip())
            if len(set(parameters)) < len(parameters):
                self._report(scanner, directive, f"two parameters of the macro {quoted(name[1])} have one name")
                return
        body = re.sub(r"\\(?=\r?\n)", " ", directive.rest)
        tokens: list[Token] = []
        line = directive.line + body.count("\n", 0, start)
        column = start - body.rfind("\n", 0, start) if "\n" in body[:start] else directive.rest_column + start
        reader = Scanner(body[start:], scanner.file, self.problems, line=line, column=column)
        if reader.read(tokens) is not None:
            self._report(scanner, directive, "a macro stands for no directive")
        self._macros.define(Macro(name[1], parameters, tuple(tokens)))

    def _name(self, directive: Directive, scanner: Scanner) -> str:
        name = WANTED_NAME.match(directive.rest)
        if name is None:
            self._report(scanner, directive, f"expected the name of a macro behind `#{directive.name}`")
            return ""
        return name[1]

    def _report(self, scanner: Scanner, directive: Directive, message: str) -> None:
        self.problems.report(scanner.file, directive.line, directive.column, message)


def _because(error: Exception) -> str:
    """Return why a file could not be had, if there is more to say than that it is not there."""
    if isinstance(error, FileNotFoundError | LookupError) or not str(error):
        return ""
    return f": {error}"
