"""Code that makes other events of recorded ones: the same as a derived channel makes, and where each came from."""

import pytest

from echoic.errors import ECodeError, IncompatibleTypesError, LocalError
from echoic.formats import ARCHITECTURES, Array, Format, event, float32, float64, int32
from echoic.recorder import Journal, Transform
from echoic.wire import Batch
from tests.recorder.recordings import Scribe, Trade, disk, rows


@event
class Double:
    serial: int
    double_price: float64


@event
class Spread:
    serial: int
    name: str
    n: int32
    samples: Array[float32, "n"]


DOUBLE = (
    "{ output.serial = input.number; output.double_price = 2 * input.price; return input.number % param.step == 0; }"
)


def written(*batches: Batch) -> Journal:
    scribe = Scribe(disk())
    for number, batch in enumerate(batches):
        scribe.write(batch, source=number, at=number)
    return Journal(scribe.shelf())


def derived(journal: Journal, code: str = DOUBLE, output: type = Double, **options: object) -> list[dict[str, object]]:
    return journal.arrow(derive=code, output=output, **options).read_all().to_pylist()


def test_events_become_others() -> None:
    found = derived(written(rows(0, 10), rows(10, 10)), params={"step": 7})
    assert found == [{"serial": number, "double_price": float(number)} for number in (0, 7, 14)]


def test_what_is_made_keeps_sequence_source_and_time() -> None:
    found = derived(written(rows(0, 10), rows(10, 10)), params={"step": 7}, metadata=True)
    assert [(row["_sequence"], row["_source"], row["_number"]) for row in found] == [(0, 0, 0), (7, 0, 7), (14, 1, 4)]
    assert found[2]["_time"] > found[1]["_time"]


def test_a_filter_comes_first() -> None:
    found = derived(written(rows(0, 20)), where="input.number > 5", params={"step": 7}, metadata=True)
    assert [(row["serial"], row["_sequence"]) for row in found] == [(7, 7), (14, 14)]
    assert derived(written(rows(0, 20)), where="input.number > 50", params={"step": 7}) == []


def test_columns_are_those_of_what_is_made() -> None:
    assert derived(written(rows(0, 1)), params={"step": 1}, columns=["double_price"]) == [{"double_price": 0.0}]


def test_texts_and_arrays_can_be_made() -> None:
    code = """{
        output.serial = input.number;
        output.name = "odd";
        output.n = 2;
        output.samples[0] = input.price;
        output.samples[1] = input.number;
        return 1;
    }"""
    found = derived(written(rows(0, 3)), code, Spread)
    assert found == [{"serial": n, "name": "odd", "n": 2, "samples": [n / 2, float(n)]} for n in range(3)]


def test_events_of_other_machines_and_types_are_taken() -> None:
    foreign = Batch.of([Trade(5, 2.5), Trade(6, 3.0)]).to(Format.of(Trade).on(ARCHITECTURES["sparc64"]))
    found = derived(written(foreign, rows(7, 2)), params={"step": 1})
    assert [row["serial"] for row in found] == [5, 6, 7, 8]
    with pytest.raises(IncompatibleTypesError, match="lot"):
        derived(
            written(Batch.of([Trade(5, 2.5)]), rows(7, 2)),
            "{ output.serial = input.lot; output.double_price = 0; return 1; }",
        )


def test_each_source_has_its_own_static_variables() -> None:
    code = "{ static int seen = 0; seen = seen + 1; output.serial = seen; output.double_price = 0; return 1; }"
    found = derived(written(rows(0, 2), rows(2, 3)), code)
    assert [row["serial"] for row in found] == [1, 2, 1, 2, 3]
    assert Transform(code, None, Format.of(Trade), Format.of(Double)).stateful


def test_a_fault_is_an_error_or_is_told() -> None:
    code = "{ output.serial = 100 / input.number; output.double_price = 0; return 1; }"
    with pytest.raises(LocalError, match=r"`derive` faults at event 0, line 1, column .* divided by zero"):
        derived(written(rows(0, 3)), code)
    told: list[tuple[int, str]] = []
    tolerant = Transform(
        code, None, Batch.of([Trade(1, 1.0)]).format, Format.of(Double), lambda number, why: told.append((number, why))
    )
    made = [tolerant.apply(recorded) for recorded in written(Batch.of([Trade(0, 0.0), Trade(4, 1.0)])).read()]
    assert [list(one.array["serial"]) for one in made if one is not None] == [[25]]
    assert [int(number) for one in made if one is not None for number in one.sequences] == [1]
    assert [number for number, _ in told] == [0]


def test_wrong_code_is_told_at_once() -> None:
    with pytest.raises(ECodeError, match="<derive>"):
        written(rows(0, 1)).arrow(derive="{ output.nothing = 1; return 1; }", output=Double)
    with pytest.raises(LocalError, match="`derive` and `output` belong together"):
        written(rows(0, 1)).arrow(derive="{ return 1; }")
    with pytest.raises(LocalError, match="`derive` and `output` belong together"):
        written(rows(0, 1)).arrow(output=Double)


def test_nothing_passes_where_code_returns_zero() -> None:
    assert derived(written(rows(0, 3)), "{ return 0; }") == []


@event
class Wide:
    number: int32
    price: float64


def test_the_declared_type_is_what_code_is_written_for() -> None:
    found = derived(written(Batch.of([Wide(3, 1.5)])), params={"step": 3}, declared=Trade)
    assert found == [{"serial": 3, "double_price": 3.0}]


@pytest.mark.parametrize(
    "where",
    [
        "input.number > 1",
        "input.number > 1 // those that count",
        "/* those that count */ { return input.number > 1; }",
        "import math\n\n# those that count\ndef wanted(input):\n    return input.number > 1\n",
    ],
)
def test_code_is_spelled_as_for_a_derived_channel(where: str) -> None:
    assert [row["number"] for row in written(rows(0, 4)).arrow(where=where).read_all().to_pylist()] == [2, 3]
