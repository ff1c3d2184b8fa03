// Light, dark, or as the system has it. The stylesheet names each colour once, as light-dark(a, b); all that is
// decided here is which of the two counts. index.html loads this before anything is drawn, so that nothing flashes.
//
// A canvas knows nothing of the stylesheet: it asks `colourOf` for what a variable means, and draws again when the
// window hears `themechange`.

const KEY = 'echoic-theme';
const CHOICES = ['auto', 'light', 'dark'];
const root = document.documentElement;
const system = matchMedia('(prefers-color-scheme: dark)');

const stored = () => {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // the browser keeps nothing for this page
  }
};

export const chosen = () => root.dataset.theme ?? 'auto';

/** Makes one of auto, light and dark count, here and the next time. */
export function choose(choice) {
  if (choice === 'auto' || !CHOICES.includes(choice)) delete root.dataset.theme;
  else root.dataset.theme = choice;
  try {
    localStorage.setItem(KEY, choice);
  } catch {
    // it counts for this page only
  }
  told();
}

export const following = () => CHOICES[(CHOICES.indexOf(chosen()) + 1) % CHOICES.length];

const told = () => window.dispatchEvent(new Event('themechange'));
system.addEventListener('change', told);
if (CHOICES.includes(stored()) && stored() !== 'auto') root.dataset.theme = stored();

const probes = new Map();

/** What a variable of the stylesheet is at present, as a canvas understands it: rgb(...). */
export function colourOf(variable) {
  let probe = probes.get(variable);
  if (!probe) {
    probe = document.createElement('span');
    probe.hidden = true;
    probe.style.color = `var(${variable})`;
    document.body.append(probe);
    probes.set(variable, probe);
  }
  return getComputedStyle(probe).color;
}
