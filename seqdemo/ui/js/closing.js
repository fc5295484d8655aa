// Hold the units that follow a quotation (or a comment) together, and count how many texts still close it.
import { button, el } from "../../figures/js/core.js";
import { patch } from "../../figures/js/patch.js";
import { term } from "./glossary.js";
import { LongAsk } from "./longask.js";
import { columnOf, holdsSame, withEdits } from "./state.js";
import { keptEdit } from "./ways.js";

const SHOWN = 3; // texts beside one another

/** An AUC as how well the unit tells, whichever way it moves: from 0.5 to 1. @param {number} auc */
export function oriented(auc) {
  return `AUC ${Math.max(auc, 1 - auc).toFixed(3)}`;
}

// What is found is true of a model, whatever text is typed.
class OfModel extends LongAsk {
  question() {
    return columnOf(this.bench.state, "B").checkpoint;
  }
}

// A count is true of what B holds.
class OfHolds extends LongAsk {
  question() {
    const { checkpoint, edits } = columnOf(this.bench.state, "B");
    return JSON.stringify([checkpoint, edits]);
  }
}

export class ClosingHands {
  constructor(bench) {
    this.bench = bench;
    /** @type {any} */
    this.found = null;
    /** @type {any} */
    this.count = null;
    this.finding = new OfModel(bench, (answer, whole) => whole && this.show({ found: answer }));
    this.counting = new OfHolds(bench, (answer, whole) => whole && this.show({ count: answer }));
    this.units = el("div", {});
    this.counted = el("div", {});
    this.node = el("div", {},
      el("p", { class: "s-says" }, "One unit is often too few: where several carry the same fact, the others go on telling it. Find all that follow it, hold them in B, and count."),
      el("div", { class: "s-bar" }, button("Find the units", () => this.finding.ask({ ask: "followers" }), { class: "s-primary" }), this.finding.node), this.units,
      el("div", { class: "s-bar" }, button("Count the texts that close it", () => this.counting.ask({ ask: "closing" })), this.counting.node), this.counted);
  }

  answer() {
    if (this.finding.outdated()) this.found = null;
    if (this.counting.outdated()) this.count = null;
    this.draw();
  }

  show(answer) {
    Object.assign(this, answer);
    this.draw();
  }

  draw() {
    patch(this.units, this.found ? this.followers(this.found) : null);
    patch(this.counted, this.count ? this.texts(this.count) : null);
  }

  followers({ place, sample, units, outside, inside }) {
    const single = units.map(({ layer, unit, auc }, i) => this.hold([outside[i]], `unit ${unit} of layer ${layer + 1}`, `Inside a ${place} it ${auc < 0.5 ? "falls" : "rises"} (${oriented(auc)} over these passages). Held as outside a ${place}.`, `unit ${unit}, layer ${layer + 1}: ${auc < 0.5 ? "falls" : "rises"}, ${oriented(auc)}`));
    const all = units.length > 1 ? `all ${units.length} units` : "the unit";
    return [
      el("p", { class: "s-says" }, `Over ${sample}, recorded with the app: the units that tell best whether a letter stands inside a ${place}. A unit falls or rises inside; at `, term("AUC"), ` 1 its value alone tells which is which, at 0.5 it tells nothing. The sentence above the text counts over other text, the whole test text, so it gives a unit another AUC, and may name another unit as the best.`),
      el("div", { class: "s-actions", role: "group", "aria-label": `Hold the units that follow a ${place}` }, el("span", { class: "s-muted" }, `Hold ${all} in B`),
        this.hold(outside, `${all} as outside a ${place}`, `Each unit stays at its mean outside a ${place}, whatever is read.`, `as if outside a ${place}`),
        this.hold(inside, `${all} as inside a ${place}`, `Each unit stays at its mean inside a ${place}, whatever is read.`, `as if inside a ${place}`)),
      units.length > 1 ? el("div", { class: "s-actions", role: "group", "aria-label": "Hold one of them" }, el("span", { class: "s-muted" }, "or one of them, as if outside"), single) : null];
  }

  // A button that holds these clamps in B, and lets go of them.
  hold(told, name, title, label) {
    const clamps = told.map(keptEdit);
    const { edits } = columnOf(this.bench.state, "B");
    const on = clamps.every((clamp) => edits.some((edit) => holdsSame(edit, clamp) && edit.value === clamp.value));
    const press = () => {
      const others = (/** @type {any[]} */ all) => all.filter((edit) => !clamps.some((clamp) => holdsSame(edit, clamp)));
      this.bench.update(withEdits("B", (all) => (on ? others(all) : [...others(all), ...clamps])), `B: ${on ? "let go of " : ""}${name}`);
    };
    return button(label, press, { class: "s-example", "aria-pressed": String(on), title, "data-key": label });
  }

  texts({ place, sample, given, of, free, held, free_texts: freely, held_texts: heldTexts }) {
    const first = (text) => el("td", {}, el("bdi", {}, el("span", { class: "s-muted" }, text.slice(0, given)), text.slice(given, given + 120), "…"));
    return [
      el("p", { class: "s-says", role: "status" }, `Of ${sample}, each cut after ${given} letters and inside a ${place}, `, el("strong", {}, `${free} of ${of} close it as the model is, and ${held} of ${of} with what B holds`), ". Both were drawn just now with the same random numbers, at temperature 0.8."),
      el("div", { class: "s-table-wrap", tabindex: "0", role: "region", "aria-label": "The first of these texts" },
        el("table", { class: "s-table" }, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "as the model is"), el("th", { scope: "col" }, "with what B holds"))),
          el("tbody", {}, freely.slice(0, SHOWN).map((text, i) => el("tr", { "data-key": i }, first(text), first(heldTexts[i]))))))];
  }
}
