"""Running ready-made modulators in tests without any hub: intercepts are called as a source calls them."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy

from echoic.eager.modulator import EcodeModulator, Intercepts
from echoic.eager.shared_object import SharedObject
from echoic.ecode import Kernel, Signature, analyse, check, compile_native, compile_python, parameter_format
from echoic.formats import Format
from echoic.wire import Batch

COMPILERS = {"python": compile_python, "native": compile_native}


class Program:
    """A modulator of E-Code, compiled by one back end, with its statics."""

    def __init__(self, modulator: EcodeModulator, declared: object, back_end: str) -> None:
        assert isinstance(modulator.code, str)
        assert modulator.output is None
        self.declared = declared
        self.params = modulator.params
        format = None if self.params is None else parameter_format(self._values())
        program = check(modulator.code, Signature(Format.of(declared), None, format))
        self.kernel: Kernel = COMPILERS[back_end](program, analyse(program))
        self.format = format
        self.statics = program.initial_statics()

    def run(self, events: Sequence[Any]) -> list[Any]:
        """Return the events of a batch that pass."""
        batch = Batch.of(events, self.declared)
        block = b"" if self.format is None else bytes(Batch.of([self._values()], self.format).records)
        bounds = numpy.asarray(batch.bounds, numpy.uint32).tobytes() if batch.format.variable else None
        outcome = self.kernel.run(batch.records, bounds, len(batch), block, self.statics)
        assert outcome.faults == []
        assert outcome.handled == len(events)
        return [events[number] for number in outcome.selected.tolist()]

    def _values(self) -> object:
        return self.params.snapshot() if isinstance(self.params, SharedObject) else self.params


def passed(modulator: EcodeModulator, events: Sequence[Any], declared: object) -> list[Any]:
    """Return the events that pass, the same by every back end, and however they are cut into batches."""
    whole = [Program(modulator, declared, back_end).run(events) for back_end in COMPILERS]
    assert whole[0] == whole[1]
    cut, middle = Program(modulator, declared, "python"), len(events) // 2
    assert cut.run(events[:middle]) + cut.run(events[middle:]) == whole[0]
    return whole[0]


def drained(intercepts: Intercepts) -> list[Any]:
    """Return everything that waits, in order."""
    return list(iter(intercepts.dequeue, None))


def sent(intercepts: Intercepts, events: Iterable[Any]) -> list[Any]:
    """Return what comes out while the transport is ready all the time."""
    found = []
    for event in events:
        intercepts.enqueue(event)
        found += drained(intercepts)
    return found


def travelled(events: Sequence[Any], declared: object) -> list[Any]:
    """Return events as they are after encoding and decoding, in classes of the other side."""
    return Batch.of(events, Format.of(declared)).events()
