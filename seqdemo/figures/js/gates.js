// The gates of one part of a network: for each a Grid, one row per step, one column per unit; below, which units act as switches.
import { el, newId, signed } from "./core.js";
import { css, legend, onThemeChange } from "./colour.js";
import { Drawn, mounted } from "./drawn.js";
import { Grid } from "./grid.js";
import { shifted } from "./painter.js";
import { Saturation } from "./saturation.js";
import { figureTools } from "./saving.js";
import { pieceName } from "./text.js";
import { GATE_WORDS, boundOf, partName, readGates, unitOrder } from "./units.js";

/**
 * @typedef {{gates: any, source: string[], target: string[], kinds: {source: string, target: string}, facts: import("./saving.js").Facts}} GatesPayload
 *   `gates`: as Python packs them, or read already
 * @typedef {{part?: string, order?: string, step?: number, mode?: "look" | "brush", brushed?: import("./grid.js").Brush | null, tables?: import("./saving.js").Tables}} GatesView
 *   what is left out the drawing keeps itself; `mode` "brush": dragging paints units and steps, told by the event "brush"
 */

const ORDERS = [["unit", "as they stand"], ["variance", "by variance"], ["saturation", "by saturation"], ["token", "by reaction to a token"]];
const APART = 34; // pixels between two maps of a saved picture

/** One gate as a matrix. @param {import("./units.js").Gate} gate @param {string} name @param {string[]} steps @param {number[]} order
 * @returns {import("./grid.js").GridPayload} */
export function gateGrid(gate, name, steps, order) {
  const bound = boundOf(gate, name);
  const title = (GATE_WORDS[name] || [name])[0];
  const values = new Float32Array(gate.values.length);
  for (let i = 0; i < values.length; i++) values[i] = gate.values[i] * gate.scale;
  return {
    title: `${title}: ${gate.steps} steps by ${gate.units} units`, values, order,
    rows: { names: steps, title: "step" }, columns: { names: order.map((_, unit) => String(unit)), title: "unit", flat: true },
    scale: { kind: gate.open ? "weights" : "signed", low: gate.open ? 0 : -bound, high: bound || 1, label: title.toLowerCase() },
    cell: { least: 1, most: 12, high: 16 },
    tell: (step, unit) => [`unit ${unit} at ${steps[step]}`, `${title.toLowerCase()} ${signed(values[step * gate.units + unit], 2)}`, `step ${step + 1}`],
  };
}

class GateMap {
  constructor(name, emit) {
    const [title, about] = GATE_WORDS[name] || [name, ""];
    this.name = name;
    this.title = title;
    this.emit = emit;
    this.grid = null;
    this.nothing = el("span", { class: "s-muted", hidden: true }, " Every value is 0.");
    this.holder = el("div", {});
    this.node = el("figure", { class: "s-gate-figure" }, el("figcaption", {}, el("strong", {}, title), " ", el("span", { class: "s-muted" }, about), this.nothing), this.holder);
  }

  show(gate, steps, order, view) {
    this.nothing.hidden = gate.values.some((byte) => byte !== 0);
    const payload = gateGrid(gate, this.name, steps, order);
    if (this.grid) this.grid.update(payload, view);
    else this.grid = new Grid(this.holder, payload, view, (event, detail) => this.emit(event, { gate: this.name, detail }));
  }
}

