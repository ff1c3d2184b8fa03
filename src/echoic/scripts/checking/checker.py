"""All checks of a script, in one pass: each mistake is found, not only the first.

An error is something that cannot mean anything; a warning something that can, but hardly what was meant. Both show
the line.
"""

from dataclasses import dataclass, field

from echoic.scripts.checking.atoms import check_atom, check_timing
from echoic.scripts.checking.calls import check_call, check_configuration, check_create, check_recursion
from echoic.scripts.checking.context import Context
from echoic.scripts.checking.declarations import check_declarations, check_let
from echoic.scripts.checking.expressions import fits, pattern_type, shown, value_type, warn_of_value_formal
from echoic.scripts.checking.partners import check_partners
from echoic.scripts.checking.signatures import BOOL
from echoic.scripts.checking.survey import Placed, Scope, survey
from echoic.scripts.syntax.nesting import walk
from echoic.scripts.syntax.problems import Problem, refuse, render
from echoic.scripts.syntax.tree import Application, Assign, Atom, Call, Conditional, Create, Let, Script

__all__ = ["Findings", "check", "require"]


@dataclass(frozen=True, slots=True)
class Findings:
    """What is wrong with a script, and what may be."""

    errors: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    sources: dict[str, str] = field(repr=False)

    @property
    def text(self) -> str:
        """All of it, each with its line and a caret."""
        lines = [render(problem, self.sources) for problem in self.errors]
        return "\n".join([*lines, *(self.warning_text(problem) for problem in self.warnings)])

    def warning_text(self, warning: Problem) -> str:
        """Return a warning with its line and a caret."""
        marked = Problem(warning.file, warning.line, warning.column, f"warning: {warning.message}")
        return render(marked, self.sources)


def check(script: Script) -> Findings:
    """Return what the checks find."""
    context = Context(script)
    placed = list(survey(script))
    symbols = _symbols(script, placed)
    check_declarations(context, symbols)
    for each in placed:
        _check(each, context, symbols)
    check_configuration(context)
    check_recursion(placed, context)
    check_partners(placed, context)
    return Findings(tuple(context.errors.found), tuple(context.warnings.found), script.sources)


def require(script: Script) -> Findings:
    """Return what the checks find in a script that is in order, which is warnings only.

    Raises:
        ScriptError: It is not in order.
    """
    findings = check(script)
    if findings.errors:
        refuse(findings.errors, script.sources)
    return findings


def _check(placed: Placed, context: Context, symbols: frozenset[str]) -> None:
    scope = placed.scope
    match placed.node:
        case Let() as let:
            check_let(let, scope, context, symbols)
        case Conditional(test):
            given = value_type(test, scope, context)
            if not fits(BOOL, given):
                context.error(test.span, f"a condition should be `bool`, got {shown(given)}")
        case Call() as call:
            check_call(call, scope, context)
        case Atom() as atom:
            check_atom(atom, scope, context)
            check_timing(atom.timing, scope, context)
        case Create() as create:
            check_create(create, scope, context)
            check_timing(create.timing, scope, context)
        case Assign() as assign:
            _check_assign(assign, scope, context)
            check_timing(assign.timing, scope, context)


def _check_assign(assign: Assign, scope: Scope, context: Context) -> None:
    variable = assign.variable
    wanted = pattern_type(variable, scope, context)
    warn_of_value_formal(variable.name, variable, scope, context)
    given = value_type(assign.expression, scope, context)
    if not fits(wanted, given):
        context.error(assign.expression.span, f"variable `{variable.name}` is {shown(wanted)}, got {shown(given)}")


def _symbols(script: Script, placed: list[Placed]) -> frozenset[str]:
    """Return the symbols of all terms of a script."""
    roots = [each.node for each in placed if not isinstance(each.node, Let | Conditional)]
    calls = [call for configuration in script.configurations for call in configuration.calls]
    return frozenset(node.name for root in [*roots, *calls] for node in walk(root) if isinstance(node, Application))
