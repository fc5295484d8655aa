// Small curves: something measured against something else, one line a model, with a band where it is uncertain.
import { clear, el, tip } from "./core.js";
import { onThemeChange, palette } from "./colour.js";
import { CanvasPainter, textWidth } from "./painter.js";
import { Points } from "./points.js";
import { figureTools } from "./saving.js";

/**
 * @typedef {{at: number, label: string, value: number, count?: number, low?: number, high?: number}} CurvePoint
 * @typedef {{across: string, up: string, lines: {name: string, points: CurvePoint[]}[], facts: import("./saving.js").Facts}} CurvesPayload
 */

const HIGH = 296, LEFT = 56, FOOT = 64, HEAD = 14, INSET = 34, DOT = 4; // INSET: from the frame to the first and the last point; DOT: the radius of a point
const COLOURS = Array.from({ length: 8 }, (_, i) => `model-${i + 1}`); // colours of models, different from those of columns A and B
const DASHES = [[], [7, 4], [2, 4], [9, 3, 2, 3]]; // to tell lines apart without colour

/** The values a plot has to hold, from 0 to a round number above all. @param {CurvesPayload["lines"]} lines */
export function topOf(lines) {
  const most = Math.max(1e-9, ...lines.flatMap((line) => line.points.map((point) => point.high ?? point.value)));
  const unit = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 2.5, 5, 10].map((step) => step * unit).find((top) => top >= most);
}

class CurvesDrawing {
  constructor(element, emit) {
    this.element = element;
    this.points = new Points("line chart", {
      all: () => this.all(), place: ({ point }) => this.place(point), radius: () => DOT, tell: (item) => this.tell(item), reach: 10,
    });
    this.canvas = this.points.canvas;
    this.names = el("ul", { class: "s-curve-names" });
    this.tools = figureTools("curves", () => this.figure(), () => this.rows(), () => this.payload.facts, emit);
    element.append(this.canvas, this.names, this.points.spoken, this.tools);
    this.stopTheme = onThemeChange(() => this.paint());
    this.watcher = typeof ResizeObserver === "undefined" ? null : new ResizeObserver(() => this.element.clientWidth !== this.room && this.paint());
    if (this.watcher) this.watcher.observe(element);
  }

  update(payload, view = {}) {
    this.payload = payload;
    this.top = topOf(payload.lines);
    const places = payload.lines.flatMap((line) => line.points.map((point) => point.at));
    this.first = Math.min(...places);
    this.last = Math.max(...places);
    this.canvas.setAttribute("aria-label", `${payload.facts.title}. Arrow keys move from point to point.`);
    this.paint();
    this.tools.refresh();
    this.tools.show(view.tables);
  }

  destroy() {
    this.stopTheme();
    if (this.watcher) this.watcher.disconnect();
    tip.hide();
    clear(this.element);
  }

  paint() {
    if (!this.payload) return;
    this.room = this.element.clientWidth;
    this.width = Math.max(240, Math.min(720, this.room || 480));
    this.draw(new CanvasPainter(this.canvas, this.width, HIGH));
    const colours = palette();
    clear(this.names).append(...this.payload.lines.map((line, i) => el("li", {}, el("span", { class: "s-curve-mark", style: { background: colours[COLOURS[i % COLOURS.length]] } }), line.name)));
  }

  place(point, value = point.value) {
    const plot = this.width - LEFT - 14 - 2 * INSET;
    const share = this.last > this.first ? (point.at - this.first) / (this.last - this.first) : 0.5;
    return [LEFT + INSET + share * plot, HIGH - FOOT - (value / this.top) * (HIGH - FOOT - HEAD)];
  }

  draw(painter) {
    const colours = palette();
    const { across, up, lines } = this.payload;
    const right = this.width - 14;
    const style = { size: 12, fill: colours.muted, align: "middle" };
    for (const share of [0, 0.5, 1]) {
      const y = HIGH - FOOT - share * (HIGH - FOOT - HEAD);
      painter.line(LEFT, y, right, y, colours.line);
      painter.text(LEFT - 6, y, String(Number((share * this.top).toPrecision(3))), { ...style, align: "end" });
    }
    painter.text((LEFT + right) / 2, HIGH - 10, across, style);
    painter.text(10, (HIGH - FOOT + HEAD) / 2, up, { ...style, turn: -90 });
    this.labels(painter, style);
    lines.forEach((line, i) => this.line(painter, line, colours[COLOURS[i % COLOURS.length]], DASHES[i % DASHES.length]));
  }

  // A label that would touch the one before it is left out.
  labels(painter, style) {
    let free = -Infinity;
    const points = new Map(this.payload.lines.flatMap((line) => line.points.map((point) => [point.at, point])));
    for (const point of [...points.values()].sort((p, q) => p.at - q.at)) {
      const count = point.count ? `${point.count.toLocaleString("en")} inputs` : "";
      const half = Math.max(textWidth(point.label, 12), textWidth(count, 12)) / 2;
      const x = Math.min(this.place(point)[0], this.width - half - 2);
      if (x - half < free) continue;
      painter.text(x, HIGH - FOOT + 13, point.label, style);
      painter.text(x, HIGH - FOOT + 29, count, style);
      free = x + half + 6;
    }
  }

  line(painter, { points }, colour, dash) {
    points.forEach((point, p) => {
      const [x, y] = this.place(point);
      if (p) painter.line(...this.place(points[p - 1]), x, y, colour, 2, dash);
      if (point.low !== undefined && point.low !== null) {
        const [low, high] = [this.place(point, point.low)[1], this.place(point, point.high)[1]];
        painter.line(x, low, x, high, colour, 1.2);
        for (const end of [low, high]) painter.line(x - 4, end, x + 4, end, colour, 1.2);
      }
      painter.circle(x, y, DOT, colour);
    });
  }

  all() {
    return this.payload.lines.flatMap((line) => line.points.map((point) => ({ line, point })));
  }

  tell({ line, point }) {
    const sure = point.low === undefined || point.low === null ? "" : `95 of 100 such samples lie between ${point.low.toFixed(1)} and ${point.high.toFixed(1)}`;
    return [line.name, `${this.payload.up} ${point.value.toFixed(1)} at ${point.label}`, sure, point.count ? `${point.count.toLocaleString("en")} inputs` : ""].filter(Boolean);
  }

  figure() {
    const { lines } = this.payload;
    const colours = palette();
    return { width: this.width, height: HIGH + 18 * lines.length, draw: (painter) => {
      this.draw(painter);
      lines.forEach((line, i) => painter.text(LEFT, HIGH + 9 + i * 18, line.name, { size: 13, weight: 600, fill: colours[COLOURS[i % COLOURS.length]] }));
    } };
  }

  rows() {
    return {
      caption: this.payload.facts.title, heads: ["model", this.payload.across, this.payload.up, "least", "most", "inputs"],
      rows: this.all().map(({ line, point }) => [line.name, point.label, point.value.toFixed(2), point.low?.toFixed(2) ?? "", point.high?.toFixed(2) ?? "", point.count ?? ""]),
    };
  }
}

/** @param {HTMLElement} element @param {CurvesPayload} payload @param {{tables?: import("./saving.js").Tables}} view @param {import("./grid.js").Emit} emit */
export function mountCurves(element, payload, view = {}, emit = () => {}) {
  const drawing = new CurvesDrawing(element, emit);
  drawing.update(payload, view);
  return { update: (next, seen) => drawing.update(next, seen), destroy: () => drawing.destroy() };
}
