// Draws a field: cells as colours, the numbers of rows and columns beside it, and a bar that says what a colour means.
//
// A field of one row is a curve instead: colours would make much of little.
//
// Cells are painted into a small image, one pixel each, which the canvas stretches to where the cells lie in the
// rectangle that is looked at; the two differ while the source has not answered a hand yet.

import { paint, SCALE, STEPS } from './colours.mjs';
import { make } from './elements.mjs';
import { figure } from './quantities.mjs';
import { colourOf } from './theme.mjs';

const MARGIN = { left: 48, right: 80, top: 8, bottom: 36 };
const [FLATTEST, STEEPEST] = [2.3, 1.1];
const [BAR_WIDTH, BAR_GAP, BAR_TICKS] = [12, 14, 5];
const HEIGHT_LEAST = 180; // on a phone, where a flat picture shows nothing
const ROOM = 0.08;
const LABEL_SPACE = 64;
const FONT = '11.5px system-ui, sans-serif';

export class FieldCanvas {
  smooth = false;
  #image = null;
  #cells = make('canvas');
  #shown = null;
  #bar = null;

  constructor() {
    this.canvas = make('canvas', { class: 'field', tabindex: 0, role: 'application' });
    this.element = make('div', { class: 'field-frame' }, this.canvas);
  }

  /** Where the cells lie in the canvas, in the page's pixels. */
  get area() {
    const { clientWidth, clientHeight } = this.canvas;
    return {
      x: MARGIN.left,
      y: MARGIN.top,
      width: clientWidth - MARGIN.left - MARGIN.right,
      height: clientHeight - MARGIN.top - MARGIN.bottom,
    };
  }

  /** Takes the cells that a source has sent. */
  take(shown, range) {
    const { rows, columns } = shown;
    if (this.#image?.width !== columns || this.#image?.height !== rows) {
      [this.#cells.width, this.#cells.height] = [columns, rows];
      this.#image = new ImageData(columns, rows);
    }
    paint(shown.cells, ...(range ?? [shown.low, shown.high]), this.#image);
    this.#cells.getContext('2d').putImageData(this.#image, 0, 0);
    this.#shown = shown;
  }

  draw(extent, range) {
    const context = this.#fit(extent);
    const { x, y, width, height } = this.area;
    if (extent.rows === 1) return this.#curve(context, extent, range);
    const { top, left, row_step, column_step, rows, columns } = this.#shown;
    const [across, down] = [width / extent.width, height / extent.height];
    context.save();
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
    context.imageSmoothingEnabled = this.smooth;
    context.imageSmoothingQuality = 'high';
    context.drawImage(
      this.#cells,
      x + (left - extent.left) * across,
      y + (top - extent.top) * down,
      columns * column_step * across,
      rows * row_step * down,
    );
    context.restore();
    this.#label(context, extent);
    this.#scale(context, range);
  }

  // The canvas has as many pixels as the screen; its height follows the shape of the field, within reason.
  #fit(extent) {
    const { canvas } = this;
    const width = this.element.clientWidth;
    const shape = Math.min(FLATTEST, Math.max(STEEPEST, extent.columns / extent.rows));
    const across = width - MARGIN.left - MARGIN.right;
    const [least, most] = [Math.min(HEIGHT_LEAST, across), Math.max(200, window.innerHeight * 0.55)];
    const height =
      extent.rows === 1
        ? Math.min(most, 300)
        : Math.round(Math.min(most, Math.max(least, across / shape)) + MARGIN.top + MARGIN.bottom);
    const ratio = window.devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== wide || canvas.height !== high) {
      [canvas.width, canvas.height] = [wide, high];
      canvas.style.height = `${height}px`;
    }
    const context = canvas.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = FONT;
    context.fillStyle = colourOf('--muted');
    context.strokeStyle = colourOf('--line');
    return context;
  }

  #curve(context, extent, [low, high]) {
    const { x, y, width, height } = this.area;
    const { left, column_step: step, columns, cells } = this.#shown;
    const [foot, span] = [low - ROOM * (high - low || 1), (1 + 2 * ROOM) * (high - low || 1)];
    const path = new Path2D();
    for (let i = 0; i < columns; i++) {
      path.lineTo(
        x + ((left + (i + 0.5) * step - extent.left) / extent.width) * width,
        y + height * (1 - (cells[i] - foot) / span),
      );
    }
    this.#label(context, extent);
    context.save();
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
    context.strokeStyle = colourOf('--series-1');
    context.lineWidth = 1.75;
    context.stroke(path);
    context.restore();
    context.textAlign = 'left';
    context.textBaseline = 'middle';
    for (const share of [0, 0.5, 1]) {
      const value = low + (high - low) * share;
      context.fillText(figure(Number(value.toPrecision(3))), x + width + 8, y + height * (1 - (value - foot) / span));
    }
  }

  #label(context, extent) {
    const { x, y, width, height } = this.area;
    context.strokeRect(x - 0.5, y - 0.5, width + 1, height + 1);
    context.textAlign = 'center';
    context.textBaseline = 'top';
    for (const column of ticks(extent.left, extent.width, width / LABEL_SPACE)) {
      context.fillText(column, x + ((column + 0.5 - extent.left) / extent.width) * width, y + height + 6);
    }
    context.textBaseline = 'bottom';
    context.fillText(extent.rows === 1 ? 'index' : 'column', x + width / 2, y + height + MARGIN.bottom);
    if (extent.rows === 1) return;
    context.save();
    context.translate(0, y + height / 2);
    context.rotate(-Math.PI / 2);
    context.textBaseline = 'top';
    context.fillText('row', 0, 1);
    context.restore();
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    for (const row of ticks(extent.top, extent.height, height / (LABEL_SPACE / 2))) {
      context.fillText(row, x - 7, y + ((row + 0.5 - extent.top) / extent.height) * height);
    }
  }

  #scale(context, [low, high]) {
    const { x, y, width, height } = this.area;
    const left = x + width + BAR_GAP;
    context.drawImage(this.#barImage(), left, y, BAR_WIDTH, height);
    context.strokeRect(left - 0.5, y - 0.5, BAR_WIDTH + 1, height + 1);
    context.textAlign = 'left';
    const marks = Math.max(2, Math.min(BAR_TICKS, Math.round(height / 40)));
    for (let i = 0; i < marks; i++) {
      const share = i / (marks - 1);
      context.textBaseline = i === 0 ? 'bottom' : i === marks - 1 ? 'top' : 'middle';
      context.fillText(
        figure(Number((low + (high - low) * share).toPrecision(3))),
        left + BAR_WIDTH + 6,
        y + height * (1 - share),
      );
    }
  }

  #barImage() {
    if (this.#bar) return this.#bar;
    this.#bar = make('canvas', { width: 1, height: STEPS });
    const context = this.#bar.getContext('2d');
    SCALE.forEach(([red, green, blue], i) => {
      context.fillStyle = `rgb(${red} ${green} ${blue})`;
      context.fillRect(0, STEPS - 1 - i, 1, 1);
    });
    return this.#bar;
  }
}

/** Round numbers between `from` and `from + size`, about `most` of them. */
function ticks(from, size, most) {
  const rough = size / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = Math.max(1, [1, 2, 5, 10].find((each) => each * power >= rough) * power);
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= from + size - 1; at += step) found.push(at);
  return found;
}
