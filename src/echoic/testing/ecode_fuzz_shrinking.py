"""Making a program that shows a mistake smaller, by leaving lines out for as long as it still shows one."""

from collections.abc import Callable
from dataclasses import replace

from echoic.testing.ecode_fuzz_programs import Case

__all__ = ["shrink"]


def shrink(case: Case, fails: Callable[[Case], bool]) -> Case:
    """Return the smallest program that was found for which `fails` still says so.

    A program that does not compile without some lines does not fail, so nothing here knows the language.
    """
    one_batch = replace(case, batches=case.batches[:1], params=case.params[:1])
    if fails(one_batch):
        case = one_batch
    lines = case.source.split("\n")
    size = len(lines) // 2
    while size:
        lines, changed = _without(case, lines, size, fails)
        size = size if changed else size // 2
    return replace(case, source="\n".join(lines))


def _without(case: Case, lines: list[str], size: int, fails: Callable[[Case], bool]) -> tuple[list[str], bool]:
    """Return what is left when every group of `size` lines that can be left out is, and whether there was any."""
    changed, start = False, 0
    while start < len(lines):
        for fewer in _candidates(lines, start, size):
            if fails(replace(case, source="\n".join(fewer))):
                lines, changed = fewer, True
                break
        else:
            start += 1
    return lines, changed


def _candidates(lines: list[str], start: int, size: int) -> list[list[str]]:
    """Return the lines without some that follow each other, and without the braces around others."""
    found = [lines[:start] + lines[start + size :]]
    if size == 1 and lines[start].endswith("{"):
        indent = len(lines[start]) - len(lines[start].lstrip())
        for end in range(start + 1, len(lines)):
            if lines[end].startswith(" " * indent + "}"):
                found += [lines[:start] + lines[end + 1 :], lines[:start] + lines[start + 1 : end] + lines[end + 1 :]]
                break
    return found
