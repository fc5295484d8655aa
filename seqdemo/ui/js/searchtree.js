// The tree of one column, the other column's path through it, and the actions on the selected box.
import { el } from "../../figures/js/core.js";
import { isEnd, plainText, quoted, units } from "../../figures/js/text.js";
import { pathTo } from "../../figures/js/layout.js";
import { patch } from "../../figures/js/patch.js";
import { mountTree } from "../../figures/js/tree.js";
import { factsOf } from "./facts.js";
import { firstDifference, walk } from "./finding.js";
import { equations, term } from "./glossary.js";
import { sideSwitch } from "./panels.js";
import { searchRule } from "./searchrules.js";
import { Section } from "./section.js";
import { withView } from "./state.js";

export class TreePanel {
  constructor(bench) {
    this.bench = bench;
    this.bar = el("div", { class: "s-bar" });
    this.holder = el("div", {});
    this.says = el("p", { class: "s-says" });
    this.picked = el("p", {});
    this.hands = el("div", { class: "s-wordmenu" });
    this.menu = null;
    this.word = null;
    this.coming = false;
    this.card = el("div", { class: "s-card" }, this.picked, this.hands);
    this.drawing = null;
    this.equation = el("div", {});
    this.ways = new Section(bench, "ways", "What would make B say something else?");
    this.strips = new Section(bench, "strips", "Film strip: every beam size, every precision", { along: ["beam", "precision"] });
    this.node = el("div", {},
      this.bar, this.holder, this.says, this.card, this.ways.node, this.strips.node, this.equation);
  }

  answer() {
    const { bench } = this;
    const { pruned, until, opened } = bench.state.view;
    const side = bench.shownIn("tree");
    const column = bench.columns[side];
    const chosen = bench.chosen(side);
    const path = chosen.node >= 0 ? pathTo(column.tree, chosen.node) : [];
    patch(this.bar, sideSwitch(bench, side, (tree) => bench.update(withView({ tree, opened: [], until: null }), `Looked at the tree of ${tree}`), "Whose tree"));
    const ends = column.hypotheses.slice(0, 8).map((item) => item.node).filter((node) => node >= 0);
    this.draw(
      { tree: column.tree, kind: column.kind.target, ends, facts: factsOf(bench, side, "Search tree") },
      { side, selected: chosen.node, pruned, until, opened, tables: bench.tables(), ...this.otherPath(side, column, chosen, path) });
    this.showCard(column, bench.selectedNode(side));
    this.ways.answer(bench.has("B"));
    const rule = searchRule(column.spec);
    const draws = column.spec.options.strategy === "sample"; // a draw compares nothing, so it prunes nothing
    patch(this.says, "Every box is a step the search really considered, left to right: ", draws ? ["drawn boxes are solid, others that were likely dashed, "] : [term("kept", "", rule.kept), " boxes are solid, ", term("pruned", "", rule.pruned), " ones dashed, "],
      term("finished"), " ones ticked. The number is the probability of that token. Click a box and everything follows it.");
    patch(this.equation, equations(bench, "tree", rule.lines));
    this.strips.answer(bench.has("B"));
  }

  // The path of the other column's output through this tree, and the step at which the two separate.
  otherPath(side, column, chosen, path) {
    const other = side === "A" ? "B" : "A";
    const marks = new Map();
    if (!this.bench.has(other) || column.spec.checkpoint !== this.bench.columns[other].spec.checkpoint) return { marks, partAt: -1 };
    const theirs = this.bench.chosen(other).tokens;
    const own = new Set(path);
    walk(column.tree, theirs).forEach((row) => !own.has(row) && marks.set(row, other));
    const at = firstDifference(chosen.tokens, theirs);
    return { marks, partAt: at < Math.max(chosen.tokens.length, theirs.length) ? at : -1 };
  }

  draw(payload, view) {
    if (this.drawing) this.drawing.update(payload, view);
    else this.drawing = mountTree(this.holder, payload, view, (event, detail) => this.heard(event, detail));
  }

  heard(event, detail) {
    const side = this.bench.shownIn("tree");
    if (event === "select") this.bench.selectNode(side, detail);
    else if (event === "hover") this.bench.setHover(detail && { side, end: "target", index: detail.step });
    else if (event === "table") this.bench.foldTable(detail);
    else this.bench.look({ [event]: detail });
  }

  showCard(column, picked) {
    this.hands.hidden = !picked;
    if (!picked) {
      this.hands.replaceChildren(); // and with it what was typed
      this.menu = null;
      patch(this.picked, el("span", { class: "s-muted" }, `Pick a box to take it, to forbid it or to put another ${this.bench.words.noun(this.bench.shownIn("tree"))} in its place. Column B then shows what becomes of the output, and what that costs.`));
      return;
    }
    const { row, pieces } = picked;
    const text = plainText(pieces, column.kind.target);
    patch(this.picked, el("span", { class: "s-quote" }, pieces.some(isEnd) ? `${quoted(text)}, ended` : quoted(`${text}…`)), " ", this.drawing.tell(row).slice(1, 4).join("; "), ".");
    const word = this.wordAt(column, row, pieces);
    this.word = word;
    if (this.menu) this.menu.update(word);
    else if (!this.coming) this.mountMenu();
  }

  async mountMenu() {
    this.coming = true;
    try {
      this.menu = (await this.bench.words.menus()).mount(this.hands, this.word);
    } catch {
      this.hands.textContent = "What can be done with this box did not arrive. Pick another box, and it is fetched again.";
    }
    this.coming = false;
  }

  // The word that a box ends: the pieces of a word stand in several boxes.
  wordAt(column, row, pieces) {
    const unit = isEnd(pieces[pieces.length - 1]) ? null : units(pieces, column.kind.target).pop();
    const first = unit ? Math.min(...unit.atoms.flatMap((atom) => atom.pieces)) : pieces.length - 1;
    const logp = pathTo(column.tree, row).slice(first).reduce((sum, at) => sum + column.tree.logp[at], 0);
    return { side: this.bench.shownIn("tree"), of: { row }, before: pieces.slice(0, first), pieces: pieces.slice(first), logp };
  }
}
