// A long question about B, its answer as a list, and the word of B's output that it is about.
import { el, newId } from "../../figures/js/core.js";
import { patch } from "../../figures/js/patch.js";
import { isEnd, pieceName, units } from "../../figures/js/text.js";
import { LongAsk } from "./longask.js";

/** The words of an output as places: where each begins and how many pieces it has. */
export function placesOfWords(pieces, kind) {
  const words = units(pieces, kind).map((unit) => {
    const own = unit.atoms.flatMap((atom) => atom.pieces);
    return { text: unit.text, position: Math.min(...own), length: Math.max(...own) - Math.min(...own) + 1 };
  });
  const end = pieces.findIndex(isEnd);
  return end < 0 ? words : [...words, { text: pieceName(pieces[end], kind), position: end, length: 1 }];
}

/** A subclass has `lines(found)`, which draws an answer. */
export class Asked {
  /** `growing`: the field of an answer that is shown while it still grows. @param {any} bench @param {{growing?: string, class?: string}} [options] */
  constructor(bench, { growing = "", class: name = "" } = {}) {
    this.bench = bench;
    /** @type {any} */
    this.found = null;
    this.list = el("div", { class: name || null });
    this.asking = new LongAsk(bench, (answer, whole) => (whole || answer[growing]) && this.show({ ...answer, whole }));
  }

  /** The page has changed: an answer about another input or model goes. */
  answer() {
    if (this.asking.outdated()) this.found = null;
    this.draw();
  }

  show(answer) {
    this.found = answer;
    this.draw();
  }

  draw() {
    patch(this.list, this.found ? this.lines(this.found) : null);
  }

  /** @param {any} found @returns {any} */
  lines(found) {
    return found;
  }
}

/** The same about one word, which is chosen from a list. */
export class AskedOfWord extends Asked {
  constructor(bench, options) {
    super(bench, options);
    this.word = el("select", { id: newId("s-word") });
    /** @type {{text: string, position: number, length: number}[]} */
    this.places = [];
  }

  labelled(name) {
    return el("span", { class: "s-inline" }, el("label", { for: this.word.id }, name), this.word);
  }

  answer() {
    const kept = this.word.value;
    this.places = placesOfWords(this.bench.chosen("B").pieces, this.bench.columns.B.kind.target);
    patch(this.word, this.places.map(({ text, position }, i) => el("option", { value: position }, `${i + 1}: ${text}`)));
    if (this.places.some(({ position }) => String(position) === kept)) this.word.value = kept;
    super.answer();
  }

  place() {
    return this.places.find(({ position }) => String(position) === this.word.value);
  }
}
