// The language model's own view: the text coloured by one unit's memory, or by how likely each letter was.
import { button, clear, el, signed, unpack } from "../../figures/js/core.js";
import { mountLetters, memoryOf } from "../../figures/js/letters.js";
import { patch } from "../../figures/js/patch.js";
import { columnOf, holdsSame, withClamp, withView } from "./state.js";
import { factsOf } from "./facts.js";
import { equations, term } from "./glossary.js";
import { sideSwitch } from "./panels.js";
import { Section } from "./section.js";

const WEAK = 0.8; // an AUC or a correlation below it

const TRACKERS = [
  ["quotation", "quotation", "whether a letter stands inside quotation marks"],
  ["comment", "comments", "whether a letter stands inside a comment"],
  ["parentheses", "parentheses", "whether a letter stands inside parentheses"],
  ["indentation", "indentation", "how far the line is indented"],
];

/** @param {number} own how many a person typed */
export function yourCharacters(own) {
  return own === 1 ? "Your character" : `Your ${own} characters`;
}

/** What a unit tells, as measured: the words before the name of the measure, the name, and the words after it. An AUC counts whichever way the
 * unit moves, a correlation has a sign. @param {any} row @param {string} what @returns {[string, string, string]} */
export function measuredWords({ unit, layer, sign, measure, test }, what) {
  const auc = measure === "auc";
  const moves = `${sign < 0 ? "falls" : "rises"} ${auc ? "there" : "as that grows"}`;
  return [`Of all units, unit ${unit} of layer ${layer + 1} tells best ${what}${test < WEAK ? ", though not well" : ""}: it ${moves} (`, auc ? "AUC" : "correlation",
    ` ${signed(auc ? test : sign * test, 2)} over the whole test text, which was kept out of training; it was found on the dev text).`];
}

