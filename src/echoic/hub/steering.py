"""The controls of a source: what a sink may ask it to do, and whether anybody listens at all.

    source = channel.source(controls=Controls(start=begin, stop=halt, tune=set_rate, demand=switch))

A control is the program's own function, so it may take any time and any lock. It runs in a thread that holds nothing of
the hub's; requests to one source wait for each other, since a program that is told to start and to stop should hear it
in that order. After five seconds whoever asked is told that there was no answer; the function goes on, and until it has
ended the source takes nothing else.

`demand` is called with True when the first listener comes and with False when the last one has gone. Listeners come and
go in many ways, by links, by handlers here, by derivations that begin or are suspended; so a thread looks fifty times a
second, which misses none that stays and costs next to nothing.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from echoic.channels import Action, ChannelId, Plain, Steer, Steered, Steering, checked_values
from echoic.errors import EchoicError, LocalError, RefusedError

if TYPE_CHECKING:
    from echoic.hub.switchboard import Switchboard

__all__ = ["Controls", "SourceHelm", "steer_channel"]

CONTROL_SECONDS: Final = 5.0
WAITING_MAX: Final = 16
LOOK_SECONDS: Final = 0.02
REASON_CHARACTERS_MAX: Final = 1000
REASONS_MAX: Final = 4
FAILED: Final = Exception  # of the program's own function: whoever asked is told, and the hub goes on
log: Final = logging.getLogger("echoic.hub")

Reply = Callable[[str, Mapping[str, Plain]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """What a source can be asked to do; any may be missing.

    Each takes the values that come with the request as named arguments, and may return a mapping of numbers, texts and
    truths, which whoever asked gets. One that raises is told as a refusal, with the exception's text.
    """

    start: Callable[..., object] | None = None
    """Begin to generate events."""
    stop: Callable[..., object] | None = None
    """Generate none until asked to start."""
    tune: Callable[..., object] | None = None
    """Generate them in another way."""
    demand: Callable[[bool], object] | None = None
    """Called with whether anybody listens, each time that changes."""


def steer_channel(
    switchboard: "Switchboard", id: ChannelId, action: str, values: Mapping[str, object]
) -> list[Steering]:
    """Have the manager of a channel ask all its sources, and return what they say.

    Raises:
        EchoicError: As `Channel.steer` does.
    """
    request = Steer(id.name, action, checked_values(values))
    answers = list(switchboard.ask(id.address, request, Steered).answers)
    if not any(answer.taken for answer in answers):
        reasons = "; ".join(sorted({f"{answer.hub}: {answer.refusal}" for answer in answers})[:REASONS_MAX])
        raise RefusedError(f"no source of `{id.name}` takes `{action}`: {reasons or 'it has no sources'}")
    return answers


class SourceHelm:
    """Carries out what is asked of one source."""

    def __init__(self, controls: Controls, switchboard: "Switchboard") -> None:
        self._controls = controls
        self._switchboard = switchboard
        self._asked: deque[tuple[Action, dict[str, Plain], Reply]] = deque()
        self._running = False
        self._busy: threading.Thread | None = None
        self._lock = threading.Lock()

    def watch(self, is_heard: Callable[[], bool | None]) -> None:
        """Tell the program from here on whether anybody listens, until the source is closed and None is returned."""
        if self._controls.demand is not None:
            arguments = (self._controls.demand, is_heard)
            threading.Thread(target=_watch, args=arguments, name="echoic-demand", daemon=True).start()

    def ask(self, action: Action, values: Mapping[str, Plain], answer: Reply) -> None:
        """Have something done in a thread, and answer once."""
        if getattr(self._controls, action) is None:
            answer(f"the source has no control to {action} it", {})
        elif len(self._asked) >= WAITING_MAX:
            answer(f"{len(self._asked)} requests wait for the source already, which is the limit", {})
        else:
            with self._lock:
                self._asked.append((action, dict(values), answer))
                idle, self._running = not self._running, True
            if idle:
                threading.Thread(target=self._run, name="echoic-steering", daemon=True).start()

    def _run(self) -> None:
        """Do what is asked, until nothing is."""
        while True:
            with self._lock:
                if not self._asked:
                    self._running = False
                    return
                asked = self._asked.popleft()
            self._serve(*asked)

    def _serve(self, action: Action, values: dict[str, Plain], answer: Reply) -> None:
        if self._busy is not None and self._busy.is_alive():
            outcome: tuple[str, dict[str, Plain]] = ("the source has yet to come to an end with an earlier request", {})
        else:
            outcome = self._carried_out(action, values)
        try:
            self._switchboard.do(lambda _: answer(*outcome))
        except EchoicError as error:
            log.info("what a source answers cannot be sent: %s", error)

    def _carried_out(self, action: Action, values: dict[str, Plain]) -> tuple[str, dict[str, Plain]]:
        control, found = getattr(self._controls, action), list[tuple[str, dict[str, Plain]]]()
        self._busy = threading.Thread(
            target=lambda: found.append(_outcome(control, values)), name=f"echoic-{action}", daemon=True
        )
        self._busy.start()
        self._busy.join(CONTROL_SECONDS)
        return found[0] if found else (f"the source has not answered within {CONTROL_SECONDS:g} s", {})


def _watch(demand: Callable[[bool], object], is_heard: Callable[[], bool | None]) -> None:
    told = False
    while (heard := is_heard()) is not None or told:
        if bool(heard) != told:
            told = bool(heard)
            try:
                demand(told)
            except FAILED:
                log.exception("the control `demand` of a source has failed")
        time.sleep(LOOK_SECONDS)


def _outcome(control: Callable[..., object], values: dict[str, Plain]) -> tuple[str, dict[str, Plain]]:
    """Call a control; return why it has not done as asked, or "" and the values that it returns."""
    try:
        returned = control(**values)
        return "", checked_values(returned) if isinstance(returned, Mapping) else {}
    except LocalError as error:
        return str(error)[:REASON_CHARACTERS_MAX], {}
    except FAILED as error:
        log.info("a control of a source has failed", exc_info=True)
        return f"{type(error).__name__}: {error}"[:REASON_CHARACTERS_MAX], {}
