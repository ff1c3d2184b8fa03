"""The screen of `echoic top`: tables that are drawn anew once a second, and keys that are never slow.

All hubs are asked by a thread of its own, since one that does not answer is waited for; what it finds is posted to the
screen. Another asks about the channel under the cursor. The screen itself touches no socket.

    names at 127.0.0.1:7400   3 channels   saved at the source: 1.20 GB, 3.10 MB/s
    Channels (3)  Derivations (1)  Pipelines  Groups
      CHANNEL  EVENTS/S  BYTES/S ...
    > trades     1000.2 ...
    id, type, who takes part, code, and the rate of the last two minutes
    q Quit  / Filter  space Pause  1-9 Sort

Names and texts come from other processes: they are shown with control characters spelled out, as plain text and never
as markup.
"""

import asyncio
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Generic, TypeVar

from rich.text import Text
from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import DataTable, Footer, Input, Sparkline, Static, TabbedContent, TabPane
from textual.widgets.data_table import ColumnKey

from echoic.channels import Described
from echoic.cli.loads_shown import (
    CHANNELS_LIVE,
    DERIVATIONS,
    MEMBERS,
    PIPELINES,
    Column,
    lag_text,
    sort_key,
)
from echoic.cli.screen import printable
from echoic.errors import ClosedError, EchoicError
from echoic.hub import GroupStatus, Hub
from echoic.monitor import GroupMembers, Load, Pipelines, Sample, bytes_text, load_between, take_sample

__all__ = ["Failed", "Top"]

T = TypeVar("T")

HISTORY: Final = 120
DETAIL_LINES_MAX: Final = 8
SORT_KEYS: Final = "123456789"
STYLE: Final = """
#head { height: 1; padding: 0 1; background: $primary-background; text-style: bold; }
#head.lost { background: $error; color: $text; }
TabbedContent { height: 1fr; }
TabPane { padding: 0; }
DataTable { height: 1fr; }
#details { height: auto; max-height: 14; border-top: solid $primary; padding: 0 1; }
#rate { height: 2; margin-top: 1; }
#filter { dock: bottom; display: none; }
#filter.open { display: block; }
"""


@dataclass
class View(Generic[T]):
    """One of the tables: what is in it, and how it is sorted."""

    id: str
    title: str
    columns: Sequence[Column[T]]
    key: Callable[[T], str]
    sorted_by: int = 0
    descending: bool = False
    rows: Sequence[T] = ()
    shown: list[str] = field(default_factory=list)
    """The keys of the lines on the screen, in order."""

    def sort_by(self, column: int) -> None:
        """Sort by a column; by the same once more, the other way round. Numbers begin with the largest."""
        if column == self.sorted_by:
            self.descending = not self.descending
        else:
            number = any(isinstance(self.columns[column].value(row), int | float) for row in self.rows)
            self.sorted_by, self.descending = column, number

    def ordered(self, wanted: str) -> list[T]:
        """Return what to show: lines in which some cell of text has the wanted one, sorted."""
        value = self.columns[self.sorted_by].value
        chosen = [row for row in self.rows if not wanted or wanted in self._words(row)]
        chosen.sort(key=self.key)
        chosen.sort(key=lambda row: sort_key(value(row)), reverse=self.descending)
        return chosen

    def head(self, column: int) -> Text:
        """Return the title of a column, with a mark at the one that sorts."""
        mark = (" ▼" if self.descending else " ▲") if column == self.sorted_by else ""
        return Text(self.columns[column].title + mark)

    def _words(self, row: T) -> str:
        return " ".join(str(each.value(row)) for each in self.columns if isinstance(each.value(row), str)).casefold()


class Taken(Message):
    """What goes through everything, taken by the thread that asks."""

    def __init__(self, load: Load, members: Sequence[GroupStatus]) -> None:
        super().__init__()
        self.load, self.members = load, members


