"""From a parcel to a modulator: the only place in echoic that runs a text that somebody else has written.

Whoever calls `load` has found the signer of the parcel in a list, and has decided that its text may run *in this
process*: here nothing is confined. "Restricted Python" is not offered, because it restricts nobody who means it (threat
model, code ladder L2); strangers' parcels are loaded in a process that has nothing to lose (`sandbox`).

The text is run in a module of its own: two parcels with a class of the same name do not meet, unless the same person
has signed the same text, of which only the state differs. Those have one class in common, as in the paper, where a
class loader has it; so what is to be a modulator's own belongs into its attributes.
While it runs, the module can be found by its name, which is how Python reads annotations; then it is forgotten, and
lives as long as the class does. The lines are given to `linecache`, so a traceback shows the shipped text,

    ZeroDivisionError: division by zero - at line 7 of <modulator Window 5f3a91c0 of ed25519:lTYLqvq3>: `1 / event.n`

and whatever goes wrong while loading is a ModulatorError that says so.
"""

import hashlib
import inspect
import itertools
import linecache
import sys
import traceback
import typing
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from types import CodeType, MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Final

from echoic.eager.modulator import EcodeModulator, Modulator, declared_state
from echoic.eager.parcel import Parcel
from echoic.eager.shared_object import SharedObject
from echoic.errors import EchoicError, ModulatorError
from echoic.formats import Format
from echoic.wire import Batch

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Loaded", "explain", "load"]

TEXTS_MAX: Final = 256
CLASSES_MAX: Final = 64
PREFIX: Final = "<modulator "
SAID_CHARACTERS_MAX: Final = 500

_numbers: Final = itertools.count(1)

_texts: Final[OrderedDict[str, None]] = OrderedDict()
"""The names of the texts that `linecache` was given; the one that was used longest ago makes room."""


_classes: "Final[OrderedDict[tuple[str, str, str, bytes], Loaded]]" = OrderedDict()
"""What was loaded last, so that another state for the same text costs little."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The class of a parcel, ready to make a modulator for each source."""

    parcel: Parcel
    cls: type[Modulator]
    output: Format | None
    """The type of what comes out; None for what goes in."""
    shared_classes: Mapping[str, type[SharedObject]]
    """The classes of its shared objects, by attribute."""

    def make(self, shared: Mapping[str, SharedObject]) -> Modulator:
        """Return a modulator with the state of the parcel, and with these copies of its shared objects.

        Raises:
            ModulatorError: The state is not that of the class.
        """
        parcel, state = self.parcel, None
        try:
            if parcel.state_format:
                state = Batch.of_record(parcel.state, Format.from_descriptor(parcel.state_format))
            return self.cls.revive(state, shared)
        except EchoicError as error:
            raise ModulatorError(f"the state of `{parcel.class_name}` does not fit its class: {error}") from error


def load(parcel: Parcel, key: str) -> Loaded:
    """Run the text of a parcel, and return its class.

    Args:
        parcel: A parcel whose signature was checked, and whose signer may run code in this process.
        key: The signer, to be named in messages.

    Raises:
        ModulatorError: The text fails, or does not define what the parcel says.
    """
    known = _cached(parcel, key)
    if known is not None:
        return known
    name = _text_name(parcel, key)
    module = ModuleType(f"echoic_shipped_{next(_numbers)}")
    _remember(name, parcel.text)
    try:
        with _findable(module):
            exec(_compiled(parcel.text, name), module.__dict__)  # noqa: S102 - what this module is for; the signer was checked
            _resolve_annotations(module)
            return _remembered(_loaded(parcel, module), key)
    except (ModulatorError, KeyboardInterrupt):
        raise
    except BaseException as error:  # foreign text may raise anything
        raise ModulatorError(f"the text of `{parcel.class_name}` cannot be run: {explain(error)}") from error


