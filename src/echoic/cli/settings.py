"""What people have set, and which of it counts: an option, else the environment, else a file, else this machine.

    --names HOST:PORT    >  --context NAME
    > $ECHOIC_NAMES      >  $ECHOIC_CONTEXT
    > context = "NAME" in the file (`echoic context use`)  >  names = "HOST:PORT" in the file
    > 127.0.0.1:7400

A context is a named set of these options, for people who work with several systems. The file is
$XDG_CONFIG_HOME/echoic.toml, ~/.config/echoic.toml when XDG_CONFIG_HOME is not set:

    context = "lab"

    [contexts.lab]
    names = "10.0.0.5:7400"
    listen = "10.0.0.9:0"
    identity = "alice"

`--listen` and `--insecure` have no variable: an option, else the context that was chosen for the name server. Who we
are is chosen by itself: `--identity NAME`, else that of the context that `--context` names, else $ECHOIC_IDENTITY, else
that of the context that was chosen otherwise, else `identity = "NAME"` in the file. An empty name means nobody.
"""

import difflib
import os
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import msgspec

from echoic.errors import AddressError, ChannelNotFoundError

__all__ = [
    "LISTEN_DEFAULT",
    "NAMES_DEFAULT",
    "ContextSettings",
    "Settings",
    "Surroundings",
    "choose",
    "choose_identity",
    "did_you_mean",
    "read_settings",
    "settings_path",
]

NAMES_DEFAULT: Final = "127.0.0.1:7400"
LISTEN_DEFAULT: Final = "127.0.0.1:0"


class ContextSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a context says."""

    names: str
    listen: str = ""
    insecure: bool = False
    description: str = ""
    identity: str = ""


class Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the file says."""

    names: str = ""
    context: str = ""
    identity: str = ""
    contexts: dict[str, ContextSettings] = {}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where the name server is, who said so, where to listen, and as whom."""

    names: str
    origin: str
    listen: str = LISTEN_DEFAULT
    insecure: bool = False
    identity: str = ""


DEFAULT: Final = Surroundings(NAMES_DEFAULT, "the default")


def settings_path() -> Path:
    """Return where the file is, if there is one."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "echoic.toml"


def read_settings(path: Path | None = None) -> Settings:
    """Return what the file says, or another one of its kind; nothing if there is none.

    Raises:
        AddressError: It cannot be read, or says something else than expected.
    """
    path = path or settings_path()
    try:
        return msgspec.convert(tomllib.loads(path.read_text("utf-8")), Settings)
    except FileNotFoundError:
        return Settings()
    except msgspec.ValidationError as error:
        raise AddressError(f"in {path}: {_plainly(str(error))}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise AddressError(f"cannot read {path}: {error}") from error


def choose(names: str | None, context: str | None) -> Surroundings:
    """Return what was chosen, as it was written.

    Args:
        names: The option `--names`, if it was given.
        context: The option `--context`, if it was given.

    Raises:
        AddressError: The file cannot be read.
        ChannelNotFoundError: There is no such context.
    """
    if context is not None:
        found = _of_context(context, "--context", read_settings())
        return found if names is None else replace(found, names=names, origin="--names")
    if names is not None:
        return Surroundings(names, "--names")
    if said := os.environ.get("ECHOIC_NAMES"):
        return Surroundings(said, "ECHOIC_NAMES")
    settings = read_settings()
    if said := os.environ.get("ECHOIC_CONTEXT"):
        return _of_context(said, "ECHOIC_CONTEXT", settings)
    if settings.context:
        return _of_context(settings.context, str(settings_path()), settings)
    return Surroundings(settings.names, str(settings_path())) if settings.names else DEFAULT


def choose_identity(identity: str | None, context: str | None, found: Surroundings) -> str:
    """Return the name of the identity that was chosen; "" if none was.

    Args:
        identity: The option `--identity`, if it was given.
        context: The option `--context`, if it was given.
        found: What else was chosen.

    Raises:
        AddressError: The file cannot be read.
    """
    if identity is not None:
        return identity
    if context is not None and found.identity:
        return found.identity
    said = os.environ.get("ECHOIC_IDENTITY")
    return said if said is not None else found.identity or read_settings().identity


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence that says which of the known names may have been meant; "" if none is near."""
    near = difflib.get_close_matches(name, list(known), n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(repr(other) for other in near)}?" if near else ""


def _of_context(name: str, origin: str, settings: Settings) -> Surroundings:
    if name not in settings.contexts:
        hint = did_you_mean(name, settings.contexts)
        raise ChannelNotFoundError(f"there is no context '{name}' - from {origin}{hint} (echoic context ls)")
    context = settings.contexts[name]
    return Surroundings(
        context.names, f"context '{name}'", context.listen or LISTEN_DEFAULT, context.insecure, context.identity
    )


def _plainly(complaint: str) -> str:
    """Return what msgspec says, as it would be said of a file of settings."""
    what, _, place = complaint.partition(" - at `$")
    return f"{what[:1].lower()}{what[1:]} - at `{place.lstrip('.')}" if place else what
