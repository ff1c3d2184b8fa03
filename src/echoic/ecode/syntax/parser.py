"""Tokens to a tree: C's grammar, as far as E-Code has it.

Statements are parsed by recursive descent, operators by precedence with a stack of their own, so that the depth of the
recursion is bound by `NESTING_MAX` whatever the text is. A mistake ends the statement it is in; parsing goes on with
the next one, and what follows only from the first mistake is not reported.

Three forms are programs: a block, statements without braces around them, and an expression alone.
"""

from typing import TYPE_CHECKING, Final

from echoic.ecode.numbers import INT32
from echoic.ecode.syntax import tree
from echoic.ecode.syntax.declarators import TYPE_WORDS, number_of, refuse_word
from echoic.ecode.syntax.lexer import Token, tokenize
from echoic.ecode.syntax.literals import read_character, read_number, read_string
from echoic.ecode.syntax.nearest import did_you_mean
from echoic.ecode.syntax.text import Problems, SourceText, cascade, mistake, quoted
from echoic.errors import ECodeError

if TYPE_CHECKING:
    from echoic.ecode.numbers import Number
    from echoic.ecode.typed import Position

__all__ = ["NESTING_MAX", "parse"]

NESTING_MAX: Final = 100

PRECEDENCE: Final = {
    operator: level
    for level, operators in enumerate(
        ("||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %"), start=1
    )
    for operator in operators.split()
}
ASSIGNMENTS: Final = frozenset(["=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="])
PREFIXES: Final = frozenset(["+", "-", "~", "!", "++", "--"])
FLAT: Final = frozenset({"&&", "||"})
STATEMENT_WORDS: Final = (*sorted(TYPE_WORDS), "break", "const", "continue", "else", "return", "static", "while")
OPERATORS: Final = {"and": "&&", "or": "||", "not": "!", "is": "=="}
DECLARING: Final = TYPE_WORDS | {"static", "const"}


def parse(text: SourceText) -> tree.Block:
    """Return the tree of a program in C's spelling.

    Raises:
        ECodeError: It is not one; with every problem that was found.
    """
    problems = Problems(text)
    parser = _Parser(problems, tokenize(problems))
    program = parser.program()
    problems.conclude()
    return program


