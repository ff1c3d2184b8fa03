// Parts of a page that hold something, as a chart does, and are to be closed when what they show is gone.

import { keyed } from './elements.mjs';

/** Keeps the views of things that come and go. A view has an `element`, `update(item)` and `close()`. */
export class Views {
  #views = new Map();

  /** Makes the children of `parent` show `items`, each by a view that `create()` makes. */
  show(parent, items, keyOf, create) {
    const begin = () => {
      const view = create();
      this.#views.set(view.element, view);
      return view.element;
    };
    keyed(parent, items, keyOf, begin, (element, item) => this.#views.get(element).update(item));
  }

  /** Closes the views that are on the page no more; to be called when everything is shown. */
  sweep() {
    for (const [element, view] of this.#views) {
      if (element.isConnected) continue;
      view.close();
      this.#views.delete(element);
    }
  }

  close() {
    for (const view of this.#views.values()) view.close();
  }
}
