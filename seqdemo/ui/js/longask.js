// A question that takes a while: its button, its progress, a way to stop it, and its answer.
import { button, el } from "../../figures/js/core.js";
import { patch } from "../../figures/js/patch.js";
import { columnOf } from "./state.js";

export class LongAsk {
  /** @param {any} bench @param {(answer: any, whole: boolean) => void} heard hears the answer; `whole` is false for what came on the way */
  constructor(bench, heard) {
    this.bench = bench;
    this.heard = heard;
    this.number = 0;
    this.asked = "";
    this.node = el("span", { class: "s-inline", role: "status" });
  }

  async ask(fields) {
    const mine = ++this.number;
    this.asked = this.question();
    this.tell("Working…", true);
    const progress = (told) => {
      if (mine !== this.number) return;
      this.tell(told.progress, true);
      this.heard(told, false);
    };
    const answer = await this.bench.hand.probe("B", fields, progress);
    if (mine !== this.number) return;
    this.tell(answer.error || "", false);
    if (!answer.error) this.heard(answer, true);
  }

  // An answer is of one input and one model; what is done to B meanwhile does not make it old.
  question() {
    const { state } = this.bench;
    return JSON.stringify([state.input, columnOf(state, "B").checkpoint]);
  }

  /** Whether the answer is of another input or model than those on screen; if so, it is forgotten. */
  outdated() {
    if (!this.asked || this.asked === this.question()) return false;
    this.asked = "";
    this.number += 1;
    this.tell("", false);
    return true;
  }

  tell(text, busy) {
    patch(this.node, el("span", { class: "s-muted" }, text), busy ? button("Stop", () => this.bench.hand.halt(), { class: "s-stop" }) : null);
  }
}