// Pearson's correlation of a unit's values with a label, where the label is known.
function correlation(gate, unit, label) {
  let n = 0, sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0;
  for (let t = 0; t < gate.steps; t++) {
    const y = label[t];
    if (y === undefined || y < 0) continue;
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

export class TextPanel {
  constructor(bench) {
    this.bench = bench;
    this.drawing = null;
    this.found = null; // the unit that tracks something best on this text
    this.offered = null; // another model with more measured units
    this.bar = el("div", { class: "s-bar" });
    this.finders = el("div", { class: "s-bar" });
    this.note = el("p", { class: "s-says", "aria-live": "polite" });
    this.holder = el("div", {});
    this.sum = el("p", { class: "s-says" });
    this.equation = el("div", {});
    this.closing = new Section(bench, "closing", "Hold together all units that follow a quotation or a comment: does it still close?");
    this.node = el("div", {},
      el("p", { class: "s-says" }, "Your text and how the model went on, coloured letter by letter: by what one ", term("unit"), " remembers, or by how likely the model found each letter before it came."),
      this.bar, this.finders, this.note, this.holder, this.sum, this.closing.node, this.equation);
  }

  get side() {
    return this.bench.state.view.coloured;
  }

  get column() {
    return this.bench.columns[this.side];
  }

  // Until the user chooses a unit, it is one that was measured to track something.
  seen() {
    const { by, layer, unit } = this.bench.state.view;
    if (unit !== null) return { by, layer, unit };
    const known = this.measured();
    const tracker = TRACKERS.find(([key]) => known[key]);
    return { by, ...(tracker ? { layer: known[tracker[0]].layer, unit: known[tracker[0]].unit } : { layer: 0, unit: 0 }) };
  }

  answer() {
    const { trace, kind, source } = this.column;
    const seen = this.seen();
    patch(this.bar, sideSwitch(this.bench, this.side, (coloured) => this.choose({ coloured }, `Looked at the text of ${coloured}`), "Whose text"));
    const finders = TRACKERS.map(([key, name, what]) => button(name, () => this.find(key, what), { class: "s-example" }));
    patch(this.finders, seen.by === "unit" ? [el("span", { class: "s-actions" }, el("span", { class: "s-muted" }, "Find the unit that tracks"), finders), this.holdButtons(seen)] : null);
    this.notes();
    patch(this.equation, equations(this.bench, "language"));
    const facts = factsOf(this.bench, this.side, "Text");
    const view = { ...seen, tables: this.bench.tables() };
    const payload = { pieces: trace.pieces, logps: trace.logps, top: trace.top, kind: kind.target, given: source.pieces.length, gates: trace.parts, facts };
    if (this.drawing) this.drawing.update(payload, view);
    else this.drawing = mountLetters(this.holder, payload, view, (event, detail) => this.heard(event, detail));
    this.tellSum(trace, source.pieces.length);
    const { quotation, comment } = this.measured();
    this.closing.answer(Boolean(quotation || comment));
  }

  // A unit that no longer follows the text: does the model still close its quotation marks?
  holdButtons({ layer, unit }) {
    const { bench } = this;
    const { parts } = this.column.trace;
    if (!parts) return null;
    const part = parts.get(`decoder.${layer}`);
    const place = { part: "decoder", layer, direction: "forward", gate: part && part.has("cell") ? "cell" : "hidden", units: [unit], positions: null };
    const held = columnOf(bench.state, "B").edits.find((edit) => holdsSame(edit, place));
    const [low, high] = this.range(layer, unit);
    const hold = (name, value) => {
      const on = Boolean(held) && held.value === value;
      const words = on ? `B: let go of unit ${unit}` : `B: unit ${unit} held at ${name}`;
      return button(`at ${name}`, () => bench.update(withClamp("B", place, on ? null : value), words), { "aria-pressed": String(on), class: "s-example", "data-key": name, title: `In B this unit stays at ${typeof value === "number" ? signed(value, 2) : "its mean"}, whatever is read. Draw again and watch what the texts lose by it.` });
    };
    return el("span", { class: "s-actions", role: "group", "aria-label": `Hold unit ${unit} in B` }, el("span", { class: "s-muted" }, `Hold unit ${unit} in B`),
      hold("its mean", "mean"), low === null ? null : [hold("its lowest", low), hold("its highest", high)]);
  }

  // The lowest and the highest value that a unit has by itself: in the text of A, which no hand has changed.
  range(layer, unit) {
    const { A, B } = this.bench.columns;
    const gate = memoryOf(A.trace && A.trace.parts, layer);
    if (!gate || gate.which || A.spec.checkpoint !== B.spec.checkpoint) return [null, null];
    const values = Array.from({ length: gate.steps }, (_, t) => Number((gate.values[t * gate.units + unit] * gate.scale).toFixed(3)));
    return [Math.min(...values), Math.max(...values)];
  }

  heard(event, detail) {
    const { layer, unit } = this.seen();
    if (event === "by") this.choose({ by: detail }, detail === "unit" ? "Coloured by a unit" : "Coloured by probability");
    if (event === "unit") this.choose({ layer, unit: detail }, `Unit ${detail}`);
    if (event === "table") this.bench.foldTable(detail);
    if (event === "layer") this.choose({ layer: detail, unit }, `Layer ${detail + 1}`);
  }

  // The facts about the unit on screen: as measured, or else as found on this text.
  notes() {
    const { trace } = this.column;
    const { by, layer, unit } = this.seen();
    const known = this.measured();
    const tracker = TRACKERS.find(([key]) => known[key] && known[key].unit === unit && known[key].layer === layer);
    const found = this.found && this.found.unit === unit && this.found.trace === trace ? this.found.note : "";
    const note = !trace.parts ? "Reading the units…" : this.offered || found || (tracker ? this.tellMeasured(known[tracker[0]], tracker[2]) : "");
    patch(this.note, by === "unit" ? note : "");
  }

  choose(change, words) {
    this.offered = null;
    this.bench.update(withView(change), words, { kind: "text-unit" });
  }

  card() {
    return this.bench.card(this.column.spec.checkpoint) || {};
  }

  measured() {
    return this.card().units || {};
  }

  gate() {
    return memoryOf(this.column.trace.parts, this.seen().layer);
  }

  // The unit measured on text held out from training where the model's metrics have it; else the best on this text.
  find(key, what) {
    if (!this.gate() || this.gate().which) return undefined; // not all units are loaded
    const measured = this.measured();
    if (measured[key]) return this.choose({ layer: measured[key].layer, unit: measured[key].unit }, `The unit that tells ${what}`);
    const other = this.bench.setup.checkpoints.find((card) => card.units && card.units[key]);
    return Object.keys(measured).length && other ? this.offer(other, key, what) : this.search(key, what);
  }

  tellMeasured(row, what) {
    const [before, name, after] = measuredWords(row, what);
    return [before, term(name), after];
  }

  offer(card, key, what) {
    const { layer, unit } = card.units[key];
    const go = () => {
      this.offered = null;
      this.bench.setModel(card.name);
      this.bench.look({ layer, unit });
    };
    this.offered = [`This model learned from text without such places, so none of its units tells ${what}. `, button(`See it in ${card.read}`, go, { class: "s-quiet" })];
    this.notes();
  }

  search(key, what) {
    const gate = this.gate();
    const { column } = this;
    const { layer } = this.seen();
    const label = unpack((column.trace.labels || {})[key]) || [];
    let best = 0, value = 0;
    for (let unit = 0; unit < gate.units; unit++) {
      const r = correlation(gate, unit, label);
      if (Math.abs(r) > Math.abs(value)) [best, value] = [unit, r];
    }
    if (!value) {
      this.offered = `Nothing in this text shows ${what}. Type more text and try again.`;
      this.notes();
      return;
    }
    const note = `In this text unit ${best} is the one that best tells ${what} (correlation ${signed(value, 2)}). On so little text that may be chance: change the text and see whether it holds.`;
    this.found = { unit: best, trace: column.trace, note };
    this.choose({ layer, unit: best }, `The unit that tells ${what}`);
    this.notes();
  }

  tellSum(trace, own) {
    const total = trace.logps.slice(0, own).reduce((sum, logp) => sum + logp, 0);
    const { nats } = this.card();
    clear(this.sum);
    if (own) {
      this.sum.append(`${yourCharacters(own)}: `, term("log probability"), ` ${signed(total, 2)}, that is ${(-total / own).toFixed(2)} `, term("nats"), " a character",
        nats ? `; on text like what it has read, but kept from it, this model needs ${nats.toFixed(2)}. ` : ". ");
    }
    this.sum.append("Underlined: what the model wrote.");
  }
}
