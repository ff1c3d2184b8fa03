"""Trial 3: simulations in which everything fails, and nothing that must hold is broken.

Of a hundred seeds

    52  channels      hubs, sources, sinks of every rule (`run_simulation`)
    16  agreement     the layer over Corosync's ring (`run_agreement`)
    12  groups        the ordering core alone, with every knob drawn (`SimulatedGroup`)
     6  recording     a recorder on a disk that loses power (`run_recording`)
     5  derived       channels derived from channels (`run_simulation(derived=True)`)
     4  turning       sinks that go over between derived channels (`run_turning`)
     5  world         all of it, and a bus, together (`run_world`)

The rarer ones take longer. `python -m echoic.testing.simulation`, `...simulated_world`, `...group_campaign` and
`...simulated_agreement` repeat a seed that failed; its line says of which.
"""

from echoic.errors import EchoicError
from echoic.testing.simulated_agreement import run_agreement
from echoic.testing.simulated_group import SimulatedGroup
from echoic.testing.simulated_recording import run_recording
from echoic.testing.simulated_world import run_world
from echoic.testing.simulation import run_simulation, run_turning
from echoic.testing.trials.seeds import run_seeds
from echoic.testing.trials.trial import Findings, Tell

__all__ = ["run"]


def run(size: int, seed: int, tell: Tell) -> Findings:
    """Run so many seeds in safety mode."""
    kinds = {
        "channels": (run_simulation, 52),
        "agreement": (run_agreement, 16),
        "groups": (run_group, 12),
        "recording": (run_recording, 6),
        "derived": (run_derived, 5),
        "turning": (run_turning, 4),
        "world": (run_world, 5),
    }
    return run_seeds(kinds, size, seed, tell)


def run_derived(seed: int) -> object:
    """Run a simulation with derived channels.

    Raises:
        AssertionError: A promise was broken.
    """
    return run_simulation(seed, derived=True)


def run_group(seed: int) -> object:
    """Run a group of simulated members.

    Raises:
        AssertionError: A promise was broken.
    """
    world = SimulatedGroup(seed)
    try:
        return world.run()
    except EchoicError as error:
        raise AssertionError(f"{type(error).__name__}: {error} - {world.knobs}") from error
