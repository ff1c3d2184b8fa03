"""Random expressions of E-Code: every operator, over whatever a program can name at that point.

An expression is drawn as an integer or as a floating number, since C refuses `%`, `~` and shifts of the latter. Two
things would be refused as mistakes and are avoided: a constant index outside of its array and a constant division by
zero. At run time both are frequent enough, but not so frequent that programs do nothing else.
"""

import math
from random import Random
from typing import Final

from echoic.ecode.mathematics import FUNCTIONS
from echoic.testing.ecode_fuzz_places import Hole, Meaning, Place, Scopes
from echoic.testing.ecode_fuzz_types import FLOATS

__all__ = ["FLOATING_TYPES", "INTEGER_TYPES", "Expressions"]

INTEGER_TYPES: Final = (
    "char",
    "signed char",
    "unsigned char",
    "short",
    "unsigned short",
    "int",
    "int",
    "unsigned",
    "unsigned int",
    "long",
    "unsigned long",
    "long long",
    "unsigned long long",
    "int8_t",
    "uint8_t",
    "int16_t",
    "uint16_t",
    "int32_t",
    "uint32_t",
    "int64_t",
    "uint64_t",
)
FLOATING_TYPES: Final = ("float", "double", "double")
INTEGERS: Final = (
    *(0, 1, 1, 2, 3, 4, 5, 7, 8, 10, 31, 32, 33, 63, 64, 100, 127, 128, 255, 256, 1000, 32767, 32768, 65535, 65536),
    *(2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1),
)
SUFFIXES: Final = ("", "", "", "", "u", "l", "ul", "ll", "ULL")
CHARACTERS: Final = ("'a'", "'Z'", "'0'", r"'\n'", r"'\0'", r"'\\'", r"'\''", r"'\x41'", r"'\t'")
TEXTS: Final = ('""', '"a"', '"IBM"', '"SUNW"', r'"\xff\xfe"', '"exactly8"', r'"a\tb"', '"IB"')
INDEXES_NESTED_MAX: Final = 3
CHECKS: Final = ("isnan", "isinf", "isfinite")
CALLED: Final = tuple(sorted(set(FUNCTIONS) - set(CHECKS)))


