"""Running one thing for seed after seed, as the commands of simulations do."""

import sys
from collections.abc import Callable
from typing import NoReturn

__all__ = ["run_and_exit"]


def run_and_exit(run: Callable[[int], object], first: int, count: int, what: str) -> NoReturn:
    """Run for `count` seeds; print what fails, and the report if there is but one; exit with 1 if any has failed."""
    failed = 0
    for seed in range(first, first + count):
        try:
            report = run(seed)
        except AssertionError as error:
            failed += 1
            sys.stdout.write(f"{error}\n")
        else:
            if count == 1:
                sys.stdout.write(f"{report}\n")
    sys.stdout.write(f"{count} {what}, {failed} failed\n")
    sys.exit(1 if failed else 0)
