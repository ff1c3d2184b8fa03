// A batch of events as columns: what a chart or a field needs, without an object for each event.
//
// `decodeEvents` makes an object of every record, which is right for a table of the last fifty and wrong for twenty
// thousand a second. Here a batch stays the bytes that came. `column('price')` walks over the records once, with the
// step of a record; `array(i, 'cells')` is a view of the numbers where they lie, without a copy, when they are aligned
// and little-endian, as all that a viewer forwards from such machines is. What lies otherwise is read by the decoder.
//
//     payload  | sequence | source | token count flags | record | record | ...       EVENTS, fixed format
//              0          8        16                  32   ^ field.offset, + i * record.size

import { check, viewOf } from './bytes.mjs';
import { BOOL, ENUMERATION, FLOAT, INT, openBatch, readNumbers, readRecord, UINT } from './decoder.mjs';

const HEAD_BYTES = 16;
const NUMERIC = new Set([INT, UINT, FLOAT, BOOL, ENUMERATION]);
const HOST_LITTLE = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;
const ARRAYS = {
  getInt8: Int8Array,
  getUint8: Uint8Array,
  getInt16: Int16Array,
  getUint16: Uint16Array,
  getInt32: Int32Array,
  getUint32: Uint32Array,
  getBigInt64: BigInt64Array,
  getBigUint64: BigUint64Array,
  getFloat32: Float32Array,
  getFloat64: Float64Array,
};

/** The events of one frame EVENTS, read when asked for. */
export class Batch {
  #payload;
  #places = new Map();

  /** `formats` is a Map from token to format, as decodeFormats fills it. */
  constructor(payload, formats) {
    const { sequence, source } = readNumbers(payload, 0, 'QQ', ['sequence', 'source']);
    this.#payload = payload.subarray(HEAD_BYTES);
    const { token, format, count, first, offset } = openBatch(this.#payload, formats);
    Object.assign(this, { sequence, source, token, format, count, first, offset });
  }

  /** The events as objects, at most the last `most`. */
  events(most = this.count) {
    const found = [];
    for (let i = Math.max(0, this.count - most); i < this.count; i++)
      found.push(readRecord(this.#record(i), this.format));
    return found;
  }

  /** One number of each event, as a Float64Array: `price`, `position.x`, `wind[3]`. */
  column(path) {
    const { field, at } = this.#place(path);
    const column = new Float64Array(this.count);
    const { first, format, offset } = this;
    const size = format.record.size;
    const start = this.#payload.byteOffset + first + at;
    const stepped = !format.record.variable && size % field.size === 0 && start % field.size === 0;
    const view = HOST_LITTLE && format.littleEndian && stepped ? this.#viewOf(field.getter, start) : null;
    if (view && !field.getter.includes('Big')) {
      for (let i = 0, from = 0, step = size / field.size; i < column.length; i++, from += step) column[i] = view[from];
    } else {
      const data = viewOf(this.#payload);
      for (let i = 0; i < column.length; i++)
        column[i] = Number(data[field.getter](first + offset(i) + at, format.littleEndian));
    }
    return field.kind === BOOL ? column.map(truth) : column;
  }

  /** The numbers of an array in event `i`, in one dimension: a view of where they lie if that is possible. */
  array(i, path) {
    const { field, at } = this.#place(path);
    const record = this.#record(i);
    if (field.dynamic) {
      if (this.format.slots !== 0)
        return Float64Array.from(readRecord(record, this.format)[path].flat(Infinity), Number);
      const view = viewOf(record);
      const [start, length] = [
        view.getUint32(at, this.format.littleEndian),
        view.getUint32(at + 4, this.format.littleEndian),
      ];
      return this.#numbers(record, field, start, length * elementsOf(field));
    }
    return this.#numbers(record, field, at, elementsOf(field));
  }

  #numbers(record, field, at, length) {
    check(at + length * field.size <= record.length, 'an array that leaves its record');
    const start = record.byteOffset + at;
    const plain = !field.getter.includes('Big');
    if (plain && field.kind !== BOOL && HOST_LITTLE && this.format.littleEndian && start % field.size === 0) {
      return new ARRAYS[field.getter](record.buffer, start, length);
    }
    const view = viewOf(record);
    const read = (_, i) => Number(view[field.getter](at + i * field.size, this.format.littleEndian));
    const numbers = Float64Array.from({ length }, read);
    return field.kind === BOOL ? numbers.map(truth) : numbers;
  }

  #record(i) {
    return this.#payload.subarray(this.first + this.offset(i), this.first + this.offset(i + 1));
  }

  #viewOf(getter, start) {
    const room = this.#payload.byteOffset + this.#payload.byteLength - start;
    return new ARRAYS[getter](this.#payload.buffer, start, Math.floor(room / ARRAYS[getter].BYTES_PER_ELEMENT));
  }

  /** The field that a path names, and where its value begins in a record. */
  #place(path) {
    const known = this.#places.get(path);
    if (known) return known;
    let [record, at, field] = [this.format.record, 0, null];
    for (const [, name, indices] of path.matchAll(/([A-Za-z_]\w*)((?:\[\d+\])*)\.?/g)) {
      field = check(record?.fields, `\`${path}\` is not in this type`, record.fields).find((one) => one.name === name);
      check(field, `\`${path}\` is not in this type`);
      const constant = [...indices.matchAll(/\d+/g)].map(Number);
      check(
        !constant.length || (!field.dynamic && constant.length === field.dimensions.length),
        `\`${path}\` has other dimensions`,
      );
      at += field.offset + field.size * flatten(constant, field.dimensions);
      record = field.record;
    }
    check(field && NUMERIC.has(field.kind), `\`${path}\` is not a number`);
    const place = { field, at };
    this.#places.set(path, place);
    return place;
  }
}

const truth = (byte) => Number(byte !== 0); // anything but 0 is true
const elementsOf = (field) => field.dimensions.reduce((a, b) => a * b, 1);

function flatten(indices, dimensions) {
  let flat = 0;
  for (const [i, index] of indices.entries()) {
    check(index < dimensions[i], 'an index outside its array');
    flat = flat * dimensions[i] + index;
  }
  return flat;
}
