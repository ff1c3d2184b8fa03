// A sink of an echoic channel that prints every event as a line of JSON.
//
//     node sink.mjs echoic://127.0.0.1:7401/trades [address to listen at] [block | drop_oldest | latest | disconnect]
//
// It is a hub as docs/reference/wire-protocol.md describes it (6.10): it greets, resumes sessions over connections that
// break, counts frames, grants credit, answers calls, and knows what it missed. It ends at SIGTERM or SIGINT.

import { randomBytes } from 'node:crypto';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import * as wire from '../src/echoic/viewer/static/decoder.mjs';
import * as messages from './messages.mjs';

const { encodeFrame, encodeMsgpack, encodeNumbers } = messages;
const [channel, listenAt = '127.0.0.1:0', slow = 'block'] = process.argv.slice(2);
const [, managerAddress, name] = /^echoic:\/\/([^/]+)\/(.+)$/.exec(channel ?? '') ?? [];
if (!name) throw new Error('usage: node sink.mjs echoic://HOST:PORT/NAME [HOST:PORT] [SLOW]');

const [TELL_FRAMES, TELL_BYTES, TELL_MS, GRANT_BYTES] = [64, 1 << 20, 100, 4 << 20];
const [GREETING_MS, LOST_MS, REDIAL_MS] = [5000, 20_000, [0, 50, 100, 200, 400, 800]];
const me = { hub: randomBytes(8).toString('hex'), address: '', subscription: 1 };
const neighbours = new Map(); // what is remembered of other hubs, by their `hub`
const answering = new Set(); // hubs that are being greeted as an acceptor
const positions = new Map(); // the number of the next event, by source
const requests = new Map(); // who waits for a reply, by number
let [manager, channelId, ending, lastRequest] = [null, '', false, 0];

const print = (line) => process.stdout.write(`${JSON.stringify(line, plain)}\n`);
function plain(_, value) {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value;
}
function insist(condition, problem) {
  if (!condition) throw new wire.WireError(problem);
}
const parse = (address) => [address.replace(/:\d+$/, ''), Number(/\d+$/.exec(address))]; // host and port
function helloFrame() {
  const hello = { version: 1, name: 'sink.mjs', hub: me.hub, address: me.address };
  return encodeFrame(wire.HELLO, Buffer.concat([Buffer.from('ECHOIC\r\n'), encodeMsgpack(hello)]));
}
const countFrame = ({ session, received }) => encodeFrame(wire.ACKS, encodeNumbers(session, received));

// --- Sessions (6.2) ---

class Neighbour {
  socket = null; // while there is a connection
  received = 0n;
  told = 0n;
  untold = []; // what was sent and not confirmed
  fresh = { frames: 0, bytes: 0 }; // what arrived since a count was sent
  formats = new Map();
  bindings = new Map();

  post(data) {
    this.untold.push(data);
    this.socket?.write(data);
  }
  say(type, fields, number = 0, reply = false) {
    this.post(encodeFrame(wire.CONTROL, encodeMsgpack([number, reply, { type, ...fields }])));
  }
  confirm(count) {
    insist(count >= this.told && count - this.told <= this.untold.length, 'a count that cannot be');
    this.untold.splice(0, Number(count - this.told));
    this.told = count;
  }
  tell() {
    if (this.fresh.frames > 0) this.socket?.write(countFrame(this));
    this.fresh = { frames: 0, bytes: 0 };
  }
  giveUp() {
    this.socket = this.socket?.destroy() && null;
    if (neighbours.get(this.hub) === this) neighbours.delete(this.hub);
    if (this !== manager && this.bindings.size > 0) join(); // with the manager it is joined anyway, once it is back
  }
}

// --- Connections and greetings (6.1) ---

async function* framesOf(socket) {
  const reader = new wire.FrameReader();
  for await (const chunk of socket) {
    reader.push(chunk);
    for (let found; (found = reader.next()); ) yield found;
  }
}

