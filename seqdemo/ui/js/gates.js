// The gates of one column's selected output.
import { el } from "../../figures/js/core.js";
import { mountGates } from "../../figures/js/gates.js";
import { partName } from "../../figures/js/units.js";
import { patch } from "../../figures/js/patch.js";
import { factsOf } from "./facts.js";
import { NOUNS } from "./finding.js";
import { equations, term } from "./glossary.js";
import { sideSwitch } from "./panels.js";
import { Section } from "./section.js";
import { withView } from "./state.js";

const CELL_EQUATIONS = [["update", "gru"], ["cell", "lstm"], ["hidden", "elman"]];

export class GatesPanel {
  constructor(bench) {
    this.bench = bench;
    this.drawing = null;
    this.payload = null;
    this.bar = el("div", { class: "s-bar" });
    this.waiting = el("p", { class: "s-muted" }, "Reading the gates…");
    this.none = el("p", { class: "s-muted", hidden: true }, "A Transformer has no cells, so there are no gates to show; its attention is under Alignment.");
    this.holder = el("div", {});
    this.equation = el("div", {});
    this.hands = new Section(bench, "gates", "Hands on the model: hold the gates of B");
    this.ranking = new Section(bench, "units", `Which unit matters for this ${NOUNS[bench.setup.task][1]} of B?`);
    this.times = new Section(bench, "times", "When does a gate close?");
    this.node = el("div", {},
      el("p", { class: "s-says" }, "What every ", term("unit"), " of the network did at every step of the selected output: one row per step, one thin column per unit. ", term("saturation", "What is saturation?")),
      this.bar, this.hands.node, this.waiting, this.none, this.holder, this.ranking.node, this.times.node, this.equation);
  }

  answer() {
    const { bench } = this;
    const { part, order, step } = bench.state.view;
    const side = bench.shownIn("gates");
    const { trace, kind } = bench.columns[side];
    const ready = Boolean(trace.parts && trace.gates_kind === "all");
    this.waiting.hidden = ready;
    if (!ready) return;
    patch(this.bar, sideSwitch(bench, side, (gates) => bench.update(withView({ gates }), `Looked at the gates of ${gates}`, { kind: "gates" }), "Whose gates"));
    this.payload = { gates: trace.parts, source: trace.source, target: trace.pieces, kinds: kind, facts: factsOf(bench, side, "Gates") };
    const shown = trace.parts.has(part) ? part : [...trace.parts.keys()].find((name) => name.startsWith("decoder"));
    this.hands.answer(side === "B" && Boolean(shown), shown, trace.parts.get(shown));
    this.ranking.answer(side === "B" && Boolean(shown), shown);
    this.times.answer(side === "B" && Boolean(shown));
    this.none.hidden = Boolean(shown);
    this.holder.hidden = this.equation.hidden = !shown;
    if (!shown) return;
    const painting = this.hands.here && this.hands.here.painting;
    /** @type {import("../../figures/js/gates.js").GatesView} */
    const view = { part, order, step, mode: painting ? "brush" : "look", brushed: painting ? this.hands.here.brush : null, tables: bench.tables() };
    if (this.drawing) this.drawing.update(this.payload, view);
    else this.drawing = mountGates(this.holder, this.payload, view, (event, detail) => this.heard(event, detail));
    const names = [...trace.parts.values()][0];
    patch(this.equation, equations(bench, CELL_EQUATIONS.find(([gate]) => names.has(gate))[1]));
  }

  heard(event, detail) {
    const { bench } = this;
    const side = bench.shownIn("gates");
    const words = { part: () => `Gates: ${partName(detail).toLowerCase()}`, order: () => `Gates: units ordered by ${detail}`, step: () => `Gates: reaction to token ${detail + 1}` };
    if (event in words) bench.update(withView({ [event]: detail }), words[event](), { kind: "gates" });
    else if (event === "table") bench.foldTable(detail);
    else if (event === "brush") this.hands.here.paint(detail);
    else if (event === "hover") bench.setHover(detail && { side, end: detail.part.startsWith("encoder") ? "source" : "target", index: detail.step });
  }
}
