// The one WebSocket of a tab: questions and answers, what is pushed, and events in binary frames.
//
// The server keeps nothing about a tab that is gone, so everything this tab wants is kept here: which page it looks
// at, which watches it has open and how they were tuned last. When the connection breaks, the feed dials again with
// growing pauses and says all of it again; the pages notice only by the state in the header. A question that was on
// its way when the connection broke is refused, for nobody knows whether it was heard.
//
// What is said and not understood, a frame that is cut or no JSON, ends the connection too: whatever comes after it
// would be guesswork. A few of them in a row, and the feed dials no more until somebody comes back to the page.
//
//     binary   | u32 watch | u32 0 | frame FORMATS or EVENTS | frame | ...            8-byte aligned: columns are views

import { check, WireError } from './bytes.mjs';
import { Batch } from './columns.mjs';
import { decodeFormats, EVENTS, FORMATS } from './decoder.mjs';

const PAUSES_MS = [200, 400, 800, 1500, 3000];
const [MISHEARD_MAX, HEARD_WELL_MS] = [5, 30_000];
const TUNE_MS = 100;
const ANSWER_MS = 20_000;
const ASKED_MAX = 256;
const [HEAD_BYTES, FRAME_BYTES] = [8, 16];
const GOING_AWAY = [1000, 1001, 1012];
const REFUSED = 1008;
const MISHEARD = 4000;
const NONSENSE = 'the viewer said something that is not understood';
const UNREADABLE = [WireError, SyntaxError, RangeError];

/** What the server would not do, and where in the code the mistakes are. */
export class Refusal extends Error {
  constructor(message, mistakes = []) {
    super(message);
    this.mistakes = mistakes;
  }
}

export class Feed {
  #address;
  #socket = null;
  #attempt = 0;
  #number = 0;
  #asked = new Map();
  #listeners = new Map();
  #looking = null;
  #watches = new Map();
  #formats = new Map();
  #redial = 0;
  #gone = false; // the viewer said that it ends
  #misheard = 0; // how often in a row it was not understood
  #misheardAt = 0;
  state = { state: 'waiting', text: 'connecting', detail: '' };

