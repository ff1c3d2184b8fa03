// Ordered groups: who is in them, how far each member is, and how each packs its messages, with the reasons it gave.
//
// A packing degree that changes by itself is only trusted by who sees why it did. So every decision of a member's policy is
// a mark in the chart of degree against throughput, and a line beside it: from what, to what, measured what, because of what.

import { keyed, make, mark, put } from './elements.mjs';
import { HistoryChart } from './history_chart.mjs';
import { clock } from './moments.mjs';
import { pausable } from './pausing.mjs';
import { bytesText, count, figure, plural, rate } from './quantities.mjs';
import { Views } from './views.mjs';

const SILENT_SECONDS = 5;
const SHOWN_MAX = 40;
const measured = (number) => number || null; // who sends nothing has no degree and no latency, rather than one of 0
const few = (number) => (number >= 1000 ? count(number) : figure(Number(number.toPrecision(3))));

/** What a policy does without deciding anything: most of what the chart shows comes from that. */
const POLICIES = {
  probe: ({ bytes_aim }) => `Policy "probe": a pack leaves as soon as none is under way, and collects until then, so the degree follows the load by itself. What is decided, while there is more to send than the group takes, is how many bytes make a pack full: ${bytesText(bytes_aim)} at present.`,
  nagle: ({ bytes_aim }) => `Policy "nagle": a pack leaves as soon as none is under way, or when it has ${bytesText(bytes_aim)}.`,
  paper: () => 'The paper\'s policy: the degree goes up or down by one, after the throughput of the last intervals.',
  static: () => 'A fixed degree: packs wait until they are full, or until the packing interval is over.',
};
const explained = (member) => (POLICIES[member.packing.match(/^[a-z]+/)?.[0]] ?? (({ packing }) => `Policy "${packing}".`))(member);
const COLUMNS = [
  ['Member', ''], ['View', ''], ['Leader', ''], ['Term', 'number'], ['Delivered', 'number'], ['Lag', 'number'], ['Backlog', 'number'],
  ['Degree', 'number'], ['Events/s', 'number'], ['Latency', 'number'], ['Packing', ''],
];
const SERIES = [
  { label: 'degree', colour: '--series-1', side: 'left', stepped: true, filled: true, unit: 'events a pack' },
  { label: 'throughput', colour: '--series-2', side: 'right', unit: 'events/s' },
];
const LATENCY = [{ label: 'latency', colour: '--series-3', side: 'left', filled: true, unit: 'ms' }];

export function show(root, feed) {
  const sections = make('div');
  const empty = teaching();
  const summary = make('span', { class: 'muted number' });
  const views = new Views();
  empty.hidden = true;
  const looking = pausable(root, feed, 'groups', update);
  root.append(make('div', { class: 'page-head' }, make('h1', { text: 'Groups' }), summary, make('div', { class: 'tools' }, looking.button)), empty, sections);

  function update({ groups }) {
    empty.hidden = groups.length > 0;
    put(summary, groups.length ? plural(groups.length, 'group') : '');
    views.show(sections, groups, (group) => group.group, () => new GroupView());
    views.sweep();
  }

  return () => {
    looking.stop();
    views.close();
  };
}

class GroupView {
  #name = make('span');
  #badges = make('span', { class: 'badges' });
  #troubles = make('div', { class: 'troubles' });
  #members = make('tbody');
  #chooser = make('div', { class: 'segments', role: 'group', 'aria-label': 'Whose packing' });
  #degree;
  #latency;
  #why = make('p', { class: 'why' });
  #decisions = make('ol', { class: 'decisions', 'aria-label': 'Decisions, the latest first' });
  #decided = make('p', { class: 'why' });
  #views = make('ol', { class: 'views' });
  #chosen = null;
  #pinned = false;
  #group = null;
  #shown = [];

