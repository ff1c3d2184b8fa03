// Checks the viewer's decoder.mjs, and examples/messages.mjs, against the golden vectors of the wire protocol. Run:
//     node tests/golden/check_decoder.mjs

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import * as decoder from '../../src/echoic/viewer/static/decoder.mjs';
import { Batch } from '../../src/echoic/viewer/static/columns.mjs';
import * as messages from '../../examples/messages.mjs';

const wire = { ...decoder, ...messages };
const { INT, UINT, FLOAT, BOOL, CHAR, ENUMERATION, STRING, BYTES, RECORD, WireError } = wire;

// --- Running and comparing ---

const results = { golden: [0, 0] };
async function test(group, name, body) {
  try {
    await body();
    results[group][0]++;
  } catch (error) {
    results[group][1]++;
    console.log(`FAILED ${group}: ${name}: ${error instanceof WireError || error.difference ? error.message : error.stack}`);
  }
}
function expect(condition, message) {
  if (!condition) throw Object.assign(new Error(message), { difference: true });
}
async function expectRefusal(body, what = 'it') {
  try {
    await body();
  } catch (error) {
    if (error instanceof WireError) return error.message;
    throw error;
  }
  expect(false, `${what} was not refused`);
}

const fromHex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

const NOT_FINITE = { nan: NaN, inf: Infinity, '-inf': -Infinity };

/** Compares a decoded value with one of the vectors, which tell less about types than the decoder does. */
function same(actual, expected, path = 'value') {
  const fail = () => expect(false, `${path}: ${show(actual)} is not ${show(expected)}`);
  if (actual instanceof Uint8Array) return toHex(actual) === expected || fail();
  if (Array.isArray(actual)) {
    if (!Array.isArray(expected) || actual.length !== expected.length) fail();
    return actual.forEach((item, i) => same(item, expected[i], `${path}[${i}]`));
  }
  if (actual instanceof Map) return same(Object.fromEntries(actual), expected, path);
  if (actual !== null && typeof actual === 'object') {
    if (String(Object.keys(actual)) !== String(Object.keys(expected ?? {}))) fail();
    return Object.keys(actual).forEach((key) => same(actual[key], expected[key], `${path}.${key}`));
  }
  if (typeof actual === 'bigint') return (typeof expected === 'string' && actual === BigInt(expected)) || fail();
  if (typeof actual === 'number' && typeof expected === 'string') expected = NOT_FINITE[expected];
  return Object.is(actual, expected) || fail();
}
const show = (value) => JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? `${part}n` : part));

/** Integers of 64 bits, and only those, must be BigInts; floats must be numbers. */
function checkTypes(record, event) {
  for (const field of record.fields) {
    if (field.dynamic || field.dimensions.length) continue;
    const value = event[field.name];
    if (field.kind === RECORD) checkTypes(field.record, value);
    const numeric = [INT, UINT, ENUMERATION, FLOAT].includes(field.kind);
    const type = field.size === 8 && field.kind !== FLOAT ? 'bigint' : 'number';
    if (numeric) expect(typeof value === type, `${field.name} is a ${typeof value}`);
  }
}

/** [path, type, offset] of each field, as the vectors list them. */
function layoutOf(record, prefix = '') {
  const names = { [INT]: 'int', [UINT]: 'uint', [FLOAT]: 'float', [BOOL]: 'bool', [CHAR]: 'char', [STRING]: 'string', [BYTES]: 'bytes' };
  return record.fields.flatMap((field) => {
    const { kind, size, dimensions, sizing } = field;
    let type = field.record?.name ?? (field.enumeration ? `enum ${field.enumeration.name}` : names[kind]);
    if (kind === INT || kind === UINT || kind === FLOAT) type += size * 8;
    if (field.optional) type += '?';
    for (const dimension of field.dynamic ? [sizing, ...dimensions] : dimensions) type += `[${dimension}]`;
    const path = prefix + field.name;
    return [[path, type, field.offset], ...(field.record ? layoutOf(field.record, `${path}.`) : [])];
  });
}

// --- The golden vectors ---

const golden = JSON.parse(readFileSync(new URL('wire.json', import.meta.url), 'utf8'));
const formats = new Map();

