"""The modulator operating environment of a hub (JECho, section 4): what modulators of others need to run here.

It knows whose code may run and where, which services are granted, and the copies of shared objects. While modulators
are at work that want to be called when time passes, or hold events back, a thread stirs the sources (`Source.stir`).
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final

from echoic.channels import Modulation, Refused, Runner, send_share, stirring_ns
from echoic.eager import Limits, SharedHost, SigningKey
from echoic.eager.install import install  # not by the package, which a confined process loads too
from echoic.errors import EchoicError, RefusedError
from echoic.formats import NATIVE, Format

if TYPE_CHECKING:
    from echoic.channels import Concentrator, Share
    from echoic.hub.outbound import Source
    from echoic.hub.switchboard import Switchboard

__all__ = ["Operating"]

NAP_SECONDS_MIN: Final = 0.0005
IDLE_SECONDS: Final = 0.05
log: Final = logging.getLogger("echoic.hub")


class Operating:
    """Prepares modulators, and lets time pass for them."""

    def __init__(self, key: SigningKey | None, services: Mapping[str, object], sources: "Collection[Source]") -> None:
        self._key = key
        self._services = dict(services)
        self._sources = sources
        self._switchboard: Switchboard
        self._shared: SharedHost
        self._awake = threading.Event()
        self._started = False
        self._lock = threading.Lock()

    @property
    def key(self) -> SigningKey:
        """What signs the modulators of this hub; made up when first needed, if none was given."""
        with self._lock:
            self._key = self._key or SigningKey.generate()
            return self._key

    def start(self, switchboard: "Switchboard", shared: SharedHost) -> None:
        """Know the hub that this belongs to."""
        self._switchboard, self._shared = switchboard, shared

    def prepare(self, modulation: Modulation) -> Runner | Refused:
        """Return what runs a modulator here, or why that cannot be. This takes milliseconds."""
        step, policy, parent = modulation.step, modulation.policy, modulation.parent
        try:
            if not policy.derive or parent is None:
                raise RefusedError(f"the hub at {modulation.hub} runs no code of others - at `{step.name}`")
            runner = install(
                step.recipe.parcel,
                trusted={self.key.public, *policy.trusted_keys},
                sandboxed=policy.sandboxed_keys,
                parent=step.recipe.parent,
                input=Format.from_descriptor(step.input).on(NATIVE),
                grant=self.grant,
                sources=list(parent.sources),
                shared=self._shared,
                limits=Limits(seconds=policy.modulator_seconds_max, memory_bytes=policy.modulator_bytes_max),
                hub=modulation.hub,
            )
        except EchoicError as error:
            return Refused.of(error)
        except Exception as error:  # noqa: BLE001 - whoever waits must hear of it, whatever foreign code has done
            return Refused(RefusedError.__name__, f"the modulator cannot be installed here: {error!r}")
        if runner.period_ns or runner.buffered:
            self._keep_stirring()
        return runner

    def grant(self, service: str, source: int) -> object | None:
        """Return a service for a modulator that works on the events of a source: the hub's, or its delegate's."""
        if service in self._services:
            return self._services[service]
        found = next((one for one in list(self._sources) if one.id == source), None)
        return found.granted(service) if found is not None else None

    def drain(self, modulation: Modulation, then: Callable[[], None]) -> None:
        """Send what a modulator holds back, then go on, in a thread that may wait for it."""
        threading.Thread(
            target=self._drain, args=(modulation, then), name="echoic-drain-modulator", daemon=True
        ).start()

    def _drain(self, modulation: Modulation, then: Callable[[], None]) -> None:
        sent: list[tuple[Share, int]] = []
        try:
            shares = list(modulation.drained())
            sent = self._switchboard.do(lambda core: [(share, send_share(core, share)) for share in shares])
        finally:
            by_source = {instance.source: source for source, instance in list(modulation.instances.items())}
            for share, first in sent:
                if share.local and share.member.heard_here:
                    self._hand_over(by_source.get(share.source, 0), share, first)
            self._switchboard.do(lambda _: then())

    def _hand_over(self, source: int, share: "Share", first: int) -> None:
        for one in list(self._sources):
            if one.id == source:
                one.hand_over([(share, first)])

    def close(self) -> None:
        """End all modulators of others."""
        self.wake()
        with self._switchboard.lock:
            runners = [one.runner for one in self._switchboard.core.derivations.values() if isinstance(one, Modulation)]
        for runner in runners:
            if runner is not None:
                runner.close()

    def wake(self) -> None:
        """Look at once whether there is something to stir for."""
        self._awake.set()

    def _keep_stirring(self) -> None:
        with self._lock:
            if not self._started:
                self._started = True
                threading.Thread(target=self._run, name="echoic-stirring", daemon=True).start()
        self.wake()

    def _run(self) -> None:
        """Stir sources as often as modulators want it; look now and then whether any is left."""
        while not self._switchboard.closed:
            interval_ns = self._switchboard.do(_interval_of)
            self._awake.clear()
            if not interval_ns:
                self._awake.wait(IDLE_SECONDS)
                continue
            time.sleep(max(interval_ns / 1e9, NAP_SECONDS_MIN))
            for source in list(self._sources):
                try:
                    source.stir()
                except EchoicError as error:
                    log.info("%r was not stirred: %s", source, error)


def _interval_of(core: "Concentrator") -> int:
    return stirring_ns(core)
