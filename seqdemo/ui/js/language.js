// The language model's own view: the text coloured by one unit's memory, or by how likely each character was.

const TRACKERS = [
  ["quotation", "quotation", "being inside quotation marks"],
  ["comment", "comments", "being inside a comment"],
  ["parentheses", "brackets", "being inside parentheses"],
  ["indentation", "indentation", "how far the line is indented"],
];

// What is true after each character of the text; null where it cannot be known.
function labelsOf(text) {
  const found = { quotation: [], comment: [], parentheses: [], indentation: [] };
  const characters = [...text];
  let quoted = false, comment = false, line = false, depth = 0, blanks = 0, leading = true;
  characters.forEach((character, t) => {
    const two = (characters[t - 1] || "") + character;
    if (!quoted && !comment && two === "/*") comment = true;
    else if (comment && two === "*/") comment = false;
    else if (!comment && !quoted && two === "//") line = true;
    else if (character === '"' && !comment) quoted = !quoted;
    if (character === "\n") {
      line = false;
      blanks = 0;
      leading = true;
    } else if (leading && character === " ") blanks += 1;
    else leading = false;
    if (character === "(") depth += 1;
    if (character === ")") depth = Math.max(0, depth - 1);
    found.quotation.push(Number(quoted));
    found.comment.push(Number(comment || line));
    found.parentheses.push(Number(depth > 0));
    found.indentation.push(leading ? null : blanks);
  });
  return found;
}

// Pearson's correlation of a unit's values with a label, where the label is known.
function correlation(gate, unit, label) {
  let n = 0, sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0;
  for (let t = 0; t < gate.steps; t++) {
    const y = label[t];
    if (y === null || y === undefined) continue;
    const x = gate.values[t * gate.units + unit] * gate.scale;
    n += 1;
    sx += x;
    sy += y;
    sxx += x * x;
    syy += y * y;
    sxy += x * y;
  }
  const spread = Math.sqrt((n * sxx - sx * sx) * (n * syy - sy * sy));
  return spread > 1e-9 ? (n * sxy - sx * sy) / spread : 0;
}

class TextPanel {
  constructor(bench) {
    this.bench = bench;
    this.side = "B";
    this.by = "unit";
    this.unit = 0;
    this.layer = 0;
    this.model = ""; // whose units were chosen from
    this.wanted = null; // what to find once another model has answered
    this.bar = el("div", { class: "s-bar" });
    this.finders = el("div", { class: "s-bar" });
    this.note = el("p", { class: "s-says", "aria-live": "polite" });
    this.body = el("div", { class: "s-text", tabindex: "0", role: "region", "aria-label": "The text, coloured" });
    this.sum = el("p", { class: "s-says" });
    this.scale = el("div", { class: "s-bar" });
    this.tools = figureTools("text", () => this.figure(), () => this.rows());
    this.node = el("div", {},
      el("p", { class: "s-says" }, "Your text and how the model went on, coloured character by character: by what one ", term("unit"), " remembers, or by how likely the model found each character before it came."),
      this.bar, this.finders, this.note, this.body, this.scale, this.sum, equations("language"), this.tools);
  }

  state() {
    if (this.bench.columns.A && this.bench.columns.B) this.bench.needGates();
  }

  gate() {
    const parts = this.bench.columns[this.side].trace.parts;
    const part = parts && (parts.get(`decoder.${this.layer}`) || [...parts.values()][0]);
    return part ? part.get("cell") || part.get("hidden") : null;
  }

  answer() {
    const column = this.bench.columns[this.side];
    if (!column.trace.parts) {
      this.bench.needGates();
      this.note.textContent = "Reading the units…";
    }
    if (this.gate()) this.settle(column);
    this.bars(column, this.gate());
    this.letters(column);
    this.paint();
  }

  // A model shown for the first time opens with a unit that was measured to track something.
  settle(column) {
    if (this.model !== column.spec.checkpoint) {
      this.model = column.spec.checkpoint;
      const known = this.measured();
      const tracker = this.wanted || TRACKERS.find(([key]) => known[key]);
      this.note.textContent = "";
      this.wanted = null;
      if (tracker && known[tracker[0]]) this.tellMeasured(known[tracker[0]], tracker[2]);
    }
    this.unit = Math.min(this.unit, this.gate().units - 1);
  }

