// Who waits for whom, as a picture: processes and tools on a ring, an arrow from who waits to who could let it go on.
//
// Where there is no room for a ring, on a phone or with many processes, they stand in a column and the arrows are arcs at
// its side. The table of processes says the same in words. What can never go on is drawn in the colour of trouble, so a
// deadlock is a ring of that colour.

import { draw, make, put } from './elements.mjs';

const RING_NODES_MAX = 18;
const RING_WIDTH_MIN = 640;
const NODES_MAX = 40;
const LABELS_MAX = 26;
const ROW_PX = 34;
const BOX = { width: 138, height: 36 };
const NOBODY = { key: 'nobody', name: 'nobody', tool: false, nobody: true };

const keyOf = ({ number, name, is_tool }) => (is_tool ? `tool ${name} ${number}` : `process ${number}`);
const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const atomText = ({ atom, arguments: given }) => `${atom}(${given.join(', ')})`;
const LETTER_PX = 6.7;

/** What a wait is about: the message, or what is told or asked. */
export const about = ({ atom, arguments: given }, most = 20) => shortened(given.at(atom.endsWith('-msg') || atom.endsWith('-note') ? 0 : -1) ?? atom, most);

export class WaitsPicture {
  element = make('figure', { class: 'waits' });
  #caption = make('figcaption', { class: 'muted' });
  #place = make('div', { class: 'scroll' });
  #drawn = '';
  #load = null;
  #resized;

