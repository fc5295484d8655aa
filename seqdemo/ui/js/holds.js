// Hands on gates: held open, shut or in between, in all units or in those that were painted, at all steps or at some.
import { button, el, newId, numeral } from "../../figures/js/core.js";
import { patch } from "../../figures/js/patch.js";
import { GATE_WORDS, partName } from "../../figures/js/units.js";
import { ResultLine } from "./result.js";
import { columnOf, heldAt, holdsSame, withClamp, withEdits } from "./state.js";

const told = (name) => (GATE_WORDS[name] || [name])[0];

const heldHow = (value) => (typeof value === "number" ? `at ${numeral(value)}` : value === "mean" ? "at its mean" : "unit by unit");

/** @param {string} path such as encoder.0.backward */
export function placeOfPart(path) {
  const [part, layer, direction] = path.split(".");
  return { part, layer: Number(layer), direction: direction || "forward" };
}

export class GateHands {
  constructor(bench) {
    this.bench = bench;
    /** @type {{rows: [number, number], columns: number[]} | null} */
    this.brush = null;
    this.painting = false;
    /** @type {Map<string, any>} */
    this.gates = new Map();
    this.part = "";
    this.questions = el("div", { class: "s-questions" });
    this.where = el("div", { class: "s-bar" });
    this.sliders = el("div", { class: "s-holds" });
    this.result = new ResultLine(bench);
    this.node = el("div", {},
      el("p", { class: "s-says" }, "A held gate no longer follows the input: it stays where you put it, in column B alone. Ask one of the classic questions, or set a gate yourself."),
      this.questions, this.where, this.sliders, this.result.node);
  }

  get edits() {
    return columnOf(this.bench.state, "B").edits;
  }

  /** `part`: the path of the part that is shown; `gates`: its gates by name. */
  answer(part, gates) {
    if (part !== this.part) this.brush = null;
    Object.assign(this, { part, gates });
    this.show();
  }

  show() {
    this.showQuestions();
    this.showWhere();
    const names = [...this.gates].filter(([, gate]) => gate.open).map(([name]) => name);
    const none = el("p", { class: "s-muted" }, "This cell has no gates. Its state can be emptied above, or unit by unit below.");
    patch(this.sliders, names.length ? names.map((name) => this.slider(name)) : none);
    this.result.answer();
  }

  // The questions of the model's card; a place before the first one stands for the last of the input.
  get presets() {
    const { presets = [] } = this.bench.card(columnOf(this.bench.state, "B").checkpoint) || {};
    const last = this.bench.columns.B.trace.source.length - 1;
    const placed = ({ kind, part, gate, value, layer, direction, units, positions }) => ({ kind, part, gate, value, layer, direction, units, positions: positions && positions.map((at) => (at < 0 ? last : at)) });
    return presets.map((preset) => ({ ...preset, edits: preset.edits.map(placed) }));
  }

  showQuestions() {
    const { presets } = this;
    const parts = [...new Set(presets.map((preset) => preset.part))];
    patch(this.questions, parts.map((part) => el("div", { class: "s-actions", role: "group", "aria-label": `Questions about the ${part}`, "data-key": part },
      el("span", { class: "s-muted" }, part === "decoder" ? "While it writes:" : "While it reads:"),
      presets.filter((preset) => preset.part === part).map((preset) => button(preset.name, () => this.press(preset), {
        title: preset.about, class: "s-example", "aria-pressed": String(this.isOn(preset)), "data-key": preset.name,
      })))));
  }

  isOn(preset) {
    return preset.edits.every((wanted) => {
      const { clamp, mixed } = heldAt(this.edits, wanted);
      return Boolean(clamp) && !mixed && clamp.value === wanted.value;
    });
  }

  // One question at a time for a part: it replaces the clamps of the part's gates.
  press(preset) {
    const on = this.isOn(preset);
    const kept = (edit) => edit.kind !== "ClampGate" || edit.part !== preset.part;
    this.bench.update(withEdits("B", (edits) => (on ? edits.filter(kept) : [...edits.filter(kept), ...preset.edits])), `B: ${on ? "let go of " : ""}${preset.name} (${preset.part})`);
  }

