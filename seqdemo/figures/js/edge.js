// Strokes over a map. While one is drawn over a pane that scrolls, the pane scrolls on as long as the pointer stays near its edge.

const NEAR = 28; // pixels
const FASTEST = 5; // pixels a frame, at the edge itself and beyond it

/** How much a pointer at `at` pushes a pane that reaches from `low` to `high`: from -1 (back) to 1 (on). @param {number} at */
export function push(at, low, high) {
  const near = Math.min(NEAR, (high - low) / 3);
  if (at > high - near) return Math.min(1, (at - high + near) / near);
  return at < low + near ? -Math.min(1, (low + near - at) / near) : 0;
}

/** The first and last of each run of neighbours. @param {number[]} places @returns {[number, number][]} */
export function runs(places) {
  const known = new Set(places);
  const firsts = [...known].filter((place) => !known.has(place - 1)).sort((p, q) => p - q);
  const lasts = [...known].filter((place) => !known.has(place + 1)).sort((p, q) => p - q);
  return firsts.map((first, i) => [first, lasts[i]]);
}

export class EdgeScroll {
  /** @param {HTMLElement} pane @param {() => void} moved hears of every scroll */
  constructor(pane, moved) {
    this.pane = pane;
    this.moved = moved;
    this.across = this.down = this.frame = 0;
  }

  /** The pointer is there; names of rows and columns cover so much of the pane. */
  follow({ clientX, clientY }, covered) {
    const { left, top, right, bottom } = this.pane.getBoundingClientRect();
    this.across = push(clientX, left + covered.left, right);
    this.down = push(clientY, top + covered.top, bottom);
    if (!this.frame && (this.across || this.down)) this.frame = requestAnimationFrame(() => this.go());
  }

  /** The point nearest to a pointer that shows one of the cells. */
  inside({ clientX, clientY }, cells, { left, top, across, down }) {
    const [pane, box] = [this.pane.getBoundingClientRect(), cells.getBoundingClientRect()];
    const between = (at, low, high) => Math.max(low, Math.min(high - 1, at));
    return {
      clientX: between(clientX, pane.left + left, Math.min(pane.right, box.left + across)),
      clientY: between(clientY, pane.top + top, Math.min(pane.bottom, box.top + down)),
    };
  }

  go() {
    const { pane } = this;
    const before = [pane.scrollLeft, pane.scrollTop];
    pane.scrollLeft += Math.round(this.across * FASTEST);
    pane.scrollTop += Math.round(this.down * FASTEST);
    const scrolled = pane.scrollLeft !== before[0] || pane.scrollTop !== before[1];
    this.frame = scrolled ? requestAnimationFrame(() => this.go()) : 0;
    if (scrolled) this.moved();
  }

  stop() {
    cancelAnimationFrame(this.frame);
    this.across = this.down = this.frame = 0;
  }
}
