// Edits of words: B must begin so, may not begin so, or must say a word somewhere; and the place of a word's menu.
import { el } from "../../figures/js/core.js";
import { brief, isEnd, quoted, unitNumber, units } from "../../figures/js/text.js";
import { selectionFor } from "./answer.js";
import { columnOf, same, withBeginning, withColumn, withRequired, withView } from "./state.js";

/**
 * A word of an output or of a path: the pieces before it and its own.
 * @typedef {{side: string, of: import("./state.js").Selection, before: string[], pieces: string[], logp: number | null}} Word  `of`: the path it stands in
 */

/** The word that the unit `number` of a column's output is. @returns {Word} */
export function wordOf(bench, side, number) {
  const chosen = bench.chosen(side);
  const unit = units(chosen.pieces, bench.columns[side].kind.target)[number];
  const own = unit.atoms.flatMap((atom) => atom.pieces);
  const [first, last] = [Math.min(...own), Math.max(...own)];
  const logp = chosen.logps.slice(first, last + 1).reduce((sum, value) => sum + value, 0);
  return { side, of: selectionFor(chosen), before: chosen.pieces.slice(0, first), pieces: chosen.pieces.slice(first, last + 1), logp };
}

/** Of letters one after the other, how many after the first is the one at `x`. Letters of a ligature share one glyph, which
 * belongs to the first, and have no width themselves: each gets its part of the glyph.
 * @param {Pick<Element, "getBoundingClientRect">[]} letters @param {number} x @param {boolean} leftward */
export function letterAt(letters, x, leftward) {
  const [glyph, ...others] = letters.map((letter) => letter.getBoundingClientRect());
  const wide = others.findIndex(({ width }) => width > 0);
  const count = 1 + (wide < 0 ? others.length : wide);
  const share = (leftward ? glyph.right - x : x - glyph.left) / glyph.width;
  return Math.max(0, Math.min(count - 1, Math.floor(share * count))) || 0;
}

export class WordHands {
  constructor(bench) {
    this.bench = bench;
  }

  /** The menus of words, which come when the first of them is asked for. @returns {Promise<any>} */
  async menus() {
    const { handsOf } = await import("./hands.js");
    return handsOf("words", this.bench, {});
  }

  noun(side) {
    return this.bench.columns[side].kind.target === "characters" ? "letter" : "word";
  }

  // An edit of a word of A is made in B with the search of A, so that only the word differs.
  inB(side) {
    if (side === "B") return (state) => state;
    const { checkpoint, options } = columnOf(this.bench.state, side);
    return withColumn("B", ({ edits, checkpoint: own }) => ({ checkpoint, options, edits: own === checkpoint ? edits : [] }));
  }

  done(side, change, words) {
    const { bench } = this;
    const other = side !== "B" && bench.searchesApart() ? ", with the search of A" : "";
    bench.update((state) => withView({ tree: "B" })(change(this.inB(side)(state))), words + other);
  }

  /** B must begin with these pieces. */
  take(side, pieces) {
    this.done(side, withBeginning("B", "Force", pieces), `Forced ${this.named(side, pieces)}`);
  }

  /** B may not begin with exactly these pieces. */
  never(side, pieces) {
    this.done(side, withBeginning("B", "Ban", pieces), `Forbade ${this.named(side, pieces)}`);
  }

  /** The word must stand somewhere in B. */
  must(side, word) {
    this.done(side, withRequired("B", word), `B must say ${quoted(brief(word))} somewhere`);
  }

  // The last word of a path and where it stands.
  named(side, pieces) {
    const { target } = this.bench.columns[side].kind;
    const word = units(pieces, target).pop();
    const end = isEnd(pieces[pieces.length - 1]);
    return `${word && !end ? quoted(word.text) : "the end"} at ${this.noun(side)} ${unitNumber(pieces, pieces.length - 1, target)} of B`;
  }
}

/** The menu over a word of a column: it stands below it, and goes when something is chosen, by Escape, or when the focus leaves it. The
 * state knows over which word it is open; a redraw shows it there. */
export class WordPopover {
  constructor(bench, side) {
    this.bench = bench;
    this.side = side;
    this.number = -1;
    /** @type {Word | null} */
    this.word = null;
    /** @type {HTMLElement | null} the word that it stands below */
    this.anchor = null;
    this.node = el("div", { class: "s-popover", role: "dialog", "aria-label": "What may be said here", hidden: true });
    this.node.addEventListener("keydown", (event) => event.key === "Escape" && (event.stopPropagation(), this.close()));
    document.addEventListener("pointerdown", (event) => !this.node.hidden && !this.node.contains(event.target) && /** @type {Element} */ (event.target).closest(".s-word") !== this.anchor && this.close());
    this.node.addEventListener("focusout", (event) => event.relatedTarget && event.relatedTarget !== this.anchor && !this.node.contains(event.relatedTarget) && this.close());
  }

  /** A word is clicked: its menu opens, or closes if it was open. */
  toggle(number) {
    if (number === this.number) this.close();
    else this.bench.look({ menu: `${this.side}${number}` });
  }

  /** Stand where the state says. @param {HTMLElement[]} words of the output on screen */
  show(words) {
    const { menu } = this.bench.state.view;
    const number = menu.startsWith(this.side) && words[Number(menu.slice(1))] ? Number(menu.slice(1)) : -1;
    const back = this.node.contains(document.activeElement) ? this.anchor : null;
    this.anchor = words[number] || null;
    if (this.anchor) this.anchor.setAttribute("aria-expanded", "true");
    const word = this.anchor && wordOf(this.bench, this.side, number);
    const anew = !same(word, this.word);
    this.number = number;
    this.node.hidden = !word;
    if (!word && back) back.focus({ preventScroll: true }); // before the focused control goes
    if (anew) {
      this.word = word;
      this.node.replaceChildren();
    }
    if (!word) return;
    this.place();
    if (anew) this.fill(word);
  }

  async fill(word) {
    let menus;
    try {
      menus = await this.bench.words.menus();
    } catch {
      this.node.textContent = "The menu did not arrive. Click the word again.";
      return;
    }
    if (this.word !== word) return;
    menus.mount(this.node, word, () => this.close()).focus();
  }

  place() {
    const root = this.node.parentElement.getBoundingClientRect();
    const box = this.anchor.getBoundingClientRect();
    const wide = this.node.offsetWidth;
    const left = Math.max(8, Math.min(box.left, document.documentElement.clientWidth - wide - 8));
    this.node.style.left = `${left - root.left}px`;
    this.node.style.top = `${box.bottom - root.top + 4}px`;
  }

  close() {
    if (this.bench.state.view.menu.startsWith(this.side)) this.bench.look({ menu: "" });
  }
}
