// Undo, redo, and the steps behind them in words.
import { button, el } from "../../figures/js/core.js";
import { patch } from "../../figures/js/patch.js";
import { folding } from "./fold.js";

const TEXT_FIELDS = "textarea, input[type='text'], input[type='number'], input:not([type]), [contenteditable='true']";

export class StepsView {
  constructor(bench) {
    this.bench = bench;
    this.node = el("div", { class: "s-steps" });
    addEventListener("keydown", (event) => this.key(event));
  }

  // Inside a text field, Ctrl-Z is the browser's.
  key(event) {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || (event.target.matches && event.target.matches(TEXT_FIELDS))) return;
    const key = event.key.toLowerCase();
    const by = key === "z" ? (event.shiftKey ? 1 : -1) : key === "y" ? 1 : 0;
    if (!by) return;
    event.preventDefault();
    this.bench.go(by);
  }

  state() {
    const { bench } = this;
    const { steps, at } = bench.history;
    const way = (name, by, key) => {
      const can = bench.history.canGo(by);
      const what = can ? `: ${steps[by < 0 ? at : at + 1].words}` : "";
      return button(name, () => can && bench.go(by), { "aria-disabled": String(!can), "aria-label": name + what, "aria-keyshortcuts": key, title: name + what });
    };
    patch(this.node, way("Undo", -1, "Control+Z"), way("Redo", 1, "Control+Shift+Z"),
      folding(bench, "steps", steps.length === 1 ? "No steps yet" : `${at} of ${steps.length - 1} steps`, { class: "s-history" }, () => el("ol", { start: "0" }, steps.map((step, i) => this.step(step, i, at)))));
  }

  step({ words }, number, at) {
    const { bench } = this;
    return el("li", {}, button(words, () => bench.go(number - bench.history.at), { class: "s-quiet", "aria-current": number === at ? "step" : null }));
  }
}
