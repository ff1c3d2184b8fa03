// Tries the viewer's decoder.mjs, and examples/messages.mjs, on frames that somebody has damaged: node try_decoder.mjs FRAMES FORMATS
//
// FRAMES has hex, a frame per line; FORMATS has the payload of a FORMATS frame in hex: what batches may refer to. For each frame
// a line of JSON is printed: {"refused": message}, or {"taken": what the frames say}; or {"broken": what went wrong},
// which must not be. Values are spelled as the golden vectors spell them: bytes in hex, integers of 64 bits as texts.

import { readFileSync } from 'node:fs';
import * as decoder from '../../src/echoic/viewer/static/decoder.mjs';
import { Batch } from '../../src/echoic/viewer/static/columns.mjs';
import * as messages from '../../examples/messages.mjs';

const wire = { ...decoder, ...messages };
const fromHex = (text) => new Uint8Array(Buffer.from(text, 'hex'));
const [frames, described] = process.argv.slice(2).map((path) => readFileSync(path, 'utf8').trimEnd());
const known = await wire.decodeFormats(fromHex(described));

function plain(_, value) {
  if (typeof value === 'bigint') return String(value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
  if (value instanceof Map) return Object.fromEntries(value);
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value).replace('Infinity', 'inf').toLowerCase();
  return value;
}

const NUMBERS = new Set([wire.INT, wire.UINT, wire.FLOAT, wire.BOOL, wire.ENUMERATION]);
const KNOWN_PATHS = new Map();
/** [path, dimensions?] of each number and each array of numbers in a record. */
function pathsOf(record, prefix = '') {
  return record.fields.flatMap((field) => {
    const path = prefix + field.name;
    if (field.record && !field.dynamic && !field.dimensions.length) return pathsOf(field.record, `${path}.`);
    return NUMBERS.has(field.kind) ? [{ path, array: field.dynamic || field.dimensions.length > 0 }] : [];
  });
}

/** What the columns of a batch say must be what its events say; or they are refused. */
function compareColumns(payload, events) {
  const batch = new Batch(payload, known);
  if (!KNOWN_PATHS.has(batch.format)) KNOWN_PATHS.set(batch.format, pathsOf(batch.format.record));
  for (const { path, array } of KNOWN_PATHS.get(batch.format)) {
    const spelled = (value) => Array.from([value].flat(Infinity), Number).join();
    const read = array ? (i) => Array.from(batch.array(i, path), Number).join() : (column => (i) => String(column[i]))(batch.column(path));
    for (let i = 0; i < batch.count; i++) {
      const found = read(i);
      const expected = events && spelled(path.split('.').reduce((value, name) => value[name], events[i]));
      if (events && found !== expected) throw new Error(`column ${path} of event ${i}: ${found} is not ${expected}`);
    }
  }
}

/** What a damaged stream says; formats that it describes are its own. */
async function decoded(bytes) {
  const said = [];
  for (const frame of wire.decodeFrames(bytes)) {
    let content;
    try {
      content = await wire.decodePayload(frame, new Map(known));
    } finally {
      if (frame.kind === wire.EVENTS) compareColumns(frame.payload, content?.events);
    }
    said.push({ kind: frame.kind, content });
  }
  return said;
}

const lines = [];
for (const line of frames.split('\n')) {
  try {
    lines.push(JSON.stringify({ taken: await decoded(fromHex(line)) }, plain));
  } catch (error) {
    const refused = error instanceof wire.WireError;
    lines.push(JSON.stringify(refused ? { refused: error.message } : { broken: String(error.stack), line }));
  }
}
process.stdout.write(`${lines.join('\n')}\n`);
