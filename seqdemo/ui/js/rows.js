// Hands on attention: bend, hold or paint one row of B. The next word follows the pointer.
import { button, el, newId } from "../../figures/js/core.js";
import { numbersOf } from "../../figures/js/alignment.js";
import { mountBars } from "../../figures/js/bars.js";
import { patch } from "../../figures/js/patch.js";
import { pieceName } from "../../figures/js/text.js";
import { DrawChoice, isHard } from "./hard.js";
import { ResultLine } from "./result.js";
import { columnOf, coversHeads, isRow, withRow } from "./state.js";

const DIGITS = 5;

const normalised = (row) => {
  const sum = row.reduce((all, weight) => all + weight, 0);
  return row.map((weight) => Number((weight / sum).toFixed(DIGITS)));
};
const only = (row, at) => row.map((_, j) => Number(j === at));
const heaviest = (row) => row.indexOf(Math.max(...row));

function shuffled(row) {
  const next = [...row];
  for (let i = next.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [next[i], next[j]] = [next[j], next[i]];
  }
  return next;
}

/** All weights moved by one place; weights at the edge stay there. @param {number[]} row @param {1 | -1} by */
export function shiftedRow(row, by) {
  const next = row.map(() => 0);
  row.forEach((weight, j) => (next[Math.max(0, Math.min(row.length - 1, j + by))] += weight));
  return next;
}

/** The place of row `t` of `rows` on the diagonal of `across` columns. */
export function diagonalPlace(t, rows, across) {
  return rows < 2 ? 0 : Math.round((t * (across - 1)) / (rows - 1));
}

/** The attention of a trace, row by row: of the head, or the mean of its heads. Null if it has no such head.
 * @param {any} trace @param {{layer: number, head: number} | null} one */
export function attentionOf(trace, one) {
  if (!one) return trace.attention;
  const found = (trace.heads || []).find(({ layer, head }) => layer === one.layer && head === one.head);
  return found ? numbersOf(found.weights) : null;
}

/** Moves one row of B. What it needs of the view: `area`, the name of what is looked at; `head`, which one is shown of several. */
export class RowHands {
  constructor(bench, { area, about, head = () => null, chosen = (row) => {} }) {
    this.shown = head;
    this.bench = bench;
    this.chosen = chosen; // hears which row is chosen here
    this.area = area; // what a column of a row is, in words
    this.row = 0;
    this.column = null;
    this.answers = { next: null, bound: null };
    this.asked = "";
    const id = newId("s-row");
    this.select = el("select", { id, on: { change: () => (this.choose(Number(this.select.value)), this.chosen(this.row)) } });
    this.tools = el("div", { class: "s-actions" });
    this.whose = el("p", { class: "s-muted" });
    this.about = el("p", { class: "s-says" });
    this.aboutOf = about; // what can be done, by whether attention is hard
    this.draws = new DrawChoice(bench, area);
    this.said = el("p", { class: "s-says", role: "status" });
    this.holder = el("div", {});
    this.bars = mountBars(this.holder, { title: "", bars: [] });
    this.result = new ResultLine(bench);
    this.node = el("div", { class: "s-row-hands" }, this.about, this.draws.node,
      el("div", { class: "s-inline" }, el("label", { for: id }, "While it writes"), this.select), this.tools, this.whose, this.result.node, this.said, this.holder);
  }

  get trace() {
    return this.bench.columns.B.trace;
  }

  /** Hard attention looks at one place: weights by hand only say at which. */
  get hard() {
    return isHard(this.bench, "B");
  }

  /** How many places a row has. */
  get wide() {
    const { attention, pieces } = this.trace;
    return attention.length / pieces.length;
  }

  weights(t = this.row, side = "B") {
    return Array.from(attentionOf(this.bench.columns[side].trace, this.shown()).slice(t * this.wide, (t + 1) * this.wide));
  }

