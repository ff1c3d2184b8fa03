// A decoder for version 1 of echoic's wire protocol (docs/reference/wire-protocol.md): frames, hellos, formats, batches
// of events. The viewer's page and the examples use it; what else hubs tell each other is in examples/messages.mjs.
//
// It needs nothing but the language, in Node or in a browser, and never waits: tokens are computed by sha256.mjs, since
// browsers have a digest of their own only as a promise, and only on pages that came over TLS or from loopback.
// What the protocol refuses is thrown as a WireError.
// In decoded events
//   - integers of 64 bits are BigInts, shorter integers and floats are numbers, an enumeration is its integer;
//   - bytes, a char, and an array of char (without its trailing zeros) are Uint8Arrays, copied from the payload;
//   - "none" is null, a record is an object, any other array is an Array (of Arrays, of ...).

import { check, copyOf, getterOf, textOf, viewOf } from './bytes.mjs';
import { readMsgpack } from './msgpack.mjs';
import { sha256 } from './sha256.mjs';

export { WireError } from './bytes.mjs';

const MIB = 1 << 20;
const roundUpTo8 = (n) => Math.ceil(n / 8) * 8;
const product = (numbers) => numbers.reduce((a, b) => a * b, 1);

// --- Frames (section 1) ---

export const [HELLO, FORMATS, EVENTS, ACKS, CREDITS, CONTROL] = [1, 2, 4, 5, 6, 10];
export const [CALLS, REPLIES, SHARED, RUNS] = [11, 12, 13, 14];

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, crc) => {
  for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
  return crc;
});
export function crc32c(...parts) {
  let crc = -1;
  for (const part of parts) for (const byte of part) crc = CRC_TABLE[(crc ^ byte) & 255] ^ (crc >>> 8);
  return ~crc >>> 0;
}

/** Cuts a stream into frames: push() what arrives, call next() until it returns null, and end() when it ends. */
export class FrameReader {
  payloadBytesMax = 16 * MIB; // may be changed between frames, as the peer is authenticated
  #buffer = new Uint8Array(4096);
  #start = 0; // what was pushed and not yet read lies between #start and #end
  #end = 0;

