// What the finding needs to know of a column.

const NO_TREE = { children: new Map(), token: [], fate: [], missed: [] };

/** @returns {import("./finding.js").Side} */
export function sideOf(bench, side) {
  const { spec, tree, kind, prices, own } = bench.columns[side];
  return {
    hypothesis: bench.chosen(side), options: spec.options, checkpoint: spec.checkpoint, tree, kind: kind.target, edited: spec.edits.length > 0,
    prices, own: own ? { hypothesis: own, tree: NO_TREE } : null,
  };
}
