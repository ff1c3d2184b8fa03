"""Pipelines as records: what a file may say, what is refused and how, and that Python says the same. No Java here."""

from pathlib import Path

import pytest

from echoic.ecode import source_of
from echoic.errors import PipelineError
from echoic.spark.folders import local_folder
from echoic.spark.pipeline import Pipeline, StateFolder, lineage_of, load_spec, order, read_spec
from echoic.spark.pipeline.checking import inputs_by_step, upstream
from echoic.spark.pipeline.lineage import check_lineage, keep_lineage
from echoic.spark.pipeline.placing import place_of, source_options
from echoic.spark.pipeline.spec import SourceSpec, WindowStep
from echoic.spark.pipeline.state import Run
from echoic.spark.tables import TableSettings, committed_files, remove_uncommitted, table_dataset

MARKET = """
name = "market"
state = "state/market"
tables = "tables"
names = "127.0.0.1:7400"
every = "100 ms"

[sources.trades]
journal = "journals"
channel = "trades"
watermark = "10 seconds"
max_rows_per_batch = 1000

[steps.cheap]
from = "trades"
derive = "{ return input.price < param.low; }"
params = { low = 71.5 }

[steps.per_symbol]
from = "cheap"
window = "10 seconds"
slide = "5 seconds"
by = ["symbol"]
aggregates = { trades = "count(*)", volume = "sum(volume)", mean = "avg(price)" }

[steps.busy]
sql = "select * from per_symbol where volume > 10"

[steps.clean]
from = "busy"
apply = "market:clean"

[outputs.per_symbol]
from = "per_symbol"
table = "per_symbol"
partition_by = "symbol"

[outputs.alerts]
from = "clean"
channel = "alerts"
intake = "journals"
"""

SMALL = """
name = "small"
[sources.trades]
journal = "journals"
channel = "trades"
{source}
[steps.some]
{step}
[outputs.some]
{output}
"""
FILTER = 'from = "trades"\nderive = "input.price < 1"'
TABLE = 'from = "some"\ntable = "some"'


def small(*, source: str = "", step: str = FILTER, output: str = TABLE, more: str = "") -> str:
    return SMALL.format(source=source, step=step, output=output) + more


def refusal(text: str) -> str:
    with pytest.raises(PipelineError) as refused:
        read_spec(text)
    message = str(refused.value)
    assert "\n" not in message
    return message


def test_both_forms_make_the_same_pipeline() -> None:
    market = Pipeline("market", names="127.0.0.1:7400", every="100 ms")
    trades = market.source("trades", journal="journals", watermark="10 seconds", max_rows_per_batch=1000)
    cheap = trades.derive("{ return input.price < param.low; }", params={"low": 71.5}, name="cheap")
    per_symbol = cheap.window(
        "10 seconds",
        slide="5 seconds",
        by=["symbol"],
        name="per_symbol",
        trades="count(*)",
        volume="sum(volume)",
        mean="avg(price)",
    )
    busy = market.sql("select * from per_symbol where volume > 10", name="busy")
    per_symbol.to_table("per_symbol", partition_by=["symbol"])
    busy.apply("market:clean", name="clean").to_channel("alerts", intake="journals")
    market.check()
    assert market.spec == read_spec(MARKET)


def test_a_file_is_loaded_and_its_folder_is_what_paths_are_relative_to(tmp_path: Path) -> None:
    path = tmp_path / "market.toml"
    path.write_text(MARKET)
    loaded = Pipeline.load(path)
    assert loaded.spec == load_spec(path) == read_spec(MARKET)
    assert loaded.folder == tmp_path
    options = source_options(loaded.spec.sources["trades"], loaded.spec, loaded.folder)
    assert options == {"journal": str(tmp_path / "journals"), "channel": "trades", "maxRowsPerBatch": "1000"}
    assert place_of("s3a://bucket/tables", tmp_path) == "s3a://bucket/tables"


