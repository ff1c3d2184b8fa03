"""A source's context: what it lets the code of others see of its program, and how such code is run.

"Visibility into the sending application would be controlled by the sender but the use and updating of visible elements
would be specified by the receiver through derivation function" (ECho, section 4). The channel says which values a
context has, so that code can be checked before it is sent; each source has values of its own, says which of them may be
assigned to, and which functions may be called. Code that asks for more is refused at that source.

    event -> copy the values in -> run the code -> take out what it has changed -> call what it has called -> next event

Code that only reads is run over whole batches. Code that acts is run event by event, so that its calls take place right
after the event that made them, and the next event sees what they have done. An event that faults leaves the context as
it was. All of this takes place while the source submits the event: steering that needs no network.
"""

from typing import TYPE_CHECKING, Protocol

import msgspec
import numpy

from echoic.ecode import Buffer, ContextUse, Fault, FaultKind, Kernel, Outcome
from echoic.errors import RefusedError
from echoic.formats import Format
from echoic.wire import Batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from echoic.channels.derivation import Derivation
    from echoic.channels.instance import Instance
    from echoic.channels.member import Member
    from echoic.channels.policy import Policy
    from echoic.ecode import Program

__all__ = ["SourceContext", "check_contexts", "lend_context", "objection", "run_batch"]


class SourceContext(Protocol):
    """What a source offers."""

    @property
    def format(self) -> Format:
        """The type of the values, as this machine lays it out."""
        ...

    @property
    def writable(self) -> frozenset[str]:
        """The values that others may assign to."""
        ...

    def refusal(self, function: str, arguments: int) -> str:
        """Return why a function cannot be called with so many arguments, "" if it can."""
        ...

    def read(self) -> bytes:
        """Return all values, as one record."""
        ...

    def write(self, offset: int, data: Buffer) -> None:
        """Replace some bytes of the record, all at once."""
        ...

    def call(self, function: str, arguments: tuple[float, ...]) -> bool:
        """Call a function; tell whether it has done without raising."""
        ...


def check_contexts(program: "Program", parent: "Member | None", name: str) -> None:
    """Refuse code that names the context, unless a source can give it what it asks for.

    Raises:
        RefusedError: It runs with the sinks, or all sources object.
    """
    if program.context is None:
        return
    if parent is None:
        raise RefusedError(f"code that names `context` runs at the source only - at `{name}`")
    objections = [objection(program, parent.context_of(source)) for source in list(parent.sources)]
    if parent.origin is None and objections and all(objections):
        raise RefusedError(f"{objections[0]} - at `{name}`")


def objection(program: "Program", context: SourceContext | None) -> str:
    """Return why code cannot have a source's context, "" if it can or does not want to."""
    use, expected = program.context, program.signature.context
    if use is None or expected is None:
        return ""
    if context is None:
        return "the source has no context"
    if context.format.layout != expected.layout:
        return f"the source's context is a `{context.format.name}` of another layout than the channel's"
    locked = sorted(use.written - context.writable)
    if locked:
        return f"`context.{locked[0]}` cannot be assigned to: the source does not list it as writable"
    refusals = (context.refusal(function, count) for function, count in use.functions)
    return next((reason for reason in refusals if reason), "")


def lend_context(derivation: "Derivation", source: int, instance: "Instance") -> str:
    """Give a copy of a derivation the context of its source, where what is derived in turn finds it.

    Return why the source does not let the code run, "" if it does.
    """
    if derivation.parent is not None:
        instance.context = derivation.parent.context_of(source)
        if derivation.workshop is not None:
            instance.objection = objection(derivation.workshop.program, instance.context)
    return instance.objection


def run_batch(
    kernel: Kernel,
    batch: Batch,
    params: bytes,
    statics: bytearray,
    policy: "Policy",
    context: SourceContext | None,
    *,
    release: bool,
) -> Outcome:
    """Run code over a batch, with a source's context if it names that.

    Raises:
        CodegenError: Parameters or statics do not belong to the code.
    """
    use = kernel.program.context
    if use is None or context is None:
        records, bounds = batch.records, _bounds(batch)
        fuel, faults_max = policy.fuel, policy.faults_max
        return kernel.run(records, bounds, batch.count, params, statics, fuel, faults_max, release=release)
    statics[use.offset : use.offset + use.size] = context.read()
    if not use.acts:
        return run_batch(kernel, batch, params, statics, policy, None, release=release)
    outcomes: list[Outcome] = []
    faults: list[Fault] = []
    for number, (record, bounds) in enumerate(_records(batch)):
        before = statics[use.offset : use.offset + use.size] = context.read()
        outcome = kernel.run(record, bounds, 1, params, statics, policy.fuel, 1)
        if not outcome.faults and not _act(use, context, before, statics):
            outcome.faults.append(Fault(0, FaultKind.FUNCTION, 0, 0))
        faults += [msgspec.structs.replace(fault, event=number) for fault in outcome.faults]
        outcomes.append(outcome)
        if len(faults) >= policy.faults_max:
            break
    return _joined(outcomes, faults)


def _act(use: ContextUse, context: SourceContext, before: bytes, statics: bytearray) -> bool:
    """Let the source have what an event has assigned and called; tell whether its functions have done."""
    for name in use.written:
        field = context.format.by_name[name]
        end = field.offset + field.size * field.count
        assigned = statics[use.offset + field.offset : use.offset + end]
        if assigned != before[field.offset : end]:
            context.write(field.offset, assigned)
    return all(context.call(function, arguments) for function, arguments in use.calls(statics))


def _joined(outcomes: list[Outcome], faults: list[Fault]) -> Outcome:
    """Return what became of events one by one as what became of a batch; those with faults do not pass."""
    passed = [number for number, one in enumerate(outcomes) if len(one.selected) and not one.faults]
    joined = Outcome(len(outcomes), numpy.array(passed, numpy.uint32), faults)
    kept = [outcomes[number] for number in passed]
    if outcomes and outcomes[0].ports is not None:
        joined.ports = numpy.array([one.ports[0] for one in kept if one.ports is not None], numpy.int32)
    if outcomes and outcomes[0].records is not None:
        records = [one.records for one in kept if one.records is not None]
        joined.records = b"".join(records)
        if outcomes[0].bounds is not None:
            joined.bounds = numpy.cumsum([0, *map(len, records)], dtype=numpy.uint32)
    return joined


def _records(batch: Batch) -> "Iterator[tuple[memoryview, bytes | None]]":
    """Yield the records of a batch one by one, with the bounds of one that is variable."""
    records = memoryview(batch.records)
    if not batch.format.variable:
        size = batch.format.size
        for start in range(0, batch.count * size, size):
            yield records[start : start + size], None
        return
    offsets = batch.known_offsets
    for number in range(batch.count):
        start, end = int(offsets[number]), int(offsets[number + 1])
        yield records[start:end], numpy.array([0, max(end - start, 0)], "=u4").tobytes()


def _bounds(batch: Batch) -> bytes | None:
    """Return the bounds of a variable batch as a kernel wants them."""
    return numpy.asarray(batch.known_offsets, "=u4").tobytes() if batch.format.variable else None
