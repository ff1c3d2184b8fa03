// A decoder for version 1 of echoic's wire protocol (docs/reference/wire-protocol.md): frames, hellos, formats, batches
// of events, and what hubs tell each other; and an encoder for what they answer. `sink.mjs` uses it.
//
// It needs nothing but the language, in Node or in a browser. What the protocol refuses is thrown as a WireError.
// In decoded events
//   - integers of 64 bits are BigInts, shorter integers and floats are numbers, an enumeration is its integer;
//   - bytes, a char, and an array of char (without its trailing zeros) are Uint8Arrays, copied from the payload;
//   - "none" is null, a record is an object, any other array is an Array (of Arrays, of ...).

export class WireError extends Error { name = 'WireError'; }

// The value, unless the condition fails: then what is read is refused.
const check = (condition, refusal, value) => {
  if (!condition) throw new WireError(refusal);
  return value;
};
const MIB = 1 << 20;
const viewOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
const copyOf = (bytes, start, end) => new Uint8Array(bytes.subarray(start, end));
const getterOf = (type, size) => `get${size === 8 && type !== 'Float' ? 'Big' : ''}${type}${size * 8}`;
const roundUpTo8 = (n) => Math.ceil(n / 8) * 8;
const product = (numbers) => numbers.reduce((a, b) => a * b, 1);

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
function textOf(bytes, start, end) {
  try {
    return utf8.decode(bytes.subarray(start, end));
  } catch {
    throw new WireError('a string is not UTF-8');
  }
}

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

// --- msgpack ---

// The msgpack value that the bytes are. Integers become BigInts and floats numbers, to keep them apart; maps become
// Maps, extensions undefined. With `canonical`, what is not in its shortest form, or a 32-bit float, is refused.
function readMsgpack(bytes, canonical = false) {
  const view = viewOf(bytes);
  let at = 0;
  const take = (count) => check(at + count <= bytes.length, 'msgpack that ends too early', (at += count) - count);
  // An integer or a length; `least` is the smallest (if negative: the largest) that needs so many bytes.
  const number = (type, size, least) => {
    const value = view[getterOf(type, size)](take(size));
    return check(!canonical || (least < 0 ? value <= least : value >= least), 'msgpack that could be shorter', value);
  };
  const text = (count) => textOf(bytes, take(count), at);
  const list = (count, item) => {
    const items = []; // grows with what is there, not with what the header claims
    while (items.length < count) items.push(item());
    return items;
  };
  const value = (depth) => {
    check(depth < 64, 'msgpack that is nested too deeply');
    const array = (count) => list(count, () => value(depth + 1));
    const map = (count) => new Map(list(count, () => [value(depth + 1), value(depth + 1)]));
    const tag = bytes[take(1)];
    const size = (first) => 1 << (tag - first);
    const pick = (first, ...choices) => choices[tag - first];
    if (tag < 0x80) return BigInt(tag);
    if (tag < 0x90) return map(tag & 15);
    if (tag < 0xa0) return array(tag & 15);
    if (tag < 0xc0) return text(tag & 31);
    check(tag !== 0xc1 && !(canonical && tag === 0xca), 'msgpack of a form that may not be used');
    if (tag < 0xc4) return pick(0xc0, null, undefined, false, true);
    if (tag < 0xc7) return copyOf(bytes, take(number('Uint', size(0xc4), pick(0xc4, 0, 2 ** 8, 2 ** 16))), at);
    if (tag < 0xca) return void take(1 + number('Uint', size(0xc7), 0));
    if (tag < 0xcc) return view[pick(0xca, 'getFloat32', 'getFloat64')](take(4 * size(0xca)));
    if (tag < 0xd0) return BigInt(number('Uint', size(0xcc), pick(0xcc, 2 ** 7, 2 ** 8, 2 ** 16, 2 ** 32)));
    if (tag < 0xd4) return BigInt(number('Int', size(0xd0), -1 - pick(0xd0, 2 ** 5, 2 ** 7, 2 ** 15, 2 ** 31)));
    if (tag < 0xd9) return void take(1 + size(0xd4));
    if (tag < 0xdc) return text(number('Uint', size(0xd9), pick(0xd9, 2 ** 5, 2 ** 8, 2 ** 16)));
    if (tag < 0xde) return array(number('Uint', 2 * size(0xdc), pick(0xdc, 2 ** 4, 2 ** 16)));
    if (tag < 0xe0) return map(number('Uint', 2 * size(0xde), 0));
    return BigInt(tag - 256);
  };
  const result = value(0);
  return check(at === bytes.length, 'bytes follow the msgpack value', result);
}

