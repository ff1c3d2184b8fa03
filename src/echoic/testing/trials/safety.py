"""Trial 3: simulations in which everything fails, and nothing that must hold is broken.

Of a hundred seeds

    61  channels      hubs, sources, sinks of every rule (`run_simulation`)
    20  agreement     the layer over Corosync's ring (`run_agreement`)
     8  groups        the ordering core alone, with every knob drawn (`SimulatedGroup`)
     4  recording     a recorder on a disk that loses power (`run_recording`)
     3  derived       channels derived from channels (`run_simulation(derived=True)`)
     2  turning       sinks that go over between derived channels (`run_turning`)
     2  world         all of it, and a bus, together (`run_world`)

The rarer ones take longer. `python -m echoic.testing.simulation`, `...simulated_world`, `...group_campaign` and
`...simulated_agreement` repeat a seed that failed; its line says of which.
"""

from echoic.errors import EchoicError
from echoic.testing.simulated_agreement import run_agreement
from echoic.testing.simulated_group import SimulatedGroup
from echoic.testing.simulated_recording import run_recording
from echoic.testing.simulated_world import run_world
from echoic.testing.simulation import run_simulation, run_turning
from echoic.testing.trials.seeds import Kind, run_seeds
from echoic.testing.trials.trial import Findings, Tell

__all__ = ["run"]


def run(size: int, seed: int, tell: Tell) -> Findings:
    """Run so many seeds in safety mode."""
    kinds: dict[str, tuple[Kind, int]] = {
        "channels": (run_simulation, 61),
        "agreement": (run_agreement, 20),
        "groups": (run_group, 8),
        "recording": (run_recording, 4),
        "derived": (run_derived, 3),
        "turning": (run_turning, 2),
        "world": (run_world, 2),
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
