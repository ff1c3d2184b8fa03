// The parameters of a derived channel: a slider for each number, a box for each text. Moving one changes the parameter
// block inside every source, for everybody who hears the channel, so it is told at most ten times a second, and what
// others set appears here too, unless a hand is on that very control.
//
// Nobody says between which bounds a parameter makes sense. They are guessed around its value, and can be changed.

import { make, mark, put } from './elements.mjs';
import { figure } from './quantities.mjs';

const [STEER_MS, ASK_MS, TOUCHED_MS] = [100, 2000, 1500];
const STEPS = 200;

/** The card; `stop()` ends it. */
export class Parameters {
  #feed;
  #id;
  #wanted = {};
  #timer = 0;
  #asking = 0;
  #controls = new Map();

  constructor(feed, description) {
    this.#feed = feed;
    this.#id = description.id;
    this.notice = make('p', { class: 'notice bad', role: 'alert', hidden: true });
    const rows = description.params.map((parameter) => this.#control(parameter));
    this.element = make(
      'section',
      { class: 'card parameters', 'aria-label': 'Parameters' },
      make('h2', { text: 'Parameters' }),
      make(
        'div',
        { class: 'card-body' },
        this.notice,
        rows,
        make('p', {
          class: 'muted small',
          text: 'Changes what the sources send, for everyone who hears this channel.',
        }),
      ),
    );
    this.#asking = setInterval(() => !document.hidden && this.#look(), ASK_MS);
  }

  stop() {
    clearTimeout(this.#timer);
    clearInterval(this.#asking);
  }

  #control(parameter) {
    const { name, kind, shape } = parameter;
    const plain = !shape?.length;
    const make1 =
      plain && (kind === 'number' || kind === 'integer') ? slider : plain && kind === 'boolean' ? toggle : textBox;
    const control = make1(parameter, (value) => {
      control.touched = performance.now();
      this.#steer(name, value);
    });
    this.#controls.set(name, control);
    return control.element;
  }

  // The last value wins.
  #steer(name, value) {
    this.#wanted[name] = value;
    if (this.#timer) return;
    const tell = () => {
      const values = this.#wanted;
      this.#timer = Object.keys(values).length ? setTimeout(tell, STEER_MS) : 0;
      if (!this.#timer) return;
      this.#wanted = {};
      this.#feed.ask({ type: 'Steer', channel: this.#id, values }).then(
        () => this.#tell(''),
        (refusal) => this.#tell(refusal.message),
      );
    };
    tell();
  }

  #tell(text) {
    this.notice.hidden = !text;
    put(this.notice, text);
  }

  async #look() {
    const told = await this.#feed.ask({ type: 'Describe', channel: this.#id }).catch(() => null);
    for (const { name, value } of told?.params ?? []) {
      const control = this.#controls.get(name);
      if (!control || performance.now() < (control.touched ?? 0) + TOUCHED_MS) continue;
      if (!control.element.contains(document.activeElement) || control.value() !== value) control.set(value);
    }
  }
}

function boundsOf(value, integer) {
  const size = Math.abs(value) || 1;
  const power = 10 ** Math.floor(Math.log10(size));
  const far = Math.ceil((2 * size) / power) * power;
  const [low, high] = value < 0 ? [-far, far] : [0, far];
  return integer ? [Math.floor(low), Math.max(Math.ceil(high), 10)] : [low, high];
}

function slider({ name, kind, value }, told) {
  const integer = kind === 'integer';
  const id = `parameter-${name}`;
  const range = make('input', { type: 'range', id, 'data-parameter': name });
  const box = make('input', {
    type: 'number',
    class: 'number',
    step: integer ? 1 : 'any',
    'aria-label': `${name}, value`,
  });
  const bound = (which) =>
    make('input', {
      type: 'number',
      class: 'bound number',
      step: 'any',
      'aria-label': `${name}, ${which} of the slider`,
      title: `The ${which} of the slider`,
    });
  const [low, high] = [bound('least'), bound('greatest')];
  const fit = (number) => {
    const [from, to] = boundsOf(number, integer);
    low.value = Math.min(from, low.value === '' ? from : Number(low.value));
    high.value = Math.max(to, high.value === '' ? to : Number(high.value));
    limit();
  };
  const limit = () => {
    range.min = low.value;
    range.max = high.value;
    range.step = integer ? 1 : Number(((high.value - low.value) / STEPS).toPrecision(2)) || 'any';
  };
  const set = (number) => {
    if (low.value === '' || number < Number(low.value) || number > Number(high.value)) fit(number);
    range.value = number;
    box.value = Number(number.toPrecision(12));
  };
  set(value);
  range.addEventListener('input', () => {
    box.value = range.value;
    told(Number(range.value));
  });
  box.addEventListener('change', () => {
    if (box.value === '' || !Number.isFinite(Number(box.value))) return;
    const number = integer ? Math.round(Number(box.value)) : Number(box.value);
    set(number);
    told(number);
  });
  for (const each of [low, high]) {
    each.addEventListener('change', () => {
      limit();
      range.value = box.value;
    });
  }
  const element = make(
    'div',
    { class: 'parameter' },
    make('div', { class: 'parameter-head' }, make('label', { for: id, text: name }), box),
    make('div', { class: 'parameter-range' }, low, range, high),
  );
  return { element, set, value: () => Number(box.value) };
}

function toggle({ name, value }, told) {
  const box = make('input', { type: 'checkbox', checked: value, 'data-parameter': name });
  box.addEventListener('change', () => told(box.checked));
  const set = (truth) => (box.checked = truth);
  return {
    element: make('div', { class: 'parameter' }, make('label', null, box, ` ${name}`)),
    set,
    value: () => box.checked,
  };
}

function textBox({ name, kind, value, shape }, told) {
  const array = Boolean(shape?.length);
  const id = `parameter-${name}`;
  const box = make('input', { id, type: 'text', 'data-parameter': name, spellcheck: 'false' });
  const spelled = (one) =>
    array
      ? one
          .flat(Infinity)
          .map((item) => (typeof item === 'number' ? figure(item) : String(item)))
          .join(' ')
      : String(one);
  const read = () => {
    if (!array) return box.value;
    return box.value
      .split(/[\s,]+/)
      .filter(Boolean)
      .map((item) => (kind === 'text' ? item : Number(item)));
  };
  box.value = spelled(value);
  mark(box, 'title', array ? `${shape.join(' × ')} values, with spaces between` : null);
  box.addEventListener(array ? 'change' : 'input', () => told(read()));
  const set = (one) => {
    if (box.value !== spelled(one)) box.value = spelled(one);
  };
  return {
    element: make(
      'div',
      { class: 'parameter' },
      make('div', { class: 'parameter-head' }, make('label', { for: id, text: name })),
      box,
    ),
    set,
    value: read,
  };
}
