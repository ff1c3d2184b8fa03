"""What Tab offers of things that live: channels, parameters, contexts, groups, buses.

The script that a shell runs (`echoic completion bash`) knows verbs and options by itself. For the rest it asks

    echoic --complete-live WORDS...      all words behind `echoic`, the one under the cursor last

which prints a candidate a line, or nothing, and waits for a third of a second at most; $ECHOIC_COMPLETE_SECONDS says
another time, for who works with a name server that is far away. It imports neither the application nor a hub, so it has
a small table of its own of what stands where; a test compares it with the verbs. Whoever has chosen an identity asks by
TLS, and is offered what he may see.

What others call their channels ends up on somebody's command line, so only what is a name, and has no meaning for a
shell, is offered.
"""

import os
import re
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from echoic.cli.asking import Entry, ask_names, is_address, parameters_of
from echoic.cli.lines import Proof, proof_of
from echoic.cli.settings import choose, choose_identity, read_settings
from echoic.errors import EchoicError
from echoic.trust import identity_names

__all__ = ["FLAGS", "POSITIONALS", "VALUES", "candidates", "complete_live", "takes_value"]

PATIENCE_SECONDS: Final = 0.3
PATIENCE_SECONDS_MAX: Final = 60.0
CANDIDATES_MAX: Final = 1000
SAFE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*=?")
BUS_SOCKET: Final = re.compile(r"echoic-bus-(?P<name>.+)-\d+\.sock")
STATUS_SUFFIX: Final = ".group"

POSITIONALS: Final[dict[tuple[str, ...], tuple[str, ...]]] = {
    ("echo",): ("channel",),
    ("pub",): ("channel",),
    ("info",): ("channel",),
    ("type",): ("channel",),
    ("hz",): ("channel",),
    ("bw",): ("channel",),
    ("delay",): ("channel",),
    ("derive",): ("channel",),
    ("steer",): ("channel",),
    ("record",): ("channel", "..."),
    ("foxglove",): ("channel", "..."),
    ("param",): ("channel", "parameter", "..."),
    ("group", "view"): ("group",),
    ("bus", "console"): ("bus",),
    ("bus", "refs"): ("bus",),
    ("context", "use"): ("context",),
    ("context", "show"): ("context",),
    ("context", "rm"): ("context",),
    ("keys", "rotate"): ("identity",),
    ("keys", "revoke"): ("identity",),
}
"""What the words behind a verb are; "..." repeats the one before."""
VALUES: Final = {"--context": "context", "--channel": "channel", "--identity": "identity"}
"""What options are given."""
FLAGS: Final = frozenset(
    {
        *("--csv", "--help", "--hold", "--insecure", "--json", "--leave", "--none", "--once", "--python", "--quiet"),
        *("--shutdown", "--stdin", "--version", "-1", "-h", "-q"),
    }
)
"""Options without a value, of the verbs above."""
FLAGS_OF_SOME: Final = {("derive",): {"--watch", "-w"}, ("group", "view"): {"--watch"}}


def complete_live(words: Sequence[str]) -> None:
    """Print what the last word may become, a candidate a line."""
    try:
        found = candidates(words)
    except EchoicError:
        found = []  # nobody answers: Tab offers nothing, and says nothing
    sys.stdout.write("".join(f"{each}\n" for each in found))


def candidates(words: Sequence[str]) -> list[str]:
    """Return what the last word may become.

    Raises:
        EchoicError: Nobody answers, or what was set is wrong.
    """
    *before, begun = _joined(words) or [""]
    kind, given = _kind(before)
    if not kind or begun.startswith("-"):
        return []
    options = _options(before)
    deadline = time.monotonic() + _patience()
    match kind:
        case "context":
            found: Iterable[str] = read_settings().contexts
        case "identity":
            found = identity_names()
        case "bus":
            found = _buses()
        case "group":
            found = {group for each in _known(options) if (group := _group(each.name))}
        case "parameter":
            channel = next((each for each in _known(options) if each.name == given[0]), None)
            left = max(0.0, deadline - time.monotonic())
            proof = _proof(options)
            found = [f"{name}=" for name in parameters_of(channel, left, proof)] if channel is not None else []
        case _:
            found = [each.name for each in _known(options)]
    # A repeated word is offered once more only where that makes sense, which is nowhere.
    offered = {each for each in found if each.startswith(begun) and SAFE.fullmatch(each)} - set(given)
    return sorted(offered)[:CANDIDATES_MAX]


def takes_value(path: tuple[str, ...], option: str) -> bool:
    """Tell whether the word behind an option belongs to it."""
    return "=" not in option and option not in FLAGS and option not in FLAGS_OF_SOME.get(path, ())


def _joined(words: Sequence[str]) -> list[str]:
    """Return the words as they were typed: bash takes `a:b` and `--c=d` for three words each."""
    joined: list[str] = []
    for word in words:
        if joined and (word == ":" or joined[-1].endswith(":")):
            joined[-1] += word
        elif word != "=" or not joined or not joined[-1].startswith("--"):
            joined.append(word)
    return joined


def _kind(before: Sequence[str]) -> tuple[str, list[str]]:
    """Return what is expected behind some words, and the words that the verb was given already."""
    path = next((tuple(before[:length]) for length in (1, 2) if tuple(before[:length]) in POSITIONALS), ())
    rest, given, behind = list(before[len(path) :]), [], ""
    for word in rest:
        if behind:
            behind = ""
        elif word.startswith("-"):
            behind = word if takes_value(path, word) else ""
        else:
            given.append(word)
    if behind:
        return VALUES.get(behind, ""), []
    if not path:
        return "", given
    expected = POSITIONALS[path]
    at = min(len(given), len(expected) - 1)
    kind = expected[at - 1] if expected[at] == "..." else expected[at]
    return (kind if len(given) < len(expected) or expected[-1] == "..." else ""), given


def _options(before: Sequence[str]) -> dict[str, str]:
    """Return the options that say where to ask."""
    found: dict[str, str] = {}
    for word, following in zip(before, [*before[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name in ("--names", "--context", "--identity"):
            found[name] = value if equals else following
    return found


def _known(options: dict[str, str]) -> list[Entry]:
    names = choose(options.get("--names"), options.get("--context")).names
    return ask_names(names, _patience(), _proof(options)) if is_address(names) else []


def _proof(options: dict[str, str]) -> Proof | None:
    """Return by what is proved who asks; None if nobody was chosen."""
    context = options.get("--context")
    identity = choose_identity(options.get("--identity"), context, choose(options.get("--names"), context))
    return proof_of(identity) if identity else None


def _patience() -> float:
    try:
        said = float(os.environ.get("ECHOIC_COMPLETE_SECONDS", PATIENCE_SECONDS))
    except ValueError:
        return PATIENCE_SECONDS
    return said if 0 < said <= PATIENCE_SECONDS_MAX else PATIENCE_SECONDS


def _group(channel: str) -> str:
    group, suffix, _ = f"{channel}.".partition(f"{STATUS_SUFFIX}.")
    return group if suffix else ""


def _buses() -> list[str]:
    """Return the names of the buses that have a desk on this machine; whether they still run is not asked."""
    folder = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/tmp/echoic-{os.getuid()}")  # noqa: S108 - only looked at
    found = [BUS_SOCKET.fullmatch(path.name) for path in folder.glob("echoic-bus-*.sock")]
    return [each["name"] for each in found if each is not None]
