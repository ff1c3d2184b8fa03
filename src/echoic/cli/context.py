"""`echoic context`: names for systems that one person works with: the lab, the plant, this machine.

What a context holds and when it counts is in `echoic.cli.settings`. The file is people's own: it is written anew as a
whole, beside the place, and put there in one step, so that nobody ever reads half of it. Comments in it are lost, which
is told when there were any.
"""

import os
import re
import tomllib
from pathlib import Path
from typing import Final

import msgspec

from echoic.cli.screen import json_text, printable, say
from echoic.cli.settings import ContextSettings, Settings, did_you_mean, read_settings, settings_path
from echoic.cli.tables import print_table
from echoic.cli.where import AsJson, Flag, Text
from echoic.errors import AddressError, ChannelExistsError, ChannelNotFoundError

__all__ = ["add", "list_contexts", "remove", "show", "use"]

NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
CONTEXTS_MAX: Final = 1000


def add(
    name: str,
    /,
    *,
    names: str,
    listen: Text = "",
    insecure: Flag = False,
    identity: Text = "",
    description: Text = "",
    force: Flag = False,
) -> None:
    """Give a system a name: where its name server is, and where other hubs reach this machine.

    Try:
        echoic context add lab --names 10.0.0.5:7400 --listen 10.0.0.9:0 --identity alice
        echoic ls --context lab
        echoic context use lab

    Args:
        name: What to call it.
        names: Its name server, HOST:PORT.
        listen: Where other hubs reach this one, HOST:PORT.
        insecure: Accept that strangers can read and write there.
        identity: Who you are there, of `echoic keys issue`.
        description: What it is, for `echoic context ls`.
        force: Replace the context of this name.
    """
    from echoic.links import parse_address

    if not NAME.fullmatch(name):
        raise AddressError(f"expected the name of a context to be letters, digits, - and _, got '{name}'")
    for address in (names, listen):
        if address:
            parse_address(address)
    settings = read_settings()
    if name in settings.contexts and not force:
        raise ChannelExistsError(f"there is a context '{name}' already (echoic context add {name} --force ...)")
    if len(settings.contexts) >= CONTEXTS_MAX:
        raise AddressError(f"{settings_path()} has {CONTEXTS_MAX} contexts, which is the limit")
    made = ContextSettings(names, listen, insecure, description, identity)
    _write(msgspec.structs.replace(settings, contexts={**settings.contexts, name: made}))
    say(f"context '{name}' is at {names} (echoic context use {name})")


def use(name: Text = "", /, *, none: Flag = False) -> None:
    """Have every verb look there from here on, unless it is told something else.

    `--names`, `--context`, $ECHOIC_NAMES and $ECHOIC_CONTEXT come first.

    Try:
        echoic context use lab
        echoic context use --none

    Args:
        name: Which context.
        none: Use no context any more.
    """
    if bool(name) == none:
        raise AddressError("expected the name of a context, or --none")
    settings = read_settings()
    if name:
        _present(settings, name)
    _write(msgspec.structs.replace(settings, context=name))
    say(f"context '{name}' is used: names at {settings.contexts[name].names}" if name else "no context is used")


def list_contexts(*, as_json: AsJson = False) -> None:
    """List the contexts; the one in use has a star.

    Try:
        echoic context ls

    Args:
        as_json: Print a list of objects as JSON.
    """
    settings = read_settings()
    current = _current(settings)
    if as_json:
        listed = [_as_object(name, each, current) for name, each in sorted(settings.contexts.items())]
        print(json_text(listed))
        return
    rows = [
        ["*" if name == current else "", name, each.names, each.listen, each.description]
        for name, each in sorted(settings.contexts.items())
    ]
    print_table(["", "CONTEXT", "NAMES", "LISTEN", "DESCRIPTION"], rows)
    if not rows:
        say("no contexts (echoic context add --help)")


