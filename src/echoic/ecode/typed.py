"""The checked program: every name resolved, every conversion written out, every address reduced to numbers.

The checker makes this tree of either spelling (`parser`, `python_spelling`); both back ends (`native`,
`generated_python`), the prover and the cost analysis read it. Nothing in it needs to be asked twice: an operator's
operands have the type in which it computes, a field is an offset and some indexes.

Nodes are compared by identity, so that an analysis can keep what it found about one in a dictionary of its own.

    output.mean = sum / 9361      Assign(Location(output.mean), Arithmetic("/", Load(sum), Constant(9361.0), FLOAT64))
    input.cells[i].speed          Load(Location(input, element=Element(Location(input.cells), i), field=speed))
"""

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from echoic.ecode.numbers import CHAR, FLOAT64, INT32, INT64, Number

if TYPE_CHECKING:
    from echoic.formats import Field

__all__ = [
    "Arithmetic",
    "Assign",
    "AssignText",
    "Block",
    "Break",
    "Choose",
    "Compare",
    "Constant",
    "ContextCall",
    "Continue",
    "Convert",
    "Declare",
    "Element",
    "Evaluate",
    "If",
    "Index",
    "Invert",
    "Length",
    "Load",
    "Local",
    "Location",
    "Logical",
    "Loop",
    "MathCall",
    "Negate",
    "Not",
    "Place",
    "Position",
    "Resize",
    "Return",
    "Root",
    "Sequence",
    "Statement",
    "Text",
    "TextByte",
    "TextEqual",
    "TextField",
    "TextLiteral",
    "Update",
    "Value",
    "Variable",
]

Position: TypeAlias = tuple[int, int]
"""Line and column, both from 1."""

Root: TypeAlias = Literal["input", "output", "param", "context"]


class Variable(msgspec.Struct, frozen=True, eq=False):
    """A local or static variable. Statics have a place in the block of statics, and a value to start with."""

    name: str
    number: Number
    dimensions: tuple[int, ...]
    static: bool
    constant: bool
    serial: int
    """Unique in the program: two variables of different scopes may have one name."""
    offset: int = 0
    """Where a static begins in the block of statics."""
    initial: tuple[int | float, ...] = ()
    """The values of a static, row major; as many as it has elements."""

    @property
    def count(self) -> int:
        """How many elements it has; 1 if it is no array."""
        count = 1
        for dimension in self.dimensions:
            count *= dimension
        return count


class Index(msgspec.Struct, frozen=True, eq=False):
    """One index that is known at run time only; constant ones are part of an offset."""

    value: "Value"
    """Of type INT64."""
    length: int
    """The index must lie in 0 .. length - 1, or the event faults."""
    stride: int
    """In bytes."""
    at: Position


class Local(msgspec.Struct, frozen=True, eq=False):
    """A variable, or an element of one."""

    variable: Variable
    offset: int
    """In bytes from the start of the variable."""
    indexes: tuple[Index, ...]
    at: Position

    @property
    def number(self) -> Number:
        """The type of what lies there."""
        return self.variable.number


class Element(msgspec.Struct, frozen=True, eq=False):
    """One step of a dynamic array: what the slot at `array` points at, `index` steps further."""

    array: "Location"
    """Where the slot lies; its `field` is the dynamic array."""
    index: "Value"
    """Of type INT64, perhaps a Constant; must be less than the array's length, or the event faults."""
    step: int
    """Bytes of one step of the dynamic dimension, fixed inner dimensions included."""
    at: Position


class Location(msgspec.Struct, frozen=True, eq=False):
    """A place in a record: `offset` bytes and some indexes from the start of the record, or of an element.

    `field` is the field that was named last; `path` are all names without indexes, as in `("cells", "speed")`.
    """

    root: Root
    path: tuple[str, ...]
    field: "Field"
    offset: int
    indexes: tuple[Index, ...]
    element: Element | None
    number: Number | None
    """The type of what lies there; None for a slot, and for a whole char array."""
    at: Position


Place: TypeAlias = Local | Location


class Constant(msgspec.Struct, frozen=True, eq=False):
    """A number. The value is an int if the type is an integer's, else a float."""

    value: int | float
    number: Number
    at: Position


class Load(msgspec.Struct, frozen=True, eq=False):
    """What lies at a place. A BOOL field is 0 or 1 whatever its byte is."""

    place: Place
    number: Number
    at: Position


class Convert(msgspec.Struct, frozen=True, eq=False):
    """A value as another type has it (`numbers.convert`)."""

    value: "Value"
    number: Number
    at: Position


class Negate(msgspec.Struct, frozen=True, eq=False):
    """`-value`; integers wrap."""

    value: "Value"
    number: Number
    at: Position


class Invert(msgspec.Struct, frozen=True, eq=False):
    """`~value`."""

    value: "Value"
    number: Number
    at: Position


class Not(msgspec.Struct, frozen=True, eq=False):
    """`!value`: 1 if it is zero, else 0."""

    value: "Value"
    at: Position
    number: Number = INT32


class Arithmetic(msgspec.Struct, frozen=True, eq=False):
    """`+ - * / % & | ^ << >>` of two values of type `number` (for shifts `right` may be of another integer type).

    Integers wrap. Division truncates towards zero; by zero it faults; the smallest by -1 wraps. Shift amounts are
    masked to the width of `number`. `>>` of a negative number keeps the sign.
    """

    operator: str
    left: "Value"
    right: "Value"
    number: Number
    at: Position


class Compare(msgspec.Struct, frozen=True, eq=False):
    """`== != < > <= >=` of two values of one type: 1 or 0. Comparisons with NaN are false, but for `!=`."""

    operator: str
    left: "Value"
    right: "Value"
    at: Position
    number: Number = INT32


