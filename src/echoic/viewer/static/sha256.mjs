// SHA-256 (FIPS 180-4), for the tokens of formats. Browsers have it as `crypto.subtle.digest`, but only as a promise,
// so that every batch behind a format would have to wait its turn, and not at all on a page that came over plain HTTP
// from another machine. A descriptor is a few hundred bytes and is hashed once, so speed does not matter here. It
// protects nothing: a token is a name.

// The first 32 bits of the fractional parts of a root: exact, because a double has 53 bits.
const fraction = (root) => Math.floor((root - Math.floor(root)) * 2 ** 32) | 0;
const PRIMES = [];
for (let n = 2; PRIMES.length < 64; n++) if (PRIMES.every((prime) => n % prime)) PRIMES.push(n);
const CONSTANTS = PRIMES.map((prime) => fraction(Math.cbrt(prime)));
const START = PRIMES.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)));
const turn = (word, bits) => (word >>> bits) | (word << (32 - bits));

/** The 32 bytes of the digest. */
export function sha256(bytes) {
  const padded = new Uint8Array((((bytes.length + 8) >> 6) + 1) << 6);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(bytes.length / 2 ** 29));
  view.setUint32(padded.length - 4, bytes.length << 3);
  const [state, words] = [Int32Array.from(START), new Int32Array(64)];
  for (let at = 0; at < padded.length; at += 64) {
    for (let i = 0; i < 16; i++) words[i] = view.getInt32(at + 4 * i);
    mix(state, words);
  }
  const digest = new Uint8Array(32);
  state.forEach((word, i) => new DataView(digest.buffer).setInt32(4 * i, word));
  return digest;
}

function mix(state, words) {
  for (let i = 16; i < 64; i++) {
    const [early, late] = [words[i - 15], words[i - 2]];
    const first = turn(early, 7) ^ turn(early, 18) ^ (early >>> 3);
    const second = turn(late, 17) ^ turn(late, 19) ^ (late >>> 10);
    words[i] = words[i - 16] + first + words[i - 7] + second;
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let i = 0; i < 64; i++) {
    const chosen = (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g));
    const one = (h + chosen + CONSTANTS[i] + words[i]) | 0;
    const two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, i) => (state[i] += word));
}
