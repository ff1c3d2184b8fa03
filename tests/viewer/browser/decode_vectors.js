// What the browser's own engine makes of the golden vectors: an async function of the vectors and the decoder's address.
// Returns a list of what is wrong. Values are spelled as in tests/golden/wire.json; what a hub says to a hub is left out.
async ([golden, address]) => {
  const wire = await import(address);
  const wrong = [];
  let tried = 0;
  const fromHex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  const plain = (_, value) => {
    if (typeof value === 'bigint') return String(value);
    if (value instanceof Uint8Array) return toHex(value);
    if (typeof value === 'number' && !Number.isFinite(value)) return String(value).replace('Infinity', 'inf').toLowerCase();
    return value;
  };
  const spelled = (value) => JSON.stringify(value, plain);
  const same = (what, found, expected) => {
    tried++;
    if (spelled(found) !== spelled(expected)) wrong.push(`${what}: ${spelled(found)} is not ${spelled(expected)}`);
  };
  const refused = (what, act) => {
    tried++;
    try {
      act();
      wrong.push(`${what} was not refused`);
    } catch (error) {
      if (!(error instanceof wire.WireError)) wrong.push(`${what}: ${error.stack}`);
    }
  };
  const formats = new Map();
  for (const { name, bytes, kind, channel, checked, payload } of golden.frames) {
    same(name, wire.decodeFrames(fromHex(bytes)), [{ kind, channel, checked, payload }]);
  }
  for (const { name, descriptor, token } of golden.formats) {
    same(`the token of ${name}`, wire.tokenOf(fromHex(descriptor)), token);
    formats.set(token, wire.parseDescriptor(fromHex(descriptor)));
  }
  for (const { name, token, payload, events } of golden.batches) {
    same(name, wire.decodeBatch(fromHex(payload), formats), { token, events });
  }
  for (const { why, payload } of golden.malformed) refused(why, () => wire.decodeBatch(fromHex(payload), formats));
  for (const { why, bytes } of golden.malformed_frames) refused(why, () => wire.decodeFrames(fromHex(bytes)));
  for (const { why, descriptor } of golden.malformed_formats) refused(why, () => wire.parseDescriptor(fromHex(descriptor)));
  return { wrong, tried };
};
