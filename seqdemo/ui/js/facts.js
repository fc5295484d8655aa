// The heading of saved pictures, and what drawings highlight, from the page's state.
import { strategyName } from "./finding.js";

/** @returns {import("../../figures/js/saving.js").Facts} */
export function factsOf(bench, side, what) {
  const column = bench.columns[side];
  return {
    title: `${what} of column ${side}, ${strategyName(column.spec.options)}`,
    input: bench.setup.task === "caption" ? "" : column.source.pieces.length ? bench.state.input.text : "",
    output: bench.chosen(side).text || "",
    checkpoint: column.spec.checkpoint,
  };
}
