// The menu of a word in an output or a box of the tree. Its offers come first from the answer on screen, then from the model.
import { graphemes, isEnd, pieceName, plainText, unitNumber } from "../../figures/js/text.js";
import { mountWordmenu } from "../../figures/js/wordmenu.js";

const MOST_BEFORE = 40;

/** The end of a text, for a sentence. */
function ending(text) {
  const letters = graphemes(text.trim());
  return letters.length > MOST_BEFORE ? `…${letters.slice(-MOST_BEFORE).map(({ segment }) => segment).join("")}` : text.trim();
}

/** The words after `before` in the answer on screen, likeliest first. */
function likelyAfter(column, before) {
  const { trace, tree, kind } = column;
  const named = (piece, logp) => ({ text: isEnd(piece) ? "the end" : pieceName(piece, kind.target).replace(/^‿/, ""), pieces: [piece], logp });
  const own = trace ? trace.pieces.length - trace.asked.length : 0;
  const there = trace && before.every((piece, i) => trace.pieces[own + i] === piece);
  if (there && trace.top[own + before.length]) return trace.top[own + before.length].map(([piece, logp]) => named(piece, logp));
  let parents = [-1];
  for (const piece of before) parents = parents.flatMap((row) => (tree.children.get(row) || []).filter((child) => tree.pieces.get(tree.token[child]) === piece));
  const rows = parents.flatMap((row) => (before.length && row < 0 ? [] : tree.children.get(row) || []));
  return rows.map((row) => named(tree.pieces.get(tree.token[row]), tree.logp[row])).sort((one, other) => other.logp - one.logp);
}

export class WordMenus {
  constructor(bench) {
    this.bench = bench;
  }

  /** A menu of `word` in `holder`. `done` hears that something was chosen. @param {HTMLElement} holder @param {import("./words.js").Word} word */
  mount(holder, word, done = () => {}) {
    const menu = { word, typed: "", found: null, best: null, searching: false, said: "", unsayable: false };
    const drawing = mountWordmenu(holder, this.payload(menu), {}, (event, detail) => this.heard(menu, drawing, event, detail, done));
    this.complete(menu, drawing);
    return { focus: drawing.focus, update: (next) => {
      const told = ({ side, before, pieces }) => JSON.stringify([side, before, pieces]);
      if (told(next) !== told(menu.word)) Object.assign(menu, { found: null, best: null, typed: "", said: "", unsayable: false }); // what is typed is for one word
      const anew = JSON.stringify(next) !== JSON.stringify(menu.word);
      menu.word = next;
      drawing.update(this.payload(menu), { typed: menu.typed });
      if (anew) this.complete(menu, drawing);
    } };
  }

  payload({ word, found, best, searching, said, unsayable }) {
    const { side, before, pieces, logp } = word;
    const column = this.bench.columns[side];
    const { target } = column.kind;
    const ended = isEnd(pieces[pieces.length - 1]);
    const number = unitNumber([...before, ...pieces], before.length + pieces.length - 1, target);
    return {
      word: plainText([...before, ...pieces], target).slice(plainText(before, target).length).trim(), pieces, ended, logp, searching, said, unsayable,
      before: ending(plainText(before, target)), best, noun: this.bench.words.noun(side),
      place: ended ? `after ${number - 1} ${this.bench.words.noun(side)}s of ${side}` : `${this.bench.words.noun(side)} ${number} of ${side}`,
      alternatives: found || likelyAfter(column, before),
    };
  }

  heard(menu, drawing, event, detail, done) {
    const { side, before, pieces } = menu.word;
    if (event === "type") {
      Object.assign(menu, { typed: detail, said: "", unsayable: false });
      this.complete(menu, drawing);
      return;
    }
    if (event === "take") this.bench.words.take(side, [...before, ...pieces]);
    if (event === "other") this.bench.words.take(side, [...before, ...detail.pieces]);
    if (event === "never") this.bench.words.never(side, [...before, ...pieces]);
    if (event === "must") this.bench.words.must(side, detail);
    done();
  }

  // Whole words that fit the typed text, from the model; known ones are shown meanwhile.
  async complete(menu, drawing) {
    const { bench } = this;
    const { word, typed } = menu;
    menu.searching = true;
    drawing.update(this.payload(menu));
    const answer = await bench.hand.ask(word.side, { ask: "words", of: word.of, position: word.before.length, typed });
    if (!answer) return;
    const found = answer.words && answer.words.map(({ text, pieces, p }) => ({ text, pieces, logp: p > 0 ? Math.log(p) : null }));
    Object.assign(menu, { searching: false, found: found || menu.found, best: answer.best > 0 ? Math.log(answer.best) : menu.best, said: answer.error || "", unsayable: Boolean(answer.unsayable) });
    drawing.update(this.payload(menu));
  }
}
