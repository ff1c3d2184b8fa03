// Some quantities over the last minutes, drawn by uPlot: lists of numbers that come again once a second, each with its own
// scale, and marks at moments that somebody wants explained. Above them stands what each is and its last number with its
// unit; while somebody points at a moment, the numbers of that moment.
//
//     const chart = new HistoryChart(parent, [{ label: 'degree', colour: '--series-1', side: 'left', stepped: true }], { height: 220 });
//     chart.show([times, degrees], [{ at, text: '1' }]);        chart.point(3);        chart.close();

import { make, put } from './elements.mjs';
import { clock } from './moments.mjs';
import { count, figure } from './quantities.mjs';
import { colourOf } from './theme.mjs';
import uPlot from './vendor/uplot/uPlot.esm.js';

const AXIS_PX = 56;
const SPAN_SECONDS_MIN = 10; // it grows from there, so that the first picture is not half empty
const NARROW_PX = 480;
const MARK_PX = 8;
const FONT = '11px system-ui, sans-serif';
const faded = (colour, share) => colour.replace(/^rgb\(([^)]*)\)$/, `rgb($1 / ${share})`).replaceAll(', ', ' ');

/** 37.6 events a pack; 1,920 rows/s; – where nothing was measured. */
function told(number, unit) {
  if (number === null || number === undefined) return '–';
  return `${Math.abs(number) >= 1000 ? count(number) : figure(Number(number.toPrecision(3)))}${unit ? ` ${unit}` : ''}`;
}

/** 12400 -> 12.4k: what fits beside an axis. */
function brief(number) {
  if (number === null || number === undefined) return '';
  const size = Math.abs(number);
  for (const [unit, sign] of [[1e9, 'G'], [1e6, 'M'], [1e4, 'k']]) if (size >= unit) return `${figure(number / (unit === 1e4 ? 1e3 : unit))}${sign}`;
  return figure(number);
}

export class HistoryChart {
  #parent;
  #series;
  #options;
  #plot = null;
  #data;
  #keys;
  #moment = make('span', { class: 'moment' });
  #marks = [];
  #pointed = -1;
  #resized;
  #themed = () => this.#build();

