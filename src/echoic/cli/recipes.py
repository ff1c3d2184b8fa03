"""Derivations on the command line: code, the types around it, parameters.

    'input.price < param.low'          code in one word
    --file cheap.ec, --file -          code from a file, or from stdin
    --output 'Mean{average: float}'    what comes out, as `pub` takes types; without it the code is a filter
    --param low=75.5                   a parameter and its value: a number, true or false, a list, else a text
    --param low:float32=75             the same with a type, as in declarations

A parameter keeps the type that it begins with, so `low=75` is an integer for ever, and `low=75.0` is not.
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from echoic.channels import Step
from echoic.cli.declaring import declared_type
from echoic.ecode import Program, Signature, Spelling, check, parameter_format
from echoic.errors import FormatError, LocalError
from echoic.formats import NATIVE, Field, Format
from echoic.formats.text_values import Bare, fit, parse_words
from echoic.wire import Batch

__all__ = ["AROUND", "Around", "Code", "decoded_block", "read_code"]

BLOCK: Final = "Parameters"  # as the types of parameter blocks are called
STDIN: Final = "-"
WORDS: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Code:
    """A derivation's code: its text, what to call it in messages, and how it is spelled."""

    text: str
    file: str
    spelling: Spelling

    def check(self, signature: Signature) -> Program:
        """Return what the code means for certain types.

        Raises:
            ECodeError: It is wrong.
            FormatError: No code can work on these types.
        """
        return check(self.text, signature, file=self.file, spelling=self.spelling)


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Around:
    """The types around a derivation's code."""

    output: Annotated[
        str,
        Parameter(
            help="What comes out: a declaration or MODULE:CLASS. Without one, events pass as they are.",
            show_default=False,
        ),
    ] = ""
    param: Annotated[
        list[str],
        Parameter(
            help="A parameter, NAME=VALUE or NAME:TYPE=VALUE; repeat it for more.", negative=(), show_default=False
        ),
    ] = field(default_factory=list)
    ports: Annotated[int, Parameter(help="How many ports a router has; its code returns the number of one.")] = 0
    capacity: Annotated[
        list[str],
        Parameter(help="NAME=N: how long a dynamic array of the output may be.", negative=(), show_default=False),
    ] = field(default_factory=list)
    python: Annotated[
        bool, Parameter(help="The code is a Python function, as in files *.py.", negative=(), show_default=False)
    ] = False

    def output_format(self) -> Format | None:
        """Return the type that comes out.

        Raises:
            FormatError: It cannot be one.
        """
        return Format.of(declared_type(self.output)).on(NATIVE) if self.output else None

    def parameters(self) -> object | None:
        """Return the parameter block as an event, None without any parameter.

        Raises:
            EncodeError: A value does not fit its type.
            FormatError: A type is not one.
        """
        fields: list[Field] = []
        values: dict[str, object] = {}
        for word in self.param:
            name, given, value = _parameter(word)
            if name in values:
                raise FormatError(f"parameter `{name}` is given twice")
            fields.append(given)
            values[name] = value
        if not fields:
            return None
        return Batch.of([values], Format.place(BLOCK, fields, NATIVE)).events()[0]

    def capacities(self) -> dict[str, int]:
        """Return how long dynamic arrays of the output may be.

        Raises:
            LocalError: A word is not NAME=N.
        """
        found: dict[str, int] = {}
        for word in self.capacity:
            name, _, size = word.partition("=")
            if not name or not size.isdecimal():
                raise LocalError(f"expected NAME=N, got `{word}` - at --capacity")
            found[name] = int(size)
        return found

    def signature(self, incoming: Format, context: Format | None = None) -> Signature:
        """Return the types that code works on whose events, and the context of their sources, are of given types.

        Raises:
            EchoicError: As the other methods do.
        """
        block = self.parameters()
        params = parameter_format(block) if block is not None else None
        capacities = tuple(sorted(self.capacities().items()))
        return Signature(incoming.on(NATIVE), self.output_format(), params, self.ports, capacities, context)


AROUND: Final = Around()


def read_code(word: str, file: str, *, python: bool) -> Code:
    """Return the code that a word or a file has.

    Raises:
        LocalError: There is neither, or both, or the file cannot be read.
    """
    if bool(word) == bool(file):
        raise LocalError("the code is given as CODE or by --file, and " + ("not twice" if word else "there is none"))
    spelling: Spelling = "python" if python or file.endswith(".py") else "ecode"
    if word:
        return Code(word, "<code>", spelling)
    try:
        text = sys.stdin.read() if file == STDIN else Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LocalError(f"cannot read {file}: {error}") from error
    return Code(text, "<stdin>" if file == STDIN else file, spelling)


def decoded_block(step: Step) -> object | None:
    """Return the parameters of a derived channel as an event, None if it has none.

    Raises:
        RemoteError: They contradict their type.
    """
    if not step.recipe.params:
        return None
    format = Format.from_descriptor(step.recipe.params)
    bounds = [0, len(step.values)] if format.variable else None
    return Batch(format, 1, [step.values], bounds).to(format).events()[0]


def _parameter(word: str) -> tuple[str, Field, object]:
    """Return name, type and value of a parameter."""
    head, equals, text = word.partition("=")
    name, typed, kind = (part.strip() for part in head.partition(":"))
    if not equals:
        raise FormatError(f"expected NAME=VALUE or NAME:TYPE=VALUE, got `{word}` - at --param")
    value = _value_of(name, text)
    if typed:
        fields = Format.of(declared_type(f"{BLOCK}{{{name}: {kind}}}")).fields
        if len(fields) != 1:
            raise FormatError(f"expected one type, got `{kind}` - at `{name}`")
        return name, fields[0], fit(value, fields[0], name)
    plain = _plain(value)
    return name, parameter_format({name: plain}).fields[0], plain


def _value_of(name: str, text: str) -> object:
    parsed = parse_words([f"{name}={text}"])
    return parsed[name] if isinstance(parsed, dict) else parsed


def _plain(value: object) -> object:
    """Return a value that has no type to fit as what it looks like."""
    match value:
        case Bare():
            return _guess(value)
        case list():
            return [_plain(item) for item in value]
        case dict():
            return {name: _plain(item) for name, item in value.items()}
        case _:
            return value


def _guess(word: Bare) -> object:
    if word.lower() in WORDS:
        return WORDS[word.lower()]
    for number in (lambda text: int(text, 0), float):
        try:
            return number(word)
        except ValueError:
            continue
    return str(word)
