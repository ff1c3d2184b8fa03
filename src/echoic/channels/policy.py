"""What a hub lets others run inside its sources, and use of it.

Every number is a limit that a derivation meets when it is installed, or while it runs. Refusals name both numbers. The
defaults let anybody who may subscribe also derive: E-Code can neither crash, hang nor read outside of its record, so
what is left to limit is time. Who may subscribe is another question (`echoic.rights`).
"""

from typing import Annotated, Final

import msgspec

__all__ = ["Policy"]

SHARED_LOAD_MAX: Final = 0.5
OWN_COST_MAX: Final = 100_000_000  # some 30 ms


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a hub."""

    derive: bool = True
    """Whether others may derive from the sources here at all."""
    steer: bool = True
    """Whether others may use the controls that sources here offer."""
    derivations_max: Annotated[int, msgspec.Meta(ge=0)] = 256
    """How many derivations may be installed."""
    cost_max: Annotated[int, msgspec.Meta(ge=0)] = 1_000_000
    """The worst case for one event, in units of about one instruction."""
    fuel: Annotated[int, msgspec.Meta(ge=1)] = 200_000
    """What loops without a proved bound may use for one event, in the same units."""
    faults_max: Annotated[int, msgspec.Meta(ge=1)] = 16
    """After how many faults among about a thousand events a derivation is suspended."""
    load_max: Annotated[float, msgspec.Meta(gt=0)] | None = None
    """The share of one processor that derivations may take together, and of a second for one batch.

    None is half of one for derivations that share a source with others who listen, and no limit for one that is all a
    source is listened to for, but five seconds for a batch: the time it takes is nobody else's.
    """
    trusted_keys: tuple[str, ...] = ()
    """Whose modulators run in the hub's own process. The hub's own key is always one of them."""
    sandboxed_keys: tuple[str, ...] = ()
    """Whose modulators run in a confined process; `*` stands for everybody's."""
    modulator_seconds_max: Annotated[float, msgspec.Meta(gt=0)] = 0.25
    """How long a modulator may take for one batch."""
    modulator_bytes_max: Annotated[int, msgspec.Meta(ge=16 * 1024 * 1024)] = 256 * 1024 * 1024
    """How much memory a confined modulator may take."""
    links_max: Annotated[int, msgspec.Meta(ge=1)] = 16_384
    """How many other hubs there may be links with."""
    peer_links_max: Annotated[int, msgspec.Meta(ge=1)] = 4096
    """How many of these with hubs that show a certificate of one name."""
    peer_waiting_bytes_max: Annotated[int, msgspec.Meta(ge=1)] = 512 * 1024 * 1024
    """How many bytes may wait to be received by all hubs of one name, before events do as their sinks have asked."""
    peer_derivations_max: Annotated[int, msgspec.Meta(ge=0)] = 128
    """How many derivations of one name may be installed, and how many derived channels be entered."""
    peer_cost_max: Annotated[int, msgspec.Meta(ge=0)] = 16_000_000
    """The worst case for one event in all derivations of one name together."""
    peer_tunes_per_second: Annotated[float, msgspec.Meta(gt=0)] = 1000.0
    """How often one peer may change parameters, by and large."""

    @property
    def load_limit(self) -> float:
        """The share of one processor for derivations that are limited."""
        return SHARED_LOAD_MAX if self.load_max is None else self.load_max

    @property
    def limits_alone(self) -> bool:
        """Whether a derivation is limited that is all a source is listened to for."""
        return self.load_max is not None

    def for_own_sinks(self) -> "Policy":
        """Return the limits of code that runs for sinks of the hub itself: wide ones, though each event ends.

        Whoever has subscribed wants the code, but need not have written it.
        """
        return msgspec.structs.replace(self, cost_max=max(self.cost_max, OWN_COST_MAX))
