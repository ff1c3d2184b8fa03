// Hands on a field: drag to move, wheel or two fingers to zoom, double click for all of it; the same by keys.

const [KEY_STEP, KEY_ZOOM, WHEEL_ZOOM] = [0.1, 1.25, 0.0016];
const ZOOMS = { '+': 1 / KEY_ZOOM, '=': 1 / KEY_ZOOM, '-': KEY_ZOOM, _: KEY_ZOOM };
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** Lets hands steer `view` (extent, picture, moved, point); returns how to stop it. */
export function steer(canvas, view) {
  const fingers = new Map();
  const ended = new AbortController();
  const on = (type, handler, options) => canvas.addEventListener(type, handler, { signal: ended.signal, ...options });
  const placeOf = ({ offsetX, offsetY }) => {
    const { x, y, width, height } = view.picture.area;
    return { right: (offsetX - x) / width, down: (offsetY - y) / height };
  };
  const inside = ({ right, down }) => right >= 0 && right < 1 && down >= 0 && down < 1;
  const change = (act) => {
    if (!view.extent) return;
    act(view.extent);
    view.moved();
  };

  on('pointerdown', (event) => {
    if (event.button !== 0) return;
    fingers.set(event.pointerId, placeOf(event));
    canvas.setPointerCapture(event.pointerId);
    canvas.classList.add('dragging');
  });
  on('pointermove', (event) => {
    const place = placeOf(event);
    view.point(inside(place) ? place : null);
    const before = fingers.get(event.pointerId);
    if (!before) return;
    const others = [...fingers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
    fingers.set(event.pointerId, place);
    if (!others.length) {
      return change((extent) =>
        extent.move((before.down - place.down) * extent.height, (before.right - place.right) * extent.width),
      );
    }
    const apart = (one) => Math.hypot(one.right - others[0].right, one.down - others[0].down);
    change((extent) =>
      extent.zoom(
        apart(before) / Math.max(apart(place), 0.02),
        (place.down + others[0].down) / 2,
        (place.right + others[0].right) / 2,
      ),
    );
  });
  const lift = (event) => {
    fingers.delete(event.pointerId);
    if (!fingers.size) canvas.classList.remove('dragging');
  };
  on('pointerup', lift);
  on('pointercancel', lift);
  on('pointerleave', () => view.point(null));
  on('dblclick', () => change((extent) => extent.reset()));
  on(
    'wheel',
    (event) => {
      const place = placeOf(event);
      if (!inside(place)) return;
      event.preventDefault();
      change((extent) => extent.zoom(Math.exp(event.deltaY * WHEEL_ZOOM), place.down, place.right));
    },
    { passive: false },
  );
  on('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in MOVES) {
      const [down, right] = MOVES[event.key];
      change((extent) =>
        extent.move(down * Math.max(1, extent.height * KEY_STEP), right * Math.max(1, extent.width * KEY_STEP)),
      );
    } else if (event.key in ZOOMS) change((extent) => extent.zoom(ZOOMS[event.key]));
    else if (event.key === '0') change((extent) => extent.reset());
    else return;
    event.preventDefault();
  });
  return () => ended.abort();
}
