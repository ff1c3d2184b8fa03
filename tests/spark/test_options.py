"""What a source is asked for: every mistake is one sentence that names the option, the value and what is allowed."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import CaseInsensitiveDict

from echoic.errors import PipelineError
from echoic.spark.options import SOURCE_OPTIONS, Boundary, SourceOptions

PLACE = {"journal": "journals", "channel": "trades"}


def read(**options: str) -> SourceOptions:
    return SourceOptions.of(CaseInsensitiveDict({**PLACE, **options}))


def test_what_is_not_said_has_a_default() -> None:
    asked = read()
    assert (asked.journal, asked.channel, asked.names) == ("journals", "trades", ())
    assert (asked.start, asked.end) == (Boundary("earliest"), Boundary("latest"))
    assert asked.metadata
    assert not asked.pushdown
    assert (asked.rows_max, asked.bytes_max, asked.splits) == (0, 0, 0)
    assert (asked.on_loss, asked.on_fault, asked.statics) == ("fail", "fail", "refuse")
    assert asked.parameters is None


def test_a_name_may_have_any_case_or_underscores() -> None:
    for name in ("maxRowsPerBatch", "maxrowsperbatch", "max_rows_per_batch", "MAX_ROWS_PER_BATCH"):
        assert SourceOptions.of({**PLACE, name: "17"}).rows_max == 17


def test_the_path_of_load_is_the_journal() -> None:
    assert SourceOptions.of({"path": "journals"}).journal == "journals"


def test_a_channel_alone_is_read_from_its_recorder() -> None:
    asked = SourceOptions.of({"channel": "echoic://127.0.0.1:7400/trades"})
    assert (asked.journal, asked.channel) == ("", "echoic://127.0.0.1:7400/trades")
    asked = SourceOptions.of({"channel": "trades", "names": "127.0.0.1:7400, 127.0.0.1:7401"})
    assert asked.names == ("127.0.0.1:7400", "127.0.0.1:7401")


def test_a_beginning_is_a_word_a_time_or_positions() -> None:
    assert read(start="Latest").start == Boundary("latest")
    assert read(start="1970-01-01T00:00:01").start == Boundary("time", 1_000_000_000)
    assert read(start="1970-01-01T01:00:01+01:00").start == Boundary("time", 1_000_000_000)
    assert read(start="9999-12-31").start == Boundary("time", (1 << 63) - 1)
    assert read(start='{"1": 4, "0": 17}').start == Boundary("positions", 0, ((0, 17), (1, 4)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"maxRowPerBatch": "3"}, "there is no option `maxRowPerBatch`: did you mean `maxRowsPerBatch`"),
        ({"qqqqqq": "3"}, "there is no option `qqqqqq`: there are journal, path, channel"),
        ({"path": "elsewhere"}, "the options `journal` and `path` mean the same"),
        ({"names": "127.0.0.1:7400"}, "is read from its folder or from its recorder"),
        ({"channel": "echoic://127.0.0.1:7400/trades"}, "is read from its folder or from its recorder"),
        ({"channel": " "}, "the option `channel` is a text that is not empty"),
        ({"journal": "a\0b"}, "the option `journal` is a text"),
        ({"start": "yesterday"}, "the option `start` is `earliest`, `latest`, a time in ISO 8601 or positions"),
        ({"start": '{"0": -1}'}, "the option `start` is positions as JSON"),
        ({"start": '{"0": 1.5}'}, "the option `start` is positions as JSON"),
        ({"start": '{"00": 1}'}, "the option `start` is positions as JSON"),
        ({"start": '{"x": 1}'}, "the option `start` is positions as JSON"),
        ({"start": '{"0": true}'}, "the option `start` is positions as JSON"),
        ({"start": "{"}, "the option `start` is positions as JSON"),
        ({"end": "{" * 100_000}, "the option `end` is positions as JSON"),
        ({"columns": "price,,volume"}, "the option `columns` is names with commas between them"),
        ({"columns": "price,price"}, "none of them twice"),
        ({"metadata": "yes"}, "the option `metadata` is `true` or `false`, got `yes`"),
        ({"splits": "0"}, "the option `splits` is a number from 1 to 10000, got `0`"),
        ({"splits": "99999"}, "the option `splits` is a number from 1 to 10000, got `99999`"),
        ({"maxRowsPerBatch": "-1"}, "the option `maxRowsPerBatch` is a number from 1"),
        ({"maxRowsPerBatch": "1e3"}, "the option `maxRowsPerBatch` is a number from 1"),
        ({"maxBytesPerBatch": "9" * 4000}, "the option `maxBytesPerBatch` is a number from 1"),
        ({"onLoss": "ignore"}, "the option `onLoss` is `fail` or `skip`, got `ignore`"),
        ({"onFault": "ignore"}, "the option `onFault` is `fail` or `skip`, got `ignore`"),
        ({"statics": "keep"}, "the option `statics` is `refuse` or `batch`, got `keep`"),
        ({"output": "Mean{at: float}"}, "the option `output` is the type of what `derive` makes, which is not given"),
        ({"derive": "{}", "output": "Mean{at: flot}"}, "the option `output` is a type such as"),
        ({"declared": "Mean"}, "the option `declared` is a type such as"),
        ({"params": '{"low": 1}'}, "the option `params` is what code knows as `param`, give `where` or `derive`"),
        ({"where": "1", "params": "[1]"}, "the option `params` is a JSON object"),
        ({"where": "1", "params": "{}"}, "the option `params` is a JSON object"),
        ({"where": "1", "params": "{low: 1}"}, "the option `params` is a JSON object"),
        ({"where": "1" * (1 << 21)}, "the option `where` has 2097152 characters, limit is 1048576"),
    ],
)
def test_a_mistake_is_one_sentence(options: dict[str, str], message: str) -> None:
    with pytest.raises(PipelineError) as caught:
        SourceOptions.of({**PLACE, **options})
    told = str(caught.value)
    assert message in told
    assert "\n" not in told
    assert len(told) < 500


def test_a_source_must_be_somewhere() -> None:
    with pytest.raises(PipelineError, match="needs the option `journal`, the folder of a journal, or `channel`"):
        SourceOptions.of({})
    with pytest.raises(PipelineError, match="nobody is given who knows channel `trades`: set `journal`"):
        SourceOptions.of({"channel": "trades"})


def test_an_option_is_given_once() -> None:
    with pytest.raises(PipelineError, match="the option `maxRowsPerBatch` is given twice"):
        SourceOptions.of({**PLACE, "maxRowsPerBatch": "1", "max_rows_per_batch": "2"})


@given(st.dictionaries(st.sampled_from(SOURCE_OPTIONS) | st.text(), st.text() | st.from_regex(r"\{.*\}")))
def test_whatever_is_asked_is_understood_or_refused(options: dict[str, str]) -> None:
    with suppress(PipelineError):
        SourceOptions.of(options)


@given(st.dictionaries(st.integers(0, 99), st.integers(0, (1 << 63) - 1), min_size=1))
def test_positions_are_read_as_they_are_written(positions: dict[int, int]) -> None:
    text = json.dumps({str(partition): sequence for partition, sequence in positions.items()})
    assert read(start=text).start.positions == tuple(sorted(positions.items()))
