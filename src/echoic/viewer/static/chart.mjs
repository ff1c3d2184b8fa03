// Lines over time. The source sends an envelope of each line (least, greatest, last of so many events), which is drawn
// as a band with the last value as a line in it, so that no peak is lost however few points come.
//
// It is drawn when something came, and never while nobody sees it. A short window slides evenly, a moment behind what
// came, so that points which arrive in batches do not make it jerk; when nothing comes any more, it stands still. It
// begins with the first point and grows until it is full. What came is kept for five minutes, paused or not. uPlot
// draws; this decides what, and how much of it (series.mjs).

import { make, mark, put } from './elements.mjs';
import { figure } from './quantities.mjs';
import { Clock, gapOf, PARTS, SECONDS_MAX, Series } from './series.mjs';
import { colourOf } from './theme.mjs';
import { axes, linesOf, ScaleKeeper } from './chart_parts.mjs';
import uPlot from './vendor/uplot/uPlot.esm.js';

const LINES_MAX = 6;
const LINES_FIRST = 2;
const WINDOWS = [
  [5, '5 s'],
  [15, '15 s'],
  [60, '1 min'],
  [SECONDS_MAX, '5 min'],
];
const DENSITIES = [
  [0, 'reduced'],
  [1, 'every event'],
];
const POINTS_A_SECOND = 100;
const COLUMN_PIXELS = 2;
const [SLIDING_SECONDS, BEHIND, FLOWING, DRAW_SECONDS] = [60, 0.05, 0.2, 1 / 25];
const SPAN_LEAST = 1;
const [DECIDE_SECONDS, FLAT] = [2, 0.1];
const TIMES = new Set(['at', 'time', 'timestamp', 'step', 'sequence']);
const lowest = (values) => values.reduce((least, value) => (value < least ? value : least), Infinity);
const highest = (values) => values.reduce((most, value) => (value > most ? value : most), -Infinity);
const now = () => (performance.timeOrigin + performance.now()) / 1000;

export function show(place, stage) {
  const chart = new Chart(place, stage);
  return { stop: () => chart.stop(), pause: (paused) => chart.pause(paused) };
}

// What is drawn unasked: fractions, which are measured things mostly; else integers that are no clocks or counters;
// else the middle of an array; else what there is.
function firstOf(fields) {
  const able = fields.filter((field) => field.series);
  const telling = able.filter(({ path }) => !TIMES.has(path));
  const fractions = telling.filter(({ kind }) => kind === 'number');
  const array = fields.find(({ plane, shape }) => plane && shape.every((size) => size > 0));
  if (!telling.length && array) return [array.path + array.shape.map((size) => `[${size >> 1}]`).join('')];
  const chosen = [fractions, telling, able].find((each) => each.length) ?? [];
  return chosen.slice(0, LINES_FIRST).map(({ path }) => path);
}

class Chart {
  #plot = null;
  #series = null;
  #clock = new Clock();
  #scales = new ScaleKeeper();
  #frame = 0;
  #paused = false;
  #until = now(); // where the picture ends
  #arrived = 0;
  #due = 0;
  #seconds = 15;
  #each = false; // whether each line has a scale of its own
  #wish = null; // whether somebody wants it so
  #unasked = true; // whether nobody has chosen a line yet
  #gap = Infinity;
  #every = 0;
  #watch = null;