  showWhere() {
    const paint = (painting) => {
      this.painting = painting;
      if (!painting) this.brush = null;
      this.bench.tell("view", this.bench.state.view);
    };
    const { brush } = this;
    const units = brush && (brush.columns.length > 1 ? `${brush.columns.length} units` : `unit ${brush.columns[0]}`);
    const steps = brush && (brush.rows[1] > brush.rows[0] ? `steps ${brush.rows[0] + 1} to ${brush.rows[1] + 1}` : `step ${brush.rows[0] + 1}`);
    const all = brush && [
      button("All units there", () => this.widen("columns"), { class: "s-quiet", "data-key": "units" }), button("At all steps", () => this.widen("rows"), { class: "s-quiet", "data-key": "steps" })];
    patch(this.where,
      el("div", { class: "s-switch", role: "group", "aria-label": "What is held" },
        button("All units, all steps", () => paint(false), { "aria-pressed": String(!this.painting) }), button("Only what I paint", () => paint(true), { "aria-pressed": String(this.painting) })),
      this.painting ? el("span", { class: "s-muted" }, brush ? `Painted: ${this.wide.columns ? "all units" : units}, ${this.wide.rows ? "all steps" : steps}.` : "Drag over a map below to paint units and steps; with the keys, hold Shift and press an arrow, then Enter.") : null, this.painting ? all : null);
  }

  get wide() {
    return this.widened || { rows: false, columns: false };
  }

  widen(axis) {
    this.widened = { ...this.wide, [axis]: !this.wide[axis] };
    this.show();
  }

  /** Units and steps were painted over a map. */
  paint({ steps, units }) {
    this.brush = { rows: steps, columns: units };
    this.widened = null;
    this.bench.tell("view", this.bench.state.view);
  }

  // What a slider holds: everywhere, or where it was painted.
  place(gate) {
    const { brush, wide } = this;
    const steps = brush && !wide.rows ? Array.from({ length: brush.rows[1] - brush.rows[0] + 1 }, (_, i) => brush.rows[0] + i) : null;
    const units = brush && !wide.columns ? [...brush.columns].sort((p, q) => p - q) : null;
    return { ...placeOfPart(this.part), gate, units, positions: steps };
  }

  slider(gate) {
    const id = newId("s-hold");
    const place = this.place(gate);
    const { clamp, mixed } = heldAt(this.edits, place);
    const able = !this.painting || this.brush;
    const wider = Boolean(clamp) && !holdsSame(clamp, place);
    const number = !mixed && clamp && typeof clamp.value === "number" ? clamp.value : null;
    const state = mixed ? "held in part" : !clamp ? "follows the model" : `held ${heldHow(clamp.value)}${wider ? ", and not only there" : ""}`;
    const set = (value) => able && this.set(place, value);
    const range = el("input", { type: "range", id, min: 0, max: 1, step: 0.05, value: number === null ? 0.5 : number, disabled: !able, "aria-valuetext": state, on: { input: (event) => set(Number(event.target.value)), change: () => this.bench.history.close() } });
    const at = (name, value, on, more = {}) => button(name, () => set(value), { "aria-pressed": String(on), "aria-label": `${told(gate)}: ${value === null ? "the model's own" : `held at ${value}`}`, ...more });
    const own = at("model's own", null, !clamp && !mixed, wider ? { "aria-disabled": "true", title: "What holds this part holds more than it: take that edit back in column B." } : {});
    return el("div", { class: "s-hold", "data-key": gate }, el("label", { for: id }, told(gate)),
      el("span", { class: "s-switch" }, at("0", 0, number === 0), own, at("1", 1, number === 1)), range, el("output", { for: id, class: "s-muted" }, state));
  }

  set(place, value) {
    const where = `${told(place.gate).toLowerCase()} of the ${partName(this.part).toLowerCase()}`;
    this.bench.update(withClamp("B", place, value), value === null ? `B: let go of the ${where}` : `B: ${where} held at ${numeral(value)}`, { kind: `clamp.${this.part}.${place.gate}`, wait: 60 });
  }
}