for (const { name, bytes, kind, channel, checked, payload } of golden.frames) {
  await test('golden', `frame "${name}"`, () => {
    const frames = wire.decodeFrames(fromHex(bytes));
    expect(frames.length === 1, `${frames.length} frames`);
    same(frames[0], { kind, channel, checked, payload });
  });
}
for (const { payload, ...hello } of golden.hellos) {
  await test('golden', `hello "${hello.name}"`, () => same(wire.decodeHello(fromHex(payload)), hello));
}
for (const { name, descriptor, token, layout } of golden.formats) {
  await test('golden', `format "${name}"`, async () => {
    const bytes = fromHex(descriptor);
    const hash = createHash('sha256').update(bytes).digest();
    expect(hash.readBigUInt64LE(0) === BigInt(`0x${token}`), 'the token by SHA-256');
    expect((await wire.tokenOf(bytes)) === token, 'the token by the decoder');
    const format = wire.parseDescriptor(bytes);
    same(layoutOf(format.record), layout, 'layout');
    await wire.decodeFormats(Uint8Array.of(0x91, 0xc5, bytes.length >> 8, bytes.length & 255, ...bytes), formats);
    same(layoutOf(formats.get(token).record), layout, 'layout');
  });
}
for (const { name, token, payload, events } of golden.batches) {
  await test('golden', `batch "${name}"`, () => {
    const batch = wire.decodeBatch(fromHex(payload), formats);
    expect(batch.token === token, 'the token');
    same(batch.events, events, 'events');
    for (const event of batch.events) checkTypes(formats.get(token).record, event);
  });
}
/** What columns.mjs reads without making objects is what the decoder reads: single numbers, and arrays of them. */
function checkColumns(batch, fields, events, prefix = '') {
  for (const { name, kind, dynamic, dimensions, record } of fields) {
    const [path, values] = [prefix + name, events.map((event) => event[name])];
    if (kind === RECORD && !dynamic && !dimensions.length) checkColumns(batch, record.fields, values, `${path}.`);
    if (![INT, UINT, FLOAT, BOOL, ENUMERATION].includes(kind)) continue;
    if (!dynamic && !dimensions.length) same([...batch.column(path)], values.map(Number), path);
    else if (!prefix) values.forEach((value, i) => same(Array.from(batch.array(i, path), Number), value.flat(Infinity).map(Number), path));
  }
}
for (const { name, token, payload, events } of golden.batches) {
  for (const shift of [0, 4]) {
    await test('golden', `columns of batch "${name}", ${shift} bytes off`, () => {
      const bytes = new Uint8Array(shift + 16 + payload.length / 2);
      bytes.set(fromHex(payload), shift + 16);
      const batch = new Batch(bytes.subarray(shift), formats);
      expect(batch.count === events.length, 'the count');
      same(batch.events(), events, 'events');
      checkColumns(batch, formats.get(token).record.fields, batch.events());
    });
  }
}
const described = new Map();
const said = [...golden.conversation, ...golden.hub_frames, ...golden.derived_conversation, ...golden.turning_conversation];
for (const [i, { by, name, bytes, kind, channel, content }] of said.entries()) {
  await test('golden', `between hubs, ${i}: ${by ?? name}`, async () => {
    const [frame, ...others] = wire.decodeFrames(fromHex(bytes));
    expect(others.length === 0 && frame.kind === kind && frame.channel === channel, 'the frame');
    same(await wire.decodePayload(frame, described), content, 'content');
  });
}
for (const { name, bytes, kind, channel, checked, payload } of golden.frames) {
  if (checked) continue;
  await test('golden', `writing frame "${name}"`, () => same(wire.encodeFrame(kind, fromHex(payload), channel), bytes));
}
for (const envelope of golden.messages) {
  if (['Bind', 'Saved', 'Restore', 'Turn', 'Kept'].includes(envelope.message.type)) continue; // maps with integers for keys are not written
  await test('golden', `writing message "${envelope.message.type}"`, () => {
    const { number, reply, message } = wire.decodeMessage(fromHex(envelope.payload));
    const { payload, ...expected } = envelope;
    same(wire.decodeMessage(wire.encodeMsgpack([number, reply, message])), expected);
  });
}
for (const { payload, ...envelope } of golden.messages) {
  await test('golden', `message "${envelope.message.type}"`, () => same(wire.decodeMessage(fromHex(payload)), envelope));
}
for (const { why, token, payload } of golden.malformed) {
  await test('golden', `malformed: ${why}`, async () => {
    expect(formats.has(token), 'its format is not among the vectors');
    const refusal = await expectRefusal(() => wire.decodeBatch(fromHex(payload), formats));
    if (process.env.SHOW) console.log(`${why}: ${refusal}`);
  });
}

for (const { why, bytes } of golden.malformed_frames) {
  await test('golden', `malformed frame: ${why}`, () => expectRefusal(() => wire.decodeFrames(fromHex(bytes))));
}
for (const { why, payload } of golden.malformed_hellos) {
  await test('golden', `malformed hello: ${why}`, () => expectRefusal(() => wire.decodeHello(fromHex(payload))));
}
for (const { why, kind, payload } of golden.malformed_hub_frames) {
  const frame = { kind, payload: fromHex(payload) };
  await test('golden', `malformed between hubs: ${why}`, () => expectRefusal(() => wire.decodePayload(frame, formats)));
}
for (const { why, descriptor } of golden.malformed_formats) {
  await test('golden', `malformed descriptor: ${why}`, () => expectRefusal(() => wire.parseDescriptor(fromHex(descriptor))));
}

const [passed, failed] = results.golden;
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