  measured() {
    return this.card().units || {};
  }

  bars(column, gate) {
    const choose = (by) => {
      this.by = by;
      this.answer();
    };
    const parts = column.trace.parts ? [...column.trace.parts.keys()].filter((part) => part.startsWith("decoder")) : [];
    const number = el("input", { type: "number", id: "s-unit", min: 0, max: gate ? gate.units - 1 : 0, value: this.unit, on: { input: (event) => event.target.checkValidity() && event.target.value !== "" && this.show(Number(event.target.value)) } });
    this.number = number;
    clear(this.bar).append(
      sideSwitch(this.bench, this.side, (side) => ((this.side = side), this.answer()), "Whose text"),
      el("div", { class: "s-switch", role: "group", "aria-label": "Colour by" },
        button("A unit's memory", () => choose("unit"), { "aria-pressed": String(this.by === "unit") }),
        button("Probability", () => choose("probability"), { "aria-pressed": String(this.by === "probability") })),
      this.by === "unit" ? el("span", { class: "s-inline" },
        parts.length > 1 ? el("select", { "aria-label": "Layer", on: { change: (event) => ((this.layer = Number(event.target.value)), this.answer()) } }, parts.map((part, i) => el("option", { value: i, selected: i === this.layer }, `layer ${i + 1}`))) : null,
        button("‹", () => this.show(this.unit - 1), { "aria-label": "Previous unit" }), el("label", { for: "s-unit" }, "unit"), number, button("›", () => this.show(this.unit + 1), { "aria-label": "Next unit" })) : el("span"));
    clear(this.finders);
    if (this.by === "unit") {
      this.finders.append(el("span", { class: "s-muted" }, "Find the unit that tracks"), ...TRACKERS.map(([key, name, what]) => button(name, () => this.find(key, what), { class: "s-example" })));
    }
    clear(this.scale).append(this.by === "unit" ? legend("signed", "−", "+", "The unit's value, white at 0") : legend("weights", "certain", "surprising", "Surprise, from certain to one in a thousand or rarer"));
  }

  show(unit) {
    const gate = this.gate();
    if (!gate) return;
    this.unit = (unit + gate.units) % gate.units;
    this.number.value = this.unit;
    this.note.textContent = "";
    this.paint();
  }

  // The unit measured on text held out from training where the model's metrics have it; else the best on this text.
  find(key, what) {
    if (!this.gate()) return undefined;
    const measured = this.measured();
    if (measured[key]) {
      this.tellMeasured(measured[key], what);
      return this.answer();
    }
    const other = this.bench.setup.checkpoints.find((card) => card.units && card.units[key]);
    return Object.keys(measured).length && other ? this.offer(other, [key, "", what]) : this.search(key, what);
  }

  tellMeasured(row, what) {
    [this.layer, this.unit] = [row.layer, row.unit];
    const measure = row.measure === "auc" ? term("AUC") : term("correlation");
    clear(this.note).append(`Unit ${row.unit} of layer ${row.layer + 1} follows ${what} best; it ${row.sign < 0 ? "falls" : "rises"} there (`, measure, ` ${row.test.toFixed(2)} on text kept out of training).`);
  }

  offer(card, tracker) {
    const go = () => {
      this.wanted = tracker;
      this.bench.setModel(card.name);
    };
    clear(this.note).append(`What this model has read has nothing to tell about ${tracker[2]}. `, button(`See it in ${card.read}`, go, { class: "s-quiet" }));
  }

  search(key, what) {
    const gate = this.gate();
    const column = this.bench.columns[this.side];
    const label = labelsOf(column.trace.pieces.map((piece) => (isEnd(piece) ? "" : piece)).join(""))[key];
    let best = 0, value = 0;
    for (let unit = 0; unit < gate.units; unit++) {
      const r = correlation(gate, unit, label);
      if (Math.abs(r) > Math.abs(value)) [best, value] = [unit, r];
    }
    if (!value) {
      this.note.textContent = `Nothing in this text changes in ${what}; add some and try again.`;
      return;
    }
    this.show(best);
    this.note.textContent = `In this text unit ${best} follows ${what} best (correlation ${signed(value, 2)}). On so little text that may be chance: change the text and see whether it holds.`;
  }

