"""Parcels: they arrive as they were sent, or not at all."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import echoic
from echoic.eager import Modulator, SigningKey, load
from echoic.eager.parcel import DOMAIN, PARCEL_BYTES_MAX, Parcel, SharedReference, Signed, pack, sign, unpack
from echoic.eager.shared_object import SharedObject, SharedView, attach, encode_values, record_class
from echoic.errors import LocalError, MalformedFrameError, RefusedError
from echoic.formats import Format

KEY, OTHER = SigningKey.generate(), SigningKey.generate()
PARENT = "echoic://127.0.0.1:7401/trades"


@echoic.event
class Trade:
    symbol: str
    price: float


@echoic.event
class Mean:
    price: float


class Window(Modulator):
    low: float
    high: float = 100.0
    symbols: str = ""
    sizes: echoic.Array[echoic.int32, 3] = (0, 0, 0)
    whole: bool = False
    depth: echoic.uint16 = 0
    extra: bytes = b""

    def enqueue(self, event: Any) -> None:
        if self.low <= event.price < self.high:
            super().enqueue(event)


class Box(SharedObject):
    start: int = 0
    end: int = 0


class Boxed(Modulator):
    box: Box
    low: float = 0.0

    def enqueue(self, event: Any) -> None:
        if self.box.start <= event.price < self.box.end:
            super().enqueue(event)


class Averaged(Modulator):
    requires = ("clock", "log")
    output = Mean
    period_ns = 5_000_000

    def dequeue(self) -> object | None:
        return None


TRADE = Format.of(Trade)
WINDOW = pack(Window(1.0), PARENT, TRADE, KEY)[0]
STATES = st.fixed_dictionaries(
    {
        "low": st.floats(allow_nan=False),
        "high": st.floats(allow_nan=False),
        "symbols": st.text(max_size=50).filter(lambda text: "\0" not in text),
        "sizes": st.lists(st.integers(-(2**31), 2**31 - 1), min_size=3, max_size=3),
        "whole": st.booleans(),
        "depth": st.integers(0, 65535),
        "extra": st.binary(max_size=50),
    }
)


def test_a_parcel_says_all_about_a_modulator() -> None:
    parcel, key = unpack(pack(Averaged(), PARENT, TRADE, KEY)[0])
    assert key == KEY.public
    assert (parcel.parent, parcel.class_name, parcel.requires) == (PARENT, "Averaged", ("clock", "log"))
    assert (parcel.period_ns, parcel.buffered, parcel.shared) == (5_000_000, True, ())
    assert (parcel.state_format, parcel.state) == (b"", b"")
    assert Format.from_descriptor(parcel.output) == Format.of(Mean)
    plain, _ = unpack(WINDOW)
    assert (plain.output, plain.buffered, plain.period_ns, plain.requires) == (b"", False, 0, ())


@given(STATES)
def test_state_arrives_as_it_was_sent(state: dict[str, Any]) -> None:
    sent = Window(**state)
    parcel, key = unpack(pack(sent, PARENT, TRADE, KEY)[0])
    received = load(parcel, key).make({})
    for name, value in state.items():
        expected = list(value) if name == "sizes" else value
        arrived = getattr(received, name)
        assert (arrived.tolist() if name == "sizes" else arrived) == expected
    assert received.equality()[0] == sent.equality()[0]


class Kept:
    """A replica that is nowhere else."""

    def __init__(self, id: str, box: Box) -> None:
        self.id = id
        self.format = Format.of(record_class(Box))
        self.view = SharedView(encode_values(box.snapshot(), self.format), 3)

    def write(self, fields: tuple[str, ...], values: bytes) -> None:
        self.view = SharedView(values, self.view.version + 1)

    def pull(self) -> None:
        pass

    def release(self, copy: SharedObject) -> None:
        pass


def shared_box(id: str) -> Box:
    box = Box(1, 5)
    attach(box, Kept(id, box))
    return box


def test_shared_objects_travel_as_references() -> None:
    box = shared_box("h:1/shared/1-a")
    data, digest = pack(Boxed(box), PARENT, TRADE, KEY)
    parcel, key = unpack(data)
    (reference,) = parcel.shared
    assert (reference.attribute, reference.id, reference.class_name, reference.version) == ("box", box.id, "Box", 3)
    assert reference.values == encode_values(box.snapshot(), Format.from_descriptor(reference.format))
    loaded = load(parcel, key)
    copy = loaded.shared_classes["box"](2, 3)
    made = loaded.make({"box": copy})
    made.enqueue(Trade("a", 2.5))
    made.enqueue(Trade("a", 1.5))
    assert (made.waiting, type(copy).__name__) == (1, "Box")
    assert pack(Boxed(box), PARENT, TRADE, OTHER)[1] == digest
    assert pack(Boxed(shared_box("h:1/shared/2-b")), PARENT, TRADE, KEY)[1] != digest


def test_an_object_that_is_not_shared_cannot_travel() -> None:
    with pytest.raises(LocalError, match="not shared yet"):
        pack(Boxed(Box(1, 2)), PARENT, TRADE, KEY)


def test_an_output_of_the_parents_type_is_what_goes_in() -> None:
    class Same(Modulator):
        pass

    class Named(Modulator):
        output = Trade

    assert unpack(pack(Same(), PARENT, TRADE, KEY)[0])[0].output == b""
    assert unpack(pack(Named(), PARENT, TRADE, KEY)[0])[0].output == b""


def test_identity_is_of_what_it_does_and_not_of_who_sends_it_where() -> None:
    digests = {
        pack(Window(1.0), PARENT, TRADE, KEY)[1],
        pack(Window(1), PARENT, TRADE, OTHER)[1],
        pack(Window(low=1.0), f"{PARENT}.2", TRADE, KEY)[1],
    }
    assert len(digests) == 1
    others = [pack(each, PARENT, TRADE, KEY)[1] for each in (Window(2.0), Window(1.0, sizes=(0, 0, 1)), Averaged())]
    slower = Window(1.0)
    slower.period_ns = 7
    assert len({*digests, *others, pack(slower, PARENT, TRADE, KEY)[1]}) == 5


SCRIPT = """
import sys
import echoic
from echoic.eager import Modulator, SigningKey, pack