/** Greets over a connection, and returns the neighbour. */
async function greet(socket, frames, dialled) {
  const receive = async (kind, decode) => {
    const { value } = await frames.next();
    insist(value?.kind === kind, 'the peer hung up, or does not know how to greet');
    return decode(value.payload);
  };
  if (dialled) socket.write(helloFrame());
  const { hub, address } = await receive(wire.HELLO, wire.decodeHello);
  insist(hub && hub !== me.hub, 'no other hub');
  const known = neighbours.get(hub);
  if (!dialled) {
    insist(hub !== manager?.hub || hub < me.hub, 'this hub dials the other');
    insist(!known?.socket || hub <= known.dialler, 'there is a better connection');
    answering.add(hub);
    if (known) known.socket = known.socket?.destroy() && null; // nothing more is taken from it
    socket.write(Buffer.concat([helloFrame(), countFrame(known ?? { session: 0n, received: 0n })]));
  }
  const count = await receive(wire.ACKS, messages.decodeCount).finally(() => dialled || answering.delete(hub));
  insist(neighbours.get(hub) === known && !known?.socket && !answering.has(hub), 'there is a better connection');
  insist(dialled || count.session, 'no session');
  const resumed = known !== undefined && known.session === count.session;
  const session = dialled && !resumed ? randomBytes(8).readBigUInt64LE() | 1n : count.session;
  const neighbour = Object.assign(resumed ? known : new Neighbour(), { hub, session });
  if (dialled) socket.write(countFrame(neighbour));
  resumed ? known.confirm(count.received) : known?.giveUp();
  neighbours.set(hub, Object.assign(neighbour, { socket, dialler: dialled ? me.hub : hub }));
  for (const data of neighbour.untold) socket.write(data);
  if (dialled) channelId = `echoic://${address}/${name}`;
  if (dialled || hub === manager?.hub) manager = neighbour;
  if (neighbour === manager && !resumed) join();
  return neighbour;
}

/** Greets over a connection, then takes what comes by it until it ends; tells whether it was greeted. */
async function converse(socket, dialled) {
  const [frames, late] = [framesOf(socket), setTimeout(() => socket.destroy(), GREETING_MS)];
  let neighbour;
  try {
    neighbour = await greet(socket.setNoDelay(true), frames, dialled);
    clearTimeout(late);
    for await (const found of frames) {
      if (neighbour.socket !== socket) break;
      await take(neighbour, found);
    }
  } catch (error) {
    if (error instanceof wire.WireError) neighbour?.giveUp();
    else if (!error.code) throw error; // otherwise the connection broke
  } finally {
    clearTimeout(late);
    socket.destroy();
  }
  if (neighbour?.socket === socket) neighbour.socket = null;
  if (neighbour?.leaving) neighbour.giveUp();
  return neighbour !== undefined;
}

/** Keeps a connection with the manager, until it cannot be reached for too long. */
async function dial() {
  const [host, port] = parse(managerAddress);
  for (let [attempt, seen] = [0, Date.now()]; !ending && Date.now() - seen < LOST_MS; attempt++) {
    await sleep(REDIAL_MS[Math.min(attempt, REDIAL_MS.length - 1)]);
    const met = manager?.socket ?? (await converse(net.connect(port, host.replace(/^\[|\]$/g, '')), true));
    if (met) [attempt, seen] = [0, Date.now()];
  }
  end(`no hub answers at ${managerAddress}`);
}

/** Asks for the channel's events, until every source sends them (6.4). */
async function join() {
  const hub = { address: me.address, slow, sinks: ['printer'], hub: me.hub, subscription: me.subscription };
  manager.say('Join', { name, role: 'sink', hub }, ++lastRequest);
  const { type, kind, reason } = await new Promise((resolve) => requests.set(lastRequest, resolve));
  if (type === 'Joined') print({ joined: channelId });
  else if (kind === 'UnreachableError') await sleep(1000).then(join);
  else end(reason);
}

// --- What comes (6.3 to 6.6) ---

