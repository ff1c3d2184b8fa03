// Where a derived channel is written: E-Code, its parameters, the type that comes out. The compiler of the sources
// checks it while it is written, and says where a mistake is; line and caret are shown as it would print them in a
// terminal.
//
// The code is a plain textarea, with numbers of lines beside it: everything that a keyboard or a screen reader does
// with text works in it.

import { make, mark, put } from './elements.mjs';
import { count } from './quantities.mjs';
import { templatesOf } from './templates.mjs';

const CHECK_MS = 300;
const CODE_MAX = 32_768;
const TAB = '    ';

/** The card; `derived(description)` is called with what was made. */
export class Editor {
  #feed;
  #id;
  #timer = 0;
  #turn = 0;

  constructor(feed, description, derived) {
    this.#feed = feed;
    this.#id = description.id;
    this.derived = derived;
    this.#build(templatesOf(description));
  }

  stop() {
    clearTimeout(this.#timer);
    this.#turn++;
  }

  #build(templates) {
    this.gutter = make('div', { class: 'gutter', 'aria-hidden': true });
    this.code = make('textarea', {
      name: 'code',
      rows: 8,
      spellcheck: 'false',
      autocomplete: 'off',
      autocapitalize: 'off',
      wrap: 'off',
      maxlength: CODE_MAX,
      'aria-label': 'E-Code',
      'aria-describedby': 'mistakes',
    });
    this.params = make('input', {
      name: 'params',
      placeholder: 'low=75.5 lot:int32=100',
      spellcheck: 'false',
      autocomplete: 'off',
    });
    this.output = make('input', {
      name: 'output',
      placeholder: 'as it comes in, or Mean{mean: float}',
      spellcheck: 'false',
      autocomplete: 'off',
    });
    this.name = make('input', {
      name: 'name',
      placeholder: 'chosen for you',
      spellcheck: 'false',
      autocomplete: 'off',
    });
    this.mistakes = make('div', { class: 'mistakes', id: 'mistakes', role: 'status' });
    this.button = make('button', { type: 'submit', class: 'primary', 'data-action': 'derive', text: 'Derive' });
    const check = make('button', {
      type: 'button',
      'data-action': 'check',
      text: 'Check',
      on: { click: () => this.#check() },
    });
    const begin = ({ name, code, params, output }) =>
      make('button', {
        type: 'button',
        class: 'quiet',
        text: name,
        on: { click: () => this.#fill(code, params, output) },
      });
    const field = (label, input) => make('label', { class: 'labelled' }, make('span', { text: label }), input);
    const form = make(
      'form',
      { class: 'card-body editor' },
      make('div', { class: 'code-frame' }, this.gutter, this.code),
      make(
        'div',
        { class: 'editor-fields' },
        field('Parameters', this.params),
        field('Output type', this.output),
        field('Name', this.name),
      ),
      this.mistakes,
      make('div', { class: 'toolbar' }, this.button, check),
    );
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#derive();
    });
    form.addEventListener('input', () => this.#soon());
    this.code.addEventListener('scroll', () => (this.gutter.scrollTop = this.code.scrollTop));
    this.code.addEventListener('keydown', (event) => this.#key(event));
    this.element = make(
      'section',
      { class: 'card', 'aria-label': 'Derive a channel' },
      make(
        'div',
        { class: 'card-head' },
        make('h2', { text: 'Derive a channel' }),
        make('div', { class: 'toolbar templates', role: 'group', 'aria-label': 'Templates' }, templates.map(begin)),
      ),
      form,
    );
    const [first] = templates;
    this.#fill(first.code, first.params, first.output);
  }

  #fill(code, params, output) {
    this.code.value = code;
    this.params.value = params;
    this.output.value = output;
    this.#soon();
  }

  // Enter keeps the indent; a tab stays the key that leaves the field, as it is everywhere else.
  #key(event) {
    if (event.key !== 'Enter' || event.ctrlKey || event.metaKey) {
      if (event.key === 'Enter') this.#derive();
      return;
    }
    const line = this.code.value.slice(0, this.code.selectionStart).split('\n').at(-1);
    const indent = /^\s*/.exec(line)[0] + (line.trimEnd().endsWith('{') ? TAB : '');
    event.preventDefault();
    this.code.setRangeText(`\n${indent}`, this.code.selectionStart, this.code.selectionEnd, 'end');
    this.#soon();
  }

