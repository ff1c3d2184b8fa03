// A colour for each number: from dark blue over teal and green to a light yellow.
//
// Equal steps of the value are equal steps to the eye, so that no edge is seen where there is none: the lightness of
// OKLab grows in a straight line, hue and saturation change slowly along it. As lightness alone tells the order, it
// can be read without seeing colours, and in grey print. Not finite is no colour: the ground shows through.

export const STEPS = 256;
const [DARK, LIGHT] = [0.25, 0.93];
const [HUE_FROM, HUE_TO] = [285, 98]; // degrees: from blue-violet to yellow, by way of teal
const CHROMA = 0.13;

function rgbOf(share) {
  const lightness = DARK + (LIGHT - DARK) * share;
  const hue = ((HUE_FROM + (HUE_TO - HUE_FROM) * share) * Math.PI) / 180;
  let chroma = CHROMA * (0.8 + 0.45 * Math.sin(Math.PI * share) * share);
  for (;;) {
    const rgb = linear(lightness, chroma * Math.cos(hue), chroma * Math.sin(hue));
    if (rgb.every((part) => part >= -1e-4 && part <= 1.0001) || chroma < 0.005) return rgb.map(encoded);
    chroma *= 0.97; // what a screen cannot show is made paler, not darker
  }
}

// From OKLab to linear light (Ottosson 2020).
function linear(lightness, a, b) {
  const [l, m, s] = [
    lightness + 0.3963377774 * a + 0.2158037573 * b,
    lightness - 0.1055613458 * a - 0.0638541728 * b,
    lightness - 0.0894841775 * a - 1.291485548 * b,
  ].map((part) => part ** 3);
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
}

function encoded(part) {
  const light = Math.min(1, Math.max(0, part));
  return Math.round(255 * (light <= 0.0031308 ? 12.92 * light : 1.055 * light ** (1 / 2.4) - 0.055));
}

/** [red, green, blue] of each step. */
export const SCALE = Array.from({ length: STEPS }, (_, i) => rgbOf(i / (STEPS - 1)));

const LITTLE = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;
const WORDS = Uint32Array.from(SCALE, ([r, g, b]) =>
  LITTLE ? (255 << 24) | (b << 16) | (g << 8) | r : (r << 24) | (g << 16) | (b << 8) | 255,
);

/** Writes the colours of `values` between `low` and `high` into the pixels of an ImageData. */
export function paint(values, low, high, image) {
  const pixels = new Uint32Array(image.data.buffer);
  const slope = (STEPS - 1) / (high - low || 1);
  for (let i = 0; i < pixels.length; i++) {
    const step = (values[i] - low) * slope;
    pixels[i] = step >= 0 ? WORDS[step >= STEPS - 1 ? STEPS - 1 : (step + 0.5) | 0] : Number.isNaN(step) ? 0 : WORDS[0];
  }
}
