// What uPlot has to be told: axes, lines and scales, in the page's colours.
//
// A scale that follows every value makes a nervous picture. ScaleKeeper lets one be until a value leaves it, or until
// two fifths of it are empty for a while, and then gives it some room.

import { figure } from './quantities.mjs';
import { PARTS } from './series.mjs';

const FONT = '11.5px system-ui, sans-serif';
const LABEL_HALF = 22;
const TICK_SECONDS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300];
const [ROOM, WASTE, PATIENCE] = [0.08, 0.6, 60];

const coarse = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const fine = new Intl.DateTimeFormat('en-GB', { minute: '2-digit', second: '2-digit', fractionalSecondDigits: 1 });

const scaleOf = (line, each) => (each ? `y${line}` : 'y0');
const tint = (colour) => colour.replace('rgb(', 'rgba(').replace(')', ', 0.2)');

/**
 * Three series for each line: the least, which is not drawn, the greatest, which draws the band, and the last. `gap()`
 * is how many seconds without a point break a line.
 */
export function linesOf(paths, colours, each, gap) {
  return paths.flatMap((path, line) => {
    const common = { scale: scaleOf(line, each), points: { show: false }, auto: false, pxAlign: 0 };
    const least = { ...common, paths: () => null };
    const most = { ...common, width: 0, fill: tint(colours.lines[line]), paths: bandPath(gap) };
    const last = { ...common, label: path, stroke: colours.lines[line], width: 1, paths: linePath(gap) };
    return [least, most, last];
  });
}

// uPlot's own bands clip one area by another, which a canvas without a GPU is slow at, and its lines look for gaps and
// merge what shares a column, which series.mjs has done already. So paths are made here.
function placesOf(plot, series) {
  const { left, top, width, height } = plot.bbox;
  const [x, y] = [plot.scales.x, plot.scales[plot.series[series].scale]];
  const [across, up] = [width / (x.max - x.min), height / (y.max - y.min)];
  return { x: (time) => left + (time - x.min) * across, y: (value) => top + height - (value - y.min) * up };
}

// Runs of points without a gap between them: each(from, to), both inclusive.
function runs(times, first, last, gap, each) {
  let from = first;
  for (let i = first + 1; i <= last + 1; i++) {
    if (i <= last && times[i] - times[i - 1] <= gap) continue;
    each(from, i - 1);
    from = i;
  }
}

const linePath = (gap) => (plot, series, first, last) => {
  const [path, { x, y }] = [new Path2D(), placesOf(plot, series)];
  const [times, values] = [plot.data[0], plot.data[series]];
  runs(times, first, last, gap(), (from, to) => {
    path.moveTo(x(times[from]) - 1, y(values[from])); // a point that is alone is seen too
    for (let i = from; i <= to; i++) path.lineTo(x(times[i]), y(values[i]));
  });
  return { stroke: path, flags: 0 };
};

const bandPath = (gap) => (plot, series, first, last) => {
  const [path, { x, y }] = [new Path2D(), placesOf(plot, series)];
  const [times, least, most] = [plot.data[0], plot.data[series - 1], plot.data[series]];
  runs(times, first, last, gap(), (from, to) => {
    path.moveTo(x(times[from]), y(most[from]));
    for (let i = from + 1; i <= to; i++) path.lineTo(x(times[i]), y(most[i]));
    for (let i = to; i >= from; i--) path.lineTo(x(times[i]), y(least[i]));
  });
  return { fill: path, flags: 0 };
};

export function axes(colours, lines, each) {
  const common = {
    font: FONT,
    grid: { stroke: colours.grid, width: 1 },
    ticks: { show: false },
    border: { show: false },
  };
  const values = (_, splits) => splits.map(figure);
  const size = (_, shown) => Math.max(44, 14 + 7 * Math.max(0, ...(shown ?? []).map((text) => text.length)));
  const own = (line, side) => ({
    ...common,
    scale: `y${line}`,
    side,
    stroke: colours.lines[line],
    values,
    size,
    grid: { ...common.grid, show: line === lines - 1 },
  });
  const clock = (plot, splits, __, ___, step) => {
    const { min, max } = plot.scales.x;
    // One behind it would be cut, unless there is an axis at the right.
    const last = each ? max : max - ((max - min) * LABEL_HALF * devicePixelRatio) / plot.bbox.width;
    return splits.map((time) => (time > last ? '' : (step < 1 ? fine : coarse).format(time * 1000)));
  };
  const time = { ...common, stroke: colours.text, size: 30, space: 80, incrs: TICK_SECONDS, values: clock };
  const top = lines - 1; // the line that was chosen first
  if (each) return [time, own(top, 3), ...(top > 0 ? [own(top - 1, 1)] : [])];
  return [time, { ...common, scale: 'y0', stroke: colours.text, values, size }];
}

export class ScaleKeeper {
  #kept = new Map();

  options(lines, each) {
    const names = Array.from({ length: each ? lines : 1 }, (_, line) => `y${line}`);
    return Object.fromEntries(names.map((name) => [name, { auto: false, range: (_, low, high) => [low, high] }]));
  }

  /** Sets the scales to what holds the data. */
  fit(plot, data, each) {
    const lines = (data.length - 1) / PARTS;
    const spans = new Map();
    for (let line = 0; line < lines; line++) {
      const name = scaleOf(line, each);
      const span = spans.get(name) ?? { low: Infinity, high: -Infinity };
      for (const value of data[PARTS * line + 1]) if (value < span.low) span.low = value;
      for (const value of data[PARTS * line + 2]) if (value > span.high) span.high = value;
      spans.set(name, span);
    }
    for (const [name, { low, high }] of spans) {
      if (!Number.isFinite(low) || !Number.isFinite(high)) continue;
      const [min, max] = this.#keep(name, low, high);
      if (plot.scales[name].min !== min || plot.scales[name].max !== max) plot.setScale(name, { min, max });
    }
  }

  #keep(name, low, high) {
    const kept = this.#kept.get(name);
    const filled = kept ? (high - low) / (kept.max - kept.min) : 0;
    const fits = kept && low >= kept.min && high <= kept.max;
    if (fits && (filled > WASTE || ++kept.loose < PATIENCE)) {
      if (filled > WASTE) kept.loose = 0;
      return [kept.min, kept.max];
    }
    const room = (high - low) * ROOM || Math.abs(high) * ROOM || 1;
    const [min, max] = [low - room, high + room];
    this.#kept.set(name, { min, max, loose: 0 });
    return [min, max];
  }
}
