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
    this.caption = el("figcaption", {});
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", tip.hide);
    this.size = 268;
    this.width = this.height = this.size;
  }

  show(gate, name) {
    Object.assign(this, { gate, name, points: saturation(gate), crowds: new Map() });
    for (let unit = 0; unit < gate.units; unit++) {
      const at = this.at(unit).join();
      this.crowds.set(at, [...(this.crowds.get(at) || []), unit]);
    }
    this.caption.textContent = name;
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
    for (const [place, crowd] of this.crowds) {
      const [x, y] = place.split(",").map(Number);
      painter.circle(x, y, this.radius(crowd.length), colours["b-soft"], colours.b);
    }
  }

  // The area of a ring grows with the number of units in it.
  radius(count) {
    return 3 + 17 * Math.sqrt(count / this.gate.units);
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const distance = (place) => {
      const [x, y] = place.split(",").map(Number);
      return Math.hypot(event.clientX - box.left - x, event.clientY - box.top - y);
    };
    const [place, near] = [...this.crowds].sort(([p], [q]) => distance(p) - distance(q))[0];
    if (distance(place) > this.radius(near.length) + 4) return tip.hide();
    const names = near.slice(0, 8).join(", ") + (near.length > 8 ? ` and ${near.length - 8} more` : "");
    return tip.show([near.length > 1 ? `${near.length} units: ${names}` : `unit ${names}`, `open ${this.points.open[near[0]].toFixed(2)}, shut ${this.points.shut[near[0]].toFixed(2)}`], event.clientX, event.clientY);
  }

  rows() {
    return {
      caption: `${this.name}: share of time open and shut`,
      heads: ["unit", "open", "shut"],
      rows: Array.from({ length: this.gate.units }, (_, unit) => [unit, this.points.open[unit].toFixed(3), this.points.shut[unit].toFixed(3)]),
    };
  }
}

class GatesPanel {
  constructor(bench) {
    this.bench = bench;
    this.side = "B";
    this.part = null;
    this.order = "unit";
    this.step = 0;
    this.bar = el("div", { class: "s-bar" });
    this.maps = el("div", { class: "s-gates" });
    this.scatters = [];
    this.scatterBox = el("div", { class: "s-scatters" });
    this.tools = figureTools("gates", () => this.figure(), () => this.rows());
    this.scatterTools = figureTools("saturation", () => this.scatterFigure(), () => this.scatterRows());
    this.waiting = el("p", { class: "s-muted" }, "Reading the gates…");
    this.equation = el("div", {});
    this.node = el("div", {},
      el("p", { class: "s-says" }, "What every ", term("unit"), " of the network did at every step of the selected output: one row a step, one thin column a unit."),
      this.bar, this.waiting, this.maps, this.tools,
      el("h3", { class: "s-figure-head" }, "Which units act as switches"),
      el("p", { class: "s-says" }, "The larger a ring, the more units are there. Far right: shut nearly all of the time. Far up: open nearly all of the time. Bottom left: always in between. ", term("saturation", "What is saturation?")),
      this.scatterBox, this.scatterTools, this.equation);
  }

  state() {
    if (this.bench.columns.A && this.bench.columns.B) this.bench.needGates();
  }

  answer() {
    const column = this.bench.columns[this.side];
    const ready = Boolean(column.trace.parts && column.trace.gates_kind === "all");
    this.waiting.hidden = ready;
    if (!ready) {
      this.bench.needGates();
      return;
    }
    const parts = column.trace.parts;
    if (!parts.has(this.part)) this.part = [...parts.keys()].find((part) => part.startsWith("decoder")) || [...parts.keys()][0];
    this.bars(parts, column);
    this.draw(parts.get(this.part), column);
  }

  pieces(column) {
    const encoder = this.part.startsWith("encoder");
    const names = encoder ? column.trace.source : column.trace.pieces;
    return names.map((piece) => pieceName(piece, encoder ? column.kind.source : column.kind.target));
  }

