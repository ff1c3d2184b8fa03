"""`echoic group bench`: what packing does for a group, on this machine.

Replicas are processes; one of them is the source. All ways of packing take turns, round by round, so that whatever else
the machine does meanwhile hits all of them, and are told as ratios to no packing at all.
"""

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal

import msgspec
from cyclopts import Parameter

from echoic.cli.screen import json_text, say
from echoic.cli.tables import print_table
from echoic.cli.where import AsJson
from echoic.errors import LocalError, UnreachableError
from echoic.groups.policies import policy_of
from echoic.testing.bench.groups import Case, Result, Source, measure

__all__ = ["bench"]

COLUMNS: Final = ("PACKING", "EVENTS/S", "RATIO", "MEAN MS", "P50 MS", "P99 MS", "DEGREE", "CPU")
UNPACKED: Final = "static:1"
ROUNDS_MAX: Final = 100
CLEAR_LINE: Final = "\r\033[K"


class Measured(msgspec.Struct, frozen=True):
    """Medians of the rounds of one way of packing."""

    packing: str
    throughput: float
    ratio: float | None
    """To no packing, round by round; None if that was not measured."""
    latency: float
    latency_p50: float
    latency_p99: float
    degree: float
    cpu: float


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Setting:
    """The group, and the source."""

    size: Annotated[int, Parameter(help="Bytes of an event.")] = 1000
    source: Annotated[
        str,
        Parameter(help="continuous; burst:COUNT:MILLISECONDS, with rests; sizes:1000:3000, which take turns."),
    ] = "continuous"
    replicas: Annotated[int, Parameter(help="How many members there are.")] = 3
    stability: Annotated[
        Literal["majority", "all"], Parameter(help="Who must hold an event before anybody is given it.")
    ] = "all"
    durability: Annotated[
        Literal["disk", "os", "memory"], Parameter(help="When a member counts as holding an event.")
    ] = "memory"

    def case(self, seconds: float) -> Case:
        """Return what is run, with whichever packing.

        Raises:
            LocalError: It cannot be.
        """
        case = Case(
            seconds=seconds,
            warm_up=seconds / 4,
            source=_source(self.source, self.size),
            replicas=self.replicas,
            stability=self.stability,
            durability=self.durability,
        )
        case.check()
        return case


SETTING: Final = Setting()


def bench(
    *,
    packing: str = "static:1,static:11,auto",
    seconds: float = 3.0,
    rounds: int = 3,
    as_json: AsJson = False,
    setting: Setting = SETTING,
) -> None:
    """Measure an ordered group with several ways of packing, beside no packing at all.

    Throughput, latency (with the time in the packing buffer) and processor time are those of the member that sends.

    Try:
        echoic group bench
        echoic group bench --size 100 --packing static:1,static:28,static:64,auto
        echoic group bench --source burst:15:20 --seconds 5
        echoic group bench --durability disk --stability majority --json

    Args:
        packing: Ways of packing, with commas between: static:N, auto, nagle:BYTES, paper.
        seconds: For how long the source sends, each time; the first quarter is not counted.
        rounds: How often each way of packing has its turn; medians are shown.
        as_json: Print all numbers as JSON.
        setting: The group, and the source.
    """
    if not 1 <= rounds <= ROUNDS_MAX:
        raise LocalError(f"expected 1 to {ROUNDS_MAX} rounds, got {rounds}")
    case, ways = setting.case(seconds), _ways(packing)
    measured = _summaries(_take_turns(case, ways, rounds))
    if as_json:
        print(json_text([msgspec.to_builtins(each) for each in measured]))
        return
    print_table(COLUMNS, [_row(each) for each in measured])
    sizes = ", ".join(map(str, case.messages.sizes))
    say(f"{case.replicas} replicas on this machine, medians of {rounds} rounds of {seconds:g} s, {sizes} bytes each")


def _source(text: str, size: int) -> Source:
    """Return how events come.

    Raises:
        LocalError: The text does not say so.
    """
    kind, *words = text.split(":")
    try:
        match kind, [float(word) for word in words]:
            case "continuous", []:
                return Source((size,))
            case "burst", [count, milliseconds] if count >= 1 and count.is_integer() and milliseconds >= 0:
                return Source((size,), burst=int(count), pause=milliseconds / 1000)
            case "sizes", [_, *_] as sizes:
                return Source(tuple(map(int, sizes)))
            case _:
                pass
    except (ValueError, OverflowError):
        pass
    raise LocalError(f"expected continuous, burst:COUNT:MILLISECONDS or sizes:BYTES:BYTES, got `{text}` - at --source")


def _ways(packing: str) -> list[str]:
    """Return the ways of packing that are measured.

    Raises:
        LocalError: One of them is none.
    """
    ways: list[str] = []
    for word in packing.split(","):
        # `paper:ta=0.5,pack_max=64` has a comma of its own.
        if "=" in word and ":" not in word and ways:
            ways[-1] += f",{word}"
        else:
            ways.append(word.strip())
    for way in ways:
        policy_of(way)
    if len(set(ways)) != len(ways):
        raise LocalError(f"a way of packing is named twice, got `{packing}` - at --packing")
    return ways


def _take_turns(case: Case, ways: Sequence[str], rounds: int) -> dict[str, list[Result]]:
    """Measure each way of packing once in each round; every other round from behind.

    Raises:
        UnreachableError: A replica did not answer.
    """
    results: dict[str, list[Result]] = {way: [] for way in ways}
    try:
        for number in range(rounds):
            for way in ways if number % 2 == 0 else reversed(ways):
                _progress(f"round {number + 1} of {rounds}: {way}")
                results[way].append(measure(msgspec.structs.replace(case, packing=way)))
    except RuntimeError as error:
        raise UnreachableError(str(error)) from error
    finally:
        _progress("")
    return results


def _summaries(results: dict[str, list[Result]]) -> list[Measured]:
    plain = results.get(UNPACKED)
    found = []
    for way, runs in results.items():
        ratios = [run.throughput / other.throughput for run, other in zip(runs, plain or [], strict=False)]
        medians = {
            name: statistics.median(getattr(run, name) for run in runs)
            for name in ("throughput", "latency", "latency_p50", "latency_p99", "degree", "cpu")
        }
        found.append(Measured(packing=way, ratio=statistics.median(ratios) if ratios else None, **medians))
    return found


def _row(measured: Measured) -> list[object]:
    milliseconds = [round(each * 1e3, 2) for each in (measured.latency, measured.latency_p50, measured.latency_p99)]
    return [
        measured.packing,
        round(measured.throughput),
        "" if measured.ratio is None else round(measured.ratio, 2),
        *milliseconds,
        round(measured.degree, 1),
        f"{measured.cpu * 100:.0f} %",
    ]


def _progress(line: str) -> None:
    if sys.stderr.isatty():
        print(CLEAR_LINE + line, end="", file=sys.stderr, flush=True)
