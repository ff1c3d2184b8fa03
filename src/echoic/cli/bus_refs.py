"""`echoic bus refs`: the large values that stay with tools while a script refers to them.

A value is kept by its owner as long as a process, a note, or a message that is not taken refers to it. So a script that
never lets go of one makes a tool grow, and nothing is wrong with the tool. What to look for is what is old: who holds
it stands beside it.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Final

from cyclopts import Parameter

from echoic.cli.bus_looking import Watch, age_text, check_watch, chosen_bus, look
from echoic.cli.quantities import NANOSECONDS, nanoseconds_of
from echoic.cli.tables import table_lines
from echoic.cli.where import AsJson
from echoic.monitor import bytes_text

__all__ = ["refs"]

LISTED_MAX: Final = 50
HOLDERS_MAX: Final = 3
OLD_SECONDS: Final = 300.0
"""From this age on a value is worth a second look."""


def refs(
    name: str = "",
    /,
    *,
    older: Annotated[str, Parameter(show_default=False)] = "",
    watch: Watch = None,
    as_json: AsJson = False,
) -> None:
    """Show which large values tools keep for a running bus: whose they are, how large, how old, and who refers to them.

    A value from a size on (`echoic bus run --threshold`) is not sent to the bus. The tool that has it keeps it, the
    script passes references to it on, and who is told one fetches the value. When nothing refers to it any more its
    owner may forget it. A script that never lets go shows here, as a value that only grows older.

    Try:
        echoic bus refs                  of the only bus
        echoic bus refs report --watch 1
        echoic bus refs --older 5m       what may have been forgotten
        echoic bus refs --json | jq '.references[] | {owner, bytes, holders}'

    Args:
        name: The name of the bus, without which there must be only one.
        older: Only what was said longer ago: 90, 5m, 1h.
        watch: Show it again and again, with so many seconds between, until Ctrl-C or the end of the bus.
        as_json: Print an object as JSON.
    """
    question = f"refs {nanoseconds_of(older) / NANOSECONDS:.3f}" if older else "refs"
    check_watch(watch)
    path = chosen_bus(name, as_json=as_json)
    if path is not None:
        look(path, question, _lines, watch=watch, as_json=as_json)


def _lines(answer: dict[str, Any]) -> Iterator[str]:
    found = answer["references"]
    if not found:
        yield f"no value is referred to by {answer['script']}"
        return
    rows = [
        [
            each["owner"],
            each["variable"],
            each["signature"],
            bytes_text(each["bytes"]),
            age_text(each["age_seconds"]),
            _some(each["holders"]),
            _some(each["in_flight"]),
        ]
        for each in found[:LISTED_MAX]
    ]
    yield from table_lines(["OWNER", "VARIABLE", "SIGNATURE", "SIZE", "AGE", "HELD BY", "ON ITS WAY TO"], rows)
    left = answer["count"] - len(rows)
    more = f", of which {left} are not shown" if left else ""
    yield f"{_values(answer['count'])}, {bytes_text(answer['bytes'])}{more}"
    yield from _hints(answer)


def _hints(answer: dict[str, Any]) -> Iterator[str]:
    """Say what may be wrong."""
    old = [each for each in answer["references"] if each["age_seconds"] >= OLD_SECONDS]
    held = [each for each in old if each["holders"]]
    asked = sorted({who for each in old for who in each["in_flight"]})
    if held:
        yield (
            f"hint: {_values(len(held))}, {bytes_text(sum(each['bytes'] for each in held))}, held for more than "
            f"{age_text(OLD_SECONDS)}: a variable holds its value until it gets another or its `let` ends, a note "
            "until it is taken, an event until it is acknowledged"
        )
    if asked:
        yield f"hint: {', '.join(asked)} does not fetch what it was told (echoic bus console {answer['name']})"


def _some(names: list[str]) -> str:
    left = len(names) - HOLDERS_MAX
    return ", ".join(names[:HOLDERS_MAX]) + (f" and {left} more" if left > 0 else "")


def _values(count: int) -> str:
    return f"{count} value{'s' * (count != 1)}"
