// The page of one channel: what goes through it, a live view of it, its parameters, what it is, and a place to write
// what shall be derived from it.

import { addressOf, SENT } from './channels.mjs';
import { Editor } from './editor.mjs';
import { make, mark, put } from './elements.mjs';
import { Parameters } from './parameters.mjs';
import { bytesText, count, duration, percent, rate } from './quantities.mjs';
import { Stage } from './stage.mjs';

const AGAIN_MS = 2000;
const shortOf = (id) => id.replace(/^echoic:\/\/[^/]+\//, '');

export function show(root, feed, name) {
  let [page, timer, ended] = [null, 0, false];
  const begin = async () => {
    try {
      const description = await feed.ask({ type: 'Describe', channel: name });
      if (ended) return;
      page?.stop();
      page = new ChannelPage(root, feed, description);
    } catch (refusal) {
      if (ended) return;
      if (!page) root.replaceChildren(absent(name, refusal.message));
      timer = setTimeout(begin, AGAIN_MS);
    }
  };
  const pause = () => page?.stage?.pause();
  root.addEventListener('pause', pause);
  root.addEventListener('back', begin);
  begin();
  return () => {
    ended = true;
    clearTimeout(timer);
    root.removeEventListener('pause', pause);
    root.removeEventListener('back', begin);
    page?.stop();
  };
}

function absent(name, reason) {
  const back = make('a', { href: '#/channels', text: 'All channels' });
  const text = `${reason}. It is shown as soon as it is there.`;
  return make('section', { class: 'empty' }, make('h2', { text: name }), make('p', { text }), make('p', null, back));
}

class ChannelPage {
  constructor(root, feed, description) {
    Object.assign(this, { feed, description });
    document.title = `${description.name} · echoic`;
    const { views, params, may } = description;
    this.stage = views.length ? new Stage(feed, description) : null;
    this.parameters = params.length && may.includes('steer') ? new Parameters(feed, description) : null;
    this.editor = may.includes('derive')
      ? new Editor(feed, description, (made) => (location.hash = addressOf(made.id)))
      : null;
    this.stats = make('div', { class: 'card stats' });
    this.problem = make('p', { class: 'notice bad', role: 'alert', hidden: true });
    root.replaceChildren(
      this.#head(),
      this.problem,
      this.stats,
      make(
        'div',
        { class: 'columns' },
        this.stage?.element ?? waiting(),
        make('div', { class: 'side-column' }, this.parameters?.element, factsOf(description)),
        this.editor?.element,
      ),
    );
    this.unlook = feed.look('channels', (load) => this.#tell(load));
  }

  stop() {
    this.unlook();
    this.stage?.stop();
    this.parameters?.stop();
    this.editor?.stop();
  }

  #head() {
    const { name, channel_type: type, parent, derived_here: own, may } = this.description;
    const drop = make('button', {
      type: 'button',
      class: 'danger',
      text: 'Drop',
      title: 'Forget this derived channel',
      on: { click: () => this.#drop() },
    });
    return make(
      'div',
      { class: 'page-head' },
      make('a', { href: '#/channels', class: 'crumb', text: 'Channels' }),
      make('h1', { text: name }),
      type ? make('span', { class: 'badge', text: type }) : null,
      parent
        ? make(
            'span',
            { class: 'muted' },
            'derived from ',
            make('a', { href: addressOf(parent), text: shortOf(parent) }),
          )
        : null,
      make('div', { class: 'tools' }, own && may.includes('derive') ? drop : null),
    );
  }

  async #drop() {
    try {
      await this.feed.ask({ type: 'Drop', channel: this.description.id });
      location.hash = this.description.parent ? addressOf(this.description.parent) : '#/channels';
    } catch (refusal) {
      this.problem.hidden = false;
      put(this.problem, refusal.message);
    }
  }

  #tell({ channels, derivations }) {
    const { id, name } = this.description;
    const channel = channels.find((each) => each.id === id || each.name === name);
    const derivation = derivations.find((each) => each.id === id || each.name === name);
    const facts = [];
    const add = (value, label, title) => facts.push([value, label, title]);
    if (derivation) {
      add(rate(derivation.in_per_second), 'events in/s');
      add(rate(derivation.out_per_second), 'events out/s');
      add(percent(derivation.passed), 'passed');
      const saved = derivation.bytes_saved;
      add(bytesText(Math.abs(saved)), saved < 0 ? 'more than without' : 'saved at source');
      add(duration(derivation.ns_per_event), 'per event');
      if (derivation.faults) add(count(derivation.faults), 'faults');
    } else if (channel) {
      add(rate(channel.events_per_second), 'events/s');
    }
    if (channel) {
      add(bytesText(channel.bytes_per_second), 'sent/s', SENT);
      add(`${count(channel.sources)} / ${count(channel.sinks)}`, 'sources / sinks');
      add(bytesText(channel.waiting_bytes), 'waiting');
      add(`${count(channel.missed)} / ${count(channel.dropped)}`, 'missed / dropped');
    }
    this.#write(facts);
    const why = Object.entries(derivation?.suspended ?? {}).map(([hub, reason]) => `suspended at ${hub}: ${reason}`);
    if (derivation?.faults && !why.length)
      why.push(`${count(derivation.faults)} events have faulted, the last because ${derivation.fault}`);
    this.problem.hidden = !why.length;
    put(this.problem, why.join('; '));
  }

  #write(facts) {
    if (this.stats.childElementCount !== facts.length) {
      this.stats.replaceChildren(...facts.map(() => make('div', { class: 'stat' }, make('b'), make('span'))));
    }
    facts.forEach(([value, label, title], i) => {
      mark(this.stats.children[i], 'title', title);
      put(this.stats.children[i].firstChild, value);
      put(this.stats.children[i].lastChild, label);
    });
  }
}

/** The card that says what a channel is: how its records lie, and the code that makes it. */
function factsOf({ id, layout, code, spelling, output, parent }) {
  const fact = (term, value) => [make('dt', { text: term }), make('dd', null, value)];
  const exact = (text) => make('code', { text });
  const [head, ...rows] = layout.split('\n');
  const [, record = '', token = ''] = /^\S+ +(.*), token (\w+)$/.exec(head) ?? [];
  const spelled = spelling === 'ecode' ? 'Code, as it runs at the source' : `Code (${spelling})`;
  const listing = (title, kind, text) => [make('h3', { text: title }), make('pre', { class: kind, tabindex: 0, text })];
  return make(
    'section',
    { class: 'card what', 'aria-label': 'What it is' },
    make('h2', { text: 'What it is' }),
    make(
      'div',
      { class: 'card-body' },
      make(
        'dl',
        { class: 'facts' },
        fact('Id', exact(id)),
        parent ? fact('Parent', make('a', { href: addressOf(parent), text: shortOf(parent) })) : null,
        output ? fact('Output', exact(output)) : null,
        record ? fact('Record', record) : null,
        token ? fact('Token', exact(token)) : null,
      ),
      rows.length ? listing('Layout', 'code layout', rows.join('\n')) : null,
      code ? listing(spelled, 'code', code) : null,
    ),
  );
}

const waiting = () =>
  make(
    'section',
    { class: 'card' },
    make('p', { class: 'card-body muted', text: 'Nobody has said yet what type the events of this channel have.' }),
  );