  constructor(place, stage) {
    const able = stage.description.fields.filter((field) => field.series).map((field) => field.path);
    Object.assign(this, { stage, able, chosen: firstOf(stage.description.fields) });
    this.legend = make('div', { class: 'legend', role: 'group', 'aria-label': 'Lines' });
    this.canvas = make('div', { class: 'plot', role: 'img', 'aria-label': 'Chart of the chosen fields over time' });
    place.append(this.legend, this.canvas);
    this.#tools();
    this.#observer.observe(this.canvas);
    window.addEventListener('themechange', this.#rebuild);
    this.#begin();
  }

  #observer = new ResizeObserver(() => this.#resize());
  #rebuild = () => this.#build();

  stop() {
    cancelAnimationFrame(this.#frame);
    this.#observer.disconnect();
    window.removeEventListener('themechange', this.#rebuild);
    this.#plot?.destroy();
  }

  pause(paused) {
    this.#paused = paused;
    this.#soon();
  }

  #tools() {
    const segments = (label, choices, present, choose) => {
      const buttons = choices.map(([value, text]) =>
        make('button', {
          type: 'button',
          text,
          'aria-pressed': String(value === present),
          on: { click: () => pick(value) },
        }),
      );
      const pick = (value) => {
        choices.forEach(([each], i) => mark(buttons[i], 'aria-pressed', String(each === value)));
        choose(value);
      };
      return make('div', { class: 'segments', role: 'group', 'aria-label': label }, buttons);
    };
    this.own = make('button', {
      type: 'button',
      text: 'Own scales',
      title: 'Each line has a scale of its own',
      'aria-pressed': 'false',
      on: { click: () => this.#scale((this.#wish = !this.#each)) },
    });
    this.stage.tools.append(
      segments('Time', WINDOWS, this.#seconds, (seconds) => this.#look(seconds)),
      segments('Points', DENSITIES, 0, (every) => this.#dense(every)),
      this.own,
    );
  }

  #look(seconds) {
    this.#seconds = seconds;
    this.#soon();
  }

  #dense(every) {
    this.#every = every;
    this.#watch?.tune({ every });
  }

  #scale(each) {
    this.#each = each;
    mark(this.own, 'aria-pressed', String(each));
    this.#build();
  }

  // Another choice of lines is another code at the source: a watch of its own, and an empty memory.
  #begin() {
    this.lines = [...this.chosen].reverse(); // drawn last is on top: what was chosen first
    this.#series = new Series(this.lines.length);
    this.#clock = new Clock();
    this.names = Array.from(this.lines, (_, n) => ['min', 'max', 'last'].map((part) => `f${n}_${part}`)).flat();
    this.#undecided = this.lines.length > 1;
    this.own.hidden = !this.#undecided;
    this.#chips();
    this.#scale(this.#undecided && Boolean(this.#wish));
    if (!this.lines.length) return;
    const view = { type: 'Chart', fields: this.lines, points_per_second: POINTS_A_SECOND };
    const series = this.#series;
    this.#watch = this.stage.watch(view, { batch: (batch) => series === this.#series && this.#take(batch) });
    if (this.#every) this.#watch.tune({ every: this.#every });
  }

  #undecided = false;

  #take(batch) {
    if (!batch.count) return;
    this.#arrived = now();
    const [begin, end] = this.#clock.span(this.#arrived, batch.count);
    this.#series.add(
      begin,
      end,
      batch.count,
      this.names.map((name) => batch.column(name)),
    );
    if (!this.#paused) this.#soon();
  }

  #soon() {
    this.#frame ||= requestAnimationFrame(() => this.#pace());
  }