  constructor(address) {
    this.#address = address;
    this.#dial();
    document.addEventListener('visibilitychange', () => !document.hidden && this.#hurry());
    for (const event of ['online', 'focus', 'pageshow']) window.addEventListener(event, () => this.#hurry());
  }

  /** Calls back with every push of a type, and with 'state' when the connection changes; returns how to stop it. */
  listen(type, listener) {
    const listeners = this.#listeners.get(type) ?? new Set();
    this.#listeners.set(type, listeners.add(listener));
    return () => listeners.delete(listener);
  }

  /** Asks; the promise is kept by the answer, or broken by a Refusal. */
  ask(question) {
    return new Promise((resolve, reject) => {
      if (this.#socket?.readyState !== WebSocket.OPEN)
        return reject(new Refusal('there is no connection to the viewer'));
      if (this.#asked.size >= ASKED_MAX) return reject(new Refusal('too many questions are unanswered'));
      const number = ++this.#number;
      const late = setTimeout(
        () => this.#settle(number)?.reject(new Refusal('the viewer has not answered')),
        ANSWER_MS,
      );
      this.#asked.set(number, { resolve, reject, late });
      this.#socket.send(JSON.stringify({ ...question, number }));
    });
  }

  /** Has the viewer tell about a page once a second; returns how to stop it. */
  look(page, listener) {
    const looking = (this.#looking = { page, listener });
    this.#look();
    return () => {
      if (this.#looking !== looking) return;
      this.#looking = null;
      this.#look();
    };
  }

  /** Opens a watch; it is opened again after every interruption, as it was tuned last. */
  watch(channel, view, listener) {
    const number = ++this.#number;
    const watch = { number, channel, view, listener, tuned: null, timer: 0, open: false };
    this.#watches.set(number, watch);
    this.#open(watch);
    return {
      number,
      tune: (values) => this.#tune(watch, values),
      close: () => {
        clearTimeout(watch.timer);
        this.#watches.delete(number);
        if (watch.open) this.ask({ type: 'Close', watch: number }).catch(() => {});
      },
    };
  }

  /** Gives up: nothing is dialled any more. */
  close() {
    clearTimeout(this.#redial);
    this.#address = null;
    this.#socket?.close();
  }

  #dial() {
    if (this.#address === null) return;
    const socket = new WebSocket(this.#address);
    socket.binaryType = 'arraybuffer';
    socket.onopen = () => socket === this.#socket && this.#greet();
    socket.onmessage = ({ data }) => socket === this.#socket && this.#receive(data);
    socket.onclose = ({ code, reason }) => socket === this.#socket && this.#part(code, reason);
    this.#socket = socket;
  }

  #receive(data) {
    try {
      if (typeof data === 'string') this.#hear(JSON.parse(data));
      else this.#take(data);
    } catch (error) {
      if (!UNREADABLE.some((kind) => error instanceof kind)) throw error; // a mistake of the page's own
      this.#mishear(error);
    }
  }

  #mishear(error) {
    if (performance.now() > this.#misheardAt + HEARD_WELL_MS) this.#misheard = 0;
    this.#misheardAt = performance.now();
    this.#attempt = Math.max(this.#attempt, this.#misheard++);
    const socket = this.#socket;
    this.#socket = null; // whatever else it says is not listened to
    socket.close(MISHEARD);
    this.#part(MISHEARD, error.message);
  }

  // Somebody looks again, or the network is back: no reason to wait for the next attempt.
  #hurry() {
    if (this.#socket && this.#socket.readyState !== WebSocket.CLOSED) return;
    clearTimeout(this.#redial);
    this.#dial();
  }

  #greet() {
    this.#attempt = 0;
    this.#gone = false;
    this.#tell('live', 'live');
    if (this.#looking) this.#look();
    for (const watch of this.#watches.values()) this.#open(watch);
  }

  #part(code, reason) {
    this.#formats.clear(); // formats are described once for each connection
    for (const number of [...this.#asked.keys()]) this.#settle(number).reject(new Refusal('the connection was lost'));
    for (const watch of this.#watches.values()) watch.open = false;
    if (this.#address === null) return;
    this.#gone ||= GOING_AWAY.includes(code);
    const ended = this.#gone || this.#attempt >= PAUSES_MS.length;
    const refused = code === REFUSED ? reason || 'the viewer refused this page' : '';
    const tired = code === MISHEARD && this.#misheard >= MISHEARD_MAX;
    const text = refused || (ended ? 'the viewer has ended' : 'reconnecting …');
    if (code === MISHEARD) this.#tell(tired ? 'ended' : 'waiting', NONSENSE, `${NONSENSE}: ${reason}`);
    else this.#tell(ended || refused ? 'ended' : 'waiting', text);
    const pause = PAUSES_MS[Math.min(this.#attempt++, PAUSES_MS.length - 1)];
    if (!tired) this.#redial = setTimeout(() => this.#dial(), pause * (0.75 + Math.random() / 2));
  }

  #tell(state, text, detail = '') {
    this.state = { state, text, detail };
    this.#push('state', this.state);
  }

  #push(type, message) {
    for (const listener of this.#listeners.get(type) ?? []) listener(message);
  }

  #settle(number) {
    const asked = this.#asked.get(number);
    clearTimeout(asked?.late);
    this.#asked.delete(number);
    return asked;
  }

  #hear(message) {
    check(message !== null && typeof message === 'object', 'a message that is not an object');
    if (message.number) {
      const asked = this.#settle(message.number);
      if (message.type === 'Failed') asked?.reject(new Refusal(message.message, message.mistakes));
      else asked?.resolve(message);
      return;
    }
    if (message.type === 'Overview' && message.page === this.#looking?.page) this.#looking.listener(message.load);
    const { listener } = this.#watches.get(message.watch) ?? {};
    if (message.type === 'Lost') listener?.lost?.(message);
    if (message.type === 'Ended') listener?.ended?.(message);
    this.#push(message.type, message);
  }

  #look() {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    this.ask({ type: 'Look', page: this.#looking?.page ?? '' }).catch(() => {});
  }

  async #open(watch) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    const { number, channel, view, listener } = watch;
    try {
      const opened = await this.ask({ type: 'Open', watch: number, channel, view });
      if (!this.#watches.has(number)) return void this.ask({ type: 'Close', watch: number }).catch(() => {});
      watch.open = true;
      listener.opened?.(opened);
      if (watch.tuned) this.#tuneNow(watch);
    } catch (refusal) {
      if (this.#watches.has(number) && this.state.state === 'live') listener.failed?.(refusal);
    }
  }

  // The last values win: a hand that drags makes sixty a second, and the source needs ten.
  #tune(watch, values) {
    watch.tuned = { ...watch.tuned, ...values };
    if (watch.timer) return void (watch.again = true);
    this.#tuneNow(watch);
    const rest = () => {
      watch.timer = watch.again ? setTimeout(rest, TUNE_MS) : 0;
      if (watch.again) this.#tuneNow(watch);
      watch.again = false;
    };
    watch.timer = setTimeout(rest, TUNE_MS);
  }

  #tuneNow(watch) {
    if (!watch.open) return;
    const question = { type: 'Tune', watch: watch.number, values: watch.tuned };
    this.ask(question).catch((refusal) => watch.listener.failed?.(refusal));
  }

  #take(buffer) {
    const head = new DataView(buffer);
    const watch = this.#watches.get(head.getUint32(0, true));
    let at = HEAD_BYTES;
    while (at + FRAME_BYTES <= buffer.byteLength) {
      const [length, kind] = [head.getUint32(at, true), head.getUint8(at + 4)];
      const end = at + FRAME_BYTES + length;
      check(end <= buffer.byteLength, 'a frame that leaves its message');
      const payload = new Uint8Array(buffer, at + FRAME_BYTES, length);
      if (kind === FORMATS) decodeFormats(payload, this.#formats);
      else if (kind === EVENTS && watch) watch.listener.batch?.(new Batch(payload, this.#formats));
      at = end + (-length & 7);
    }
  }
}