  bars(parts, column) {
    const choose = (values, current, onPick, label) => {
      const id = newId("s-gate");
      const select = el("select", { id, on: { change: (event) => (onPick(event.target.value), this.answer()) } }, values.map(([key, name]) => el("option", { value: key, selected: String(key) === String(current) }, name)));
      return el("span", { class: "s-inline" }, el("label", { for: id }, label), select);
    };
    const orders = [["unit", "as they stand"], ["variance", "by variance"], ["saturation", "by saturation"], ["token", "by reaction to a token"]];
    const pieces = this.pieces(column);
    this.step = Math.min(this.step, pieces.length - 1);
    clear(this.bar).append(
      sideSwitch(this.bench, this.side, (side) => ((this.side = side), this.answer()), "Whose gates"),
      choose([...parts.keys()].map((part) => [part, partName(part)]), this.part, (part) => (this.part = part), "Part"),
      choose(orders, this.order, (order) => (this.order = order), "Order of units"),
      this.order === "token" ? choose(pieces.map((name, i) => [i, `${i + 1}: ${name}`]), this.step, (step) => (this.step = Number(step)), "Token") : el("span"),
      legend("weights", "0", "1", "Gates from 0 to 1"), legend("signed", "−", "+", "Signed values, white at 0"));
  }

  draw(gates, column) {
    const pieces = this.pieces(column);
    const leading = gates.get("cell") || gates.get("hidden") || [...gates.values()][0];
    const order = unitOrder(leading, this.order, this.step);
    const names = [...gates.keys()];
    if (!this.drawn || this.drawn.map((map) => map.gateName).join() !== names.join()) {
      this.drawn = names.map((name) => new GateMap(name));
      clear(this.maps).append(...this.drawn.map((map) => map.node));
    }
    const room = Math.max(280, (this.maps.clientWidth || 700) / (this.maps.clientWidth > 860 ? 2 : 1) - 26);
    const encoder = this.part.startsWith("encoder");
    const onStep = (step) => this.bench.setHover(step === null ? null : { side: this.side, end: encoder ? "source" : "target", index: step });
    this.drawn.forEach((map) => map.show(gates.get(map.gateName), pieces, order, room, onStep));
    const switches = names.filter((name) => SIGMOID.has(name));
    this.drawScatters(switches, gates);
    clear(this.equation).append(equations(gates.has("update") ? "gru" : gates.has("cell") ? "lstm" : "elman"));
    this.tools.refresh();
    this.scatterTools.refresh();
  }

  drawScatters(switches, gates) {
    this.scatterTools.hidden = !switches.length;
    if (this.scatters.length !== switches.length) {
      this.scatters = switches.map(() => new SaturationView());
      clear(this.scatterBox).append(...this.scatters.map((view) => el("figure", {}, view.caption, view.node)));
      if (!switches.length) this.scatterBox.append(el("p", { class: "s-muted" }, "This cell has no gates, only a hidden state."));
    }
    this.scatters.forEach((view, i) => view.show(gates.get(switches[i]), GATE_WORDS[switches[i]][0]));
  }

  scatterFigure() {
    const size = this.scatters[0].size;
    return { width: size * this.scatters.length, height: size + 24, draw: (painter) => this.scatters.forEach((view, i) => {
      painter.text(i * size + 40, 12, view.name, { size: 13, weight: 600, fill: css("ink") });
      view.draw(shifted(painter, i * size, 24));
    }) };
  }

  scatterRows() {
    return {
      caption: "Share of time each unit is open and shut", heads: ["gate", "unit", "open", "shut"],
      rows: this.scatters.flatMap((view) => view.rows().rows.map((row) => [view.name, ...row])),
    };
  }

  figure() {
    const gap = 34;
    const width = Math.max(...this.drawn.map((map) => map.width)) + 20;
    const height = this.drawn.reduce((sum, map) => sum + map.height + gap, 10);
    return { width, height, draw: (painter) => {
      let y = 10;
      for (const map of this.drawn) {
        painter.text(10, y + 10, GATE_WORDS[map.gateName] ? GATE_WORDS[map.gateName][0] : map.gateName, { size: 13, weight: 600, fill: css("ink") });
        const top = y + 22;
        map.draw(shifted(painter, 10, top));
        y += map.height + gap;
      }
    } };
  }

  rows() {
    const rows = [];
    for (const map of this.drawn) {
      for (let step = 0; step < map.gate.steps; step++) {
        const values = Array.from({ length: map.gate.units }, (_, unit) => map.gate.values[step * map.gate.units + unit] * map.gate.scale);
        const mean = values.reduce((a, b) => a + b, 0) / values.length;
        rows.push([map.gateName, step + 1, map.pieces[step], mean.toFixed(3), Math.min(...values).toFixed(3), Math.max(...values).toFixed(3)]);
      }
    }
    return { caption: `${partName(this.part)}: mean, least and greatest value over the units`, heads: ["gate", "step", "token", "mean", "least", "greatest"], rows };
  }
}
