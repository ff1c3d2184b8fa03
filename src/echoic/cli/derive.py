"""`echoic derive`: a channel of what a piece of code makes of another one's events.

The derived channel is entered in the book of the parent's manager, and stays there for as long as the parent does; this
process is not on the way of any event. It stays to keep the name known, whoever serves names, to derive anew when the
parent ends and is created again, and to tell what goes wrong.
"""

import time
from dataclasses import dataclass
from typing import Annotated, Final, Literal

import msgspec
from cyclopts import Parameter

from echoic.channels import ChannelId, Policy
from echoic.cli.meeting import attend
from echoic.cli.recipes import AROUND, Around, Code, decoded_block, read_code
from echoic.cli.rendering import as_json as as_json_line
from echoic.cli.screen import json_text, printable, say
from echoic.cli.where import NOWHERE, AsJson, Text, Where, repeated
from echoic.ecode import analyse
from echoic.errors import ChannelExistsError, ChannelNotFoundError, FormatError, UnreachableError
from echoic.hub import Channel, Hub
from echoic.monitor import (
    DerivationLoad,
    DerivationSample,
    ask_all,
    bytes_text,
    derivation_loads,
    derivation_sample,
    find,
    percentage,
    troubles,
)

__all__ = ["derive"]

PERIOD_SECONDS: Final = 1.0
HEAD: Final = "      IN/S      OUT/S   PASSED    SAVED/S      SAVED  NS/EVENT  FAULTS  RUNS AT"


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Place:
    """What a derived channel is called, and where its code runs."""

    name: Annotated[
        str, Parameter(help="What the derived channel is called; otherwise only its id is known.", show_default=False)
    ] = ""
    placement: Annotated[
        Literal["source", "sink", "auto"],
        Parameter(help="Where the code runs: at the source, at the sink, or wherever it costs less."),
    ] = "source"


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Stay:
    """How long to stay with a derived channel, and what to tell about it."""

    watch: Annotated[
        bool,
        Parameter(
            name=["--watch", "-w"],
            help="Print once a second how many events go in and come out, and what is saved.",
            negative=(),
            show_default=False,
        ),
    ] = False
    count: Annotated[
        int | None, Parameter(name=["--count", "-n"], help="End after so many such reports, which it implies.")
    ] = None
    leave: Annotated[
        bool, Parameter(help="End at once; the derived channel stays.", negative=(), show_default=False)
    ] = False


PLACE: Final = Place()
STAY: Final = Stay()


def derive(
    channel: str,
    code: Text = "",
    /,
    *,
    file: Annotated[str, Parameter(allow_leading_hyphen=True, show_default=False)] = "",
    around: Around = AROUND,
    place: Place = PLACE,
    stay: Stay = STAY,
    as_json: AsJson = False,
    where: Where = NOWHERE,
) -> None:
    """Derive a channel: run code inside every source of a channel, and send only what comes out.

    The code is E-Code, a subset of C: an expression, or statements with `return`. It sees `input`, `output` and
    `param`, and rejects an event by `return 0`. Nothing runs before somebody subscribes to the derived channel, whose
    id is printed. The channel's manager keeps it for as long as the channel itself; this command stays to keep its name
    known and to tell what goes wrong, until Ctrl-C.

    Try:
        echoic derive trades 'input.price < 75.5' --name cheap
        echoic echo cheap
        echoic derive trades 'input.price < param.low' --param low=75.5 --name cheap --watch
        echoic derive fields --file mean.ec --output 'Mean{average: float}' --name means
        echoic derive trades 'input.volume >= 100' --ports 2 --name lots

    Args:
        channel: Its name, or its id echoic://HOST:PORT/NAME.
        code: What to run on each event.
        file: Read the code from a file, - for stdin; in files *.py it is a Python function.
        around: The types around the code.
        place: What the derived channel is called, and where its code runs.
        stay: How long to stay, and what to tell.
        as_json: Print the channels, and reports, as lines of JSON.
        where: Where to look for the channel.
    """
    given = read_code(code, file, python=around.python)
    with attend(where, "derive") as hub:
        keeper = Keeper(hub, channel, given, around, place)
        keeper.announce(repeated(where), as_json=as_json)
        if not stay.leave:
            _stay(keeper, stay.count, watch=stay.watch or stay.count is not None, as_json=as_json)


