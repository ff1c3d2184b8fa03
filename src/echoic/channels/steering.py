"""Proto-channels: a sink asks the sources of a channel to start, stop or tune the generation of events.

A derivation decides what becomes of events that a source has made; with a proto-channel a sink decides whether there
are any, and how (the "Future Work" of ECho and JECho, built on what a manager knows anyway).

    sink --Steer(name)--> manager --Steer(id)--> every hub with sources --> each source's controls
         <---Steered-----         <---Steered---                       <--

A request for a derived channel goes to the sources of what it is derived from. Each source answers for itself: that it
has done so, with some plain values if it likes, or why it has not. Nothing else is ever run or built of a request:
values are numbers, texts and truths, few and small.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, get_args

from echoic.channels.actions import Action, Plain, Steering
from echoic.channels.identity import ChannelId
from echoic.channels.messages import Message, Refused, Steer, Steered
from echoic.channels.requests import Answer
from echoic.errors import LocalError, RefusedError

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator

__all__ = ["Helm", "checked_values", "steer"]

ACTIONS: Final[tuple[Action, ...]] = get_args(Action)
VALUES_MAX: Final = 32
NAME_CHARACTERS_MAX: Final = 100
TEXT_CHARACTERS_MAX: Final = 256
INTEGER_MAX: Final = 2**63
ANSWERS_MAX: Final = 512  # so that all of them fit into one message


class Helm(Protocol):
    """The controls of one source."""

    def ask(
        self, action: Action, values: Mapping[str, Plain], answer: Callable[[str, Mapping[str, Plain]], None]
    ) -> None:
        """Have something done, beside the traffic, and `answer` once: why it is not done, or "" and some values."""
        ...


def checked_values(values: Mapping[str, object]) -> dict[str, Plain]:
    """Return values that can be sent with a request or an answer.

    Raises:
        LocalError: They are too many, too large or of other types.
    """
    if len(values) > VALUES_MAX:
        raise LocalError(f"{len(values)} values are given, limit is {VALUES_MAX}")
    return {_checked_name(name): _checked(name, value) for name, value in values.items()}


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= NAME_CHARACTERS_MAX:
        raise LocalError(
            f"expected a name of 1 to {NAME_CHARACTERS_MAX} characters, got {str(name)[:NAME_CHARACTERS_MAX]!r}"
        )
    return name


def _checked(name: str, value: object) -> Plain:
    match value:
        case bool() | float():
            return value
        case int() if -INTEGER_MAX <= value < INTEGER_MAX:
            return int(value)
        case int():
            raise LocalError(f"an integer needs more than 64 bits - at `{name}`")
        case str() if len(value) <= TEXT_CHARACTERS_MAX:
            return value
        case str():
            raise LocalError(f"a text has {len(value)} characters, limit is {TEXT_CHARACTERS_MAX} - at `{name}`")
        case _:
            raise LocalError(f"expected a number, text or truth, got {type(value).__name__} - at `{name}`")


def steer(core: "Concentrator", message: Steer, answer: Answer) -> None:
    """Have all sources of a channel do something: as its manager, or as a hub that has some of them.

    Raises:
        ChannelNotFoundError: The channel is not known here.
        RefusedError: It cannot be asked of anybody, or not of this hub.
    """
    action = next((known for known in ACTIONS if known == message.action), None)
    if action is None:
        raise RefusedError(f"a source can be asked to {', '.join(ACTIONS)}, not to {message.action[:40]!r}")
    try:
        values = checked_values(message.values)
    except LocalError as error:
        raise RefusedError(str(error)) from error
    if "://" in message.channel:
        _steer_sources(core, message.channel, action, values, answer)
    else:
        _steer_hubs(core, message, answer)


class _Gathering:
    """Answers that are awaited; when the last has come, they are told together."""

    def __init__(self, waiting: int, answer: Answer) -> None:
        self._waiting = waiting
        self._answer = answer
        self._found: list[Steering] = []
        self._conclude()

    def add(self, *found: Steering) -> None:
        """Note what one of those asked has said."""
        self._found += found[: ANSWERS_MAX - len(self._found)]
        self._waiting -= 1
        self._conclude()

    def _conclude(self) -> None:
        if not self._waiting:
            self._answer(Steered(tuple(self._found)))


def _steer_hubs(core: "Concentrator", message: Steer, answer: Answer) -> None:
    """Pass a request on to the hubs that have sources of a channel, or of what it is derived from."""
    directory, asked = core.manager.directory, list[tuple[str, str]]()
    for name in (message.channel, *(step.recipe.parent for step in directory.lineage(message.channel))):
        id = str(ChannelId(core.address, name))
        asked += [(hub, id) for hub in sorted(directory.get(name).sources)]
    gathering = _Gathering(len(asked), answer)

    def answered(hub: str, reply: Message) -> None:
        match reply:
            case Steered(answers):
                gathering.add(*answers)
            case Refused(_, reason):
                gathering.add(Steering(hub, 0, reason))
            case _:
                gathering.add(Steering(hub, 0, f"it has answered by {type(reply).__name__}"))

    for hub, id in asked:
        core.ask(hub, Steer(id, message.action, message.values), partial(answered, hub))


def _steer_sources(
    core: "Concentrator", channel: str, action: Action, values: dict[str, Plain], answer: Answer
) -> None:
    """Ask the sources of a channel that are here."""
    if not core.policy.steer:
        raise RefusedError(f"the hub at {core.address} lets nobody steer its sources")
    member = core.opened(channel)
    helms = dict(member.helms or {})
    own = [source for source in member.sources if source in helms or member.origin is None]
    gathering = _Gathering(len(own), answer)
    for source in own:
        if source in helms:
            helms[source].ask(action, values, partial(_answered, gathering, core.address, source))
        else:
            gathering.add(Steering(core.address, source, "the source offers no controls"))


def _answered(gathering: _Gathering, hub: str, source: int, refusal: str, values: Mapping[str, Plain]) -> None:
    gathering.add(Steering(hub, source, refusal, dict(values)))
