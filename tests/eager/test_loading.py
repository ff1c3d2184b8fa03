"""From a parcel to a class: what runs, what is said when it does not, and what is left behind."""

import gc
import linecache
import sys
import traceback
import weakref
from typing import Any

import msgspec
import pytest

import echoic
from echoic.eager import Modulator, Parcel, SharedReference, SigningKey, explain, load, pack, unpack
from echoic.eager.loading import CLASSES_MAX, TEXTS_MAX
from echoic.eager.shared_object import SharedObject
from echoic.errors import ModulatorError
from echoic.formats import ARCHITECTURES, Format
from echoic.wire import Batch

KEY = SigningKey.generate()
HEAD = "from echoic.eager import Modulator\n"
WINDOW = HEAD + "class Window(Modulator):\n    def enqueue(self, event):\n        super().enqueue(1 / event)\n"


@echoic.event
class Trade:
    price: float


@echoic.event
class Bounds:
    low: float
    high: float = 1.0


class Box(SharedObject):
    start: int = 0


class Window(Modulator):
    count: int
    bounds: Bounds
    box: Box
    steps: echoic.Array[echoic.int32, "count"] = ()
    label: str = "a"


def parcel(text: str, name: str = "Window") -> Parcel:
    return Parcel("c", name, text)


def reference(box: str = "Box") -> SharedReference:
    return SharedReference("box", "h:1/shared/1-a", box, Format.of(Bounds).descriptor, bytes(16), 1)


def shipped(modulator: Modulator) -> Parcel:
    """Return the parcel of a modulator whose objects are not shared, as if they were."""
    snapshot = modulator.snapshot()
    assert snapshot.state is not None
    text = pack(Plain(), "c", Format.of(Trade), KEY)[0]
    return msgspec.structs.replace(
        unpack(text)[0],
        class_name="Window",
        text=source_of(Window),
        state_format=snapshot.state.format.descriptor,
        state=bytes(snapshot.state.records),
        shared=(reference(),),
    )


def source_of(cls: type) -> str:
    from echoic.eager.text import source_text

    return source_text(cls)


class Plain(Modulator):
    pass


def test_a_modulator_arrives_with_its_state_and_a_copy_of_what_it_shares() -> None:
    sent = Window(2, Bounds(3.0), Box(7), [1, 2], "b")
    loaded = load(shipped(sent), KEY.public)
    copy = loaded.shared_classes["box"](8)
    made = loaded.make({"box": copy})
    assert (made.count, made.label, made.steps.tolist(), made.box) == (2, "b", [1, 2], copy)
    assert (made.bounds.low, made.bounds.high) == (3.0, 1.0)
    assert type(made).__name__ == "Window"
    assert type(made) is not Window
    assert loaded.output is None


def test_every_source_has_a_modulator_of_its_own() -> None:
    loaded = load(shipped(Window(1, Bounds(3.0), Box(7), [1])), KEY.public)
    box = loaded.shared_classes["box"](8)
    first, second = loaded.make({"box": box}), loaded.make({"box": box})
    first.steps[0] = 9
    first.enqueue(1)
    assert second.steps.tolist() == [1]
    assert second.dequeue() is None


@pytest.mark.parametrize("machine", ["sparc32", "x86_64"])
def test_state_is_read_from_other_machines(machine: str) -> None:
    here = shipped(Window(2, Bounds(3.0), Box(7), [1, 2], "b"))
    there = Format.from_descriptor(here.state_format).on(ARCHITECTURES[machine])
    state = Batch.of_record(here.state, Format.from_descriptor(here.state_format)).to(there)
    foreign = msgspec.structs.replace(here, state_format=there.descriptor, state=bytes(state.records))
    loaded = load(foreign, KEY.public)
    made = loaded.make({"box": loaded.shared_classes["box"](8)})
    assert (made.count, made.label, made.steps.tolist(), made.bounds.low) == (2, "b", [1, 2], 3.0)


def test_two_texts_do_not_meet() -> None:
    first = load(parcel(HEAD + "N = 1\nclass Window(Modulator):\n    def dequeue(self): return N\n"), KEY.public)
    second = load(parcel(HEAD + "N = 2\nclass Window(Modulator):\n    def dequeue(self): return N\n"), KEY.public)
    assert (first.make({}).dequeue(), second.make({}).dequeue()) == (1, 2)