def test_what_is_not_said_has_a_default() -> None:
    spec = read_spec(small())
    assert (spec.state, spec.tables, spec.every, spec.names) == ("state/small", "tables", "", "")
    assert spec.sources["trades"] == SourceSpec(channel="trades", journal="journals", time="_time", watermark="")


def test_one_name_may_stand_where_several_can() -> None:
    spec = read_spec(small(source='columns = "price"\nstart = 2026-01-01T00:00:00Z'))
    assert spec.sources["trades"].columns == ("price",)
    assert spec.sources["trades"].start == "2026-01-01T00:00:00+00:00"


def test_paths_may_be_paths_wherever_python_names_one(tmp_path: Path) -> None:
    made, text = (
        Pipeline("market", state=kind(tmp_path / "state"), tables=kind(tmp_path), checkpoints=kind(tmp_path / "far"))
        for kind in (Path, str)
    )
    for pipeline, kind in ((made, Path), (text, str)):
        trades = pipeline.source("trades", journal=kind(tmp_path / "journals"))
        trades.to_table(kind(tmp_path / "trades"))
        trades.to_channel("copies", intake=kind(tmp_path / "copies"))
    assert made.spec == text.spec
    table = TableSettings(tmp_path / "trades")
    assert table.place == str(tmp_path / "trades")
    assert local_folder(tmp_path) == local_folder(str(tmp_path)) == tmp_path
    for call in (committed_files, table_dataset, remove_uncommitted):
        with pytest.raises(PipelineError, match="trades"):
            call(tmp_path / "trades")


def test_steps_come_behind_what_they_read() -> None:
    spec = read_spec(
        small(
            step='sql = "select * from later"',
            more='[steps.later]\nfrom = "first"\nderive = "input.x > 1"\n[steps.first]\nsql = "select * from trades"',
        )
    )
    assert order(spec) == ["first", "later", "some"]
    assert upstream(spec, "later") == (["trades"], ["first", "later"])


@pytest.mark.parametrize(
    ("sql", "reads"),
    [
        ("select * from trades", ("trades",)),
        ("SELECT a.x FROM `trades` a JOIN other ON a.x = other.x", ("trades", "other")),
        ("select 'other' as x, other(1), t.other from trades t -- other", ("trades",)),
        ("with w as (select * /* other */ from trades) select * from w", ("trades",)),
        ("select some from trades", ("trades",)),
    ],
)
def test_what_a_query_reads_is_found_in_its_text(sql: str, reads: tuple[str, ...]) -> None:
    more = '[sources.other]\njournal = "journals"\nchannel = "other"'
    assert inputs_by_step(read_spec(small(step=f'sql = "{sql}"', more=more)))["some"] == reads


def test_what_a_query_reads_can_be_said() -> None:
    step = 'sql = "select price from trades"\nfrom = "trades"'
    circle = '[steps.price]\nfrom = "some"\nderive = "input.x > 1"'
    assert order(read_spec(small(step=step, more=circle))) == ["some", "price"]


