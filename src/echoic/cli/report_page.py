"""A report as one page of HTML: no script, nothing loaded, light and dark, and fit to be sent to somebody.

Names, types and reasons come from other processes. All of them pass through `escape`, with control characters spelled
out, and the page forbids itself everything but its own styles.
"""

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from echoic.cli.loads_shown import CHANNELS_LIVE, DERIVATIONS, MEMBERS, PIPELINES, rows_of
from echoic.cli.report_plots import bars, lines, sparkline
from echoic.cli.screen import printable
from echoic.hub import GroupStatus
from echoic.monitor import ChannelLoad, Load, bytes_text

__all__ = ["Observed", "page"]

ROWS_MAX: Final = 500
BARS_MAX: Final = 20
AMOUNT: Final = re.compile(r"(-?[\d.,]+( [A-Za-z%]+)?)?")
STYLE: Final = """
:root { color-scheme: light dark; --ground: #fff; --card: #f6f7f9; --line: #dfe3e8; --text: #1c2430; --muted: #5c6878;
  --accent: #0b69c7; --bad: #b42318; --s1: #0b69c7; --s2: #c2570c; --s3: #17803d; --s4: #8a3ffc; --s5: #a56a00;
  --s6: #c2185b; }
@media (prefers-color-scheme: dark) { :root { --ground: #12161c; --card: #1a2029; --line: #2d3642; --text: #e6eaf0;
  --muted: #9aa7b8; --accent: #6cb4ff; --bad: #ff8a80; --s1: #6cb4ff; --s2: #ffab6b; --s3: #6fd08c; --s4: #c4a1ff;
  --s5: #f0c36d; --s6: #ff8fb8; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1100px; padding: 24px 20px 60px; background: var(--ground); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 26px; margin: 0; } h2 { font-size: 18px; margin: 36px 0 10px; }
p { margin: 4px 0; } .muted { color: var(--muted); } .bad { color: var(--bad); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin: 20px 0; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 12px 14px; }
.card b { display: block; font-size: 22px; font-variant-numeric: tabular-nums; } .card span { color: var(--muted); }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td { padding: 6px 12px; text-align: left; white-space: nowrap; border-bottom: 1px solid var(--line); }
tr:last-child td { border-bottom: 0; }
th { color: var(--muted); font-weight: 600; font-size: 12px; background: var(--card); }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.name { max-width: 320px; overflow: hidden; text-overflow: ellipsis; font-weight: 600; }
.plot { width: 100%; min-width: 560px; max-width: 960px; height: auto; display: block; }
.spark { width: 120px; height: 22px; display: block; }
svg text { font: 11px system-ui, sans-serif; fill: var(--muted); }
.grid { stroke: var(--line); stroke-width: 1; }
polyline { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.bar { fill: var(--accent); }
.s1 { stroke: var(--s1); background: var(--s1); } .s2 { stroke: var(--s2); background: var(--s2); }
.s3 { stroke: var(--s3); background: var(--s3); } .s4 { stroke: var(--s4); background: var(--s4); }
.s5 { stroke: var(--s5); background: var(--s5); } .s6 { stroke: var(--s6); background: var(--s6); }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 4px 18px; padding: 0; margin: 6px 0; font-size: 13px; }
.legend i { display: inline-block; width: 14px; height: 3px; margin-right: 6px; vertical-align: middle; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 18px; }
dt { color: var(--muted); } dd { margin: 0; }
.drawing { overflow-x: auto; margin-bottom: 14px; }
@media print { body { max-width: none; } }
"""


@dataclass(frozen=True)
class Observed:
    """What was seen while a report was made."""

    seconds: float
    loads: Sequence[Load]
    """In the order in which they were taken; at least one."""
    mean: Load
    """What was on the mean over the whole time."""
    members: Sequence[GroupStatus]
    machine: Mapping[str, str]

    def series(self, field: str) -> dict[str, list[float]]:
        """Return a number of every channel over time, by name, the largest first; 0 before a channel was there."""
        found: dict[str, list[float]] = {load.name: [0.0] * len(self.loads) for load in self.mean.channels}
        for at, load in enumerate(self.loads):
            for channel in load.channels:
                if channel.name in found:
                    found[channel.name][at] = float(getattr(channel, field) or 0)
        return dict(sorted(found.items(), key=lambda each: (-sum(each[1]), each[0])))


def page(observed: Observed) -> str:
    """Return a report."""
    load = observed.mean
    when = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(load.time))
    body = [
        "<h1>echoic report</h1>",
        f'<p class="muted">{_safe(when)}, {observed.seconds:.1f} s watched, names at {_safe(load.names)}</p>',
        _cards(observed),
        _troubles(observed),
        *_channels(observed),
        *_derivations(load),
        *_lag(observed),
        *_table_section("Groups", [each.title for each in MEMBERS], rows_of(MEMBERS, observed.members)),
        *_table_section("Pipelines", [each.title for each in PIPELINES], rows_of(PIPELINES, load.pipelines)),
        "<h2>Machine</h2><dl>",
        *(f"<dt>{_safe(key)}</dt><dd>{_safe(value)}</dd>" for key, value in observed.machine.items()),
        "</dl>",
    ]
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>echoic report, {_safe(when)}</title><style>{STYLE}</style></head>\n<body>\n"
        + "\n".join(part for part in body if part)
        + "\n</body></html>\n"
    )


