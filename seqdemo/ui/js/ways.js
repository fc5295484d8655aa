// What would make it say X? The cheapest ways to get a word, each with its size, its price and a button that applies it.
import { button, el, newId, probability } from "../../figures/js/core.js";
import { patch } from "../../figures/js/patch.js";
import { differing, plainText, quoted, visible } from "../../figures/js/text.js";
import { AskedOfWord } from "./asked.js";
import { NOUNS, comparedWith } from "./finding.js";
import { columnOf, same, withEdits } from "./state.js";

/** The ways by their names. @param {string} noun a word, or a letter @returns {Record<string, string>} */
export function waysTo(noun) {
  return {
    ban: "Forbid something there", earlier: `Change an earlier ${noun}`, row: "Move its attention", units: "Hold a few units at their mean", force: `Force the ${noun} itself (for comparison)`,
  };
}

/** An edit as the state keeps it: words by their pieces, and no sentence. @param {any} told */
export function keptEdit(told) {
  const left = ["says", ...(told.pieces ? ["tokens"] : [])];
  return Object.fromEntries(Object.entries(told).filter(([name, value]) => !left.includes(name) && (value !== null || ["units", "positions"].includes(name))));
}

// With a capital and without a full stop, because something follows.
const sentence = (text) => (text.charAt(0).toUpperCase() + text.slice(1)).replace(/\.$/, "");

export class WayHands extends AskedOfWord {
  constructor(bench) {
    super(bench, { growing: "ways", class: "s-ways" });
    const [wish, list] = [newId("s-wish"), newId("s-likely")];
    const noun = NOUNS[bench.setup.task][1];
    this.names = waysTo(noun);
    this.word.addEventListener("change", () => this.complete());
    this.wish = el("input", { type: "text", id: wish, list, dir: "auto", autocomplete: "off", spellcheck: "false", autocapitalize: "off", placeholder: `a ${noun}` });
    this.wish.addEventListener("input", () => this.complete());
    this.wish.addEventListener("keydown", (event) => event.key === "Enter" && this.ask());
    this.likely = el("datalist", { id: list });
    this.node = el("div", {},
      el("p", { class: "s-says" }, `Choose a place of B's output and the ${noun} you would like to see there. The page looks for the smallest change that brings it about without forcing it.`),
      el("div", { class: "s-bar" }, this.labelled("Instead of"),
        el("span", { class: "s-inline" }, el("label", { for: wish }, "say"), this.wish, this.likely), button("Look for ways", () => this.ask(), { class: "s-primary" }), this.asking.node), this.list);
  }

  // The model's likely words there, as suggestions.
  async complete() {
    const position = Number(this.word.value);
    const answer = await this.bench.hand.ask("B", { ask: "words", position, typed: this.wish.value });
    if (!answer || !answer.words) return;
    patch(this.likely, answer.words.map(({ text, p }) => el("option", { value: text }, probability(p > 0 ? Math.log(p) : null, 3))));
  }

  ask() {
    const word = this.wish.value.trim();
    if (!word) {
      this.asking.tell(`Type the ${NOUNS[this.bench.setup.task][1]} first.`, false);
      return;
    }
    this.before = columnOf(this.bench.state, "B").edits;
    this.written = this.bench.chosen("B").pieces;
    this.asking.ask({ ask: "cheapest", position: Number(this.word.value), word });
  }

  lines({ says = "", cheapest = null, ways }) {
    return [says ? el("p", { class: "s-says" }, says) : null,
      el("ul", {}, ways.map((way, i) => el("li", { "data-key": way.way, class: i === cheapest ? "s-cheapest" : null }, this.way(way, i === cheapest))))];
  }

  way(way, cheapest) {
    const { target } = this.bench.columns.B.kind;
    const title = el("h3", {}, this.names[way.way] || way.way, cheapest ? el("span", { class: "s-flag" }, "cheapest") : null);
    if (!way.found) return [title, el("p", { class: "s-muted" }, sentence(way.says || `best found: ${probability(way.best > 0 ? Math.log(way.best) : null)}`))];
    const words = (text) => (target === "characters" ? [...text] : text.split(" "));
    const now = words(visible(way.text));
    const marks = differing(words(plainText(this.written, target)), now)[1];
    const text = now.map((word, u) => [u && target !== "characters" ? " " : "", el("span", { class: marks.has(u) ? "s-differs s-side-b" : null }, word)]);
    const price = typeof way.cost !== "number" ? "" : `the model, left alone, finds this output ${comparedWith(way.cost, "its own")}`;
    return [title, el("p", {}, el("bdi", {}, text)), el("p", { class: "s-muted" }, [sentence(way.says), way.size, price].filter(Boolean).join("; ")),
      button(this.isOn(way) ? "Take it back" : "Do this in B", () => this.apply(way), { "aria-pressed": String(this.isOn(way)), "aria-label": `${this.names[way.way]}: ${this.isOn(way) ? "take it back" : "do this in B"}` })];
  }

  isOn(way) {
    const { edits } = columnOf(this.bench.state, "B");
    return way.edits.length > 0 && way.edits.every((wanted) => edits.some((edit) => same(edit, keptEdit(wanted))));
  }

  // One way at a time, together with the edits that were in force during the search.
  apply(way) {
    const on = this.isOn(way);
    this.bench.update(withEdits("B", () => (on ? this.before : [...this.before, ...way.edits.map(keptEdit)])), on ? `B: took back ${quoted(way.says)}` : `B: ${way.says}`);
  }
}
