// Code to begin with, made for the channel at hand: its own fields are in it, so it compiles before anything is
// written.

/** [{name, code, params, output}] for a channel of this description. */
export function templatesOf({ fields, channel_type: type }) {
  const numbers = fields.filter((field) => field.series && !field.path.includes('['));
  const telling =
    numbers.find(({ path }) => !['at', 'time', 'timestamp', 'step', 'sequence'].includes(path)) ?? numbers[0];
  const plane = fields.find((field) => field.plane && field.shape.every((size) => size > 0));
  const made = [];
  if (plane) made.push(mean(plane));
  if (telling) made.push(filter(telling), transform(telling, type));
  const text = fields.find((field) => field.kind === 'text' && !field.shape.length);
  if (text) made.push(one(text));
  made.push({
    name: 'Thin out',
    code: '{\n    static long seen = 0;\n    seen = seen + 1;\n    return seen % param.every == 0;\n}',
    params: 'every=10',
    output: '',
  });
  return made;
}

const lastOf = (path) => path.split('.').at(-1);

function filter({ path, kind }) {
  const params = kind === 'integer' ? 'limit=100' : 'limit=100.0';
  return { name: 'Filter', code: `{\n    return input.${path} < param.limit;\n}`, params, output: '' };
}

function one({ path }) {
  const name = lastOf(path);
  return {
    name: `One ${name}`,
    code: `{\n    return input.${path} == param.${name};\n}`,
    params: `${name}="IBM"`,
    output: '',
  };
}

function transform({ path }, type) {
  const name = lastOf(path);
  const code = `{\n    output.${name} = input.${path} * param.factor;\n    return 1;\n}`;
  return { name: 'Transform', code, params: 'factor=1.0', output: `${type || 'Event'}Part{${name}: float}` };
}

function mean({ path, shape }) {
  const letters = ['i', 'j'].slice(0, shape.length);
  const open = letters
    .map((letter, n) => `${'    '.repeat(n + 1)}for (${letter} = 0; ${letter} < ${shape[n]}; ${letter}++) {\n`)
    .join('');
  const inner = `${'    '.repeat(shape.length + 1)}total = total + input.${path}[${letters.join('][')}];\n`;
  const close = letters.map((_, n) => `${'    '.repeat(shape.length - n)}}\n`).join('');
  const size = shape.reduce((a, b) => a * b, 1);
  const head = `{\n    int ${letters.join(', ')};\n    double total = 0.0;\n`;
  const code = `${head}${open}${inner}${close}    output.mean = total / ${size};\n    return 1;\n}`;
  return { name: `Mean of ${lastOf(path)}`, code, params: '', output: 'Mean{mean: float}' };
}
