// The effect of an edit, in a few words beside it. For words the server describes it, at their place and for the whole output.
import { el, signed, tipFor } from "../../figures/js/core.js";
import { NOUNS, comparedWith } from "./finding.js";
import { TERMS } from "./glossary.js";

/** Such as “1.5× less likely than the model's likeliest choice at this place; the whole sentence 1.2× likelier than what greedy search writes”; empty while nothing is known. */
export function badge(bench, side, index) {
  const price = bench.priceOf(side, index);
  if (!price) return "";
  const words = (bench.columns[side].badges || [])[index];
  if (price.kind === "tokens") return words ? words.says : "";
  return ofState(price, (NOUNS[bench.setup.task] || NOUNS.translate)[0]);
}

// A row, a blend or a clamp: the same output with it and without it.
function ofState({ change }, noun) {
  return `the edited model finds this ${noun} ${comparedWith(change, "the untouched one does")}`;
}

/** The price of one of several edits: “log p −0.42”. @param {number | undefined} change of the log probability */
export function ownPrice(change) {
  if (change === undefined) return null;
  const value = signed(change, 2);
  return tipFor(el("span", { class: "s-number s-term", tabindex: "0" }, `log p ${change > 0 && Number(value) ? "+" : ""}${value}`),
    ["log p: the price of this edit alone", TERMS["price of an edit"], "The number is the change of the log probability; below 0 it is less likely with the edit."]);
}
