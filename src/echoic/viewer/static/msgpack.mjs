// A reader of msgpack, as the wire protocol uses it: for hellos, descriptors and messages. It is written here because
// descriptors must be in canonical form, which no library checks, and because integers and floats must be told apart.

import { check, copyOf, getterOf, textOf, viewOf } from './bytes.mjs';

// The msgpack value that the bytes are. Integers become BigInts and floats numbers, to keep them apart; maps become
// Maps, extensions undefined. With `canonical`, what is not in its shortest form, or a 32-bit float, is refused.
export function readMsgpack(bytes, canonical = false) {
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
