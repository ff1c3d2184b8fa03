// The page of all channels: how much goes through each, who takes part, what waits and what was lost; below each
// channel what is derived from it, and what that keeps from being sent. One table on a wide screen, a card each on a
// phone.

import { isUnnamed, linesOf, Lively } from './channel_lines.mjs';
import { keyed, make, mark, put } from './elements.mjs';
import { bytesText, count, duration, percent, plural, rate } from './quantities.mjs';
import { sparkline } from './sparkline.mjs';

const COLUMNS = ['Channel', 'Type', 'Events/s', '', 'Sent/s', 'Sources', 'Sinks', 'Waiting', 'Missed', 'Dropped'];
const LEFT = new Set(['Channel', 'Type', '']);
const DERIVED_SPAN = 5;
/** What the column of bytes means: a channel that is only derived from sends nothing itself. */
export const SENT = 'Bytes a second that sources send for the channel itself; what is derived from it counts there';
const NAMES = '127.0.0.1:7400'; // where every command looks for names unless it is told otherwise
const PROGRAM = [
  'import echoic',
  '',
  '@echoic.event',
  'class Trade:',
  '    symbol: str',
  '    price: float',
  '',
  'with echoic.Hub() as hub:',
  '    source = hub.create("trades", Trade).source()',
  '    while True:',
  '        source.submit(Trade("IBM", float(input("price: "))))',
];

export const addressOf = (name) => `#/channel/${encodeURIComponent(name)}`;

export function show(root, feed) {
  const filter = make('input', {
    type: 'search',
    placeholder: 'Filter by name or type',
    'aria-label': 'Filter channels',
  });
  const total = make('span', { class: 'muted number' });
  const lost = make('p', { class: 'notice warn', role: 'status', hidden: true });
  const body = make('tbody');
  const head = make(
    'tr',
    null,
    COLUMNS.map((text) => {
      const title = text === 'Sent/s' ? SENT : null;
      return make('th', { class: LEFT.has(text) ? null : 'number', scope: 'col', text, title });
    }),
  );
  const table = make('table', { class: 'data stacks channels' }, make('thead', null, head), body);
  const card = make(
    'section',
    { class: 'card', 'aria-label': 'Channels', hidden: true },
    make('div', { class: 'scroll' }, table),
  );
  const empty = lesson();
  const asking = make('p', { class: 'muted', text: 'Asking all hubs what goes through them …' });
  const nothing = make('p', { class: 'muted', hidden: true, text: 'No channel matches the filter.' });
  root.append(
    make(
      'div',
      { class: 'page-head' },
      make('h1', { text: 'Channels' }),
      total,
      make('div', { class: 'tools' }, filter),
    ),
    lost,
    asking,
    card,
    nothing,
    empty,
  );
  const unnamed = make('button', {
    type: 'button',
    text: 'Unnamed too',
    title: 'Also show derivations without a name, such as those that draw pictures',
    'aria-pressed': 'false',
  });
  filter.before(unnamed);
  const lively = new Lively();
  let load = null;
  const update = () => {
    if (!load) return;
    const all = unnamed.getAttribute('aria-pressed') === 'true';
    const known = linesOf(load).filter((line) => !lively.isIdle(line));
    const wanted = filter.value.trim().toLowerCase();
    const lines = known.filter((line) => (all || !isUnnamed(line)) && matches(line, wanted));
    keyed(body, lines, (line) => line.key, create, renew);
    asking.hidden = true;
    card.hidden = lines.length === 0;
    empty.tell(load.names);
    empty.hidden = load.channels.length > 0;
    nothing.hidden = lines.length > 0 || !load.channels.length;
    const hidden = known.filter(isUnnamed).length;
    const derived = known.filter((line) => line.parent).length - hidden;
    const parts = [plural(known.length - derived - hidden, 'channel'), derived && `${count(derived)} derived`];
    put(total, [...parts, hidden && `${count(hidden)} without a name`].filter(Boolean).join(', '));
    unnamed.hidden = !hidden;
    lost.hidden = !load.lost;
    put(lost, load.lost ? `The name server is not reached: ${load.lost}. What was known is shown.` : '');
  };
  filter.addEventListener('input', update);
  unnamed.addEventListener('click', () => {
    mark(unnamed, 'aria-pressed', String(unnamed.getAttribute('aria-pressed') !== 'true'));
    update();
  });
  return feed.look('channels', (told) => {
    load = told;
    lively.take(told.derivations);
    update();
  });
}

const matches = ({ name, parent, channel }, wanted) =>
  [name, parent, channel?.type].some((text) => text?.toLowerCase().includes(wanted));

