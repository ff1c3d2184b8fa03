// A sink of an echoic channel that prints every event as a line of JSON. Node's standard library and decoder.mjs suffice.
//
//     node sink.mjs echoic://127.0.0.1:7401/trades [host:port to listen at] [block | drop_oldest | latest | disconnect]
//
// It is a hub as docs/reference/wire-protocol.md describes it (6.10): it greets, resumes sessions over connections that
// break, counts frames, grants credit, answers calls, and knows what it missed. It ends at SIGTERM or SIGINT.

import { randomBytes } from 'node:crypto';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import * as wire from './decoder.mjs';

const [channel, listenAt = '127.0.0.1:0', slow = 'block'] = process.argv.slice(2);
const [, managerAddress, name] = /^echoic:\/\/([^/]+)\/(.+)$/.exec(channel ?? '') ?? [];
if (!name) throw new Error('usage: node sink.mjs echoic://HOST:PORT/NAME [HOST:PORT] [SLOW]');

const [TELL_FRAMES, TELL_BYTES, TELL_MS, GRANT_BYTES] = [64, 1 << 20, 100, 4 << 20];
const [GREETING_MS, LOST_MS, REDIAL_MS] = [5000, 20_000, [0, 50, 100, 200, 400, 800]];
const me = { hub: randomBytes(8).toString('hex'), address: '', subscription: 1 };
const neighbours = new Map(); // what is remembered of other hubs, by their `hub`
const positions = new Map(); // the number of the next event, by source
const requests = new Map(); // who waits for a reply, by number
const [dialling, answering] = [new Set(), new Set()]; // addresses, hubs
let [manager, channelId, ending, lastRequest] = [null, '', false, 0];

const print = (line) => process.stdout.write(`${JSON.stringify(line, plain)}\n`);
function plain(_, value) {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value;
}
function insist(condition, problem) {
  if (!condition) throw new wire.WireError(problem);
}

// --- Writing ---

/** The little-endian integers of a payload: numbers take 32 bits, BigInts 64. */
function pack(...integers) {
  const buffer = Buffer.alloc(integers.reduce((size, one) => size + (typeof one === 'bigint' ? 8 : 4), 0));
  let at = 0;
  for (const one of integers) at = typeof one === 'bigint' ? buffer.writeBigUInt64LE(one, at) : buffer.writeUInt32LE(one, at);
  return buffer;
}
function msgpack(value) {
  const sized = (tag, size, rest) => Buffer.concat([Buffer.from([tag, size >> 8, size & 255]), ...rest]);
  if (typeof value === 'boolean') return Buffer.from([value ? 0xc3 : 0xc2]);
  if (typeof value === 'string') return sized(0xda, Buffer.byteLength(value), [Buffer.from(value)]);
  if (Array.isArray(value)) return sized(0xdc, value.length, value.map(msgpack));
  if (typeof value === 'object') return sized(0xde, Object.keys(value).length, Object.entries(value).flat().map(msgpack));
  const integer = Buffer.alloc(9, 0xcf);
  integer.writeBigUInt64BE(BigInt(value), 1);
  return integer;
}
function frame(kind, payload, number = 0) {
  const padding = Buffer.alloc(-payload.length & 7);
  return Buffer.concat([pack(payload.length, kind, number, 0), payload, padding]); // without a checksum
}
const helloFrame = () => {
  const hello = { version: 1, name: 'sink.mjs', hub: me.hub, address: me.address };
  return frame(wire.HELLO, Buffer.concat([Buffer.from('ECHOIC\r\n'), msgpack(hello)]));
};
const countFrame = ({ session, received }) => frame(wire.ACKS, pack(session, received));

// --- Sessions (6.2) ---

class Neighbour {
  socket = null; // while there is a connection
  [dialler, address] = ['', '']; // who made it, and where this hub dialled
  [received, told] = [0n, 0n];
  untold = []; // what was sent and not confirmed
  [frames, bytes] = [0, 0]; // that arrived since a count was sent
  [formats, bindings, leaving] = [new Map(), new Map(), false];

  constructor(hello, session) {
    Object.assign(this, { hub: hello.hub, home: hello.address, session });
  }
  post(data) {
    this.untold.push(data);
    this.socket?.write(data);
  }
  say(type, fields, number = 0, reply = false) {
    this.post(frame(wire.CONTROL, msgpack([number, reply, { type, ...fields }])));
  }
  confirm(count) {
    const confirmed = count - this.told;
    insist(confirmed >= 0n && confirmed <= BigInt(this.untold.length), 'a count that cannot be');
    this.untold.splice(0, Number(confirmed));
    this.told = count;
  }
  tell() {
    if (this.frames > 0) this.socket?.write(countFrame(this));
    [this.frames, this.bytes] = [0, 0];
  }
}

