// A part of the page that folds. Whether it is open belongs to the state; folded parts are not built.
import { el } from "../../figures/js/core.js";

/** @param {any} bench @param {string} key its name in a link @param {any} summary @param {any} attributes @param {() => any} content */
export function folding(bench, key, summary, attributes, content) {
  const open = bench.isOpen(key);
  return el("details", { ...attributes, "data-key": key, open, on: { toggle: (event) => bench.fold(key, event.target.open) } }, el("summary", {}, summary), open ? content() : null);
}
