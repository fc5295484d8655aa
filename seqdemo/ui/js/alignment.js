// The alignments of both columns, side by side.
import { el } from "../../figures/js/core.js";
import { mountAlignment, ownSide, sidesOfMap } from "../../figures/js/alignment.js";
import { legend } from "../../figures/js/colour.js";
import { factsOf } from "./facts.js";
import { strategyName } from "./finding.js";
import { equations, term } from "./glossary.js";
import { patch } from "../../figures/js/patch.js";
import { equationOf, toldHard } from "./hard.js";
import { Section } from "./section.js";
import { columnOf } from "./state.js";
import { trustOf } from "./trust.js";

const NO_ATTENTION = "This model has no attention: it squeezes the whole input into one vector, so there is nothing to align.";

function aboutRows(hard) {
  const how = hard ? "Click a cell of B to look there, and again to let go." : "Drag a cell of B up or down: the row follows, and still sums to 1. Click a cell to put all attention there, and again to let go.";
  return `${how} B is then decoded from there; A stays as it is.`;
}

export class AlignmentPanel {
  constructor(bench) {
    this.bench = bench;
    this.drawings = {};
    this.payloads = {};
    this.parts = Object.fromEntries(["A", "B"].map((side) => [side, {
      head: el("h3", { class: `s-figure-head s-ink-${side.toLowerCase()}` }), none: el("p", { class: "s-muted", hidden: true }), holder: el("div", {}),
    }]));
    this.section = new Section(bench, "piece", "Hands on the model: move where B looks", { area: "piece", head: () => this.headOfB(), about: aboutRows });
    const halves = Object.entries(this.parts).map(([side, { head, none, holder }]) => el("div", { class: "s-half" }, head, none, holder));
    this.still = el("p", { class: "s-muted", hidden: true }, "Self-attention cannot be moved by hand. To move where B looks in the source, show the mean in B or a head of its attention to the source.");
    this.scale = el("div", { class: "s-bar" });
    this.trust = el("div", { class: "s-trust" });
    this.equation = el("div", {});
    this.about = el("p", { class: "s-says" });
    this.hard = el("div", {});
    this.node = el("div", {}, this.about, this.hard, this.scale, el("div", { class: "s-halves" }, halves), this.still, this.section.node, this.trust, this.equation);
  }

  answer() {
    this.scale.replaceChildren(legend("weights", "0", "1", "Attention from 0 to 1, the same scale in A and B"), el("span", { class: "s-muted" }, "the same scale in A and B"));
    for (const side of ["A", "B"]) this.half(side);
    this.tell();
    const shown = ["A", "B"].filter((side) => this.attends(side));
    patch(this.hard, ...new Map(shown.map((side) => [equationOf(this.bench, side), toldHard(this.bench, side, "piece")])).values());
    patch(this.equation, equations(this.bench, "alignment", shown.length ? shown.map((side) => equationOf(this.bench, side)) : "alignment"));
    this.still.hidden = !this.attends("B") || !this.own("B");
    this.section.answer(this.attends("B") && this.still.hidden);
  }

  // What holds of the maps shown. A map of self-attention says itself what its rows and columns are, and nothing is measured of it.
  tell() {
    const across = ["A", "B"].filter((side) => this.attends(side) && !this.own(side));
    const whose = across.length === 1 && this.attends("A") && this.attends("B") ? `In ${across[0]}: ` : "";
    patch(this.about, across.length ? `${whose}${sidesOfMap("")} ` : "", "The stronger the colour of a cell, the more ", term("attention"), " the model paid there. Point at a word anywhere and its partners light up.");
    patch(this.trust, trustOf(this.bench, (side) => !this.own(side)));
  }

  /** The side that a map of self-attention looks at; "" for the others. */
  own(side) {
    return ownSide((this.bench.columns[side] || {}).trace || {}, this.heads[side]);
  }

  /** The one head that B shows, of those that can be edited; null: their mean, or the only one. */
  headOfB() {
    const shown = (this.bench.columns.B.trace.heads || [])[this.heads.B];
    return shown && shown.layer !== undefined ? shown : null;
  }

  attends(side) {
    return this.bench.has(side) && Boolean(this.bench.columns[side].trace.attention);
  }

  // The map of one column, or why there is none.
  half(side) {
    const { trace, kind, error } = this.bench.columns[side];
    const { head, none, holder } = this.parts[side];
    head.textContent = `${side}: ${strategyName(columnOf(this.bench.state, side).options)}`;
    none.hidden = this.attends(side);
    holder.hidden = !none.hidden;
    none.textContent = error || NO_ATTENTION;
    if (holder.hidden) return;
    const facts = factsOf(this.bench, side, "Attention");
    this.payloads[side] = { source: trace.source, target: trace.pieces, weights: trace.attention, heads: trace.heads, kinds: kind, facts };
    this.draw(side);
  }

  draw(side) {
    /** @type {import("../../figures/js/alignment.js").AlignmentView} */
    const view = { lit: this.lit(side), word: this.word(side), legend: false, head: this.heads[side], tables: this.bench.tables(`-${side.toLowerCase()}`), mode: side === "B" && this.section.here ? "drag" : "look" };
    if (this.drawings[side]) this.drawings[side].update(this.payloads[side], view);
    else this.drawings[side] = mountAlignment(this.parts[side].holder, this.payloads[side], view, (event, detail) => this.heard(side, event, detail));
  }

  /** Which head of a Transformer each side shows. @returns {Object<string, number>} */
  get heads() {
    const [A = 0, B = 0] = this.bench.state.view.heads;
    return { A, B };
  }

  heard(side, event, detail) {
    if (event === "hover") this.hover(side, detail);
    else if (event === "table") this.bench.foldTable(detail, `-${side.toLowerCase()}`);
    else if (event === "head") this.bench.look({ heads: Object.values({ ...this.heads, [side]: detail }) });
    else if (side === "B" && this.section.here) this.section.here.heard(event, detail);
  }

  hover(side, cell) {
    const at = cell && (cell.row === null ? { end: "source", index: cell.column } : { end: "target", index: cell.row });
    this.bench.setHover(at && { side, ...at });
  }

  // The piece that is pointed at, if it is of this column.
  word(side) {
    const { hover } = this.bench;
    return hover && (hover.end === "source" || hover.side === side) ? hover : null;
  }

  lit(side) {
    const { bench } = this;
    return bench.hover && { rows: (t) => bench.brightness(side, "target", t), columns: (j) => bench.brightness(side, "source", j) };
  }

  light() {
    for (const side of ["A", "B"]) if (this.drawings[side] && this.attends(side)) this.draw(side);
  }
}
