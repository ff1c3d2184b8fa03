// What a chart remembers: for each line the least, the greatest and the last value, by time, in a ring.
//
// Points that come within BUCKET seconds become one bucket with their envelope, so five minutes at any rate are at
// most 60,000 buckets; below 200 points a second nothing is merged. A picture has a thousand columns, hence `columns`
// merges buckets once more, by times that are multiples of a width: a bucket is the same in every picture, nothing
// shimmers.

export const SECONDS_MAX = 300;
const BUCKET = 0.005;
const CAPACITY = 1 << 16;
const MASK = CAPACITY - 1;
const [LEAST, MOST, LAST] = [0, 1, 2];
const [GAP_LEAST, GAP_TIMES] = [1, 8];
export const PARTS = 3;

export class Series {
  #times = new Float64Array(CAPACITY);
  #parts; // least, most and last of each line
  #first = 0; // buckets from #first to #end are there; where a bucket lies is its number modulo the capacity
  #end = 0;
  #key = NaN; // which BUCKET seconds the last bucket stands for
  #shown = [];

  constructor(lines) {
    this.lines = lines;
    this.#parts = Array.from({ length: PARTS * lines }, () => new Float64Array(CAPACITY));
  }

  /** When the last point came. */
  get latest() {
    return this.#end > this.#first ? this.#times[(this.#end - 1) & MASK] : NaN;
  }

  /** When the first point came that is still there. */
  get earliest() {
    return this.#end > this.#first ? this.#times[this.#first & MASK] : NaN;
  }

  /** Adds `count` points that lie evenly after `begin` until `end`: columns[3 n + (0 least, 1 most, 2 last)]. */
  add(begin, end, count, columns) {
    for (let i = 0; i < count; i++) {
      const time = begin + ((end - begin) * (i + 1)) / count;
      const key = Math.floor(time / BUCKET);
      if (key === this.#key) this.#merge(columns, i);
      else this.#append(key, time, columns, i);
    }
  }

  #append(key, time, columns, i) {
    this.#key = key;
    const at = this.#end++ & MASK;
    if (this.#end - this.#first > CAPACITY) this.#first++;
    this.#times[at] = time;
    for (let part = 0; part < this.#parts.length; part++) this.#parts[part][at] = columns[part][i];
  }

  #merge(columns, i) {
    const at = (this.#end - 1) & MASK;
    for (let part = 0; part < this.#parts.length; part += PARTS) {
      const [least, most] = [columns[part + LEAST][i], columns[part + MOST][i]];
      if (least < this.#parts[part + LEAST][at]) this.#parts[part + LEAST][at] = least;
      if (most > this.#parts[part + MOST][at]) this.#parts[part + MOST][at] = most;
      this.#parts[part + LAST][at] = columns[part + LAST][i];
    }
  }

  /** What to draw from `begin` to `end` with buckets of `width` seconds: [times, least, most, last, least, ...]. */
  columns(begin, end, width) {
    const start = this.#find(begin - width);
    const stop = this.#find(end);
    const shown = this.#room(stop - start);
    const [times, parts] = [this.#times, this.#parts];
    let [length, former] = [0, NaN];
    for (let bucket = start; bucket < stop; bucket++) {
      const at = bucket & MASK;
      const key = width > BUCKET ? Math.floor(times[at] / width) : bucket;
      if (key !== former) {
        former = key;
        shown[0][length] = times[at];
        for (let part = 0; part < parts.length; part++) shown[part + 1][length] = parts[part][at];
        length++;
        continue;
      }
      const into = length - 1;
      for (let part = 0; part < parts.length; part += PARTS) {
        if (parts[part][at] < shown[part + 1][into]) shown[part + 1][into] = parts[part][at];
        if (parts[part + MOST][at] > shown[part + 2][into]) shown[part + 2][into] = parts[part + MOST][at];
        shown[part + 3][into] = parts[part + LAST][at];
      }
    }
    return shown.map((column) => column.subarray(0, length));
  }

  // The first bucket at or after a time, by halving.
  #find(time) {
    let [low, high] = [this.#first, this.#end];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#times[middle & MASK] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #room(length) {
    if (!this.#shown.length || this.#shown[0].length < length) {
      const size = Math.min(CAPACITY, Math.max(2048, 2 * length));
      this.#shown = Array.from({ length: 1 + this.#parts.length }, () => new Float64Array(size));
    }
    return this.#shown;
  }
}

/** How long nothing may come until that is a gap: many times what is usual between points, and never just a hiccup. */
export function gapOf(times) {
  const between = times.slice(1).map((time, i) => time - times[i]).sort();
  return Math.max(GAP_LEAST, GAP_TIMES * (between[between.length >> 1] ?? 0));
}

/** When points came that nobody stamped: a batch covers the time since the one before, if that is not too long ago. */
export class Clock {
  #last = NaN;

  /** The [begin, end] of a batch of `count` points that is here at `now`. */
  span(now, count) {
    const idle = Number.isNaN(this.#last) ? 0.1 : now - this.#last;
    const begin = count > 1 ? now - Math.min(idle, 0.5) : Math.max(this.#last || 0, now - 1e-3);
    this.#last = now;
    return [begin, now];
  }
}