  constructor() {
    this.element.append(this.#place, this.#caption);
    this.#resized = new ResizeObserver(() => this.#load && this.update(this.#load));
    this.#resized.observe(this.element);
  }

  close() {
    this.#resized.disconnect();
  }

  /** Draws it, if there is anything else to draw than before. */
  update(load) {
    this.#load = load;
    const width = Math.floor(this.element.clientWidth);
    const told = JSON.stringify([width, load.waits, load.processes.map((each) => [each.number, each.name, each.arguments, each.ready])]);
    if (told === this.#drawn || !width) return;
    this.#drawn = told;
    const { nodes, edges, left } = graphOf(load);
    const ring = width >= RING_WIDTH_MIN && nodes.length <= RING_NODES_MAX;
    put(this.#caption, caption(nodes, edges, left));
    this.#place.replaceChildren(...(nodes.length ? [picture(nodes, edges, ring ? ringPlaces(nodes, width) : columnPlaces(nodes, width))] : []));
  }
}

function caption(nodes, edges, left) {
  if (!edges.length) return 'Nobody waits for anybody: all are about to go on, or wait for time.';
  const more = left ? ` ${left} more are not drawn.` : '';
  return `An arrow leads from who waits to who could let it go on; dashed: that one would have to get there first.${more}`;
}

/** Returns nodes, and edges between them: those of one pair are one, with all their atoms. */
function graphOf({ processes, tools, waits }) {
  const known = new Map();
  for (const each of processes) known.set(`process ${each.number}`, { key: `process ${each.number}`, name: each.name, given: each.arguments.join(', '), number: each.number, hopeless: false });
  const edges = new Map();
  const helped = new Set(waits.filter((wait) => wait.awaited).map((wait) => keyOf(wait.waiter)));
  for (const each of processes) if (each.timed) helped.add(`process ${each.number}`);
  for (const wait of waits) {
    if (!wait.awaited && helped.has(keyOf(wait.waiter))) continue; // one of its alternatives has nobody: no trouble
    const [from, to] = [keyOf(wait.waiter), wait.awaited ? keyOf(wait.awaited) : NOBODY.key];
    for (const party of [wait.waiter, wait.awaited]) {
      if (!party) known.set(NOBODY.key, NOBODY);
      else if (!known.has(keyOf(party))) known.set(keyOf(party), nodeOf(party, tools));
    }
    if (wait.hopeless) known.get(from).hopeless = true;
    const edge = edges.get(`${from}>${to}`) ?? { from, to, waits: [], atOnce: false, hopeless: false };
    edge.waits.push(wait);
    edge.atOnce ||= wait.at_once;
    edge.hopeless ||= wait.hopeless;
    edges.set(`${from}>${to}`, edge);
  }
  const busy = new Set([...edges.values()].flatMap(({ from, to }) => [from, to]));
  const all = ordered([...known.values()].filter((node) => busy.has(node.key)), [...edges.values()]);
  const nodes = all.slice(0, NODES_MAX);
  const kept = new Set(nodes.map((node) => node.key));
  return { nodes, edges: [...edges.values()].filter(({ from, to }) => kept.has(from) && kept.has(to)), left: all.length - nodes.length };
}

export const called = ({ name, arguments: given }) => (given?.length ? `${name}(${given.join(', ')})` : name);

function nodeOf(party, tools) {
  if (!party.is_tool) return { key: keyOf(party), name: party.name, number: party.number, hopeless: false };
  const state = tools.find((each) => each.number === party.number)?.state ?? 'not here';
  return { key: keyOf(party), name: party.name, number: party.number || '?', tool: true, state, hopeless: false };
}

/** Puts those who wait for each other beside each other, so that rings can be seen: from each to the first it waits for. */
function ordered(nodes, edges) {
  const byKey = new Map(nodes.map((node) => [node.key, node]));
  const next = Map.groupBy(edges, (edge) => edge.from);
  const found = [];
  for (const start of [...nodes].sort((one, other) => Number(other.hopeless) - Number(one.hopeless))) {
    let node = start;
    while (node && byKey.delete(node.key)) {
      found.push(node);
      const fewest = (next.get(node.key) ?? []).filter((edge) => byKey.has(edge.to));
      node = byKey.get(fewest.sort((one, other) => (next.get(one.to)?.length ?? 99) - (next.get(other.to)?.length ?? 99))[0]?.to);
    }
  }
  return found;
}

function ringPlaces(nodes, width) {
  const height = Math.max(240, Math.min(520, 90 + nodes.length * 34));
  const wide = Math.min(width, 980);
  const places = new Map(nodes.map((node, index) => {
    const angle = (2 * Math.PI * index) / nodes.length - Math.PI / 2;
    return [node.key, { x: wide / 2 + Math.cos(angle) * (wide / 2 - BOX.width / 2 - 14), y: height / 2 + Math.sin(angle) * (height / 2 - BOX.height / 2 - 12) }];
  }));
  return { width: wide, height, places, box: BOX, ring: true };
}

function columnPlaces(nodes, width) {
  const box = { width: Math.min(210, Math.floor(width * 0.55)), height: 26 };
  const places = new Map(nodes.map((node, index) => [node.key, { x: box.width / 2 + 2, y: 18 + index * ROW_PX }]));
  return { width: Math.max(200, Math.min(width, 520)), height: 12 + nodes.length * ROW_PX, places, box, ring: false };
}

function picture(nodes, edges, layout) {
  const { width, height, places } = layout;
  const arrows = ['plain', 'bad'].map((kind) =>
    draw('marker', { id: `arrow-${kind}`, class: `arrow ${kind}`, viewBox: '0 0 8 8', refX: '7', refY: '4', markerWidth: '7', markerHeight: '7', orient: 'auto' },
      draw('path', { d: 'M0 0.6L8 4L0 7.4z' })));
  const svg = draw('svg', { class: 'waits-picture', width, height, viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': 'who waits for whom' }, draw('defs', {}, arrows));
  const labelled = layout.ring && edges.length <= LABELS_MAX;
  const drawn = edges.map((edge) => arrowOf(edge, places, layout, labelled));
  const lines = drawn.map(([line]) => line);
  const labels = drawn.map(([, label]) => label);
  const boxes = nodes.map((node) => boxOf(node, places.get(node.key), layout.box, edges));
  const highlight = (key) => {
    svg.classList.toggle('choosing', key !== null);
    drawn.forEach((parts, index) => {
      for (const part of parts) part?.classList.toggle('chosen', key !== null && (edges[index].from === key || edges[index].to === key));
    });
    boxes.forEach((box, index) => box.classList.toggle('chosen', key !== null && (nodes[index].key === key || edges.some(({ from, to }) => (from === key && to === nodes[index].key) || (to === key && from === nodes[index].key)))));
  };
  nodes.forEach((node, index) => {
    for (const event of ['mouseenter', 'focus']) boxes[index].addEventListener(event, () => highlight(node.key));
    for (const event of ['mouseleave', 'blur']) boxes[index].addEventListener(event, () => highlight(null));
  });
  svg.append(...lines, ...labels.filter(Boolean), ...boxes); // no line lies over a label
  return svg;
}

function boxOf(node, { x, y }, { width, height }, edges) {
  const waits = edges.filter((edge) => edge.from === node.key).flatMap((edge) => edge.waits.map(atomText));
  const words = `${node.tool ? 'tool ' : ''}${node.name}${node.given ? `(${node.given})` : ''}${node.nobody ? '' : `, ${node.tool ? 'number' : 'process'} ${node.number}`}${node.hopeless ? ', can never go on' : ''}`;
  const title = `${words}${waits.length ? `\nwaits for ${[...new Set(waits)].slice(0, 8).join('\n or ')}` : ''}`;
  const kind = ['box', node.tool && 'tool', node.nobody && 'nobody', node.hopeless && 'hopeless'].filter(Boolean).join(' ');
  const letters = Math.floor((width - 8) / 8.4);
  const small = node.nobody ? '' : node.tool ? `tool ${node.number}, ${node.state}` : node.given || `process ${node.number}`;
  const flat = node.given ? `${node.name}(${node.given})` : node.name;
  const texts = height > 30 && small
    ? [draw('text', { x, y: y - 2, class: 'who', text: shortened(node.name, letters) }), draw('text', { x, y: y + 12, class: 'small', text: shortened(small, Math.floor((width - 8) / 6)) })]
    : [draw('text', { x, y: y + 4, class: 'who', text: shortened(flat, Math.floor((width - 8) / 9.2)) })];
  return draw('g', { class: kind, tabindex: '0', role: 'img', 'aria-label': title },
    draw('title', { text: title }), draw('rect', { x: x - width / 2, y: y - height / 2, width, height, rx: node.tool ? height / 2 : 6 }), texts);
}

function arrowOf(edge, places, { box, ring, width, height }, labelled) {
  const [from, to] = [places.get(edge.from), places.get(edge.to)];
  const kind = edge.hopeless ? 'bad' : 'plain';
  const title = draw('title', { text: [...new Set(edge.waits.map(atomText))].slice(0, 8).join('\n') });
  const shape = ring ? chord(from, to, box, { x: width / 2, y: height / 2 }) : arc(from, to, box, width);
  const line = draw('path', { d: shape.path, 'marker-end': `url(#arrow-${kind})`, class: edge.atOnce ? 'line' : 'line later' });
  return [draw('g', { class: `edge ${kind}` }, title, line), labelled ? labelOf(about(edge.waits[0]), kind, shape) : null];
}

/** What an arrow is about, on a ground of its own: its arrow ends at it and goes on behind it. */
function labelOf(text, kind, { x, y }) {
  const wide = text.length * LETTER_PX + 8;
  return draw('g', { class: `edge ${kind}` },
    draw('rect', { x: round(x - wide / 2), y: round(y - 8), width: round(wide), height: 16, rx: 3, class: 'ground' }),
    draw('text', { x: round(x), y: round(y + 4), class: 'label', text }));
}

/** A line bent to the middle of the ring, so that it passes others, and a little to its right, so that two that wait for
 *  each other have two; it ends at the box's border. */
function chord(from, to, box, centre) {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const length = Math.hypot(dx, dy) || 1;
  const bend = Math.max(14, Math.min(30, length * 0.12));
  const between = { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 };
  const pull = Math.min(0.4, (length / (centre.x + centre.y)) * 0.6);
  const middle = {
    x: between.x + (centre.x - between.x) * pull - (dy / length) * bend,
    y: between.y + (centre.y - between.y) * pull + (dx / length) * bend,
  };
  const [begin, end] = [border(from, middle, box, 0), border(to, middle, box, 3)];
  return { path: `M${begin.x} ${begin.y}Q${middle.x} ${middle.y} ${end.x} ${end.y}`, x: (begin.x + end.x + 2 * middle.x) / 4, y: (begin.y + end.y + 2 * middle.y) / 4 };
}

/** Where the line from a box's centre to a point leaves the box. */
function border(centre, point, box, gap) {
  const [dx, dy] = [point.x - centre.x, point.y - centre.y];
  const share = Math.min((box.width / 2 + gap) / (Math.abs(dx) || 1e-9), (box.height / 2 + gap) / (Math.abs(dy) || 1e-9), 1);
  return { x: round(centre.x + dx * share), y: round(centre.y + dy * share) };
}

/** A half circle at the right of the column; those that go down begin above those that come up. */
function arc(from, to, box, width) {
  const [x, down] = [box.width + 4, to.y > from.y];
  const [begin, end] = [from.y + (down ? 4 : -4), to.y + (down ? -4 : 4)];
  const reach = Math.min(width - x - 8, 22 + Math.abs(to.y - from.y) * 0.45);
  return { path: `M${x} ${begin}C${round(x + reach)} ${begin} ${round(x + reach)} ${end} ${x + 3} ${end}`, x: x + reach, y: (begin + end) / 2 };
}

const round = (number) => Math.round(number * 10) / 10;
