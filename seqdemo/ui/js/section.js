// A folded section of a view. Its content is loaded when it is first opened; whether it is open is part of the link.
import { el } from "../../figures/js/core.js";
import { foldable } from "./fold.js";

export class Section {
  /** `name`: which hands it holds, `options`: what they need to know. @param {any} bench @param {string} name @param {string} summary */
  constructor(bench, name, summary, options = {}) {
    this.bench = bench;
    this.name = name;
    this.options = options;
    this.key = `hands-${name}`;
    /** @type {any} */
    this.hands = null;
    this.coming = false;
    this.given = [];
    this.said = el("p", { class: "s-muted", role: "status" });
    this.node = foldable(bench, this.key, summary, { class: "s-hands" }, this.said);
  }

  /** The hands, if the section is open and they are loaded. */
  get here() {
    return this.bench.isOpen(this.key) && !this.node.hidden ? this.hands : null;
  }

  /** The page has changed. `shown`: whether the section applies here. */
  answer(shown, ...given) {
    this.node.hidden = !shown;
    this.node.open = this.bench.isOpen(this.key);
    this.given = given;
    if (!shown || !this.node.open) return;
    if (this.hands) this.hands.answer(...given);
    else if (!this.coming) this.fetch();
  }

  async fetch() {
    this.coming = true;
    this.said.textContent = "Fetching the tools…";
    try {
      const { handsOf } = await import("./hands.js");
      this.hands = handsOf(this.name, this.bench, this.options);
      this.said.remove();
      this.node.append(this.hands.node);
      this.bench.tell("view", this.bench.state.view);
    } catch {
      this.said.textContent = "The tools did not arrive. Fold this section and open it again.";
    }
    this.coming = false;
  }
}
