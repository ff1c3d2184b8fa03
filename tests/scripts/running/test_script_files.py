"""Scripts in text files: what a machine makes of them, line by line.

    ==== title
    the script
    ----
    | what it prints
    tell calc(1) eval expr("1")       what it wants from the world
    < said 1 value val(1)             what it hears then, once it has nothing more to do
    waiting 2                         how it ends: `waiting` with so many processes, `halted`, or `shutdown`

Every script is run with several seeds, and must do the same with each: what chance decides is tested elsewhere.
"""

import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from echoic.scripts.graph import Options, compile  # noqa: A004 - the word for it
from echoic.scripts.running import Machine, MachineLimits, MachineStatistics
from echoic.scripts.running.messages import (
    Announce,
    AskLine,
    Connected,
    Dismiss,
    Effect,
    FromTool,
    Halted,
    Input,
    Kill,
    LineRead,
    Lost,
    Note,
    Print,
    Said,
    Start,
    Step,
    Tell,
    Warned,
)
from echoic.scripts.syntax import load
from echoic.terms import TermList, parse_text, write_text

SEEDS = range(8)
TURNS_MAX = 20_000
SECOND_NS = 1_000_000_000
EPOCH_NS = 1_000_000_000 * SECOND_NS  # 2001-09-09 01:46:40


@dataclass(frozen=True)
class Case:
    title: str
    script: str
    expected: list[str]

    @property
    def inputs(self) -> list[str]:
        return [line for line in self.expected if line.startswith("<")]


def read_cases(path: Path) -> list[Case]:
    cases = []
    for part in path.read_text("utf-8").split("==== ")[1:]:
        title, _, rest = part.partition("\n")
        script, _, expected = rest.partition("\n----\n")
        cases.append(Case(f"{path.stem}: {title}", script, [line for line in expected.splitlines() if line.strip()]))
    return cases


def as_input(line: str) -> Input | float:
    """Return what a line beginning with `<` says, a time as a number of seconds."""
    word, _, rest = line[1:].strip().partition(" ")
    match word:
        case "connected":
            name, _, instance = rest.partition(" ")
            return Connected(name, int(instance) if instance else None)
        case "said":
            number, kind, *values = rest.split(" ", 2)
            said = parse_text(f"[{values[0]}]") if values else TermList()
            assert isinstance(said, TermList)
            return Said(int(number), FromTool(kind), said.elements)
        case "lost":
            return Lost(int(rest), "gone")
        case "note":
            return Note(parse_text(rest))
        case "line":
            return LineRead(rest)
        case "end-of-input":
            return LineRead(None)
        case "time":
            return float(rest)
    raise AssertionError(line)


class Transcript:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self._text = ""
        self._tools: dict[int, str] = {}

    def told(self, effect: Effect) -> None:
        if isinstance(effect, Print):
            *lines, self._text = (self._text + effect.text).split("\n")
            self.lines += [f"| {line}".rstrip() for line in lines]
            return
        match effect:
            case Announce() | Step():
                return
            case Start(tool, name, host, command, details):
                self._tools[tool] = name
                line = f"start {name}({tool}) {host} {command} {details}"
            case Tell(tool, kind, values):
                line = f"tell {tool} {kind} {','.join(map(write_text, values))}"
            case Dismiss(tool):
                line = f"dismiss {tool}"
            case Kill(tool):
                line = f"kill {tool}"
            case AskLine(prompt):
                line = f"ask {prompt}"
            case Warned(text):
                line = f"warned {text}"
            case Halted(value):
                line = "halted" if value is None else f"shutdown {write_text(value)}"
        self.flush()
        self.lines.append(" ".join(line.split()))

    def flush(self) -> None:
        if self._text:
            self.lines.append(f"| {self._text}".rstrip())
            self._text = ""


def transcribe(case: Case, seed: int) -> list[str]:
    """Return what a machine says and hears, as it is written in a file."""
    options = Options(int32=case.title.endswith("(int32)"), properties={"colour": "red"})
    program = compile(load(case.script, "script"), options)
    limits = MachineLimits(notes_per_process_max=3, messages_per_tool_max=3, processes_max=5, tools_max=3, lines_max=3)
    machine = Machine(program, chance=random.Random(seed), now_ns=0, epoch_ns=EPOCH_NS, limits=limits)
    transcript = Transcript()
    machine.start()
    now_ns = 0
    inputs = iter(case.inputs)
    while True:
        for _ in range(TURNS_MAX):
            if not machine.run(1, now_ns):
                break
        for effect in machine.take_effects():
            transcript.told(effect)
        line = next(inputs, None)
        if line is None:
            break
        transcript.flush()
        transcript.lines.append(line)
        heard = as_input(line)
        if isinstance(heard, float):
            now_ns = round(heard * SECOND_NS)
        else:
            machine.receive(heard, now_ns)
    transcript.flush()
    if not machine.halted:
        transcript.lines.append(f"waiting {machine.statistics().processes}")
    return transcript.lines


CASES = [case for path in sorted(Path(__file__).parent.glob("*.txt")) for case in read_cases(path)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_a_script_does_what_its_file_says(case: Case) -> None:
    for seed in SEEDS:
        assert transcribe(case, seed) == case.expected, f"seed {seed}"


def test_statistics_count_what_was_done() -> None:
    script = "process A is snd-msg(a) . tau process B is rec-msg(a) . rec-msg(never) toolbus(A,B)"
    machine = Machine(compile(load(script, "script")), chance=random.Random(1), now_ns=0)
    machine.start()
    while machine.run(10, 0):
        pass
    assert machine.statistics() == MachineStatistics(
        turns=4, steps=2, handshakes=1, created=2, processes=1, waiting=1, tools=0, notes_dropped=0, warnings=0
    )
