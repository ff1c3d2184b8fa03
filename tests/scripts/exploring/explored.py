"""Scripts as they are explored in tests."""

from echoic.scripts.exploring import Environment, Exploration, ExplorationLimits, Finding, FindingKind, explore
from echoic.scripts.graph import compile  # noqa: A004 - the word for it
from echoic.scripts.syntax import load

TOOL = 'tool t is { command = "t" }\n'


def explored(
    text: str,
    *,
    reduce: bool = True,
    environment: Environment | None = None,
    limits: ExplorationLimits | None = None,
) -> Exploration:
    """Return all that a script can do."""
    return explore(
        compile(load(text, "test.tb")),
        environment=environment or Environment(),
        limits=limits or ExplorationLimits(),
        reduce=reduce,
    )


def found(text: str, kind: FindingKind, **options: object) -> list[Finding]:
    """Return the findings of one sort, which are the same with and without reduction."""
    reduced = explored(text, **options)
    full = explored(text, **{**options, "reduce": False})
    assert summary(reduced) == summary(full)
    return list(reduced.of_kind(kind))


def kinds(exploration: Exploration) -> set[FindingKind]:
    """Return the sorts of what was found."""
    return {finding.kind for finding in exploration.findings}


def summary(exploration: Exploration) -> set[tuple[object, ...]]:
    """Return what was found, without the ways that lead there."""
    return {(finding.kind, finding.text, finding.span) for finding in exploration.findings}


def philosophers(count: int, *, courteous: bool = False, patient: bool = False) -> str:
    """Return so many philosophers, each with a fork at his left.

    If one of them is `courteous` he takes the right fork first; if they are `patient` each process does a tau before
    its loop, as it does in the Java ToolBus.
    """
    calls = []
    for number in range(count):
        forks = [number, (number + 1) % count]
        if courteous and number == count - 1:
            forks.reverse()
        calls.append(f"PHIL({forks[0]}, {forks[1]}), FORK({number})")
    first = "tau . " if patient else ""
    return f"""
process PHIL(L : int, R : int) is {first}(snd-msg(get(L)) . snd-msg(get(R)) . snd-msg(put(L)) . snd-msg(put(R))) * delta
process FORK(I : int) is {first}(rec-msg(get(I)) . rec-msg(put(I))) * delta
toolbus({", ".join(calls)})
"""