def test_nothing_is_left_among_the_modules() -> None:
    before = set(sys.modules)
    loaded = load(parcel(WINDOW), KEY.public)
    with pytest.raises(ModulatorError):
        load(parcel("1 / 0\n"), KEY.public)
    assert set(sys.modules) == before
    cls = weakref.ref(loaded.cls)
    del loaded
    for number in range(CLASSES_MAX):
        load(parcel(f"{WINDOW}\nNUMBER = {number}\n"), KEY.public)
    gc.collect()
    assert cls() is None, "it has made room for others"


def test_the_same_text_of_the_same_signer_is_run_once() -> None:
    first, second = load(parcel(WINDOW), KEY.public), load(parcel(WINDOW), KEY.public)
    assert first.cls is second.cls
    assert load(parcel(WINDOW), SigningKey.generate().public).cls is not first.cls


def test_errors_show_the_line_of_the_shipped_text() -> None:
    modulator = load(parcel(WINDOW), KEY.public).make({})
    with pytest.raises(ZeroDivisionError) as raised:
        modulator.enqueue(0)
    said = explain(raised.value)
    assert said.startswith("ZeroDivisionError: division by zero - at line 4 of <modulator Window ")
    assert said.endswith(f" of {KEY.public[:16]}>: `super().enqueue(1 / event)`")
    assert "    super().enqueue(1 / event)\n" in "".join(traceback.format_exception(raised.value))


def test_only_so_many_texts_are_remembered() -> None:
    for number in range(TEXTS_MAX + 10):
        load(parcel(f"{WINDOW}# {number}\n"), KEY.public)
    assert sum(name.startswith("<modulator ") for name in linecache.cache) <= TEXTS_MAX


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("class Window(:\n", r"SyntaxError: .* - at line 1 of <modulator Window .*>: `class Window\(:`"),
        ("\n1 / 0\n", r"ZeroDivisionError: division by zero - at line 2 of <modulator .*>: `1 / 0`"),
        ("import no_such_package\n", "ModuleNotFoundError: No module named 'no_such_package' - at line 1"),
        ("raise SystemExit(3)\n", "SystemExit: 3 - at line 1"),
        ("class E(BaseException): ...\nraise E('x')\n", "E: x - at line 2"),
        ("class E(Exception):\n    def __str__(self): raise self\nraise E\n", "cannot say what it is - at line 3"),
        ("raise ValueError('x' * 5000)\n", "ValueError: x{500} - at line 1"),
        ("x = '\0'\n", "cannot be run"),
        ("", "the text defines no modulator `Window`"),
        ("Window = 3\n", "the text defines no modulator `Window`"),
        ("class Window: ...\n", "the text defines no modulator `Window`"),
        ("from echoic.eager import EcodeModulator as Window\n", "the text defines no modulator `Window`"),
        (HEAD + "class Window(Modulator):\n    n: object\n", "cannot be run: FormatError"),
        (HEAD + "class Window(Modulator):\n    n: Nowhere\n", "NameError: name 'Nowhere' is not defined - at line 3"),
        ("(" * 5000, "cannot be run: (MemoryError|SyntaxError|RecursionError)"),
        ("-" * 60_000 + "1\n", "cannot be run: (MemoryError|SyntaxError|RecursionError)"),
    ],
)
def test_a_text_that_fails_is_reported_with_its_line(text: str, said: str) -> None:
    with pytest.raises(ModulatorError, match=said):
        load(parcel(text), KEY.public)


def test_state_that_does_not_fit_the_class_is_reported() -> None:
    good = shipped(Window(1, Bounds(3.0), Box(7), [1]))
    wrong: list[dict[str, Any]] = [
        {"state_format": b"", "state": b""},
        {"state_format": Format.of(Bounds).descriptor, "state": bytes(16)},
    ]
    for change in wrong:
        loaded = load(msgspec.structs.replace(good, **change), KEY.public)
        with pytest.raises(ModulatorError, match="the state of `Window` does not fit its class"):
            loaded.make({"box": loaded.shared_classes["box"](8)})
    with pytest.raises(ModulatorError, match="does not fit its class"):
        load(good, KEY.public).make({})


def test_shared_objects_that_the_class_does_not_name_are_reported() -> None:
    good = shipped(Window(1, Bounds(3.0), Box(7), [1]))
    for shared in ((), (reference("Other"),)):
        with pytest.raises(ModulatorError, match=r"the class wants {'box': 'Box'} - at `Window`"):
            load(msgspec.structs.replace(good, shared=shared), KEY.public)