class GatesDrawing extends Drawn {
  constructor(element, emit) {
    super(element, emit, { part: "", order: "unit", step: 0 });
    /** @type {Map<string, GateMap>} */
    this.maps = new Map();
    /** @type {Map<string, Saturation>} */
    this.rings = new Map();
    /** @type {GatesPayload | null} */
    this.payload = null;
    this.part = new Choice("Part", (value) => this.change("part", value));
    this.order = new Choice("Order of units", (value) => this.change("order", value));
    this.step = new Choice("Token", (value) => this.change("step", Number(value)));
    this.scales = el("span", { class: "s-inline" });
    this.holder = el("div", { class: "s-gates" });
    this.tools = figureTools("gates", () => this.figure(), () => this.rows(), () => this.facts(), emit);
    this.none = el("p", { class: "s-muted" }, "This cell has no gates that open and shut, only a hidden state: there are no switches to show.");
    this.scatters = el("div", { class: "s-scatters" });
    this.scatterTools = figureTools("saturation", () => this.scatterFigure(), () => this.scatterRows(), () => ({ ...this.facts(), title: `Saturation of the ${partName(this.view.part).toLowerCase()}` }), emit);
    element.append(
      el("div", { class: "s-bar" }, this.part.node, this.order.node, this.step.node, this.scales), this.holder, this.tools,
      el("h3", { class: "s-figure-head" }, "Which units act as switches"),
      el("p", { class: "s-says" }, "The larger a ring, the more units are there. Far right: shut nearly all of the time. Far up: open nearly all of the time. Bottom left: always in between."),
      this.none, this.scatters, this.scatterTools);
    this.legends();
    this.stopTheme = onThemeChange(() => this.legends());
  }

  update(payload, view = {}) {
    if (!this.payload || payload.gates !== this.payload.gates) this.parts = payload.gates instanceof Map ? payload.gates : readGates(payload.gates);
    this.take(payload, view);
    this.show();
  }

  destroy() {
    this.stopTheme();
    for (const map of this.maps.values()) map.grid.destroy();
    for (const ring of this.rings.values()) ring.stopTheme();
    this.element.replaceChildren();
  }

  show() {
    const given = Object.fromEntries(Object.entries(this.given).filter(([, value]) => value !== undefined && value !== null));
    /** @type {GatesView} */
    this.view = { ...this.own, ...given };
    const names = [...this.parts.keys()];
    if (!this.parts.has(this.view.part)) this.view.part = names.find((part) => part.startsWith("decoder")) || names[0];
    const gates = this.parts.get(this.view.part);
    this.steps = this.stepNames(gates);
    this.view.step = Math.min(this.view.step, this.steps.length - 1);
    this.bars(names);
    const leading = gates.get("cell") || gates.get("hidden") || [...gates.values()][0];
    const order = unitOrder(leading, this.view.order, this.view.step);
    const seen = { mode: this.view.mode, brushed: this.view.brushed };
    kept(this.holder, this.maps, [...gates.keys()], (name) => new GateMap(name, (event, detail) => this.heard(event, detail)), (map) => map.grid.destroy());
    for (const [name, map] of this.maps) map.show(gates.get(name), this.steps, order, seen);
    this.switches(gates);
    for (const tools of [this.tools, this.scatterTools]) {
      tools.refresh();
      tools.show(this.view.tables);
    }
  }

  stepNames(gates) {
    const side = this.view.part.startsWith("encoder") ? "source" : "target";
    const { steps } = [...gates.values()][0];
    const pieces = this.payload[side];
    return pieces.length === steps ? pieces.map((piece) => pieceName(piece, this.payload.kinds[side])) : Array.from({ length: steps }, (_, step) => `step ${step + 1}`);
  }

  heard(event, { gate, detail }) {
    const { part } = this.view;
    if (event === "hover") this.emit("hover", detail && detail.row !== null ? { part, step: detail.row } : null);
    if (event === "brush") this.emit("brush", { part, gate, steps: detail.rows, units: detail.columns });
  }

  bars(names) {
    this.part.show(names.map((part) => [part, partName(part)]), this.view.part);
    this.order.show(ORDERS, this.view.order);
    this.step.show(this.steps.map((name, i) => [i, `${i + 1}: ${name}`]), this.view.step);
    this.step.node.hidden = this.view.order !== "token";
  }

  legends() {
    this.scales.replaceChildren(legend("weights", "0", "1", "Gates from 0 to 1"), legend("signed", "−", "+", "Signed values; no colour at 0"));
  }

