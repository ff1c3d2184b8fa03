// The last events as a table: one line each, the latest first; the one that is chosen is told in full beside it. Rows
// are added on top and dropped below, nothing is built anew, so that a row can be read and selected while others come.

import { make, mark } from './elements.mjs';
import { BOOL, ENUMERATION, FLOAT, INT, UINT } from './decoder.mjs';
import { outlined, shown } from './values.mjs';

const [ROWS_MAX, COLUMNS_MAX, PER_SECOND] = [50, 12, 10];
const NUMERIC = new Set([INT, UINT, FLOAT]);
const time = new Intl.DateTimeFormat('en-GB', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 1,
});

export function show(place, stage) {
  const table = new EventTable(place);
  stage.watch(
    { type: 'Events', per_second: PER_SECOND },
    { batch: (batch) => table.take(batch), opened: () => table.clear() },
  );
  table.drew = () => stage.drew();
  return { stop: () => table.stop(), pause: (paused) => (table.paused = paused) };
}

class EventTable {
  paused = false;
  #waiting = [];
  #frame = 0;
  #token = '';

  constructor(place) {
    this.head = make('tr');
    this.body = make('tbody');
    this.detail = make('div', { class: 'event-detail', 'aria-live': 'off', 'aria-label': 'The chosen event' });
    const table = make('table', { class: 'data events' }, make('thead', null, this.head), this.body);
    this.hint = make('p', { class: 'muted hint', text: 'No event yet.' });
    place.append(
      make(
        'div',
        { class: 'event-frame' },
        make('div', { class: 'scroll', tabindex: 0, 'aria-label': 'Events' }, table),
        this.detail,
      ),
      this.hint,
    );
    this.body.addEventListener('click', (event) => this.#choose(event.target.closest('tr')));
    this.body.addEventListener('keydown', (event) => this.#step(event));
  }

  clear() {
    this.body.replaceChildren();
    this.#waiting = [];
  }

  stop() {
    cancelAnimationFrame(this.#frame);
  }

  take(batch) {
    if (this.paused || !batch.count) return;
    const events = batch.events(ROWS_MAX);
    const first = batch.sequence + BigInt(batch.count - events.length);
    const at = new Date();
    this.#waiting.push(
      ...events.map((event, i) => ({ event, record: batch.format.record, number: first + BigInt(i), at })),
    );
    this.#waiting.splice(0, Math.max(0, this.#waiting.length - ROWS_MAX));
    this.#columns(batch);
    this.#frame ||= requestAnimationFrame(() => this.#draw());
  }

  #columns({ token, format }) {
    if (token === this.#token) return;
    this.#token = token;
    this.body.replaceChildren();
    this.fields = format.record.fields.slice(0, COLUMNS_MAX);
    this.rest = format.record.fields.slice(COLUMNS_MAX);
    const names = [
      'time',
      ...this.fields.map((field) => field.name),
      ...(this.rest.length ? [`${this.rest.length} more`] : []),
    ];
    this.head.replaceChildren(
      ...names.map((text, i) =>
        make('th', { scope: 'col', text, class: this.#numeric(this.fields[i - 1]) ? 'number' : null }),
      ),
    );
  }

  #numeric = (field) => field && NUMERIC.has(field.kind) && !field.dynamic && !field.dimensions.length;

  #draw() {
    this.#frame = 0;
    this.hint.hidden = true;
    const rows = this.#waiting
      .splice(0)
      .map((one) => this.#row(one))
      .reverse();
    this.body.prepend(...rows);
    while (this.body.childElementCount > ROWS_MAX) this.body.lastElementChild.remove();
    if (!this.body.querySelector('[tabindex="0"]')) mark(this.body.firstElementChild, 'tabindex', 0);
    if (!this.detail.childElementCount) this.#choose(this.body.firstElementChild);
    this.drew();
  }

  #row(one) {
    const cell = (field) => {
      const text = shown(one.event[field.name], field);
      const kind = this.#numeric(field) ? 'number' : field.kind === BOOL || field.kind === ENUMERATION ? '' : 'value';
      return make('td', { class: kind, text, title: text.length > 60 ? text : null });
    };
    const row = make(
      'tr',
      { tabindex: -1 },
      make('td', { class: 'number muted', text: time.format(one.at) }),
      this.fields.map(cell),
      this.rest.length ? make('td', { text: '…' }) : null,
    );
    row.told = one;
    return row;
  }

  #choose(row) {
    if (!row) return;
    for (const other of this.body.querySelectorAll('[aria-selected]')) mark(other, 'aria-selected', null);
    for (const other of this.body.querySelectorAll('[tabindex="0"]')) mark(other, 'tabindex', -1);
    mark(row, 'aria-selected', 'true');
    mark(row, 'tabindex', 0);
    const { event, record, number, at } = row.told;
    const line = ({ name, text, depth }) => {
      const element = make(
        'div',
        { class: 'line' },
        make('span', { class: 'muted', text: `${name}: ` }),
        make('span', { text }),
      );
      element.style.paddingLeft = `${depth * 14}px`;
      return element;
    };
    const title = make('h3', { text: record.name });
    this.detail.replaceChildren(
      title,
      make('p', { class: 'muted number', text: `number ${number} · ${time.format(at)}` }),
      ...outlined(event, record).map(line),
    );
  }

  #step(event) {
    const row = event.target.closest('tr');
    const next = { ArrowDown: row?.nextElementSibling, ArrowUp: row?.previousElementSibling, Enter: row }[event.key];
    if (!next) return;
    event.preventDefault();
    this.#choose(next);
    next.focus();
  }
}
