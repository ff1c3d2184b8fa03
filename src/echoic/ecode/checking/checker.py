"""The syntax tree to the typed tree: what every name means, which type everything has, whether all of it is allowed.

Statements are checked one by one. A mistake ends the statement it is in and the next one is checked all the same, so
that one compilation finds many; headers and bodies of `if` and loops count as statements of their own there.
"""

from typing import TYPE_CHECKING, Final, assert_never

from echoic.ecode.checking.declarations import Declarations
from echoic.ecode.checking.expressions import Expressions
from echoic.ecode.checking.flow import completes
from echoic.ecode.checking.operations import convert, truth
from echoic.ecode.checking.places import Places
from echoic.ecode.checking.scopes import Scopes
from echoic.ecode.context import ContextUse
from echoic.ecode.numbers import INT32
from echoic.ecode.program import Program, Signature, Spelling
from echoic.ecode.syntax import tree
from echoic.ecode.syntax.text import Problems, mistake
from echoic.ecode.typed import (
    Assign,
    Block,
    Break,
    Constant,
    Continue,
    Declare,
    Evaluate,
    If,
    Loop,
    Position,
    Return,
    Statement,
    Update,
    Value,
)
from echoic.errors import ECodeError

if TYPE_CHECKING:
    from echoic.ecode.syntax.text import SourceText

__all__ = ["LOOPS_MAX", "check_tree"]

LOOPS_MAX: Final = 16  # CPython, which one of the back ends generates code for, ends at 20


def check_tree(program: tree.Block, signature: Signature, text: "SourceText", spelling: Spelling) -> Program:
    """Return the checked program.

    Raises:
        ECodeError: It is wrong; with every problem that was found.
    """
    problems = Problems(text)
    checker = _Checker(signature, problems)
    body = checker.program(program)
    if not problems.found and completes(body):
        problems.report(program.end, f"control reaches the end without `return`{_advice(program, body)}")
    problems.conclude()
    scopes = checker.scopes
    return Program(
        text.source,
        spelling,
        text.file,
        signature,
        body,
        tuple(scopes.locals),
        tuple(scopes.statics),
        scopes.static_bytes,
        frozenset(checker.places.used),
        checker.expressions.nodes,
        _context_use(checker.places, scopes.static_bytes),
    )


def _context_use(places: Places, offset: int) -> ContextUse | None:
    named = any(root == "context" for root, _ in places.used)
    if places.signature.context is None or not (named or places.functions):
        return None
    return ContextUse(offset, places.signature.context.size, frozenset(places.written), tuple(places.functions))


class _Checker:
    """Checks the statements of one program."""

    def __init__(self, signature: Signature, problems: Problems) -> None:
        self.scopes = Scopes()
        self.places = Places(signature, self.scopes)
        self.expressions = Expressions(self.places)
        self._declarations = Declarations(self.expressions, self.scopes)
        self._problems = problems
        self._loops = 0

    def program(self, node: tree.Block) -> Block:
        """Check the whole program; variables that are not declared in it are declared at its start."""
        body = self.block(node)
        hidden = [Declare(variable, (), node.at) for variable in self.expressions.hidden]
        return Block((*hidden, *body.statements), body.at) if hidden else body

    def block(self, node: tree.Block) -> Block:
        """Check the statements of a block, in a scope of their own."""
        self.scopes.enter()
        statements: list[Statement] = []
        for each in node.statements:
            if self._problems.full:
                break
            depth = self.expressions.depth
            try:
                found = self._statement(each, statements[-1] if statements else None)
            except ECodeError as error:
                self._problems.keep(error)
                self.expressions.depth = depth
                continue
            if found is not None:
                statements.append(found)
        self.scopes.leave()
        return Block(tuple(statements), node.at)

    def _statement(self, node: tree.Statement, before: Statement | None = None) -> Statement | None:
        """Check a statement; None if nothing has to run for it."""
        self.expressions.enter(node.at)
        match node:
            case tree.Block():
                found: Statement | None = self.block(node)
            case tree.Declaration():
                found = self._declarations.declare(node)
            case tree.Evaluate():
                found = self.expressions.effect(node.value, node.at)
            case tree.If():
                found = self._if(node)
            case tree.For():
                found = self._for(node, before)
            case tree.While():
                found = self._loop(node.test, None, node.body, before, node.at)
            case tree.Do():
                found = self._do(node)
            case tree.Return():
                found = Return(convert(self.expressions.value(node.value), INT32), node.at)
            case tree.Lone():
                found = self._lone(node)
            case tree.Break() | tree.Continue():
                found = self._jump(node)
            case _:
                assert_never(node)
        self.expressions.depth -= 1
        return found

    def _body(self, node: tree.Statement) -> Statement:
        """Check a statement that belongs to another one; its mistakes are kept here."""
        depth = self.expressions.depth
        try:
            return self._statement(node) or Block((), node.at)
        except ECodeError as error:
            self._problems.keep(error)
            self.expressions.depth = depth
            return Block((), node.at)

    def _test(self, node: tree.Expression) -> Value:
        """Check a condition; its mistakes are kept here."""
        depth = self.expressions.depth
        try:
            return self.expressions.test(node)
        except ECodeError as error:
            self._problems.keep(error)
            self.expressions.depth = depth
            return Constant(1, INT32, node.at)

    def _if(self, node: tree.If) -> If:
        test = self._test(node.test)
        yes = self._body(node.yes)
        return If(test, yes, None if node.no is None else self._body(node.no), node.at)

    def _for(self, node: tree.For, before: Statement | None) -> Statement:
        self.scopes.enter()
        initial: list[Statement] = []
        for each in node.initial:
            found = self._body(each)
            if not isinstance(found, Block):
                initial.append(found)
        if initial:
            before = initial[0] if len(initial) == 1 else Block(tuple(initial), node.at)
        loop = self._loop(node.test, node.step, node.body, before, node.at)
        self.scopes.leave()
        return Block((*initial, loop), node.at) if initial else loop

    def _loop(
        self,
        test: tree.Expression | None,
        step: tree.Expression | None,
        body: tree.Statement,
        before: Statement | None,
        at: Position,
    ) -> Loop:
        checked_test = None if test is None else self._test(test)
        checked_step = None if step is None else self._test(step)
        self._enter_loop(at)
        checked_body = self._body(body)
        self._loops -= 1
        return Loop(checked_test, checked_step, checked_body, test_first=True, before=before, at=at)

    def _do(self, node: tree.Do) -> Loop:
        self._enter_loop(node.at)
        body = self._body(node.body)
        self._loops -= 1
        return Loop(self._test(node.test), None, body, test_first=False, before=None, at=node.at)

    def _enter_loop(self, at: Position) -> None:
        if self._loops >= LOOPS_MAX:
            raise mistake(at, f"loops are nested deeper than {LOOPS_MAX} levels")
        self._loops += 1

    def _lone(self, node: tree.Lone) -> Return:
        value = self.expressions.test(node.value)
        if not self.places.signature.ports:
            value = truth(value)
        return Return(convert(value, INT32), node.at)

    def _jump(self, node: tree.Break | tree.Continue) -> Break | Continue:
        word = "break" if isinstance(node, tree.Break) else "continue"
        if not self._loops:
            raise mistake(node.at, f"`{word}` is not inside of a loop")
        return Break(node.at) if word == "break" else Continue(node.at)


def _advice(program: tree.Block, body: Block) -> str:
    match body.statements:
        case (Evaluate(value),) if len(program.statements) == 1 and not isinstance(value, Assign | Update):
            return " (an expression alone is a program if no `;` follows)"
        case _:
            return ""
