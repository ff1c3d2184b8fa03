// The last steps of a bus as a sequence diagram: a column for each process and tool, a row for each step, the latest below.
//
//     0.012  Buyer(1)    Shop(2)     bank 1
//               |--price-->|            |          two processes met
//               |          |--eval----->|          a process and a tool
//               |          o printf     |          what a process does alone
//
// It runs on by itself while its end is in sight; who scrolls up is left where he is. Rows are kept by the numbers of their
// steps and only moved, so that nothing is built twice.

import { draw, keyed, make, mark, put } from './elements.mjs';
import { count, plural } from './quantities.mjs';

const ROWS_MAX = 200;
const COLUMNS_MAX = 40;
const ROW_PX = 26;
const LINE_PX = 19; // where the arrow lies in its row: below its label, so that a whole row is a whole message
const LEFT_PX = 74;
const COLUMN_PX_MIN = 132;
const NEAR_END_PX = 40;
const TO_TOOL = new Set(['execute', 'snd-eval', 'snd-do', 'snd-cancel', 'snd-ack-event', 'snd-response', 'snd-terminate', 'snd-kill']);
const FROM_TOOL = new Set(['rec-connect', 'rec-disconnect', 'rec-value', 'rec-event', 'rec-request']);

const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const who = ({ name, process }) => `${name} ${process}`;
const textOf = ({ atom, arguments: given }) => (atom === ':=' ? `:= ${given.join(', ')}` : given.length ? `${atom}(${given.join(', ')})` : atom);

/** The other one of a step: a process, a tool by its term, or nobody. */
function other(step) {
  if (step.partner) return `${step.partner_name || 'process'} ${step.partner}`;
  if (!(TO_TOOL.has(step.atom) || FROM_TOOL.has(step.atom)) || !step.arguments.length) return '';
  const tool = step.arguments[step.atom === 'execute' ? step.arguments.length - 1 : 0];
  return shortened(tool.replace(/^([\w-]+)\((\d+)\)$/, 'tool $1 $2'), 40);
}

export class Sequence {
  element = make('div', { class: 'sequence' });
  toolbar;
  #all;
  #filter;
  #told = make('span', { class: 'muted number' });
  #head = make('div', { class: 'sequence-head', 'aria-hidden': 'true' });
  #lives = draw('g', { class: 'lives' });
  #rows = draw('g');
  #svg;
  #columns = [];
  #shape = '';
  #following = true;
  #load = null;
  #resized;