  push(chunk) {
    if (this.#end + chunk.length > this.#buffer.length) {
      const pending = this.#buffer.subarray(this.#start, this.#end);
      this.#buffer = new Uint8Array(2 * (pending.length + chunk.length));
      this.#buffer.set(pending);
      [this.#start, this.#end] = [0, pending.length];
    }
    this.#buffer.set(chunk, this.#end);
    this.#end += chunk.length;
  }

  /** The next frame, {kind, channel, checked, payload}, or null until more has arrived. */
  next() {
    for (;;) {
      const pending = this.#buffer.subarray(this.#start, this.#end);
      if (pending.length < 16) return null;
      const header = viewOf(pending);
      const [length, kind, flags] = [header.getUint32(0, true), pending[4], pending[5]];
      check(kind !== 0, 'a frame of kind 0');
      check(flags <= 1, 'a frame with an unknown flag');
      check(header.getUint16(6, true) === 0, 'a frame whose reserved bytes are not 0');
      check(length <= this.payloadBytesMax, 'a payload above the limit');
      const size = 16 + roundUpTo8(length);
      if (pending.length < size) return null;
      const payload = copyOf(pending, 16, 16 + length);
      const sum = header.getUint32(12, true);
      check(flags === 0 || sum === crc32c(pending.subarray(0, 12), payload), 'a frame with a wrong checksum');
      this.#start += size;
      // Kinds above 14 are skipped: a newer peer may say more than this reader understands.
      if (kind <= RUNS) return { kind, channel: header.getUint32(8, true), checked: flags === 1, payload };
    }
  }

  end() {
    check(this.#start === this.#end, 'the stream ends inside a frame');
  }
}

/** All frames of a complete stream. */
export function decodeFrames(bytes) {
  const [reader, frames] = [new FrameReader(), []];
  reader.push(bytes);
  for (let frame; (frame = reader.next()); ) frames.push(frame);
  reader.end();
  return frames;
}

const integerOf = (value, least, most, what) =>
  check(typeof value === 'bigint' && value >= least && value <= most, `${what} is impossible`, Number(value));
export const arrayOf = (value, what, length = value?.length) =>
  check(Array.isArray(value) && value.length === length, `${what} is not an array of the right length`, value);
const identifierOf = (name) =>
  check(typeof name === 'string' && /^(?!__)[A-Za-z_]\w{0,127}$/.test(name), 'a name is not an identifier', name);

// --- Hello (section 2) ---

/** The peer's hello, under the names of the protocol; a missing key has its default. */
export function decodeHello(payload) {
  check([...'ECHOIC\r\n'].every((sign, i) => payload[i] === sign.charCodeAt(0)), 'a hello without the signature');
  const map = readMsgpack(payload.subarray(8));
  check(map instanceof Map, 'a hello that is not a map');
  const get = (key, missing) => (map.has(key) ? map.get(key) : missing);
  const integer = (key, missing) => integerOf(get(key, missing), 0, Number.MAX_SAFE_INTEGER, `the hello's ${key}`);
  const version = integer('version', 1n);
  check(version === 1, `the peer speaks version ${version}, this is version 1`);
  const [minor, payload_bytes_max] = [integer('minor', 0n), integer('payload_bytes_max', BigInt(16 * MIB))];
  check(payload_bytes_max > 0, 'a hello of a peer that accepts no payload');
  const features = arrayOf(get('features', []), "the hello's features");
  const [name, hub, address] = ['name', 'hub', 'address'].map((key) => get(key, ''));
  const short = (one) => typeof one === 'string' && [...one].length <= 64;
  const printable = (one) => short(one) && /^[^\p{C}\p{Zl}\p{Zp}\p{Zs}]*$/u.test(one.replaceAll(' ', ''));
  check(features.length <= 256 && features.every(short), 'features that are too many, too long, or not strings');
  check([name, hub, address].every(printable), 'a text of a hello that is too long, or cannot be printed');
  return { version, minor, features, payload_bytes_max, name, hub, address };
}

// --- Formats (section 3) ---

export const [INT, UINT, FLOAT, BOOL, CHAR, ENUMERATION, STRING, BYTES, RECORD] = [1, 2, 3, 4, 5, 6, 7, 8, 9];

/** Tokens are written as 16 hex digits, the most significant first. */
const tokenIn = (view) => view.getBigUint64(0, true).toString(16).padStart(16, '0');
export const tokenOf = (descriptor) => tokenIn(viewOf(sha256(descriptor)));

/** Adds the formats that a payload describes to `formats`, a Map from token to format. */
export function decodeFormats(payload, formats = new Map()) {
  for (const descriptor of arrayOf(readMsgpack(payload), 'the payload of formats')) {
    check(descriptor instanceof Uint8Array, 'a descriptor that is not binary');
    formats.set(tokenOf(descriptor), parseDescriptor(descriptor));
  }
  return formats;
}

/** The format {littleEndian, slots, records, record}; `record`, the last of the records, is the format. */
export function parseDescriptor(descriptor) {
  check(descriptor.length <= MIB / 2, 'a descriptor above 512 KiB');
  const [version, byteOrder, slotKind, list] = arrayOf(readMsgpack(descriptor, true), 'a descriptor', 4);
  integerOf(version, 1, 1, "the descriptor's version");
  const slots = integerOf(slotKind, 0, 2, 'the kind of slots');
  const format = { littleEndian: integerOf(byteOrder, 0, 1, 'the byte order') === 0, slots, records: [] };
  for (const entry of arrayOf(list, 'the list of records')) format.records.push(parseRecord(entry, format));
  format.record = check(format.records.length > 0, 'a descriptor without a record', format.records.at(-1));
  const reached = new Set(); // depth first, in the order of the fields: as they must be listed
  const visit = (record) => {
    if (reached.has(record)) return;
    for (const field of record.fields) if (field.record) visit(field.record);
    check(record === format.records[reached.size], 'records that are not in canonical order');
    reached.add(record);
  };
  visit(format.record);
  check(new Set(format.records.map(({ text }) => text)).size === reached.size, 'a record that is listed twice');
  return format;
}

function parseRecord(entry, format) {
  const [name, alignment, size, list] = arrayOf(entry, 'a record', 4);
  check([1n, 2n, 4n, 8n, 16n].includes(alignment), 'an impossible alignment');
  const record = { name: identifierOf(name), alignment: Number(alignment) };
  record.size = integerOf(size, 1, 16 * MIB, 'the size of a record'); // were it 0, a batch could have any count
  record.fields = arrayOf(list, 'the list of fields').map((field) => parseField(field, format));
  record.text = JSON.stringify(entry, (_, part) => (typeof part === 'bigint' ? { integer: `${part}` } : part));
  check(record.fields.length > 0, 'a record without fields');
  const byName = new Map(record.fields.map((field) => [field.name, field]));
  check(byName.size === record.fields.length, 'two fields with one name');
  for (const field of record.fields.filter((field) => field.sizing)) {
    field.sizedBy = byName.get(field.sizing);
    check(field.sizedBy?.integer, 'an array that is not sized by an integer field');
  }
  let end = 0;
  for (const { offset, extent } of [...record.fields].sort((a, b) => a.offset - b.offset)) {
    check(offset >= end && offset + extent <= record.size, 'a field that overlaps another or leaves the record');
    end = offset + extent;
  }
  const inner = record.fields.flatMap((field) => field.record ?? []);
  record.variable = record.fields.some((field) => field.dynamic || field.slotted || field.record?.variable);
  record.fieldCount = inner.reduce((count, { fieldCount }) => count + fieldCount, record.fields.length);
  record.depth = inner.reduce((most, { depth }) => Math.max(most, depth + 1), 1);
  return check(record.fieldCount <= 4096 && record.depth <= 64, 'too many fields, or nested too deeply', record);
}

function parseField(entry, { slots, records }) {
  const [name, kindCode, sizeCode, offset, dimensions, flags, detail, value] = arrayOf(entry, 'a field', 8);
  const kind = integerOf(kindCode, INT, RECORD, 'the kind of a field');
  const size = integerOf(sizeCode, 1, 16 * MIB, 'the size of a field');
  const field = { name: identifierOf(name), kind, size, offset: integerOf(offset, 0, 16 * MIB, 'an offset') };
  if (kind === RECORD) field.record = records[integerOf(detail, 0, records.length - 1, 'the index of a record')];
  else check(kind === ENUMERATION || detail === null, 'a detail where there is none');
  const [integers, slot] = [[1, 2, 4, 8], slots === 1 ? 4 : 8];
  const sizes = [integers, integers, [4, 8], [1], [1], integers, [slot], [slot], [field.record?.size]][kind - INT];
  check(sizes.includes(size), 'a field of an impossible size');
  field.slotted = kind === STRING || kind === BYTES;
  field.dynamic = typeof arrayOf(dimensions, 'the dimensions')[0] === 'string';
  if (field.dynamic) field.sizing = dimensions[0];
  check(slots === 0 || (kind !== BYTES && field.sizing !== ''), 'a pointer to something without a length');
  check(dimensions.length <= 8, 'more than 8 dimensions');
  field.dimensions = dimensions.slice(field.dynamic ? 1 : 0).map((one) => integerOf(one, 1, 2 ** 32, 'a dimension'));
  field.integer = (kind === INT || kind === UINT) && dimensions.length === 0;
  check(size * product(field.dimensions) <= 16 * MIB, 'an array above 16 MiB');
  field.extent = field.dynamic ? slot : size * product(field.dimensions);
  const bits = integerOf(flags, 0, 3, 'the flags of a field');
  const usable = (field.slotted && dimensions.length === 0 ? 1 : 0) | (kind === ENUMERATION ? 2 : 0);
  check((bits & ~usable) === 0, 'a flag that means nothing for its field');
  [field.optional, field.unsigned] = [(bits & 1) !== 0, kind === UINT || (bits & 2) !== 0];
  if (kind === ENUMERATION) field.enumeration = parseEnumeration(detail, field);
  field.getter = getterOf(kind === FLOAT ? 'Float' : field.unsigned ? 'Uint' : 'Int', size);
  const fits = (given) => isDefault(given, field, dimensions.length > 0);
  return check(arrayOf(value, 'a default').length <= 1 && value.every(fits), 'an impossible default', field);
}

// Whether an integer fits a field of this size and sign.
function isInteger(value, { size, unsigned }) {
  return typeof value === 'bigint' && value === (unsigned ? BigInt.asUintN : BigInt.asIntN)(8 * size, value);
}

const fitsFloat32 = (value) => !Number.isFinite(value) || Number.isFinite(Math.fround(value));

// Whether a default can be one of this field.
function isDefault(value, field, array) {
  const { kind, size, optional } = field;
  if (array) return Array.isArray(value) && value.length === 0;
  if (value === null) return optional;
  if (kind === INT || kind === UINT || kind === ENUMERATION) return isInteger(value, field);
  if (kind === FLOAT) return typeof value === 'number' && (size === 8 || fitsFloat32(value));
  if (kind === BOOL) return typeof value === 'boolean';
  if ((kind === STRING) !== (typeof value === 'string')) return false;
  const bytes = kind === STRING ? new TextEncoder().encode(value) : value;
  return bytes instanceof Uint8Array && (kind === CHAR ? bytes.length === 1 : kind !== RECORD && bytes.length <= 4096);
}

function parseEnumeration(detail, field) {
  const [name, list] = arrayOf(detail, 'an enumeration', 2);
  const members = arrayOf(list, 'the members').map((entry) => arrayOf(entry, 'a member', 2));
  const possible = members.every(([member, value]) => identifierOf(member) && isInteger(value, field));
  check(possible && members.length <= 4096, 'members that are too many, or do not fit their field');
  check(new Set(members.map(([member]) => member)).size === members.length, 'two members with one name');
  return { name: identifierOf(name), members };
}

// --- Batches and records (sections 5 and 4) ---

/** Where the records of a batch lie: {token, format, count, first, offset(i)}, whatever they are. */
export function openBatch(payload, formats) {
  check(payload.length >= 16, 'a batch that ends too early');
  const view = viewOf(payload);
  const [token, count] = [tokenIn(view), view.getUint32(8, true)];
  const format = check(formats.has(token), `the format ${token} was not described`, formats.get(token));
  const { size, variable } = format.record;
  check(view.getUint32(12, true) === Number(variable), 'the flags of the batch are wrong');
  const first = variable ? roundUpTo8(20 + 4 * count) : 16;
  const total = payload.length - first;
  check(total >= 0, 'a batch that is too short for its count');
  const offset = (i) => (variable ? view.getUint32(16 + 4 * i, true) : i * size);
  check(offset(0) === 0 && offset(count) === total, 'the records do not fill the batch');
  for (let i = 0; variable && i < count; i++) {
    const [start, end] = [offset(i), offset(i + 1)];
    const possible = end - start >= size && end <= total && end % 8 === 0;
    check(possible, 'a record that is too short, outside the batch, or not at a multiple of 8');
  }
  return { token, format, count, first, offset };
}

/** The events of a batch: {token, events}. `formats` is a Map from token to format. */
export function decodeBatch(payload, formats) {
  const { token, format, count, first, offset } = openBatch(payload, formats);
  const record = (_, i) => readRecord(payload.subarray(first + offset(i), first + offset(i + 1)), format);
  return { token, events: Array.from({ length: count }, record) };
}

/** The event in the bytes of one record; all positions count from its start. */
export function readRecord(bytes, { record, slots, littleEndian }) {
  const view = viewOf(bytes);
  let unread = bytes.length - record.size; // how many bytes the blocks may still have
  const follow = (start, count) =>
    check(start + count <= bytes.length && (unread -= count) >= 0, 'a block that overlaps, or leaves its record');
  // The [offset, length] in a slot; a pointer tells no length.
  const slot = (at) => {
    const start = Number(view[slots === 2 ? 'getBigUint64' : 'getUint32'](at, littleEndian));
    const length = slots === 0 ? view.getUint32(at + 4, littleEndian) : undefined;
    check(start !== 0 || !length, 'a null slot with a length');
    check(start === 0 || (start >= record.size && start <= bytes.length), 'a slot that points at no block');
    return [start, length];
  };
  const stringOrBytes = ({ kind, optional }, at) => {
    const [start, length] = slot(at);
    if (start === 0) return optional ? null : kind === STRING ? '' : new Uint8Array();
    const end = length === undefined ? bytes.indexOf(0, start) : start + length;
    check(kind !== STRING || bytes[end] === 0, 'a string without a NUL at its end');
    follow(start, end - start);
    return (kind === STRING ? textOf : copyOf)(bytes, start, end);
  };
  const single = (field, at) => {
    if (field.slotted) return stringOrBytes(field, at);
    if (field.kind === RECORD) return object(field.record, at);
    if (field.kind === BOOL) return bytes[at] !== 0;
    if (field.kind === CHAR) return copyOf(bytes, at, at + 1);
    return view[field.getter](at, littleEndian);
  };
  // An array of these dimensions, or without any, a single value.
  const elements = (field, at, [length, ...inner]) => {
    if (length === undefined) return single(field, at);
    if (field.kind === CHAR && inner.length === 0) {
      while (length > 0 && bytes[at + length - 1] === 0) length--;
      return copyOf(bytes, at, at + length);
    }
    const step = field.size * product(inner);
    return Array.from({ length }, (_, i) => elements(field, at + i * step, inner));
  };
  const valueOf = (field, base) => {
    const { sizedBy, dimensions } = field;
    if (!field.dynamic) return elements(field, base + field.offset, dimensions);
    const [start, told] = slot(base + field.offset);
    const sizing = sizedBy ? Number(single(sizedBy, base + sizedBy.offset)) : told;
    const length = start === 0 ? 0 : told ?? sizing;
    check(length === sizing && length >= 0, 'a length that is negative, or differs from its sizing field');
    if (start === 0) return field.optional ? null : elements(field, 0, [0, ...dimensions]);
    const alignment = field.slotted ? 4 : Math.min(8, field.record?.alignment ?? field.size);
    check(slots !== 0 || start % alignment === 0, 'a block that is misaligned');
    follow(start, length * field.size * product(dimensions));
    return elements(field, start, [length, ...dimensions]);
  };
  const object = ({ fields }, base) => Object.fromEntries(fields.map((field) => [field.name, valueOf(field, base)]));
  return object(record, 0);
}

// --- Events (section 6.5) ---

/** Numbers that stand one after the other, by name: `letters` has an I for each of 32 bits, a Q for each of 64. */
export function readNumbers(payload, start, letters, names, exact) {
  const size = [...letters].reduce((sum, letter) => sum + (letter === 'Q' ? 8 : 4), start);
  check(exact ? payload.length === size : payload.length >= size, 'a payload of the wrong length');
  const [view, found] = [viewOf(payload), {}];
  for (const [i, name] of names.entries()) {
    found[name] = letters[i] === 'Q' ? view.getBigUint64(start, true) : view.getUint32(start, true);
    start += letters[i] === 'Q' ? 8 : 4;
  }
  return found;
}

/** A run of consecutive events of one source: {sequence, source, token, events}. */
export function decodeEvents(payload, formats) {
  const header = readNumbers(payload, 0, 'QQ', ['sequence', 'source']);
  return { ...header, ...decodeBatch(payload.subarray(16), formats) };
}
