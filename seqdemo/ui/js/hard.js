// Hard attention looks at one place for each word: what is said of it, and the places that B may draw instead of the heaviest.
import { button, el } from "../../figures/js/core.js";
import { patch } from "../../figures/js/patch.js";
import { optionField } from "./options.js";
import { columnOf, withDraw } from "./state.js";

const MOST_SEED = 2147483647;
const SEED = { name: "draw-seed", label: "Seed", kind: "int", min: 0, max: MOST_SEED, help: "The same seed draws the same cells." };

/** Whether the model of a column has hard attention. @param {any} bench @param {string} side */
export function isHard(bench, side) {
  return Boolean((bench.card(columnOf(bench.state, side).checkpoint) || {}).hard);
}

/** The edit by which a column looks at drawn places. @param {any} bench @param {string} side */
export function drawOf(bench, side) {
  return columnOf(bench.state, side).edits.find((edit) => edit.kind === "AttentionDraw") || null;
}

/** What hard attention is, in a sentence. @param {string} noun of the output @param {string} area what it looks at @param {boolean} drawn */
export function hardSentence(noun, area, drawn) {
  const which = drawn ? `one ${area} alone, which is drawn by these weights` : `the heaviest ${area} alone`;
  return `This attention is hard: for each ${noun} the model weighs every ${area}, and then looks at ${which}.`;
}

/** The sentence of a column, or null where attention is soft. @param {any} bench @param {string} side @param {string} area */
export function toldHard(bench, side, area) {
  return isHard(bench, side) ? el("p", { class: "s-says" }, hardSentence(bench.words.noun(side), area, Boolean(drawOf(bench, side)))) : null;
}

/** Whose equation of the context holds in a column: that of soft attention, of the heaviest place or of a drawn one. */
export function equationOf(bench, side) {
  return !isHard(bench, side) ? "alignment" : drawOf(bench, side) ? "drawn" : "hard";
}

/** The targets towards which attention can be dimmed. That of an edit in force is always among them.
 * @param {{task: string, hard: boolean, now?: string}} about @returns {[string, string][]} */
export function blendTargets({ task, hard, now = "" }) {
  const names = { uniform: "uniform", last: task === "caption" ? "the bottom right cell" : "the last state", nothing: "nothing" };
  const kept = Object.entries(names).filter(([key]) => !hard || key === "nothing" || key === now);
  return /** @type {[string, string][]} */ (kept);
}

/** Whether B looks at the heaviest places or at drawn ones, and by which seed. */
export class DrawChoice {
  /** @param {any} bench @param {string} area */
  constructor(bench, area) {
    this.bench = bench;
    this.area = area;
    this.node = el("div", { class: "s-controls-line" });
  }

  answer() {
    const { bench, area } = this;
    this.node.hidden = !isHard(bench, "B");
    if (this.node.hidden) return;
    const edit = drawOf(bench, "B");
    const draws = (name, seed, on) => button(name, () => on || this.draw(seed), { "aria-pressed": String(on), "data-key": name });
    patch(this.node,
      el("div", { class: "s-switch", role: "group", "aria-label": `The ${area} B looks at` }, draws(`The heaviest ${area}`, null, !edit), draws(`A drawn ${area}`, 0, Boolean(edit))),
      edit ? [optionField(SEED, edit.seed, (_, seed) => this.draw(seed), "B"), button("Draw again", () => this.draw((edit.seed + 1) % (MOST_SEED + 1)), { class: "s-quiet", "data-key": "again" })] : null);
  }

  draw(seed) {
    const { bench, area } = this;
    bench.update(withDraw("B", seed), seed === null ? `B: looks at the heaviest ${area}` : `B: looks at drawn ${area}s, seed ${seed}`);
  }
}
