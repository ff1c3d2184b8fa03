"""`echoic bus check`: find what is wrong with a script before it runs.

    text --> static checks --> exploration: all that the script can do, with tools that may say anything
                 |                  |
              errors            deadlocks, livelocks, values that are not there ... each with the way to it
              warnings          atoms that are never done

Findings go to stdout: they are what was asked for. The exit code is 1 if anything is wrong; what is only odd, an atom
that never happens, counts with `--strict`.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter

from echoic.cli.bus_domains import domain_of
from echoic.cli.bus_scripts import FAILED, PLAIN, Preparation
from echoic.cli.screen import json_text, printable
from echoic.cli.where import AsJson, Flag
from echoic.errors import LocalError, ScriptError
from echoic.scripts.checking import Findings
from echoic.scripts.checking import check as static_check
from echoic.scripts.exploring import Environment, Exploration, ExplorationLimits, Finding, FindingKind, Step, explore
from echoic.scripts.graph import Program
from echoic.scripts.syntax.problems import Problem, render
from echoic.scripts.syntax.tree import Script

__all__ = ["check"]

ODD: Final = frozenset({FindingKind.UNTAKEN_NOTE, FindingKind.PARTNERLESS, FindingKind.UNREACHABLE})
"""What need not be a mistake."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class World:
    """What a script is taken to be in."""

    domain: Annotated[
        list[str] | None,
        Parameter(
            help="The values of a type that tools may say, TYPE=FIRST..LAST or TYPE=VALUE,VALUE; repeat it for more.",
            negative=(),
            show_default=False,
        ),
    ] = None
    stubs: Annotated[
        Path | None,
        Parameter(help="A script with processes that play tools, instead of tools that may say anything."),
    ] = None
    states_max: Annotated[int, Parameter(help="Look at so many states, at most.")] = ExplorationLimits().states_max
    tools_fail: Annotated[
        bool, Parameter(help="Let every tool be lost at any time.", negative=(), show_default=False)
    ] = False
    explore: Annotated[
        bool, Parameter(name="--explore", negative="--no-explore", help="Look at all that it can do.")
    ] = True

    @property
    def environment(self) -> Environment:
        """What tools may do.

        Raises:
            LocalError: A domain is not one.
        """
        return Environment(domain=domain_of(self.domain or ()), tools_fail=self.tools_fail)

    @property
    def limits(self) -> ExplorationLimits:
        """How much is looked at.

        Raises:
            LocalError: It is nothing.
        """
        if self.states_max < 1:
            raise LocalError(f"expected --states-max to be a number of states, got {self.states_max}")
        return ExplorationLimits(states_max=self.states_max)


WORLD: Final = World()


def check(
    script: Path,
    /,
    *,
    preparation: Preparation = PLAIN,
    world: World = WORLD,
    aut: Annotated[Path | None, Parameter(show_default=False)] = None,
    dot: Annotated[Path | None, Parameter(show_default=False)] = None,
    everything: Annotated[bool, Parameter(name=["--all", "-a"], negative=(), show_default=False)] = False,
    strict: Flag = False,
    as_json: AsJson = False,
) -> None:
    """Find what is wrong with a script, without running it.

    First its text: types, names, recursion, atoms that nobody could take part in. Then all that it can do is explored,
    with tools that may say anything their interface allows: deadlocks, endless idling, events that are never
    acknowledged, variables that are used without a value, queues that grow, atoms that are never done. Each comes with
    the shortest way to it. Tools are not started.

    Try:
        echoic bus check philosophers.tb
        echoic bus check calc.tb --domain int=0..2 --domain str=a,b
        echoic bus check calc.tb --dot calc.dot && dot -Tsvg calc.dot > calc.svg
        echoic bus check calc.tb --json | jq '.findings[] | {kind, line, text}'

    Args:
        script: The file of the script.
        preparation: How its text is read.
        world: What it is taken to be in.
        aut: Write all states and steps to a file for mCRL2 and CADP.
        dot: Write them to a file for Graphviz.
        everything: Show all findings, also where several are of one sort and at one place.
        strict: Warnings count as well.
        as_json: Print an object as JSON.
    """
    if not world.explore and (aut or dot):
        raise LocalError("without exploration there is nothing for --aut and --dot")
    environment, limits = world.environment, world.limits
    try:
        tree = _loaded(script, preparation, world.stubs)
        found = static_check(tree)
    except ScriptError as error:
        _show_refusal(script, error, as_json=as_json)
        sys.exit(FAILED)
    exploration = None
    if world.explore and not found.errors:
        exploration = explore(Program(tree), environment=environment, limits=limits)
        _write(aut, dot, exploration)
    wrong = _is_wrong(found, exploration, strict=strict)
    if as_json:
        print(json_text(_as_object(script, found, exploration, wrong=wrong)))
    else:
        print(
            "\n".join(printable(text, keep="\n\t") for text in _texts(tree, found, exploration, everything=everything))
        )
    if wrong:
        sys.exit(FAILED)


