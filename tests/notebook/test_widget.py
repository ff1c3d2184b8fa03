"""`Channel.live` without a notebook around it: the widget's state, its end, its sliders."""

import subprocess
import sys

import pytest

from echoic import Channel, Hub, event, float64
from echoic.errors import LocalError
from tests.conftest import StartHub
from tests.system.processes import wait_until

pytest.importorskip("anywidget")


@event
class Trade:
    symbol: str
    price: float64


@pytest.fixture
def trades(start_hub: StartHub) -> Channel:
    hub: Hub = start_hub()
    return hub.create("trades", Trade)


def test_a_widget_says_what_it_shows_and_what_runs_at_the_source(trades: Channel) -> None:
    with trades.live("price", seconds=5) as view:
        assert view.get_state(["kind", "channel", "fields", "seconds"]) == {  # type: ignore[attr-defined]
            "kind": "chart",
            "channel": "trades",
            "fields": ["price"],
            "seconds": 5.0,
        }
        assert "input.price" in view.code
        assert not view.stopped
    assert view.stopped
    assert repr(view) == "<Live view of trades: price>"


def test_the_module_that_draws_comes_along_and_asks_nobody(trades: Channel) -> None:
    with trades.live() as view:
        module = view.get_state("_esm")["_esm"]  # type: ignore[attr-defined]
    assert "export default { render }" in module
    for word in ("http:", "https:", "fetch(", "import(", "innerHTML", "eval("):
        assert word not in module


def test_it_pauses_when_all_views_are_out_of_sight(trades: Channel) -> None:
    with trades.live("price") as view:

        def hear(name: str, seen: bool) -> None:
            view.hear({"type": "seen", "view": name, "seen": seen})  # type: ignore[attr-defined]

        wait_until(lambda: view.running, "it has subscribed")  # type: ignore[attr-defined]
        hear("one", True)
        hear("two", True)
        hear("one", False)
        assert not view.feed.paused  # type: ignore[attr-defined]
        hear("two", False)
        wait_until(lambda: not view.running, "it has unsubscribed")  # type: ignore[attr-defined]
        hear("two", True)
        wait_until(lambda: view.running, "it has subscribed again")  # type: ignore[attr-defined]


@pytest.mark.parametrize("content", [None, 7, {}, {"type": "seen"}, {"type": "seen", "view": 1, "seen": 2}])
def test_a_message_of_another_kind_changes_nothing(trades: Channel, content: object) -> None:
    with trades.live("price") as view:
        view.hear(content)  # type: ignore[attr-defined]
        assert not view.feed.paused  # type: ignore[attr-defined]


def test_sliders_change_the_parameters_of_a_derived_channel(trades: Channel) -> None:
    cheap = trades.derive("{ return input.price < param.low; }", params={"low": 75.5})
    with cheap.live("price") as view:
        (slider,) = view.params.children  # type: ignore[attr-defined]
        assert (slider.description, slider.value, slider.min, slider.max) == ("low", 75.5, 0.0, 151.0)
        slider.value = 20.0
        assert cheap.params.values == {"low": 20.0}


@pytest.mark.parametrize("numbers", [{"seconds": 0}, {"seconds": float("nan")}, {"points_per_second": 1e9}])
def test_numbers_out_of_their_range_are_refused(trades: Channel, numbers: dict[str, float]) -> None:
    with pytest.raises(LocalError, match="expected `"):
        trades.live("price", **numbers)


def test_without_anywidget_the_message_says_what_to_install() -> None:
    program = """
import sys

sys.modules["anywidget"] = None
import numpy
import echoic

with echoic.Hub() as hub:
    try:
        hub.create("trades", numpy.dtype([("price", "f8")])).live()
    except echoic.EchoicError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "a live view needs anywidget, try: pip install 'echoic[jupyter]'\n"


def test_a_hub_does_not_import_the_widget() -> None:
    program = "import sys, echoic; echoic.Hub; print([m for m in ('anywidget', 'ipywidgets') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