const integerOf = (value, least, most, what) =>
  check(typeof value === 'bigint' && value >= least && value <= most, `${what} is impossible`, Number(value));
const arrayOf = (value, what, length = value?.length) =>
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
export const tokenOf = async (descriptor) => tokenIn(new DataView(await crypto.subtle.digest('SHA-256', descriptor)));

/** Adds the formats that a payload describes to `formats`, a Map from token to format. Await it before the batches. */
export async function decodeFormats(payload, formats = new Map()) {
  for (const descriptor of arrayOf(readMsgpack(payload), 'the payload of formats')) {
    check(descriptor instanceof Uint8Array, 'a descriptor that is not binary');
    formats.set(await tokenOf(descriptor), parseDescriptor(descriptor));
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
  else if (kind === ENUMERATION) field.enumeration = parseEnumeration(detail);
  else check(detail === null, 'a detail where there is none');
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
  field.extent = field.dynamic ? slot : size * product(field.dimensions);
  const bits = integerOf(flags, 0, 3, 'the flags of a field');
  const usable = (field.slotted && dimensions.length === 0 ? 1 : 0) | (kind === ENUMERATION ? 2 : 0);
  check((bits & ~usable) === 0, 'a flag that means nothing for its field');
  [field.optional, field.unsigned] = [(bits & 1) !== 0, kind === UINT || (bits & 2) !== 0];
  field.getter = getterOf(kind === FLOAT ? 'Float' : field.unsigned ? 'Uint' : 'Int', size);
  const fits = (given) => isDefault(given, field, dimensions.length > 0);
  return check(arrayOf(value, 'a default').length <= 1 && value.every(fits), 'an impossible default', field);
}

// Whether a default can be one of this field.
function isDefault(value, { kind, optional }, array) {
  if (array) return Array.isArray(value) && value.length === 0;
  if (value === null) return optional;
  if (kind === INT || kind === UINT || kind === ENUMERATION) return typeof value === 'bigint';
  if (kind === FLOAT) return typeof value === 'number';
  if (kind === BOOL) return typeof value === 'boolean';
  if (kind === STRING) return typeof value === 'string';
  return value instanceof Uint8Array && (kind === BYTES || (kind === CHAR && value.length === 1));
}

function parseEnumeration(detail) {
  const [name, list] = arrayOf(detail, 'an enumeration', 2);
  const members = arrayOf(list, 'the members').map((entry) => arrayOf(entry, 'a member', 2));
  const integers = members.every(([member, value]) => identifierOf(member) && typeof value === 'bigint');
  check(integers && members.length <= 4096, 'members that are too many, or without an integer');
  return { name: identifierOf(name), members };
}

// --- Batches and records (sections 5 and 4) ---

/** The events of a batch: {token, events}. `formats` is a Map from token to format. */
export function decodeBatch(payload, formats) {
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
  const events = [];
  for (let i = 0; i < count; i++) {
    const [start, end] = [offset(i), offset(i + 1)];
    const possible = end - start >= size && end <= total && (!variable || end % 8 === 0);
    check(possible, 'a record that is too short, outside the batch, or not at a multiple of 8');
    events.push(readRecord(payload.subarray(first + start, first + end), format));
  }
  return { token, events };
}

/** The event in the bytes of one record; all positions count from its start. */
function readRecord(bytes, { record, slots, littleEndian }) {
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

// --- Between hubs (section 6) ---

/** Numbers that stand one after the other, by name: `letters` has an I for each of 32 bits, a Q for each of 64. */
function readNumbers(payload, start, letters, names, exact) {
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

/** A run that must be answered: {sequence, source, call, token, events}. */
export function decodeCalls(payload, formats) {
  const header = readNumbers(payload, 0, 'QQQ', ['sequence', 'source', 'call']);
  return { ...header, ...decodeBatch(payload.subarray(24), formats) };
}

/** Runs of several channels, which share a batch: {runs: [{channel, events, sequence, source}], token, events}. */
export function decodeRuns(payload, formats) {
  const { count, reserved } = readNumbers(payload, 0, 'II', ['count', 'reserved']);
  const start = 8 + 24 * count;
  check(reserved === 0 && start <= payload.length, 'a table of runs that is cut, or whose reserved bytes are not 0');
  const names = ['channel', 'events', 'sequence', 'source'];
  const runs = Array.from({ length: count }, (_, i) => readNumbers(payload, 8 + 24 * i, 'IIQQ', names));
  const batch = decodeBatch(payload.subarray(start), formats);
  const total = runs.reduce((sum, { events }) => sum + check(events > 0, 'a run without events', events), 0);
  check(total === batch.events.length, 'runs that do not make up their batch');
  return { runs, ...batch };
}

/** The answer to a call: {call, failures}, an object that tells for each sink that failed how. */
export function decodeReply(payload) {
  const { call } = readNumbers(payload, 0, 'Q', ['call']);
  const told = payload.length > 8 ? readMsgpack(payload.subarray(8)) : new Map();
  check(told instanceof Map, 'failures that are not a map');
  check([...told].flat().every((one) => typeof one === 'string'), 'failures that are not texts');
  return { call, failures: Object.fromEntries(told) };
}

/** How many frames of a session have arrived: {session, received}. */
export const decodeCount = (payload) => readNumbers(payload, 0, 'QQ', ['session', 'received'], true);
/** How many bytes more of a channel may be sent: {channel, bytes}. */
export const decodeCredit = (payload) => readNumbers(payload, 0, 'II', ['channel', 'bytes'], true);
/** Where in shared memory a frame lies: {position, length}. */
export const decodePlace = (payload) => readNumbers(payload, 0, 'QQ', ['position', 'length'], true);

// The fields of messages and of their parts: ? marks those that may be missing, {} a map from integer to integer,
// blocks one from integer to bytes, truths one from text to boolean, and plains one from text to what a source is told.
const SINK_HUB = `address:text slow?:slow sinks?:texts hub?:text subscription?:integer turns?:truths journal?:text
  held?:boolean`;
const COUNTED = 'sources sinks targets events_out bytes_out events_in bytes_in missed dropped waiting_bytes';
const DERIVED = 'sources events_in events_out bytes_in bytes_out bytes_saved busy_ns cost faults';
const PARTS = {
  sinkHub: SINK_HUB,
  recipe: `parent:text code:text spelling?:spelling output?:bytes params?:bytes ports?:integer capacities?:capacitys
    placement?:placement parcel?:bytes identity?:bytes`,
  step: 'name:text group:text recipe:recipe values?:bytes version?:integer port?:integer input?:bytes context?:bytes',
  steering: 'hub:text source:integer refusal?:text values?:plains',
  derivation: `name:text id:text parent:text placement:placement ${DERIVED.replaceAll(/\w+/g, '$&:integer')}
    suspended:text fault?:text`,
  entry: 'name:text id:text type?:text sources?:integer sinks?:integer parent?:text',
  counts: `name:text id:text type:text ${COUNTED.replaceAll(/\w+/g, '$&:integer')}`,
};
const MESSAGES = {
  Describe: 'name:text',
  Described: 'name:text descriptor:bytes sources:texts sinks:sinkHubs lineage?:steps context?:bytes',
  Join: 'name:text role:role hub:sinkHub lineage?:steps instead?:text handle?:text successor?:text',
  Joined: 'sinks:sinkHubs heard?:steps turned?:texts journals?:truths',
  Leave: 'name:text role:role address:text held?:boolean',
  Attach: 'channel:text sink:sinkHub lineage?:steps instead?:text handle?:text successor?:text',
  Detach: 'channel:text address:text subscription?:integer journal?:text',
  Bind: 'number:integer channel:text positions:{} since?:{} subscription?:integer',
  Gap: 'number:integer source:integer first:integer last:integer reason:text',
  Cut: 'number:integer reason:text asked?:boolean',
  Register: 'name:text id:text',
  Unregister: 'name:text id:text',
  Resolve: 'name:text',
  Resolved: 'id:text',
  Browse: '',
  Listing: 'channels:entrys',
  Report: '',
  Reported: 'hub:text channels:countss derivations?:derivations',
  Derive: 'step:step share?:unlessNot',
  DerivedAs: 'steps:steps',
  Tune: 'channel:text values:bytes version?:integer base?:version',
  Save: 'channel:text',
  Saved: 'states:blocks descriptor?:bytes',
  Restore: 'channel:text states:blocks',
  Placed: 'number:integer source:integer first:integer here:boolean',
  Turn: 'number:integer handle:text positions:{} taken?:boolean',
  Turned: 'hub:text',
  Trouble: 'channel:text hub:text text:text faults?:integer suspended?:boolean',
  Watch: 'object:text format:bytes',
  Unwatch: 'object:text',
  Write: 'object:text number:integer token:integer fields:texts values:bytes',
  Update: 'object:text version:integer values:bytes confirmed?:integer ended?:boolean',
  Kept: 'channel:text journal:text positions:{} trouble?:text',
  Ask: 'channel:text source:integer',
  Fetch: `channel:text partition:integer sequence:integer bytes_max:integer wait_ns?:integer positions?:integers
    types?:boolean`,
  Fetched: `journal:text heads:integers firsts:integers seed?:integer sequence?:integer end?:integer formats?:bytess
    blocks?:bytes partition?:integer file?:text offset?:integer reason?:text`,
  Mark: 'channel:text sink:text positions?:integers',
  Marked: 'positions:integers',
  Steer: 'channel:text action:text values?:plains',
  Steered: 'answers:steerings',
  Farewell: '',
  Done: '',
  Refused: 'kind:text reason:text',
};
const NAMES = { slow: 'block', spelling: 'ecode', placement: 'source' };
const NONE = new Uint8Array();
const MISSING = { ...NAMES, text: '', integer: 0n, version: -1n, boolean: false, unlessNot: true, bytes: NONE };
const isInteger = (value) => typeof value === 'bigint';
const isBytes = (value) => value instanceof Uint8Array;
const isPlain = (value) => ['boolean', 'bigint', 'number', 'string'].includes(typeof value);
const isMap = (value, key, item) => value instanceof Map && [...value].every(([a, b]) => typeof a === key && item(b));
const TESTS = {
  text: (value) => typeof value === 'string',
  integer: isInteger,
  version: isInteger,
  boolean: (value) => typeof value === 'boolean',
  unlessNot: (value) => typeof value === 'boolean',
  bytes: isBytes,
  role: (value) => value === 'source' || value === 'sink',
  slow: (value) => ['block', 'drop_oldest', 'latest', 'disconnect'].includes(value),
  spelling: (value) => ['ecode', 'python', 'modulator'].includes(value),
  placement: (value) => ['source', 'sink', 'auto'].includes(value),
  capacity: (value) => value?.length === 2 && typeof value[0] === 'string' && isInteger(value[1]),
  blocks: (value) => isMap(value, 'bigint', isBytes),
  '{}': (value) => isMap(value, 'bigint', isInteger),
  truths: (value) => isMap(value, 'string', (item) => typeof item === 'boolean'),
  plains: (value) => isMap(value, 'string', isPlain),
};

/** The object that a map stands for; missing fields have their defaults, unknown ones are left out. */
function readFields(map, fields) {
  check(map instanceof Map, 'a part of a message that is not a map');
  const read = (value, type) => {
    if (type in PARTS) return readFields(value, PARTS[type]);
    if (type in TESTS) {
      check(TESTS[type](value), `a field of a message that is no ${type}`);
      return type === 'truths' || type === 'plains' ? Object.fromEntries(value) : value;
    }
    return arrayOf(value, 'a field of a message').map((one) => read(one, type.slice(0, -1)));
  };
  const found = {};
  for (const [, name, optional, type] of fields.matchAll(/(\w+)(\??):(\S+)/g)) {
    check(optional || map.has(name), `a message without ${name}`);
    const missing = () => MISSING[type] ?? (type in TESTS ? read(new Map(), type) : []);
    found[name] = map.has(name) ? read(map.get(name), type) : missing();
  }
  return found;
}

/**
 * A message, {number, reply, message: {type, ...}}: integers are BigInts, `positions` and `since` Maps of them, `states`
 * is a Map of bytes; maps with texts for keys are objects.
 */
export function decodeMessage(payload) {
  const parts = readMsgpack(payload);
  check(Array.isArray(parts) && parts.length >= 3, 'an envelope that is cut');
  const [number, reply, map] = parts;
  check(isInteger(number) && typeof reply === 'boolean' && map instanceof Map, 'an envelope of other things');
  const type = map.get('type');
  check(typeof type === 'string' && Object.hasOwn(MESSAGES, type), `a message of the unknown type ${type}`);
  return { number, reply, message: { type, ...readFields(map, MESSAGES[type]) } };
}

/** What a frame says, whatever its kind; null for kinds without a meaning. Formats are added to `formats`. */
export async function decodePayload({ kind, payload }, formats) {
  if (kind === FORMATS) {
    const described = await decodeFormats(payload);
    for (const [token, format] of described) formats.set(token, format);
    return { tokens: [...described.keys()] };
  }
  const readers = {
    [HELLO]: decodeHello,
    [EVENTS]: decodeEvents,
    [ACKS]: decodeCount,
    [CREDITS]: decodeCredit,
    [CONTROL]: decodeMessage,
    [CALLS]: decodeCalls,
    [REPLIES]: decodeReply,
    [SHARED]: decodePlace,
    [RUNS]: decodeRuns,
  };
  return readers[kind]?.(payload, formats) ?? null;
}

// --- Writing ---

const joined = (parts) => {
  const bytes = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  parts.reduce((at, part) => (bytes.set(part, at), at + part.length), 0);
  return bytes;
};

/** Integers one after the other: numbers take 32 bits, BigInts 64. */
export function encodeNumbers(...integers) {
  const write = (one) => {
    const part = new Uint8Array(typeof one === 'bigint' ? 8 : 4);
    part.length === 8 ? viewOf(part).setBigUint64(0, one, true) : viewOf(part).setUint32(0, one, true);
    return part;
  };
  return joined(integers.map(write));
}

/** A frame without a checksum. The kind is followed by flags and reserved bytes, which are 0. */
export const encodeFrame = (kind, payload, channel = 0) =>
  joined([encodeNumbers(payload.length, kind, channel, 0), payload, new Uint8Array(-payload.length & 7)]);

/** The msgpack of booleans, strings, binaries, arrays, objects, integers and fractions; not in its shortest form. */
export function encodeMsgpack(value) {
  const sized = (tag, size, parts) => joined([Uint8Array.of(tag, size >> 24, size >> 16, size >> 8, size), ...parts]);
  if (typeof value === 'boolean') return Uint8Array.of(value ? 0xc3 : 0xc2);
  if (value instanceof Uint8Array) return sized(0xc6, value.length, [value]);
  if (Array.isArray(value)) return sized(0xdd, value.length, value.map(encodeMsgpack));
  if (typeof value === 'string') {
    const text = new TextEncoder().encode(value);
    return sized(0xdb, text.length, [text]);
  }
  if (typeof value === 'object') {
    return sized(0xdf, Object.keys(value).length, Object.entries(value).flat().map(encodeMsgpack));
  }
  if (typeof value === 'number' && !Number.isInteger(value)) {
    const fraction = new Uint8Array(9).fill(0xcb);
    viewOf(fraction).setFloat64(1, value);
    return fraction;
  }
  const integer = new Uint8Array(9).fill(value < 0 ? 0xd3 : 0xcf);
  viewOf(integer).setBigUint64(1, BigInt.asUintN(64, BigInt(value)));
  return integer;
}
