// What reading bytes needs everywhere: refusing, looking into, copying, and text. Small, and without an opinion on what
// the bytes mean.

export class WireError extends Error { name = 'WireError'; }

// The value, unless the condition fails: then what is read is refused.
export const check = (condition, refusal, value) => {
  if (!condition) throw new WireError(refusal);
  return value;
};
export const viewOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
export const copyOf = (bytes, start, end) => new Uint8Array(bytes.subarray(start, end));
export const getterOf = (type, size) => `get${size === 8 && type !== 'Float' ? 'Big' : ''}${type}${size * 8}`;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
export function textOf(bytes, start, end) {
  try {
    return utf8.decode(bytes.subarray(start, end));
  } catch {
    throw new WireError('a string is not UTF-8');
  }
}
