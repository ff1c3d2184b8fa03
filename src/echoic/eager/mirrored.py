"""The hub's side of a shared object whose modulator is in a confined process.

The class of the object is part of the shipped text, which is not run here. So the copy in this process has a class of
its own, made of nothing but the type of the values, and the confined process has what it thinks is a copy
(`inside.Mirror`). Between them go whole records: what has changed ahead of each call, what was published at once.
"""

from typing import Final

from echoic.eager.cell import Cell
from echoic.eager.dialogue import Changed
from echoic.eager.parcel import SharedReference
from echoic.eager.pipe import Deadline
from echoic.eager.shared_object import RESERVED, SharedHost, SharedObject
from echoic.errors import ModulatorError, RefusedError, RemoteError
from echoic.formats import Format, bind
from echoic.wire import Batch

__all__ = ["Mirrored"]


class Mirrored:
    """One shared object of a confined modulator.

    Raises:
        RefusedError: The hub has no copy for it, or its type cannot be that of a shared object.
    """

    def __init__(self, reference: SharedReference, host: SharedHost) -> None:
        self._attribute = reference.attribute
        self._format = Format.from_descriptor(reference.format)
        self.copy: Final = host.copy(reference, _class_of(reference.class_name, self._format))
        self._sent = Changed(reference.attribute, reference.version, stale=False)
        self._sent_values = reference.values

    def current(self) -> tuple[Changed, bytes]:
        """Return how it is, and note that the confined process knows."""
        reference = self.copy.reference(self._attribute)
        self._sent = Changed(self._attribute, reference.version, self.copy.stale)
        self._sent_values = reference.values
        return self._sent, reference.values

    def send_changes(self, cell: Cell, deadline: Deadline) -> None:
        """Tell the confined process what has changed since it was last told.

        Raises:
            ModulatorError: It cannot be told.
        """
        before, values_before = self._sent, self._sent_values
        changed, values = self.current()
        if changed != before or values != values_before:
            cell.send(changed, [values], deadline)

    def write(self, fields: tuple[str, ...], values: bytes) -> None:
        """Publish fields of a record that comes from the confined process.

        Raises:
            ModulatorError: The record, or a field, is not one of the object.
            EchoicError: It cannot be published, as `SharedObject.publish` says.
        """
        known = {field.name for field in self._format.fields}
        if not known.issuperset(fields):
            raise ModulatorError(f"it wrote fields that `{self._format.name}` does not have - at `{self._attribute}`")
        try:
            (record,) = Batch.of_record(values, self._format).events()
        except RemoteError as error:
            raise ModulatorError(f"it wrote what is no `{self._format.name}`: {error}") from error
        for name in fields:
            setattr(self.copy, name, getattr(record, name))
        self.copy.publish()


def _class_of(name: str, format: Format) -> type[SharedObject]:
    """Return a class of shared objects for a type; the names of its fields come from a stranger."""
    for field in format.fields:
        if field.name in RESERVED or field.name.startswith("_"):
            raise RefusedError(f"`{field.name}` cannot be a field of a shared object - at `{name}`")
    made: type[SharedObject] = type(name, (SharedObject,), {})
    made.__echoic_record__ = bind(format).make  # type: ignore[assignment] # of a format without a class, it is a Record
    return made