class Keeper:
    """Keeps a derivation at whatever channel a name stands for."""

    def __init__(self, hub: Hub, parent: str, code: Code, around: Around, place: Place) -> None:
        """Derive.

        Raises:
            EchoicError: The channel is not there, or the code is wrong.
        """
        self._hub = hub
        self._name = parent
        self._code = code
        self._around = around
        self._params = around.parameters()
        self._place = place
        self._waiting = False
        self.made: tuple[Channel, ...] = ()
        self._derive()

    def look(self) -> DerivationSample | None:
        """Return what the derivation has done so far; None while its channel is gone.

        It is derived anew when the channel has come back.
        """
        try:
            described = self._hub.describe(self.made[0].id)
        except (ChannelNotFoundError, UnreachableError):
            self._derive_again()
            return None
        self._note_parameters(decoded_block(described.lineage[-1]))
        mine, manager = described.lineage[-1].group, ChannelId.parse(self.made[0].id).address
        sample = derivation_sample(ask_all(described.sources, self._hub.report))
        return {key: counts for key, counts in sample.items() if key[1:] == (manager, mine)}

    def announce(self, options: str, *, as_json: bool) -> None:
        """Tell what was made, and what to do with it, by verbs that need `options` to find it."""
        ids = [channel.id for channel in self.made]
        if as_json:
            types = [channel.format.name if channel.format else None for channel in self.made]
            found = {
                "channels": ids,
                "names": [each.name for each in self.made],
                "type": types[0],
                "parent": self._name,
            }
            print(json_text(found), flush=True)
        else:
            print("\n".join(map(printable, ids)), flush=True)
        first = self.made[0].name if self._place.name else ids[0]
        manager = ChannelId.parse(ids[0]).address
        say(f"kept at {manager} for as long as '{self._name}' is; the code runs when somebody subscribes")
        words = (f"echo {first}", f"info {first}", "top")
        say(f"try: {'; '.join(f'echoic {each}{options}' for each in words)}")
        self._compare_parameters()

    def _derive(self) -> None:
        parent = find(self._hub, self._name)
        if parent.format is None:
            raise FormatError(f"channel '{parent.name}' has no type, and only typed channels can be derived from")
        around = self._around
        # `derive` checks it too, but knows no file
        program = self._code.check(around.signature(parent.format, parent.context))
        cost, limit = analyse(program).cost, Policy().cost_max
        if cost > limit and not self.made:
            say(f"one event may cost {cost} units; sources refuse more than {limit}, unless their policy allows it")
        output, capacities = around.output_format(), around.capacities()
        text, params, placement, name = self._code.text, self._params, self._place.placement, self._place.name
        if around.ports:
            self.made = parent.route(
                text, around.ports, output, params=params, capacities=capacities, placement=placement, name=name
            )
        else:
            self.made = (
                parent.derive(text, output, params=params, capacities=capacities, placement=placement, name=name),
            )

    def _derive_again(self) -> None:
        before = self.made[0].id
        try:
            self._derive()
        except (ChannelExistsError, ChannelNotFoundError, UnreachableError) as error:
            if not self._waiting:
                say(f"waiting for channel '{self._name}': {error}")
            self._waiting = True
        else:
            self._waiting = False
            if self.made[0].id != before:
                say(f"derived anew: {self.made[0].id}")

    def _note_parameters(self, present: object | None) -> None:
        """Remember the parameters that somebody else may have changed, for when the channel is derived anew."""
        if present is not None and present != self._params:
            say(f"parameters of '{self.made[0].name}' were changed: {as_json_line()(present).strip()}")
            self._params = present

    def _compare_parameters(self) -> None:
        """Say so if the channel was there before, with other parameters than those given."""
        if self._params is not None and self.made[0].params.values is not self._params:
            say(f"it was there already, with parameters of its own: echoic param {self.made[0].name}")


def _stay(keeper: Keeper, count: int | None, *, watch: bool, as_json: bool) -> None:
    """Report once a second, and tell what goes wrong."""
    before, then, reports = keeper.look() or {}, time.monotonic(), 0
    for trouble in troubles({}, before):
        say(trouble)
    if watch and not as_json:
        print(HEAD, flush=True)
    while count is None or reports < count:
        time.sleep(PERIOD_SECONDS)
        after, now = keeper.look() or {}, time.monotonic()
        for trouble in troubles(before, after):
            say(trouble)
        if watch:
            _report(derivation_loads(before, after, now - then), as_json=as_json)
            reports += 1
        before, then = after, now


def _report(loads: list[DerivationLoad], *, as_json: bool) -> None:
    load = loads[0] if loads else None
    if as_json:
        print(json_text({"time": time.time(), "derivation": msgspec.to_builtins(load)}), flush=True)
        return
    if load is None:
        print(f"{'':>10} nobody is subscribed, so that nothing runs", flush=True)
        return
    print(
        f"{load.in_per_second:>10.1f} {load.out_per_second:>10.1f} {percentage(load.passed):>8} "
        f"{bytes_text(load.saved_per_second):>10} {bytes_text(load.bytes_saved):>10} "
        f"{load.ns_per_event or 0:>9.0f} {load.faults:>7}  {'suspended' if load.suspended else load.runs_at}",
        flush=True,
    )