/** Sends a request and resolves to the reply. */
function ask(neighbour, type, fields) {
  const number = ++lastRequest;
  neighbour.say(type, fields, number);
  return new Promise((resolve) => requests.set(number, resolve));
}

function giveUp(neighbour) {
  neighbour.socket?.destroy();
  neighbour.socket = null;
  if (neighbours.get(neighbour.hub) !== neighbour) return;
  neighbours.delete(neighbour.hub);
  if (neighbour !== manager && neighbour.bindings.size > 0) join(); // the manager is dialled and joined again anyway
}

// --- Connections and greetings (6.1) ---

async function* framesOf(socket) {
  const reader = new wire.FrameReader();
  for await (const chunk of socket) {
    reader.push(chunk);
    for (let found; (found = reader.next()); ) yield found;
  }
}

/** Greets over a connection, then takes what comes by it until it ends. `address` is what was dialled, if it was. */
async function converse(socket, address = '') {
  const frames = framesOf(socket);
  const late = setTimeout(() => socket.destroy(), GREETING_MS);
  const receive = async (kind, decode) => {
    const { value } = await frames.next();
    insist(value?.kind === kind, 'the peer hung up, or does not know how to greet');
    return decode(value.payload);
  };
  let [neighbour, hello, resumed] = [];
  try {
    socket.setNoDelay(true);
    if (address) socket.write(helloFrame());
    hello = await receive(wire.HELLO, wire.decodeHello);
    insist(hello.hub && hello.hub !== me.hub, 'no other hub');
    const known = neighbours.get(hello.hub);
    if (address) {
      const count = await receive(wire.ACKS, wire.decodeCount);
      insist(!answering.has(hello.hub) && !known?.socket, 'there is a better connection');
      resumed = known !== undefined && known.session === count.session;
      neighbour = resumed ? known : new Neighbour(hello, randomBytes(8).readBigUInt64LE() | 1n);
      socket.write(countFrame(neighbour));
      if (resumed) neighbour.confirm(count.received);
    } else {
      insist(!(dialling.has(hello.address) && me.hub < hello.hub), 'this hub dials the other');
      insist(!known?.socket || hello.hub <= known.dialler, 'there is a better connection');
      answering.add(hello.hub);
      if (known) known.socket = known.socket?.destroy() && null; // nothing more is taken from it
      socket.write(Buffer.concat([helloFrame(), countFrame(known ?? { session: 0n, received: 0n })]));
      const count = await receive(wire.ACKS, wire.decodeCount);
      insist(count.session !== 0n && neighbours.get(hello.hub) === known, 'no session, or another one by now');
      resumed = known !== undefined && known.session === count.session;
      neighbour = resumed ? known : new Neighbour(hello, count.session);
      if (resumed) neighbour.confirm(count.received);
    }
    if (known && !resumed) giveUp(known);
  } finally {
    clearTimeout(late);
    answering.delete(hello?.hub);
    if (!neighbour) socket.destroy();
  }
  neighbours.set(hello.hub, Object.assign(neighbour, { socket, dialler: address ? me.hub : hello.hub }));
  for (const data of neighbour.untold) socket.write(data);
  if (address) {
    [manager, channelId] = [neighbour, `echoic://${hello.address}/${name}`];
    if (!resumed) join();
  }
  try {
    for await (const found of frames) {
      if (neighbour.socket !== socket) break;
      await take(neighbour, found);
    }
  } catch (error) {
    if (error instanceof wire.WireError) giveUp(neighbour);
    else if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE' && error.syscall === undefined) throw error;
  }
  if (neighbour.socket === socket) neighbour.socket = null;
  if (neighbour.leaving) giveUp(neighbour);
}

/** Keeps a connection with the manager, until it cannot be reached for too long. */
async function dial() {
  const [host, port] = [managerAddress.slice(0, managerAddress.lastIndexOf(':')), managerAddress.split(':').at(-1)];
  dialling.add(managerAddress);
  for (let [attempt, since] = [0, Date.now()]; !ending && Date.now() - since < LOST_MS; attempt++) {
    await sleep(REDIAL_MS[Math.min(attempt, REDIAL_MS.length - 1)]);
    const before = manager?.received;
    await converse(net.connect(Number(port), host.replace(/^\[|\]$/g, '')), managerAddress).catch(() => {});
    if (manager?.received !== before) [attempt, since] = [0, Date.now()];
  }
  end(`no hub answers at ${managerAddress}`);
}

/** Asks for the channel's events, until every source sends them (6.4). */
async function join() {
  const sink = { address: me.address, slow, sinks: ['printer'], hub: me.hub, subscription: me.subscription };
  const { type, kind, reason } = await ask(manager, 'Join', { name, role: 'sink', hub: sink });
  if (type === 'Joined') print({ joined: channelId });
  else if (kind === 'UnreachableError') await sleep(1000).then(join);
  else end(reason);
}

