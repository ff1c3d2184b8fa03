// How much, how often and how long, as people read it. Widths stay steady while a number changes: fixed digits, and
// the stylesheet sets tabular figures, so that a column of rates does not dance.

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB', 'PB'];
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat('en', { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** 12345 -> 12,345 */
export const count = (number) => whole.format(Number(number));

/** Events a second: one digit behind the point while there are few. */
export const rate = (number) => (number === 0 ? '0' : number < 100 ? tenths.format(number) : whole.format(number));

/** 1240000 -> 1.24 MB: as `echoic top` writes it. */
export function bytesText(number) {
  let [amount, unit] = [Number(number), 0];
  while (Math.abs(amount) >= 1000 && unit < UNITS.length - 1) [amount, unit] = [amount / 1000, unit + 1];
  return `${unit === 0 ? amount.toFixed(0) : amount.toFixed(2)} ${UNITS[unit]}`;
}

/** 0.931 -> 93.1 %; nothing for nothing. */
export const percent = (share) => (share === null || share === undefined ? '–' : `${(100 * share).toFixed(1)} %`);

/** A value of an event, or of a parameter: six significant digits or more, no trailing zeros. */
export function figure(number) {
  if (typeof number === 'bigint') return String(number);
  if (!Number.isFinite(number)) return String(number);
  if (Number.isInteger(number) && Math.abs(number) < 1e15) return String(number);
  const size = Math.abs(number);
  if (size >= 1e6 && size < 1e15) return String(Number(number.toFixed(3))); // seconds since 1970, mostly
  return size >= 1e-4 && size < 1e6 ? String(Number(number.toPrecision(6))) : number.toExponential(3);
}

/** Nanoseconds: 830 ns, 12.4 µs, 3.1 ms, 1.2 s. */
export function duration(ns) {
  if (ns === null || ns === undefined) return '–';
  for (const [size, unit] of [
    [1e9, 's'],
    [1e6, 'ms'],
    [1e3, 'µs'],
  ])
    if (ns >= size) return `${(ns / size).toFixed(1)} ${unit}`;
  return `${ns.toFixed(0)} ns`;
}

/** "1 channel", "2 channels". */
export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? '' : 's'}`;