class Expressions:
    """Draws expressions."""

    def __init__(self, random: Random, places: list[Place], scopes: Scopes) -> None:
        self._random = random
        self._places = places
        self._scopes = scopes
        self._inside = 0  # how many places are being spelled inside of each other

    def integer(self, depth: int) -> str:
        """Return an expression with an integer type."""
        random = self._random
        if depth <= 0 or random.random() < 0.1:
            return self._integer_leaf()
        way = random.random()
        if way < 0.4:
            return self._integer_operation(depth - 1)
        if way < 0.52:
            operator = random.choice(("==", "!=", "<", ">", "<=", ">="))
            return f"({self.number(depth - 1)} {operator} {self.number(depth - 1)})"
        if way < 0.6:
            operator = random.choice(("&&", "||"))
            return f"({self.number(depth - 1)} {operator} {self.number(depth - 1)})"
        if way < 0.68:
            return f"{random.choice('-~+')}({self.integer(depth - 1)})"
        if way < 0.72:
            return f"!({self.number(depth - 1)})"
        if way < 0.78:
            return f"({self.number(depth - 1)} ? {self.integer(depth - 1)} : {self.integer(depth - 1)})"
        if way < 0.86:
            return f"({random.choice(INTEGER_TYPES)})({self.number(depth - 1)})"
        if way < 0.92:
            return self._effect("integer", depth - 1)
        if way < 0.94:
            return f"({self.number(depth - 1)}, {self.integer(depth - 1)})"
        if way < 0.96:
            return f"{random.choice(CHECKS)}({self.number(depth - 1)})"
        return self._text_test()

    def floating(self, depth: int) -> str:
        """Return an expression with a floating type."""
        random = self._random
        if depth <= 0 or random.random() < 0.1:
            return self._floating_leaf()
        way = random.random()
        if way < 0.5:
            left, right = self.floating(depth - 1), self.number(depth - 1)
            if random.random() < 0.5:
                left, right = right, left
            return f"({left} {random.choice('+-*/')} {right})"
        if way < 0.58:
            return f"{random.choice('-+')}({self.floating(depth - 1)})"
        if way < 0.72:
            return self._call(depth - 1)
        if way < 0.8:
            return f"({self.number(depth - 1)} ? {self.floating(depth - 1)} : {self.number(depth - 1)})"
        if way < 0.92:
            return f"({random.choice(FLOATING_TYPES)})({self.number(depth - 1)})"
        return self._effect("floating", depth - 1)

    def number(self, depth: int) -> str:
        """Return an expression of either type."""
        return self.integer(depth) if self._random.random() < 0.6 else self.floating(depth)

    def index(self, hole: Hole, array: str = "") -> str:
        """Return an index for a hole: mostly one that fits, and sometimes not."""
        random = self._random
        counters = [one for one in self._scopes.visible() if one.below is not None or one.counts]
        fitting = [
            one.name
            for one in counters
            if (one.counts and one.counts == array)
            or (hole.length is not None and one.below is not None and one.below <= hole.length)
        ]
        way = random.random()
        if fitting and way < 0.5:
            return random.choice(fitting)
        if way < 0.7 or self._inside > INDEXES_NESTED_MAX:
            return str(random.randrange(hole.length if hole.length is not None else 3))
        if hole.length is not None and way < 0.9:
            return f"({self.varying(1)}) & {(1 << (hole.length.bit_length() - 1)) - 1}"
        if counters and way < 0.97:
            return f"{random.choice(counters).name} {random.choice('+-')} {self.varying(0)}"
        return self.varying(1)

    def varying(self, depth: int) -> str:
        """Return an integer that no compiler can know."""
        leaf = self._name_of("integer") or f"(int)({self._name_of('floating')})"
        if depth <= 0 or self._random.random() < 0.4:
            return leaf
        return f"({leaf} {self._random.choice('+-^|&')} {self.integer(depth - 1)})"

    def divisor(self, depth: int) -> str:
        """Return what an integer can be divided by, as a rule."""
        way = self._random.random()
        if way < 0.3:
            return self._random.choice(("1", "2", "3", "7", "-1", "10u", "255", "4294967297"))
        return f"({self.varying(depth)} | 1)" if way < 0.85 else self.varying(depth)

    def text(self, *, literal: bool = True, room: int | None = None) -> str | None:
        """Return a text, None if there is none; a literal is not longer than `room`."""
        places = [place for place in self._places if place.meaning == "text"]
        if literal and (not places or self._random.random() < 0.4):
            return self._random.choice([text for text in TEXTS if room is None or _text_length(text) <= room])
        return self.spell(self._random.choice(places)) if places else None

    def array(self) -> str | None:
        """Return a dynamic array, None if there is none."""
        places = [place for place in self._places if place.meaning == "array"]
        return self.spell(self._random.choice(places)) if places else None

    def constant(self, *, floating: bool) -> str:
        """Return a constant expression, such as a static can start with."""
        first = self._floating_literal() if floating else self._integer_literal()
        way = self._random.random()
        if way < 0.6:
            return first
        if way < 0.8:
            return f"-{first}"
        return f"({first} {self._random.choice('+-*')} {self._random.randrange(9)})"

    def spell(self, place: Place) -> str:
        """Return a place with its indexes."""
        spelled = ""
        self._inside += 1
        for piece in place.pieces:
            spelled += piece if isinstance(piece, str) else f"[{self.index(piece, spelled)}]"
        self._inside -= 1
        return spelled

    def written(self, meaning: Meaning) -> Place | None:
        """Return a number that can be assigned to, None if there is none."""
        places = [place for place in self._places if place.written and place.meaning == meaning]
        variables = [variable.place() for variable in self._scopes.visible()]
        variables = [place for place in variables if place.written and place.meaning == meaning]
        chosen = variables if variables and (not places or self._random.random() < 0.6) else places
        return self._random.choice(chosen) if chosen else None

    def assignment(self, meaning: Meaning, depth: int) -> str | None:
        """Return an assignment, plain or with an operator, None if nothing can be assigned to."""
        chosen = self.written(meaning)
        if chosen is None:
            return None
        place, way = self.spell(chosen), self._random.random()
        if way < 0.5:
            return f"{place} = {self.number(depth)}"
        if chosen.truth:
            depth = 0  # what is joined to a `bool` must have no effects
        elif way < 0.65:
            return self._random.choice((f"{place}++", f"++{place}", f"{place}--", f"--{place}"))
        if meaning == "floating":
            return f"{place} {self._random.choice('+-*/')}= {self.number(depth)}"
        operator = self._random.choice(("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"))
        return f"{place} {operator}= {self._operand(operator, depth)}"

    def _effect(self, meaning: Meaning, depth: int) -> str:
        found = self.assignment(meaning, depth)
        if found is None:
            return self._integer_leaf() if meaning == "integer" else self._floating_leaf()
        return f"({found})"

    def _integer_operation(self, depth: int) -> str:
        operator = self._random.choice(("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"))
        return f"({self.integer(depth)} {operator} {self._operand(operator, depth)})"

    def _operand(self, operator: str, depth: int) -> str:
        """Return what may stand on the right of an operator between integers."""
        if operator in "/%":
            return self.divisor(depth)
        if operator in ("<<", ">>") and self._random.random() < 0.6:
            return str(self._random.randrange(12))
        return self.integer(depth)

    def _call(self, depth: int) -> str:
        function = self._random.choice(CALLED)
        return f"{function}({', '.join(self.number(depth) for _ in range(FUNCTIONS[function]))})"

    def _text_test(self) -> str:
        left = self.text(literal=False)
        if left is None:
            return self._integer_leaf()
        return f"({left} {self._random.choice(('==', '!='))} {self.text()})"

    def _integer_leaf(self) -> str:
        way = self._random.random()
        if way < 0.3:
            return self._integer_literal()
        if way < 0.36:
            text = self.text(literal=False)
            return self._integer_literal() if text is None else f"strlen({text})"
        if way < 0.42:
            array = self.array()
            return self._integer_literal() if array is None else f"length({array})"
        return self._name_of("integer") or self._integer_literal()

    def _floating_leaf(self) -> str:
        if self._random.random() < 0.3:
            return self._floating_literal()
        return self._name_of("floating") or self._floating_literal()

    def _name_of(self, meaning: Meaning) -> str | None:
        """Return a field or a variable of some type, None if there is none."""
        places = [place for place in self._places if place.meaning == meaning]
        variables = [variable.place() for variable in self._scopes.visible() if not variable.constant]
        variables = [place for place in variables if place.meaning == meaning]
        chosen = variables if variables and (not places or self._random.random() < 0.5) else places
        if not chosen:
            return None
        plain = [place for place in chosen if not any(isinstance(piece, Hole) for piece in place.pieces)]
        chosen = plain if plain and self._random.random() < 0.6 else chosen
        return self.spell(self._random.choice(chosen))

    def _integer_literal(self) -> str:
        random = self._random
        if random.random() < 0.1:
            return random.choice(CHARACTERS)
        value = random.choice(INTEGERS) if random.random() < 0.7 else random.randrange(1 << random.randrange(1, 63))
        suffix = random.choice(SUFFIXES)
        if random.random() < 0.03:
            return f"{2**64 - 1 - random.randrange(3)}u"
        spelled = random.choice((str(value), str(value), str(value), f"0x{value:x}", f"0{value:o}"))
        return spelled + suffix

    def _floating_literal(self) -> str:
        value = self._random.choice(FLOATS) if self._random.random() < 0.5 else self._random.choice((0.5, 2.0, 1e-3))
        if not math.isfinite(value) or value == 0:
            value = 0.0
        spelled = repr(abs(value))
        return f"{spelled}f" if abs(value) < 3e38 and self._random.random() < 0.25 else spelled


def _text_length(literal: str) -> int:
    return len(literal[1:-1].encode().decode("unicode_escape"))