  constructor() {
    const again = () => this.#load && this.update(this.#load);
    this.#all = make('input', { type: 'checkbox', on: { change: again } });
    this.#filter = make('input', { type: 'search', placeholder: 'Filter', 'aria-label': 'Only steps with this text', on: { input: again } });
    this.toolbar = make('div', { class: 'toolbar' }, this.#told, make('label', {}, this.#all, ' also what a process does alone'), this.#filter);
    const arrows = ['met', 'tool'].map((kind) =>
      draw('marker', { id: `seq-${kind}`, class: `arrow ${kind}`, viewBox: '0 0 8 8', refX: '8', refY: '4', markerWidth: '8', markerHeight: '8', orient: 'auto' }, draw('path', { d: 'M0 0.6L8 4L0 7.4z' })));
    this.#svg = draw('svg', { role: 'list', 'aria-label': 'steps, the latest last' }, draw('defs', {}, arrows), this.#lives, this.#rows);
    this.element.append(this.#head, this.#svg);
    mark(this.element, 'tabindex', '0'); // so that the keys of the keyboard scroll it
    this.#resized = new ResizeObserver(again);
    this.#resized.observe(this.element);
  }

  close() {
    this.#resized.disconnect();
  }

  /** Forgets everything: steps of another bus have the same numbers. */
  clear() {
    [this.#columns, this.#shape, this.#following] = [[], '', true];
    this.#rows.replaceChildren();
    this.#rows.keyedChildren = new Map();
  }

  update(load) {
    this.#load = load;
    const wanted = this.#filter.value.trim().toLowerCase();
    const steps = load.steps
      .filter((step) => (this.#all.checked || other(step)) && (!wanted || `${who(step)} ${other(step)} ${textOf(step)}`.toLowerCase().includes(wanted)))
      .slice(-ROWS_MAX);
    const following = this.#following || this.element.scrollHeight - this.element.scrollTop - this.element.clientHeight < NEAR_END_PX;
    this.element.hidden = !steps.length;
    this.#arrange(steps);
    keyed(this.#rows, steps, (step) => step.number, (step) => this.#row(step), () => {});
    [...this.#rows.children].forEach((row, index) => mark(row, 'transform', `translate(0 ${index * ROW_PX + LINE_PX})`));
    put(this.#told, this.#words(load, steps));
    this.#fillUp(steps.length * ROW_PX);
    if (following) this.element.scrollTop = this.element.scrollHeight;
    this.#following = false;
  }

  #words({ steps, missed }, shown) {
    if (!steps.length) return 'Steps are told from the moment somebody looks.';
    if (!shown.length) return `No message among the last ${plural(steps.length, 'step')}`;
    const last = shown.length === steps.length ? `the last ${plural(steps.length, 'step')}` : `${count(shown.length)} of the last ${plural(steps.length, 'step')}`;
    return `${last}${missed ? `, ${count(missed)} went by too fast` : ''}`;
  }

  /** Makes room below the last row, so that at the end of the scroll the first row in sight is a whole one. */
  #fillUp(height) {
    mark(this.#svg, 'height', height);
    const hidden = height - (this.element.clientHeight - this.#head.offsetHeight);
    const filled = hidden > 0 ? Math.ceil(hidden / ROW_PX) * ROW_PX - hidden + height : height;
    mark(this.#svg, 'height', filled);
    for (const line of this.#lives.children) mark(line, 'y2', filled);
  }

  /** Gives a column to everybody who takes part, in the order in which they first did, and draws their lifelines. */
  #arrange(steps) {
    const present = new Set(steps.flatMap((step) => [who(step), other(step)]).filter(Boolean));
    const columns = [...this.#columns.filter((name) => present.has(name)), ...[...present].filter((name) => !this.#columns.includes(name))].slice(0, COLUMNS_MAX);
    const wide = Math.max(COLUMN_PX_MIN, Math.floor((this.element.clientWidth - LEFT_PX - 4) / Math.max(1, columns.length)));
    const width = LEFT_PX + wide * columns.length;
    mark(this.#svg, 'width', width);
    const shape = JSON.stringify([wide, columns]);
    if (shape !== this.#shape) {
      [this.#columns, this.#shape] = [columns, shape];
      this.#wide = wide;
      this.#rows.replaceChildren();
      this.#rows.keyedChildren = new Map();
      const seconds = make('span', { class: 'time', text: 'seconds', title: 'since the bus was started' });
      const heads = columns.map((name) => make('span', { text: name, title: name, class: name.startsWith('tool ') ? 'tool' : '' }));
      this.#head.replaceChildren(seconds, ...heads);
      this.#head.style.width = `${width}px`;
      seconds.style.width = `${LEFT_PX}px`;
      for (const span of heads) span.style.width = `${wide}px`;
      this.#lives.replaceChildren(...columns.map((_, at) => draw('line', { x1: this.#x(at), x2: this.#x(at), y1: 0 })));
    }
  }

  #wide = COLUMN_PX_MIN;
  #x = (at) => LEFT_PX + this.#wide * at + this.#wide / 2;
  #at = (name) => Math.max(0, this.#columns.includes(name) ? this.#columns.indexOf(name) : COLUMNS_MAX - 1);

  #row(step) {
    const [name, partner] = [other(step), step.partner];
    const here = this.#x(this.#at(who(step)));
    const text = textOf(step);
    const place = `${step.file.split('/').at(-1)}:${step.line}${step.partner_line ? ` and ${step.partner_line}` : ''}`;
    const words = `step ${step.number} at ${step.at.toFixed(3)} s: ${who(step)}${name ? (FROM_TOOL.has(step.atom) ? ' from ' : ' to ') + name : ''}: ${text} (${place})`;
    const parts = [draw('title', { text: words }), draw('text', { x: 6, y: 4, class: 'time', text: step.at.toFixed(3) })];
    if (name) {
      const there = this.#x(this.#at(name));
      const [begin, end] = FROM_TOOL.has(step.atom) ? [there, here] : [here, there];
      const label = partner ? step.arguments.join(', ') || step.atom : `${step.atom.replace(/^(snd|rec)-/, '')} ${step.arguments.slice(1).join(', ')}`;
      const room = Math.max(14, Math.floor(Math.abs(end - begin) / 7));
      const kind = partner ? 'met' : 'tool';
      parts.push(
        draw('line', { x1: begin, x2: end, y1: 0, y2: 0, class: kind, 'marker-end': `url(#seq-${kind})` }),
        draw('text', { x: (begin + end) / 2, y: -5, class: 'label', text: shortened(label, room) }));
    } else {
      parts.push(draw('circle', { cx: here, cy: 0, r: 3, class: 'alone' }), draw('text', { x: here + 8, y: 4, class: 'alone', text: shortened(text, Math.floor(this.#wide / 6)) }));
    }
    return draw('g', { class: 'row', role: 'listitem', 'aria-label': words }, draw('rect', { x: 0, y: -LINE_PX, width: 4000, height: ROW_PX }), parts);
  }
}
