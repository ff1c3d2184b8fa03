"""`echoic journal export` and `echoic journal import`: from a journal into files of other programs, and back."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Final

import msgspec
from cyclopts import Parameter

from echoic.channels import check_channel_name
from echoic.cli.declaring import declared_type
from echoic.cli.journals import EVERYTHING, Events, HoleTeller, mode_of, open_journal
from echoic.cli.progress import progress
from echoic.cli.screen import json_text, say
from echoic.cli.where import AsJson, Flag, Text
from echoic.errors import ChannelNotFoundError, LocalError
from echoic.recorder import Contents, FileKind, Journal, JournalOptions, Selection, export, import_file

__all__ = ["export_journal", "import_journal"]

Kind = Annotated[FileKind | None, Parameter(name="--format", show_choices=True, show_default=False)]


def export_journal(
    path: Path,
    file: Path,
    /,
    *,
    kind: Kind = None,
    channel: Text = "",
    metadata: Flag = False,
    force: Flag = False,
    events: Events = EVERYTHING,
    as_json: AsJson = False,
) -> None:
    """Write recorded events into a file: Parquet, Arrow, CSV or MCAP.

    The file appears when it is complete. Columns have the type of the newest events, to which others are converted;
    MCAP files have one message for each event, as JSON, which Foxglove shows.

    Try:
        echoic journal export journals trades.parquet
        echoic journal export journals trades.csv --where 'input.price < 75' --columns symbol,price
        echoic journal export journals trades.arrow --since 2026-11-16T13:00 --until 2026-11-16T14:00 --metadata
        echoic journal export journals ticks.mcap --channel ticks --force

    Args:
        path: The folder of the journal.
        file: Where the events go; its suffix says the format.
        kind: The format, when the suffix does not say it.
        channel: Which one, if the journal has several.
        metadata: Add the columns _sequence, _source, _number, _time and _partition.
        force: Replace the file if it is there.
        events: Which events.
        as_json: Print what was written as JSON.
    """
    journal, selection, holes = open_journal(path, channel), events.selection, HoleTeller(skip=events.skip_holes)
    total = _total(journal, selection)
    with progress(f"exporting {journal.name}") as advance:
        done = export(
            journal,
            file,
            kind or "",
            selection=selection,
            metadata=metadata,
            force=force,
            on_hole=holes,
            progress=lambda count: advance(count, total),
        )
    if as_json:
        print(json_text({**asdict(done), "channel": journal.name, "skipped": holes.events}))
    say(
        f"exported {done.events} event{'s' * (done.events != 1)} of '{journal.name}' to {done.file}, {done.bytes} bytes"
    )


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Within:
    """What is in the file."""

    kind: Annotated[
        FileKind | None,
        Parameter(name="--format", help="Its format, when the suffix does not say it.", show_choices=True),
    ] = None
    declared: Annotated[
        str,
        Parameter(name="--type", help="The type: a declaration or MODULE:CLASS; CSV says little.", show_default=False),
    ] = ""
    topic: Annotated[str, Parameter(help="Which one, if an MCAP file has several.", show_default=False)] = ""
    source: Annotated[
        int | None, Parameter(help="Take all events as those of the source with this number, counted anew.")
    ] = None

    def contents(self) -> Contents:
        """Return what the options say.

        Raises:
            FormatError: The type is none.
        """
        declared = declared_type(self.declared) if self.declared else None
        return Contents(self.kind or "", declared, self.topic, self.source)


WITHIN: Final = Within()


def import_journal(
    file: Path,
    path: Path,
    /,
    *,
    name: Text = "",
    append: Flag = False,
    partitions: Annotated[int, Parameter(show_default=True)] = 1,
    within: Within = WITHIN,
    as_json: AsJson = False,
) -> None:
    """Make a journal of a file: Parquet, Arrow, CSV or MCAP.

    The type is the recorded one in files that an export wrote, but for CSV; in others it is found by the columns, or by
    the JSON Schema. Sources, numbers and times are kept if the file has them (export --metadata; MCAP always), and
    events that the journal has already are dropped. The journal appears when it is complete.

    Try:
        echoic journal import trades.parquet journals
        echoic journal import trades.csv journals --type 'Trade{symbol: str, price: float}' --name trades
        echoic journal import more.mcap journals --topic trades --append

    Args:
        file: Where the events are; its suffix says the format.
        path: The folder of the journal, which is made if need be.
        name: The channel. [default: as in the file, or else the name of the file]
        append: Add to the journal if the channel is there already.
        partitions: How many the journal gets when it is made.
        within: What is in the file.
        as_json: Print what was done as JSON.
    """
    if not mode_of(file):
        raise ChannelNotFoundError(f"there is no file {file}")
    if partitions < 1:
        raise LocalError(f"expected at least 1 partition, got {partitions}")
    if name:
        check_channel_name(name)
    options = JournalOptions(partitions=partitions)
    with progress(f"importing {file}") as advance:
        done = import_file(
            file, path, name, contents=within.contents(), append=append, options=options, progress=advance
        )
    if as_json:
        print(json_text(msgspec.to_builtins(done)))
    known = f", of which {done.events - done.fresh} were there already" if done.fresh < done.events else ""
    say(f"imported {done.events} event{'s' * (done.events != 1)} into '{done.channel}' in {path}{known}")


def _total(journal: Journal, selection: Selection) -> int | None:
    """Return how many events there will be, None if that shows only when they are read."""
    if selection.where or selection.since is not None or selection.until is not None:
        return None
    if selection.start is not None or selection.end is not None or selection.partition is not None:
        return None
    return sum(journal.heads) - sum(journal.firsts)
