"""Runs of simulated hubs made from a seed: who takes part, what goes wrong and when, and whether all came right.

The cores are the real ones: concentrators, greetings, sessions and parsers. A run is made from its seed alone (`Fate`).
When the network is healed, everything that was promised must come true (`Ledger`):

    safety     every source in order, nothing twice, every event delivered or reported missing once, no gap at all for
               `block` between hubs that never gave each other up, calls answered, memory within its bounds
    liveness   ten seconds after healing the next event of every living source has reached every living sink

With `derived`, hubs also derive channels from channels, and what holds for these is checked too (`Deriving`). With
`turning`, sinks go over between derived channels, and see every event once and in order all the same (`TurningSystem`).
With `recording`, a channel is recorded on a disk that loses power (`RecordingSystem`).

A failure raises AssertionError with the seed and the last things that happened; `python -m echoic.testing.simulation
--seed N` shows it again.
"""

import argparse
from typing import Literal, TypeAlias, get_args

from echoic.errors import EchoicError
from echoic.testing.derived_fate import DerivedFate
from echoic.testing.fate import Fate
from echoic.testing.seed_loop import run_and_exit
from echoic.testing.simulated_ends import SimulationReport
from echoic.testing.simulated_recording import RecordingReport, run_recording
from echoic.testing.turning_fate import TurningFate

__all__ = ["Mode", "run_simulation", "run_turning"]

Mode: TypeAlias = Literal["safety", "liveness"]


def run_simulation(seed: int, mode: Mode = "safety", *, derived: bool = False) -> SimulationReport:
    """Run a simulation, with or without derived channels, and return what happened.

    Raises:
        AssertionError: A promise was broken; the message has the seed and the last things that happened.
    """
    fate = DerivedFate(seed) if derived else Fate(seed)
    try:
        fate.let_it_fail()
        if mode == "liveness":
            fate.system.check_progress()
        fate.let_it_settle()
    except (AssertionError, EchoicError, KeyError, IndexError, RuntimeError) as problem:
        also = f"mode {mode}, derived {derived}"
        raise AssertionError(fate.system.explain(f"{type(problem).__name__}: {problem} - {also}")) from problem
    return fate.system.report(mode)


def run_turning(seed: int) -> SimulationReport:
    """Run a simulation in which sinks go over between derived channels, and return what happened.

    Raises:
        AssertionError: A promise was broken; the message has the seed and the last things that happened.
    """
    fate = TurningFate(seed)
    try:
        fate.let_it_fail()
        fate.let_it_settle()
    except (AssertionError, EchoicError, KeyError, IndexError, RuntimeError) as problem:
        raise AssertionError(fate.system.explain(f"{type(problem).__name__}: {problem} - turning")) from problem
    return fate.report("turning")


def _run(seed: int, wish: argparse.Namespace) -> SimulationReport | RecordingReport:
    if wish.recording:
        return run_recording(seed)
    return run_turning(seed) if wish.turning else run_simulation(seed, wish.mode, derived=wish.derived)


def main() -> None:
    """Run the seeds that were asked for, and print what happened."""
    parser = argparse.ArgumentParser(
        description="Simulate hubs over a seeded network that fails, and check that nothing is lost, repeated or "
        "reordered in silence, and that all comes right when it is healed.",
        epilog="Of a single seed the report is printed. A failure is printed with the last things that happened; the "
        "same seed with the same options repeats it.",
    )
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1, help="how many seeds")
    parser.add_argument(
        "--mode",
        choices=get_args(Mode),
        default="safety",
        help="safety: check every event, and that all is settled in the end; liveness: check also that ten seconds "
        "after healing every source has reached every sink",
    )
    parser.add_argument(
        "--derived",
        action="store_true",
        help="let hubs derive channels from channels (filters, routers, chains of them), with their code at the "
        "sources or at the sinks, moved and with its parameters changed while events pass, and check what they deliver",
    )
    parser.add_argument(
        "--recording",
        action="store_true",
        help="let a channel be recorded on a disk that loses power, kill the recorder, sources and the manager, and "
        "check that the journal has every event once and in order, and all that were acknowledged",
    )
    parser.add_argument(
        "--turning",
        action="store_true",
        help="let sinks go over between derived channels again and again, and check that they see every event of every "
        "source once and in order",
    )
    wish = parser.parse_args()
    run_and_exit(lambda seed: _run(seed, wish), wish.seed, wish.count, "runs")


if __name__ == "__main__":
    main()