  // So many draws a second on average while it slides, whatever the screen's rate is: a draw is due a fixed time after
  // the one before it was, not after it was done, or each would wait for the next frame of the screen.
  #pace() {
    this.#frame = 0;
    const at = now();
    const sliding = !this.#paused && this.#seconds <= SLIDING_SECONDS && at - this.#arrived < FLOWING;
    const early = at < this.#due;
    if (!early) {
      this.#due = Math.max(this.#due + DRAW_SECONDS, at);
      this.#draw(at);
    }
    if (sliding || early) this.#soon();
  }

  #draw(at) {
    if (!this.#plot || !this.canvas.clientWidth || Number.isNaN(this.#series.latest)) return;
    if (!this.#paused) this.#until = this.#seconds <= SLIDING_SECONDS ? at - BEHIND : at;
    const end = this.#until;
    const span = Math.min(this.#seconds, Math.max(end - this.#series.earliest, SPAN_LEAST));
    const begin = end - span;
    const halves = Math.floor(Math.log2(this.#seconds / span)); // the same width for a while: nothing shimmers
    const width = (COLUMN_PIXELS * this.#seconds) / 2 ** halves / this.canvas.clientWidth;
    const data = this.#series.columns(begin, end, width);
    this.#gap = gapOf(data[0]);
    if (this.#undecided && data[0].length && this.#decide(data)) return;
    this.#plot.batch(() => {
      this.#plot.setData(data, false);
      this.#plot.setScale('x', { min: begin, max: end });
      this.#scales.fit(this.#plot, data, this.#each);
    });
    this.#tell(data, this.#plot.cursor.idx);
    this.stage.drew();
  }

  // Lines of quite different sizes would be flat on one scale, and a constant is not worth a line that nobody asked
  // for. It takes a while to know. Tells whether it has begun anew.
  #decide(data) {
    const spans = this.lines.map((_, n) => [lowest(data[PARTS * n + 1]), highest(data[PARTS * n + 2])]);
    const all = highest(spans.map(([, high]) => high)) - lowest(spans.map(([low]) => low));
    const flat = spans.map(([low, high]) => high - low < all * FLAT);
    if (this.#wish === null && !this.#each && flat.some(Boolean)) this.#scale(true);
    if (data[0].at(-1) - data[0][0] < DECIDE_SECONDS) return false;
    this.#undecided = false;
    const moving = this.lines.filter((_, n) => spans[n][1] > spans[n][0]);
    if (!this.#unasked || !moving.length || moving.length === this.lines.length) return false;
    this.chosen = this.chosen.filter((path) => moving.includes(path));
    this.#begin();
    return true;
  }

  #build() {
    this.#plot?.destroy();
    this.#plot = null;
    this.#scales = new ScaleKeeper();
    if (!this.lines.length) return;
    const colours = {
      lines: this.lines.map((path) => colourOf(this.#colour(path))),
      text: colourOf('--muted'),
      grid: colourOf('--line'),
    };
    const options = {
      width: Math.max(this.canvas.clientWidth, 100),
      height: this.#height(),
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
      scales: { x: { time: true, auto: false }, ...this.#scales.options(this.lines.length, this.#each) },
      series: [{}, ...linesOf(this.lines, colours, this.#each, () => this.#gap)],
      axes: axes(colours, this.lines.length, this.#each),
      padding: [12, this.#each ? 0 : 4, 0, 0],
      hooks: {
        setCursor: [() => this.#paused && this.#soon()],
        drawAxes: [(plot) => (plot.ctx.lineJoin = 'bevel')], // round ones take longer on a canvas without a GPU
      },
    };
    this.#plot = new uPlot(
      options,
      Array.from({ length: 1 + 3 * this.lines.length }, () => []),
      this.canvas,
    );
    this.#soon();
  }

  #height() {
    return Math.max(220, Math.min(420, Math.round(window.innerHeight * 0.44)));
  }

  #resize() {
    const width = this.canvas.clientWidth;
    if (!this.#plot || !width || width === this.#plot.width) return;
    this.#plot.setSize({ width, height: this.#height() });
    this.#soon();
  }

  #colour(path) {
    return `--series-${(this.order.indexOf(path) % LINES_MAX) + 1}`;
  }

  get order() {
    return [...this.chosen].sort((a, b) => this.able.indexOf(a) - this.able.indexOf(b));
  }

  // A chip for each field that can be a line: it is both the choice and the legend.
  #chips() {
    const extra = this.chosen.filter((path) => !this.able.includes(path));
    const chip = (path) => {
      const on = this.chosen.includes(path);
      const swatch = make('i', { 'aria-hidden': true });
      if (on) swatch.style.background = `var(${this.#colour(path)})`;
      return make(
        'button',
        {
          type: 'button',
          class: 'chip',
          'aria-pressed': String(on),
          'data-path': path,
          on: { click: () => this.#toggle(path) },
        },
        swatch,
        make('span', { text: path }),
        on ? make('b', { class: 'number' }) : null,
      );
    };
    const more = make('input', {
      class: 'path',
      placeholder: 'wind[3][4]',
      'aria-label': 'Add an element of an array',
      title: 'An element of an array: Enter adds it',
    });
    more.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || !more.value.trim()) return;
      event.preventDefault(); // or it would press the chip that has the focus then
      this.#toggle(more.value.trim());
    });
    const arrays = this.stage.description.fields.some((field) => field.shape.length && field.kind !== 'text');
    this.legend.replaceChildren(...[...this.able, ...extra].map(chip), ...(arrays ? [more] : []));
    this.values = new Map(
      [...this.legend.querySelectorAll('[aria-pressed=true]')].map((each) => [each.dataset.path, each.lastChild]),
    );
  }

  #toggle(path) {
    const on = this.chosen.includes(path);
    if (!on && this.chosen.length === LINES_MAX) return;
    this.#unasked = false;
    this.chosen = on ? this.chosen.filter((each) => each !== path) : [...this.chosen, path];
    this.#begin();
    this.legend.querySelector(`[data-path="${CSS.escape(path)}"]`)?.focus();
  }

  // The values under the cursor, or else the last ones; text is the slowest thing to change here, so four times a
  // second.
  #tell(data, index) {
    if (!this.#paused && performance.now() < this.#told + 250) return;
    this.#told = performance.now();
    const at = index ?? data[0].length - 1;
    if (at < 0) return;
    this.lines.forEach((path, n) => put(this.values.get(path), figure(data[3 * n + 3][at])));
  }

  #told = 0;
}
