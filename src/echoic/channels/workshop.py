"""The code of a derivation: checked against the types it works on, and compiled for every layout in which events come.

A source may submit a type that has more fields than the channel's, or come from another machine. Where the fields that
the code uses lie there with the same types, the code is compiled for that very layout, byte order included; any other
batch is converted to the channel's type first.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from echoic.channels.context import check_contexts
from echoic.channels.messages import Step
from echoic.channels.policy import Policy
from echoic.channels.portions import portions
from echoic.ecode import Analysis, Kernel, Program, Signature, Spelling, analyse, check, compile_kernel
from echoic.errors import EchoicError, RefusedError
from echoic.formats import NATIVE, Field, Format, Slots
from echoic.wire import Batch

if TYPE_CHECKING:
    from echoic.channels.member import Member

__all__ = ["Workshop", "signature_of"]

FORMATS_MAX: Final = 16
KEPT_MAX: Final = 64
HEAVY_COST: Final = 2000
ALONE_COST: Final = 10_000  # of an event that is derived by itself, because the code acts on the source


def native_format(descriptor: bytes) -> Format | None:
    """Return the type of a descriptor as this machine lays it out, None for no descriptor."""
    return Format.from_descriptor(descriptor).on(NATIVE) if descriptor else None


def signature_of(step: Step) -> Signature:
    """Return the types that a step's code works on.

    Raises:
        FormatError: A descriptor does not describe a type.
    """
    recipe = step.recipe
    return Signature(
        Format.from_descriptor(step.input).on(NATIVE),
        native_format(recipe.output),
        native_format(recipe.params),
        recipe.ports,
        recipe.capacities,
        native_format(step.context),
    )


@lru_cache(maxsize=KEPT_MAX)
def examined(code: str, spelling: Spelling, signature: Signature) -> tuple[Program, Analysis]:
    """Return the program that a text means for given types, and what is known about it.

    Raises:
        ECodeError: The code is wrong.
    """
    program = check(code, signature, spelling=spelling)
    return program, analyse(program)


@lru_cache(maxsize=KEPT_MAX)
def kernel_of(code: str, spelling: Spelling, signature: Signature) -> Kernel:
    """Return the kernel of a text. It has no state, so whoever derives the same from another channel has the same.

    Raises:
        ECodeError: The code is wrong.
    """
    return compile_kernel(*examined(code, spelling, signature))


class Workshop:
    """The code of a derivation, compiled for every layout in which events come."""

    def __init__(self, step: Step, policy: Policy, parent: "Member | None" = None) -> None:
        """Compile for the channel's type as this machine lays it out.

        Args:
            step: What to compile.
            policy: The limits of the hub.
            parent: Whose sources it is to run in, None if it runs where events arrive.

        Raises:
            ECodeError: The code is wrong.
            RefusedError: It may cost more than this hub allows, or asks for a context that it cannot have.
        """
        recipe = step.recipe
        self.signature: Final = signature_of(step)
        self.program, self.analysis = examined(recipe.code, recipe.spelling, self.signature)
        if self.analysis.cost > policy.cost_max:
            raise RefusedError(
                f"one event may cost {self.analysis.cost} units, the limit here is {policy.cost_max} - at `{step.name}`"
            )
        check_contexts(self.program, parent, step.name)
        self.statics: Final = bytes(self.program.initial_statics())
        self.main: Kernel = kernel_of(recipe.code, recipe.spelling, self.signature)
        self._kernels: dict[int, Kernel | None] = {self.signature.input.token: self.main}
        output = self.signature.output
        self._texts = sum(field.text for _, field in output.walk()) if output is not None else 0
        given = Format.from_descriptor(step.recipe.params) if step.recipe.params else None
        own = self.signature.params
        self._foreign_params = given if given is not None and own is not None and given.layout != own.layout else None

    def block(self, values: bytes) -> bytes:
        """Return a parameter block as this machine lays it out, whatever the one that sent it does.

        Raises:
            MalformedBatchError: It is not a record of its type.
        """
        given, own = self._foreign_params, self.signature.params
        if given is None or own is None:
            return values
        return bytes(Batch.of_record(values, given).to(own).records)

    def prepared(self, batch: Batch) -> tuple[Kernel, Batch]:
        """Return a kernel and the batch as it takes it: as it is, if the fields that matter lie there unchanged."""
        kernel = self.kernel_for(batch.format)
        return (kernel, batch) if kernel is not None else (self.main, batch.to(self.signature.input))

    def kernel_for(self, format: Format) -> Kernel | None:
        """Return the kernel for events of a layout, None if they must be converted before."""
        token, kernels = format.token, self._kernels
        if token not in kernels:
            if len(kernels) >= FORMATS_MAX:  # a peer that has ever more of them must not have each compiled for
                return None
            kernels[token] = self._compiled_for(format)
        return kernels[token]

    def units_each(self, fuel: int) -> int:
        """Return what an event costs at most, if its loops may use so much fuel."""
        use = self.program.context
        alone = ALONE_COST if use is not None and use.acts else 0
        return self.analysis.cost + alone + (0 if self.analysis.bounded else fuel)

    def portions(self, batch: Batch, fuel: int) -> Iterable[Batch]:
        """Return a batch in parts that can be derived at once: mostly just one."""
        likely = self.analysis.output_bytes
        if self._texts:
            likely += self._texts * batch.record_bytes // max(batch.count, 1)
        return portions(batch, self.units_each(fuel), likely)

    @property
    def heavy(self) -> bool:
        """Whether an event may take long, as far as can be known."""
        return self.analysis.cost >= HEAVY_COST or not self.analysis.bounded

    def refine(self) -> None:
        """Compile anew with all of the optimiser, if events take long enough to be worth it. This takes a while."""
        if self.heavy:
            refined = compile_kernel(self.program, self.analysis, tier="full")
            self._kernels[self.signature.input.token] = self.main = refined

    def _compiled_for(self, format: Format) -> Kernel | None:
        known = self.signature.input
        paths = [path for root, path in self.program.used if root == "input"]
        if format.layout == known.layout:
            return self.main
        if format.slots is not Slots.SPAN or not all(_alike(path, format, known) for path in paths):
            return None
        try:
            return kernel_of(self.program.source, self.program.spelling, replace(self.signature, input=format))
        except EchoicError:  # what the conversion makes of it is right in any case
            return None


def _alike(path: tuple[str, ...], one: Format, other: Format) -> bool:
    """Whether a path leads to fields of the same types in two formats, perhaps at different places."""
    for name in path:
        left, right = one.by_name.get(name), other.by_name.get(name)
        if left is None or right is None or _shape(left) != _shape(right):
            return False
        sizing = right.sizing
        if sizing and (sizing not in one.by_name or _shape(one.by_name[sizing]) != _shape(other.by_name[sizing])):
            return False
        if left.record is not None and right.record is not None:
            one, other = left.record, right.record
    return True


def _shape(field: Field) -> tuple[object, ...]:
    signed = field.enumeration.signed if field.enumeration is not None else None
    return (field.kind, field.size if field.record is None else 0, field.dimensions, signed)
