// A part of the page that folds. Whether it is open belongs to the state; folded parts are not built.
import { el } from "../../figures/js/core.js";

/**
 * A click changes the state, and the redraw that follows opens or closes the part. The browser's own toggling is told later, so a redraw
 * between the two would undo it. It still opens a part in which it has found what a person searches for.
 * @typedef {{isOpen: (key: string) => boolean, fold: (key: string, open: boolean) => void}} Folds
 * @param {Folds} page @param {string} key its name in a link @param {any} summary @param {any} attributes @param {...any} content
 */
export function foldable(page, key, summary, attributes, ...content) {
  const click = (event) => {
    event.preventDefault();
    page.fold(key, !page.isOpen(key));
  };
  const toggle = (event) => page.fold(key, event.target.open);
  return /** @type {HTMLDetailsElement} */ (el("details", { ...attributes, open: page.isOpen(key), on: { toggle } }, el("summary", { on: { click } }, summary), ...content));
}

/** @param {Folds} page @param {string} key @param {any} summary @param {any} attributes @param {() => any} content */
export function folding(page, key, summary, attributes, content) {
  return foldable(page, key, summary, { ...attributes, "data-key": key }, page.isOpen(key) ? content() : null);
}
