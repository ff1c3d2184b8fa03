"""Random programs of E-Code that are right: they compile, and then do whatever chance wants.

Each statement stands on lines of its own, so that a program that shows a mistake can be made smaller by leaving lines
out. Most programs end with a digest of their variables in two statics, so that a wrong value cannot go unseen.

Loops are of every kind: those whose count the prover finds, those that only look like it because the body changes their
counter or the counter wraps, those that count in their test, and those that end by chance or by want of fuel.
"""

from dataclasses import dataclass, replace
from random import Random
from typing import Final

from echoic.ecode.program import Signature
from echoic.formats import Format
from echoic.testing.ecode_fuzz_expressions import FLOATING_TYPES, INTEGER_TYPES, Expressions
from echoic.testing.ecode_fuzz_places import Place, Scopes, Variable, places_of
from echoic.testing.ecode_fuzz_types import Events, RecordMaker, TypeMaker

__all__ = ["Case", "draw_case"]

STATEMENTS_MAX: Final = 24
DEPTH_MAX: Final = 4
TURNS_MAX: Final = 64
FUELS: Final = (0, 30, 300, 3000, 3000, 3000, 20_000)
FAULTS_MAX: Final = (1, 3, 16, 1000, 1000)
INDENT: Final = "    "
WHOLE: Final = "whole"
BROKEN: Final = "broken"


@dataclass(frozen=True, slots=True)
class Case:
    """A program, the types it works on, and what it is run on, one batch after the other."""

    seed: int
    source: str
    signature: Signature
    batches: tuple[Events, ...]
    params: tuple[bytes, ...]
    fuel: int
    faults_max: int
    context: bytes = b""
    """The values of the context before the first batch."""


def draw_case(seed: int) -> Case:
    """Return the program of a seed with everything around it."""
    random = Random(seed)
    signature, context = _with_context(_draw_signature(random), Random(f"context {seed}"))
    source = _ProgramMaker(random, signature).program()
    maker = RecordMaker(random, signature.input)
    damaged = random.random() < 0.25
    batches = tuple(maker.events(random.choice((1, 2, 5, 9)), damaged=damaged) for _ in range(2))
    params = tuple(_draw_params(random, signature.params) for _ in batches)
    return Case(seed, source, signature, batches, params, random.choice(FUELS), random.choice(FAULTS_MAX), context)


def _draw_signature(random: Random) -> Signature:
    maker = TypeMaker(random)
    output = maker.output() if random.random() < 0.7 else None
    capacities: list[tuple[str, int]] = []
    if output is not None:
        capacities += [(path, random.randint(1, 9)) for path, field in output.walk() if field.dynamic]
    return Signature(
        maker.input(),
        output,
        maker.params() if random.random() < 0.4 else None,
        random.choice((1, 2, 5, 64)) if random.random() < 0.2 else 0,
        tuple(capacities),
    )


def _with_context(signature: Signature, random: Random) -> tuple[Signature, bytes]:
    """Return a signature that has a context, or has none, and the context's values.

    Chance of its own decides, so that a program without a context is the same as if there were no contexts.
    """
    if random.random() < 0.7:
        return signature, b""
    format = TypeMaker(random).context()
    return replace(signature, context=format), bytes(RecordMaker(random, format).record())


def _draw_params(random: Random, format: Format | None) -> bytes:
    if format is None:
        return b""
    return RecordMaker(random, format).events(1, damaged=random.random() < 0.1).records


