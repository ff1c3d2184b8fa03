// Pipelines from channels into tables: for each output how fast it reads, how far it is behind, and how long a batch takes.

import { keyed, make, mark, put } from './elements.mjs';
import { HistoryChart } from './history_chart.mjs';
import { dated } from './moments.mjs';
import { pausable } from './pausing.mjs';
import { count, plural, rate } from './quantities.mjs';
import { Views } from './views.mjs';

const SILENT_SECONDS = 15;
const WATERMARK_BEGIN = 1; // Spark's watermark before there is one is the beginning of 1970
const SERIES = [
  { label: 'reads', colour: '--series-1', side: 'left', filled: true, unit: 'rows/s' },
  { label: 'lag', colour: '--series-2', side: 'right', stepped: true, unit: 'events' },
];
const DURATION = [{ label: 'batch', colour: '--series-3', side: 'left', filled: true, stepped: true, unit: 'ms' }];
const STATS = [
  ['rows/s', (each) => rate(each.rows_per_second)],
  ['lag', (each) => count(each.lag)],
  ['batch', (each) => count(each.batch)],
  ['for a batch', (each) => `${count(each.duration_ms)} ms`],
  ['rows read', (each) => count(each.rows_in)],
  ['rows written', (each) => count(each.rows_out)],
  ['too late', (each) => count(each.late)],
  ['in windows', (each) => count(each.state_rows)],
];

export function show(root, feed) {
  const sections = make('div');
  const empty = teaching();
  const summary = make('span', { class: 'muted number' });
  const views = new Views();
  empty.hidden = true;
  const looking = pausable(root, feed, 'pipelines', update);
  root.append(make('div', { class: 'page-head' }, make('h1', { text: 'Pipelines' }), summary, make('div', { class: 'tools' }, looking.button)), empty, sections);

  function update({ pipelines }) {
    const byName = Map.groupBy(pipelines, (each) => each.pipeline);
    empty.hidden = pipelines.length > 0;
    put(summary, pipelines.length ? `${plural(byName.size, 'pipeline')}, ${plural(pipelines.length, 'output')}` : '');
    keyed(sections, [...byName], ([name]) => name, ([name]) =>
      make('section', {}, make('h2', { class: 'pipeline-name', text: name }), make('div', { class: 'cards wide-cards' })),
    (section, [, outputs]) => views.show(section.lastElementChild, outputs, (each) => each.output, () => new OutputView()));
    views.sweep();
  }

  return () => {
    looking.stop();
    views.close();
  };
}

class OutputView {
  #name = make('h2');
  #badge = make('span');
  #watermark = make('span', { class: 'muted number' });
  #stats = STATS.map(([label]) => make('div', { class: 'stat' }, make('b'), make('span', { text: label })));
  #rows;
  #duration;

  constructor() {
    const charts = make('div', { class: 'card-body charts' });
    this.element = make('article', { class: 'card' },
      make('div', { class: 'card-head' }, this.#name, this.#badge, this.#watermark),
      make('div', { class: 'stats' }, this.#stats), charts);
    this.#rows = new HistoryChart(charts, SERIES, { height: 190, describe: 'rows a second and lag over time' });
    this.#duration = new HistoryChart(charts, DURATION, { height: 110, describe: 'duration of batches over time', aligned: true });
  }

  update(each) {
    const silent = each.silent_seconds > SILENT_SECONDS;
    put(this.#name, each.output);
    put(this.#badge, silent ? `nothing for ${Math.round(each.silent_seconds)} s` : each.late ? `${count(each.late)} late` : 'running');
    mark(this.#badge, 'class', `badge ${silent || each.late ? 'warn' : 'good'}`);
    put(this.#watermark, each.watermark > WATERMARK_BEGIN ? `watermark ${dated(each.watermark)}` : '');
    STATS.forEach(([, text], index) => put(this.#stats[index].firstElementChild, text(each)));
    this.#rows.show([each.samples.at, each.samples.rows_per_second, each.samples.lag]);
    this.#duration.show([each.samples.at, each.samples.duration_ms]);
  }

  close() {
    this.#rows.close();
    this.#duration.close();
  }
}

function teaching() {
  return make('section', { class: 'empty' },
    make('h2', { text: 'No pipeline is running' }),
    make('p', { text: 'A pipeline reads channels into tables with Spark, and tells after each batch how it gets on. A file describes it:' }),
    make('pre', { class: 'code', text: 'echoic pipeline run market.toml' }),
    make('p', { text: 'Without a file of your own, the demonstration has one: it publishes trades and weather, and writes them to tables.' }),
    make('pre', { class: 'code', text: 'echoic demo' }));
}
