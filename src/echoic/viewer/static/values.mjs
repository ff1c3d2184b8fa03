// Values of events as text. Whatever a stranger's event holds, it is told in one line of bounded length; control
// characters and marks that turn the direction of writing are shown as escapes, so that no text can pose as another.

import { CHAR, ENUMERATION } from './decoder.mjs';
import { figure } from './quantities.mjs';

const [ITEMS_MAX, TEXT_MAX, DEPTH_MAX] = [6, 200, 6];
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu;
const escaped = (sign) => `\\u{${sign.codePointAt(0).toString(16)}}`;
const cut = (text, most = TEXT_MAX) => (text.length > most ? `${text.slice(0, most)}…` : text);

/** A string in quotes, on one line. */
export const quoted = (text, most = TEXT_MAX) => `"${cut(text, most).replace(UNSEEN, escaped)}"`;

const hexOf = (bytes) =>
  Array.from(bytes.subarray(0, 24), (byte) => byte.toString(16).padStart(2, '0')).join(' ') +
  (bytes.length > 24 ? ` … ${bytes.length} bytes` : '');
const textOf = (bytes) => quoted(new TextDecoder().decode(bytes));

function named(value, { members }) {
  const found = members.find(([, each]) => each === BigInt(value));
  return found ? found[0] : String(value);
}

/** A value of `field` (a field of a format) in one line. */
export function shown(value, field, depth = 0) {
  if (value === null || value === undefined) return 'none';
  if (typeof value === 'string') return quoted(value);
  if (typeof value === 'boolean') return String(value);
  if (value instanceof Uint8Array) return field?.kind === CHAR ? textOf(value) : hexOf(value);
  if (field?.kind === ENUMERATION && !Array.isArray(value)) return named(value, field.enumeration);
  if (typeof value !== 'object') return figure(value);
  if (depth >= DEPTH_MAX) return '…';
  if (Array.isArray(value)) {
    const items = value.slice(0, ITEMS_MAX).map((item) => shown(item, field, depth + 1));
    return `[${items.join(', ')}${value.length > ITEMS_MAX ? `, … ${value.length} in all` : ''}]`;
  }
  const inner = new Map(field?.record?.fields.map((each) => [each.name, each]));
  return `{${Object.entries(value)
    .map(([name, item]) => `${name}: ${shown(item, inner.get(name), depth + 1)}`)
    .join(', ')}}`;
}

/** An event over several lines, to be read: {name, text, depth} each, at most `most`. */
export function outlined(event, record, most = 200) {
  const lines = [];
  const tell = (name, value, field, depth) => {
    if (lines.length >= most) return;
    const nested = value !== null && typeof value === 'object' && !(value instanceof Uint8Array);
    const flat = shown(value, field);
    const row = Array.isArray(value) && !value.some((item) => item !== null && typeof item === 'object');
    if (!nested || row || depth >= DEPTH_MAX || (flat.length < 80 && !flat.includes('…')))
      return void lines.push({ name, text: flat, depth });
    lines.push({ name, text: Array.isArray(value) ? `${value.length} items` : '', depth });
    const inner = new Map(field?.record?.fields.map((each) => [each.name, each]));
    for (const [key, item] of Object.entries(value))
      tell(key, item, Array.isArray(value) ? field : inner.get(key), depth + 1);
  };
  for (const field of record.fields) tell(field.name, event[field.name], field, 0);
  return lines;
}
