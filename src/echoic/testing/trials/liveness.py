"""Trial 4: simulations in which everything fails, then is healed, and goes on within ten virtual seconds.

Of a hundred seeds 80 are of channels alone, 10 of derived channels, and 10 are whole worlds, each of which takes as
long as ten of the others: there a healthy core is chosen when the faults end, somebody outside of it may stay cut off
one way, and every source of the core must reach every sink of it, names must resolve, the recorder confirm, the group
order and the bus go on.

`python -m echoic.testing.simulation --mode liveness` and `python -m echoic.testing.simulated_world --mode liveness`
repeat a seed that failed.
"""

from echoic.testing.simulated_world import run_world
from echoic.testing.simulation import run_simulation
from echoic.testing.trials.seeds import run_seeds
from echoic.testing.trials.trial import Findings, Tell

__all__ = ["run"]


def run(size: int, seed: int, tell: Tell) -> Findings:
    """Run so many seeds in liveness mode."""
    kinds = {"channels": (run_channels, 80), "derived": (run_derived, 10), "world": (run_living_world, 10)}
    return run_seeds(kinds, size, seed, tell)


def run_channels(seed: int) -> object:
    """Run a simulation of channels.

    Raises:
        AssertionError: Something does not go on.
    """
    return run_simulation(seed, "liveness")


def run_derived(seed: int) -> object:
    """Run a simulation of derived channels.

    Raises:
        AssertionError: Something does not go on.
    """
    return run_simulation(seed, "liveness", derived=True)


def run_living_world(seed: int) -> object:
    """Run a world.

    Raises:
        AssertionError: Something does not go on.
    """
    return run_world(seed, "liveness")