async function take(neighbour, { kind, channel: number, payload }) {
  if (kind === wire.ACKS) {
    const { session, received } = messages.decodeCount(payload);
    return session === neighbour.session && neighbour.confirm(received);
  }
  const { formats, fresh } = neighbour;
  neighbour.received++;
  fresh.bytes += payload.length;
  if (++fresh.frames >= TELL_FRAMES || fresh.bytes >= TELL_BYTES) neighbour.tell();
  const cost = 16 + payload.length + (-payload.length & 7);
  if (kind === wire.FORMATS) wire.decodeFormats(payload, formats);
  else if (kind === wire.CONTROL) heed(neighbour, messages.decodeMessage(payload));
  else if (kind === wire.EVENTS) arrive(neighbour, number, wire.decodeEvents(payload, formats), cost);
  else if (kind === wire.CALLS) {
    const run = messages.decodeCalls(payload, formats);
    arrive(neighbour, number, run, 0);
    neighbour.post(encodeFrame(wire.REPLIES, encodeNumbers(run.call), number));
  } else if (kind === wire.RUNS) {
    const { runs, events } = messages.decodeRuns(payload, formats);
    const share = Math.floor(cost / Math.max(events.length, 1));
    for (const run of runs) {
      arrive(neighbour, run.channel, { ...run, events: events.splice(0, run.events) }, share * run.events);
    }
  }
}

function arrive(neighbour, number, { sequence, source, call, events }, cost) {
  const binding = neighbour.bindings.get(number);
  insist(binding, 'events of a channel that was not bound');
  if (!binding.wanted) return;
  if (sequence >= (positions.get(source) ?? 0n)) {
    reach(source, sequence, sequence, 'events were lost on their way');
    positions.set(source, sequence + BigInt(events.length));
    for (const event of events) print({ source, sequence: sequence++, call: call !== undefined, event });
  }
  if ((binding.handled += cost) < GRANT_BYTES) return;
  neighbour.post(encodeFrame(wire.CREDITS, encodeNumbers(number, binding.handled)));
  binding.handled = 0;
}

/** Notes that a source is at `next`, and tells what is missing from what is expected; at first that is `first`. */
function reach(source, first, next, reason) {
  const expected = positions.get(source) ?? first;
  positions.set(source, expected > next ? expected : next);
  if (expected < next) print({ missing: { source, first: expected, last: next - 1n, reason } });
}

function heed(neighbour, { number, reply, message: { type, ...told } }) {
  const { channel, subscription } = told;
  const binding = neighbour.bindings.get(Number(told.number));
  if (reply) requests.get(Number(number))?.(Object.assign(told, { type }));
  else if (type === 'Bind') {
    const wanted = channel === channelId && [0n, BigInt(me.subscription)].includes(subscription) && !ending;
    neighbour.bindings.set(Number(told.number), { wanted, handled: 0 });
    if (!wanted) return neighbour.say('Detach', { channel, address: me.address, subscription });
    for (const [source, next] of told.positions) reach(source, told.since.get(source) ?? next, next, 'the link broke');
  } else if (type === 'Gap') {
    if (binding?.wanted) reach(told.source, told.first, told.last + 1n, told.reason);
  } else if (type === 'Cut') {
    neighbour.bindings.delete(Number(told.number));
    if (binding?.wanted && !ending) told.asked ? join() : end(told.reason);
  } else if (type === 'Placed') {
    if (!binding?.wanted || told.here) return;
    binding.wanted = false;
    end('its events have yet to be derived, which this sink cannot do'); // 6.11
  } else if (type === 'Farewell') neighbour.leaving = true;
  else if (number) neighbour.say('Refused', { kind: 'RefusedError', reason: 'this is only a sink' }, number, true);
}

// --- Beginning and ending ---

function end(problem = '') {
  if (ending) return;
  [ending, process.exitCode] = [true, problem ? 1 : 0];
  if (problem) process.stderr.write(`${problem}\n`);
  manager?.say('Leave', { name, role: 'sink', address: me.address }, ++lastRequest);
  for (const neighbour of neighbours.values()) neighbour.say('Farewell', {});
  setTimeout(() => process.exit(), TELL_MS);
}

const server = net.createServer((socket) => void converse(socket, false));
server.listen(...parse(listenAt).reverse(), () => {
  me.address = `${parse(listenAt)[0]}:${server.address().port}`;
  print({ listening: me.address, hub: me.hub });
  dial();
});
setInterval(() => neighbours.forEach((neighbour) => neighbour.tell()), TELL_MS);
process.on('SIGTERM', () => end()).on('SIGINT', () => end());
