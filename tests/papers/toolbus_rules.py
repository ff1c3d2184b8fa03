"""The rules of the operators of processes once more, as plainly as they can be said.

A process is a letter, which it prints, another atom as text, or (operator, left, right); None has ended.
"""

__all__ = ["steps_of", "written"]


def steps_of(process: object) -> list[tuple[str, object]]:
    """Return what a process can do first, and what it is then."""
    if isinstance(process, str):
        return [] if process == "delta" else [(process, None)]
    if process is None:
        return []
    operator, left, right = process  # type: ignore[misc]
    ours, theirs = steps_of(left), steps_of(right)
    match operator:
        case ".":
            return [(letter, right if rest is None else (".", rest, right)) for letter, rest in ours]
        case "+":
            return ours + theirs
        case "+>":
            return theirs or ours
        case "<+":
            return ours or theirs
        case "*":
            return [(letter, process if rest is None else (".", rest, process)) for letter, rest in ours] + theirs
        case ">>":
            return [(letter, None if rest is None else (">>", rest, right)) for letter, rest in ours] + theirs
        case "||":
            moved = [(letter, right if rest is None else ("||", rest, right)) for letter, rest in ours]
            return moved + [(letter, left if rest is None else ("||", left, rest)) for letter, rest in theirs]
    raise AssertionError(operator)


def written(process: object) -> str:
    """Return a process as it stands in a script."""
    if isinstance(process, str):
        return f'printf("{process}")' if len(process) == 1 else process
    operator, left, right = process  # type: ignore[misc]
    return f"({written(left)} {operator} {written(right)})"