  /** The heads that an edit made here names: the one that is shown, or all. */
  get heads() {
    const one = this.shown();
    return one ? { layer: one.layer, head: one.head } : {};
  }

  /** The edits that hold a row, of all heads that are shown or of some. */
  edits(t) {
    return columnOf(this.bench.state, "B").edits.filter((edit) => isRow(edit, t) && (coversHeads(this.heads, edit) || coversHeads(edit, this.heads)));
  }

  /** The edit of a row that is made here. */
  edit(t = this.row) {
    return this.edits(t).find((edit) => coversHeads(this.heads, edit) && coversHeads(edit, this.heads));
  }

  /** Which of several heads an edit holds for. */
  whichHeads() {
    const one = this.shown();
    return one ? one.name : this.trace.heads ? "all heads" : "";
  }

  answer() {
    const { trace } = this;
    const { target } = this.bench.columns.B.kind;
    this.row = Math.min(this.row, trace.pieces.length - 1);
    patch(this.select, trace.pieces.map((piece, t) => el("option", { value: t }, `${t + 1}: ${pieceName(piece, target)}${this.edits(t).length ? " (by hand)" : ""}`)));
    this.select.value = String(this.row);
    this.about.textContent = this.aboutOf(this.hard);
    this.draws.answer();
    this.result.answer();
    this.show();
    this.ask();
  }

  show() {
    const { trace, row } = this;
    const now = this.weights();
    const place = this.column === null ? heaviest(now) : this.column;
    const { trace: other } = this.bench.columns.A;
    const theirs = this.bench.has("A") && attentionOf(other, this.shown());
    const alike = theirs && row < other.pieces.length && theirs.length / other.pieces.length === this.wide;
    const mine = this.edits(row).filter((edit) => coversHeads(this.heads, edit));
    const does = (name, weights, words, title) => button(name, () => this.set(weights(), words), { title, "data-key": name });
    patch(this.tools,
      does("Pin", () => now, "Pinned", `The ${this.hard ? this.area : "row"} stays as it is now, whatever else changes.`),
      this.hard ? null : [does("Only here", () => only(now, place), "Only one place", `All attention on one ${this.area}: the one touched last, else the heaviest.`),
        does("Uniform", () => now.map(() => 1), "Uniform attention", `The same attention on every ${this.area}.`)],
      this.area === "piece" ? [does("Shift left", () => shiftedRow(now, -1), "Attention one place to the left", "Every weight one place to the left."),
        does("Shift right", () => shiftedRow(now, 1), "Attention one place to the right", "Every weight one place to the right."),
        does("Diagonal", () => only(now, diagonalPlace(row, trace.pieces.length, this.wide)), "The diagonal", "All attention on the place that is as far into the input as this word is into the output.")] : null,
      this.hard ? null : does("Shuffle", () => shuffled(now), "Shuffled attention", "The same weights in another order, drawn at random."),
      alike ? does("As in A", () => this.weights(row, "A"), "Attention as in A", "The row that A has at this place.") : null,
      mine.length ? button("Let go", () => this.set(null, "Let go of attention"), { title: "Back to where the model wants to look.", "data-key": "free" }) : null);
    this.whose.hidden = !this.whichHeads();
    this.whose.textContent = this.shown() ? `What you set here holds for ${this.whichHeads()} alone.` : "The map shows the mean of the heads of the last layer. What you set here holds for all heads of all layers; choose one head above the map to move it alone.";
    this.told();
  }

  // Bars and bound of the row, as far as they are known.
  told() {
    const { next, bound } = this.answers;
    const of = (answer) => answer && answer.for === this.asked;
    this.said.textContent = of(bound) ? bound.error || bound.says : of(next) && next.error ? next.error : "";
    this.holder.hidden = !of(next) || Boolean(next.error);
    if (this.holder.hidden) return;
    const { target } = this.bench.columns.B.kind;
    const moved = next.rows[0];
    const before = new Map(next.own.bars.map((bar) => [bar.token, bar.p]));
    const bars = (moved || next.own).bars.map(({ token, piece, p }) => ({ name: pieceName(piece, target), p, before: moved ? before.get(token) : undefined, said: token === next.said.token }));
    const noun = this.bench.words.noun("B");
    this.bars.update({ title: moved ? `The next ${noun}, by this row. The thin marks are where the model's own row puts it.` : `The next ${noun}`, bars });
  }

