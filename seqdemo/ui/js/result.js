// The current output of column B and its price, shown near the pointer, because the columns may be far above.
import { el } from "../../figures/js/core.js";
import { patch } from "../../figures/js/patch.js";
import { units } from "../../figures/js/text.js";
import { columnOf } from "./state.js";

export class ResultLine {
  constructor(bench) {
    this.bench = bench;
    this.node = el("p", { class: "s-result s-side-b", role: "status" });
  }

  answer() {
    const { bench } = this;
    const column = bench.columns.B;
    this.node.hidden = !columnOf(bench.state, "B").edits.length || !bench.has("B");
    if (this.node.hidden) return;
    const marks = bench.differences()[1];
    const words = units(bench.chosen("B").pieces, column.kind.target).map((unit, u) => [
      unit.atoms[0].space ? " " : "", el("span", { class: marks.has(u) ? "s-differs" : null }, unit.text)]);
    patch(this.node, el("strong", { class: "s-ink-b" }, "B now writes: "), el("bdi", { class: "s-quote" }, words), " ", el("span", { class: "s-muted" }, bench.priceText(column)));
  }
}
