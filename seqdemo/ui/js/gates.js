// Gates of one run: time down, units across, one small heat map a gate. Sorting and hovering stay here.

const GATE_WORDS = {
  input: ["Input gate", "How much of the new candidate each unit lets in: 0 keeps it out, 1 takes it whole."],
  forget: ["Forget gate", "How much of its cell each unit keeps from the step before: 0 erases, 1 keeps."],
  output: ["Output gate", "How much of its cell each unit shows: 0 hides it, 1 shows it."],
  candidate: ["Candidate", "What each unit would write into its cell, from −1 to 1."],
  cell: ["Cell", "The memory of each unit: not bounded, positive or negative."],
  hidden: ["Hidden state", "What each unit hands on: to the next step, to attention and to the readout."],
  update: ["Update gate", "How each unit mixes its old state with the new candidate."],
  reset: ["Reset gate", "How much of its old state each unit lets into the candidate."],
};
const SIGMOID = new Set(["input", "forget", "output", "update", "reset"]);

function readGates(payload) {
  const parts = new Map();
  for (const [name, packed] of Object.entries(payload)) {
    const [part, gate] = [name.slice(0, name.lastIndexOf(".")), name.slice(name.lastIndexOf(".") + 1)];
    if (!parts.has(part)) parts.set(part, new Map());
    parts.get(part).set(gate, { values: unpack(packed), steps: packed.shape[0], units: packed.shape[1], scale: packed.scale });
  }
  return parts;
}

function partName(part) {
  const [side, layer, direction] = part.split(".");
  const where = side === "encoder" ? (direction === "backward" ? "Encoder, right to left" : "Encoder, left to right") : "Decoder";
  return Number(layer) ? `${where}, layer ${Number(layer) + 1}` : where;
}

// The share of time each unit is nearly shut (below 0.1) and nearly open (above 0.9).
function saturation(gate) {
  const shut = new Float32Array(gate.units);
  const open = new Float32Array(gate.units);
  for (let i = 0; i < gate.values.length; i++) {
    const value = gate.values[i] * gate.scale;
    if (value < 0.1) shut[i % gate.units] += 1 / gate.steps;
    else if (value > 0.9) open[i % gate.units] += 1 / gate.steps;
  }
  return { shut, open };
}

// Units in the order asked for: as they stand, by variance, by saturation, or by how strongly step `at` stands out.
function unitOrder(gate, order, at) {
  const list = Array.from({ length: gate.units }, (_, i) => i);
  if (order === "unit") return list;
  const key = new Float32Array(gate.units);
  const { shut, open } = saturation(gate);
  for (let unit = 0; unit < gate.units; unit++) {
    let sum = 0, squares = 0;
    for (let step = 0; step < gate.steps; step++) {
      const value = gate.values[step * gate.units + unit] * gate.scale;
      sum += value;
      squares += value * value;
    }
    const mean = sum / gate.steps;
    if (order === "variance") key[unit] = squares / gate.steps - mean * mean;
    else if (order === "saturation") key[unit] = shut[unit] + open[unit];
    else key[unit] = Math.abs(gate.values[at * gate.units + unit] * gate.scale - mean);
  }
  return list.sort((p, q) => key[q] - key[p] || p - q);
}

class GateMap {
  constructor(name) {
    this.gateName = name;
    this.canvas = el("canvas", { class: "s-canvas s-gate", tabindex: "0", role: "img" });
    this.node = el("figure", { class: "s-gate-figure" },
      el("figcaption", {}, el("strong", {}, (GATE_WORDS[name] || [name])[0]), " ", el("span", { class: "s-muted" }, (GATE_WORDS[name] || ["", ""])[1])),
      el("div", { class: "s-scroll" }, this.canvas));
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => this.leave());
    this.canvas.addEventListener("blur", () => this.leave());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  show(gate, pieces, order, room, onStep) {
    Object.assign(this, { gate, pieces, order, onStep });
    const label = Math.min(90, Math.max(24, ...pieces.map((name) => textWidth(name, 11))));
    this.left = label + 8;
    this.unitWide = Math.max(1, Math.min(12, (Math.max(room, 260) - this.left - 4) / gate.units));
    this.stepHigh = Math.max(3, Math.min(16, 300 / Math.max(1, gate.steps)));
    this.width = this.left + this.unitWide * gate.units + 2;
    this.height = this.stepHigh * gate.steps + 4;
    this.draw(new CanvasPainter(this.canvas, this.width, this.height));
    this.canvas.setAttribute("aria-label", `${(GATE_WORDS[this.gateName] || [this.gateName])[0]}: ${gate.steps} steps by ${gate.units} units. Arrow keys move through the values.`);
  }

  value(step, place) {
    return this.gate.values[step * this.gate.units + this.order[place]] * this.gate.scale;
  }

  share(value) {
    return SIGMOID.has(this.gateName) ? value : 0.5 + 0.5 * Math.max(-1, Math.min(1, this.gateName === "cell" ? value / (this.gate.scale * 127) : value));
  }