def show(name: Text = "", /, *, as_json: AsJson = False) -> None:
    """Show a context; without a name, the one in use.

    Try:
        echoic context show
        echoic context show lab --json

    Args:
        name: Which context.
        as_json: Print an object as JSON.
    """
    settings = read_settings()
    current = _current(settings)
    if not name and not current:
        raise ChannelNotFoundError("no context is used (echoic context use NAME)")
    found = _present(settings, name or current)
    told = _as_object(name or current, found, current)
    if as_json:
        print(json_text(told))
        return
    for key, value in told.items():
        print(f"{key + ':':<13}{printable(str(value).lower() if isinstance(value, bool) else str(value))}".rstrip())


def remove(name: str, /) -> None:
    """Forget a context.

    Try:
        echoic context rm lab

    Args:
        name: Which context.
    """
    settings = read_settings()
    _present(settings, name)
    kept = {other: each for other, each in settings.contexts.items() if other != name}
    current = "" if settings.context == name else settings.context
    _write(msgspec.structs.replace(settings, contexts=kept, context=current))
    say(f"context '{name}' is forgotten")


def _current(settings: Settings) -> str:
    """Return the context that verbs take when they are told nothing."""
    return os.environ.get("ECHOIC_CONTEXT") or settings.context


def _present(settings: Settings, name: str) -> ContextSettings:
    if name not in settings.contexts:
        hint = did_you_mean(name, settings.contexts)
        raise ChannelNotFoundError(f"there is no context '{name}'{hint} (echoic context ls)")
    return settings.contexts[name]


def _as_object(name: str, context: ContextSettings, current: str) -> dict[str, object]:
    fields = {field: getattr(context, field) for field in ContextSettings.__struct_fields__}
    return {"name": name, **fields, "used": name == current}


def _write(settings: Settings) -> None:
    """Replace the file, whole or not at all.

    What others have put into it, and this program does not know, stays.

    Raises:
        AddressError: It cannot be written.
    """
    path = settings_path()
    try:
        before = path.read_text("utf-8") if path.exists() else ""
        known = set(Settings.__struct_fields__)
        others = {key: value for key, value in tomllib.loads(before).items() if key not in known}
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f"{path.name}.{os.getpid()}")
        beside.write_text(_toml({**others, **msgspec.to_builtins(settings)}), "utf-8")
        _replace(beside, path)
    except (OSError, ValueError) as error:
        raise AddressError(f"cannot write {path}: {error}") from error
    if re.search(r"^\s*#", before, re.MULTILINE):
        say(f"the comments in {path} are lost")


def _replace(beside: Path, path: Path) -> None:
    target = path.resolve()  # who keeps the file elsewhere has a link here, which stays
    if target.parent == path.parent.resolve():
        beside.replace(target)
    else:
        target.write_text(beside.read_text("utf-8"), "utf-8")
        beside.unlink()


def _toml(table: dict[str, object], prefix: str = "") -> str:
    """Return a table as TOML: its values first, then the tables in it."""
    plain = [f"{_key(key)} = {_value(value)}" for key, value in table.items() if not isinstance(value, dict)]
    text = "".join(f"{line}\n" for line in plain)
    for key, value in table.items():
        if isinstance(value, dict):
            name = f"{prefix}{_key(key)}"
            text += f"\n[{name}]\n" if any(not isinstance(each, dict) for each in value.values()) else ""
            text += _toml(value, f"{name}.")
    return text


def _key(key: str) -> str:
    return key if NAME.fullmatch(key) else _value(key)


def _value(value: object) -> str:
    """Return a value as TOML; JSON's spelling of texts, numbers and lists of these is also TOML's.

    Raises:
        ValueError: This program cannot write it, and would lose it.
    """
    if isinstance(value, str | int | float | bool) or (
        isinstance(value, list) and all(isinstance(each, str | int | float | bool) for each in value)
    ):
        return json_text(value)
    raise ValueError(f"{value!r} cannot be kept, please edit the file by hand")
