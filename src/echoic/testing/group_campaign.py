"""Many worlds of simulated groups, from the command line; with a planted mistake, until it is found.

python -m echoic.testing.group_campaign --seeds 0:50000
python -m echoic.testing.group_campaign --seeds 0:1000 --bug vote-twice
"""

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext

from echoic.errors import EchoicError
from echoic.testing.planted_bugs import BUGS, planted
from echoic.testing.simulated_group import SimulatedGroup, SimulationCounts

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run worlds from the command line; return how many broke a promise, 100 at most."""
    parser = argparse.ArgumentParser(description="Simulated groups: the ordering core among failures, from seeds.")
    parser.add_argument("--seeds", default="0:100", help="first and end, as in 0:1000")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long a world lives before it is healed")
    parser.add_argument("--bug", choices=sorted(BUGS), help="plant this mistake, which must be found")
    parser.add_argument("--keep-going", action="store_true", help="do not end at the first broken promise")
    chosen = parser.parse_args(arguments)
    first, _, end = chosen.seeds.partition(":")
    total, broken, began = SimulationCounts(), 0, time.monotonic()
    with planted(chosen.bug) if chosen.bug else nullcontext(lambda _: None) as prepare:
        for done, seed in enumerate(range(int(first), int(end)), 1):
            world = SimulatedGroup(seed, duration_ns=int(chosen.seconds * 1e9))
            prepare(world)
            try:
                total.add(world.run())
            except (AssertionError, EchoicError) as error:
                broken += 1
                sys.stdout.write(f"seed {seed} broke a promise: {error}\n  {world.knobs}\n")
                if not chosen.keep_going:
                    break
            if done % 1000 == 0:
                sys.stderr.write(f"{done} worlds, {broken} broken, {time.monotonic() - began:.0f} s\n")
    sys.stdout.write(f"{done} worlds, {broken} broke a promise, {time.monotonic() - began:.0f} s: {total}\n")
    return min(broken, 100)


if __name__ == "__main__":
    sys.exit(main())
