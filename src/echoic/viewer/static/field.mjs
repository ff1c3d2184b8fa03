// A field of numbers as colours. What is looked at is a rectangle (extent.mjs), and the rectangle is the parameter
// block of code inside the source: who zooms in has the source cut out less, and send less. So the page never has more
// than it shows, and a hand that moves is answered twice: at once with what is here, stretched to where it belongs,
// and a moment later with what the source sends for it.

import { FieldCanvas } from './field_canvas.mjs';
import { make, mark, put } from './elements.mjs';
import { Extent } from './extent.mjs';
import { steer } from './field_steering.mjs';
import { count, figure } from './quantities.mjs';

const COLUMNS_MAX = 400;
const ROWS_MAX = 200;
const RANGE_SLOWNESS = 0.02;

export function show(place, stage) {
  const field = new FieldView(place, stage);
  return { stop: () => field.stop(), pause: (paused) => field.pause(paused) };
}

class FieldView {
  #watch = null;
  #frame = 0;
  #paused = false;
  #range = null; // [low, high] of the colours
  #held = false;

  constructor(place, stage) {
    Object.assign(this, { place, stage, extent: null, window: null });
    this.planes = stage.description.fields.filter((field) => field.plane);
    this.picture = new FieldCanvas();
    this.readout = make('span', { class: 'number', role: 'status' });
    this.told = make('span', { class: 'number muted' });
    place.append(this.picture.element, make('div', { class: 'field-foot' }, this.told, this.readout));
    this.#tools();
    this.#stopSteering = steer(this.picture.canvas, this);
    this.#observer.observe(this.picture.element);
    window.addEventListener('themechange', this.#redraw);
    this.#begin(this.planes[0]);
  }

  #stopSteering;
  #redraw = () => this.#soon();
  #observer = new ResizeObserver(() => this.#soon());

  stop() {
    cancelAnimationFrame(this.#frame);
    this.#observer.disconnect();
    this.#stopSteering();
    window.removeEventListener('themechange', this.#redraw);
    this.place.removeAttribute('data-window');
  }

  pause(paused) {
    this.#paused = paused;
  }

  /** The rectangle was changed by a hand: shown at once, and told to the source. */
  moved() {
    mark(this.place, 'data-window', this.extent.text);
    this.#watch?.tune(this.extent.values);
    this.#tell();
    this.#soon();
  }

  /** What lies under a place of the picture: (0, 0) top left, (1, 1) bottom right; null for nothing. */
  point(at) {
    this.pointed = at;
    const { window: shown, extent } = this;
    if (!at || !shown) return void put(this.readout, '');
    const [row, column] = [
      Math.floor(extent.top + at.down * extent.height),
      Math.floor(extent.left + at.right * extent.width),
    ];
    const [y, x] = [
      Math.floor((row - shown.top) / shown.row_step),
      Math.floor((column - shown.left) / shown.column_step),
    ];
    const inside = y >= 0 && x >= 0 && y < shown.rows && x < shown.columns;
    put(this.readout, inside ? `row ${row}, column ${column}: ${figure(shown.cells[y * shown.columns + x])}` : '');
  }

  #tools() {
    const button = (text, label, act) =>
      make('button', { type: 'button', text, 'aria-label': label, title: label, on: { click: act } });
    const zoom = (factor) => () => this.extent && (this.extent.zoom(factor), this.moved());
    const hold = make('button', {
      type: 'button',
      text: 'Hold range',
      title: 'Keep the range of values as it is',
      'aria-pressed': 'false',
    });
    hold.addEventListener('click', () => mark(hold, 'aria-pressed', String((this.#held = !this.#held))));
    const smooth = make('button', {
      type: 'button',
      text: 'Smooth',
      title: 'Blend between cells',
      'aria-pressed': 'false',
    });
    this.smooth = smooth;
    smooth.addEventListener('click', () => {
      mark(smooth, 'aria-pressed', String((this.picture.smooth = !this.picture.smooth)));
      this.#soon();
    });
    const choice = make(
      'select',
      { 'aria-label': 'Field' },
      this.planes.map(({ path }) => make('option', { value: path, text: path })),
    );
    choice.addEventListener('change', () => this.#begin(this.planes[choice.selectedIndex]));
    const reset = () => this.extent && (this.extent.reset(), this.moved());
    this.stage.tools.append(
      ...(this.planes.length > 1 ? [choice] : []),
      smooth,
      hold,
      make(
        'div',
        { class: 'segments', role: 'group', 'aria-label': 'Zoom' },
        button('−', 'Zoom out (-)', zoom(1.5)),
        button('+', 'Zoom in (+)', zoom(1 / 1.5)),
        button('All', 'Show all of it (0)', reset),
      ),
    );
  }

  #begin(plane) {
    this.plane = plane;
    this.extent = this.window = this.#range = null;
    this.picture.canvas.setAttribute(
      'aria-label',
      `${plane.path} as colours. Arrow keys move, plus and minus zoom, 0 shows all of it.`,
    );
    const [rows, columns] = plane.shape.length === 1 ? [1, plane.shape[0]] : plane.shape;
    this.smooth.hidden = rows === 1;
    if (rows > 0 && columns > 0) this.#measure(rows, columns);
    const view = { type: 'Field', field: plane.path, columns: COLUMNS_MAX, rows: ROWS_MAX };
    this.#watch = this.stage.watch(view, { batch: (batch) => this.plane === plane && this.#take(batch) });
  }

  #measure(rows, columns) {
    this.extent = new Extent(rows, columns);
    mark(this.place, 'data-window', this.extent.text);
  }

  // Only the last of a batch is drawn: the others are past.
  #take(batch) {
    if (!batch.count || this.#paused) return;
    const shown = {};
    for (const name of [
      'top',
      'left',
      'height',
      'width',
      'row_step',
      'column_step',
      'rows',
      'columns',
      'low',
      'high',
    ]) {
      shown[name] = batch.column(name)[batch.count - 1];
    }
    shown.cells = batch.array(batch.count - 1, 'cells');
    if (!this.extent || (this.extent.all && shown.top + shown.left === 0)) this.#grow(shown);
    this.window = shown;
    this.#colour(shown);
    this.picture.take(shown, this.#range);
    this.#tell();
    this.point(this.pointed);
    this.#soon();
  }

  // How long an array is that each event sizes anew is known when it comes.
  #grow({ height, width }) {
    if (this.extent && this.plane.shape.every((size) => size > 0)) return;
    if (this.extent?.rows !== height || this.extent?.columns !== width) this.#measure(height, width);
  }

  // The range of colours opens at once and closes slowly: colours mean the same from picture to picture.
  #colour({ low, high }) {
    if (!Number.isFinite(low) || !Number.isFinite(high)) return;
    if (!this.#range) this.#range = [low, high];
    if (this.#held) return;
    const [from, to] = this.#range;
    this.#range = [
      Math.min(low, from + (low - from) * RANGE_SLOWNESS),
      Math.max(high, to + (high - to) * RANGE_SLOWNESS),
    ];
  }

  #tell() {
    const { window: shown, extent } = this;
    if (!shown || !extent) return;
    const { top, left, height, width } = extent.values;
    const [down, across] = [`rows ${top}–${top + height - 1}, columns`, `${left}–${left + width - 1}`];
    const place = extent.all ? 'all' : `${extent.rows === 1 ? 'elements' : down} ${across}`;
    const [total, sent] = [extent.rows * extent.columns, count(shown.rows * shown.columns)];
    const size = extent.rows === 1 ? count(extent.columns) : `${extent.rows} × ${extent.columns}`;
    put(this.told, `${place} of ${size}; ${sent} of ${count(total)} cells sent`);
  }

  #soon() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      if (!this.extent || !this.window || !this.#range) return;
      this.picture.draw(this.extent, this.#range);
      this.stage.drew();
    });
  }
}
