"""A reactor is steered by a threshold: once by code inside its source, once by a sink that hears of it.

Whoever steers is another process both times. The first sends E-Code that switches the heating off through the source's
context, before `submit` returns; the second gets the event, decides, and asks the source by `steer`. Printed is how
long it takes from the event that crosses the threshold to the change in the simulation, and how many steps that is.
"""

import statistics
import subprocess
import sys
import time

import echoic

LIMIT, ROUNDS, STEP_SECONDS = 90.0, 60, 0.0001
INSIDE = "{ if (input.temperature > param.limit) context.heating = -1.0; return 0; }"  # and nothing is sent
HOT = "input.temperature > param.limit"


@echoic.event
class Sample:
    round: int
    temperature: float


@echoic.event
class Heating:
    heating: float


class Reactor:
    """A simulation that heats up until somebody stops it."""

    def __init__(self, channel: echoic.Channel) -> None:
        self.round = 0
        self.context = echoic.Context(Heating(1.0), writable=("heating",))
        controls = echoic.Controls(tune=self.tune)
        self.source = channel.source(context=self.context, controls=controls)

    def tune(self, number: int, heating: float) -> None:
        """Take what a sink asks for in a round, unless it comes too late."""
        if number == self.round:
            self.context.heating = heating

    def run(self) -> tuple[float, int]:
        """Heat until the heating is off; return the seconds from crossing the limit to that, and the steps too far."""
        self.round += 1
        self.context.heating = 1.0
        temperature, crossed, too_far = LIMIT - 5.0, 0.0, 0
        while self.context.heating > 0:
            if crossed:
                too_far += 1
            temperature += self.context.heating
            if temperature > LIMIT and not crossed:
                crossed = time.perf_counter()
            self.source.submit(Sample(self.round, temperature))
            if self.context.heating > 0:
                time.sleep(STEP_SECONDS)
        return time.perf_counter() - crossed, too_far


def steer_from_here(id: str, way: str) -> None:
    """Be the other process: steer the reactor until standard input is closed."""
    with echoic.Hub() as hub:
        channel = hub.open(id, Sample)
        steered = 0

        def react(sample: Sample) -> None:
            nonlocal steered
            if sample.round != steered:
                steered = sample.round
                channel.steer("tune", number=sample.round, heating=-1.0)

        code, handler = (INSIDE, lambda _: None) if way == "inside" else (HOT, react)
        channel.derive(code, params={"limit": LIMIT}).subscribe(handler, thread=True)
        sys.stdin.read()


def measure(reactor: Reactor, id: str, way: str) -> tuple[float, list[int]]:
    """Return the median latency in seconds, and the steps too far of each round, sorted."""
    steering = subprocess.Popen([sys.executable, __file__, id, way], stdin=subprocess.PIPE)
    try:
        while not reactor.source.heard:  # nobody is to heat a reactor that nobody looks after
            if steering.poll() is not None:
                raise SystemExit("the process that steers has ended")
            time.sleep(0.01)
        reactor.run()  # the first time, links and code are warmed up
        found = [reactor.run() for _ in range(ROUNDS)]
    finally:
        steering.communicate()
    while reactor.source.heard:
        time.sleep(0.01)
    return statistics.median(seconds for seconds, _ in found), sorted(too_far for _, too_far in found)


def main() -> None:
    """Measure both ways, and print them side by side."""
    with echoic.Hub() as hub:
        channel = hub.create("reactor", Sample, context=Heating)
        reactor = Reactor(channel)
        print(f"{'steered':<20}{'latency, median':>18}{'steps too far, median and most':>34}")
        seconds = {}
        for way, name in (("inside", "inside the source"), ("outside", "over the network")):
            seconds[way], steps = measure(reactor, channel.id, way)
            print(f"{name:<20}{seconds[way] * 1e6:>15.0f} us{statistics.median(steps):>27.0f} {steps[-1]:>6}")
        print(f"the way over the network takes {seconds['outside'] / seconds['inside']:.0f} times as long")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        steer_from_here(*sys.argv[1:])
    else:
        main()