  #soon() {
    this.#number([]);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#check(), CHECK_MS);
  }

  #asked() {
    const texts = { code: this.code.value, params: this.params.value.trim(), output: this.output.value.trim() };
    return { channel: this.#id, ...texts };
  }

  async #check() {
    const mine = ++this.#turn;
    const told = await this.#feed.ask({ type: 'Check', ...this.#asked() }).catch((refusal) => refusal);
    if (mine !== this.#turn) return;
    const { mistakes = [] } = told;
    this.#show(told instanceof Error && !mistakes.length ? [{ message: told.message }] : mistakes, told);
  }

  // What it says stands: a check of before that, or one that is about to begin, would say something else a moment later.
  async #derive() {
    clearTimeout(this.#timer);
    this.#turn++;
    this.button.disabled = true;
    try {
      this.derived(await this.#feed.ask({ type: 'Derive', ...this.#asked(), name: this.name.value.trim() }));
    } catch (refusal) {
      this.#show(refusal.mistakes?.length ? refusal.mistakes : [{ message: refusal.message }], {});
    } finally {
      this.button.disabled = false;
    }
  }

  #show(mistakes, { cost, cost_max: most }) {
    this.#number(mistakes);
    mark(this.code, 'aria-invalid', mistakes.some(({ part }) => part === 'code') ? 'true' : null);
    for (const name of ['params', 'output'])
      mark(this[name], 'aria-invalid', mistakes.some(({ part }) => part === name) ? 'true' : null);
    if (mistakes.length)
      return void this.mistakes.replaceChildren(...mistakes.map((mistake) => this.#mistake(mistake)));
    const text = cost
      ? `Compiles. An event costs at most ${count(cost)} of ${count(most)} units at the source.`
      : 'Compiles.';
    this.mistakes.replaceChildren(make('p', { class: 'fine', text }));
  }

  #mistake({ line, column, message, part = 'code' }) {
    if (!line)
      return make('div', { class: 'mistake', 'data-mistake': true, role: 'alert' }, make('p', { text: message }));
    const source = (part === 'code' ? this.code : this[part]).value.split('\n')[line - 1] ?? '';
    const before = [...source]
      .slice(0, column - 1)
      .map((sign) => (sign === '\t' ? '\t' : ' '))
      .join('');
    const where =
      part === 'code'
        ? `line ${line}, column ${column}`
        : `${part === 'params' ? 'parameters' : 'output type'}, column ${column}`;
    const go = make('button', {
      type: 'button',
      class: 'quiet',
      text: where,
      on: { click: () => this.#go(part, line, column) },
    });
    const caret = make('span', { class: 'caret', text: `${before}^` });
    return make(
      'div',
      { class: 'mistake', 'data-mistake': true },
      make('p', null, go, make('span', { text: message })),
      make('pre', { class: 'code' }, `${source}\n`, caret),
    );
  }

  #go(part, line, column) {
    const target = part === 'code' ? this.code : this[part];
    const at =
      target.value
        .split('\n')
        .slice(0, line - 1)
        .reduce((sum, each) => sum + each.length + 1, 0) +
      column -
      1;
    target.focus();
    target.setSelectionRange(at, at + 1);
  }

  #number(mistakes) {
    const wrong = new Set(mistakes.filter(({ part = 'code' }) => part === 'code').map(({ line }) => line));
    const lines = this.code.value.split('\n').length;
    while (this.gutter.childElementCount > lines) this.gutter.lastElementChild.remove();
    while (this.gutter.childElementCount < lines)
      this.gutter.append(make('span', { text: String(this.gutter.childElementCount + 1) }));
    [...this.gutter.children].forEach((number, i) => mark(number, 'class', wrong.has(i + 1) ? 'wrong' : null));
    put(this.gutter.lastElementChild, String(lines));
    this.gutter.scrollTop = this.code.scrollTop;
  }
}