def _cached(parcel: Parcel, key: str) -> Loaded | None:
    """Return a class that was loaded before from the same text of the same signer, with another state."""
    known = _classes.get((key, parcel.class_name, parcel.text, parcel.output))
    if known is None:
        return None
    named = {each.attribute: each.class_name for each in parcel.shared}
    wanted = {name: cls.__name__ for name, cls in known.shared_classes.items()}
    return replace(known, parcel=parcel) if named == wanted else None


def _remembered(loaded: Loaded, key: str) -> Loaded:
    parcel = loaded.parcel
    _classes[key, parcel.class_name, parcel.text, parcel.output] = loaded
    while len(_classes) > CLASSES_MAX:
        _classes.popitem(last=False)
    return loaded


@lru_cache(maxsize=64)
def _compiled(text: str, name: str) -> CodeType:
    """Return the code of a text, which is the same for all that run it."""
    return compile(text, name, "exec", dont_inherit=True)


def explain(error: BaseException) -> str:
    """Return what went wrong in shipped code, in one line, with the line of the text at which it did."""
    said = _said(error)
    if isinstance(error, SyntaxError) and str(error.filename).startswith(PREFIX):
        return f"{type(error).__name__}: {error.msg} - at line {error.lineno} of {error.filename}: `{_line(error)}`"
    frames = [each for each in traceback.extract_tb(error.__traceback__) if each.filename.startswith(PREFIX)]
    if not frames:
        return said
    return f"{said} - at line {frames[-1].lineno} of {frames[-1].filename}: `{frames[-1].line}`"


def _said(error: BaseException) -> str:
    try:
        text = " ".join(str(error).split())[:SAID_CHARACTERS_MAX]
    except Exception:  # noqa: BLE001 - the error is the sender's, and so is what it does when asked for its text
        text = "an error that cannot say what it is"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _line(error: SyntaxError) -> str:
    return (error.text or "").strip()


def _loaded(parcel: Parcel, module: ModuleType) -> Loaded:
    cls = module.__dict__.get(parcel.class_name)
    if not isinstance(cls, type) or not issubclass(cls, Modulator) or issubclass(cls, EcodeModulator):
        raise ModulatorError(f"the text defines no modulator `{parcel.class_name}`")
    shared = declared_state(cls).shared
    named = {each.attribute: each.class_name for each in parcel.shared}
    declared = {name: each.__name__ for name, each in shared.items()}
    if named != declared:
        raise ModulatorError(
            f"the parcel has the shared objects {named}, the class wants {declared} - at `{parcel.class_name}`"
        )
    output = Format.from_descriptor(parcel.output) if parcel.output else None
    return Loaded(parcel, cls, output, MappingProxyType(shared))


def _text_name(parcel: Parcel, key: str) -> str:
    """Return what tracebacks call a text: the class, some of the text's digest, some of the key."""
    digest = hashlib.blake2b(parcel.text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{PREFIX}{parcel.class_name} {digest} of {key[:16]}>"


def _remember(name: str, text: str) -> None:
    """Let tracebacks find the lines of a text."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    _texts[name] = None
    _texts.move_to_end(name)
    while len(_texts) > TEXTS_MAX:
        linecache.cache.pop(_texts.popitem(last=False)[0], None)


@contextmanager
def _findable(module: ModuleType) -> "Iterator[None]":
    """Let Python find a module by its name for a while."""
    sys.modules[module.__name__] = module
    try:
        yield
    finally:
        sys.modules.pop(module.__name__, None)


def _resolve_annotations(module: ModuleType) -> None:
    """Replace the texts of annotations by what they mean, which cannot be asked once the module is forgotten."""
    for cls in [each for each in vars(module).values() if isinstance(each, type)]:
        if cls.__module__ == module.__name__:
            with suppress(
                NameError, TypeError, AttributeError, SyntaxError
            ):  # an annotation that means nothing here is nobody's state
                hints = typing.get_type_hints(cls, include_extras=True)
                cls.__annotations__ = {name: hints[name] for name in inspect.get_annotations(cls)}