class Failed(Message):
    """Why nothing could be taken this time."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason


class Explained(Message):
    """What the manager of a channel says about it."""

    def __init__(self, id: str, told: Described | EchoicError) -> None:
        super().__init__()
        self.id, self.told = id, told


class Top(App[None]):
    """What goes through all channels.

    Args:
        hub: Who asks; it is closed by whoever made it.
        interval: Seconds between two samples.
    """

    CSS = STYLE
    ENABLE_COMMAND_PALETTE = False
    TITLE = "echoic top"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", "Quit", show=False, priority=True),
        Binding("slash", "filter", "Filter"),
        Binding("escape", "unfilter", "No filter", show=False),
        Binding("space", "pause", "Pause"),
        Binding("c", "look('channels')", "Channels"),
        Binding("d", "look('derivations')", "Derivations"),
        Binding("p", "look('pipelines')", "Pipelines"),
        Binding("g", "look('groups')", "Groups"),
        Binding("i", "details", "Info"),
        Binding("1", "sort(1)", "Sort (1-9)"),
        *(Binding(key, f"sort({key})", "Sort", show=False) for key in SORT_KEYS[1:]),
    ]

    def __init__(self, hub: Hub, interval: float) -> None:
        super().__init__()
        self.views: Final[dict[str, View[Any]]] = {
            view.id: view
            for view in (
                View("channels", "Channels", CHANNELS_LIVE, lambda load: load.id),
                View("derivations", "Derivations", DERIVATIONS, lambda load: load.id),
                View("pipelines", "Pipelines", PIPELINES, lambda load: f"{load.pipeline} {load.output}"),
                View("groups", "Groups", MEMBERS, lambda status: f"{status.group} {status.member}"),
            )
        }
        self.paused = False
        self._hub, self._interval = hub, interval
        self._ending = threading.Event()
        self._load: Load | None = None
        self.rates: Final[dict[str, deque[float]]] = {}
        self._explained: Described | EchoicError | None = None
        self._selected = ""
        self._wanted = ""

    def compose(self) -> ComposeResult:
        """Lay the screen out."""
        yield Static("asking ...", id="head", markup=False)
        with TabbedContent(id="tabs"):
            for view in self.views.values():
                with TabPane(view.title, id=f"tab-{view.id}"):
                    yield DataTable(id=view.id, cursor_type="row", zebra_stripes=True)
        with Vertical(id="details"):
            yield Static("", id="facts", markup=False)
            yield Sparkline([], id="rate", summary_function=max)
        yield Input(placeholder="part of a name; Enter keeps it, Esc shows everything", id="filter")
        yield Footer()

    def on_mount(self) -> None:
        """Begin to ask."""
        for view in self.views.values():
            table = self._table(view)
            for at in range(len(view.columns)):
                table.add_column(view.head(at), key=str(at))
        # Whoever ends it from outside gets the terminal back as it was, too.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.exit)
        threading.Thread(target=self._keep_asking, name="echoic-top", daemon=True).start()
        self._table(self.views["channels"]).focus()

    def on_unmount(self) -> None:
        """Ask no more."""
        self._ending.set()

    def action_pause(self) -> None:
        """Leave the screen as it is, or let it go on."""
        self.paused = not self.paused
        self._draw()

    def action_filter(self) -> None:
        """Ask for what is to be shown."""
        entry = self.query_one("#filter", Input)
        entry.add_class("open")
        entry.focus()

    def action_unfilter(self) -> None:
        """Show everything."""
        entry = self.query_one("#filter", Input)
        entry.value = ""
        self._close(entry)

    def action_look(self, view: str) -> None:
        """Show another table."""
        self.query_one(TabbedContent).active = f"tab-{view}"

    def action_sort(self, column: int) -> None:
        """Sort the table that is shown."""
        view = self._shown_view()
        if column <= len(view.columns):
            self._sort(view, column - 1)

    def action_details(self) -> None:
        """Show what is known about the selected channel, or do not."""
        details = self.query_one("#details")
        details.display = not details.display

    @on(Input.Changed, "#filter")
    def _narrow(self, event: Input.Changed) -> None:
        self._wanted = event.value.strip().casefold()
        self._draw_tables()

    @on(Input.Submitted, "#filter")
    def _keep_filter(self, event: Input.Submitted) -> None:
        self._close(event.input)

    @on(TabbedContent.TabActivated)
    def _focus_table(self) -> None:
        self._table(self._shown_view()).focus()

    @on(DataTable.HeaderSelected)
    def _sort_by_click(self, event: DataTable.HeaderSelected) -> None:
        self._sort(self.views[str(event.data_table.id)], event.column_index)

    @on(DataTable.RowHighlighted, "#channels")
    def _select(self, event: DataTable.RowHighlighted) -> None:
        selected = event.row_key.value or ""
        if selected != self._selected and self._stands():
            self._selected, self._explained = selected, None
            self._draw_details()
            threading.Thread(target=self._explain, args=(selected,), name="echoic-explain", daemon=True).start()

    @on(Taken)
    def _take(self, event: Taken) -> None:
        current = {each.id: each.events_per_second for each in event.load.channels}
        for id in set(self.rates) - set(current):
            del self.rates[id]
        for id, rate in current.items():
            self.rates.setdefault(id, deque(maxlen=HISTORY)).append(rate)
        if self.paused or not self._stands():
            return
        self._load = event.load
        rows: dict[str, Sequence[Any]] = {
            "channels": event.load.channels,
            "derivations": event.load.derivations,
            "pipelines": event.load.pipelines,
            "groups": event.members,
        }
        for id, found in rows.items():
            self.views[id].rows = found
        self._draw()

    @on(Failed)
    def _tell(self, event: Failed) -> None:
        if self._stands():
            head = self.query_one("#head", Static)
            head.add_class("lost")
            head.update(Text(printable(event.reason), no_wrap=True, overflow="ellipsis"))

    @on(Explained)
    def _note(self, event: Explained) -> None:
        if event.id == self._selected and self._stands():
            self._explained = event.told
            self._draw_details()

    def _keep_asking(self) -> None:
        """Ask everybody again and again; in a thread of its own."""
        pipelines, members = Pipelines(self._hub), GroupMembers(self._hub)
        before: Sample | None = None
        while not self._ending.is_set():
            try:
                after = take_sample(self._hub, pipelines, before)
                members.follow(after.known)
                if before is not None:
                    self.post_message(Taken(load_between(before, after), [status for _, status in members.told()]))
                before = after
            except ClosedError:
                return  # the hub has ended, and the screen with it
            except EchoicError as error:
                self.post_message(Failed(str(error)))
            self._ending.wait(self._interval)

    def _explain(self, id: str) -> None:
        told: Described | EchoicError
        try:
            told = self._hub.describe(id)
        except EchoicError as error:
            told = error
        self.post_message(Explained(id, told))

    def _draw(self) -> None:
        self._draw_head()
        self._draw_tables()
        self._draw_details()

    def _draw_head(self) -> None:
        load, head = self._load, self.query_one("#head", Static)
        if load is None:
            return
        saved = f"saved at the source: {bytes_text(load.saved_bytes)}, {bytes_text(load.saved_per_second)}/s"
        clock = time.strftime("%H:%M:%S", time.localtime(load.time))
        parts = [f"names at {load.names}", f"{len(load.channels)} channels", saved, clock]
        if load.lost:
            nobody = load.lost.startswith("nobody")
            parts.insert(1, "LOST: nobody serves names there" if nobody else "LOST: it does not let us in")
        if self.paused:
            parts.append("PAUSED")
        if self._wanted:
            parts.append(f"filter: {self._wanted}")
        head.set_class(bool(load.lost), "lost")
        head.update(Text(printable("   ".join(parts)), no_wrap=True, overflow="ellipsis"))

    def _draw_tables(self) -> None:
        tabs = self.query_one(TabbedContent)
        for view in self.views.values():
            self._draw_table(view)
            label = f"{view.title} ({len(view.rows)})" if view.rows else view.title
            if tabs.get_tab(f"tab-{view.id}").label_text != label:
                tabs.get_tab(f"tab-{view.id}").label = label

    def _draw_table(self, view: View[T]) -> None:
        """Write the cells that have changed; lay the table anew only if its lines are others, or in another order."""
        table = self._table(view)
        rows = view.ordered(self._wanted)
        keys = [view.key(row) for row in rows]
        cells = [[_cell(column.shown(row)) for column in view.columns] for row in rows]
        if keys == view.shown:
            for line, texts in enumerate(cells):
                for at, text in enumerate(texts):
                    if table.get_cell_at((line, at)) != text:  # type: ignore[arg-type]  # a plain tuple is taken
                        table.update_cell(keys[line], str(at), text, update_width=True)
            return
        selected = _selected_key(table)
        scrolled = table.scroll_y
        with self.batch_update():
            table.clear()
            for key, texts in zip(keys, cells, strict=True):
                if key not in table.rows:  # what others say may say it twice
                    table.add_row(*texts, key=key)
            if selected in keys:
                table.move_cursor(row=table.get_row_index(str(selected)), scroll=False)
            table.scroll_to(y=scrolled, animate=False)
        view.shown = keys

    def _draw_details(self) -> None:
        load = next((each for each in self.views["channels"].rows if each.id == self._selected), None)
        rates = list(self.rates.get(self._selected, ()))
        self.query_one("#rate", Sparkline).data = rates
        if load is None:
            text = "no channels yet (echoic pub --help)" if self._load is not None else ""
            self.query_one("#facts", Static).update(Text(text))
            return
        lag = lag_text(load)
        lines = [
            f"{load.name}   {load.type or '(untyped)'}   {load.id}",
            f"{load.events_per_second:,.1f} events/s, {bytes_text(load.bytes_per_second)}/s; at most "
            f"{max(rates, default=0):,.1f} events/s in the last {len(rates)} looks" + (f"; lag {lag}" if lag else ""),
            *_explanation(self._explained),
        ]
        self.query_one("#facts", Static).update(Text("\n".join(printable(line) for line in lines), overflow="ellipsis"))

    def _sort(self, view: View[T], column: int) -> None:
        view.sort_by(column)
        table = self._table(view)
        for at in range(len(view.columns)):
            table.columns[ColumnKey(str(at))].label = view.head(at)
        view.shown = []
        self._draw_table(view)

    def _close(self, entry: Input) -> None:
        entry.remove_class("open")
        self._table(self._shown_view()).focus()
        self._draw_head()

    def _stands(self) -> bool:
        """Whether the screen is there: messages may come while it is taken down, one part after the other."""
        return self.is_running

    def _shown_view(self) -> View[Any]:
        return self.views[self.query_one(TabbedContent).active.removeprefix("tab-") or "channels"]

    def _table(self, view: View[T]) -> "DataTable[Text]":
        return self.query_one(f"#{view.id}", DataTable)


def _cell(value: object) -> Text:
    number = isinstance(value, int | float)
    return Text(printable(str(value)), justify="right" if number else "left", no_wrap=True)


def _selected_key(table: "DataTable[Text]") -> Hashable:
    if not table.row_count:
        return None
    return table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value


def _explanation(told: Described | EchoicError | None) -> list[str]:
    """Return who takes part in a channel, and of a derived one, from what and how; not more than fits."""
    if told is None:
        return ["asking its manager ..."]
    if isinstance(told, EchoicError):
        return [str(told)]
    lines = [f"sources: {', '.join(told.sources) or 'none'}"]
    sinks = [f"{sink.address} {sink.slow} ({', '.join(sink.sinks)})" for sink in told.sinks]
    lines.append(f"sinks:   {', '.join(sinks) or 'none'}")
    if told.lineage:
        recipe = told.lineage[-1].recipe
        lines.append(f"derived: from {recipe.parent}")
        lines += [f"         {line}" for line in recipe.code.strip().split("\n")]
    return lines[:DETAIL_LINES_MAX]