  /** The next word under these weights or, without weights, under those in force. */
  async ask(weights = null) {
    const { hand } = this.bench;
    if (this.bench.asker.waiting().includes("B")) return; // what is on screen answers another question
    const mine = JSON.stringify([this.row, this.heads, this.trace.asked, columnOf(this.bench.state, "B")]);
    const anew = mine !== this.asked;
    this.asked = mine;
    if (!weights && !anew) return;
    const question = { position: this.row, ...this.heads };
    const keep = (name, answer) => {
      if (!answer || (!answer.ask && !answer.error)) return;
      this.answers[name] = { ...answer, for: mine };
      if (mine === this.asked) this.told();
    };
    hand.ask("B", { ask: "next", ...question, rows: weights ? [weights] : [], top: 8 }).then((answer) => keep("next", answer));
    if (anew) keep("bound", await hand.ask("B", { ask: "bound", ...question }));
  }

  choose(row, column = null) {
    if (row !== this.row) this.column = null;
    this.row = row;
    if (column !== null) this.column = column;
    this.select.value = String(row);
    this.show();
    this.ask();
  }

  /** An event of a drawing. */
  heard(event, detail) {
    if (event === "pull") this.pull(detail);
    if (event === "pick") this.pick(detail);
    if (event === "paint") this.paint(detail.cells);
    if (event === "painting") this.ask(this.paintedWith(detail.cells));
    if (event !== "row") return;
    this.choose(detail.row);
    this.set(detail.weights, "Attention by hand");
  }

  /** The row being dragged. */
  pull({ row, weights }) {
    if (row !== this.row) this.choose(row);
    this.ask(weights);
  }

  /** The cells that were painted for this row. */
  painted() {
    const weights = (this.edit() || { weights: [] }).weights;
    if (this.hard) return weights.length ? [heaviest(weights)] : [];
    const cells = weights.flatMap((weight, cell) => (weight ? [cell] : []));
    return new Set(cells.map((cell) => weights[cell])).size === 1 && cells.length < weights.length ? cells : [];
  }

  /** The row of these cells and those painted before; painted once more, cells are taken away. */
  paintedWith(cells) {
    if (this.hard) return this.painted().includes(cells[0]) ? null : only(this.weights(), cells[0]);
    const before = new Set(this.painted());
    const away = cells.every((cell) => before.has(cell));
    cells.forEach((cell) => (away ? before.delete(cell) : before.add(cell)));
    return before.size ? this.weights().map((_, cell) => Number(before.has(cell))) : null;
  }

  paint(cells) {
    this.set(this.paintedWith(cells), this.hard ? "Chose where to look" : "Painted where to look");
  }

  /** A cell was clicked: all attention there; again: as the model wants. */
  pick({ row, column }) {
    this.choose(row, column);
    const edit = this.edit(row);
    const again = edit && edit.weights[column] === Math.max(...edit.weights) && edit.weights.filter(Boolean).length === 1;
    this.set(again ? null : only(this.weights(row), column), again ? "Let go of attention" : "Attention on one place");
  }

  set(weights, words) {
    const { bench, row } = this;
    const name = pieceName(this.trace.pieces[row], bench.columns.B.kind.target);
    const heads = this.whichHeads();
    const held = weights && this.hard ? only(weights, heaviest(weights)) : weights;
    bench.update(withRow("B", row, held && normalised(held), this.heads), `B: ${words.toLowerCase()} while writing “${name}”${heads && `, ${heads}`}`);
  }
}