// --- What comes (6.3 to 6.6) ---

async function take(neighbour, { kind, channel: number, payload }) {
  if (kind === wire.ACKS) {
    const { session, received } = wire.decodeCount(payload);
    return session === neighbour.session && neighbour.confirm(received);
  }
  neighbour.received++;
  neighbour.bytes += payload.length;
  if (++neighbour.frames >= TELL_FRAMES || neighbour.bytes >= TELL_BYTES) neighbour.tell();
  const cost = 16 + payload.length + (-payload.length & 7);
  if (kind === wire.FORMATS) await wire.decodeFormats(payload, neighbour.formats);
  else if (kind === wire.CONTROL) heed(neighbour, wire.decodeMessage(payload));
  else if (kind === wire.EVENTS) arrive(neighbour, number, wire.decodeEvents(payload, neighbour.formats), cost);
  else if (kind === wire.CALLS) {
    const call = wire.decodeCalls(payload, neighbour.formats);
    arrive(neighbour, number, call, 0);
    neighbour.post(frame(wire.REPLIES, pack(call.call), number));
  } else if (kind === wire.RUNS) {
    const { runs, events } = wire.decodeRuns(payload, neighbour.formats);
    const share = Math.floor(cost / Math.max(events.length, 1));
    for (const run of runs) arrive(neighbour, run.channel, { ...run, events: events.splice(0, run.events) }, share * run.events);
  }
}

function arrive(neighbour, number, { sequence, source, call, events }, cost) {
  const binding = neighbour.bindings.get(number);
  insist(binding, 'events of a channel that was not bound');
  if (!binding.wanted) return;
  if (sequence >= (positions.get(source) ?? 0n)) {
    reach(source, sequence, sequence, 'events were lost on their way');
    positions.set(source, sequence + BigInt(events.length));
    for (const [i, event] of events.entries()) print({ source, sequence: sequence + BigInt(i), call: call !== undefined, event });
  }
  binding.handled += cost;
  if (binding.handled < GRANT_BYTES) return;
  neighbour.post(frame(wire.CREDITS, pack(number, binding.handled)));
  binding.handled = 0;
}

/** Notes that a source is at `next`, and tells what is missing; `first` is where it begins if it was not heard before. */
function reach(source, first, next, reason) {
  const expected = positions.get(source) ?? first;
  positions.set(source, expected > next ? expected : next);
  if (expected < next) print({ missing: { source, first: expected, last: next - 1n, reason } });
}

function heed(neighbour, { number, reply, message }) {
  const { type } = message;
  if (reply) {
    requests.get(Number(number))?.(message);
    requests.delete(Number(number));
  } else if (type === 'Bind') {
    const wanted = message.channel === channelId && [0n, BigInt(me.subscription)].includes(message.subscription) && !ending;
    neighbour.bindings.set(Number(message.number), { wanted, handled: 0 });
    const { channel, subscription } = message;
    if (!wanted) return neighbour.say('Detach', { channel, address: me.address, subscription });
    for (const [source, next] of message.positions) {
      reach(source, message.since.get(source) ?? next, next, 'the link to the source was lost for too long');
    }
  } else if (type === 'Gap') {
    if (neighbour.bindings.get(Number(message.number))?.wanted) {
      reach(message.source, message.first, message.last + 1n, message.reason);
    }
  } else if (type === 'Cut') {
    neighbour.bindings.delete(Number(message.number));
    if (!ending) message.asked ? join() : end(message.reason);
  } else if (type === 'Farewell') neighbour.leaving = true;
  else if (number) neighbour.say('Refused', { kind: 'RefusedError', reason: 'this is only a sink' }, number, true);
}

// --- Beginning and ending ---

function end(problem = '') {
  if (ending) return;
  ending = true;
  if (problem) process.stderr.write(`${problem}\n`);
  process.exitCode = problem ? 1 : 0;
  manager?.say('Leave', { name, role: 'sink', address: me.address }, ++lastRequest);
  for (const neighbour of neighbours.values()) {
    neighbour.say('Farewell', {});
    neighbour.socket?.end();
  }
  setTimeout(() => process.exit(), 500);
}

const server = net.createServer((socket) => void converse(socket).catch(() => {}));
server.listen(Number(listenAt.split(':').at(-1)), listenAt.slice(0, listenAt.lastIndexOf(':')), () => {
  me.address = `${listenAt.slice(0, listenAt.lastIndexOf(':'))}:${server.address().port}`;
  print({ listening: me.address, hub: me.hub });
  dial();
});
setInterval(() => neighbours.forEach((neighbour) => neighbour.tell()), TELL_MS);
process.on('SIGTERM', () => end()).on('SIGINT', () => end());
