"""Packing policies from text, as they stand in programs and on command lines.

auto, probe           finds out by itself (`Probe`)
static:11             11 messages in every pack; static:1 is no packing
nagle, nagle:65536    by Nagle's rule, full with so many bytes
paper                 the paper's robust rule, Ta = 5 s; paper:ta=0.5,pack_max=64
paper-simple          the paper's simple rule, with the same options
"""

from collections.abc import Callable, Mapping

from echoic.errors import LocalError
from echoic.groups.policies.nagle import BYTES_DEFAULT, Nagle
from echoic.groups.policies.paper import PACK_MAX_DEFAULT, TA_SECONDS_DEFAULT, Paper
from echoic.groups.policies.policy import Policy
from echoic.groups.policies.probe import Probe
from echoic.groups.policies.static import Static

__all__ = ["policy_of"]


def policy_of(packing: str | Policy, *, pack_bytes_hint: int = BYTES_DEFAULT) -> Policy:
    """Return the policy that a text names; a policy itself is returned as it is.

    Args:
        packing: The text, or a policy that no other group uses.
        pack_bytes_hint: How large packs should be as long as nothing is known (`Capabilities.pack_bytes_hint`).

    Raises:
        LocalError: The text names no policy, or its options are wrong.
    """
    if not isinstance(packing, str):
        return packing
    name, colon, text = packing.partition(":")
    if name not in MAKERS or (colon and not text):
        raise LocalError(f"expected auto, probe, static:N, nagle:BYTES, paper or paper-simple, got `{packing}`")
    try:
        return MAKERS[name](text, pack_bytes_hint)
    except (ValueError, OverflowError) as error:
        raise LocalError(f"{error} - at packing `{packing}`") from None


def _probe(text: str, hint: int) -> Policy:
    if text:
        raise ValueError(f"it takes no options, got `{text}`")
    return Probe(bytes_hint=hint)


def _static(text: str, hint: int) -> Policy:  # noqa: ARG001
    if not text:
        raise ValueError("expected how many messages make a pack, as in `static:11`")
    return Static(_whole(text))


def _nagle(text: str, hint: int) -> Policy:
    return Nagle(_whole(text) if text else hint)


def _paper(text: str, hint: int) -> Policy:  # noqa: ARG001
    return _paper_of(text, robust=True)


def _paper_simple(text: str, hint: int) -> Policy:  # noqa: ARG001
    return _paper_of(text, robust=False)


def _paper_of(text: str, *, robust: bool) -> Policy:
    ta, pack_max = TA_SECONDS_DEFAULT, PACK_MAX_DEFAULT
    for option in text.split(",") if text else ():
        match option.partition("="):
            case "ta", _, number:
                ta = _seconds(number)
            case "pack_max", _, number:
                pack_max = _whole(number)
            case _:
                raise ValueError(f"expected ta=SECONDS and pack_max=N, got `{option}`")
    return Paper(ta, pack_max, robust=robust)


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"expected seconds, got `{text}`") from None


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise ValueError(f"expected a whole number, got `{text}`")
    return int(text)


MAKERS: Mapping[str, Callable[[str, int], Policy]] = {
    "auto": _probe,
    "probe": _probe,
    "static": _static,
    "nagle": _nagle,
    "paper": _paper,
    "paper-simple": _paper_simple,
}
