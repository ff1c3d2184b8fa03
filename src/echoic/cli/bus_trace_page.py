"""A trace as a page: one file with a sequence diagram, drawn as SVG, that loads nothing from anywhere.

     Buyer(1)     Shop(2)      bank(1)            a column for each process and tool, in the order they appear
        |            |            |
        |--snd-msg-->|            |               two processes met
        |            |--snd-eval->|               a process and a tool
        |            o printf     |               what a process does alone

Names and terms come from scripts and from tools, so every text is escaped; the page has no script, and forbids any.
"""

import html
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from echoic.cli.bus_tracing import TraceHead
from echoic.toolbus.history import TracedStep

__all__ = ["page_of"]

COLUMN: Final = 220
LEFT: Final = 110
ROW: Final = 26
TOP: Final = 40
LABEL_CHARACTERS_MAX: Final = 34
COLUMNS_MAX: Final = 200
TO_TOOL: Final = frozenset(
    {"execute", "snd-eval", "snd-do", "snd-cancel", "snd-ack-event", "snd-response", "snd-terminate", "snd-kill"}
)
FROM_TOOL: Final = frozenset({"rec-connect", "rec-disconnect", "rec-value", "rec-event", "rec-request"})
HEAD: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
body {{ font: 14px sans-serif; margin: 1em 2em; color: #222; background: #fff; }}
svg text {{ font: 12px monospace; fill: #222; }}
.who {{ font-weight: bold; }}
.life {{ stroke: #bbb; stroke-dasharray: 3 3; }}
.met {{ stroke: #06c; fill: none; }}
.tool {{ stroke: #a50; fill: none; }}
.alone {{ fill: #666; }}
.time {{ fill: #888 !important; }}
.row:hover rect {{ fill: #ffc; }}
.row rect {{ fill: #fff; fill-opacity: 0; }}
</style>
</head>
<body>
"""
MARKER: Final = """<marker id="{kind}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8"
 orient="auto"><path d="M0 0L8 4L0 8z" fill="{colour}"/></marker>
"""
COLOURS: Final = {"met": "#06c", "tool": "#a50"}


def page_of(head: TraceHead, steps: Sequence[TracedStep], *, more: bool) -> str:
    """Return the page of some steps; `more` says that there are others, which are not drawn."""
    columns = _columns(steps)
    title = f"{Path(head.script).name}: {len(steps)} steps"
    width, height = LEFT + COLUMN * len(columns), TOP + ROW * (len(steps) + 1)
    parts = [
        HEAD.format(title=html.escape(title)),
        f"<h1>{html.escape(title)}</h1>\n",
        (
            f"<p>{html.escape(head.script)}, seed {head.seed}{', virtual time' if head.virtual else ''}."
            f"{' There are more steps, which are not drawn.' if more else ''}</p>\n"
        ),
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">\n',
        "<defs>\n",
        *(MARKER.format(kind=kind, colour=colour) for kind, colour in COLOURS.items()),
        "</defs>\n",
        *_lifelines(columns, height),
        *(_row(step, number, columns, width) for number, step in enumerate(steps)),
        "</svg>\n</body>\n</html>\n",
    ]
    return "".join(parts)


def _columns(steps: Sequence[TracedStep]) -> dict[str, int]:
    """Return where the processes and tools stand; those beyond a limit share the last place."""
    found: dict[str, int] = {}
    for step in steps:
        for who in (_who(step), _other(step)):
            if who and who not in found:
                found[who] = min(len(found), COLUMNS_MAX - 1)
    return found


def _who(step: TracedStep) -> str:
    return f"{step.name}({step.process})"


def _other(step: TracedStep) -> str:
    """Return who else took part in a step, if anybody did."""
    if step.partner:
        return f"{step.partner_name}({step.partner})"
    if step.atom in TO_TOOL | FROM_TOOL and step.arguments:
        return f"tool {step.arguments[-1 if step.atom == 'execute' else 0][:LABEL_CHARACTERS_MAX]}"
    return ""


def _lifelines(columns: dict[str, int], height: int) -> Iterator[str]:
    for who, at in columns.items():
        x = LEFT + COLUMN * at + COLUMN // 2
        yield f'<line class="life" x1="{x}" y1="{TOP - 8}" x2="{x}" y2="{height}"/>\n'
        yield f'<text class="who" x="{x}" y="{TOP - 16}" text-anchor="middle">{html.escape(who)}</text>\n'


def _row(step: TracedStep, number: int, columns: dict[str, int], width: int) -> str:
    y = TOP + ROW * (number + 1)
    here = LEFT + COLUMN * columns[_who(step)] + COLUMN // 2
    place = f"{step.file}:{step.line}"
    title = html.escape(f"step {step.number} at {step.at:.6f} s, {place}\n{_who(step)}: {step.text}")
    label = html.escape(_shortened(step.text))
    other = _other(step)
    if other:
        there = LEFT + COLUMN * columns[other] + COLUMN // 2
        kind = "met" if step.partner else "tool"
        begin, end = (there, here) if step.atom in FROM_TOOL else (here, there)
        drawn = (
            f'<line class="{kind}" x1="{begin}" y1="{y}" x2="{end}" y2="{y}" marker-end="url(#{kind})"/>'
            f'<text x="{(begin + end) // 2}" y="{y - 5}" text-anchor="middle">{label}</text>'
        )
    else:
        drawn = f'<circle class="alone" cx="{here}" cy="{y}" r="3"/><text x="{here + 8}" y="{y + 4}">{label}</text>'
    return (
        f'<g class="row"><title>{title}</title><rect x="0" y="{y - ROW // 2 - 4}" width="{width}" height="{ROW}"/>'
        f'<text class="time" x="4" y="{y + 4}">{step.at:.6f}</text>{drawn}</g>\n'
    )


def _shortened(text: str) -> str:
    return text if len(text) <= LABEL_CHARACTERS_MAX else f"{text[: LABEL_CHARACTERS_MAX - 3]}..."
