// Buses: scripts that run here with their tools. What each process waits for and who could help it, what tools have said,
// and what happened last, as a sequence diagram.

import { keyed, make, mark, put } from './elements.mjs';
import { named, pausable } from './pausing.mjs';
import { bytesText, count, rate } from './quantities.mjs';
import { Sequence } from './sequence.mjs';
import { WaitsPicture, about, called } from './waits_picture.mjs';

const STATES = { ready: 'good', blocked: 'warn', unconnected: 'quiet', unreachable: 'bad', killed: 'bad', disconnected: 'quiet', terminated: 'quiet' };
const HOPELESS_SHOWN_MAX = 8;
/** Figures with what they count; warnings are those of the run and those of the check before it, as in their card. */
const STATS = [
  ({ statistics }) => [statistics.steps, 'step', 'steps'],
  ({ steps_per_second }) => [steps_per_second, 'steps/s'],
  ({ statistics }) => [statistics.handshakes, 'handshake', 'handshakes'],
  ({ statistics }) => [statistics.processes, 'process', 'processes'],
  ({ statistics }) => [statistics.tools, 'tool', 'tools'],
  ({ statistics, reference_bytes }) => [statistics.references, statistics.references ? `by reference, ${bytesText(reference_bytes)}` : 'by reference'],
  ({ statistics }) => [statistics.notes_dropped, 'note lost', 'notes lost'],
  ({ statistics, checks }) => [statistics.warned + checks.length, 'warning', 'warnings'],
];

export function show(root, feed) {
  const tabs = make('nav', { class: 'segments tabs', 'aria-label': 'Buses' });
  const view = new BusView();
  const empty = teaching();
  const more = make('span', { class: 'muted' });
  let [last, kept] = [null, null];
  empty.hidden = view.element.hidden = true;
  const looking = pausable(root, feed, 'bus', update);
  const moved = () => last && update(last);
  window.addEventListener('hashchange', moved);
  root.append(make('div', { class: 'page-head' }, make('h1', { text: 'Bus' }), tabs, more, make('div', { class: 'tools' }, looking.button)), empty, view.element);

  function update(load) {
    last = load;
    const chosen = chosenOf(load.buses, kept);
    const buses = chosen?.gone ? [chosen, ...load.buses] : load.buses;
    kept = chosen ?? null;
    empty.hidden = Boolean(chosen);
    view.element.hidden = !chosen;
    put(more, load.more ? `and ${count(load.more)} more` : '');
    keyed(tabs, buses, ({ bus }) => bus, ({ bus }) => make('a', { class: 'tab', href: `#/bus/${encodeURIComponent(bus)}` }), (tab, each) => {
      put(tab, each.gone ? `${each.bus} (ended)` : each.bus);
      mark(tab, 'aria-current', each === chosen ? 'page' : null);
    });
    if (chosen) view.update(chosen, chosen.gone ? chosen.at : load.at);
    if (chosen && !chosen.gone) kept = { ...chosen, at: load.at };
  }

  return () => {
    looking.stop();
    view.close();
    window.removeEventListener('hashchange', moved);
  };
}

/** The bus of the address, or the first. One that was shown and has ended stays: how it ended is what people look for. */
function chosenOf(buses, kept) {
  const wanted = named() || kept?.bus;
  const found = buses.find(({ bus }) => bus === wanted);
  if (found) return found;
  return kept && kept.bus === wanted ? { ...kept, gone: true } : buses[0];
}

class BusView {
  #facts = make('p', { class: 'muted facts-line' });
  #notices = make('div', { class: 'notices' });
  #stats = STATS.map(() => make('div', { class: 'stat' }, make('b', { text: '–' }), make('span')));
  #picture = new WaitsPicture();
  #sequence = new Sequence();
  #processes = make('tbody');
  #leftOut = make('p', { class: 'muted left-out' });
  #tools = make('tbody');
  #references = make('tbody');
  #words = make('ul', { class: 'words' });
  #body;
  #toolCard;
  #referenceCard;
  #wordCard;
  #bus = '';