class _Parser:
    """The state of one parse: where it is, and how deep."""

    def __init__(self, problems: Problems, tokens: list[Token]) -> None:
        self._problems = problems
        self._tokens = tokens
        self._index = 0
        self._nesting = 0

    def program(self) -> tree.Block:
        """Return the whole program as a block."""
        first = self._tokens[0]
        if first.kind == "end":
            self._problems.report(first.at, "the code is empty: it must return a value at least")
        statements: list[tree.Statement] = []
        while self._kind != "end" and not self._problems.full:
            self._statements_into(statements)
            if self._kind == "}":
                if not self._problems.found:
                    self._problems.report(self._token.at, "this `}` closes nothing")
                self._index += 1
        if len(statements) == 1 and isinstance(statements[0], tree.Block):
            return statements[0]
        return tree.Block(tuple(statements), first.at, self._tokens[-1].at)

    @property
    def _token(self) -> Token:
        return self._tokens[self._index]

    @property
    def _kind(self) -> str:
        return self._tokens[self._index].kind

    def _accept(self, kind: str) -> bool:
        if self._tokens[self._index].kind != kind:
            return False
        self._index += 1
        return True

    def _expect(self, kind: str, where: str) -> Token:
        token = self._tokens[self._index]
        if token.kind != kind:
            raise self._missing(f"`{kind}`", where)
        self._index += 1
        return token

    def _missing(self, what: str, where: str, advice: str = "") -> ECodeError:
        """Return the mistake that something is not there; it is shown behind what is."""
        token = self._token
        at = self._tokens[self._index - 1].after if self._index else token.at
        return mistake(at, f"expected {what} {where}, got {token.shown}{advice}")

    def _enter(self, at: "Position") -> None:
        self._nesting += 1
        if self._nesting > NESTING_MAX:
            self._index = len(self._tokens) - 1  # what follows cannot be told apart
            raise mistake(at, f"the code is nested deeper than {NESTING_MAX} levels")

    def _statements_into(self, statements: list[tree.Statement]) -> None:
        """Parse statements up to a `}` or the end."""
        nesting = self._nesting
        while self._kind not in ("}", "end") and not self._problems.full:
            start = self._index
            try:
                statements += self._item()
            except ECodeError as error:
                self._problems.keep(error)
                self._nesting = nesting
                self._resynchronise(start)

    def _resynchronise(self, start: int) -> None:
        """Skip the rest of the statement that began at `start` and has a mistake.

        Brackets that are open at the mistake are closed first. A block behind it is parsed as one, so that its braces
        stay paired; so is what an `else` without its `if` leads to.
        """
        skipped = self._tokens[start : self._index]
        kinds = [token.kind for token in skipped]
        braces = kinds.count("{") - kinds.count("}")
        rounds = kinds.count("(") - kinds.count(")") if "for" in kinds else 0
        if self._index == start and self._kind not in ("{", "}", "end"):
            self._index += 1
        while self._kind != "end":
            kind = self._kind
            if braces <= 0 and kind in ("{", "}"):
                break
            braces += (kind == "{") - (kind == "}")
            rounds += (kind == "(") - (kind == ")") if "for" in kinds else 0
            self._index += 1
            if kind == ";" and braces <= 0 and rounds <= 0:
                break
        if self._kind == "else":
            self._index += 1

    def _item(self) -> list[tree.Statement]:
        """Parse a declaration, of perhaps several variables, or a statement."""
        if self._kind in DECLARING:
            declarations = self._declaration()
            self._expect(";", "after the declaration")
            return list(declarations)
        return [self._statement()]

    def _statement(self) -> tree.Statement:
        token = self._token
        self._enter(token.at)
        match token.kind:
            case "{":
                found: tree.Statement = self._block()
            case ";":
                self._index += 1
                found = tree.Block((), token.at, token.at)
            case "if":
                found = self._if()
            case "for":
                found = self._for()
            case "while":
                self._index += 1
                found = tree.While(self._test("while"), self._statement(), token.at)
            case "do":
                found = self._do()
            case "return":
                found = self._return()
            case "break" | "continue":
                self._index += 1
                self._expect(";", f"after `{token.text}`")
                found = tree.Break(token.at) if token.kind == "break" else tree.Continue(token.at)
            case "else":
                raise cascade() if self._problems.found else mistake(token.at, "this `else` has no `if`")
            case kind if kind in DECLARING:
                raise mistake(token.at, "a declaration cannot stand here without braces around it")
            case _:
                found = self._expression_statement()
        self._nesting -= 1
        return found

    def _block(self) -> tree.Block:
        opening = self._token
        self._index += 1
        statements: list[tree.Statement] = []
        self._statements_into(statements)
        if self._kind == "end":
            # Which of several open braces lacks its partner cannot be told: only the innermost is reported.
            raise cascade() if self._problems.found else mistake(opening.at, "this `{` is never closed")
        closing = self._token
        if closing.kind == "}":
            self._index += 1
        return tree.Block(tuple(statements), opening.at, closing.at)

    def _test(self, word: str) -> tree.Expression:
        self._expect("(", f"after `{word}`")
        test = self._expression()
        self._expect(")", f"after the condition of `{word}`")
        return test

    def _if(self) -> tree.If:
        at = self._token.at
        self._index += 1
        test = self._test("if")
        yes = self._statement()
        no = self._statement() if self._accept("else") else None
        return tree.If(test, yes, no, at)

    def _for(self) -> tree.For:
        at = self._token.at
        self._index += 1
        self._expect("(", "after `for`")
        initial: tuple[tree.Declaration | tree.Evaluate, ...] = ()
        if self._kind in DECLARING:
            initial = tuple(self._declaration(loop=True))
        elif self._kind != ";":
            begin = self._token.at
            initial = (tree.Evaluate(self._expression(), begin),)
        self._expect(";", "after the first part of `for`")
        test = None if self._kind == ";" else self._expression()
        self._expect(";", "after the condition of `for`")
        step = None if self._kind == ")" else self._expression()
        self._expect(")", "after the last part of `for`")
        return tree.For(initial, test, step, self._statement(), at)

    def _do(self) -> tree.Do:
        at = self._token.at
        self._index += 1
        body = self._statement()
        self._expect("while", "after the body of `do`")
        test = self._test("while")
        self._expect(";", "after `do ... while`")
        return tree.Do(body, test, at)

    def _return(self) -> tree.Return:
        at = self._token.at
        self._index += 1
        if self._kind == ";":
            raise mistake(at, "`return` needs a value: 0 rejects the event")
        value = self._expression()
        self._expect(";", "after the value of `return`")
        return tree.Return(value, at)

    def _expression_statement(self) -> tree.Evaluate | tree.Lone:
        start, at = self._index, self._token.at
        refuse_word(self._token, "statement")
        if self._kind == "name" and self._tokens[start + 1].kind == ":":
            raise mistake(at, "labels and `goto` are not part of E-Code")
        value = self._expression()
        if start == 0 and self._kind == "end":
            return tree.Lone(value, at)
        if self._kind != ";":
            raise self._missing("`;`", "after the expression", self._meant(value))
        self._index += 1
        return tree.Evaluate(value, at)

    def _meant(self, value: tree.Expression) -> str:
        """Return what a word may mean that was taken for a variable, a function or an operator's place."""
        if self._token.text in OPERATORS:
            return f" (E-Code writes `{OPERATORS[self._token.text]}`)"
        match value:
            case tree.Name(word) | tree.Call(word):
                return did_you_mean(word, STATEMENT_WORDS)
            case _:
                return ""

    def _declaration(self, *, loop: bool = False) -> list[tree.Declaration]:
        """Parse the variables of one declaration, without its semicolon."""
        words: list[Token] = []
        while self._kind in DECLARING:
            words.append(self._token)
            self._index += 1
        number = number_of([word for word in words if word.kind not in ("static", "const")], self._token)
        kinds = {word.kind for word in words}
        if loop and "static" in kinds:
            raise mistake(words[0].at, "a variable of `for` cannot be `static`")
        declarations = [self._declarator(number, kinds)]
        while self._accept(","):
            declarations.append(self._declarator(number, kinds))
        return declarations

    def _declarator(self, number: "Number", kinds: set[str]) -> tree.Declaration:
        token = self._token
        if token.kind == "*":
            raise mistake(token.at, "pointers are not part of E-Code")
        if token.kind != "name":
            raise self._missing("a name", "in the declaration")
        self._index += 1
        if self._kind == "(":
            raise mistake(token.at, "functions cannot be defined in E-Code")
        dimensions: list[tree.Expression | None] = []
        while self._accept("["):
            dimensions.append(None if self._kind == "]" else self._expression())
            self._expect("]", "after the length of the array")
        initial: tree.Expression | tree.Braces | None = None
        if self._accept("="):
            initial = self._braces() if self._kind == "{" else self._assignment()
        return tree.Declaration(
            token.text, number, tuple(dimensions), initial, "static" in kinds, "const" in kinds, token.at
        )

    def _braces(self) -> tree.Braces:
        at = self._token.at
        self._index += 1
        self._enter(at)
        items: list[tree.Expression | tree.Braces] = []
        while self._kind != "}":
            items.append(self._braces() if self._kind == "{" else self._assignment())
            if not self._accept(","):
                break
        if self._kind != "}":
            raise self._missing("`,` or `}`", "after a value of the array")
        self._index += 1
        self._nesting -= 1
        return tree.Braces(tuple(items), at)

    def _expression(self) -> tree.Expression:
        """Parse an expression with commas."""
        value = self._assignment()
        while self._kind == ",":
            at = self._token.at
            self._index += 1
            value = tree.Comma(value, self._assignment(), at)
        return value

    def _assignment(self) -> tree.Expression:
        """Parse an expression without commas: an assignment, a choice, or something simpler."""
        value = self._operations()
        token = self._token
        if token.kind == "?":
            self._index += 1
            self._enter(token.at)
            yes = self._expression()
            self._expect(":", "between the two values of `?`")
            no = self._assignment()
            self._nesting -= 1
            return tree.Conditional(value, yes, no, token.at)
        if token.kind in ASSIGNMENTS:
            self._index += 1
            self._enter(token.at)
            value = tree.Assignment(token.text[:-1], value, self._assignment(), token.at)
            self._nesting -= 1
        return value

    def _operations(self) -> tree.Expression:
        """Parse operands and the binary operators between them."""
        operands = [self._operand()]
        pending: list[Token] = []
        while (level := PRECEDENCE.get(self._kind)) is not None:
            _combine(operands, pending, level)
            pending.append(self._token)
            self._index += 1
            operands.append(self._operand())
        _combine(operands, pending, 0)
        return operands[0]

    def _operand(self) -> tree.Expression:
        """Parse what stands between binary operators: prefixes, a primary, and what is appended to it."""
        prefixes: list[tuple[Token, Number | None]] = []
        while True:
            token = self._token
            if token.kind in PREFIXES:
                prefixes.append((token, None))
                self._index += 1
            elif token.kind == "(" and self._tokens[self._index + 1].kind in DECLARING:
                prefixes.append((token, self._cast()))
            else:
                break
        value = self._suffixed(self._primary())
        for token, number in reversed(prefixes):
            if number is not None:
                value = tree.Cast(number, value, token.at)
            elif token.kind in ("++", "--"):
                value = tree.Step("+" if token.kind == "++" else "-", value, post=False, at=token.at)
            else:
                value = tree.Unary(token.kind, value, token.at)
        return value

    def _cast(self) -> "Number":
        self._index += 1
        words: list[Token] = []
        while self._kind in DECLARING:
            words.append(self._token)
            self._index += 1
        for word in words:
            if word.kind in ("static", "const"):
                raise mistake(word.at, f"`{word.kind}` has no meaning in a cast")
        number = number_of(words, self._token)
        if self._kind == "*":
            raise mistake(self._token.at, "pointers are not part of E-Code")
        self._expect(")", "after the type of the cast")
        return number

    def _primary(self) -> tree.Expression:
        token = self._token
        self._index += 1
        match token.kind:
            case "name":
                if self._kind == "(":
                    return self._call(token.text, token.at)
                return tree.Name(token.text, token.at)
            case "number":
                value, number = read_number(token.text, token.at)
                return tree.Constant(value, number, token.at)
            case "character":
                return tree.Constant(read_character(token.text, token.at), INT32, token.at)
            case "text":
                data = read_string(token.text, token.at)
                while self._kind == "text":
                    data += read_string(self._token.text, self._token.at)
                    self._index += 1
                return tree.String(data, token.at)
            case "(":
                self._enter(token.at)
                inner = self._expression()
                self._expect(")", "after the expression")
                self._nesting -= 1
                return inner
            case "*" | "&":
                raise mistake(token.at, "pointers are not part of E-Code")
            case _:
                self._index -= 1
                refuse_word(token, "expression")
                raise mistake(token.at, f"expected an expression, got {token.shown}")

    def _call(self, name: str, at: "Position") -> tree.Call:
        if name == "len":
            raise mistake(at, "there is no function `len`: `length` is for arrays, `strlen` for texts")
        opening = self._expect("(", "after the function")
        self._enter(opening.at)
        arguments: list[tree.Expression] = []
        if self._kind != ")":
            arguments.append(self._assignment())
            while self._accept(","):
                arguments.append(self._assignment())
        if self._kind != ")":
            raise self._missing("`,` or `)`", f"after an argument of {quoted(name)}")
        self._index += 1
        self._nesting -= 1
        return tree.Call(name, tuple(arguments), at)

    def _suffixed(self, value: tree.Expression) -> tree.Expression:
        while True:
            token = self._token
            match token.kind:
                case "[":
                    self._index += 1
                    self._enter(token.at)
                    index = self._expression()
                    self._expect("]", "after the index")
                    self._nesting -= 1
                    value = tree.Subscript(value, index, token.at)
                case ".":
                    self._index += 1
                    value = self._member(value)
                case "++" | "--":
                    self._index += 1
                    value = tree.Step("+" if token.kind == "++" else "-", value, post=True, at=token.at)
                case "->":
                    raise mistake(token.at, "pointers are not part of E-Code: write `.`")
                case "(":
                    match value:
                        case tree.Member(tree.Name("context"), name):
                            value = self._call(f"context.{name}", value.at)
                        case _:
                            raise mistake(token.at, "only a function can be called, and it is called by its name")
                case _:
                    return value

    def _member(self, value: tree.Expression) -> tree.Member:
        token = self._token
        # A field may have the name of a word that E-Code keeps for itself.
        if not token.text.isidentifier():
            raise self._missing("the name of a field", "after `.`")
        self._index += 1
        return tree.Member(value, token.text, token.at)


def _combine(operands: list[tree.Expression], pending: list[Token], level: int) -> None:
    """Apply the pending operators that bind at least as strongly as `level`."""
    while pending and PRECEDENCE[pending[-1].kind] >= level:
        operator = pending[-1].kind
        if operator not in FLAT:
            right = operands.pop()
            operands[-1] = tree.Binary(operator, operands[-1], right, pending.pop().at)
            continue
        if PRECEDENCE[operator] == level:
            return  # `a && b &&` goes on, and becomes one tree when its end is known
        count = 1
        while count < len(pending) and pending[-count - 1].kind == operator:
            count += 1
        at = [token.at for token in pending[-count:]]
        operands[-count - 1 :] = [tree.chain(operator, operands[-count - 1 :], at)]
        del pending[-count:]
