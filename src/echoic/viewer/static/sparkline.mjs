// A line the size of a word: how a rate went in the last minute. SVG, because there are as many as channels and each
// changes once a second; a canvas each would take more memory than the numbers are worth.

import { draw, mark } from './elements.mjs';

const [POINTS, WIDTH, HEIGHT] = [60, 72, 18];

/** The element; `add(value)` moves it on. */
export function sparkline(label) {
  const line = draw('polyline', { class: 'line' });
  const area = draw('polygon', { class: 'area' });
  const element = draw(
    'svg',
    { class: 'spark', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': label },
    area,
    line,
  );
  const values = [];
  element.add = (value) => {
    if (values.push(value) > POINTS) values.shift();
    const most = Math.max(...values, 1e-9);
    const at = (each, i) => {
      const x = WIDTH - ((values.length - 1 - i) * WIDTH) / (POINTS - 1);
      return `${x.toFixed(1)},${(HEIGHT - 1.5 - (each / most) * (HEIGHT - 3)).toFixed(1)}`;
    };
    const points = values.map(at);
    mark(line, 'points', points.join(' '));
    mark(area, 'points', [`${points[0].split(',')[0]},${HEIGHT}`, ...points, `${WIDTH},${HEIGHT}`].join(' '));
  };
  return element;
}