  constructor() {
    this.#toolCard = card('Tools', table(TOOL_HEADS, this.#tools));
    this.#referenceCard = card('Values with tools, by reference', table(REFERENCE_HEADS, this.#references));
    this.#wordCard = card('Warnings', make('div', { class: 'card-body' }, this.#words));
    const history = make('section', { class: 'card' }, make('div', { class: 'card-head' }, make('h2', { text: 'What happened last' }), this.#sequence.toolbar), this.#sequence.element);
    this.#body = make('div', {},
      make('section', { class: 'card' }, make('div', { class: 'stats eight' }, this.#stats)),
      card('Who waits for whom', make('div', { class: 'card-body' }, this.#picture.element)),
      history,
      card('Processes', table(PROCESS_HEADS, this.#processes), this.#leftOut),
      this.#toolCard, this.#referenceCard, this.#wordCard);
    this.element = make('div', {}, this.#facts, this.#notices, this.#body);
  }

  close() {
    this.#picture.close();
    this.#sequence.close();
  }

  update(load, at) {
    this.#body.hidden = !load.statistics;
    const bad = new Set(load.waits.filter((each) => each.hopeless).map((each) => each.waiter.number));
    this.#tellNotices(load, bad);
    if (load.bus !== this.#bus) this.#sequence.clear();
    this.#bus = load.bus;
    put(this.#facts, load.statistics ? `${load.script}, for ${age(at - load.started)}, tools connect to ${load.address}, seed ${load.seed}` : '');
    if (!load.statistics) return;
    STATS.forEach((of, index) => {
      const [number, one, many = one] = of(load);
      put(this.#stats[index].firstElementChild, Number.isInteger(number) ? count(number) : rate(number));
      put(this.#stats[index].lastElementChild, number === 1 ? one : many);
    });
    this.#picture.update(load);
    this.#sequence.update(load);
    keyed(this.#processes, load.processes, (each) => each.number, processRow, (row, each) => updateProcess(row, each, bad.has(each.number)));
    showColumn(this.#processes, PROCESS_HEADS.length - 1, load.processes.some((each) => each.notes_queued));
    const left = load.statistics.processes - load.processes.length;
    put(this.#leftOut, left > 0 ? `and ${count(left)} more` : '');
    this.#toolCard.hidden = !load.tools.length;
    keyed(this.#tools, load.tools, (each) => each.number, () => cells(TOOL_HEADS), updateTool);
    showColumn(this.#tools, TOOL_HEADS.length - 1, load.tools.some((each) => each.queued.length || each.unacknowledged.length));
    this.#referenceCard.hidden = !load.references.length;
    keyed(this.#references, load.references, (each) => `${each.owner} ${each.variable}`, () => cells(REFERENCE_HEADS), updateReference);
    const words = [...load.warnings.map((text) => ['while it runs', text]), ...load.checks.map((text) => ['check', text])];
    this.#wordCard.hidden = !words.length;
    keyed(this.#words, words, ([kind, text]) => `${kind} ${text}`, ([kind, text]) => make('li', {}, make('span', { class: 'badge quiet', text: kind }), ` ${text}`), () => {});
  }

  #tellNotices(load, bad) {
    const told = [];
    if (load.trouble) told.push(['bad', load.trouble]);
    if (bad.size) told.push(['bad', ...hopeless(load, bad)]);
    if (load.gone) told.push(['warn', 'This bus has ended. Here is how it was seen last.']);
    else if (load.halted) told.push(['warn', 'The script has ended.']);
    keyed(this.#notices, told, (one) => one.join('\n'), ([kind, text, ...lines]) =>
      make('div', { class: `notice ${kind}`, role: 'status' }, make('p', { text }), lines.length ? make('ul', {}, lines.map((line) => make('li', { text: line }))) : null), () => {});
  }
}

const card = (title, ...parts) => make('section', { class: 'card' }, make('h2', { text: title }), parts);

/** Who can never go on, and what each waits for: a sentence, and a line for each where there are several. */
function hopeless({ processes, waits }, bad) {
  const names = new Map(processes.map((each) => [each.number, called(each)]));
  const reasons = [...Map.groupBy(waits.filter((each) => each.hopeless && !each.waiter.is_tool), ({ waiter }) => waiter.number)].map(([number, those]) => {
    const told = [...new Set(those.map((wait) => awaited(wait, names)))];
    return [names.get(number) ?? those[0].waiter.name, told.slice(0, 3).join(', or ')];
  });
  if (reasons.length === 1) return [`${reasons[0][0]} can never go on: it waits ${reasons[0][1]}.`];
  const more = reasons.length > HOPELESS_SHOWN_MAX ? [`and ${count(reasons.length - HOPELESS_SHOWN_MAX)} more`] : [];
  return [`${count(bad.size)} processes can never go on:`, ...reasons.slice(0, HOPELESS_SHOWN_MAX).map(([who, what]) => `${who} waits ${what}`), ...more];
}

/** What is waited for, and of whom: a message that nobody sends or receives, or one of somebody who waits as well. */
function awaited({ awaited: party, ...wait }, names) {
  const sends = wait.atom.startsWith('snd-');
  const what = `${sends ? 'to send' : 'for'} ${about(wait, 60)}`;
  if (!party) return `${what}, which nobody ${sends ? 'receives' : 'sends'}`;
  const name = (!party.is_tool && names.get(party.number)) || party.name;
  return `${what} ${sends ? 'to' : 'from'} ${name}, which waits too`;
}

/** Heads of tables: `#` is before a number; `=` before what has a line of its own on a phone, `-` before two thirds of one. */
const PROCESS_HEADS = ['=Process', '=Waits for', '#Notes'];
const TOOL_HEADS = ['-Tool', 'State', '#Told', '#Said', '#Queued', '=Said, and not taken yet'];
const REFERENCE_HEADS = ['-Owner', '#Variable', '#Size', '#Age', '=What', '=Held by'];
const WIDTHS = { '#': 'number', '=': 'wide', '-': 'wider' };
const headed = (head) => head.replace(/^[#=-]/, '');

function table(heads, body) {
  const head = heads.map((text) => make('th', { scope: 'col', class: WIDTHS[text[0]] ?? '', text: headed(text) }));
  return make('div', { class: 'scroll' }, make('table', { class: 'data named stacks' }, make('thead', {}, make('tr', {}, head)), body));
}

const cells = (heads) => make('tr', {}, heads.map((head, at) => make('td', { class: WIDTHS[head[0]] ?? '', 'data-label': at ? headed(head) : null })));

/** A column in which nothing stands is left out. */
function showColumn(body, at, filled) {
  for (const row of [...body.parentElement.tHead.rows, ...body.rows]) row.cells[at].hidden = !filled;
}

function processRow() {
  const row = cells(PROCESS_HEADS);
  row.cells[0].append(make('b'), make('span', { class: 'muted' }));
  row.cells[1].append(make('span', { class: 'badge' }), make('ul', { class: 'atoms' }));
  return row;
}

function updateProcess(row, each, hopeless) {
  const [name, waits, notes] = row.cells;
  const [badge, atoms] = waits.children;
  put(name.firstElementChild, called(each));
  put(name.lastElementChild, ` ${each.number}`);
  const state = hopeless ? 'can never go on' : each.ready ? 'about to go on' : each.timed ? 'timer runs' : '';
  put(badge, state);
  mark(badge, 'class', `badge ${hopeless ? 'bad' : each.ready ? 'good' : 'quiet'}`);
  badge.hidden = !state;
  keyed(atoms, each.waiting, (one) => JSON.stringify(one), ({ atom, arguments: given, text, line, file }) =>
    make('li', { title: text }, make('code', { text: given.length ? `${atom}(${given.join(', ')})` : text }), make('span', { class: 'muted', text: ` ${file.split('/').at(-1)}:${line}` })), () => {});
  put(notes, each.notes_queued ? count(each.notes_queued) : '');
  mark(notes, 'title', each.notes.join('\n') || null);
}

function updateTool(row, each) {
  const [name, state, told, said, queued, words] = row.cells;
  put(name, `${each.name} ${each.number}`);
  if (!state.firstElementChild) state.append(make('span'));
  mark(put(state.firstElementChild, each.state), 'class', `badge ${STATES[each.state] ?? 'quiet'}`);
  put(told, count(each.told));
  put(said, count(each.said));
  put(queued, count(each.queued_count));
  const waiting = [...each.queued.map(({ kind, values }) => `${kind} ${values.join(', ')}`), ...each.unacknowledged.map((values) => `not acknowledged: ${values.join(', ')}`)];
  put(words, waiting.join('; '));
}

function updateReference(row, each) {
  const texts = [each.owner, String(each.variable), bytesText(each.bytes), age(each.age_seconds), each.signature, [...each.holders, ...each.in_flight.map((tool) => `on its way to ${tool}`)].join(', ')];
  texts.forEach((text, at) => put(row.cells[at], text));
}

function age(seconds) {
  if (seconds < 120) return `${Math.max(0, Math.round(seconds))} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

function teaching() {
  const script = [
    'process Ping is ( snd-msg(ping) . rec-msg(pong) . tau delay(sec(1)) ) * delta',
    'process Pong is ( rec-msg(ping) . snd-msg(pong) ) * delta',
    'toolbus(Ping, Pong)',
  ].join('\n');
  return make('section', { class: 'empty' },
    make('h2', { text: 'No bus runs on this machine' }),
    make('p', { text: 'A bus runs a script: processes that talk to each other, and to tools. Put this into a file ping.tb:' }),
    make('pre', { class: 'code', text: script }),
    make('p', { text: 'and run it. It appears here by itself: who waits for whom, and each message as it is sent.' }),
    make('pre', { class: 'code', text: 'echoic bus run ping.tb' }));
}
