"""Pure: may rows of one schema be added to a table of another?

A table outlives the pipeline that fills it, and the pipeline changes. The rule is that of type extension on channels:

    column added       fine, rows written earlier read it as null
    column left out    fine, rows written from here on read it as null
    type changed       refused: there is no value that both readers of the column would understand

It holds at every depth, so a struct in a column, or in an array in a column, may get another field. Types are the same
or they are not: that `int` fits into `bigint` is not used, because Parquet files of both kinds in one folder are read
by some engines only. Whether a column may be null is no part of its type: in a table that can grow every column may.

Spark finds columns without regard to case, so `Price` beside `price` would be a column that nobody can name: refused.
"""

from collections.abc import Mapping
from typing import Final

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from echoic.errors import PipelineError

__all__ = ["extended", "plain"]

DEPTH_MAX: Final = 64


def extended(table: StructType, rows: StructType, place: str) -> StructType:
    """Return the schema of a table after rows of schema `rows` came into it: its own columns, then the added ones.

    `place` names the table in messages.

    Raises:
        PipelineError: A column has another type than in the table, or a name that differs only by case.
    """
    return _extended_struct(plain(table), plain(rows), place, ())


def plain(schema: StructType) -> StructType:
    """Return the schema with every column nullable and without notes that Spark keeps at columns."""
    return StructType([StructField(field.name, _plain(field.dataType, 0), True) for field in schema.fields])


def _plain(kind: DataType, depth: int) -> DataType:
    if depth > DEPTH_MAX:
        raise PipelineError(f"a column is nested deeper than {DEPTH_MAX} levels")
    if isinstance(kind, StructType):
        return StructType([StructField(each.name, _plain(each.dataType, depth + 1), True) for each in kind.fields])
    if isinstance(kind, ArrayType):
        return ArrayType(_plain(kind.elementType, depth + 1), True)
    if isinstance(kind, MapType):
        return MapType(_plain(kind.keyType, depth + 1), _plain(kind.valueType, depth + 1), True)
    return kind


def _extended_struct(table: StructType, rows: StructType, place: str, path: tuple[str, ...]) -> StructType:
    known = {field.name.lower(): field for field in table.fields}
    given = {field.name.lower(): field for field in rows.fields}
    if len(given) < len(rows.fields):
        raise PipelineError(f"columns of table {place} differ only by case: {', '.join(rows.fieldNames())}")
    fields = [_extended_field(field, given, place, path) for field in table.fields]
    return StructType(fields + [field for name, field in given.items() if name not in known])


def _extended_field(
    field: StructField, given: Mapping[str, StructField], place: str, path: tuple[str, ...]
) -> StructField:
    other = given.get(field.name.lower())
    if other is None:
        return field
    here = (*path, field.name)
    if other.name != field.name:
        raise PipelineError(
            f"column `{'.'.join((*path, other.name))}` is called `{'.'.join(here)}` in table {place}: "
            "Spark cannot tell them apart, write it as the table does"
        )
    return StructField(field.name, _extended_type(field.dataType, other.dataType, place, here), True)


def _extended_type(table: DataType, rows: DataType, place: str, path: tuple[str, ...]) -> DataType:
    if isinstance(table, StructType) and isinstance(rows, StructType):
        return _extended_struct(table, rows, place, path)
    if isinstance(table, ArrayType) and isinstance(rows, ArrayType):
        return ArrayType(_extended_type(table.elementType, rows.elementType, place, (*path, "element")), True)
    if isinstance(table, MapType) and isinstance(rows, MapType):
        key = _extended_type(table.keyType, rows.keyType, place, (*path, "key"))
        return MapType(key, _extended_type(table.valueType, rows.valueType, place, (*path, "value")), True)
    if table != rows:
        raise PipelineError(
            f"column `{'.'.join(path)}` is `{table.simpleString()}` in table {place} and would become "
            f"`{rows.simpleString()}`: cast it in a step, give it another name, or write to another table"
        )
    return table
