// The page's offer beside its finding: a comparison in which only one thing differs.
import { button, el } from "../../figures/js/core.js";
import { strategyName } from "./finding.js";
import { columnOf, same } from "./state.js";

/** If two models also differ in their search, the cause of a difference is unknown. */
export function offers(bench) {
  const [a, b] = ["A", "B"].map((side) => columnOf(bench.state, side));
  if (a.checkpoint === b.checkpoint || same(searchOf(bench, a), searchOf(bench, b))) return null;
  return el("p", { class: "s-says" }, "A and B differ in model and in search, so the difference has two causes. Compare the models with the same search: ",
    ...["A", "B"].map((side) => [button(`${strategyName(columnOf(bench.state, side).options)} in both`, () => bench.sameSearch(side), { class: "s-quiet", "data-key": `search-of-${side}` }), " "]));
}

// Only options that the strategy uses.
function searchOf(bench, { options }) {
  const read = bench.setup.options.filter((field) => field.for.includes(options.strategy)).map((field) => options[field.name]);
  return [options.strategy, ...read];
}
