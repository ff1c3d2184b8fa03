// What hubs tell each other besides events (docs/reference/wire-protocol.md, section 6), and an encoder for what a sink
// answers. It stands on the decoder of the viewer's page, which needs none of this. `sink.mjs` uses it.

import { check, viewOf } from '../src/echoic/viewer/static/bytes.mjs';
import {
  ACKS, arrayOf, CALLS, CONTROL, CREDITS, decodeBatch, decodeEvents, decodeFormats, decodeHello, EVENTS, FORMATS, HELLO,
  readNumbers, REPLIES, RUNS, SHARED,
} from '../src/echoic/viewer/static/decoder.mjs';
import { readMsgpack } from '../src/echoic/viewer/static/msgpack.mjs';

// --- Reading ---

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
export function decodePayload({ kind, payload }, formats) {
  if (kind === FORMATS) {
    const described = decodeFormats(payload);
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
