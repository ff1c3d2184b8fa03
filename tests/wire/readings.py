"""Every way from the bytes of a batch to its events.

Each way takes a batch whose payload nobody has looked at and gives plain events (`samples.plain`): all ways the same.
What one way refuses, every way must refuse.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from echoic.errors import EchoicError
from echoic.formats import ARCHITECTURES, Format, bind, match
from echoic.wire import Batch, Conversion, Decoder
from echoic.wire.convert import CONVERTED_BYTES_MAX
from echoic.wire.convert_native import can_generate
from echoic.wire.convert_numpy import NumpyConversion
from tests.wire.samples import plain, stripped

__all__ = ["WAYS", "Way", "elsewhere", "outcome", "outcomes", "ways_for"]

Way = Callable[[Batch], list[Any]]


def elsewhere(format: Format) -> Format:
    """Return the same type on a machine where nothing lies as it does here."""
    return format.on(ARCHITECTURES["m68k" if format.byte_order == "little" else "i386"])


@lru_cache(maxsize=64)
def _compiled_decoder(format: Format) -> Decoder:
    decoder = Decoder(bind(format))
    decoder.compile()
    return decoder


@lru_cache(maxsize=64)
def _native_conversion(format: Format) -> Conversion:
    conversion = Conversion(format, elsewhere(format))
    conversion.compile()
    return conversion


@lru_cache(maxsize=64)
def _careful_decoder(format: Format) -> Decoder:
    return Decoder(bind(format))


def _places(batch: Batch) -> Any:
    """Return where the records lie as the batch itself would tell its decoder."""
    return batch.offsets if batch.format.variable else batch.bounds


def _events(made: Any, format: Format) -> list[Any]:
    return [stripped(plain(event), format) for event in made]


def by_walking(batch: Batch) -> list[Any]:
    return _events(_careful_decoder(batch.format).walk(batch.records, _places(batch)), batch.format)


def by_decoding(batch: Batch) -> list[Any]:
    return _events(Decoder(bind(batch.format)).decode(batch.records, _places(batch)), batch.format)


def by_compiled_decoding(batch: Batch) -> list[Any]:
    return _events(_compiled_decoder(batch.format).decode(batch.records, _places(batch)), batch.format)


def by_numpy(batch: Batch) -> list[Any]:
    conversion = NumpyConversion(match(batch.format, elsewhere(batch.format)))
    if batch.format.variable:
        made = conversion.convert_variable(batch.records, batch.bounds, batch.count, CONVERTED_BYTES_MAX)
        return _converted(batch, *made)
    return _converted(batch, conversion.convert_fixed(batch.records, batch.count), None)


def by_native_code(batch: Batch) -> list[Any]:
    return _converted(batch, *_native_conversion(batch.format).convert(batch.records, batch.bounds, batch.count))


def _converted(batch: Batch, records: Any, bounds: Any) -> list[Any]:
    target = elsewhere(batch.format)
    made = Batch(target, batch.count, [records], bounds)
    return _events(_careful_decoder(target).walk(made.records, made.bounds), target)


def by_array(batch: Batch) -> list[Any]:
    names = [field.name for field in batch.format.fields]
    return [stripped({name: plain(row[name]) for name in names}, batch.format) for row in batch.array]


def by_arrow(batch: Batch) -> list[Any]:
    columns = batch.arrow
    columns.validate(full=True)
    return [stripped(plain(row), batch.format) for row in columns.to_pylist()]


WAYS: Final[dict[str, Way]] = {
    "walking": by_walking,
    "decoding": by_decoding,
    "compiled decoding": by_compiled_decoding,
    "conversion by NumPy": by_numpy,
    "conversion by native code": by_native_code,
    "array": by_array,
    "arrow": by_arrow,
}


def ways_for(format: Format) -> dict[str, Way]:
    """Return the ways that a format has: C pointers have no native conversion."""
    native = can_generate(match(format, elsewhere(format)))
    return {name: way for name, way in WAYS.items() if native or way is not by_native_code}


def outcome(way: Way, batch: Batch) -> Any:
    """Return the events, or the class of the declared error; anything else is a bug and is raised."""
    try:
        return way(batch)
    except EchoicError as error:
        return type(error)


def outcomes(make: Callable[[], Batch]) -> dict[str, Any]:
    """Return what every way makes of a batch; each gets one that nobody has touched."""
    return {name: outcome(way, make()) for name, way in ways_for(make().format).items()}