class Logical(msgspec.Struct, frozen=True, eq=False):
    """`&&` or `||`: 1 or 0; the right side is evaluated only if it decides. Operands are of any types."""

    operator: str
    left: "Value"
    right: "Value"
    at: Position
    number: Number = INT32


class Choose(msgspec.Struct, frozen=True, eq=False):
    """`test ? yes : no`; only one of both is evaluated. `yes` and `no` are of type `number`."""

    test: "Value"
    yes: "Value"
    no: "Value"
    number: Number
    at: Position


class Sequence(msgspec.Struct, frozen=True, eq=False):
    """`first, second`: evaluates both, is the second."""

    first: "Value"
    second: "Value"
    number: Number
    at: Position


class Assign(msgspec.Struct, frozen=True, eq=False):
    """`place = value`; is what was stored. The value, already of the place's type, is evaluated before the place."""

    place: Place
    value: "Value"
    number: Number
    at: Position


class Update(msgspec.Struct, frozen=True, eq=False):
    """`place op= value`, `++place`, `place++`.

    The place's address is evaluated once and first; then the place is loaded and converted to `computed`, then `value`
    (of that type, for shifts of any integer type) is evaluated, the result is converted back and stored. Is what was
    stored, or, if `post`, what was there before.
    """

    place: Place
    operator: str
    value: "Value"
    computed: Number
    post: bool
    number: Number
    at: Position


class MathCall(msgspec.Struct, frozen=True, eq=False):
    """A function of the whitelist (`mathematics.FUNCTIONS`) of FLOAT64 values."""

    function: str
    arguments: tuple["Value", ...]
    at: Position
    number: Number = FLOAT64


class TextLiteral(msgspec.Struct, frozen=True, eq=False):
    """A string in the program."""

    data: bytes
    at: Position


class TextField(msgspec.Struct, frozen=True, eq=False):
    """The text of a string or bytes field, or of a char array up to its first NUL. A null slot is an empty text."""

    location: Location
    at: Position


Text: TypeAlias = TextLiteral | TextField


class TextByte(msgspec.Struct, frozen=True, eq=False):
    """One byte of the text of a string or bytes field; an index outside of it faults."""

    text: TextField
    index: "Value"
    at: Position
    number: Number = CHAR


class TextEqual(msgspec.Struct, frozen=True, eq=False):
    """`==` or `!=` of two texts: 1 or 0. Two fields with slots, of one length, burn fuel by the length."""

    operator: str
    left: Text
    right: Text
    at: Position
    number: Number = INT32


class Length(msgspec.Struct, frozen=True, eq=False):
    """`strlen(text)`, or `length(array)` of a dynamic array: how many steps it has.

    In `output` an array's length is what its sizing field, or `resize`, has said so far.
    """

    of: Text | Location
    at: Position
    number: Number = INT64


Value: TypeAlias = (
    Constant
    | Load
    | Convert
    | Negate
    | Invert
    | Not
    | Arithmetic
    | Compare
    | Logical
    | Choose
    | Sequence
    | Assign
    | Update
    | MathCall
    | TextByte
    | TextEqual
    | Length
)


class Block(msgspec.Struct, frozen=True, eq=False):
    """Statements one after the other."""

    statements: tuple["Statement", ...]
    at: Position


class Declare(msgspec.Struct, frozen=True, eq=False):
    """Where a local variable begins to live: its elements become zero, then the first ones get these values."""

    variable: Variable
    values: tuple[Value, ...]
    at: Position


class Evaluate(msgspec.Struct, frozen=True, eq=False):
    """A value for its effect."""

    value: Value
    at: Position


class AssignText(msgspec.Struct, frozen=True, eq=False):
    """`output.name = text`: a string or bytes field is replaced; a char array too, and a longer text faults.

    Only a top-level text field of `output`, or one of a nested record that is no array's element, can be a target.
    What is copied from one field with a slot to another burns fuel by its length.
    """

    target: Location
    text: Text
    at: Position


class Resize(msgspec.Struct, frozen=True, eq=False):
    """`resize(output.values, n)`: the length of a dynamic array without a sizing field; beyond its capacity faults."""

    array: Location
    length: Value
    at: Position


class ContextCall(msgspec.Struct, frozen=True, eq=False):
    """`context.vent(0.5)`: writes down that a function of the source is to be called when the event's code has ended.

    Arguments are of type FLOAT64. One call too many faults, after its arguments are evaluated.
    """

    function: int
    """Its place in `ContextUse.functions`."""
    arguments: tuple[Value, ...]
    at: Position


class If(msgspec.Struct, frozen=True, eq=False):
    """`if (test) yes else no`."""

    test: Value
    yes: "Statement"
    no: "Statement | None"
    at: Position


class Loop(msgspec.Struct, frozen=True, eq=False):
    """`for`, `while` and `do`: what stands before the first test is in the block around it.

    `before` is the statement just before the loop, for the prover: `for (i = 0; ...)` or `for (int i = 0; ...)`.
    """

    test: Value | None
    step: Value | None
    body: "Statement"
    test_first: bool
    before: "Statement | None"
    at: Position


class Return(msgspec.Struct, frozen=True, eq=False):
    """`return value`, as INT32."""

    value: Value
    at: Position


class Break(msgspec.Struct, frozen=True, eq=False):
    """Leave the innermost loop."""

    at: Position


class Continue(msgspec.Struct, frozen=True, eq=False):
    """Go on with the innermost loop's step and test."""

    at: Position


Statement: TypeAlias = (
    Block | Declare | Evaluate | AssignText | Resize | ContextCall | If | Loop | Return | Break | Continue
)

NODES_MAX: Final = 2000