def _cards(observed: Observed) -> str:
    load = observed.mean
    share = _share_saved(load)
    cards = {
        "channels": f"{len(load.channels):,}",
        "events/s": f"{sum(each.events_per_second for each in load.channels):,.0f}",
        "sent each second": bytes_text(sum(each.bytes_per_second for each in load.channels)),
        "saved at the source": bytes_text(load.saved_bytes),
        "saved each second" + (f", {share:.0%}" if share is not None else ""): bytes_text(load.saved_per_second),
        "missed, dropped": f"{sum(each.missed for each in load.channels):,}, "
        f"{sum(each.dropped for each in load.channels):,}",
    }
    inside = "".join(f'<div class="card"><b>{_safe(value)}</b><span>{key}</span></div>' for key, value in cards.items())
    return f'<div class="cards">{inside}</div>'


def _share_saved(load: Load) -> float | None:
    """Return how much of what would have been sent without derivations was not."""
    sent = sum(each.bytes_per_second for each in load.channels)
    return load.saved_per_second / (sent + load.saved_per_second) if load.saved_per_second > 0 else None


def _troubles(observed: Observed) -> str:
    load = observed.mean
    found = [f"the name server was lost: {load.lost}"] if load.lost else []
    for each in load.derivations:
        found += [f"{each.name} is suspended at {hub}: {why}" for hub, why in each.suspended.items()]
        if each.faults:
            found.append(f"{each.faults} events of {each.name} faulted, the last because {each.fault}")
    found += [f"{each.missed} events of {each.name} were missed" for each in load.channels if each.missed]
    found += [f"{each.dropped} events of {each.name} were dropped" for each in load.channels if each.dropped]
    return "".join(f'<p class="bad">{_safe(each)}</p>' for each in found[:ROWS_MAX])


def _channels(observed: Observed) -> Iterable[str]:
    loads = observed.mean.channels
    if not loads:
        return ["<h2>Channels</h2><p>There are none.</p>"]
    rates = observed.series("events_per_second")
    busy = {_plain(name): values for name, values in rates.items() if any(values)}
    columns = [each.title for each in CHANNELS_LIVE]
    rows: list[list[object]] = []
    for load, row in zip(loads, rows_of(CHANNELS_LIVE, loads), strict=True):
        rows.append([row[0], load.type or "(untyped)", *row[1:], Picture(_spark(rates, load))])
    parts = ["<h2>Channels</h2>"]
    if busy:
        parts.append(lines(_times(observed), busy, lambda value: f"{value:,.4g}/s"))
        if len(busy) > 6:
            parts.append(f'<p class="muted">the six busiest of {len(busy)}</p>')
    else:
        parts.append('<p class="muted">No events were sent meanwhile.</p>')
    return [*parts, _table([columns[0], "TYPE", *columns[1:], "EVENTS/S OVER TIME"], rows)]


def _spark(rates: Mapping[str, Sequence[float]], load: ChannelLoad) -> str:
    values = rates.get(load.name, ())
    return sparkline(values, f"events a second of {_plain(load.name)}") if any(values) else ""


def _derivations(load: Load) -> Iterable[str]:
    if not load.derivations:
        return []
    saved = {_plain(each.name): float(each.bytes_saved) for each in load.derivations if each.bytes_saved}
    most = dict(sorted(saved.items(), key=lambda each: -each[1])[:BARS_MAX])
    plot = f'<p class="muted">bytes saved since they began</p>{bars(most, bytes_text)}' if most else ""
    table = _table([each.title for each in DERIVATIONS], rows_of(DERIVATIONS, load.derivations))
    return ["<h2>Derivations</h2>", plot, table]


def _lag(observed: Observed) -> Iterable[str]:
    waiting = {_plain(name): values for name, values in observed.series("waiting_bytes").items() if any(values)}
    if not waiting:
        return ["<h2>Lag</h2>", '<p class="muted">Every sink kept up: nothing waited to be sent.</p>']
    return [
        "<h2>Lag</h2>",
        '<p class="muted">bytes that waited for slow sinks</p>',
        lines(_times(observed), waiting, bytes_text),
    ]


def _times(observed: Observed) -> list[float]:
    return [load.time for load in observed.loads]


def _table_section(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterable[str]:
    return [f"<h2>{title}</h2>", _table(columns, rows)] if rows else []


@dataclass(frozen=True)
class Picture:
    """A cell that is HTML of ours already."""

    html: str


def _table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    numeric = [all(_is_amount(row[at]) for row in rows) for at in range(len(columns))]
    right = [' class="number"' if number else "" for number in numeric]
    head = "".join(f"<th{css}>{_safe(column)}</th>" for column, css in zip(columns, right, strict=True))
    lines_of_table = [f"<tr>{_cells(row, right)}</tr>" for row in rows[:ROWS_MAX]]
    more = f'<p class="muted">and {len(rows) - ROWS_MAX} more</p>' if len(rows) > ROWS_MAX else ""
    inside = f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines_of_table)}</tbody>"
    return f'<div class="scroll"><table>{inside}</table></div>{more}'


def _is_amount(value: object) -> bool:
    """Whether it stands to the right: a number, perhaps with a unit."""
    return isinstance(value, int | float) or (isinstance(value, str) and AMOUNT.fullmatch(value) is not None)


def _cells(row: Sequence[object], right: Sequence[str]) -> str:
    cells: list[str] = []
    for at, (value, css) in enumerate(zip(row, right, strict=True)):
        if isinstance(value, Picture):
            cells.append(f"<td>{value.html}</td>")
        elif at == 0:
            cells.append(f'<td class="name" title="{_safe(value)}">{_safe(value)}</td>')
        else:
            text = f"{value:,}" if isinstance(value, int | float) else value
            cells.append(f"<td{css}>{_safe(text)}</td>")
    return "".join(cells)


def _plain(text: object) -> str:
    return printable(str(text))


def _safe(text: object) -> str:
    return escape(_plain(text))