def test_steps_that_read_each_other_are_refused() -> None:
    message = refusal(small(step='from = "other"\nderive = "1"', more='[steps.other]\nfrom = "some"\nderive = "1"'))
    assert message == "steps.some: steps read each other in a circle: some reads other reads some"
    assert "in a circle" in refusal(small(step='from = "some"\nderive = "1"'))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", "this is not TOML: invalid value (at end of document)"),
        ("", 'name: a pipeline needs one, such as name = "market"'),
        ('name = "a b"', "name: a channel name has at most"),
        ('name = "x"', "sources: a pipeline needs at least one"),
        ('name = "x"\nsource = 1', "source: there is no such key, did you mean `sources`?"),
        ('name = "x"\nsources = 1', "sources: expected tables such as [sources.trades], got 1"),
        ('name = "x"\nsources.trades = 1', "sources.trades: expected a table, got 1"),
        ("name = 1", "name: expected `str`, got `int`"),
        (
            small(source='wattermark = "1 s"'),
            "sources.trades.wattermark: there is no such key, did you mean `watermark`?",
        ),
        (small(source="watermark = 5"), "sources.trades.watermark: expected `str`, got `int`"),
        (
            small(source='watermark = "soon"'),
            'sources.trades.watermark: expected a length of time such as "10 seconds"',
        ),
        (small(source='params = { a = [1] }\nwhere = "1"'), "sources.trades.params[...]: expected "),
        (small(source='on_loss = "shrug"'), "sources.trades: "),
        (
            small(step='from = "trade"\nderive = "1"'),
            "steps.some.from: there is no source or step `trade`, did you mean",
        ),
        (small(step='from = "quotes"\nderive = "1"'), "`quotes`; there is `trades`, `some`"),
        (
            small(step='from = "trades"'),
            "some: expected exactly one of `derive`, `window`, `sql`, `apply`, got none",
        ),
        (small(step=FILTER + '\nsql = "x"'), "got `derive` and `sql`"),
        (small(step='sql = "select 1"'), "steps.some.sql: reads no source or step of the pipeline; there is `trades`"),
        (small(step='derive = "1"'), "steps.some: object missing required field `from`"),
        (small(step=FILTER + '\nhow = "fast"'), "steps.some.how: invalid enum value 'fast'"),
        (
            small(step='from = "trades"\nwindow = "ten"\naggregates = {n = "count(*)"}'),
            "some.window: expected a len",
        ),
        (
            small(step='from = "trades"\nwindow = "1 s"\naggregates = {n = "count(*)"}'),
            "steps.some.window: windows of `trades` would never be over; say how late events may come",
        ),
        (
            small(source='watermark = "1 s"', step='from = "trades"\nwindow = "1 s"\naggregates = {}'),
            "steps.some.aggregates: expected at least one",
        ),
        (
            small(source='watermark = "1 s"', step='from = "trades"\nwindow = "1 s"\naggregates = {start = "max(x)"}'),
            "steps.some: `start` stands for two columns",
        ),
        (small(output='from = "some"'), "outputs.some: expected exactly one of `table`, `channel`, got none"),
        (
            small(output='from = "sum"\ntable = "x"'),
            "outputs.some.from: there is no source or step `sum`",
        ),
        (small(output=TABLE + '\nformat = "csv"'), "outputs.some.format: invalid enum value 'csv'"),
        (small(output='from = "some"\nchannel = "alerts"'), "outputs.some: channel `alerts` is only a name"),
        (small(more='[outputs.other]\nfrom = "some"\ntable = "some"'), "is what `some` writes to already"),
        (small(more='[steps.trades]\nfrom = "trades"\nderive = "1"'), "steps.trades: a source has this name already"),
        (small(more='[steps."a-b"]\nfrom = "trades"\nderive = "1"'), "steps: expected a name of at most 64 letters"),
        (
            'name = "x"\n[sources.t]\nchannel = "t"\n[outputs.t]\nfrom = "t"\ntable = "t"',
            "sources.t: nobody is given",
        ),
    ],
)
def test_a_mistake_is_told_with_its_key_and_what_is_expected(text: str, message: str) -> None:
    assert message in refusal(text)


def test_windows_of_windows_are_refused() -> None:
    window = 'window = "1 minute"\naggregates = {{ {0} = "count(*)" }}\nfrom = "{1}"'
    text = small(
        source='watermark = "1 minute"',
        step=window.format("n", "trades"),
        more=f"[steps.again]\n{window.format('m', 'some')}",
    )
    assert refusal(text) == "steps.again.window: `some` has windows already"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"cannot read .*missing\.toml: No such file"):
        load_spec(tmp_path / "missing.toml")
    (tmp_path / "bad.toml").write_bytes(b"name = '\xff'")
    with pytest.raises(PipelineError, match=r"bad\.toml: expected UTF-8"):
        load_spec(tmp_path / "bad.toml")
    (tmp_path / "large.toml").write_bytes(b"#" * (1 << 21))
    with pytest.raises(PipelineError, match="too much"):
        load_spec(tmp_path / "large.toml")
    (tmp_path / "wrong.toml").write_text(small(step='from = "trade"\nderive = "1"'))
    with pytest.raises(PipelineError, match=r"wrong\.toml: steps\.some\.from"):
        load_spec(tmp_path / "wrong.toml")


