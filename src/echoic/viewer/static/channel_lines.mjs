// Which lines the table of channels has: each channel, and below it what is derived from it, to any depth, whether
// anybody listens or not. Pure.
//
//     {key, id, name, parent, depth, channel, derivation}      channel: what goes through it, if somebody named it
//                                                              derivation: what it does at the sources, while it runs

const DEPTH_MAX = 8;
const LIVELY_MS = 10_000;
const UNNAMED = /\.[0-9a-f]{8}$/; // the name of what nobody named: pictures of viewers, mostly

const byName = (one, other) => one.name.localeCompare(other.name);

function gather(below, line) {
  const lines = below.get(line.parent);
  if (lines) lines.push(line);
  else below.set(line.parent, [line]);
}

/** The lines for what the viewer tells of all channels. */
export function linesOf({ channels, derivations }) {
  const running = new Map(derivations.map((each) => [each.id, each]));
  const named = new Map(channels.map((each) => [each.id, each]));
  const all = [...new Set([...named.keys(), ...running.keys()])].map((id) => {
    const [channel, derivation] = [named.get(id), running.get(id)];
    const { name } = channel ?? derivation;
    const parent = derivation?.parent || channel?.parent || '';
    return { key: `${parent && 'derived '}${id}`, id, name, parent, channel, derivation };
  });
  all.sort(byName);
  const below = new Map();
  for (const line of all) if (line.parent) gather(below, line);
  const [lines, placed] = [[], new Set()];
  const place = (line, depth) => {
    if (placed.has(line) || depth > DEPTH_MAX) return;
    placed.add(line);
    lines.push({ ...line, depth });
    for (const each of [...(below.get(line.name) ?? []), ...(below.get(line.id) ?? [])]) place(each, depth + 1);
  };
  for (const line of all) if (!line.parent) place(line, 0);
  for (const line of all) place(line, 1); // whose parent nobody knows
  return lines;
}

/** Tells which derivations without a name do something; the others are what is left of pictures that are closed. */
export class Lively {
  #seen = new Map();

  /** Takes what the viewer tells of all derivations, once a second. */
  take(derivations, now = performance.now()) {
    const ids = new Set(derivations.map(({ id }) => id));
    for (const id of this.#seen.keys()) if (!ids.has(id)) this.#seen.delete(id);
    for (const { id, in_per_second: rate } of derivations) if (rate > 0) this.#seen.set(id, now);
    this.now = now;
  }

  /** Whether a line is idle: one without a name that has had no event for a while, and no trouble either. */
  isIdle({ id, name, derivation }) {
    if (!UNNAMED.test(name) || Object.keys(derivation?.suspended ?? {}).length) return false;
    return this.now - (this.#seen.get(id) ?? -Infinity) > LIVELY_MS;
  }
}

/** Whether nobody gave it a name. Such a line is told only when asked for, or when something is wrong with it. */
export const isUnnamed = ({ name, derivation }) =>
  UNNAMED.test(name) && Object.keys(derivation?.suspended ?? {}).length === 0;
