"""Plots as SVG, drawn by hand: lines over time, and bars. They need no script, and take their colours from the page.

A number that is not finite is left out of a line. Text is escaped here, once, where it enters the picture.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Final

__all__ = ["bars", "lines", "sparkline"]

WIDTH: Final = 720
HEIGHT: Final = 200
LEFT, RIGHT, TOP, BOTTOM = 78, 12, 12, 24
SERIES: Final = 6
BAR_HEIGHT: Final = 26
BAR_LEFT: Final = 190
LABEL_CHARACTERS_MAX: Final = 26
TICKS: Final = 4
POINTS_MAX: Final = 600


def lines(times: Sequence[float], series: Mapping[str, Sequence[float]], text: Callable[[float], str]) -> str:
    """Return lines over time, one for each of the first six series; `text` says how an amount is written."""
    shown = dict(list(series.items())[:SERIES])
    highest = _nice(max((value for each in shown.values() for value in each if math.isfinite(value)), default=0.0))
    begin, end = (times[0], times[-1]) if times else (0.0, 1.0)

    def across(at: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (at - begin) / max(end - begin, 1e-9)

    def up(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / highest

    parts = [f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">']
    for tick in range(TICKS + 1):
        y = up(highest * tick / TICKS)
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
        label = escape(text(highest * tick / TICKS))
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
        x = across(begin + (end - begin) * tick / TICKS)
        anchor = "end" if tick == TICKS else "middle"
        parts.append(
            f'<text x="{x:.1f}" y="{HEIGHT - 6}" text-anchor="{anchor}">{(end - begin) * tick / TICKS:.1f} s</text>'
        )
    for number, (name, values) in enumerate(shown.items(), 1):
        points = _points(times, values, across, up)
        parts.append(f'<polyline class="s{number}" points="{points}"><title>{escape(name)}</title></polyline>')
    legend = "".join(f'<li><i class="s{number}"></i>{escape(name)}</li>' for number, name in enumerate(shown, 1))
    return f'<div class="drawing">{"".join(parts)}</svg><ul class="legend">{legend}</ul></div>'


def sparkline(values: Sequence[float], label: str) -> str:
    """Return a small line without axes, for a cell of a table."""
    width, height = 120, 22
    highest = max((value for value in values if math.isfinite(value)), default=0.0) or 1.0
    step = width / max(len(values) - 1, 1)
    points = " ".join(
        f"{at * step:.1f},{height - 2 - (height - 4) * value / highest:.1f}"
        for at, value in enumerate(values)
        if math.isfinite(value)
    )
    return (
        f'<svg class="spark" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}">'
        f'<polyline class="s1" points="{points}"/></svg>'
    )


def bars(amounts: Mapping[str, float], text: Callable[[float], str]) -> str:
    """Return a bar for each name."""
    highest = max([value for value in amounts.values() if math.isfinite(value)] or [0.0]) or 1.0
    height = len(amounts) * BAR_HEIGHT
    room = WIDTH - BAR_LEFT - 110
    parts = [f'<svg class="plot" viewBox="0 0 {WIDTH} {max(height, 1)}" role="img">']
    for number, (name, value) in enumerate(amounts.items()):
        y = number * BAR_HEIGHT
        length = room * max(0.0, value) / highest if math.isfinite(value) else 0.0
        short = name if len(name) <= LABEL_CHARACTERS_MAX else name[: LABEL_CHARACTERS_MAX - 1] + "…"
        label = f"{escape(short)}<title>{escape(name)}</title>"
        parts.append(
            f'<text x="{BAR_LEFT - 8}" y="{y + 17}" text-anchor="end">{label}</text>'
            f'<rect class="bar" x="{BAR_LEFT}" y="{y + 5}" width="{max(length, 1):.1f}" height="16" rx="2"/>'
            f'<text x="{BAR_LEFT + length + 8:.1f}" y="{y + 17}">{escape(text(value))}</text>'
        )
    return f'<div class="drawing">{"".join(parts)}</svg></div>'


def _points(
    times: Sequence[float], values: Sequence[float], across: Callable[[float], float], up: Callable[[float], float]
) -> str:
    every = max(1, math.ceil(len(times) / POINTS_MAX))
    pairs = list(zip(times, values, strict=False))[::every]
    return " ".join(f"{across(at):.1f},{up(value):.1f}" for at, value in pairs if math.isfinite(value))


def _nice(highest: float) -> float:
    """Return a round number that is not below, so that the lines of the grid are round as well."""
    if highest <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(highest))
    return next(step * power for step in (1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10) if step * power >= highest)
