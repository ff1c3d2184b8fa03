"""Services: what is granted has a face, what is not is refused by name."""

import importlib
from collections.abc import Iterator

import pytest

from echoic.channels import Runner
from echoic.eager import Modulator
from echoic.eager.services import Face, Services, grant_all, plain
from echoic.errors import LocalError, RefusedError
from tests.eager.installing import PLACES, numbers, run_confined, values


class Counter:
    """A service of a hub."""

    step = 2
    secret = object()

    def __init__(self) -> None:
        self.total = 0
        self._hidden = 1

    def add(self, amount: int, *, times: int = 1) -> int:
        self.total += amount * times
        return self.total

    def fail(self) -> None:
        raise ValueError("out of order")

    def give(self) -> object:
        return object()

    def _internal(self) -> None:
        self.total = -1


def test_a_face_shows_public_methods_and_plain_values() -> None:
    face = Face("counter", Counter())
    assert face.add(3, times=2) == 6
    assert face.total == 6
    assert face.step == 2


def test_a_mapping_is_a_service_too() -> None:
    face = Face("context", {"threshold": 4.5, "reset": lambda: "done"})
    assert (face.threshold, face.reset()) == (4.5, "done")


@pytest.mark.parametrize("name", ["_hidden", "_internal", "__class__x", "missing"])
def test_what_is_not_public_or_not_there_is_refused(name: str) -> None:
    with pytest.raises(RefusedError, match=f"`{name}`.* - at service `counter`"):
        getattr(Face("counter", Counter()), name)


def test_an_attribute_that_is_not_plain_is_refused() -> None:
    with pytest.raises(LocalError, match=r"got `object` - at `counter\.secret`"):
        _ = Face("counter", Counter()).secret


def test_a_service_that_was_not_granted_is_refused_with_those_that_were() -> None:
    services = Services({"counter": Face("counter", Counter())})
    assert dir(services) == ["counter"]
    with pytest.raises(RefusedError, match="the service `files` was not granted, those that were: `counter`"):
        _ = services.files


def test_a_missing_service_is_named_with_the_modulator_the_hub_and_the_source() -> None:
    with pytest.raises(
        RefusedError,
        match=r"`Window` requires the service `clock`, which neither the hub at h:1 nor its source 7 grants",
    ):
        grant_all(("clock",), source=7, grant=lambda service, source: None, modulator="Window", hub="h:1")


@pytest.mark.parametrize("value", [None, True, 1, -(2**63), 2**64 - 1, 1.5, "a", b"b", [1, [2]], {"a": {"b": [None]}}])
def test_plain_values_pass(value: object) -> None:
    assert plain(value, "here") == value


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, object(), {1, 2}, [object()], {"a": object()}, {(1, 2): 3}])
def test_values_that_are_not_plain_are_refused(value: object) -> None:
    with pytest.raises(LocalError, match=r"- at here"):
        plain(value, "here")


def test_values_nested_too_deeply_are_refused() -> None:
    deep: list[object] = []
    deep.append(deep)
    with pytest.raises(LocalError, match="nested more than 16 deep"):
        plain(deep, "here")


class Adds(Modulator):
    requires = ("counter",)

    def enqueue(self, event: object) -> None:
        counter = self.services.counter
        event.value = counter.add(event.value, times=counter.step)
        super().enqueue(event)


class Asks(Modulator):
    """Asks for what is not to be had, by the value of the event."""

    requires = ("counter",)

    def enqueue(self, event: object) -> None:
        counter = self.services.counter
        if event.value == 0:
            counter.fail()
        elif event.value == 1:
            counter.missing()
        elif event.value == 2:
            _ = counter._hidden  # noqa: SLF001 - on purpose
        elif event.value == 3:
            _ = self.services.files
        else:
            counter.add("x" * 300_000)


@pytest.fixture(params=PLACES, ids=lambda place: place)
def asks(request: pytest.FixtureRequest) -> Iterator[Runner]:
    counter = Counter()
    runner = PLACES[request.param](Asks(), grant=lambda service, source: counter)
    yield runner
    runner.close()


@pytest.mark.parametrize("place", PLACES)
def test_a_modulator_uses_a_service_wherever_it_runs(place: str) -> None:
    counters = {1: Counter(), 2: Counter()}
    runner = PLACES[place](Adds(), grant=lambda service, source: counters[source], sources=(1, 2))
    assert values(runner.work(1, numbers(1, 2)).batch) == [2, 6]
    assert values(runner.work(2, numbers(5)).batch) == [10]
    assert [counters[source].total for source in (1, 2)] == [6, 10]
    runner.close()


def test_errors_of_services_are_faults_of_the_event(asks: Runner) -> None:
    worked = asks.work(1, numbers(0, 1, 2, 3))
    assert worked.batch is None
    for fault, expected in zip(
        worked.faults,
        ["out of order", "no `missing`", "_hidden` is not public", "`files` was not granted"],
        strict=True,
    ):
        assert expected in fault


def test_arguments_over_a_pipe_have_a_limit() -> None:
    runner = run_confined(Asks(), grant=lambda service, source: Counter())
    (fault,) = runner.work(1, numbers(9)).faults
    assert "bytes of values, limit is 262144" in fault
    runner.close()


class Forges(Modulator):
    """Goes round the face of a service, straight to the hub."""

    requires = ("counter",)

    def enqueue(self, event: object) -> None:
        dialogue = importlib.import_module("echoic.eager.dialogue")
        line = self.services.counter._line  # noqa: SLF001 - on purpose
        service, name = [
            ("counter", "_target"),
            ("counter", "__class__"),
            ("counter", "_internal"),
            ("_granted", "get"),
            ("__class__", "mro"),
        ][event.value]
        line.ask(dialogue.Get(1, service, name))
        line.ask(dialogue.Call(1, service, name, [], {}))
        super().enqueue(event)


def test_nothing_behind_the_face_of_a_service_can_be_had_over_a_pipe() -> None:
    counter = Counter()
    runner = run_confined(Forges(), grant=lambda service, source: counter)
    worked = runner.work(1, numbers(0, 1, 2, 3, 4))
    assert worked.batch is None
    assert len(worked.faults) == 5
    assert all("is not public, or was not granted" in fault for fault in worked.faults)
    assert counter.total == 0
    runner.close()


class Gives(Modulator):
    requires = ("counter",)

    def enqueue(self, event: object) -> None:
        self.services.counter.give()


def test_a_result_that_is_not_plain_does_not_go_over_a_pipe() -> None:
    runner = run_confined(Gives(), grant=lambda service, source: Counter())
    (fault,) = runner.work(1, numbers(1)).faults
    assert "got `object` - at the result of `counter.give`" in fault
    runner.close()


def test_a_source_that_comes_later_without_the_service_is_refused_and_the_others_go_on() -> None:
    for place in PLACES.values():
        runner = place(Adds(), grant=lambda service, source: Counter() if source == 1 else None)
        for _ in range(2):
            with pytest.raises(RefusedError, match=r"requires the service `counter`.* source 2"):
                runner.work(2, numbers(1))
            assert not runner.work(1, numbers(1)).faults
        runner.close()