function create({ id, name, parent, depth }) {
  const cell = (part, label, kind = 'number') => make('td', { class: kind, 'data-part': part, 'data-label': label });
  const link = make('a', { href: addressOf(parent ? id : name), text: name });
  const row = make('tr', { class: parent ? 'derived' : null, 'data-channel': name });
  row.spark = sparkline(`events a second of ${name}, the last minute`);
  const kind = make('td', { 'data-part': 'type', class: parent ? 'wide' : null });
  row.append(
    make(
      'td',
      { class: 'name wide' },
      depth ? make('span', { class: 'branch', 'aria-hidden': true, text: '↳' }) : null,
      link,
    ),
    kind,
  );
  row.append(cell('events', 'events/s'), make('td', { class: 'sparks' }, row.spark), cell('bytes', 'sent/s'));
  if (parent) row.append(make('td', { class: 'wide', colspan: DERIVED_SPAN, 'data-part': 'effect' }));
  else for (const part of ['sources', 'sinks', 'waiting', 'missed', 'dropped']) row.append(cell(part, part));
  if (depth > 1) row.firstChild.firstChild.textContent = '\u00a0\u00a0'.repeat(depth - 1) + '↳';
  return row;
}

function renew(row, line) {
  const { channel, derivation, parent } = line;
  const tell = (part, text) => put(row.querySelector(`[data-part=${part}]`), text);
  const events = derivation ? derivation.out_per_second : channel.events_per_second;
  row.spark.add(events);
  tell('events', rate(events));
  tell('bytes', channel ? bytesText(channel.bytes_per_second) : '–');
  if (parent) return renewDerived(row, line);
  tell('type', channel.type || '–');
  tell('sources', count(channel.sources));
  tell('sinks', count(channel.sinks));
  tell('waiting', channel.waiting_bytes ? `${bytesText(channel.waiting_bytes)}${lagOf(channel)}` : '0');
  for (const part of ['missed', 'dropped']) {
    tell(part, count(channel[part]));
    mark(row.querySelector(`[data-part=${part}]`), 'data-alarm', channel[part] > 0);
  }
}

const lagOf = ({ lag_seconds: lag }) => (lag === null ? ', stuck' : lag ? `, ${duration(lag * 1e9)}` : '');

function renewDerived(row, { channel, derivation, parent }) {
  const facts = derivation ? effectOf(derivation) : [];
  if (channel?.sinks === 0 && !derivation?.in_per_second) facts.unshift({ key: 'idle', text: 'nobody listens' });
  const effect = row.querySelector('[data-part=effect]');
  const make1 = ({ badge, strong, title }) =>
    make('span', { class: badge ? `badge ${badge}` : `fact number${strong ? ' strong' : ''}`, title });
  keyed(
    effect,
    facts,
    (fact) => fact.key,
    make1,
    (element, fact) => put(element, fact.text),
  );
  const place = derivation ? `, runs at the ${derivation.runs_at}` : '';
  put(row.querySelector('[data-part=type]'), `from ${parent.replace(/^echoic:\/\/[^/]+\//, '')}${place}`);
}

// What a derivation passes on, spares and takes, and what is wrong with it.
function effectOf({ passed, bytes_saved, saved_per_second, ns_per_event, faults, fault, suspended }) {
  const facts = [
    { key: 'passed', text: `${percent(passed)} passed` },
    {
      key: 'saved',
      text: bytes_saved < 0 ? `${bytesText(-bytes_saved)} more than without` : `${bytesText(bytes_saved)} saved`,
      strong: bytes_saved > 0,
    },
    { key: 'rate', text: `${bytesText(saved_per_second)}/s` },
    { key: 'cost', text: `${duration(ns_per_event)}/event` },
  ];
  if (faults) facts.push({ key: 'faults', text: plural(faults, 'fault'), badge: 'warn', title: fault });
  for (const [hub, why] of Object.entries(suspended)) {
    facts.push({ key: `suspended ${hub}`, text: `suspended: ${why}`, badge: 'bad', title: `at ${hub}` });
  }
  return facts;
}

// What to do when there is nothing: lines that work as they are, with the name server that this viewer asks.
function lesson() {
  const shell = make('pre', { class: 'code' });
  const program = make('pre', { class: 'code' });
  const text = 'Every channel that the name server knows is shown as soon as a program creates it. In another terminal:';
  const element = make(
    'section',
    { class: 'empty', hidden: true },
    make('h2', { text: 'No channels yet' }),
    make('p', { text }),
    shell,
    make('p', { text: 'or in Python:' }),
    program,
  );
  element.tell = (names) => {
    const [option, argument] = names && names !== NAMES ? [` --names ${names}`, `names="${names}"`] : ['', ''];
    put(shell, `echoic pub trades 'Trade{symbol: str, price: float}' symbol=IBM price=75.5 -r 10${option}`);
    put(program, PROGRAM.join('\n').replace('Hub()', `Hub(${argument || `names="${NAMES}"`})`));
  };
  return element;
}