  constructor(parent, series, { height = 200, onMark = null, describe = '', aligned = false } = {}) {
    this.#parent = make('div', { class: 'history-chart', role: 'img', 'aria-label': describe });
    this.#series = series;
    this.#options = { height, onMark, aligned };
    this.#data = [[], ...series.map(() => [])];
    this.#keys = series.map(({ label, colour }) => {
      const sign = make('i');
      sign.style.background = `var(${colour})`;
      return make('span', {}, sign, `${label} `, make('b', { text: '–' }));
    });
    parent.append(make('div', { class: 'history-keys' }, this.#keys, this.#moment), this.#parent);
    this.#resized = new ResizeObserver(() => this.#fit());
    this.#resized.observe(this.#parent);
    window.addEventListener('themechange', this.#themed);
  }

  /** Shows other numbers: times in seconds, then a list for each series. */
  show(data, marks = []) {
    [this.#data, this.#marks] = [data, marks];
    if (this.#plot) this.#plot.setData(data);
    else this.#build();
    this.#tell();
  }

  /** Makes one of the marks stand out; -1 for none. */
  point(index) {
    if (this.#pointed === index) return;
    this.#pointed = index;
    this.#plot?.redraw(false);
  }

  close() {
    window.removeEventListener('themechange', this.#themed);
    this.#resized.disconnect();
    this.#plot?.destroy();
    this.#plot = null;
  }

  /** Says the last numbers above, unless somebody points at others. */
  #tell() {
    const pointed = this.#plot?.cursor.left >= 0 ? this.#plot.cursor.idx : null;
    const index = pointed ?? this.#data[0].length - 1;
    this.#keys.forEach((key, at) => put(key.lastElementChild, told(this.#data[at + 1][index], this.#series[at].unit)));
    put(this.#moment, typeof pointed === 'number' ? `at ${clock(this.#data[0][pointed])}` : '');
  }

  #fit() {
    const width = this.#parent.clientWidth;
    if (!width) return;
    if (!this.#plot || (width < NARROW_PX) !== (this.#plot.width < NARROW_PX)) this.#build();
    else if (Math.abs(this.#plot.width - width) > 1) this.#plot.setSize({ width, height: this.#options.height });
  }

  #build() {
    const width = this.#parent.clientWidth;
    if (!width) return;
    this.#plot?.destroy();
    const [muted, line] = [colourOf('--muted'), colourOf('--line')];
    const narrow = width < NARROW_PX;
    const axis = (extra) => ({ stroke: muted, font: FONT, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1, size: 4 }, ...extra });
    this.#plot = new uPlot(
      {
        width,
        height: this.#options.height,
        padding: [this.#marks.length || this.#options.onMark ? MARK_PX * 2 + 6 : 8, (narrow ? 4 : 8) + (this.#options.aligned ? (narrow ? 44 : AXIS_PX) : 0), 0, 0],
        cursor: { y: false, points: { size: 7 } },
        legend: { show: false },
        scales: { x: { time: true, range: (_, low, high) => [Math.min(low, high - SPAN_SECONDS_MIN), high] }, ...Object.fromEntries(this.#series.map(({ label }) => [label, { range: (_, low, high) => [0, high > 0 ? high * 1.08 : 1] }])) },
        axes: [axis({ space: 72, size: 26, values: (_, ticks) => ticks.map(clock) }), ...this.#series.filter(({ side }) => side).map(({ label, colour, side }, at) =>
          axis({ scale: label, side: side === 'left' ? 3 : 1, size: narrow ? 44 : AXIS_PX, stroke: colourOf(colour), grid: { show: at === 0, stroke: line, width: 1 }, values: (_, ticks) => ticks.map(brief) }))],
        series: [{}, ...this.#series.map((one) => ({
          label: one.label,
          scale: one.label,
          stroke: colourOf(one.colour),
          width: 2,
          fill: one.filled ? faded(colourOf(one.colour), 0.14) : undefined,
          paths: one.stepped ? uPlot.paths.stepped({ align: -1 }) /* a sample tells of the time before it */ : undefined,
          points: { show: false },
        }))],
        hooks: { draw: [(plot) => this.#drawMarks(plot)], setCursor: [() => this.#tell()] },
      },
      this.#data,
      this.#parent,
    );
    this.#plot.over.addEventListener('mousemove', (event) => this.#hover(event.offsetX));
    this.#plot.over.addEventListener('mouseleave', () => this.#options.onMark?.(-1));
    this.#tell();
  }

  #hover(x) {
    if (!this.#options.onMark) return;
    const near = this.#marks.map(({ at }, index) => [Math.abs(this.#plot.valToPos(at, 'x') - x), index]).filter(([far]) => far < MARK_PX * 1.5);
    this.#options.onMark(near.length ? near.reduce((best, one) => (one[0] < best[0] ? one : best))[1] : -1);
  }

  /** Draws a line at each moment with a sign above it; those that would lie on each other share one. */
  #drawMarks(plot) {
    const { ctx, bbox } = plot;
    const ratio = devicePixelRatio;
    const [plain, strong, ground] = [colourOf('--warn'), colourOf('--accent'), colourOf('--surface')];
    let free = -Infinity;
    ctx.save();
    ctx.font = `${10 * ratio}px system-ui, sans-serif`;
    ctx.textAlign = 'center';
    ctx.textBaseline = 'middle';
    const order = this.#marks.map((_, index) => index).filter((index) => index !== this.#pointed);
    if (this.#marks[this.#pointed]) order.push(this.#pointed);
    for (const index of order) {
      const x = Math.round(plot.valToPos(this.#marks[index].at, 'x', true));
      if (!(x >= bbox.left && x <= bbox.left + bbox.width)) continue;
      const pointed = index === this.#pointed;
      ctx.strokeStyle = ctx.fillStyle = pointed ? strong : plain;
      ctx.globalAlpha = pointed ? 1 : 0.55;
      ctx.lineWidth = (pointed ? 2 : 1) * ratio;
      ctx.setLineDash(pointed ? [] : [3 * ratio, 3 * ratio]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      if (!pointed && x < free) continue;
      free = x + MARK_PX * 2.2 * ratio;
      ctx.globalAlpha = 1;
      ctx.beginPath();
      ctx.arc(x, bbox.top - (MARK_PX + 3) * ratio, MARK_PX * ratio, 0, 2 * Math.PI);
      ctx.fill();
      ctx.fillStyle = ground;
      ctx.fillText(this.#marks[index].text, x, bbox.top - (MARK_PX + 2.5) * ratio);
    }
    ctx.restore();
  }
}