  constructor() {
    const chart = make('div', { class: 'charts' });
    this.element = make('section', { class: 'group' },
      make('div', { class: 'card' },
        make('div', { class: 'card-head' }, make('h2', {}, this.#name), this.#badges),
        this.#troubles,
        make('div', { class: 'scroll' }, make('table', { class: 'data stacks' },
          make('thead', {}, make('tr', {}, COLUMNS.map(([text, kind]) => make('th', { class: kind, scope: 'col', text })))), this.#members))),
      make('div', { class: 'card' },
        make('div', { class: 'card-head' }, make('h2', { text: 'Packing, and why it adapts' }), make('div', { class: 'toolbar' }, this.#chooser)),
        make('div', { class: 'card-body packing' }, chart, make('div', { class: 'reasons' }, this.#why, this.#decided, this.#decisions))),
      make('div', { class: 'card' }, make('h2', { text: 'Changes of view' }), make('div', { class: 'card-body' }, this.#views)));
    this.#degree = new HistoryChart(chart, SERIES, { height: 230, onMark: (index) => this.#point(index), describe: 'packing degree and throughput over time' });
    this.#latency = new HistoryChart(chart, LATENCY, { height: 120, describe: 'latency over time', aligned: true });
  }

  update(group) {
    this.#group = group;
    put(this.#name, group.group);
    this.#tellBadges(group);
    this.#tellTroubles(group);
    keyed(this.#members, group.members, (each) => each.channel, memberRow, updateMember);
    this.#chooseByItself(group);
    keyed(this.#chooser, group.members, (each) => each.channel,
      (each) => make('button', { type: 'button', on: { click: () => this.#choose(each.channel) } }),
      (button, each) => mark(put(button, each.member), 'aria-pressed', String(each.channel === this.#chosen)));
    this.#tellPacking();
    this.#tellViews(group);
  }

  close() {
    this.#degree.close();
    this.#latency.close();
  }

  /** Shows who has decided most, until somebody else is chosen. */
  #chooseByItself({ members, decisions }) {
    const decided = (each) => decisions.filter((one) => one.member === each.member).length;
    const current = members.find((each) => each.channel === this.#chosen);
    if (current && (this.#pinned || decided(current))) return;
    const best = members.toSorted((one, other) => decided(other) - decided(one) || other.throughput - one.throughput)[0];
    if (best && (!current || decided(best))) this.#chosen = best.channel;
  }

  #choose(channel) {
    [this.#chosen, this.#pinned] = [channel, true];
    this.update(this.#group);
  }

  #tellBadges({ members }) {
    const primary = members.filter((each) => each.primary && each.silent_seconds <= SILENT_SECONDS);
    const largest = Math.max(0, ...primary.map((each) => each.members.length));
    const whole = primary.length && primary.length === members.length;
    const leaders = [...new Set(primary.map((each) => each.leader).filter(Boolean))];
    const texts = [
      [primary.length ? `primary view of ${largest}` : 'no primary view', whole ? 'good' : primary.length ? 'warn' : 'bad'],
      ...leaders.map((leader) => [`led by ${leader}`, 'quiet']),
      ...[...new Set(members.map((each) => each.engine).filter(Boolean))].map((engine) => [engine, 'quiet']),
    ];
    keyed(this.#badges, texts, ([text]) => text, ([text]) => make('span', { text }), (badge, [, kind]) => mark(badge, 'class', `badge ${kind}`));
  }

  #tellTroubles({ members }) {
    const told = [];
    for (const each of members) {
      if (each.silent_seconds > SILENT_SECONDS) told.push(`${each.member} has said nothing for ${Math.round(each.silent_seconds)} s`);
      if (!each.primary) told.push(`${each.member} is in no primary view: ${each.reason || 'it does not say why'}`);
      if (each.handler_failures) told.push(`${each.member}: handlers have failed ${plural(each.handler_failures, 'time')}`);
    }
    keyed(this.#troubles, told, (text) => text, (text) => make('p', { class: 'notice warn', text }), () => {});
  }

  #tellPacking() {
    const member = this.#group.members.find((each) => each.channel === this.#chosen);
    if (!member) return;
    const { at, degree, throughput, latency_ms } = member.samples;
    const begins = at[0] ?? 0;
    this.#shown = this.#group.decisions.filter((each) => each.member === member.member && each.at >= begins - 1).map((each, index) => ({ ...each, number: index + 1 }));
    this.#degree.show([at, degree.map(measured), throughput], this.#shown.map((each) => ({ at: each.at, text: String(each.number) })));
    this.#latency.show([at, latency_ms.map(measured)]);
    put(this.#why, `${doing(member)} ${explained(member)}`);
    put(this.#decided, decided(member, this.#shown.length));
    keyed(this.#decisions, this.#shown.toReversed().slice(0, SHOWN_MAX), (each) => `${each.at} ${each.degree} ${each.bytes} ${each.reason}`,
      (each) => this.#decisionItem(each), (item, each) => {
        item.number = each.number;
        put(item.firstElementChild.firstElementChild, String(each.number));
      });
  }

  #decisionItem(decision) {
    const inBytes = decision.bytes !== decision.bytes_before;
    const up = inBytes ? decision.bytes > decision.bytes_before : decision.degree >= decision.degree_before;
    const [before, after] = inBytes ? [bytesText(decision.bytes_before), bytesText(decision.bytes)] : [few(decision.degree_before), few(decision.degree)];
    const point = (event) => this.#point(item.number - 1, event.type === 'focus');
    const away = () => this.#point(-1);
    const item = make('li', {}, make('button', { type: 'button', class: 'decision', on: { mouseenter: point, focus: point, mouseleave: away, blur: away } },
      make('span', { class: 'sign' }),
      make('span', { class: 'decided' },
        make('b', { class: up ? 'up' : 'down', text: `${before} ${up ? '↗' : '↘'} ${after}` }),
        make('span', { class: 'muted number', text: ` at ${clock(decision.at)}, ${rate(decision.throughput)} events/s, ${few(decision.latency_ms)} ms` }),
        make('span', { class: 'reason', text: decision.reason || 'no reason was given' }))));
    return item;
  }

  #point(index) {
    this.#degree.point(index);
    for (const item of this.#decisions.children) mark(item, 'data-pointed', item.number === index + 1 ? 'yes' : null);
  }

  #tellViews({ views }) {
    keyed(this.#views, views.toReversed().slice(0, SHOWN_MAX), (each) => `${each.at} ${each.member} ${each.leader} ${each.members}`, (each) =>
      make('li', {}, make('span', { class: 'number muted', text: `${clock(each.at)} ` }), make('b', { text: each.member }),
        each.primary
          ? make('span', { text: ` sees ${each.members.join(', ')}${each.leader ? `, led by ${each.leader}` : ''}` })
          : make('span', { class: 'down', text: ` is in no primary view${each.reason ? `: ${each.reason}` : ''}` })), () => {});
  }
}

function doing({ member, degree, throughput, latency_ms }) {
  if (!degree) return `${member} sends nothing at present.`;
  return `${member} has ${few(degree)} events in a pack, ${rate(throughput)} events/s${latency_ms ? `, and ${few(latency_ms)} ms until an event is back` : ''}.`;
}

/** How often a member has decided: those that can be seen stand below it. */
function decided({ changes, packing_reason }, shown) {
  if (!changes && !shown) return 'It has decided nothing since it joined.';
  const times = `${plural(Math.max(changes, shown), 'decision')} since it joined`;
  return shown ? `${times}:` : `${times}, none in the time shown${packing_reason ? `; the last: ${packing_reason}` : ''}.`;
}

const memberRow = () => make('tr', {}, COLUMNS.map(([text, kind], index) => make('td', { class: index === 0 || index === 1 ? 'wide' : kind, 'data-label': index === 0 ? null : text })));

function updateMember(row, each) {
  const texts = [
    each.member,
    each.primary ? `${each.position}: ${each.members.join(', ')}` : 'none',
    each.leader === each.member ? `${each.leader} (itself)` : each.leader || '–',
    count(each.term),
    count(each.delivered),
    each.lag ? count(each.lag) : '0',
    bytesText(each.backlog_bytes),
    each.degree ? few(each.degree) : '–',
    each.throughput || each.degree ? rate(each.throughput) : '–',
    each.latency_ms ? `${each.latency_ms.toFixed(2)} ms` : '–',
    each.packing,
  ];
  texts.forEach((text, index) => put(row.cells[index], text));
  mark(row, 'data-state', each.silent_seconds > SILENT_SECONDS ? 'silent' : each.primary ? null : 'apart');
}

function teaching() {
  const join = (me) => `echoic group join ledger 'Transfer{account: str, amount: int}' --me ${me} \\\n    --peer n1=127.0.0.1:7411 --peer n2=127.0.0.1:7412 --peer n3=127.0.0.1:7413`;
  return make('section', { class: 'empty' },
    make('h2', { text: 'No ordered group is known here' }),
    make('p', { text: 'Members of a group get all events in one order, whoever sent them. Start three, each in a terminal of its own, and type events into one:' }),
    make('pre', { class: 'code', text: join('n1') }),
    make('pre', { class: 'code', text: `${join('n2')}\n${join('n3')}` }),
    make('pre', { class: 'code', text: 'account=A amount=1' }),
    make('p', { text: 'A program shows its member here by GroupStatusSource(hub, group). What you will see: the view and its leader, how far each member is, and why packing adapts.' }));
}