  letters(column) {
    const { trace, kind } = column;
    const own = column.source.pieces.length;
    this.spans = atoms(trace.pieces, kind.target).map((atom) => {
      const t = atom.pieces[atom.pieces.length - 1];
      const text = trace.pieces[t] === "\n" ? "⏎\n" : trace.pieces[t] === " " ? " " : atom.text;
      const node = el("span", { class: t < own ? "s-own" : "s-written", "data-t": t }, text);
      return { node, t };
    });
    clear(this.body).append(...this.spans.map((item) => item.node));
    this.body.onpointerover = (event) => {
      const t = Number(event.target.dataset.t);
      if (event.target.dataset.t !== undefined) tip.show(this.lines(t), event.clientX, event.clientY);
    };
    this.body.onpointerleave = () => tip.hide();
    this.tellSum(trace, own);
  }

  tellSum(trace, own) {
    const total = trace.logps.slice(0, own).reduce((sum, logp) => sum + logp, 0);
    const { nats } = this.card();
    clear(this.sum);
    if (own) {
      this.sum.append(`Your ${own} characters: `, term("log probability"), ` ${signed(total, 2)}, that is ${(-total / own).toFixed(2)} `, term("nats"), " a character",
        nats ? `; on text like what it has read, but kept from it, this model needs ${nats.toFixed(2)}. ` : ". ");
    }
    this.sum.append("Underlined: what the model wrote.");
  }

  card() {
    return this.bench.card(this.bench.columns[this.side].spec.checkpoint) || {};
  }

  lines(t) {
    const { trace, kind } = this.bench.columns[this.side];
    const gate = this.gate();
    const tops = (trace.top[t] || []).slice(0, 4).map(([piece, logp]) => `${probability(logp)}  ${pieceName(piece, kind.target)}`);
    return [
      `${pieceName(trace.pieces[t], kind.target)}: probability ${probability(trace.logps[t])}`,
      gate ? `unit ${this.unit}: ${signed(gate.values[t * gate.units + this.unit] * gate.scale, 2)}` : "", "likeliest here:", ...tops,
    ];
  }

  share(t) {
    if (this.by === "probability") return ["weights", Math.min(1, -this.bench.columns[this.side].trace.logps[t] / 7)];
    const gate = this.gate();
    if (!gate) return ["signed", 0.5];
    return ["signed", 0.5 + 0.5 * Math.max(-1, Math.min(1, (gate.values[t * gate.units + this.unit] * gate.scale) / this.largest))];
  }

  paint() {
    const gate = this.gate();
    this.largest = 1e-6;
    if (gate) for (let t = 0; t < gate.steps; t++) this.largest = Math.max(this.largest, Math.abs(gate.values[t * gate.units + this.unit] * gate.scale));
    for (const { node, t } of this.spans || []) {
      const [kind, share] = this.share(t);
      node.style.background = shade(kind, share);
      node.style.color = inkOn(kind, share);
    }
    this.tools.refresh();
  }

  figure() {
    const wide = 80;
    const rows = [[]];
    for (const { node, t } of this.spans) {
      rows[rows.length - 1].push([node.textContent.replace("\n", ""), t]);
      if (node.textContent.endsWith("\n") || rows[rows.length - 1].length >= wide) rows.push([]);
    }
    return { width: wide * 10 + 20, height: rows.length * 24 + 20, draw: (painter) => rows.forEach((row, y) => row.forEach(([text, t], x) => {
      const [kind, share] = this.share(t);
      painter.rect(10 + x * 10, 10 + y * 24, 10, 22, shade(kind, share));
      painter.text(15 + x * 10, 21 + y * 24, text, { size: 13, fill: inkOn(kind, share), align: "middle" });
    })) };
  }

  rows() {
    const { trace, kind } = this.bench.columns[this.side];
    const gate = this.gate();
    return {
      caption: `Every character, its probability and unit ${this.unit}`,
      heads: ["character", "position", "probability", "log probability", `unit ${this.unit}`],
      rows: trace.pieces.map((piece, t) => [pieceName(piece, kind.target), t + 1, probability(trace.logps[t]), signed(trace.logps[t]), gate ? signed(gate.values[t * gate.units + this.unit] * gate.scale, 2) : ""]),
    };
  }
}
