// Which units act as switches: the share of time nearly shut (across) against nearly open (up), one ring for the units of a place.
import { el } from "./core.js";
import { onThemeChange, palette } from "./colour.js";
import { CanvasPainter } from "./painter.js";
import { Points } from "./points.js";
import { saturation } from "./units.js";

const SIDE = 288, FRAME = 46, ROOM = 22; // the frame leaves room for the largest ring on either side of 0 and 1

export class Saturation {
  constructor() {
    this.rings = new Points("scatter plot", {
      all: () => this.crowds, place: (crowd) => this.place(crowd[0]), radius: (crowd) => this.radius(crowd.length), tell: (crowd) => this.tell(crowd), reach: 4,
    });
    this.canvas = this.rings.canvas;
    this.caption = el("figcaption", {});
    this.node = el("figure", {}, this.caption, this.canvas, this.rings.spoken);
    this.width = this.height = SIDE;
    /** @type {import("./units.js").Gate | null} */
    this.gate = null;
    this.name = "";
    this.points = { shut: new Float32Array(0), open: new Float32Array(0) };
    this.stopTheme = onThemeChange(() => this.paint());
  }

  /** @param {import("./units.js").Gate} gate @param {string} name */
  show(gate, name) {
    this.gate = gate;
    this.name = name;
    this.points = saturation(gate);
    const crowds = new Map();
    for (let unit = 0; unit < gate.units; unit++) {
      const key = `${this.points.shut[unit].toFixed(4)} ${this.points.open[unit].toFixed(4)}`;
      if (!crowds.has(key)) crowds.set(key, []);
      crowds.get(key).push(unit);
    }
    this.crowds = [...crowds.values()].sort((p, q) => q.length - p.length); // small rings on top of large ones
    this.caption.textContent = name;
    this.canvas.setAttribute("aria-label", `${name}: share of time each unit is nearly open against nearly shut. Arrow keys move from ring to ring.`);
    this.paint();
  }

  paint() {
    if (this.gate) this.draw(new CanvasPainter(this.canvas, SIDE, SIDE));
  }

  place(unit) {
    const span = SIDE - FRAME - 2 * ROOM - 4;
    return [FRAME + ROOM + this.points.shut[unit] * span, SIDE - FRAME - ROOM - this.points.open[unit] * span];
  }

  // The area of a ring is proportional to its number of units.
  radius(count) {
    return 3 + 17 * Math.sqrt(count / this.gate.units);
  }

  draw(painter) {
    const colours = palette();
    const span = SIDE - FRAME - 2 * ROOM - 4;
    const [left, bottom, size] = [FRAME, SIDE - FRAME, span + 2 * ROOM];
    painter.rect(left + 0.5, bottom - size + 0.5, size, size, null, colours.line);
    painter.line(left + ROOM, bottom - ROOM - span, left + ROOM + span, bottom - ROOM, colours.line);
    const style = { size: 12, fill: colours.muted, align: "middle" };
    painter.text(left + size / 2, SIDE - 9, "share of time shut (below 0.1)", style);
    painter.text(9, bottom - size / 2, "share of time open (above 0.9)", { ...style, turn: -90 });
    for (const share of [0, 0.5, 1]) {
      painter.text(left + ROOM + share * span, bottom + 10, String(share), style);
      painter.text(left - 5, bottom - ROOM - share * span, String(share), { ...style, align: "end" });
    }
    for (const crowd of this.crowds) painter.circle(...this.place(crowd[0]), this.radius(crowd.length), colours["b-soft"], colours.b);
  }

  tell(crowd) {
    const names = crowd.slice(0, 8).join(", ") + (crowd.length > 8 ? ` and ${crowd.length - 8} more` : "");
    return [crowd.length > 1 ? `${crowd.length} units: ${names}` : `unit ${names}`, `open ${this.points.open[crowd[0]].toFixed(2)}, shut ${this.points.shut[crowd[0]].toFixed(2)} of the time`];
  }

  rows() {
    return Array.from({ length: this.gate.units }, (_, unit) => [this.name, unit, this.points.open[unit].toFixed(3), this.points.shut[unit].toFixed(3)]);
  }
}