@echoic.event
class Trade:
    price: float

LIMITS = {"a", "b", "c"}

class Window(Modulator):
    low: float
    names: echoic.Array[echoic.int32, 2] = (1, 2)
    def enqueue(self, event):
        if event.price > self.low and LIMITS:
            super().enqueue(event)

parent = "echoic://127.0.0.1:1/" + sys.argv[1]
print(pack(Window(2), parent, echoic.Format.of(Trade), SigningKey.generate())[1].hex())
"""


def test_two_processes_with_different_keys_make_equal_identities(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, "utf-8")
    made = [
        subprocess.run(
            [sys.executable, script, name],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for name, seed in (("one", "1"), ("two", "2"))
    ]
    assert made[0] == made[1]
    assert len(made[0].strip()) == 32


def test_state_that_cannot_travel_is_the_senders_mistake() -> None:
    large, wrong, restless = Window(1, extra=bytes(600_000)), Window(1), Window(1)
    wrong.low = None  # type: ignore[assignment]
    restless.period_ns = -1
    for modulator, said in ((large, "bytes of `state`, limit is 524288"), (wrong, "Window.low"), (restless, "-1 ns")):
        with pytest.raises(LocalError, match=said):
            pack(modulator, PARENT, TRADE, KEY)


def test_a_class_is_no_modulator() -> None:
    with pytest.raises(LocalError, match=r"expected a modulator, got the class `Window`; write `Window\(\.\.\.\)`"):
        pack(Window, PARENT, TRADE, KEY)  # type: ignore[arg-type]


def refused(data: bytes) -> str:
    with pytest.raises((RefusedError, MalformedFrameError)) as error:
        unpack(data)
    return str(error.value)


@given(st.data())
def test_a_parcel_with_a_changed_byte_is_refused(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(WINDOW) - 1))
    change = data.draw(st.integers(1, 255))
    refused(WINDOW[:at] + bytes([WINDOW[at] ^ change]) + WINDOW[at + 1 :])


@given(st.integers(0, len(WINDOW) - 1))
def test_a_cut_parcel_is_refused(size: int) -> None:
    refused(WINDOW[:size])
    refused(WINDOW + WINDOW[:size] + b"\0")


@given(st.binary(max_size=300))
def test_noise_is_refused(noise: bytes) -> None:
    refused(noise)
    refused(msgspec.msgpack.encode([noise, KEY.public, KEY.sign(DOMAIN + noise)]))


def test_an_oversized_parcel_is_refused_unread() -> None:
    assert refused(bytes(PARCEL_BYTES_MAX + 1)) == "a parcel has 1048577 bytes, limit is 1048576"


def test_signatures_are_bound_to_the_parcel_the_key_and_the_use() -> None:
    first = msgspec.msgpack.decode(WINDOW, type=Signed)
    second = msgspec.msgpack.decode(pack(Window(2.0), PARENT, TRADE, OTHER)[0], type=Signed)
    replace, encode = msgspec.structs.replace, msgspec.msgpack.encode
    swaps = [
        replace(first, parcel=second.parcel),
        replace(first, key=second.key),
        replace(first, signature=second.signature),
        replace(first, signature=KEY.sign(first.parcel)),  # of another use of the key
        replace(first, signature=first.signature[:-1]),
        replace(first, signature=b""),
        replace(first, key="ed25519:"),
        replace(first, key="*"),
        replace(second, key=first.key),
    ]
    for swapped in swaps:
        with pytest.raises(RefusedError):
            unpack(encode(swapped))
    assert unpack(encode(second))[1] == OTHER.public


def test_the_signer_is_asked_for_before_the_inside_is_looked_at() -> None:
    noise = msgspec.msgpack.encode([b"noise", KEY.public, KEY.sign(DOMAIN + b"noise")])
    asked: list[str] = []

    def refuse(key: str) -> None:
        asked.append(key)
        raise RefusedError("nobody is admitted")

    for data in (WINDOW, noise):
        with pytest.raises(RefusedError, match="nobody is admitted"):
            unpack(data, admit=refuse)
    assert asked == [KEY.public] * 2
    assert unpack(WINDOW, admit=asked.append)[1] == asked[2]
    with pytest.raises(MalformedFrameError, match="expected a parcel"):
        unpack(noise)


REFERENCE = SharedReference("box", "h:1/shared/1-a", "Box", Format.of(Mean).descriptor, bytes(8), 1)
GOOD = unpack(WINDOW)[0]
HOSTILE: list[dict[str, object]] = [
    {"parent": "x" * 513},
    {"class_name": ""},
    {"class_name": "import os"},
    {"class_name": "x" * 129},
    {"text": "x" * 65_537},
    {"state_format": b"nonsense"},
    {"state_format": b""},
    {"state": b""},
    {"state": b"\xff" * 64},
    {"state": bytes(600_000)},
    {"output": b"nonsense"},
    {"requires": ("a b",)},
    {"requires": tuple(f"s{number}" for number in range(17))},
    {"period_ns": -1},
    {"period_ns": 2**62},
    {"shared": (REFERENCE, REFERENCE)},
    {"shared": tuple(msgspec.structs.replace(REFERENCE, attribute=f"a{number}") for number in range(17))},
    {"shared": (msgspec.structs.replace(REFERENCE, attribute="a.b"),)},
    {"shared": (msgspec.structs.replace(REFERENCE, class_name="1"),)},
    {"shared": (msgspec.structs.replace(REFERENCE, id=""),)},
    {"shared": (msgspec.structs.replace(REFERENCE, id="x" * 513),)},
    {"shared": (msgspec.structs.replace(REFERENCE, format=b"no"),)},
    {"shared": (msgspec.structs.replace(REFERENCE, values=b"no"),)},
    {"shared": (msgspec.structs.replace(REFERENCE, version=-1),)},
]


@pytest.mark.parametrize("change", HOSTILE, ids=lambda change: f"{next(iter(change))}")
def test_a_well_signed_parcel_keeps_the_limits_too(change: dict[str, object]) -> None:
    with pytest.raises(MalformedFrameError):
        unpack(sign(msgspec.structs.replace(GOOD, **change), KEY))
    assert unpack(sign(msgspec.structs.replace(GOOD, shared=(REFERENCE,)), KEY))[0].shared == (REFERENCE,)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.integers(0, 9), VALUES)
def test_a_well_signed_parcel_with_any_value_in_any_field_is_refused_or_whole(field: int, value: object) -> None:
    values = list(msgspec.structs.astuple(GOOD))
    values[field] = value
    data = msgspec.msgpack.encode(values)
    try:
        parcel, _ = unpack(msgspec.msgpack.encode([data, KEY.public, KEY.sign(DOMAIN + data)]))
    except (RefusedError, MalformedFrameError):
        return
    assert isinstance(parcel, Parcel)


def test_extra_fields_are_refused() -> None:
    values = [*msgspec.structs.astuple(GOOD), 1]
    data = msgspec.msgpack.encode(values)
    refused(msgspec.msgpack.encode([data, KEY.public, KEY.sign(DOMAIN + data)]))
    refused(msgspec.msgpack.encode([*msgspec.structs.astuple(msgspec.msgpack.decode(WINDOW, type=Signed)), 1]))
