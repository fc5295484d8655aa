// A canvas of points. It describes one point at a time: the one under the pointer or, aloud as well, the one an arrow key moves to.
import { el, tip } from "./core.js";

const MOVES = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/**
 * @typedef {object} Told  the points of a drawing, of any kind
 * @property {() => any[]} all  in the order of the arrow keys; a later one lies on top of an earlier one
 * @property {(point: any) => number[]} place  its centre on the canvas
 * @property {(point: any) => number} radius
 * @property {(point: any) => string[]} tell
 * @property {number} reach  how far from its edge a point is still meant
 */

export class Points {
  /** @param {string} kind  what a screen reader calls the canvas @param {Told} told */
  constructor(kind, told) {
    this.told = told;
    this.canvas = el("canvas", { class: "s-canvas", tabindex: "0", role: "application", "aria-roledescription": kind });
    this.spoken = el("div", { class: "s-hidden", "aria-live": "polite" });
    this.at = -1;
    for (const name of ["pointermove", "click"]) this.canvas.addEventListener(name, (event) => this.point(event));
    for (const name of ["pointerleave", "blur"]) this.canvas.addEventListener(name, () => tip.hide());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  point(event) {
    const { all, place, radius, tell, reach } = this.told;
    const box = this.canvas.getBoundingClientRect();
    const far = (point) => {
      const [x, y] = place(point);
      return Math.hypot(event.clientX - box.left - x, event.clientY - box.top - y) - radius(point);
    };
    const near = all().reduce((best, point) => (far(point) <= far(best) ? point : best));
    if (far(near) > reach) return tip.hide();
    return tip.show(tell(near), event.clientX, event.clientY, this.canvas);
  }

  key(event) {
    const move = MOVES[event.key];
    if (!move) return;
    event.preventDefault();
    const all = this.told.all();
    this.at = Math.max(0, Math.min(all.length - 1, this.at + move));
    const [x, y] = this.told.place(all[this.at]);
    const box = this.canvas.getBoundingClientRect();
    const lines = this.told.tell(all[this.at]);
    tip.show(lines, box.left + x, box.top + y, this.canvas);
    this.spoken.textContent = lines.join(", ");
  }
}