def cheap(input: object, param: object) -> bool:  # noqa: A002 - E-Code's name
    return input.price < param.low


def test_python_names_steps_by_what_they_read_and_takes_functions() -> None:
    market = Pipeline("market")
    trades = market.source("trades", journal="journals")
    first, second = trades.derive(cheap, params={"low": 1.0}), trades.derive("input.price > 2")
    assert (first.name, second.name) == ("trades_derived", "trades_derived_2")
    assert market.spec.steps["trades_derived"].derive == source_of(cheap)
    applied = first.apply(lambda frame: frame)
    assert callable(market.functions[applied.name])
    applied.to_table("tables/cheap")
    assert list(market.spec.outputs) == ["cheap"]
    with pytest.raises(PipelineError, match="`trades` is a source or step"):
        market.source("trades", journal="journals")
    with pytest.raises(PipelineError, match=r"outputs\.cheap: there is one"):
        second.to_table("cheap")
    with pytest.raises(PipelineError, match=r"sources\.quotes\.journl: .* did you mean `journal`"):
        market.source("quotes", journl="journals")


def test_only_one_process_has_a_pipeline(tmp_path: Path) -> None:
    folder, run = StateFolder(tmp_path), Run.by_this_process("market")
    assert (folder.run(), folder.held()) == (None, False)
    with folder:
        folder.keep_run(run)
        assert folder.held()
        assert folder.run() == run
        with (
            pytest.raises(PipelineError, match=f"the pipeline runs already, as process {run.pid} on"),
            StateFolder(tmp_path),
        ):
            raise AssertionError("taken twice")
        folder.ask_to_stop()
        assert folder.stop_asked
    assert not folder.held()
    crashed = folder.run()
    assert crashed is not None
    assert crashed.state == "crashed"
    with StateFolder(tmp_path) as again:
        assert not again.stop_asked, "what was asked of a run before is over"


def test_a_checkpoint_goes_on_with_what_it_was_made_by_only(tmp_path: Path) -> None:
    spec, state = read_spec(MARKET), StateFolder(tmp_path)
    (tmp_path / "state" / "market" / "checkpoints" / "alerts").mkdir(parents=True)
    keep_lineage(state, spec, "alerts")
    check_lineage(state, spec, tmp_path, "alerts")
    check_lineage(
        state, read_spec(MARKET.replace("71.5", "70.5").replace("volume > 10", "volume > 20")), tmp_path, "alerts"
    )
    for before, after, told in (
        ('window = "10 seconds"', 'window = "20 seconds"', "window was `10 seconds every 5 seconds` and is `20 sec"),
        ('slide = "5 seconds"', "", "window was `10 seconds every 5 seconds` and is `10 seconds`"),
        ('by = ["symbol"]', 'by = ["venue"]', "window by was `symbol` and is `venue`"),
        ("avg(price)", "max(price)", "window aggregates was"),
        ('channel = "trades"', 'channel = "quotes"', "sources was `trades in journals` and is `quotes in journals`"),
        ('channel = "alerts"', 'channel = "alarms"', "output was `channel alerts` and is `channel alarms`"),
    ):
        with pytest.raises(PipelineError) as refused:
            check_lineage(state, read_spec(MARKET.replace(before, after)), tmp_path, "alerts")
        assert told in str(refused.value)
        assert "outputs.alerts cannot go on from its checkpoint" in str(refused.value)
        assert "to begin anew" in str(refused.value)


def test_an_output_depends_on_what_it_reads_only() -> None:
    lineage = lineage_of(read_spec(small(more='[sources.other]\njournal = "journals"\nchannel = "other"')), "some")
    assert lineage == {"sources": "trades in journals", "output": "parquet table some"}
    assert isinstance(read_spec(MARKET).steps["per_symbol"], WindowStep)
