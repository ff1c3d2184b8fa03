"""Trees without their places, to be compared; and errors as text."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass

import pytest

from echoic.errors import ScriptError
from echoic.scripts.syntax import load
from echoic.scripts.syntax.tree import Process, Script


def shape(node: object) -> object:
    """Return a node as nested tuples, without spans and sources."""
    if isinstance(node, tuple):
        return tuple(map(shape, node))
    if is_dataclass(node) and not isinstance(node, type):
        parts = [shape(getattr(node, field.name)) for field in fields(node) if field.name not in ("span", "sources")]
        return (type(node).__name__, *parts)
    return (type(node).__name__, node.hex() if isinstance(node, float) else node)


def body_of(text: str) -> Process:
    """Return a process by itself."""
    return load(f"process P is {text}").processes[0].body


def included(files: Mapping[str, str], name: str = "main.tb", defines: Mapping[str, str] | None = None) -> Script:
    """Return the script that starts with a file, which may include the others."""
    return load(files[name], name, include=lambda wanted, _: (wanted, files[wanted]), defines=defines or {})


def refusal(text: str, name: str = "a.tb") -> str:
    """Return what is said about a text that is no script."""
    with pytest.raises(ScriptError) as caught:
        load(text, name)
    return str(caught.value)