def _loaded(script: Path, preparation: Preparation, stubs: Path | None) -> Script:
    tree = preparation.load(script)
    if stubs is None:
        return tree
    from echoic.cli.bus_stubs import with_stubs

    return with_stubs(tree, preparation.load(stubs))


def _shown(exploration: Exploration | None) -> list[Finding]:
    """Return what was found, but for atoms without partners, of which the static checks warn."""
    return [each for each in (exploration.findings if exploration else ()) if each.kind is not FindingKind.PARTNERLESS]


def _is_wrong(found: Findings, exploration: Exploration | None, *, strict: bool) -> bool:
    shown = _shown(exploration)
    if strict and (found.warnings or shown or (exploration is not None and not exploration.complete)):
        return True
    return bool(found.errors) or any(each.kind not in ODD for each in shown)


def _texts(tree: Script, found: Findings, exploration: Exploration | None, *, everything: bool) -> list[str]:
    texts = [render(problem, tree.sources) for problem in found.errors]
    texts += [found.warning_text(warning) for warning in found.warnings]
    texts += _finding_texts(_shown(exploration), tree.sources, everything=everything)
    if found.errors:
        return texts
    if exploration is None:
        return [*texts, f"the text is in order: {_counted(len(found.warnings), 'warning')}"]
    count = len(_shown(exploration)) + len(found.warnings)
    seen = _counted(exploration.states, "state") + " and " + _counted(exploration.transitions, "step")
    nothing = "nothing is wrong" if exploration.complete else "nothing is wrong as far as that goes"
    texts.append(f"{seen} were looked at: {_counted(count, 'finding') if count else nothing}")
    texts += [f"not looked at: {each}" for each in exploration.left_out]
    return texts


def _finding_texts(findings: list[Finding], sources: dict[str, str], *, everything: bool) -> list[str]:
    """Return the findings for people: of those of one sort at one place the one that is reached soonest."""
    alike: dict[object, list[Finding]] = {}
    for finding in findings:
        alike.setdefault(finding if everything else (finding.kind, finding.span), []).append(finding)
    texts = []
    for group in alike.values():
        text = min(group, key=lambda each: len(each.trace)).render(sources)
        more = f"    ({len(group) - 1} more like this: --all shows them)" if len(group) > 1 else ""
        texts.append(f"{text}\n{more}" if more else text)
    return texts


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def _show_refusal(script: Path, error: ScriptError, *, as_json: bool) -> None:
    """Show why a text is no script at all."""
    if as_json:
        problems = [
            {"file": file, "line": line, "column": column, "message": text}
            for file, line, column, text in error.problems
        ] or [{"file": str(script), "line": 0, "column": 0, "message": str(error)}]
        print(json_text({"ok": False, "file": str(script), "errors": problems, "warnings": [], "findings": []}))
    else:
        print(printable(str(error), keep="\n\t"))


def _as_object(script: Path, found: Findings, exploration: Exploration | None, *, wrong: bool) -> dict[str, Any]:
    return {
        "ok": not wrong,
        "file": str(script),
        "errors": [_problem(each) for each in found.errors],
        "warnings": [_problem(each) for each in found.warnings],
        "findings": [_finding(each) for each in _shown(exploration)],
        "explored": None
        if exploration is None
        else {
            "states": exploration.states,
            "transitions": exploration.transitions,
            "complete": exploration.complete,
            "left_out": list(exploration.left_out),
        },
    }


def _problem(problem: Problem) -> dict[str, Any]:
    return {"file": problem.file, "line": problem.line, "column": problem.column, "message": problem.message}


def _finding(finding: Finding) -> dict[str, Any]:
    span = finding.span
    return {
        "kind": finding.kind.value,
        "text": finding.text,
        "file": span.file if span else "",
        "line": span.line if span else 0,
        "column": span.column if span else 0,
        "shortest": finding.shortest,
        "trace": [_step(step) for step in finding.trace],
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "process": step.process,
        "partner": step.partner,
        "text": step.text,
        "places": [{"file": each.file, "line": each.line, "column": each.column} for each in step.places],
    }


def _write(aut: Path | None, dot: Path | None, exploration: Exploration) -> None:
    for path, text in ((aut, exploration.write_aut), (dot, exploration.write_dot)):
        if path is not None:
            try:
                path.write_text(text(), encoding="utf-8")
            except OSError as error:
                raise LocalError(f"{path} cannot be written: {error.strerror or error}") from error
