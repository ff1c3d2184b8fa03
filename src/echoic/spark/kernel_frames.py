"""Compiled code over the rows of a frame: what a Python worker of Spark does with Arrow batches.

The kernel is the one that sources run (`echoic.ecode`), compiled for input that lies in columns, so nothing is copied
into records first: it reads Arrow's memory, and of that only the columns that the code names are sent to the worker.

    filter      an Arrow function over the named columns gives a column of truth values, by which Spark filters rows:
                the other columns never leave Java
    transform   `mapInArrow` over the named columns, and those that are kept, gives the columns of the output

A row with a null in a named field is left out: a record cannot say it. So is an event at which the code faults, as at a
source; these are counted, and a worker writes one line about them into its log when its task ends.

Static variables belong to the partition of a frame: the papers' rule that each source has a copy of its own. Code is
sent as text and compiled once for each worker process, in some milliseconds.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, TypeAlias

import msgspec
import numpy
import pyarrow
import pyarrow.compute

from echoic.ecode import (
    FUEL,
    Analysis,
    Fault,
    Outcome,
    Program,
    Signature,
    Spelling,
    analyse,
    check,
    compile_kernel,
    compile_native,
)
from echoic.ecode.native import Column, NativeKernel
from echoic.errors import CodegenError, EncodeError, MalformedBatchError, PipelineError
from echoic.formats import NATIVE, Field, Format, Kind, type_of
from echoic.spark.schema import fitted
from echoic.wire import Batch

__all__ = ["FrameCode", "FrameRun", "named_format"]

KERNELS_MAX: Final = 64
Array: TypeAlias = Any  # pyarrow's arrays: their stubs tell apart what is told apart here by `field`
Mask: TypeAlias = "numpy.ndarray[Any, numpy.dtype[numpy.bool_]]"
Numbers: TypeAlias = "numpy.ndarray[Any, numpy.dtype[numpy.uint32]]"

logger: Final = logging.getLogger("echoic.spark")


class FrameCode(msgspec.Struct, frozen=True):
    """A program as it travels to workers."""

    code: str
    spelling: Spelling
    input: bytes
    """The descriptor of a type with the fields that the code names, and no others."""
    output: bytes = b""
    block: bytes = b""
    """The descriptor of the parameters."""
    params: bytes = b""

    def program(self) -> Program:
        """Return the checked program.

        Raises:
            ECodeError: The code is wrong.
        """
        signature = Signature(
            Format.from_descriptor(self.input),
            Format.from_descriptor(self.output) if self.output else None,
            Format.from_descriptor(self.block) if self.block else None,
        )
        return check(self.code, signature, file="<derive>", spelling=self.spelling)


def named_format(program: Program) -> Format:
    """Return the input of a program with only the fields that its code names.

    Arrays tell their lengths themselves, as columns do: the field that does so in a record need not be there.
    """
    given = program.signature.input
    names = {path[0] for root, path in program.used if root == "input" and path}
    fields = [
        replace(field, dimensions=("", *field.dimensions[1:])) if field.sizing else field
        for field in given.fields
        if field.name in names
    ]
    return Format.place(given.name, fields or [Field("unused", Kind.BOOL, 1)], NATIVE)


class FrameRun:
    """One partition of a frame: the kernel, its static variables, and what has faulted so far."""

    def __init__(self, code: FrameCode) -> None:
        """Compile the code, or find it compiled.

        Raises:
            ECodeError: The code is wrong.
        """
        self._compiled = _compiled(code)
        self._params = code.params
        self._statics = self._compiled.program.initial_statics()
        self.faults = 0
        self._first: Fault | None = None

    def passed(self, columns: Mapping[str, Array], rows: int) -> "pyarrow.Array[Any]":
        """Return for each row whether the code lets it pass.

        Raises:
            PipelineError: A column cannot be a field of the events.
        """
        truth = numpy.zeros(rows, bool)
        truth[self._run(columns, rows)[0]] = True
        return pyarrow.array(truth)

    def transformed(
        self, batches: Iterable[pyarrow.RecordBatch], schema: pyarrow.Schema, kept: tuple[str, ...]
    ) -> Iterator[pyarrow.RecordBatch]:
        """Yield what the code makes of rows, followed by the columns that are kept.

        Raises:
            PipelineError: A column cannot be a field of the events, or what comes out has no place in Spark.
        """
        for batch in batches:
            columns = {name: batch.column(name) for name in batch.schema.names}
            selected, outcome = self._run(columns, batch.num_rows)
            made = _records(self._compiled.program, outcome)
            for name in kept:
                made = made.append_column(name, batch.column(name).take(selected))
            yield fitted(made, schema)

    def tell(self) -> None:
        """Write down what has faulted, if anything has."""
        if self._first is not None:
            logger.warning(
                "%d events of a partition are left out, the code faults: line %d, column %d: %s",
                self.faults,
                self._first.line,
                self._first.column,
                self._first.kind.text,
            )

    def _run(self, columns: Mapping[str, Array], rows: int) -> tuple[Numbers, Outcome]:
        """Return the numbers of the rows that pass, and the outcome of those that can be events."""
        compiled = self._compiled
        whole = compiled.usable(columns, rows)
        numbers = numpy.flatnonzero(whole).astype(numpy.uint32)
        if len(numbers) < rows:
            columns = {name: column.filter(pyarrow.array(whole)) for name, column in columns.items()}
        outcome = compiled.run(columns, len(numbers), self._params, self._statics)
        self.faults += len(outcome.faults)
        if outcome.faults and self._first is None:
            self._first = outcome.faults[0]
        return numbers[outcome.selected], outcome


def _records(program: Program, outcome: Outcome) -> pyarrow.RecordBatch:
    output = program.signature.output
    if output is None or outcome.records is None:
        raise PipelineError("the code is a filter and makes no events")
    try:
        return Batch(output, len(outcome.selected), [outcome.records], outcome.bounds).arrow
    except MalformedBatchError as error:
        raise PipelineError(f"the code makes what Spark has no text for: {error}") from error


class _Compiled:
    """A program, compiled for columns if that can be, else for records."""

    def __init__(self, program: Program) -> None:
        self.program: Final = program
        self._format: Final = program.signature.input
        self._paths: Final = sorted(path for root, path in program.used if root == "input" and path)
        analysis = analyse(program)
        self._native: Final = _for_columns(program, analysis)
        self._kernel: Final = compile_kernel(program, analysis) if self._native is None else None

    def usable(self, columns: Mapping[str, Array], rows: int) -> Mask:
        """Return which rows have all that the code names."""
        whole = numpy.ones(rows, bool)
        for path in self._paths:
            whole &= _usable(columns[path[0]], self._format.by_name[path[0]], path[1:], 0)
        return whole

    def run(self, columns: Mapping[str, Array], rows: int, params: bytes, statics: bytearray) -> Outcome:
        """Run over rows that can be events."""
        if self._native is not None:
            memory = {path: _memory(*_leaf(columns, self._format, path), path) for path in self._native.columns}
            return self._native.run_columns(memory, rows, params, statics, FUEL, rows + 1)
        batch = self._batch(columns, rows)
        bounds = numpy.asarray(batch.known_offsets, "=u4").tobytes() if batch.format.variable else None
        if self._kernel is None:
            raise CodegenError("there is no kernel")
        return self._kernel.run(batch.records, bounds, rows, params, statics, FUEL, rows + 1)

    def _batch(self, columns: Mapping[str, Array], rows: int) -> Batch:
        """Return the rows as records."""
        if not self._paths:
            return Batch(self._format, rows, [bytes(rows * self._format.size)], None)
        arrays = [_cast(columns[field.name], field, (field.name,)) for field in self._format.fields]
        names = [field.name for field in self._format.fields]
        try:
            return Batch.of(pyarrow.RecordBatch.from_arrays(arrays, names), self._format).to(self._format)
        except EncodeError as error:
            raise PipelineError(f"rows cannot be events: {error}") from error


@lru_cache(KERNELS_MAX)
def _compiled(code: FrameCode) -> _Compiled:
    return _Compiled(code.program())


def _for_columns(program: Program, analysis: Analysis) -> NativeKernel | None:
    try:
        return compile_native(program, analysis, layout="columns")
    except CodegenError:  # no code generator, or arrays of records or of texts, which have no columns
        return None


def _usable(column: Array, field: Field, inner: tuple[str, ...], depth: int) -> Mask:
    """Return which rows have a field, inside of `depth` of its dimensions, and what is named inside of it."""
    text = field.kind is Kind.CHAR and bool(field.fixed_dimensions)
    dimensions = field.dimensions[:-1] if text else field.dimensions
    valid: Mask = column.is_valid().to_numpy(zero_copy_only=False)
    if depth < len(dimensions):
        dimension = dimensions[depth]
        if isinstance(dimension, int):
            valid = valid & (_filled(pyarrow.compute.list_value_length(column)) == dimension)
        below = _usable(column.flatten(), field, inner, depth + 1)
        if not below.all():
            parents: Array = pyarrow.compute.list_parent_indices(column)
            valid = valid.copy()
            valid[parents.to_numpy(zero_copy_only=False)[~below]] = False
        return valid
    if inner and field.record is not None:
        member = pyarrow.compute.struct_field(column, field.record.fields.index(field.record.by_name[inner[0]]))
        return valid & _usable(member, field.record.by_name[inner[0]], inner[1:], 0)
    if field.kind is Kind.CHAR:
        return valid & (_filled(pyarrow.compute.binary_length(column)) <= (field.fixed_dimensions[-1] if text else 1))
    return valid


def _filled(lengths: Array) -> Numbers:
    """Return lengths as NumPy has them, 0 for nulls."""
    found: Numbers = lengths.fill_null(0).to_numpy(zero_copy_only=False)
    return found


def _leaf(columns: Mapping[str, Array], format: Format, path: tuple[str, ...]) -> tuple[Array, Field]:
    """Return the column that a path names, out of records in records."""
    field = format.by_name[path[0]]
    column = columns[path[0]]
    for name in path[1:]:
        if field.record is None:
            raise PipelineError(f"there is no `{name}` in `{field.spelling}` - at column `{path[0]}`")
        column = pyarrow.compute.struct_field(column, field.record.fields.index(field.record.by_name[name]))
        field = field.record.by_name[name]
    return column, field


def _cast(column: Array, field: Field, path: tuple[str, ...]) -> Array:
    """Return a column as the type that its field has.

    Raises:
        PipelineError: A value is none of that type.
    """
    if field.kind is Kind.CHAR and not field.dynamic and len(field.dimensions) <= 1:
        width = field.fixed_dimensions[-1] if field.dimensions else 1
        return pyarrow.array([value.as_py().ljust(width, b"\0") for value in column], pyarrow.binary(width))
    try:
        return column.cast(type_of(field))
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError) as error:
        raise PipelineError(
            f"rows have `{column.type}`, the type declares `{field.spelling}`: {error} - at column `{'.'.join(path)}`"
        ) from error


def _memory(column: Array, field: Field, path: tuple[str, ...]) -> Column:
    """Return where the values of a column lie."""
    column = _cast(column, field, path)
    if field.text:
        _, offsets, values = column.buffers()
        places = numpy.frombuffer(offsets, numpy.int32)[column.offset : column.offset + len(column) + 1]
        return Column(b"" if values is None else memoryview(values), 0, places.tobytes())
    if not field.dynamic:
        return Column(_flat(column, field), field.size * field.count)
    places = column.offsets.to_numpy(zero_copy_only=False).astype(numpy.int32)
    return Column(_flat(column.values, field), 0, places.tobytes())


def _flat(column: Array, field: Field) -> bytes | memoryview:
    """Return the bytes of fixed-size values, one after the other."""
    while pyarrow.types.is_fixed_size_list(column.type) or pyarrow.types.is_list(column.type):
        column = column.flatten()
    if field.kind is Kind.CHAR:
        return b"".join(value.as_py() for value in column)
    if field.kind is Kind.BOOL:
        column = column.cast(pyarrow.uint8())
    values: numpy.ndarray[Any, Any] = column.to_numpy(zero_copy_only=False)
    return numpy.ascontiguousarray(values).view(numpy.uint8).data if len(values) else b""
