// A column as the finding compares it with another.
import { columnOf, questionOf, same, sidesOf } from "./state.js";

/** @returns {import("./finding.js").Side} */
export function sideOf(bench, side) {
  const { spec, tree, kind, prices } = bench.columns[side];
  return {
    hypothesis: bench.chosen(side), options: spec.options, checkpoint: spec.checkpoint, tree, kind: kind.target, edited: spec.edits.length > 0,
    prices, own: columnOf(bench.state, side).edits.length ? unedited(bench, side) : null,
  };
}

// What a column writes without its edits, where that is known: it was asked before, or another column asks just that.
function unedited(bench, side) {
  const question = { ...questionOf(bench.state, side), edits: [] };
  const other = sidesOf(bench.state).find((each) => same(questionOf(bench.state, each), question));
  const column = other ? bench.columns[other] : bench.answers.get(JSON.stringify(question));
  return column && { hypothesis: column.hypotheses[0], tree: column.tree };
}
