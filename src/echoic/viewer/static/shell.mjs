// The frame around the pages: which page is shown, what the header says, and the keys that work everywhere.
//
// A page is a module of its own, imported when it is first shown:
//
//     export function show(root, feed, name) -> stop()
//
// `root` is the empty <main>, `feed` the tab's connection (feed.mjs: look, ask, watch, listen), `name` what stands
// behind the page in the address (`#/channel/trades` -> 'trades'), or ''. `stop` ends what the page began: looks,
// watches, timers. The shell empties the root. A page that can be paused listens for 'pause' on its root (the space
// bar). Its stylesheet: variables and classes of style.css (.page-head .card .cards table.data .badge .empty ...).

import { make, mark, put } from './elements.mjs';
import { Feed } from './feed.mjs';
import { bytesText, percent } from './quantities.mjs';
import { choose, chosen, following } from './theme.mjs';

const PAGES = {
  channels: { module: './channels.mjs', title: 'Channels' },
  channel: { module: './channel.mjs', title: 'Channel', under: 'channels' },
  groups: { module: './groups.mjs', title: 'Groups' },
  bus: { module: './bus.mjs', title: 'Bus' },
  pipelines: { module: './pipelines.mjs', title: 'Pipelines' },
};
const GOES = { c: 'channels', g: 'groups', b: 'bus', p: 'pipelines' };
const PREFIX_MS = 1200;
const THEMES = { auto: ['◐', 'as the system has it'], light: ['☀', 'light'], dark: ['☾', 'dark'] };

const find = (id) => document.getElementById(id);
const main = find('main');
const scheme = location.protocol === 'https:' ? 'wss:' : 'ws:';
const feed = new Feed(`${scheme}//${location.host}/feed`);

// --- Pages ---

let [stop, shown, turn] = [null, '', 0];

// Addresses are typed by people: what is no encoding of a name is the name.
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

async function route() {
  if (location.hash && !location.hash.startsWith('#/')) return; // the skip link
  const [, page = 'channels', ...rest] = location.hash.split('/');
  const { module, title, under } = Object.hasOwn(PAGES, page) ? PAGES[page] : PAGES.channels;
  const name = rest.map(decoded).join('/');
  const address = page === 'channel' ? `${page}/${name}` : page; // what is behind other pages is their own affair
  if (address === shown) return;
  const mine = ++turn;
  shown = address;
  stop?.();
  stop = null;
  main.replaceChildren();
  document.title = `${name || title} · echoic`;
  for (const link of document.querySelectorAll('nav a')) {
    mark(link, 'aria-current', link.dataset.page === (under ?? page) ? 'page' : null);
  }
  const loaded = await import(module).catch(() => null);
  if (mine !== turn) return;
  stop = loaded ? loaded.show(main, feed, name) : sorry(title);
  window.scrollTo(0, 0);
}

function sorry(title) {
  const text = `The page of ${title.toLowerCase()} is not part of this installation. The other pages work.`;
  main.append(make('section', { class: 'empty' }, make('h2', { text: title }), make('p', { text })));
  return null;
}

// --- The header ---

function tellState({ state, text, detail }) {
  mark(find('state'), 'data-state', state);
  mark(find('state'), 'title', detail || text);
  put(find('state').lastElementChild, text);
}

// Derivations of single small events may send more than without; a header that boasts of less than nothing would
// only puzzle, so it says 0, and the explanation below it says what is the case.
function tellSaved({ bytes, per_second, share, watches }) {
  const here = Object.values(watches ?? {}).reduce((sum, watch) => sum + watch.bytes_saved, 0);
  const [saved, each] = [Math.max(0, bytes), `${bytesText(Math.max(0, per_second))}/s`];
  const exactly = (number) => (number < 0 ? `${bytesText(-number)} more than without` : bytesText(number));
  mark(find('saved'), 'data-bytes', saved);
  put(find('saved-bytes'), bytesText(saved));
  put(find('saved-rate'), each);
  put(find('saved-all'), exactly(bytes));
  put(find('saved-now'), each);
  put(find('saved-share'), percent(Math.max(0, share)));
  put(find('saved-here'), exactly(here));
  mark(find('saved'), 'aria-label', `${bytesText(saved)} saved at the source, ${each}. What does it mean?`);
}

function tellTheme() {
  const [sign, name] = THEMES[chosen()];
  put(find('theme'), sign);
  mark(find('theme'), 'aria-label', `Colours: ${name}`);
  mark(find('theme'), 'title', `Colours: ${name} (t)`);
}

const nextTheme = () => {
  choose(following());
  tellTheme();
};

// --- Keys ---

let prefixed = 0;

const writing = (element) => element.matches('input, textarea, select, [contenteditable]');
const acting = (element) => element.matches('button, a, summary, input, select, textarea');

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || writing(event.target)) return;
  const going = performance.now() < prefixed && GOES[event.key];
  prefixed = 0;
  if (going) location.hash = `#/${going}`;
  else if (event.key === 'g') prefixed = performance.now() + PREFIX_MS;
  else if (event.key === '?') find('shortcuts').showModal();
  else if (event.key === 't') nextTheme();
  else if (event.key === '/') main.querySelector('input[type=search]')?.focus();
  else if (event.key === ' ' && !acting(event.target)) main.dispatchEvent(new Event('pause'));
  else return;
  event.preventDefault();
}

feed.listen('state', tellState);
feed.listen('Saved', tellSaved);
find('theme').addEventListener('click', nextTheme);
find('help').addEventListener('click', () => find('shortcuts').showModal());
window.addEventListener('hashchange', route);
window.addEventListener('keydown', press);
tellTheme();
route();
