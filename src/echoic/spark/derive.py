"""Derivations on the executors of Spark: the code of a derived channel over the rows of any frame, batch or stream.

    cheap = derive(trades, "input.price < param.low", params={"low": 71.5})
    means = derive(fields, "{ output.mean = (input.low + input.high) / 2; return 1; }", "Mean{mean: float}")

There are two ways, and the result is the same: that of the same code at a source (`Channel.derive`).

    columns     the code as SQL expressions, which Spark optimises, pushes down to files and compiles for itself
    kernel      the code compiled by echoic, in the Python workers, over Arrow batches of the columns that it names

`auto` takes columns wherever SQL can say what C means (`echoic.ecode.sql`), because the way from Java to Python and
back costs more than most code does. `explain_derivation` tells which way it is, and why not the other, with the place
in the code. Where the data comes from a journal there is a third and faster way: give the code to the source, as its
option `derive`, so that only what passes comes to Spark at all.

What is different from a source:

* A row with a null in a field that the code names is left out.
* Static variables belong to a partition of the frame, and are never said in SQL.
* An event at which the code faults is left out; workers write into their logs how many, and `Derivation.faults` counts
  them as far as Spark's accumulators do. Code that may fault is never said in SQL.
* A transform keeps the columns that the journal has for itself (`_sequence`, `_time` ...), so that windows over the
  time of events work behind it.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import pyarrow
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import StructField, StructType

from echoic.ecode import Signature, check, parameter_format, spelled
from echoic.ecode.sql import Refusal, Translation, translate
from echoic.errors import PipelineError
from echoic.formats import Format
from echoic.spark.frame_types import check_columns, format_of_frame, format_of_type
from echoic.spark.kernel_frames import FrameCode, FrameRun, named_format
from echoic.spark.schema import METADATA, arrow_schema_of, struct_of
from echoic.wire import Batch

if TYPE_CHECKING:
    from pyspark import Accumulator

    ArrowArray: TypeAlias = pyarrow.Array[Any]
else:
    ArrowArray = pyarrow.Array  # Spark looks at annotations, and knows this one

__all__ = ["Code", "Derivation", "How", "Way", "derive", "explain_derivation"]

Code: TypeAlias = str | Callable[..., object]
How: TypeAlias = Literal["auto", "columns", "kernel"]
Way: TypeAlias = Literal["columns", "kernel"]

WAYS: Final = ("auto", "columns", "kernel")
ROW_NUMBER: Final = "unused"


class Derivation:
    """How a derivation is done on frames with one schema."""

    def __init__(
        self, frame_code: FrameCode, made: Format | None, named: tuple[str, ...], kept: tuple[str, ...]
    ) -> None:
        self.way: Way = "kernel"
        """`columns` or `kernel`."""
        self.reason = ""
        """Why it is that way."""
        self.position = (0, 0)
        """Where in the code the reason is: line and column, 0 if nowhere."""
        self.sql: Translation | None = None
        """The SQL, if the way is `columns`."""
        self._code = frame_code
        self._made = made
        self._named = named
        self._kept = kept
        self._counters: list[Accumulator[int]] = []

    def __repr__(self) -> str:
        place = f" - at line {self.position[0]}, column {self.position[1]}" if self.position[0] else ""
        return f"<derivation by {self.way}: {self.reason}{place}>"

    @property
    def faults(self) -> int:
        """How many events were left out because the code faulted on them, in tasks that have ended."""
        return sum(counter.value for counter in self._counters)

    def apply(self, frame: DataFrame) -> DataFrame:
        """Return what is derived from a frame that has the schema for which this was made."""
        if self.sql is not None:
            return self._by_columns(frame, self.sql)
        return self._filtered(frame) if self._made is None else self._transformed(frame, self._made)

    def _by_columns(self, frame: DataFrame, translation: Translation) -> DataFrame:
        passed = frame.where(translation.where)
        if self._made is None:
            return passed
        types = struct_of(self._made, metadata=False)
        made = [
            sql.expr(text).cast(types[name].dataType).alias(name, metadata=types[name].metadata)
            for name, text in translation.columns
        ]
        return passed.select(*made, *(f"`{name}`" for name in self._kept))

    def _filtered(self, frame: DataFrame) -> DataFrame:
        code, names, counter = self._code, self._named, self._counter(frame)

        def passes(batches: Iterator[tuple[ArrowArray, ...]]) -> Iterator[ArrowArray]:
            run = FrameRun(code)
            for batch in batches:
                columns = _columns(batch)
                yield run.passed(dict(zip(names, columns, strict=False)), len(columns[0]))
            _conclude(run, counter)

        made: Callable[..., Any] = arrow_udf  # its stubs ask for an argument that Spark advises against
        function = made(passes, "boolean")
        if code.program().statics:
            function = function.asNondeterministic()
        columns = [sql.col(f"`{name}`") for name in names] or [sql.lit(0)]
        return frame.where(function(*columns))

    def _transformed(self, frame: DataFrame, made: Format) -> DataFrame:
        code, kept, counter = self._code, self._kept, self._counter(frame)
        known = [frame.schema[name] for name in kept]
        struct = StructType(
            [
                *struct_of(made, metadata=False),
                *(StructField(field.name, field.dataType, metadata=field.metadata) for field in known),
            ]
        )
        schema = arrow_schema_of(struct)

        def transform(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            run = FrameRun(code)
            yield from run.transformed(batches, schema, kept)
            _conclude(run, counter)

        wanted = [f"`{name}`" for name in dict.fromkeys((*self._named, *kept))]
        chosen = frame.select(*wanted) if wanted else frame.select(sql.lit(0).alias(ROW_NUMBER))
        return chosen.mapInArrow(transform, struct)

    def _counter(self, frame: DataFrame) -> "Accumulator[int] | None":
        """Return what workers count faults with; a client of a Spark Connect server has none."""
        if not isinstance(frame, ClassicFrame):
            return None
        counter = frame.sparkSession.sparkContext.accumulator(0)
        self._counters.append(counter)
        return counter


def derive(
    frame: DataFrame,
    code: Code,
    output: object | None = None,
    params: object | None = None,
    *,
    how: How = "auto",
    declared: object | None = None,
    keep: Sequence[str] | None = None,
) -> DataFrame:
    """Return the rows that a derivation makes of those of a frame.

    Args:
        frame: Any frame, of a batch or of a stream.
        code: E-Code (a body in braces, or for a filter an expression), a Python function limited to the same subset, or
            the text of one. It sees the columns of a row as fields of `input`.
        output: The type of the rows that come out: a class, a format or a text such as `Mean{at: float}`. Without one
            the code is a filter, and rows pass as they are.
        params: What the code knows as `param`: a mapping of values, or an object of an event class.
        how: Which way: `columns`, `kernel`, or `auto` for columns wherever that can be.
        declared: The type of the events that the rows are, if the code depends on what Spark's types do not tell, such
            as unsigned fields and the lengths of arrays.
        keep: The columns that a transform keeps behind those of the output; without it, those that a journal has for
            itself.

    Raises:
        ECodeError: The code is wrong; the message shows where.
        FormatError: The output or the parameters cannot have a type.
        EncodeError: The parameters do not fit theirs.
        PipelineError: The frame does not have the columns, or the code cannot be said in columns as `how` asks.
    """
    return explain_derivation(frame, code, output, params, how=how, declared=declared, keep=keep).apply(frame)


def explain_derivation(
    frame: DataFrame,
    code: Code,
    output: object | None = None,
    params: object | None = None,
    *,
    how: How = "auto",
    declared: object | None = None,
    keep: Sequence[str] | None = None,
) -> Derivation:
    """Return how a derivation of a frame is done, and why; args and errors are those of `derive`."""
    if how not in WAYS:
        raise PipelineError(f"`how` is one of {', '.join(WAYS)}, got {how!r}")
    schema = _schema(frame)
    text, spelling = spelled(code)
    given = format_of_type(declared) if declared is not None else format_of_frame(schema)
    made = format_of_type(output) if output is not None else None
    block = parameter_format(params) if params is not None else None
    values = bytes(Batch.of([params], block).records) if block is not None else b""
    program = check(text, Signature(given, made, block), file="<derive>", spelling=spelling)
    named = frozenset(path[0] for root, path in program.used if root == "input" and path)
    if declared is not None:
        check_columns(schema, given, named)
    frame_code = FrameCode(
        text,
        spelling,
        named_format(program).descriptor,
        made.descriptor if made is not None else b"",
        block.descriptor if block is not None else b"",
        values,
    )
    derivation = Derivation(frame_code, made, tuple(sorted(named)), _kept(schema, made, keep))
    _choose(derivation, translate(program, values), how, schema)
    return derivation


def _schema(frame: DataFrame) -> StructType:
    try:
        return frame.schema
    except PySparkException as error:
        raise PipelineError(f"the frame has no schema: {str(error).partition(chr(10))[0]}") from error


def _kept(schema: StructType, made: Format | None, keep: Sequence[str] | None) -> tuple[str, ...]:
    if made is None:
        return ()
    if keep is None:
        return tuple(name for name in METADATA if name in schema.names and name not in made.by_name)
    for name in keep:
        if name not in schema.names:
            raise PipelineError(f"cannot keep column `{name}`, the frame has {', '.join(schema.names[:12])}")
        if name in made.by_name:
            raise PipelineError(f"cannot keep column `{name}`: the output has a field of that name")
    return tuple(dict.fromkeys(keep))


def _choose(derivation: Derivation, translation: Translation | Refusal, how: How, schema: StructType) -> None:
    """Decide which way a derivation goes."""
    if isinstance(translation, Translation) and _ambiguous(schema):
        translation = Refusal("names of columns differ in case only, which SQL does not tell apart", (0, 0))
    if isinstance(translation, Refusal):
        derivation.reason, derivation.position = translation.reason, translation.position
        if how == "columns":
            line, column = translation.position
            place = f" - at line {line}, column {column}" if line else ""
            raise PipelineError(f"the code cannot be said in columns: {translation.reason}{place}")
        return
    if how == "kernel":
        derivation.reason = "that was asked for"
        return
    derivation.way, derivation.sql = "columns", translation
    derivation.reason = "SQL can say what the code means"


def _ambiguous(schema: StructType) -> bool:
    return len({name.lower() for name in schema.names}) < len(schema.names)


def _columns(batch: Any) -> tuple[ArrowArray, ...]:  # noqa: ANN401 - Spark gives a single column as it is
    return batch if isinstance(batch, tuple) else (batch,)


def _conclude(run: FrameRun, counter: "Accumulator[int] | None") -> None:
    """Tell, at the end of a task, what has faulted in it."""
    run.tell()
    if counter is not None and run.faults:
        counter.add(run.faults)
