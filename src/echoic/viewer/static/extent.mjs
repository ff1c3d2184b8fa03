// Which rectangle of a field is looked at. Pure: hands, wheels and keys become rectangles, and the rectangle becomes
// the parameter block of the code at the source. It never leaves the field, and is never smaller than a few cells.

const LEAST_CELLS = 4;
const SLACK = 1e-6; // a sum of fractions is not a cell more
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

// The first cell and the number of cells that hold `size` from anywhere in the first on.
function covering(from, size, all) {
  const cells = Math.min(all, Math.ceil(size - SLACK) + 1);
  return [Math.min(Math.floor(from), all - cells), cells];
}

export class Extent {
  /** All of a field of so many rows and columns. */
  constructor(rows, columns) {
    Object.assign(this, { rows, columns, top: 0, left: 0, height: rows, width: columns });
  }

  get all() {
    return this.height >= this.rows && this.width >= this.columns;
  }

  /** What the source is told: whole cells, and as many of them wherever it is moved to. */
  get values() {
    const [top, height] = covering(this.top, this.height, this.rows);
    const [left, width] = covering(this.left, this.width, this.columns);
    return { top, left, height, width };
  }

  get text() {
    return Object.values(this.values).join(',');
  }

  reset() {
    Object.assign(this, { top: 0, left: 0, height: this.rows, width: this.columns });
  }

  /** Moves by cells. */
  move(down, right) {
    this.top = clamp(this.top + down, 0, this.rows - this.height);
    this.left = clamp(this.left + right, 0, this.columns - this.width);
  }

  /** Makes it `factor` times as large around a place that stays where it is: (0, 0) top left, (1, 1) bottom right. */
  zoom(factor, down = 0.5, right = 0.5) {
    const [row, column] = [this.top + down * this.height, this.left + right * this.width];
    this.height = clamp(this.height * factor, Math.min(LEAST_CELLS, this.rows), this.rows);
    this.width = clamp(this.width * factor, Math.min(LEAST_CELLS, this.columns), this.columns);
    this.top = row - down * this.height;
    this.left = column - right * this.width;
    this.move(0, 0);
  }
}
