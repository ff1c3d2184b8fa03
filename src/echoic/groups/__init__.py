"""Pure. In WHICH ORDER: total order with safe delivery, views, and packing whose degree tunes itself."""
