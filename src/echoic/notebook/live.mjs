// The picture of a live view: a chart, a heat map, or the last events. Loaded by anywidget; asks nobody for anything.
//
// What arrives is described in feed.py. Nothing of it becomes HTML: texts are put by textContent, numbers are drawn.
// Drawing is done at most once for each picture of the screen, and not at all while nobody can see it.

const SERIES = ["#3b82c4", "#d9772b", "#3f9b5a", "#b8479c", "#8a6fc9", "#a08a1c"];
const HEIGHT = 240;
const POINTS_MAX = 60000;
const MARGIN = { left: 56, right: 12, top: 10, bottom: 22 };
// Nine colours of viridis, between which others are mixed.
const COLOURS = [
  [68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137], [53, 183, 121],
  [143, 215, 68], [253, 231, 37],
];
const PALETTE = palette();

function palette() {
  const made = new Uint32Array(256);
  for (let at = 0; at < 256; at++) {
    const place = (at / 255) * (COLOURS.length - 1);
    const low = COLOURS[Math.floor(place)], high = COLOURS[Math.min(Math.floor(place) + 1, COLOURS.length - 1)];
    const [red, green, blue] = low.map((value, part) => Math.round(value + (high[part] - value) * (place % 1)));
    made[at] = (255 << 24) | (blue << 16) | (green << 8) | red;
  }
  return made;
}

function element(tag, styles, text = "") {
  const made = document.createElement(tag);
  Object.assign(made.style, styles);
  made.textContent = text;
  return made;
}

// A buffer of the comm lies anywhere in a message; typed arrays want theirs aligned, so it is copied.
function numbers(buffer, kind) {
  const [bytes, start, length] = buffer instanceof ArrayBuffer
    ? [buffer, 0, buffer.byteLength] : [buffer.buffer, buffer.byteOffset, buffer.byteLength];
  const whole = length - (length % kind.BYTES_PER_ELEMENT);
  return new kind(bytes.slice(start, start + whole));
}

function short(value) {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  return size !== 0 && (size >= 1e6 || size < 1e-3) ? value.toExponential(2) : String(Number(value.toPrecision(5)));
}

function ticks(low, high, most) {
  const rough = (high - low) / Math.max(most, 1), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough) ?? rough;
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high && found.length < 20; at += step) found.push(at);
  return found;
}

class Chart {
  constructor(fields, seconds) {
    this.fields = fields;
    this.seconds = seconds;
    this.times = [];
    this.rows = [];
  }

  take(content, buffers) {
    const times = numbers(buffers[0], Float64Array), values = numbers(buffers[1], Float64Array);
    const stride = 1 + 3 * this.fields.length;
    for (let at = 0; at < times.length && (at + 1) * stride <= values.length; at++) {
      this.times.push(times[at]);
      this.rows.push(values.subarray(at * stride + 1, (at + 1) * stride));
    }
    const end = this.times.at(-1) ?? 0;
    let first = Math.max(this.times.length - POINTS_MAX, 0);
    while (first < this.times.length && this.times[first] < end - this.seconds) first++;
    if (first > 0) {
      this.times.splice(0, first);
      this.rows.splice(0, first);
    }
  }

  describe() {
    const last = this.rows.at(-1);
    return this.fields.map((name, at) => (last ? `${name} ${short(last[3 * at + 2])}` : name));
  }

  draw(pen, width, height, ink) {
    const end = this.times.at(-1) ?? this.seconds, start = end - this.seconds;
    const [low, high] = this.range();
    const x = (time) => MARGIN.left + ((time - start) / this.seconds) * (width - MARGIN.left - MARGIN.right);
    const y = (value) => height - MARGIN.bottom - ((value - low) / (high - low)) * (height - MARGIN.top - MARGIN.bottom);
    grid(pen, width, height, ink, low, high, y);
    for (const back of ticks(0, this.seconds, 6)) {
      pen.fillText(back === 0 ? "0 s" : `-${short(back)} s`, x(end - back), height - MARGIN.bottom + 14);
    }
    this.fields.forEach((_, at) => this.line(pen, at, x, y));
  }

  range() {
    let low = Infinity, high = -Infinity;
    for (const row of this.rows) {
      for (let at = 0; at < row.length; at += 3) {
        if (row[at] < low) low = row[at];
        if (row[at + 1] > high) high = row[at + 1];
      }
    }
    if (!(low <= high) || !Number.isFinite(high - low)) return [0, 1];
    const room = (high - low) * 0.05 || Math.abs(high) * 0.05 || 1;
    return [low - room, high + room];
  }

  // A point stands for many events: a band from the least to the greatest of them, and a line through the last.
  line(pen, at, x, y) {
    const { times, rows } = this, count = times.length;
    pen.fillStyle = pen.strokeStyle = SERIES[at % SERIES.length];
    pen.beginPath();
    for (let n = 0; n < count; n++) pen.lineTo(x(times[n]), y(rows[n][3 * at + 1]));
    for (let n = count - 1; n >= 0; n--) pen.lineTo(x(times[n]), y(rows[n][3 * at]));
    pen.globalAlpha = 0.25;
    pen.fill();
    pen.globalAlpha = 1;
    pen.lineWidth = 1.5;
    pen.beginPath();
    for (let n = 0; n < count; n++) pen.lineTo(x(times[n]), y(rows[n][3 * at + 2]));
    pen.stroke();
  }
}

class Field {
  constructor(fields) {
    this.name = fields[0];
    this.window = null;
    this.cells = new Float32Array(0);
  }

  take(content, buffers) {
    const cells = numbers(buffers[0], Float32Array);
    if (cells.length < content.rows * content.columns) return;
    this.window = content;
    this.cells = cells;
  }

