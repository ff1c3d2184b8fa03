// Where a view of a channel is shown: which of its views, what the viewer derives for it, and what that saves.
//
// A view (chart.mjs, field.mjs, events.mjs) is a function (place, stage) -> {stop, pause(paused)}. It draws into
// `place` and opens what it needs by `stage.watch(view, {batch})`; the stage tells about everything else that happens
// to it: what was lost, that the channel has ended, what went wrong at a source, and the code that runs there for this
// picture.

import { make, mark, put } from './elements.mjs';
import { bytesText, count, duration, percent } from './quantities.mjs';

const NAMES = { Chart: 'Chart', Field: 'Field', Events: 'Events' };
const NOTE_MS = 250;
const MODULES = { Chart: './chart.mjs', Field: './field.mjs', Events: './events.mjs' };

/** The card of the live view. */
export class Stage {
  #view = null;
  #watch = null;
  #turn = 0;
  #before = null;
  #troubled = '';
  #draws = 0;
  #records = 0;
  #noted = 0;
  paused = false;

  constructor(feed, description) {
    Object.assign(this, { feed, description });
    this.#build();
    this.#ends = [
      feed.listen('Saved', (told) => this.#tellSaved(told)),
      feed.listen('Trouble', (told) => this.#tellTrouble(told)),
    ];
    this.choose(description.views.includes('Field') ? 'Field' : description.views[0]);
  }

  #ends;

  /** Opens a watch of this channel; the former one is closed. */
  watch(view, { batch, opened }) {
    this.#watch?.close();
    this.#before = null;
    put(this.saved, '–');
    put(this.cost, '');
    this.#notice('');
    this.#watch = this.feed.watch(this.description.id, view, {
      batch: (events) => {
        this.#records += events.count;
        batch(events);
      },
      opened: (answer) => {
        put(this.code, answer.code || '(nothing: events come as they are)');
        this.#notice('');
        opened?.(answer);
      },
      lost: ({ events, reason }) => put(this.missed, `${count(events)} events missed: ${reason}`),
      ended: ({ reason }) => this.#end(reason),
      failed: (refusal) => this.#notice(refusal.message, 'bad'),
    });
    mark(this.place, 'data-watch', this.#watch.number);
    return this.#watch;
  }

  /** A view tells that it has drawn: noted for whoever measures, but not at every draw. */
  drew() {
    this.#draws++;
    if (performance.now() < this.#noted + NOTE_MS) return;
    this.#noted = performance.now();
    this.#note();
  }

  #note() {
    mark(this.place, 'data-draws', this.#draws);
    mark(this.place, 'data-records', this.#records);
  }

  /** Shows another of the channel's views. */
  async choose(name) {
    const mine = ++this.#turn;
    for (const button of this.tabs.children) mark(button, 'aria-pressed', String(button.dataset.view === name));
    const { show } = await import(MODULES[name]);
    if (mine !== this.#turn) return;
    this.#view?.stop();
    mark(this.place, 'data-view', name.toLowerCase());
    this.place.replaceChildren();
    this.tools.replaceChildren();
    this.#view = show(this.place, this);
    this.#view.pause(this.paused);
  }

  pause(paused = !this.paused) {
    this.paused = paused;
    put(this.button, paused ? 'Go on' : 'Pause');
    mark(this.button, 'aria-pressed', String(paused));
    mark(this.element, 'data-paused', paused);
    this.#view?.pause(paused);
  }

  stop() {
    this.#turn++;
    clearTimeout(this.#again);
    this.#ends.forEach((end) => end());
    this.#view?.stop();
    this.#watch?.close();
  }

  #again = 0;

  // A channel that has ended may come back: its program was started anew.
  #end(reason) {
    this.#notice(`This channel has ended: ${reason}. It is shown again when it is back.`, 'warn');
    const turn = this.#turn;
    const retry = async () => {
      const back = await this.feed.ask({ type: 'Describe', channel: this.description.name }).catch(() => null);
      if (turn !== this.#turn) return;
      if (back) this.element.dispatchEvent(new CustomEvent('back', { bubbles: true }));
      else this.#again = setTimeout(retry, 2000);
    };
    this.#again = setTimeout(retry, 2000);
  }

  #build() {
    const tab = (name) =>
      make('button', { type: 'button', 'data-view': name, text: NAMES[name], on: { click: () => this.choose(name) } });
    this.tabs = make(
      'div',
      { class: 'segments', role: 'group', 'aria-label': 'View' },
      this.description.views.map(tab),
    );
    this.button = make('button', {
      type: 'button',
      text: 'Pause',
      title: 'Pause (space)',
      'aria-pressed': 'false',
      on: { click: () => this.pause() },
    });
    this.tools = make('div', { class: 'toolbar view-tools' });
    this.place = make('div', { class: 'view' });
    this.notice = make('p', { class: 'notice', role: 'status', hidden: true });
    this.saved = make('span', { class: 'strong number', id: 'view-saved', text: '–' });
    this.cost = make('span', { class: 'muted number' });
    this.missed = make('span', { class: 'muted number' });
    this.code = make('pre', {
      class: 'code',
      id: 'source-code',
      tabindex: 0,
      'aria-label': 'E-Code that runs at the source',
    });
    this.element = make(
      'section',
      { class: 'card stage', 'aria-label': 'Live view' },
      make('div', { class: 'card-head' }, this.tabs, this.button, this.tools),
      this.notice,
      this.place,
      make(
        'div',
        { class: 'view-foot' },
        make('span', null, this.saved, ' of bytes never left the source'),
        this.cost,
        this.missed,
      ),
      make(
        'details',
        { class: 'runs' },
        make('summary', { text: 'What runs at the source for this picture' }),
        this.code,
      ),
    );
  }

  #notice(text, kind = '') {
    this.#troubled = '';
    this.notice.hidden = !text;
    this.notice.className = `notice ${kind}`;
    put(this.notice, text);
  }

  #tellTrouble({ watch, message, suspended }) {
    if (watch !== this.#watch?.number || message === this.#troubled) return;
    this.#notice(suspended ? `Suspended at a source: ${message}` : `Faults at a source: ${message}`, 'warn');
    this.#troubled = message;
  }

  // The share of the last second, not of all time: it answers to the hand that zooms. It takes two tellings, and stays
  // as it is while no event comes. Single small events can become larger by what is sent of them.
  #tellSaved({ watches }) {
    this.#note();
    const load = watches?.[this.#watch?.number];
    if (!load) return;
    const [before, at] = [this.#before, performance.now()];
    if (load.bytes_in === before?.load.bytes_in) return;
    this.#before = { load, at };
    if (!before || load.bytes_in < before.load.bytes_in) return; // a source was started anew
    const [taken, kept] = ['bytes_in', 'bytes_saved'].map((name) => load[name] - before.load[name]);
    const each = (bytes) => `${bytesText((1000 * bytes) / (at - before.at))}/s`;
    put(this.saved, percent(Math.max(0, kept / taken)));
    put(
      this.cost,
      `${each(taken - kept)} instead of ${each(taken)} · ${duration(load.ns_per_event)} per event at the source`,
    );
  }
}
