// When does a gate close? The mean of each gate by the piece that was read: most shut and most open.
import { button, el, table } from "../../figures/js/core.js";
import { isolated, pieceName } from "../../figures/js/text.js";
import { GATE_WORDS, partName } from "../../figures/js/units.js";
import { Asked } from "./asked.js";

const MOST_TOLD = 5;

/** The pieces at which a gate is most shut and most open: never the same ones, also where there are few. @param {any} gate */
export function extremes({ shut, open, means }) {
  return [shut.slice(0, Math.min(MOST_TOLD, Math.ceil(means.length / 2))), open.slice(0, Math.min(MOST_TOLD, Math.floor(means.length / 2)))];
}

export class GateTimes extends Asked {
  constructor(bench) {
    super(bench, { class: "s-gate-times" });
    const ask = (over) => () => this.asking.ask({ ask: "gates", over });
    this.node = el("div", {},
      el("p", { class: "s-says" }, "Each gate's mean over its units, by the piece that the step reads: where it is most shut, and where most open."),
      el("div", { class: "s-bar" }, button("In this input and output of B", ask("input")), button("Over a recorded sample of texts", ask("sample")), this.asking.node), this.list);
  }

  lines({ over, sample, gates }) {
    const { kind } = this.bench.columns.B;
    const named = (part) => ({ piece, mean, at, count }) => {
      const place = at === null || at === undefined ? ` (${count} times)` : ` (${at + 1})`;
      const name = piece === "<bos>" ? "the start" : pieceName(piece, part === "encoder" ? kind.source : kind.target);
      return `${isolated(name)} ${mean.toFixed(2)}${place}`;
    };
    const rows = gates.map(({ part, layer, direction, gate, mean, ...told }) => [
      `${(GATE_WORDS[gate] || [gate])[0]}, ${partName([part, layer, ...(part === "encoder" ? [direction] : [])].join(".")).toLowerCase()}`, mean.toFixed(2),
      ...extremes(told).map((pieces) => pieces.map(named(part)).join("  ·  "))]);
    const caption = over === "input" ? "In this input and in what B writes; the number after a piece is its place" : `Over ${sample}; pieces that stand there at least three times`;
    return gates.length ? table(caption, ["gate", "mean", "most shut at", "most open at"], rows) : el("p", { class: "s-muted" }, "This cell has no gates that open and shut.");
  }
}
