"""wasmtime: WebAssembly, the other way to run a stranger's code safely inside a process.

The modules are written by hand, as good as a compiler would. A module sees nothing but its own memory, so events are
copied into it, and the numbers of those that pass copied out; that belongs to every call.

    0          64           4 KB                                      128 KB...
    parameters | averages   | numbers of the events that passed       | events
"""

import numpy
import wasmtime

from echoic.formats import Format
from echoic.testing.bench.derive import (
    EVENTS,
    FIGURE_4,
    FIGURE_5,
    FIGURE_6,
    Call,
    Compiler,
    Figure,
    Ready,
    Trade,
    memory_of,
)

__all__ = ["COMPILERS"]

SELECTED_AT, EVENTS_AT, AVERAGE_AT = 4096, 131_072, 64
PAGES = 8
PRICE_AT = Format.of(Trade).by_name["trade_price"].offset
SIZE = Format.of(Trade).size

FILTER = f"""(module
  (memory (export "memory") {PAGES})
  (func (export "run") (param $count i32) (result i32)
    (local $event i32) (local $at i32) (local $passed i32) (local $price f64) (local $low f64) (local $high f64)
    (local.set $at (i32.const {EVENTS_AT}))
    (local.set $low LOW)
    (local.set $high HIGH)
    (block $end (loop $next
      (br_if $end (i32.ge_u (local.get $event) (local.get $count)))
      (local.set $price (f64.load offset={PRICE_AT} (local.get $at)))
      (if (i32.or (f64.lt (local.get $price) (local.get $low)) (f64.gt (local.get $price) (local.get $high)))
        (then
          (i32.store offset={SELECTED_AT} (i32.shl (local.get $passed) (i32.const 2)) (local.get $event))
          (local.set $passed (i32.add (local.get $passed) (i32.const 1)))))
      (local.set $event (i32.add (local.get $event) (i32.const 1)))
      (local.set $at (i32.add (local.get $at) (i32.const {SIZE})))
      (br $next)))
    (local.get $passed)))
"""
AVERAGE = f"""(module
  (memory (export "memory") {PAGES})
  (func (export "run") (param $count i32) (result i32)
    (local $i i32) (local $j i32) (local $at i32) (local $sum f64)
    (block $columns (loop $column
      (br_if $columns (i32.ge_s (local.get $i) (i32.const 37)))
      (local.set $j (i32.const 0))
      (local.set $at (i32.add (i32.const {EVENTS_AT}) (i32.shl (local.get $i) (i32.const 3))))
      (block $rows (loop $row
        (br_if $rows (i32.ge_s (local.get $j) (i32.const 253)))
        (local.set $sum (f64.add (local.get $sum) (f64.load (local.get $at))))
        (local.set $at (i32.add (local.get $at) (i32.const 296)))
        (local.set $j (i32.add (local.get $j) (i32.const 1)))
        (br $row)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br $column)))
    (f64.store (i32.const {AVERAGE_AT}) (f64.div (local.get $sum) (f64.const 9361)))
    (i32.const 1)))
"""
TEXTS = {
    FIGURE_4.name: FILTER.replace("LOW", "(f64.const 75.5)").replace("HIGH", "(f64.const 78.5)"),
    FIGURE_5.name: AVERAGE,
    FIGURE_6.name: FILTER.replace("LOW", "(f64.load (i32.const 0))").replace("HIGH", "(f64.load (i32.const 8))"),
}
ENGINE = wasmtime.Engine()


class Instance:
    """One module with its memory."""

    def __init__(self, figure: Figure) -> None:
        self.store = wasmtime.Store(ENGINE)
        module = wasmtime.Module(ENGINE, TEXTS[figure.name])
        exports = wasmtime.Instance(self.store, module, []).exports(self.store)
        self.memory, self.run = exports["memory"], exports["run"]
        if figure.params:
            self.memory.write(self.store, figure.params, 0)

    def filter(self, events: tuple[bytes, int]) -> numpy.ndarray:
        """Return the numbers of the events that pass."""
        data, count = events
        self.memory.write(self.store, data, EVENTS_AT)
        passed = self.run(self.store, count)
        return numpy.frombuffer(self.memory.read(self.store, SELECTED_AT, SELECTED_AT + 4 * passed), numpy.uint32)

    def average(self, data: bytes) -> float:
        """Return the average of one array."""
        self.memory.write(self.store, data, EVENTS_AT)
        self.run(self.store, 1)
        return numpy.frombuffer(self.memory.read(self.store, AVERAGE_AT, AVERAGE_AT + 8))[0]


def ready(records: numpy.ndarray, array: numpy.ndarray) -> Ready:
    """Make calls."""
    figure_4, figure_5, figure_6 = map(Instance, (FIGURE_4, FIGURE_5, FIGURE_6))
    one, several, single = records[1:2].tobytes(), bytes(memory_of(records)), bytes(memory_of(array))

    def lone(instance: Instance) -> Call:
        return Call(lambda data: len(instance.filter((data, 1))), one)

    return Ready(
        {FIGURE_4.name: lone(figure_4), FIGURE_6.name: lone(figure_6)},
        {
            FIGURE_4.name: Call(figure_4.filter, (several, EVENTS), EVENTS),
            FIGURE_6.name: Call(figure_6.filter, (several, EVENTS), EVENTS),
        },
        Call(figure_5.average, single),
        len,
    )


COMPILERS = (Compiler("wasmtime", Instance, ready),)
