// Making and changing elements of the page. There is no template language and no innerHTML anywhere: whatever comes
// from a channel, a name, a symbol, a compiler's message, becomes a text node and can be nothing else.
//
// A page that changes once a second must not be built anew: the reader would lose the focus, the selection and the
// place. So text is written only where it differs, and rows are kept by their key.

/** An element: `class`, `text`, `on: {click: f}`, `value` and `checked` are special, the rest are attributes. */
export const make = (tag, properties, ...children) => filled(document.createElement(tag), properties, children);

/** The same for SVG. */
export const draw = (tag, properties, ...children) =>
  filled(document.createElementNS('http://www.w3.org/2000/svg', tag), properties, children);

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'on') for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    else if (name === 'text') element.textContent = value;
    else if (name === 'value' || name === 'checked') element[name] = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Writes a text, if it is another than before. */
export function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
  return node;
}

/** Sets or removes an attribute, if that changes anything. */
export function mark(element, name, value) {
  if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value === true ? '' : value);
}

/**
 * Makes the children of `parent` show `items`, in their order: what has a key that was there is updated where it is.
 * `create(item)` returns an element, `update(element, item)` writes what changes.
 */
export function keyed(parent, items, keyOf, create, update) {
  const known = (parent.keyedChildren ??= new Map());
  const wanted = new Map(items.map((item) => [keyOf(item), item]));
  for (const [key, element] of known) {
    if (wanted.has(key)) continue;
    element.remove();
    known.delete(key);
  }
  let next = parent.firstElementChild;
  for (const [key, item] of wanted) {
    let element = known.get(key);
    if (!element) known.set(key, (element = create(item)));
    if (element === next) next = next.nextElementSibling;
    else parent.insertBefore(element, next);
    update(element, item);
  }
}
