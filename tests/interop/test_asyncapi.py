"""An AsyncAPI document of channels: the reference parser understands it, and its schemas admit what is sent."""

import base64
import enum
import json
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic import Array, Batch, Format, Hub, event, float32, float64, int32, uint8
from echoic.cli.rendering import as_json
from echoic.interop.asyncapi import DescribedChannel, asyncapi_document
from echoic.interop.json_schema import event_schema
from tests.conftest import StartHub
from tests.interop.reference_parser import HERE, parsed
from tests.strategies import formats, records_of

needs_npm = pytest.mark.skipif(not (shutil.which("npm") and shutil.which("node")), reason="needs Node.js and npm")


class Side(enum.IntEnum):
    BUY = 0
    SELL = 1


@event
class Leg:
    price: float64
    size: int32


@event
class Order:
    symbol: str
    note: str | None
    side: Side
    legs: Array[Leg, 2]
    count: int32
    curve: Array[float32, "count"]
    raw: bytes
    flag: uint8


def described(name: str, declared: object | None, **more: str) -> DescribedChannel:
    format = Format.of(declared) if declared is not None else None
    return DescribedChannel(f"echoic://127.0.0.1:7401/{name}", format, **more)


SYSTEM = [
    described("orders", Order),
    described("market/legs", Leg),
    described("market.legs", Leg),
    described("anything", None),
    described("orders/cheap", Order, parent="orders", code="{ return input.side == 0; }", spelling="ecode"),
    DescribedChannel("echoic://127.0.0.1:7402/orders", Format.of(Leg).renamed("Order")),
]


@pytest.fixture(scope="module")
def answers() -> dict[str, dict[str, Any]]:
    """What the reference parser says of some documents; it takes seconds to start, so it does so once."""
    faulty: dict[str, Any] = asyncapi_document(SYSTEM, "everything")
    faulty["operations"]["submit.orders"]["action"] = "sned"
    documents = {
        "empty": asyncapi_document([], "nothing"),
        "whole": asyncapi_document(SYSTEM, "everything"),
        "faulty": faulty,
        "any": asyncapi_document([described(f"channel{n}", each) for n, each in enumerate(some_formats())], "any"),
    }
    return dict(zip(documents, parsed(list(documents.values())), strict=True))


def some_formats() -> list[Format]:
    found: list[Format] = []

    @settings(max_examples=60, database=None)
    @given(formats())
    def collect(format: Format) -> None:
        found.append(format)

    collect()
    return found


@needs_npm
@pytest.mark.parametrize("name", ["empty", "whole", "any"])
def test_the_reference_parser_finds_no_fault(answers: dict[str, dict[str, Any]], name: str) -> None:
    assert answers[name]["understood"], answers[name]
    assert [fault for fault in answers[name]["found"] if fault["severity"] <= 1] == []  # neither errors nor warnings


@needs_npm
def test_the_reference_parser_sees_every_channel(answers: dict[str, dict[str, Any]]) -> None:
    names = ["anything", "market.legs", "market.legs-2", "orders", "orders-2", "orders.cheap"]
    assert sorted(answers["whole"]["channels"]) == names
    assert len(answers["any"]["channels"]) >= 60


@needs_npm
def test_the_reference_parser_refuses_a_document_with_a_planted_fault(answers: dict[str, dict[str, Any]]) -> None:
    assert not answers["faulty"]["understood"]
    assert any("submit.orders" in fault["path"] for fault in answers["faulty"]["found"])


@given(st.data())
def test_the_schema_of_any_type_admits_the_json_of_its_events(data: st.DataObject) -> None:
    format = data.draw(formats())
    batch = Batch.of([data.draw(records_of(format, special=True))], format)
    schema = event_schema(format)
    jsonschema.Draft7Validator.check_schema(schema)
    render = as_json()
    for each in batch.to(format).events():
        jsonschema.validate(json.loads(render(each)), schema, jsonschema.Draft7Validator)


@pytest.mark.parametrize(
    ("field", "value"),
    [("symbol", None), ("side", "BUY"), ("legs", []), ("curve", [1, "x"]), ("flag", 256), ("extra", 1), ("raw", 3)],
)
def test_the_schema_refuses_what_no_event_is(field: str, value: object) -> None:
    order = Order("IBM", None, Side.SELL, [Leg(75.5, 100), Leg(float("nan"), 1)], 1, [1.0], b"\0", 7)
    plain = json.loads(as_json()(order))
    validator = jsonschema.Draft7Validator(event_schema(Format.of(Order)))
    assert validator.is_valid(plain)
    assert not validator.is_valid({**plain, field: value})


def test_nobody_submits_to_a_derived_channel() -> None:
    document = asyncapi_document(SYSTEM, "everything")
    assert "subscribe.orders.cheap" in document["operations"]  # type: ignore[operator]
    assert "submit.orders.cheap" not in document["operations"]  # type: ignore[operator]
    assert document["channels"]["orders.cheap"]["x-echoic-derivation"]["parent"] == "orders"  # type: ignore[index]


def test_a_channel_whose_name_is_none_is_left_out() -> None:
    document = asyncapi_document([DescribedChannel('echoic://127.0.0.1:1/a"}{', None)], "hostile")
    assert document["channels"] == {}


def test_the_verb_describes_what_the_name_server_knows(
    start_hub: StartHub, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from echoic.cli.asyncapi import asyncapi
    from echoic.cli.where import Where

    names = start_hub()
    hub: Hub = start_hub(names=names.address)
    orders = hub.create("orders", Order)
    orders.derive("{ return input.side == 0; }", name="cheap")
    where = Where(names.address)
    asyncapi(title="The exchange", as_json=True, where=where)
    document = json.loads(capsys.readouterr().out)
    assert document["info"]["title"] == "The exchange"
    assert "orders" in document["channels"]
    written = tmp_path / "exchange.json"
    asyncapi(hub=hub.address, derived=True, output=written, where=where)
    both = json.loads(written.read_text("utf-8"))
    assert both["channels"]["cheap"]["x-echoic-derivation"]["code"] == "{ return input.side == 0; }"
    descriptor = both["components"]["schemas"]["Order"]["x-echoic-descriptor"]
    assert Format.from_descriptor(base64.b64decode(descriptor)) == Format.of(Order)


def test_the_lock_file_names_no_place_to_download_from() -> None:
    lock = json.loads((HERE / "package-lock.json").read_text("utf-8"))
    packages = [each for path, each in lock["packages"].items() if path]
    assert packages
    assert all("resolved" not in each and each["integrity"].startswith("sha512-") for each in packages)