  draw(painter) {
    const colours = palette();
    const kind = SIGMOID.has(this.gateName) ? "weights" : "signed";
    const { steps, units } = this.gate;
    painter.grid(this.left, 2, this.unitWide * units, this.stepHigh * steps, steps, units, kind, (step, place) => this.share(this.value(step, place)));
    for (let step = 0; step < steps && this.stepHigh >= 9; step++) {
      const y = 2 + step * this.stepHigh;
      painter.text(this.left - 6, y + this.stepHigh / 2, this.pieces[step] || "", { size: Math.min(11, this.stepHigh), fill: colours.ink, align: "end" });
      if (step) painter.line(this.left, y, this.left + this.unitWide * units, y, colours.panel, 0.6);
    }
    if (this.cursor) painter.rect(this.left + this.cursor[1] * this.unitWide - 1, 1 + this.cursor[0] * this.stepHigh, this.unitWide + 2, this.stepHigh + 1, null, colours.accent, 2);
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const step = Math.floor((event.clientY - box.top - 2) / this.stepHigh);
    const place = Math.floor((event.clientX - box.left - this.left) / this.unitWide);
    if (step < 0 || step >= this.gate.steps || place < 0 || place >= this.gate.units) return this.leave();
    return this.tell(step, place, event.clientX, event.clientY);
  }

  tell(step, place, x, y) {
    this.cursor = [step, place];
    tip.show([`unit ${this.order[place]} at ${this.pieces[step]}`, `${(GATE_WORDS[this.gateName] || [this.gateName])[0].toLowerCase()} ${signed(this.value(step, place), 2)}`, `step ${step + 1}`], x, y);
    this.onStep(step);
  }

  leave() {
    this.cursor = null;
    tip.hide();
    this.onStep(null);
  }

  key(event) {
    const moves = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
    if (!moves[event.key]) return;
    event.preventDefault();
    const at = this.cursor || [0, -1];
    const step = Math.max(0, Math.min(this.gate.steps - 1, at[0] + moves[event.key][0]));
    const place = Math.max(0, Math.min(this.gate.units - 1, at[1] + moves[event.key][1]));
    const box = this.canvas.getBoundingClientRect();
    this.tell(step, place, box.left + this.left + place * this.unitWide, box.top + (step + 1) * this.stepHigh);
    this.draw(new CanvasPainter(this.canvas, this.width, this.height));
  }
}

// Share of time nearly shut (across) against nearly open (up), one ring a unit.
class SaturationView {
  constructor() {
    this.canvas = el("canvas", { class: "s-canvas", role: "img", tabindex: "0" });
    this.node = el("div", { class: "s-scroll" }, this.canvas);
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", tip.hide);
    this.size = 268;
    this.width = this.height = this.size;
  }

  show(gate, name) {
    Object.assign(this, { gate, name, points: saturation(gate) });
    this.draw(new CanvasPainter(this.canvas, this.size, this.size));
    this.canvas.setAttribute("aria-label", `${name}: share of time each unit is nearly open against nearly shut`);
  }

  at(unit) {
    const span = this.size - 56;
    return [40 + this.points.shut[unit] * span, this.size - 36 - this.points.open[unit] * span];
  }

  draw(painter) {
    const colours = palette();
    const span = this.size - 56;
    painter.line(40, this.size - 36, 40 + span, this.size - 36, colours.line);
    painter.line(40, this.size - 36, 40, this.size - 36 - span, colours.line);
    painter.line(40, this.size - 36 - span, 40 + span, this.size - 36, colours.line);
    painter.text(40 + span / 2, this.size - 14, "share of time shut (below 0.1)", { size: 11, fill: colours.muted, align: "middle" });
    painter.text(12, this.size - 36 - span / 2, "share of time open (above 0.9)", { size: 11, fill: colours.muted, align: "middle", turn: -90 });
    for (const [share, label] of [[0, "0"], [1, "1"]]) {
      painter.text(40 + share * span, this.size - 27, label, { size: 10, fill: colours.muted, align: "middle" });
      painter.text(33, this.size - 36 - share * span, label, { size: 10, fill: colours.muted, align: "end" });
    }
    for (let unit = 0; unit < this.gate.units; unit++) {
      const [x, y] = this.at(unit);
      painter.circle(x, y, 3.4, colours["b-soft"], colours.b);
    }
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const near = [];
    for (let unit = 0; unit < this.gate.units; unit++) {
      const [x, y] = this.at(unit);
      if (Math.hypot(event.clientX - box.left - x, event.clientY - box.top - y) < 7) near.push(unit);
    }
    if (!near.length) return tip.hide();
    const names = near.slice(0, 8).join(", ") + (near.length > 8 ? ` and ${near.length - 8} more` : "");
    return tip.show([`unit ${names}`, `open ${this.points.open[near[0]].toFixed(2)}, shut ${this.points.shut[near[0]].toFixed(2)}`], event.clientX, event.clientY);
  }

  rows() {
    return {
      caption: `${this.name}: share of time open and shut`,
      heads: ["unit", "open", "shut"],
      rows: Array.from({ length: this.gate.units }, (_, unit) => [unit, this.points.open[unit].toFixed(3), this.points.shut[unit].toFixed(3)]),
    };
  }
}