  switches(gates) {
    const names = [...gates.keys()].filter((name) => gates.get(name).open);
    this.none.hidden = names.length > 0;
    this.scatterTools.hidden = !names.length;
    kept(this.scatters, this.rings, names, () => new Saturation(), (ring) => ring.stopTheme());
    for (const [name, ring] of this.rings) if (ring.gate !== gates.get(name)) ring.show(gates.get(name), (GATE_WORDS[name] || [name])[0]);
  }

  facts() {
    return { ...this.payload.facts, title: `${this.payload.facts.title}: ${partName(this.view.part).toLowerCase()}` };
  }

  figure() {
    const figures = [...this.maps.values()].map((map) => ({ title: `${map.title}, from ${signed(map.grid.payload.scale.low, 2)} to ${signed(map.grid.payload.scale.high, 2)}`, ...map.grid.figure() }));
    return {
      width: Math.max(...figures.map((figure) => figure.width)), height: figures.reduce((sum, figure) => sum + figure.height + APART, 0),
      draw: (painter) => figures.reduce((y, figure) => {
        painter.text(0, y + 10, figure.title, { size: 13, weight: 600, fill: css("ink") });
        figure.draw(shifted(painter, 0, y + 20));
        return y + figure.height + APART;
      }, 0),
    };
  }

  scatterFigure() {
    const rings = [...this.rings.values()];
    return { width: rings.length * rings[0].width, height: rings[0].height + 20, draw: (painter) => rings.forEach((ring, i) => {
      painter.text(i * ring.width + 40, 8, ring.name, { size: 13, weight: 600, fill: css("ink") });
      ring.draw(shifted(painter, i * ring.width, 20));
    }) };
  }

  rows() {
    const rows = [...this.maps.values()].flatMap((map) => {
      const { values, columns } = map.grid.payload;
      const wide = columns.names.length;
      return this.steps.map((name, step) => {
        const part = values.slice(step * wide, (step + 1) * wide);
        const mean = part.reduce((sum, value) => sum + value, 0) / wide;
        return [map.name, step + 1, name, ...[mean, Math.min(...part), Math.max(...part)].map((value) => signed(value, 3))];
      });
    });
    return { caption: `${partName(this.view.part)}: mean, least and greatest value over the units`, heads: ["gate", "step", "token", "mean", "least", "greatest"], rows };
  }

  scatterRows() {
    return { caption: "Share of time each unit is open and shut", heads: ["gate", "unit", "open", "shut"], rows: [...this.rings.values()].flatMap((ring) => ring.rows()) };
  }
}

// A labelled list to choose from; its options change only where they are others.
class Choice {
  constructor(label, pick) {
    const id = newId("s-choose");
    this.select = el("select", { id, on: { change: () => pick(this.select.value) } });
    this.node = el("span", { class: "s-inline" }, el("label", { for: id }, label), this.select);
  }

  show(pairs, value) {
    const key = JSON.stringify(pairs);
    if (key !== this.key) this.select.replaceChildren(...pairs.map(([name, text]) => el("option", { value: name }, text)));
    this.key = key;
    if (this.select.value !== String(value)) this.select.value = String(value);
  }
}

// For every name a part with its own `node` in `holder`; those that are there stay.
function kept(holder, known, names, make, drop) {
  for (const [name, part] of known) {
    if (names.includes(name)) continue;
    drop(part);
    part.node.remove();
    known.delete(name);
  }
  names.forEach((name, i) => {
    if (!known.has(name)) known.set(name, make(name));
    const { node } = known.get(name);
    if (holder.children[i] !== node) holder.insertBefore(node, holder.children[i] || null);
  });
}

/** @param {HTMLElement} element @param {GatesPayload} payload @param {GatesView} view @param {import("./grid.js").Emit} emit */
export function mountGates(element, payload, view = {}, emit = () => {}) {
  return mounted(new GatesDrawing(element, emit), payload, view);
}
