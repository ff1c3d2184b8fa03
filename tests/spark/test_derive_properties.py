"""The same code gives the same rows with the same bits: at a source, in Spark's columns, and in workers.

Hundreds of random programs become columns of one frame, in both of Spark's modes for errors. What they are compared
with is the kernel that a source runs, over records of the same events.
"""

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as columns

from echoic.ecode import FUEL, Outcome, Program, Signature, analyse, compile_kernel, parameter_format
from echoic.ecode.sql import Refusal, Translation, translate
from echoic.errors import MalformedBatchError, PipelineError
from echoic.spark.kernel_frames import FrameCode, FrameRun, named_format
from echoic.spark.schema import arrow_schema_of, fitted, struct_of
from echoic.wire import Batch
from tests.spark.derive_programs import EVENT, MADE, PARAMS, bits, draw_events, draw_programs, table_of

BLOCK = parameter_format(PARAMS)
VALUES = bytes(Batch.of([PARAMS], BLOCK).records)
FILTER = Signature(EVENT, None, BLOCK)
TRANSFORM = Signature(EVENT, MADE, BLOCK)
MADE_COLUMNS = struct_of(MADE, metadata=False)
EVENTS = 60


@pytest.fixture(params=["true", "false"])
def ansi(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """Whether Spark takes an overflow, or a division by zero, for an error."""
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", request.param)
    yield request.param
    spark.conf.set("spark.sql.ansi.enabled", str(before))


def at_source(program: Program, batch: Batch) -> Outcome:
    """Run a program as a source does."""
    bounds = numpy.asarray(batch.known_offsets, "=u4").tobytes()
    kernel = compile_kernel(program, analyse(program))
    statics = program.initial_statics()
    return kernel.run(batch.records, bounds, batch.count, VALUES, statics, FUEL, batch.count + 1)


def made_of(outcome: Outcome) -> pyarrow.RecordBatch:
    """Return what a transform has made, as Spark has it."""
    assert outcome.records is not None
    assert outcome.bounds is not None
    batch = Batch(MADE, len(outcome.selected), [outcome.records], outcome.bounds.tolist())
    return fitted(batch.arrow, arrow_schema_of(MADE_COLUMNS))


def said_in_sql(programs: list[Program]) -> list[tuple[Program, Translation]]:
    found = [(program, translate(program, VALUES)) for program in programs]
    return [(program, text) for program, text in found if isinstance(text, Translation)]


def computed(frame: DataFrame, said: list[tuple[Program, Translation]]) -> pyarrow.Table:
    """Return every condition and every column of all programs, whether events pass or not: nothing may raise."""
    wanted = [columns.col("number")]
    for place, (_, translation) in enumerate(said):
        wanted.append(columns.expr(translation.where).alias(f"passes {place}"))
        wanted += [
            columns.expr(text).cast(MADE_COLUMNS[name].dataType).alias(f"{name} {place}")
            for name, text in translation.columns
        ]
    return frame.select(*wanted).toArrow()


def rows_of(table: pyarrow.Table, place: int) -> list[int]:
    passed = table[f"passes {place}"].to_pylist()
    return [number for number, passes in zip(table["number"].to_pylist(), passed, strict=True) if passes]


def test_filters_pass_the_same_events_in_columns_as_at_a_source(spark: SparkSession, ansi: str) -> None:
    seed = len(ansi)
    events = draw_events(Random(seed), EVENTS)
    batch, said = Batch.of(events, EVENT), said_in_sql(draw_programs(seed, FILTER, 150))
    assert len(said) > 80
    table = computed(spark.createDataFrame(table_of(events)), said)
    for place, (program, translation) in enumerate(said):
        outcome = at_source(program, batch)
        assert not outcome.faults, program.source
        assert rows_of(table, place) == outcome.selected.tolist(), (program.source, translation.where)


def test_transforms_make_the_same_bits_in_columns_as_at_a_source(spark: SparkSession, ansi: str) -> None:
    seed = 10 + len(ansi)
    events = draw_events(Random(seed), EVENTS)
    batch, said = Batch.of(events, EVENT), said_in_sql(draw_programs(seed, TRANSFORM, 60))
    assert len(said) > 25
    table = computed(spark.createDataFrame(table_of(events)), said)
    for place, (program, translation) in enumerate(said):
        outcome = at_source(program, batch)
        rows = rows_of(table, place)
        assert (outcome.faults, rows) == ([], outcome.selected.tolist()), (program.source, translation.where)
        expected = made_of(outcome)
        for name, text in translation.columns:
            given = table[f"{name} {place}"].to_pylist()
            made = [bits(given[row]) for row in rows]
            assert made == [bits(value) for value in expected[name].to_pylist()], (program.source, text)


def frame_code(program: Program) -> FrameCode:
    output = program.signature.output
    return FrameCode(
        program.source,
        "ecode",
        named_format(program).descriptor,
        output.descriptor if output is not None else b"",
        BLOCK.descriptor,
        VALUES,
    )


def columns_of(table: pyarrow.Table, program: Program) -> dict[str, Any]:
    """Return what Spark sends to a worker: the columns that a program names, with a nameless one if there are none."""
    names = {path[0] for root, path in program.used if root == "input" and path}
    return {name: table[name].combine_chunks() for name in names}


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1 << 32))
def test_workers_pass_the_same_events_as_a_source(seed: int) -> None:
    events = draw_events(Random(seed), EVENTS)
    batch, table = Batch.of(events, EVENT), table_of(events)
    for program in draw_programs(seed, FILTER, 5):
        outcome, run = at_source(program, batch), FrameRun(frame_code(program))
        passed = run.passed(columns_of(table, program), EVENTS)
        assert numpy.flatnonzero(passed).tolist() == outcome.selected.tolist(), program.source
        assert run.faults == len(outcome.faults)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1 << 32))
def test_workers_make_the_same_bits_as_a_source(seed: int) -> None:
    events = draw_events(Random(seed), EVENTS)
    batch, table = Batch.of(events, EVENT), table_of(events)
    schema = arrow_schema_of(MADE_COLUMNS)
    for program in draw_programs(seed, TRANSFORM, 5):
        outcome, run = at_source(program, batch), FrameRun(frame_code(program))
        try:
            expected = bits(made_of(outcome).to_pylist())
        except MalformedBatchError:  # bytes that are no text were assigned to a string
            with pytest.raises(PipelineError, match="is not UTF-8"):
                list(run.transformed(table.to_batches(), schema, ()))
            continue
        (made,) = run.transformed(table.to_batches(), schema, ())
        assert bits(made.to_pylist()) == expected, program.source
        assert run.faults == len(outcome.faults)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1 << 32))
def test_what_sql_says_never_faults(seed: int) -> None:
    batch = Batch.of(draw_events(Random(seed), EVENTS), EVENT)
    for program in draw_programs(seed, FILTER, 5):
        if not isinstance(translate(program, VALUES), Refusal):
            assert not at_source(program, batch).faults, program.source
