// A few probabilities as bars, each with a mark at its value before. They follow the pointer, so their nodes are reused.
import { el, probability } from "./core.js";
import { patch } from "./patch.js";

/**
 * @typedef {{name: string, p: number, before?: number, said?: boolean}} Bar  `before`: what it was untouched; `said`: what the output has there
 * @typedef {{title: string, bars: Bar[]}} BarsPayload
 */

function line({ name, p, before, said }) {
  const mark = before === undefined ? null : el("i", { style: { "--at": before.toFixed(4) } });
  const logp = p > 0 ? Math.log(p) : null;
  return el("li", { "data-key": name, class: said ? "s-said" : null },
    el("bdi", {}, name), el("span", { class: "s-bar-track", style: { "--p": p.toFixed(4) } }, mark), el("span", { class: "s-number" }, probability(logp, 3)));
}

/** @param {HTMLElement} element @param {BarsPayload} payload */
export function mountBars(element, payload) {
  const title = el("p", { class: "s-muted" });
  const list = el("ul", { class: "s-bars" });
  element.append(title, list);
  const update = (next) => {
    title.textContent = next.title;
    patch(list, next.bars.map(line));
  };
  update(payload);
  return { update, destroy: () => element.replaceChildren() };
}