  describe() {
    const seen = this.window;
    return seen ? [`${this.name} ${seen.height} x ${seen.width}, ${short(seen.low)} to ${short(seen.high)}`] : [this.name];
  }

  draw(pen, width, height, ink) {
    const seen = this.window;
    if (!seen || !seen.rows || !seen.columns) return;
    if (seen.rows === 1) this.profile(pen, width, height, ink);
    else this.heat(pen, width, height);
  }

  heat(pen, width, height) {
    const { rows, columns, low, high } = this.window, scale = 255 / (high - low || 1);
    const picture = new ImageData(columns, rows), pixels = new Uint32Array(picture.data.buffer);
    for (let at = 0; at < pixels.length; at++) {
      const value = this.cells[at];
      pixels[at] = value === value ? PALETTE[Math.max(0, Math.min(255, ((value - low) * scale) | 0))] : 0;
    }
    const small = new OffscreenCanvas(columns, rows);
    small.getContext("2d").putImageData(picture, 0, 0);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(small, 0, 0, width, height);
  }

  profile(pen, width, height, ink) {
    const { columns, low, high } = this.window, room = (high - low) * 0.05 || 1;
    const bottom = low - room, top = high + room;
    const x = (at) => MARGIN.left + (at / Math.max(columns - 1, 1)) * (width - MARGIN.left - MARGIN.right);
    const y = (value) => height - MARGIN.bottom - ((value - bottom) / (top - bottom)) * (height - MARGIN.top - MARGIN.bottom);
    grid(pen, width, height, ink, bottom, top, y);
    pen.strokeStyle = SERIES[0];
    pen.lineWidth = 1.5;
    pen.beginPath();
    for (let at = 0; at < columns; at++) pen.lineTo(x(at), y(this.cells[at]));
    pen.stroke();
  }
}

function grid(pen, width, height, ink, low, high, y) {
  pen.font = "11px system-ui, sans-serif";
  pen.fillStyle = pen.strokeStyle = ink;
  pen.textBaseline = "middle";
  pen.lineWidth = 1;
  pen.textAlign = "right";
  for (const value of ticks(low, high, 5)) {
    pen.globalAlpha = 0.15;
    pen.strokeRect(MARGIN.left, Math.round(y(value)) + 0.5, width - MARGIN.left - MARGIN.right, 0);
    pen.globalAlpha = 0.8;
    pen.fillText(short(value), MARGIN.left - 6, y(value));
  }
  pen.globalAlpha = 0.8;
  pen.textAlign = "center";
}

// The last events as a table; the newest is at the top.
class Events {
  constructor(table) {
    this.table = table;
  }

  take(content) {
    const line = (cells, tag) => {
      const row = document.createElement("tr");
      row.append(...cells.map((text) => element(tag, { textAlign: "left", padding: "2px 10px 2px 0" }, text)));
      return row;
    };
    this.table.replaceChildren(line(content.head, "th"), ...content.rows.toReversed().map((row) => line(row, "td")));
  }
}

function legend(place, texts) {
  while (place.children.length < texts.length) place.append(element("span", { marginRight: "14px" }));
  texts.forEach((text, at) => {
    place.children[at].textContent = text;
    place.children[at].style.color = SERIES[at % SERIES.length];
  });
}

function render({ model, el }) {
  const kind = model.get("kind"), fields = model.get("fields");
  const box = element("div", { font: "13px system-ui, sans-serif", maxWidth: "100%" });
  const names = element("div", { margin: "2px 0", fontVariantNumeric: "tabular-nums" });
  const status = element("div", { opacity: "0.7", fontSize: "12px" }, "waiting for events");
  const canvas = element(kind === "events" ? "table" : "canvas", kind === "events" ? {} : { width: "100%", height: `${HEIGHT}px` });
  const picture = kind === "chart" ? new Chart(fields, model.get("seconds"))
    : kind === "field" ? new Field(fields) : new Events(canvas);
  if (kind !== "events") {
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `live ${kind} of ${model.get("channel")}`);
  }
  box.append(names, canvas, status);
  el.append(box);

  const view = crypto.randomUUID?.() ?? String(Math.random());
  let asked = 0, inSight = true, told = null;

  const draw = () => {
    asked = 0;
    const width = canvas.clientWidth, height = HEIGHT, fine = window.devicePixelRatio || 1;
    if (!width) return;
    canvas.width = Math.round(width * fine);
    canvas.height = Math.round(height * fine);
    const pen = canvas.getContext("2d");
    pen.scale(fine, fine);
    picture.draw(pen, width, height, getComputedStyle(box).color);
    legend(names, picture.describe());
  };
  const ask = () => {
    if (!asked && kind !== "events") asked = requestAnimationFrame(draw);
  };
  const tell = () => {
    const seen = inSight && !document.hidden;
    if (seen !== told) model.send({ type: "seen", view, seen: (told = seen) });
  };
  const hear = (content, buffers) => {
    if (content.type === "status") {
      if (content.text) status.textContent = content.text;
      return;
    }
    picture.take(content, buffers ?? []);
    ask();
  };
  const end = () => {
    if (model.get("ended")) status.textContent = `stopped. ${status.textContent}`;
  };

  const sight = new IntersectionObserver((entries) => {
    inSight = entries.at(-1).isIntersecting;
    tell();
  });
  const size = new ResizeObserver(ask);
  sight.observe(box);
  size.observe(box);
  document.addEventListener("visibilitychange", tell);
  model.on("msg:custom", hear);
  model.on("change:ended", end);
  end();
  tell();

  return () => {
    model.send({ type: "seen", view, seen: false });
    model.off("msg:custom", hear);
    model.off("change:ended", end);
    document.removeEventListener("visibilitychange", tell);
    sight.disconnect();
    size.disconnect();
    cancelAnimationFrame(asked);
  };
}

export default { render };