class _ProgramMaker:
    """Writes one program."""

    def __init__(self, random: Random, signature: Signature) -> None:
        self._random = random
        self._signature = signature
        self._scopes = Scopes()
        self._places = places_of(signature)
        self._expressions = Expressions(random, self._places, self._scopes)
        self._lines: list[str] = []
        self._left = random.randint(2, STATEMENTS_MAX)
        self._loops = 0
        self._turns = 1

    def program(self) -> str:
        """Return the source."""
        random = self._random
        if random.random() < 0.05:
            return self._expressions.number(3)
        braces, digested = random.random() < 0.7, random.random() < 0.7
        level = 1 if braces else 0
        if digested:
            self._write(level, f"static unsigned long {WHOLE};")
            self._write(level, f"static double {BROKEN};")
        for _ in range(random.randint(0, 3)):
            self._declare(level)
        while self._left > 0:
            self._statement(level)
        if digested:
            self._digest(level)
        self._return(level)
        return "\n".join(["{", *self._lines, "}"] if braces else self._lines)

    def _digest(self, level: int) -> None:
        """Put what the variables have come to into statics, where everybody can see it."""
        for variable in self._scopes.visible():
            spelled = variable.name + "[0]" * len(variable.dimensions)
            if variable.floating:
                self._write(level, f"{BROKEN} = {BROKEN} / 3 + {spelled};")
            else:
                self._write(level, f"{WHOLE} = {WHOLE} * 31 + {spelled};")

    def _write(self, level: int, text: str) -> None:
        self._lines.append(INDENT * level + text)

    def _statement(self, level: int) -> None:
        random = self._random
        self._left -= 1
        way = random.random()
        if way < 0.18:
            self._declare(level)
        elif way < 0.5 or level > DEPTH_MAX:
            self._assign(level)
        elif way < 0.62:
            self._if(level)
        elif way < 0.82:
            self._loop(level)
        elif way < 0.9:
            self._write_output(level)
        elif way < 0.93:
            self._block(level, "{")
        elif way < 0.95 and self._loops:
            self._write(level, f"if ({self._expressions.number(1)}) {random.choice(('break', 'continue'))};")
        elif way < 0.97:
            self._write(level, f"if ({self._expressions.number(1)}) return {self._expressions.number(1)};")
        elif self._signature.context is not None and way < 0.99:
            self._call(level)
        else:
            self._write(level, random.choice((";", f"{self._expressions.number(2)};")))

    def _call(self, level: int) -> None:
        """Call a function of the context, with any number of arguments."""
        arguments = [self._expressions.number(1) for _ in range(self._random.randint(0, 3))]
        self._write(level, f"context.{self._random.choice(('vent', 'stop'))}({', '.join(arguments)});")

    def _declare(self, level: int) -> None:
        """Declare a variable: local, constant or static, an array or not, with or without values."""
        random = self._random
        floating = random.random() < 0.35
        kind = random.choice(FLOATING_TYPES if floating else INTEGER_TYPES)
        name = self._new_name()
        static = random.random() < 0.25
        dimensions: tuple[int, ...] = ()
        if random.random() < 0.3:
            dimensions = tuple(random.randint(1, 5) for _ in range(random.choice((1, 1, 2))))
        constant = not dimensions and random.random() < 0.1
        spelled = f"{name}{''.join(f'[{length}]' for length in dimensions)}"
        value = self._initial(dimensions, floating=floating, static=static, needed=constant)
        words = f"{'static ' if static else ''}{'const ' if constant else ''}{kind} {spelled}{value};"
        self._write(level, words)
        self._scopes.blocks[-1].append(Variable(name, floating, dimensions, constant))

    def _new_name(self) -> str:
        """Return a name: as a rule one of its own, sometimes that of a variable of an outer block."""
        here = {variable.name for variable in self._scopes.blocks[-1]}
        outer = [variable.name for variable in self._scopes.visible() if variable.name not in here]
        return self._random.choice(outer) if outer and self._random.random() < 0.1 else self._scopes.name()

    def _initial(self, dimensions: tuple[int, ...], *, floating: bool, static: bool, needed: bool) -> str:
        if not needed and self._random.random() < 0.3:
            return ""
        if len(dimensions) > 1:
            return ""
        if not dimensions:
            return f" = {self._initial_value(floating=floating, static=static)}"
        values = [
            self._initial_value(floating=floating, static=static) for _ in range(self._random.randint(1, dimensions[0]))
        ]
        return f" = {{{', '.join(values)}}}"

    def _initial_value(self, *, floating: bool, static: bool) -> str:
        if static:
            return self._expressions.constant(floating=self._random.random() < 0.2 or floating)
        return self._expressions.number(self._random.randint(0, 2))

    def _assign(self, level: int) -> None:
        first, second = self._random.sample(("integer", "floating"), 2)
        depth = self._random.randint(0, 3)
        for meaning in (first, second):
            found = self._expressions.assignment("integer" if meaning == "integer" else "floating", depth)
            if found is not None:
                self._write(level, f"{found};")
                return
        self._declare(level)

    def _block(self, level: int, head: str, counters: tuple[Variable, ...] = ()) -> None:
        """Write a block with some statements; `counters` are declared by its head."""
        self._write(level, head)
        self._scopes.open()
        self._scopes.blocks[-1].extend(counters)
        self._scopes.open()
        for _ in range(self._random.randint(0 if level > 1 else 1, 3)):
            if self._left > 0:
                self._statement(level + 1)
        self._scopes.close()
        self._scopes.close()
        self._write(level, "}")

    def _if(self, level: int) -> None:
        self._block(level, f"if ({self._expressions.number(2)}) {{")
        if self._random.random() < 0.4:
            self._block(level, "else {")

    def _loop(self, level: int) -> None:
        if self._loops >= 3 or self._turns > TURNS_MAX:
            self._assign(level)
            return
        self._loops += 1
        way = self._random.random()
        turns = self._turns
        if way < 0.45:
            self._counting_loop(level)
        elif way < 0.6:
            self._array_loop(level)
        elif way < 0.75:
            self._turns *= 4
            test = self._test(level, 1)
            self._block(level, f"for (; {test}; {self._expressions.number(1)}) {{")
        elif way < 0.9:
            self._turns *= 4
            self._block(level, f"while ({self._test(level, 2)}) {{")
        else:
            self._turns *= 4
            test = self._test(level, 2)
            self._block(level, "do {")
            self._lines[-1] += f" while ({test});"
        self._turns = turns
        self._loops -= 1

    def _test(self, level: int, depth: int) -> str:
        """Return the test of a loop; most loops also count in it, or they would turn until their fuel is used up."""
        test = self._expressions.number(depth)
        if self._random.random() < 0.25:
            return test
        name = self._scopes.name()
        self._write(level, f"int {name} = 0;")
        self._scopes.blocks[-1].append(Variable(name, floating=False, below=5))
        return f"({test}) && {name}++ < {self._random.randint(1, 4)}"

    def _counting_loop(self, level: int) -> None:
        """Write a loop that counts up or down, as the prover expects it or nearly so."""
        random = self._random
        name, kind = self._scopes.name(), random.choice(INTEGER_TYPES)
        count, step = random.randint(1, 6), random.choice((1, 1, 1, 1, 2, 3))
        first = random.choice((0, 0, 0, 1))
        spelled_step = random.choice((f"{name}++", f"++{name}", f"{name} += 1")) if step == 1 else f"{name} += {step}"
        test = random.choice((f"{name} < {count}", f"{name} < {count}", f"{name} <= {count - 1}"))
        start = first
        if random.random() < 0.2:
            start, test = count - 1, f"{name} >= {first}"
            spelled_step = random.choice((f"{name}--", f"{name} -= {step}", f"{name} = {name} - {step}"))
        if random.random() < 0.1:
            test = f"{name} != {count}"
        if random.random() < 0.1:
            test = f"{name} < {self._expressions.varying(1)}"
        # A counter with a bound is left alone by the body; without one it is a variable like any other.
        below = count if random.random() < 0.9 else None
        counter = Variable(name, floating=False, below=below)
        self._turns *= count
        if random.random() < 0.75:
            self._block(level, f"for ({kind} {name} = {start}; {test}; {spelled_step}) {{", (counter,))
            return
        self._write(level, f"{kind} {name};")
        self._block(level, f"for ({name} = {start}; {test}; {spelled_step}) {{", (counter,))
        self._scopes.blocks[-1].append(Variable(name, floating=False))

    def _array_loop(self, level: int) -> None:
        """Write a loop over a dynamic array."""
        array = self._expressions.array()
        if array is None:
            self._counting_loop(level)
            return
        name = self._scopes.name()
        counter = Variable(name, floating=False, counts=array)
        self._turns *= 4
        kind = self._random.choice(("int", "long", "unsigned", "char"))
        self._block(level, f"for ({kind} {name} = 0; {name} < length({array}); {name}++) {{", (counter,))

    def _write_output(self, level: int) -> None:
        """Assign a text or say how long an array of `output` is, or else assign a number."""
        written = [place for place in self._places if place.written and place.meaning in ("text", "array")]
        if not written:
            self._assign(level)
            return
        place = self._random.choice(written)
        spelled = self._expressions.spell(place)
        if place.meaning == "text":
            self._write(level, f"{spelled} = {self._expressions.text(room=place.room)};")
        else:
            self._write(level, self._sized(place, spelled))

    def _sized(self, place: Place, spelled: str) -> str:
        fits = self._random.random() < 0.8
        length = str(self._random.randint(0, place.room or 0)) if fits else self._expressions.varying(1)
        return f"{place.sizing} = {length};" if place.sizing else f"resize({spelled}, {length});"

    def _return(self, level: int) -> None:
        random, ports = self._random, self._signature.ports
        way = random.random()
        if way < 0.6:
            value = str(random.randrange(ports)) if ports else "1"
        elif ports and way < 0.9:
            value = f"(unsigned)({self._expressions.integer(2)}) % {ports}"
        else:
            value = self._expressions.number(2)
        self._write(level, f"return {value};")
