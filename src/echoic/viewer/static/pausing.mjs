// What changes once a second, and a reader who wants it to stand still: while a page is paused the last load is kept back,
// and shown when it goes on. The space bar does it (the shell dispatches `pause` on the root), and a button.

import { make, mark, put } from './elements.mjs';

/** Looks at a page and calls `update(load)`; returns the button and a function that stops. */
export function pausable(root, feed, page, update) {
  let [paused, kept] = [false, null];
  const button = make('button', { type: 'button', 'aria-pressed': 'false', text: 'Pause', title: 'Pause (space)', on: { click: () => toggle() } });
  const toggle = () => {
    paused = !paused;
    mark(button, 'aria-pressed', String(paused));
    put(button, paused ? 'Go on' : 'Pause');
    if (!paused && kept) update(kept);
  };
  const stop = feed.look(page, (load) => {
    kept = load;
    if (!paused) update(load);
  });
  root.addEventListener('pause', toggle);
  return {
    button,
    stop: () => {
      stop();
      root.removeEventListener('pause', toggle);
    },
  };
}

/** What stands behind the page in the address: `#/bus/calc` -> 'calc'. */
export function named() {
  try {
    return location.hash.split('/').slice(2).map(decodeURIComponent).join('/');
  } catch {
    return ''; // not written by this page
  }
}
